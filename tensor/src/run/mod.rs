//! Programs made ready, and run.

pub mod explain;
mod free;
mod histories;
mod kernels;
mod plan;
mod replay;
mod schedule;
mod segments;
pub mod tune;
mod watch;

pub use kernels::{Codes, Settings};
pub use plan::Plan;
pub use watch::{Given, PlaceOf, Profiler};
