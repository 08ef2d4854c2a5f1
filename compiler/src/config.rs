//! The user's settings of the compiler.

use std::thread;

use aerogel_llvm::target::Cpu;
use aerogel_passes::{Options, Thresholds};

use crate::cache::CacheSettings;

/// What kernels run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// The processor of this machine.
    Cpu,
    /// The reference interpreter.
    Interp,
    /// A GPU of NVIDIA's, by its number.
    Cuda(u32),
}

/// Options that hold for all kernels of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What kernels run on.
    pub arch: Arch,
    /// Which processors the code of `Arch::Cpu` is made for; this one must be among them.
    pub cpu: Cpu,
    /// Check indices, divisors and assertions while running.
    pub debug: bool,
    /// Check indices, divisors and exponents, but not assertions.
    pub check_bounds: bool,
    /// Turn reductions into thread-local accumulators.
    pub thread_local: bool,
    /// 0: no optimisation, here or in LLVM; 1 to 3: ours, and LLVM's of that level.
    pub opt_level: u8,
    /// At most this many threads; all cores if absent.
    pub max_threads: Option<usize>,
    /// Print the IR of every kernel, as it comes and as it goes to the code generator.
    pub print_ir: bool,
    /// Where compiled kernels are cached from one process to the next; nowhere if absent.
    pub cache: Option<CacheSettings>,
    /// How loops over sparse nodes are divided.
    pub thresholds: Thresholds,
    /// Results depend neither on the number of threads nor on the order in which they work.
    pub deterministic: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            arch: Arch::Cpu,
            cpu: Cpu::Native,
            debug: false,
            check_bounds: false,
            thread_local: true,
            opt_level: 3,
            max_threads: None,
            print_ir: false,
            cache: None,
            thresholds: Thresholds::default(),
            deterministic: false,
        }
    }
}

impl Config {
    /// How many threads run kernels.
    pub(crate) fn n_threads(&self) -> usize {
        let all = || thread::available_parallelism().map_or(1, usize::from);
        self.max_threads.unwrap_or_else(all)
    }

    /// The options of the passes.
    pub(crate) fn pass_options(&self) -> Options {
        Options {
            debug: self.debug || self.check_bounds,
            thread_local: self.thread_local,
            // A GPU's threads have registers, and no memory that would be near.
            private_cells: !matches!(self.arch, Arch::Cuda(_)),
            shared_memory: matches!(self.arch, Arch::Cuda(_)),
            optimize: self.opt_level > 0,
            thresholds: match self.arch {
                Arch::Cuda(_) => Thresholds::of_threads(),
                _ => self.thresholds,
            },
            n_threads: self.n_threads() as u32,
            ..Options::default()
        }
    }
}
