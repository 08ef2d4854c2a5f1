//! Targets: one record for each, so that no other code depends on which target it is.

mod aarch64;
mod cpu;
mod nvptx;

use inkwell::OptimizationLevel;
use inkwell::targets::{
    CodeModel, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple,
};

pub use aarch64::aarch64;
pub use cpu::{Cpu, Level, host, runnable};
pub use nvptx::nvptx;

/// A machine to make code for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// LLVM's triple.
    pub triple: String,
    /// The processor, as LLVM names it.
    pub cpu: String,
    /// Its features, in LLVM's syntax.
    pub features: String,
    /// The vector width that pays, in bits, where LLVM would choose another.
    pub vector_width: Option<u32>,
    /// How many iterations to run in lanes at once if their inner loops differ in length;
    /// nothing if the hardware does so by itself.
    pub lanes: Option<u32>,
    /// Whether it multiplies and adds in one instruction that rounds once.
    pub fused: bool,
    /// Whether it has instructions that convert halves.
    pub halves: bool,
    /// Bytes that one compare-and-swap changes at most.
    pub widest_swap: u64,
    /// LLVM's number of the calling convention of task functions.
    pub task_convention: u32,
    /// Whether a task is a kernel for a grid of threads, out of the host's reach.
    pub grid: bool,
    /// Intrinsics that the code generator can select; LLVM ends the process at others.
    pub intrinsics: &'static [&'static str],
    /// Small code model and position independent.
    pub position_independent: bool,
    /// What stands between the name of a kernel and the number of a task in a symbol. A dot is in no other name; after `_` the
    /// symbol is an identifier of C if the kernel's name is one.
    pub separator: &'static str,
}

impl Target {
    /// How many registers hold vectors.
    pub(crate) fn vector_registers(&self) -> u32 {
        match self.vector_width == Some(512) || self.triple.starts_with("aarch64") {
            true => 32,
            false => 16,
        }
    }
}

/// Intrinsics that every target selects, or turns into plain instructions.
const COMMON_INTRINSICS: &[&str] = &[
    "llvm.sqrt",
    "llvm.fabs",
    "llvm.floor",
    "llvm.ceil",
    "llvm.trunc",
    "llvm.round",
    "llvm.fma",
    "llvm.copysign",
    "llvm.maximumnum",
    "llvm.minimumnum",
    "llvm.smax",
    "llvm.smin",
    "llvm.umax",
    "llvm.umin",
    "llvm.abs",
    "llvm.ctpop",
    "llvm.ctlz",
    "llvm.assume",
    "llvm.memset",
    "llvm.vector.reduce.or",
    "llvm.vector.reduce.smax",
];

impl Target {
    /// Whether the code generator can select this intrinsic (by its name without types).
    pub fn allows(&self, intrinsic: &str) -> bool {
        COMMON_INTRINSICS.contains(&intrinsic) || self.intrinsics.contains(&intrinsic)
    }

    /// A name for a function of a task, as the target's assembler takes it.
    pub(crate) fn symbol(&self, kernel: &str, part: &str) -> String {
        let word = |c: char| match self.grid && !c.is_ascii_alphanumeric() {
            true => '_',
            false => c,
        };
        let kernel: String = kernel.chars().map(word).collect();
        format!("{kernel}{}{part}", self.separator)
    }

    /// LLVM's machine for this target.
    pub(crate) fn machine(&self, level: OptimizationLevel) -> TargetMachine {
        initialize();
        let triple = TargetTriple::create(&self.triple);
        let target = LlvmTarget::from_triple(&triple).expect("LLVM was built with this target");
        let (reloc, model) = if self.position_independent {
            (RelocMode::PIC, CodeModel::Small)
        } else {
            (RelocMode::Default, CodeModel::Default)
        };
        target
            .create_target_machine(&triple, &self.cpu, &self.features, level, reloc, model)
            .expect("LLVM makes a machine for every target it has")
    }
}

fn initialize() {
    use std::sync::Once;
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let config = InitializationConfig::default();
        LlvmTarget::initialize_x86(&config);
        LlvmTarget::initialize_aarch64(&config);
        LlvmTarget::initialize_nvptx(&config);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_can_be_made() {
        let levels = Level::ALL.map(|level| Cpu::X86_64(level).target());
        for target in [host(), aarch64(), nvptx(80)].into_iter().chain(levels) {
            let machine = target.machine(OptimizationLevel::Default);
            assert_eq!(
                machine.get_triple().as_str().to_str().unwrap(),
                target.triple
            );
        }
    }
}
