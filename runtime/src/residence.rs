//! Where the newest bytes of a buffer are: in the host's memory, on a device, or the same in both.
//!
//! A buffer has its range in the host's memory all its life, and perhaps a mirror on a device. A launch there makes the
//! mirror what the host has (`Buffer::on_device`) and says afterwards that it is newer (`Buffer::changed_on_device`); an
//! access of the host goes through to the mirror, or brings all bytes home first.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::buffer::MemoryError;

/// As many bytes as a buffer has, on a device.
pub trait Mirror: Send + Sync {
    /// Where it begins, for code of the device.
    fn address(&self) -> u64;

    /// The number of the device.
    fn device(&self) -> u64;

    /// Copies bytes to the host, when all that was asked of the device before is done.
    fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), MemoryError>;

    /// Copies bytes from the host.
    fn write(&self, offset: usize, from: &[u8]) -> Result<(), MemoryError>;

    /// Sets bytes to one value.
    fn fill(&self, offset: usize, bytes: usize, value: u8) -> Result<(), MemoryError>;

    /// Sees to it that these bytes have memory; those that had none are zero.
    fn provide(&self, bytes: Range<usize>) -> Result<(), MemoryError>;
}

/// Where the newest bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Newest {
    Host,
    Both,
    Device,
}

/// From so many accesses of single numbers on, between two launches, all bytes come home first.
const MANY: u32 = 32;
/// An access of fewer bytes is one of these.
const SMALL: usize = 4096;

/// A buffer's place on a device.
pub(crate) struct Residence {
    newest: AtomicU8,
    inner: Mutex<Inner>,
}

/// What is used of a range of addresses, told by words that lie there. The ranges come in the same order every time.
pub(crate) trait Extents: Send + Sync {
    /// What holds something.
    fn used(&self, words: Words<'_>) -> Result<Vec<Range<usize>>, MemoryError>;

    /// What may be written to.
    fn usable(&self, words: Words<'_>) -> Result<Vec<Range<usize>>, MemoryError>;

    /// The words that say how much may be written to.
    fn limits(&self, words: Words<'_>) -> Result<Vec<Limit>, MemoryError>;
}

/// How many elements may be used of those that lie one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// Where the number is.
    pub(crate) offset: u64,
    pub(crate) limit: u32,
    /// How many are used.
    pub(crate) used: u32,
    /// How many there may ever be.
    pub(crate) most: u32,
    /// Bytes that one takes.
    pub(crate) held: u64,
}

/// Reads the word at an offset.
pub(crate) type Words<'a> = &'a dyn Fn(u64) -> Result<u32, MemoryError>;

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) mirror: Option<Box<dyn Mirror>>,
    pub(crate) extents: Option<Box<dyn Extents>>,
    /// Whether somebody accesses the host's memory whenever he likes.
    pub(crate) lent: bool,
    /// Accesses of single numbers since the last launch.
    small: u32,
}

impl Default for Residence {
    fn default() -> Self {
        Self {
            newest: AtomicU8::new(Newest::Host as u8),
            inner: Mutex::default(),
        }
    }
}

impl Residence {
    pub(crate) fn newest(&self) -> Newest {
        match self.newest.load(Ordering::Acquire) {
            0 => Newest::Host,
            1 => Newest::Both,
            _ => Newest::Device,
        }
    }

    pub(crate) fn set(&self, newest: Newest) {
        self.newest.store(newest as u8, Ordering::Release);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The mirror, if an access of so many bytes shall go through to it.
    pub(crate) fn through(&mut self, bytes: usize) -> Option<&dyn Mirror> {
        if bytes < SMALL {
            self.small += 1;
            if self.small > MANY {
                return None;
            }
        }
        self.mirror.as_deref()
    }

    /// The parts of `len` bytes that are used.
    pub(crate) fn used(
        &self,
        len: usize,
        words: Words<'_>,
    ) -> Result<Vec<Range<usize>>, MemoryError> {
        match &self.extents {
            Some(extents) => extents.used(words),
            None => Ok(std::iter::once(0..len).collect()),
        }
    }

    /// A launch begins.
    pub(crate) fn launched(&mut self) {
        self.small = 0;
    }
}
