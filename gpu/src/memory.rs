//! Memory on a device, freed when it is dropped.

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aerogel_runtime::{MemoryError, Mirror, single_byte};

use crate::driver::DriverError;
use crate::opened::Opened;

/// What is committed of a range of addresses is a multiple of this.
const GRAIN: usize = 2 << 20;

/// Bytes on a device.
pub(crate) struct DeviceMemory {
    device: Arc<Opened>,
    pub(crate) address: u64,
    /// What keeps it, if it is somebody else's.
    owner: Option<Box<dyn Any + Send + Sync>>,
    /// Bytes that count as held.
    held: AtomicU64,
}

/// Whole words, since a number of less is changed atomically in the word around it.
fn rounded(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(16)
}

impl DeviceMemory {
    fn new(device: &Arc<Opened>, bytes: u64) -> Result<Self, DriverError> {
        let address = device.allocate(rounded(bytes))?;
        Ok(Self {
            device: device.clone(),
            address,
            owner: None,
            held: AtomicU64::new(rounded(bytes)),
        })
    }

    /// Bytes that are zero.
    pub(crate) fn zeroed(device: &Arc<Opened>, bytes: u64) -> Result<Self, DriverError> {
        let memory = Self::new(device, bytes)?;
        device.driver()?.fill(memory.address, rounded(bytes), 0)?;
        Ok(memory)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.device.give_back(*self.held.get_mut());
        // In the child of a fork there is nothing to give back.
        if self.owner.is_none()
            && let Ok(driver) = self.device.driver()
        {
            driver.free(self.address);
        }
    }
}

impl Opened {
    /// What can be said of a failure where there is only memory.
    pub(crate) fn memory_error(&self, e: DriverError) -> MemoryError {
        self.note(&e);
        match e {
            DriverError::OutOfMemory(bytes) => MemoryError::DeviceFull {
                bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            },
            DriverError::Forked => MemoryError::DeviceForked,
            DriverError::Earlier => MemoryError::LaunchFailed,
            DriverError::Lost(what) => {
                tracing::debug!("{what}");
                MemoryError::DeviceLost
            }
            other => {
                tracing::warn!("{other}");
                MemoryError::DeviceFailed
            }
        }
    }
}

/// The mirror of a buffer.
pub(crate) struct GpuMirror {
    memory: DeviceMemory,
    /// Where the buffer's first byte is: before and behind it lie some that are nobody's.
    first: u64,
    len: usize,
    /// Which grains of a range of addresses have memory; none if all of it has.
    given: Option<Mutex<Vec<bool>>>,
}

impl GpuMirror {
    /// Zeros, with as many before and after them.
    pub(crate) fn zeroed(
        device: &Arc<Opened>,
        len: usize,
        margin: usize,
    ) -> Result<Self, DriverError> {
        let margin = margin.next_multiple_of(256) as u64;
        let memory = DeviceMemory::zeroed(device, len as u64 + 2 * margin)?;
        Ok(Self {
            first: memory.address + margin,
            memory,
            len,
            given: None,
        })
    }

    /// Addresses for so many bytes.
    pub(crate) fn reserved(
        device: &Arc<Opened>,
        len: usize,
        margin: usize,
    ) -> Result<Self, DriverError> {
        let margin = margin.next_multiple_of(GRAIN);
        let whole = len.next_multiple_of(GRAIN) + 2 * margin;
        let address = device.driver()?.reserve(whole as u64)?;
        let memory = DeviceMemory {
            device: device.clone(),
            address,
            owner: None,
            held: AtomicU64::new(0),
        };
        let mirror = Self {
            first: address + margin as u64,
            memory,
            len,
            given: Some(Mutex::new(Vec::new())),
        };
        Ok(mirror)
    }

    /// Memory that somebody else has allocated, and keeps as long as `owner` is.
    pub(crate) fn anothers(
        device: &Arc<Opened>,
        address: u64,
        len: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self {
            memory: DeviceMemory {
                device: device.clone(),
                address,
                owner: Some(owner),
                held: AtomicU64::new(0),
            },
            first: address,
            len,
            given: None,
        }
    }

    fn at(&self, offset: usize, bytes: usize) -> Result<u64, MemoryError> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.len => Ok(self.first + offset as u64),
            _ => Err(MemoryError::OutOfRange {
                offset,
                bytes,
                len: self.len,
            }),
        }
    }
}

impl Mirror for GpuMirror {
    fn address(&self) -> u64 {
        self.first
    }

    fn device(&self) -> u64 {
        self.memory.device.number()
    }

    fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), MemoryError> {
        let at = self.at(offset, to.len())?;
        let device = &self.memory.device;
        let failed = |e| device.memory_error(e);
        let driver = device.driver().map_err(failed)?;
        if !device.queue().is_empty() {
            device.settle().map_err(failed)?;
        }
        driver.read(at, to).map_err(failed)
    }

    fn write(&self, offset: usize, from: &[u8]) -> Result<(), MemoryError> {
        let at = self.at(offset, from.len())?;
        let device = &self.memory.device;
        let failed = |e| device.memory_error(e);
        let driver = device.driver().map_err(failed)?;
        driver.write(at, from).map_err(failed)
    }

    fn fill(&self, offset: usize, bytes: usize, pattern: &[u8]) -> Result<(), MemoryError> {
        /// The first chunk comes from the host; the device doubles it by copies.
        const PIECE: usize = 64 << 10;
        let at = self.at(offset, bytes)?;
        let device = &self.memory.device;
        let failed = |e| device.memory_error(e);
        let driver = device.driver().map_err(failed)?;
        if let Some(value) = single_byte(pattern) {
            return driver.fill(at, bytes as u64, value).map_err(failed);
        }
        let times = (PIECE.min(bytes) / pattern.len()).max(1);
        let mut done = (times * pattern.len()).min(bytes);
        driver
            .write(at, &pattern.repeat(times)[..done])
            .map_err(failed)?;
        while done < bytes {
            let more = done.min(bytes - done);
            driver
                .copy(at + done as u64, at, more as u64)
                .map_err(failed)?;
            done += more;
        }
        Ok(())
    }

    fn provide(&self, bytes: Range<usize>) -> Result<(), MemoryError> {
        let Some(given) = &self.given else {
            return Ok(());
        };
        let device = &self.memory.device;
        let failed = |e| device.memory_error(e);
        let driver = device.driver().map_err(failed)?;
        let mut given = given.lock().unwrap_or_else(PoisonError::into_inner);
        let grains = bytes.start / GRAIN..bytes.end.div_ceil(GRAIN);
        if given.len() < grains.end {
            given.resize(grains.end, false);
        }
        let mut next = grains.start;
        while next < grains.end {
            if given[next] {
                next += 1;
                continue;
            }
            let end = (next..grains.end).find(|&k| given[k]).unwrap_or(grains.end);
            let at = self.first + (next * GRAIN) as u64;
            let bytes = ((end - next) * GRAIN) as u64;
            device.hold(bytes).map_err(failed)?;
            let given_there = driver.commit(at, bytes);
            given_there
                .inspect_err(|_| device.give_back(bytes))
                .map_err(failed)?;
            self.memory.held.fetch_add(bytes, Ordering::Relaxed);
            given[next..end].fill(true);
            next = end;
        }
        Ok(())
    }
}
