//! Kernels written in Python: parsed and lowered to IR here, compiled below, called from Python.

pub mod ast;
pub mod derived;
mod fold;
pub mod host;
mod infer;
pub mod intrinsics;
pub mod lower;
pub mod map_host;
pub mod parse;
mod py;
mod scope;
pub mod traced;
