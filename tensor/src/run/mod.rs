//! Programs made ready, and run.

pub mod explain;
mod free;
mod kernels;
mod plan;

pub use kernels::{Codes, Settings};
pub use plan::Plan;
