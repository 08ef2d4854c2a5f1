//! A machine that runs PTX, the assembly language of NVIDIA GPUs, as a card does, and is strict where a card is lenient.

mod code;
mod error;
mod lex;
mod memory;
mod numbers;
mod parse;

pub use error::{Fault, FaultKind, ParseError};
#[doc(hidden)]
pub fn try_parse(t: &str) -> Result<usize, ParseError> { parse::parse(t).map(|c| c.functions.len()) }
