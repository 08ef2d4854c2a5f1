//! From lowered IR to machine code, through LLVM. The only crate that names LLVM.
#![warn(missing_docs)]

pub mod jit;
pub mod optimize;
pub mod target;
