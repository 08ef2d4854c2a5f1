//! The processor this program runs on, as a device.

use std::sync::Arc;

use super::Pool;
use super::plan::LaunchPlan;
use super::sums::Spare;
use crate::code::{KernelCode, Site};
use crate::device::{Device, LoadError, LoadedKernel};
use crate::launch::{KernelFailure, Launch};

/// Links a kernel's object files into this process. The JIT implements it, so that this crate needs no LLVM.
pub trait ObjectLoader: Send + Sync {
    /// Loads object files; their memory goes back when the result is dropped.
    fn load(&self, objects: &[Vec<u8>]) -> Result<Box<dyn LoadedObject>, LoadError>;
}

/// Code in this process.
pub trait LoadedObject: Send + Sync {
    /// The address of a function.
    fn address(&self, symbol: &str) -> Option<usize>;
}

/// The processor this program runs on.
pub struct CpuDevice {
    pool: Arc<Pool>,
    spare: Arc<Spare>,
    loader: Box<dyn ObjectLoader>,
}

impl CpuDevice {
    /// A device whose kernels are linked by `loader` and run on `pool`.
    pub fn new(pool: Arc<Pool>, loader: Box<dyn ObjectLoader>) -> Self {
        Self {
            pool,
            spare: Arc::default(),
            loader,
        }
    }
}

impl Device for CpuDevice {
    fn load(&self, code: &KernelCode) -> Result<Box<dyn LoadedKernel>, LoadError> {
        let object = self.loader.load(&code.objects)?;
        Ok(Box::new(CpuKernel {
            plan: LaunchPlan::new(code, object)?,
            pool: self.pool.clone(),
            spare: self.spare.clone(),
        }))
    }
}

struct CpuKernel {
    plan: LaunchPlan,
    pool: Arc<Pool>,
    spare: Arc<Spare>,
}

impl LoadedKernel for CpuKernel {
    fn launch(&self, launch: Launch<'_>) -> Result<(), KernelFailure> {
        self.plan.launch(&self.pool, &self.spare, launch)
    }

    fn sites(&self) -> &[Site] {
        self.plan.sites()
    }
}
