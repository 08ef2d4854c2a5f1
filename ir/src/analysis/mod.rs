//! Static analyses of a function, shared by passes and code generation, so that both rely on the same
//! facts.

pub mod access;
mod accumulations;
pub mod affine;
pub mod box_set;
pub mod boxes;
mod calls;
pub mod cleared;
pub mod cost;
mod exact;
mod float_bound;
mod interval;
mod ranges;
pub mod sums;
pub mod trips;

pub use accumulations::{Accumulations, accumulations};
pub use calls::Calls;
pub use exact::{decisive, sensitive};
pub use float_bound::at_least;
pub use interval::{End, Interval};
pub use ranges::Ranges;
