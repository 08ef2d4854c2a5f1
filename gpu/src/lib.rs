//! GPUs: memory and launches by a driver.
//!
//! [`Driver`] is all that is asked of one. NVIDIA's is loaded when it is first wanted, so nothing of CUDA is needed to
//! build or to start; the machine that runs PTX (`aerogel-ptx`, feature `machine`) is another, for tests. What stands above them,
//! [`GpuDevice`], knows neither.

mod arrays;
mod block;
mod device;
mod driver;
mod graph;
mod kernel;
#[cfg(feature = "machine")]
mod machine;
mod memory;
mod nvidia;
mod opened;
mod plan;
mod printed;
mod queue;
mod registry;
mod waiting;

pub use device::GpuDevice;
pub use driver::{Card, Driver, DriverError, Grid, KernelLaunch};
pub use graph::Graph;
#[cfg(feature = "machine")]
pub use machine::MachineDriver;
pub use registry::device;
