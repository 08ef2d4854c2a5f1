//! (being written)
pub mod ast;
pub mod parse;
