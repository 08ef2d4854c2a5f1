//! From a module to a kernel that can be launched.
#![warn(missing_docs)]

mod cache;
mod config;
mod driver;
mod dump;

pub use aerogel_llvm::target::{Cpu, Level, runnable};
pub use aerogel_runtime::launch::{Args, KernelFailure, Launch};
pub use cache::{CacheSettings, Cleaning};
pub use config::{Arch, Config};
pub use driver::{CompileError, CompiledKernel, Compiler, Inspection};
