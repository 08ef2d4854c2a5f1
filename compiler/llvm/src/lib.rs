//! From lowered IR to machine code, through LLVM. The only crate that names LLVM.
#![warn(missing_docs)]

mod alias_metadata;
mod bfloat;
mod block_sums;
mod buffers;
mod builder;
mod call;
mod changed;
mod compile;
mod context;
mod control;
mod device_code;
mod diagnostics;
mod divisors;
mod elementwise;
mod far;
mod grid;
mod images;
mod interior;
pub mod jit;
mod lanes;
mod lines;
mod linked;
mod lower;
mod math;
mod memory;
mod merged;
mod messages;
mod nodes;
pub mod optimize;
mod pieces;
mod power;
mod products;
mod random;
mod sites;
mod slots;
mod sums;
pub mod target;
mod task;
mod task_state;
mod threads;
mod tiles;
mod types;

pub use compile::{Compiled, Texts, compile};
pub use jit::Jit;
pub use linked::{data, link};
pub use optimize::OptLevel;
pub use target::Target;

/// The version of LLVM that makes the code.
pub fn version() -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("LLVM {major}.{minor}.{patch}")
}
