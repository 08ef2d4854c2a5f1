//! A machine that runs PTX, the assembly language of NVIDIA GPUs, as a card does, and is strict where a card is lenient.
//!
//! [`Machine`] has memory, modules and launches, as a driver has. A launch runs blocks on all cores, their warps in turn, and
//! of a warp the lanes that stand at the same instruction together. Every access is checked: addresses that belong to nothing, to
//! memory that was given back, are not aligned, or hold what nobody has written are faults, and so are barriers that some
//! threads do not reach and, if asked for, accesses that nothing orders. A [`Fault`] names the instruction, the
//! thread and its block.

mod code;
mod error;
mod exec;
mod launch;
mod lex;
mod machine;
mod memory;
mod numbers;
mod parse;

pub use error::{Fault, FaultKind, ParseError};
pub use launch::{Counts, Launched, Options, Stop};
pub use machine::{Machine, Module};
