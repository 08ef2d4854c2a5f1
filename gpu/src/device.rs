//! A GPU as a device of the runtime.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use aerogel_runtime::{Buffer, Device, KernelCode, LoadError, LoadedKernel, MemoryError, Mirror};

use crate::driver::{Card, Driver, DriverError};
use crate::graph::Running;
use crate::memory::GpuMirror;
use crate::plan::GpuKernel;
use crate::queue::Queued;

/// A card that has been opened, and what its launches share.
pub(crate) struct Opened {
    driver: Box<dyn Driver>,
    /// The process that opened it.
    process: u32,
    number: u64,
    /// Why it does not answer any more.
    lost: OnceLock<String>,
    /// The most bytes that shall be allocated, and those that are.
    limit: AtomicU64,
    held: AtomicU64,
    shared: Mutex<Shared>,
    /// Launches that nobody has waited for, in their order.
    pub(crate) queued: Mutex<Vec<Queued>>,
    pub(crate) running: Running,
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
    /// The driver, if this process may use it, and the card is not lost. It has been asked for all that was launched.
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

    /// Memory of the card, as much as may be used.
    pub(crate) fn memory(&self) -> u64 {
        let limit = self.limit.load(Ordering::Relaxed);
        self.driver.card().memory.min(limit)
    }

    /// How much of it nobody here has taken.
    pub(crate) fn unused_memory(&self) -> u64 {
        let held = self.held.load(Ordering::Relaxed);
        self.memory().saturating_sub(held)
    }

    /// Memory of the card, within what may be used.
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

impl Opened {
    /// Gives back the memory that launches share.
    fn drop_shared(&self) {
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

/// A GPU.
#[derive(Clone)]
pub struct GpuDevice {
    pub(crate) opened: Arc<Opened>,
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
                limit: AtomicU64::new(u64::MAX),
                held: AtomicU64::new(0),
                shared: Mutex::default(),
                queued: Mutex::default(),
                running: Running::default(),
            }),
        }
    }

    /// What card it is.
    pub fn card(&self) -> &Card {
        self.opened.driver.card()
    }

    /// Lets no more than so many bytes of the card be used from now on, or, below one, such a part of it; nothing for all.
    pub fn limit(&self, bytes: Option<f64>) {
        // A program that was before may have had more for itself. How its launches ended is told those who asked for it.
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

    /// A buffer over memory of the card that is somebody else's, who keeps it as long as `owner` is; waits for what he has
    /// asked of a stream.
    ///
    /// # Errors
    /// If the memory is not this card's.
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

    /// The address of a buffer's bytes on the card, for somebody who accesses them there from now on; all that was asked of
    /// the card is done.
    ///
    /// # Errors
    /// If somebody sees the bytes in the host's memory, or there is no memory.
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

    /// Waits until all that was asked of the card is done, or Ctrl-C ends it, and tells how launches ended that have
    /// returned before.
    ///
    /// # Errors
    /// If one of them has failed, or the card is lost.
    pub fn wait(&self) -> Result<(), DriverError> {
        self.opened.settle()
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
