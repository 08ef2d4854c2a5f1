//! GPUs: memory and launches by a driver.
//!
//! [`Driver`] is the interface of drivers. NVIDIA's is loaded at its first use, so CUDA is not needed to build or to
//! start; the PTX simulator (`aerogel-ptx`, feature `machine`) is another, for tests. The layer above them,
//! [`GpuDevice`], is independent of both.

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
