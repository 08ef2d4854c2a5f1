//! The host as a device.

pub mod memory;
pub mod pool;

pub use pool::Pool;
pub(crate) use pool::STACK;
