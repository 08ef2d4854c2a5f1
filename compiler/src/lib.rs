//! From a module to a kernel that can be launched.
#![warn(missing_docs)]

mod cache;
mod caught;
mod config;
mod driver;
mod dump;
pub mod export;
mod ptx_files;
mod quick;
mod room;
mod worker;

pub use aerogel_gpu::{DriverError, GpuDevice, Graph};
pub use aerogel_llvm::target::{Cpu, Level, runnable};
pub use aerogel_passes::autodiff::{Asked, Differentiated, Moment, Untracked, Wanted, asked_by};
pub use aerogel_passes::split::{
    Exchange, SparseTree, SplitAxis, SplitGrid, SplitKernel, Sum, accesses_split, number_cells,
};
pub use aerogel_runtime::launch::{Args, KernelFailure, Launch};
pub use cache::{CacheSettings, Cleaning};
pub use caught::caught;
pub use config::{Arch, Config};
pub use driver::{CompileError, CompiledKernel, Compiler, Inspection, cuda, open_cuda};
pub use dump::Print;
pub use room::{Room, prepare as set_room_aside};
pub use worker::finish;
