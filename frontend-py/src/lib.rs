//! (being written)
pub mod ast;
mod fold;
pub mod host;
mod infer;
pub mod intrinsics;
pub mod lower;
pub mod parse;
mod scope;
