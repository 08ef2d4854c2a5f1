//! Processors: the one this program runs on, and the levels of x86-64.

use inkwell::targets::TargetMachine;

use super::{Target, initialize};

/// Which processors code is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cpu {
    /// The one this program runs on, with everything it can do.
    #[default]
    Native,
    /// All that have a level of the x86-64 psABI.
    X86_64(Level),
}

/// A microarchitecture level of x86-64: what compilers call `x86-64-v2` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// SSE 4.2; no fused multiply-add.
    V2,
    /// AVX2, fused multiply-add, conversions of halves.
    V3,
    /// AVX-512.
    V4,
}

impl Level {
    /// Every level, the lowest first.
    pub const ALL: [Self; 3] = [Self::V2, Self::V3, Self::V4];

    /// As LLVM names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2 => "x86-64-v2",
            Self::V3 => "x86-64-v3",
            Self::V4 => "x86-64-v4",
        }
    }

    /// Its features beyond the level below, in LLVM's syntax.
    const fn features(self) -> &'static str {
        match self {
            Self::V2 => "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+sahf",
            Self::V3 => "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe",
            Self::V4 => "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
        }
    }

    /// Everything it has.
    fn all_features(self) -> String {
        let below = Self::ALL.iter().filter(|level| **level <= self);
        below
            .map(|level| level.features())
            .collect::<Vec<_>>()
            .join(",")
    }
}

impl Cpu {
    /// The one with a name: `native` or a level's.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "native" {
            return Some(Self::Native);
        }
        let level = Level::ALL.into_iter().find(|level| level.name() == name)?;
        Some(Self::X86_64(level))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::X86_64(level) => level.name(),
        }
    }

    /// Whether this program's processor runs code that is made for it.
    pub fn runs_here(self) -> bool {
        match self {
            Self::Native => true,
            Self::X86_64(level) => {
                let host = host_features();
                cfg!(target_arch = "x86_64")
                    && level.all_features().split(',').all(|name| has(&host, name))
            }
        }
    }

    /// The target of the level.
    pub fn target(self) -> Target {
        initialize();
        match self {
            Self::Native => {
                let triple = text(TargetMachine::get_default_triple().as_str());
                let cpu = text(&TargetMachine::get_host_cpu_name());
                processor(triple, cpu, host_features())
            }
            Self::X86_64(level) => processor(
                "x86_64-unknown-linux-gnu".to_owned(),
                level.name().to_owned(),
                level.all_features(),
            ),
        }
    }
}

/// The host, with everything it can do.
pub fn host() -> Target {
    Cpu::Native.target()
}

/// All that this program's processor executes.
pub fn runnable() -> Vec<Cpu> {
    let levels = Level::ALL.map(Cpu::X86_64);
    let levels = levels.into_iter().filter(|cpu| cpu.runs_here());
    [Cpu::Native].into_iter().chain(levels).collect()
}

fn host_features() -> String {
    let features = TargetMachine::get_host_cpu_features();
    let features = features.to_str().expect("feature names are ASCII");
    // Sums and products of halves are made of floats on all processors, and so are alike on all.
    features.replace("+avx512fp16", "-avx512fp16")
}

fn processor(triple: String, cpu: String, features: String) -> Target {
    let x86 = triple.starts_with("x86_64");
    Target {
        // LLVM halves the width on these machines, to spare their clock; measured, the full width
        // is faster on all kinds of loops.
        vector_width: has(&features, "+avx512f").then_some(512),
        lanes: Some(lanes(&features)),
        widest_swap: if has(&features, "+cx16") || !x86 {
            16
        } else {
            8
        },
        halves: has(&features, "+f16c") || !x86,
        fused: has(&features, "+fma") || !x86,
        features: if x86 {
            format!("{features}{TUNING}")
        } else {
            features
        },
        triple,
        cpu,
        task_convention: 0,
        grid: false,
        intrinsics: &[],
        position_independent: true,
        separator: ".",
    }
}

/// LLVM thinks gathers and scatters cheap enough to load structures with a large stride by them,
/// which takes several times as long as scalar accesses (products of 3x3 matrices: 11.4 ms with
/// both, 1.1 ms without).
const TUNING: &str = ",+prefer-no-gather,+prefer-no-scatter";

/// The number of 32-bit values in a vector register: with more, LLVM unpacks booleans and packs them
/// again in every iteration (Julia set, 8 lanes of 256 bits: 13.7 ms, 16 lanes: 21 ms).
fn lanes(features: &str) -> u32 {
    if has(features, "+avx512f") {
        16
    } else if has(features, "+avx2") {
        8
    } else {
        4
    }
}

fn has(features: &str, name: &str) -> bool {
    features.split(',').any(|feature| feature == name)
}

fn text(s: &std::ffi::CStr) -> String {
    s.to_string_lossy().into_owned()
}
