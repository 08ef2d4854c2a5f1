//! Where the newest bytes of a buffer are: in the host's memory, on a device, or the same in both.
//!
//! A buffer has its range in the host's memory all its life, and perhaps a mirror on a device. A launch there makes the
//! mirror what the host has (`Buffer::on_device`) and says afterwards that it is newer (`Buffer::changed_on_device`); an
//! access of the host goes through to the mirror, or brings all bytes home first.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::buffer::{Buffer, MemoryError};

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
    inner: OnceLock<Box<Mutex<Inner>>>,
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
            inner: OnceLock::new(),
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

    /// Whether somebody accesses the host's memory whenever he likes.
    pub(crate) fn is_lent(&self) -> bool {
        self.inner.get().is_some() && self.lock().lent
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        let inner = self.inner.get_or_init(Box::default);
        inner.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Buffer {
    /// Copies bytes from the mirror; false if they are here now.
    pub(crate) fn read_there(&self, offset: usize, out: &mut [u8]) -> Result<bool, MemoryError> {
        let mut inner = self.residence.lock();
        if self.residence.newest() != Newest::Device {
            return Ok(false);
        }
        if let Some(mirror) = inner.through(out.len()) {
            mirror.read(offset, out)?;
            return Ok(true);
        }
        self.bring_home(&inner, false)?;
        Ok(false)
    }

    /// Copies bytes to the mirror; false if they are to be written here too.
    pub(crate) fn write_there(&self, offset: usize, bytes: &[u8]) -> Result<bool, MemoryError> {
        let mut inner = self.residence.lock();
        let newest = self.residence.newest();
        if newest == Newest::Host {
            return Ok(false);
        }
        if let Some(mirror) = inner.through(bytes.len()) {
            mirror.write(offset, bytes)?;
            return Ok(newest == Newest::Device);
        }
        self.bring_home(&inner, true)?;
        Ok(false)
    }

    /// Sees to it that the newest bytes are in the host's memory; alone there, if they are about to be changed. What a
    /// device does not give back any more is as it was.
    pub(crate) fn come_home(&self, to_change: bool) {
        let newest = self.residence.newest();
        if newest == Newest::Host || newest == Newest::Both && !to_change {
            return;
        }
        let inner = self.residence.lock();
        if self.bring_home(&inner, to_change).is_err() {
            self.residence.set(Newest::Host);
        }
    }

    pub(crate) fn bring_home(&self, inner: &Inner, to_change: bool) -> Result<(), MemoryError> {
        if let (Newest::Device, Some(mirror)) = (self.residence.newest(), &inner.mirror) {
            let word = |offset| there(&**mirror, offset);
            let before = self.limits(inner)?;
            let mut piece = vec![0; PIECE.min(self.len())];
            for range in inner.used(self.len(), &word)? {
                for at in range.clone().step_by(PIECE) {
                    let n = PIECE.min(range.end - at);
                    mirror.read(at, &mut piece[..n])?;
                    match self.is_sparse() && is_zero(&piece[..n]) {
                        // What was never touched here stays so.
                        true => self.clear_here(at, n)?,
                        false => self.copy_in(at, &piece[..n])?,
                    }
                }
            }
            self.restore(inner, &before)?;
        }
        let home = if to_change {
            Newest::Host
        } else {
            Newest::Both
        };
        self.residence.set(home);
        Ok(())
    }

    /// Sees to it that a device has the newest bytes: their address there. `make` makes a mirror, all of it zero.
    pub fn on_device(
        &self,
        device: u64,
        make: impl FnOnce() -> Result<Box<dyn Mirror>, MemoryError>,
    ) -> Result<u64, MemoryError> {
        let mut inner = self.residence.lock();
        inner.launched();
        if inner.mirror.as_ref().is_some_and(|m| m.device() != device) {
            self.bring_home(&inner, true)?;
            inner.mirror = None;
        }
        let mut is_new = false;
        if inner.mirror.is_none() {
            inner.mirror = Some(make()?);
            is_new = true;
        }
        let mirror = inner
            .mirror
            .as_ref()
            .expect("it was made if there was none");
        if self.residence.newest() == Newest::Host || is_new {
            let word = |offset| self.own_word(offset);
            let used = inner.used(self.len(), &word)?;
            if let (Some(extents), false) = (&inner.extents, is_new) {
                // What was used there and is not any more is zero again.
                for (old, new) in extents.used(&|at| there(&**mirror, at))?.iter().zip(&used) {
                    let rest = old.end.saturating_sub(new.end);
                    mirror.fill(old.end - rest, rest, 0)?;
                }
            }
            if let Some(extents) = &inner.extents {
                for range in extents.usable(&word)? {
                    mirror.provide(range)?;
                }
            }
            let mut piece = vec![0; PIECE.min(self.len())];
            for range in used {
                for at in range.clone().step_by(PIECE) {
                    let piece = &mut piece[..PIECE.min(range.end - at)];
                    self.copy_out(at, piece)?;
                    if !(is_new && is_zero(piece)) {
                        mirror.write(at, piece)?;
                    }
                }
            }
            self.residence.set(Newest::Both);
        }
        Ok(mirror.address())
    }

    /// Says that code of the device has changed the bytes there.
    pub fn changed_on_device(&self) {
        self.residence.set(Newest::Device);
    }

    /// How much may be written to here.
    fn limits(&self, inner: &Inner) -> Result<Vec<Limit>, MemoryError> {
        let extents = inner.extents.as_ref();
        extents.map_or(Ok(Vec::new()), |extents| {
            extents.limits(&|offset| self.own_word(offset))
        })
    }

    /// Of what a device may write to, only what is used counts here.
    fn restore(&self, inner: &Inner, before: &[Limit]) -> Result<(), MemoryError> {
        for (before, now) in before.iter().zip(self.limits(inner)?) {
            let limit = now.used.max(before.limit);
            self.copy_in(now.offset as usize, &limit.to_le_bytes())?;
            let more = u64::from(limit - before.limit) * now.held;
            self.count(more as usize);
        }
        Ok(())
    }

    /// Lets code of the device, which has the newest bytes, use more elements: as many as fit into so many bytes
    /// together, or as there is memory for.
    pub fn make_room(&self, bytes: u64) -> Result<(), MemoryError> {
        let inner = self.residence.lock();
        let (Some(extents), Some(mirror)) = (&inner.extents, &inner.mirror) else {
            return Ok(());
        };
        let word = |offset| there(&**mirror, offset);
        let limits = extents.limits(&word)?;
        let share = bytes / limits.len().max(1) as u64;
        let more: Vec<(u64, u32)> = limits
            .iter()
            .filter_map(|limit| {
                let share = (share / limit.held) as u32;
                let wanted = limit.used.saturating_add(share).min(limit.most);
                let is_short = limit.limit - limit.used < share / 2;
                (is_short && wanted > limit.limit).then_some((limit.offset, wanted))
            })
            .collect();
        if more.is_empty() {
            return Ok(());
        }
        let raised = |offset| match more.iter().find(|(at, _)| *at == offset) {
            Some(&(_, limit)) => Ok(limit),
            None => word(offset),
        };
        for range in extents.usable(&raised)? {
            mirror.provide(range)?;
        }
        for (offset, limit) in more {
            mirror.write(offset as usize, &limit.to_le_bytes())?;
        }
        Ok(())
    }

    fn own_word(&self, offset: u64) -> Result<u32, MemoryError> {
        let mut word = [0; 4];
        self.copy_out(offset as usize, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }
}

pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |any, byte| any | byte) == 0
}

/// A word of a mirror.
fn there(mirror: &dyn Mirror, offset: u64) -> Result<u32, MemoryError> {
    let mut word = [0; 4];
    mirror.read(offset as usize, &mut word)?;
    Ok(u32::from_le_bytes(word))
}

/// So many bytes are copied from and to a device at once.
const PIECE: usize = 1 << 20;
