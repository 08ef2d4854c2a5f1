//! What is known of a function without running it: asked by passes and by code generation, so that
//! both take the same for granted.

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
