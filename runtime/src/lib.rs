//! The runtime of kernels: memory, threads, launches, messages. It knows neither IR nor LLVM.
//!
//! Generated code and this crate meet in `abi`; a back end hands over a `KernelCode`, a `Device`
//! turns it into something that can be launched.

pub mod abi;
pub mod buffer;
pub mod code;
pub mod cpu;
pub mod device;
pub mod faults;
pub mod format;
pub mod interrupt;
pub mod launch;
mod memory_error;
pub mod races;
pub mod residence;
pub mod status;
pub mod stdout;
pub mod trace;
pub mod tree;

pub use buffer::{Buffer, MemoryError};
pub use code::{
    ArgSlot, Atomics, Bounds, Image, ImageMemory, KernelCode, Order, Part, Run, Site, SiteKind,
    Sum, SumsCode, TaskCode,
};
pub use cpu::{LoadedObject, ObjectLoader};
pub use device::{Device, LoadError, LoadedKernel};
pub use launch::{Args, KernelFailure, Launch, PrintSink, Signature};
pub use residence::{Access, AtHome, Mirror, OnDevice, single_byte};
pub use trace::{TaskRun, TaskTrace};
pub use tree::TreeMemory;
