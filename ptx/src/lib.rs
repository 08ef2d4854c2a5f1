//! A simulator for PTX, the assembly language of NVIDIA GPUs: it runs PTX as a GPU does, and is strict where a GPU is lenient.
//!
//! [`Machine`] has memory, modules and launches, as a driver has. A launch runs blocks on all cores, their warps in turn, and
//! of a warp the lanes at the same instruction together. Every access is checked: invalid, freed, misaligned and
//! uninitialised addresses are faults, and so are barriers that some threads do not reach and, if enabled, data races. A
//! [`Fault`] names the instruction, the thread and its
//! block.

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
