//! The host as a device.

mod course;
mod device;
mod group;
mod growing;
pub mod memory;
mod plan;
pub mod pool;
mod split;
mod sums;
mod task;
mod turns;

pub use device::{CpuDevice, LoadedObject, ObjectLoader};
pub use pool::Pool;
pub(crate) use pool::STACK;
