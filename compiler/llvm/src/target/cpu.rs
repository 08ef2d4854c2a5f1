//! The processor this program runs on.

use inkwell::targets::TargetMachine;

use super::{Target, initialize};

/// The host, with everything it can do.
pub fn host() -> Target {
    initialize();
    let features = TargetMachine::get_host_cpu_features();
    let features = features.to_str().expect("feature names are ASCII");
    Target {
        triple: text(TargetMachine::get_default_triple().as_str()),
        cpu: text(&TargetMachine::get_host_cpu_name()),
        // LLVM halves the width on these machines, to spare their clock; measured, the full width
        // is faster on all kinds of loops.
        vector_width: has(features, "+avx512f").then_some(512),
        features: format!("{features}{TUNING}"),
        lanes: Some(lanes(features)),
        widest_swap: if has(features, "+cx16") || cfg!(target_arch = "aarch64") {
            16
        } else {
            8
        },
        task_convention: 0,
        grid: false,
        intrinsics: &[
            "llvm.sin",
            "llvm.cos",
            "llvm.tan",
            "llvm.asin",
            "llvm.acos",
            "llvm.atan",
            "llvm.sinh",
            "llvm.cosh",
            "llvm.tanh",
            "llvm.exp",
            "llvm.exp2",
            "llvm.log",
            "llvm.log2",
            "llvm.pow",
            "llvm.atan2",
        ],
        position_independent: true,
    }
}

/// LLVM thinks gathers and scatters cheap enough to load structures with a large stride by them,
/// which takes several times as long as scalar accesses (products of 3x3 matrices: 11.4 ms with
/// both, 1.1 ms without).
const TUNING: &str = if cfg!(target_arch = "x86_64") {
    ",+prefer-no-gather,+prefer-no-scatter"
} else {
    ""
};

/// As many numbers of 32 bits as a vector holds: with more, LLVM takes truth values apart and packs
/// them again at every turn (Julia set, 8 lanes of 256 bits: 13.7 ms, 16 lanes: 21 ms).
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
