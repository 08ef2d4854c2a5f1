//! Programs made ready, and run.

pub mod explain;
mod free;
mod plan;

pub use plan::{Codes, Plan, Settings};
