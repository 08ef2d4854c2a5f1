//! A GPU as a device of the runtime.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use aerogel_runtime::{Device, KernelCode, LoadError, LoadedKernel};

use crate::driver::{Card, Driver, DriverError};
use crate::plan::GpuKernel;

/// A card that has been opened, and what its launches share.
pub(crate) struct Opened {
    driver: Box<dyn Driver>,
    /// The process that opened it.
    process: u32,
    number: u64,
    /// Why it does not answer any more.
    lost: OnceLock<String>,
    shared: Mutex<Shared>,
}

/// Memory that one launch after the other uses.
#[derive(Default)]
pub(crate) struct Shared {
    /// Where what threads print is kept, and where their growing storages are: address and bytes.
    pub(crate) log: Option<(u64, u64)>,
    pub(crate) heap: Option<(u64, u64)>,
}

static OPENED: AtomicU64 = AtomicU64::new(1);

impl Opened {
    /// The driver, if this process may use it, and the card is not lost.
    pub(crate) fn driver(&self) -> Result<&dyn Driver, DriverError> {
        if self.is_forked() {
            return Err(DriverError::Forked);
        }
        match self.lost.get() {
            None => Ok(&*self.driver),
            Some(why) => Err(DriverError::Lost(why.clone())),
        }
    }

    fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The sole use of the card for a launch.
    pub(crate) fn turn(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what makes a card useless.
    pub(crate) fn note(&self, e: &DriverError) {
        if let DriverError::Lost(why) = e {
            let _ = self.lost.set(why.clone());
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let shared = std::mem::take(&mut *self.turn());
        if let Ok(driver) = self.driver() {
            for (address, _) in [shared.log, shared.heap].into_iter().flatten() {
                driver.free(address);
            }
        }
    }
}

/// A GPU.
#[derive(Clone)]
pub struct GpuDevice {
    opened: Arc<Opened>,
}

impl GpuDevice {
    /// The card of a driver.
    pub fn new(driver: Box<dyn Driver>) -> Self {
        Self {
            opened: Arc::new(Opened {
                driver,
                process: std::process::id(),
                number: OPENED.fetch_add(1, Ordering::Relaxed),
                lost: OnceLock::new(),
                shared: Mutex::default(),
            }),
        }
    }

    /// What card it is.
    pub fn card(&self) -> &Card {
        self.opened.driver.card()
    }

    /// Whether another process opened it, of which this one is a child.
    pub fn is_forked(&self) -> bool {
        self.opened.is_forked()
    }
}

impl Device for GpuDevice {
    /// Whether the card answers, and this process opened it.
    fn is_usable(&self) -> bool {
        self.opened.driver().is_ok()
    }

    fn load(&self, code: &KernelCode) -> Result<Box<dyn LoadedKernel>, LoadError> {
        let kernel = GpuKernel::new(&self.opened, code).map_err(|e| {
            self.opened.note(&e);
            LoadError(e.to_string())
        })?;
        Ok(Box::new(kernel))
    }
}
