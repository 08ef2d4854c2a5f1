//! An opened device: its driver, the limit of its memory, and the state that its launches share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::waiting::{Queued, Running};
use crate::{Driver, DriverError};

/// An opened device, and the state that its launches share.
pub(crate) struct Opened {
    pub(crate) driver: Box<dyn Driver>,
    /// The process that opened it.
    pub(crate) process: u32,
    pub(crate) number: u64,
    /// Why it does not answer any more.
    pub(crate) lost: OnceLock<String>,
    /// The most bytes that shall be allocated, and those that are.
    pub(crate) limit: AtomicU64,
    pub(crate) held: AtomicU64,
    pub(crate) shared: Mutex<Shared>,
    /// Launches that have not been waited for, in order.
    pub(crate) queued: Mutex<Vec<Queued>>,
    pub(crate) running: Running,
}

/// Memory that one launch after the other uses.
#[derive(Default)]
pub(crate) struct Shared {
    /// The buffers for output of threads and for growing storages: address and bytes.
    pub(crate) log: Option<(u64, u64)>,
    pub(crate) heap: Option<(u64, u64)>,
}

pub(crate) static OPENED: AtomicU64 = AtomicU64::new(1);

impl Opened {
    /// The driver, if this process may use it, and the device is not lost. All deferred launches have been sent to it.
    pub(crate) fn driver(&self) -> Result<&dyn Driver, DriverError> {
        let driver = self.idle_driver()?;
        self.send_waiting(driver)?;
        Ok(driver)
    }

    /// As `driver`, though launches of a graph may wait to be sent.
    pub(crate) fn idle_driver(&self) -> Result<&dyn Driver, DriverError> {
        if self.is_forked() {
            return Err(DriverError::Forked);
        }
        match self.lost.get() {
            None => Ok(&*self.driver),
            Some(why) => Err(DriverError::Lost(why.clone())),
        }
    }

    /// The address of the word that ends launches early.
    pub(crate) fn stop_word(&self) -> u64 {
        self.driver.stop_word()
    }

    /// Device memory, up to the limit.
    pub(crate) fn memory(&self) -> u64 {
        let limit = self.limit.load(Ordering::Relaxed);
        self.driver.card().memory.min(limit)
    }

    /// How much of it nobody here has taken.
    pub(crate) fn unused_memory(&self) -> u64 {
        let held = self.held.load(Ordering::Relaxed);
        self.memory().saturating_sub(held)
    }

    /// Device memory, within the limit.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64, DriverError> {
        let driver = self.driver()?;
        self.hold(bytes)?;
        driver
            .allocate(bytes)
            .inspect_err(|_| self.give_back(bytes))
    }

    /// Counts bytes that are about to be allocated, if they may be.
    pub(crate) fn hold(&self, bytes: u64) -> Result<(), DriverError> {
        let limit = self.limit.load(Ordering::Relaxed);
        let more = |held: u64| held.checked_add(bytes).filter(|&all| all <= limit);
        let order = Ordering::Relaxed;
        let held = self.held.fetch_update(order, order, more);
        held.map_err(|_| DriverError::OutOfMemory(bytes)).map(drop)
    }

    /// Counts bytes that are allocated no more.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Exclusive use of the device for a launch.
    pub(crate) fn turn(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an error that makes the device unusable.
    pub(crate) fn note(&self, e: &DriverError) {
        if let DriverError::Lost(why) = e {
            let _ = self.lost.set(why.clone());
        }
    }
}

impl Opened {
    /// Gives back the memory that launches share.
    pub(crate) fn drop_shared(&self) {
        let shared = std::mem::take(&mut *self.turn());
        for (address, bytes) in [shared.log, shared.heap].into_iter().flatten() {
            self.give_back(bytes);
            if let Ok(driver) = self.driver() {
                driver.free(address);
            }
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.drop_shared();
    }
}
