//! A GPU as a device of the runtime.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use aerogel_runtime::{Buffer, Device, KernelCode, LoadError, LoadedKernel, MemoryError, Mirror};

use crate::driver::{Card, Driver, DriverError};
use crate::memory::GpuMirror;
use crate::opened::{OPENED, Opened};
use crate::plan::GpuKernel;
use crate::waiting::Running;

/// A GPU.
#[derive(Clone)]
pub struct GpuDevice {
    pub(crate) opened: Arc<Opened>,
}

impl GpuDevice {
    /// The device of a driver.
    pub fn new(driver: Box<dyn Driver>) -> Self {
        Self {
            opened: Arc::new(Opened {
                driver,
                process: std::process::id(),
                number: OPENED.fetch_add(1, Ordering::Relaxed),
                lost: OnceLock::new(),
                limit: AtomicU64::new(u64::MAX),
                held: AtomicU64::new(0),
                shared: Mutex::default(),
                queued: Mutex::default(),
                running: Running::default(),
            }),
        }
    }

    /// The device's properties.
    pub fn card(&self) -> &Card {
        self.opened.driver.card()
    }

    /// Limits the device memory in use to a number of bytes, or, below one, to a fraction of it; nothing for no limit.
    pub fn limit(&self, bytes: Option<f64>) {
        // An earlier program may have had a higher limit. Failures of its launches are reported to their callers.
        let _ = self.opened.settle();
        self.opened.drop_shared();
        let whole = self.card().memory as f64;
        let limit = match bytes {
            None => u64::MAX,
            Some(part) if part <= 1.0 => (part * whole) as u64,
            Some(bytes) => bytes as u64,
        };
        self.opened.limit.store(limit, Ordering::Relaxed);
    }

    /// The stream in which all is queued, as the driver numbers it.
    pub fn stream(&self) -> Result<u64, DriverError> {
        Ok(self.opened.driver()?.stream())
    }

    /// A buffer over device memory of another owner, who keeps it alive as long as `owner` lives; waits for the owner's
    /// work in a stream.
    ///
    /// # Errors
    /// If the memory is not this device's.
    pub fn adopt(
        &self,
        address: u64,
        bytes: usize,
        stream: Option<u64>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Buffer, DriverError> {
        self.opened.driver()?.adopt(address, bytes as u64, stream)?;
        let mirror = GpuMirror::anothers(&self.opened, address, bytes, owner);
        let buffer = Buffer::elsewhere(Box::new(mirror), bytes);
        buffer.map_err(|e| DriverError::Other(e.to_string()))
    }

    /// The address of a buffer's bytes on the device, for another owner who accesses them there from now on; all earlier
    /// work of the device is done.
    ///
    /// # Errors
    /// If the bytes are shared in host memory, or there is no memory.
    pub fn lend(&self, buffer: &Buffer) -> Result<u64, MemoryError> {
        let opened = &self.opened;
        let make = || {
            let made = GpuMirror::zeroed(opened, buffer.len(), buffer.margin());
            Ok(Box::new(made.map_err(|e| opened.memory_error(e))?) as Box<dyn Mirror>)
        };
        let address = buffer.lend_there(opened.number(), make)?;
        opened.settle().map_err(|e| opened.memory_error(e))?;
        Ok(address)
    }

    /// Waits until all work of the device is done, or Ctrl-C ends it, and reports how launches ended that had
    /// returned before.
    ///
    /// # Errors
    /// If one of them has failed, or the device is lost.
    pub fn wait(&self) -> Result<(), DriverError> {
        self.opened.settle()
    }

    /// Whether another process opened it, of which this one is a child.
    pub fn is_forked(&self) -> bool {
        self.opened.is_forked()
    }
}

impl Device for GpuDevice {
    /// Whether the device responds, and this process opened it.
    fn is_usable(&self) -> bool {
        self.opened.driver().is_ok()
    }

    fn identity(&self) -> String {
        let Card {
            name, sm, driver, ..
        } = self.card();
        format!("{name} sm_{sm} CUDA {driver:?}")
    }

    fn assemble(&self, code: &mut KernelCode) {
        let assemble = |driver: &dyn Driver, object: &Vec<u8>| {
            let text = std::str::from_utf8(object);
            let text = text.map_err(|_| DriverError::BadCode("it is no text".to_owned()))?;
            driver.assemble(text)
        };
        let made = self.opened.driver().and_then(|driver| {
            let all = code.objects.iter().map(|object| assemble(driver, object));
            all.collect::<Result<Vec<_>, _>>()
        });
        match made {
            Ok(made) => code.binaries = made,
            // Whoever loads it hears of it.
            Err(e) => tracing::debug!("code is not assembled: {e}"),
        }
    }

    fn load(&self, code: &KernelCode) -> Result<Box<dyn LoadedKernel>, LoadError> {
        let kernel = GpuKernel::new(&self.opened, code).map_err(|e| {
            self.opened.note(&e);
            LoadError(e.to_string())
        })?;
        Ok(Box::new(kernel))
    }
}
