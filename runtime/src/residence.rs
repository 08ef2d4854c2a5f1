//! Where the newest bytes of a buffer are: in the host's memory, on a device, or the same in both.
//!
//! A buffer has its range in the host's memory all its life, and perhaps a mirror on a device. A launch there makes the
//! mirror what the host has (`Buffer::on_device`) and says whether it is newer afterwards (`OnDevice::changed`); an
//! access of the host goes through to the mirror, or brings all bytes home first. While a launch has the bytes on the
//! device, accesses of the host wait, and while the host works on them by address (`AtHome`), launches do.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::buffer::{Buffer, MemoryError};
use crate::cpu::memory::can_grow;

/// The device copy of a buffer, of the same number of bytes.
pub trait Mirror: Send + Sync {
    /// Where it begins, for code of the device.
    fn address(&self) -> u64;

    /// The number of the device.
    fn device(&self) -> u64;

    /// Copies bytes to the host, after all earlier work of the device.
    fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), MemoryError>;

    /// Copies bytes from the host.
    fn write(&self, offset: usize, from: &[u8]) -> Result<(), MemoryError>;

    /// Repeats a pattern from `offset` on, over a multiple of its length.
    fn fill(&self, offset: usize, bytes: usize, pattern: &[u8]) -> Result<(), MemoryError>;

    /// Sees to it that these bytes have memory; those that had none are zero.
    fn provide(&self, bytes: Range<usize>) -> Result<(), MemoryError>;
}

/// The byte that a pattern repeats, if it is one.
pub fn single_byte(pattern: &[u8]) -> Option<u8> {
    let (&first, rest) = pattern.split_first()?;
    rest.iter().all(|&byte| byte == first).then_some(first)
}

/// Where the newest bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Newest {
    Host,
    Both,
    Device,
}

/// How the host is about to access bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads them.
    Read,
    /// It changes some.
    Change,
    /// It writes all of them, whatever they are.
    Replace,
}

/// From so many accesses of single numbers on, between two launches, all bytes come home first; more of them where there
/// are more bytes.
const MANY: usize = 32;
/// The number of bytes whose copy takes about as long as an access of a single number.
const WORTH: usize = 64 << 10;
/// An access of fewer bytes is one of these.
const SMALL: usize = 4096;

/// A buffer's place on a device.
pub(crate) struct Residence {
    newest: AtomicU8,
    inner: OnceLock<Box<Shared>>,
}

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    /// Told when a launch is over, or an access of the host by address.
    free: Condvar,
}

/// The used parts of a range of addresses, according to words stored there. The ranges come in the same order every time.
pub(crate) trait Extents: Send + Sync {
    /// What holds something.
    fn used(&self, words: Words<'_>) -> Result<Vec<Range<usize>>, MemoryError>;

    /// What may be written to.
    fn usable(&self, words: Words<'_>) -> Result<Vec<Range<usize>>, MemoryError>;

    /// The positions of all words to read.
    fn words(&self) -> Range<u64>;

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
    /// Whether somebody accesses the device's memory whenever he likes: the newest bytes stay there.
    pub(crate) fixed: bool,
    /// Accesses of single numbers since the last launch.
    small: usize,
    /// Launches that have the bytes on the device.
    launches: usize,
    /// Accesses of the host by address.
    at_home: usize,
    /// Why an access that cannot say so has not got what is on the device.
    failed: Option<MemoryError>,
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

    /// Where the bytes are on a device, if somebody else sees them there.
    pub(crate) fn fixed_address(&self) -> Option<usize> {
        let inner = self.lock();
        let mirror = inner.mirror.as_ref().filter(|_| inner.fixed)?;
        Some(mirror.address() as usize)
    }

    fn shared(&self) -> &Shared {
        self.inner.get_or_init(Box::default)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        let inner = self.shared().inner.lock();
        inner.unwrap_or_else(PoisonError::into_inner)
    }

    /// As `lock`, when nobody is busy any more.
    fn lock_when(&self, is_busy: impl Fn(&mut Inner) -> bool) -> MutexGuard<'_, Inner> {
        let free = &self.shared().free;
        let inner = free.wait_while(self.lock(), is_busy);
        inner.unwrap_or_else(PoisonError::into_inner)
    }

    /// As `lock`, when no launch has the bytes on the device.
    pub(crate) fn after_launches(&self) -> MutexGuard<'_, Inner> {
        self.lock_when(|inner| inner.launches > 0)
    }
}

impl Inner {
    /// The mirror, if an access of so many bytes shall go through to it, of a buffer of `all` bytes.
    pub(crate) fn through(&mut self, bytes: usize, all: usize) -> Option<&dyn Mirror> {
        if bytes < SMALL && !self.fixed {
            self.small += 1;
            if self.small > MANY.max(all / WORTH) {
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
}

static GATHERING: Mutex<()> = Mutex::new(());

/// Held by who wants several buffers at once, on a device or at home, until he has them all: two of whom each has what
/// the other waits for would wait for ever.
pub fn gathering() -> MutexGuard<'static, ()> {
    GATHERING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes of a buffer on a device, for a launch. Until it is dropped, accesses of the host wait.
pub struct OnDevice<'a> {
    buffer: &'a Buffer,
    address: u64,
    changed: AtomicBool,
}

impl OnDevice<'_> {
    /// Where they are.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Notes that device code modifies the bytes.
    pub fn changed(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }
}

impl Drop for OnDevice<'_> {
    fn drop(&mut self) {
        let residence = &self.buffer.residence;
        let mut inner = residence.lock();
        if *self.changed.get_mut() {
            residence.set(Newest::Device);
        }
        inner.launches -= 1;
        residence.shared().free.notify_all();
    }
}

/// The bytes of a buffer in the host's memory, for who accesses them by address. Until it is dropped, launches that
/// want them on a device wait.
pub struct AtHome<'a> {
    buffer: &'a Buffer,
    /// Whether what the host changes goes to the device afterwards.
    back: bool,
}

impl AtHome<'_> {
    /// Where they are.
    pub fn address(&self) -> *mut u8 {
        self.buffer.host_start()
    }
}

impl Drop for AtHome<'_> {
    fn drop(&mut self) {
        let residence = &self.buffer.residence;
        if self.back
            && let Err(e) = self.buffer.send_back()
        {
            self.buffer.note_failure(e);
        }
        residence.lock().at_home -= 1;
        residence.shared().free.notify_all();
    }
}

impl Buffer {
    /// Copies bytes from the mirror; false if they are here now.
    pub(crate) fn read_there(&self, offset: usize, out: &mut [u8]) -> Result<bool, MemoryError> {
        let mut inner = self.residence.after_launches();
        if self.residence.newest() != Newest::Device {
            return Ok(false);
        }
        if let Some(mirror) = inner.through(out.len(), self.counted()) {
            mirror.read(offset, out)?;
            return Ok(true);
        }
        self.bring_home(&mut inner, Access::Read)?;
        Ok(false)
    }

    /// Copies bytes to the mirror; false if they are to be written here too.
    pub(crate) fn write_there(&self, offset: usize, bytes: &[u8]) -> Result<bool, MemoryError> {
        let mut inner = self.residence.after_launches();
        let newest = self.residence.newest();
        if newest == Newest::Host {
            return Ok(false);
        }
        if bytes.len() == self.len() && !inner.fixed {
            self.bring_home(&mut inner, Access::Replace)?;
        } else if let Some(mirror) = inner.through(bytes.len(), self.counted()) {
            mirror.write(offset, bytes)?;
            return Ok(newest == Newest::Device);
        } else {
            self.bring_home(&mut inner, Access::Change)?;
        }
        Ok(false)
    }

    /// Whether an access would move bytes.
    pub fn is_away(&self, access: Access) -> bool {
        match self.residence.newest() {
            Newest::Host => false,
            Newest::Both => access != Access::Read,
            Newest::Device => true,
        }
    }

    /// Sees to it that the newest bytes are in the host's memory; alone there, if they are about to be changed.
    pub(crate) fn come_home(&self, access: Access) -> Result<(), MemoryError> {
        if !self.is_away(access) {
            return Ok(());
        }
        let mut inner = self.residence.after_launches();
        match inner.fixed && access != Access::Read {
            true => Err(MemoryError::DeviceOnly),
            false => self.bring_home(&mut inner, access),
        }
    }

    /// Copies all bytes of the host's memory to the mirror.
    fn send_back(&self) -> Result<(), MemoryError> {
        let inner = self.residence.lock();
        let Some(mirror) = &inner.mirror else {
            return Ok(());
        };
        let mut piece = vec![0; PIECE.min(self.len())];
        for at in (0..self.len()).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(self.len() - at)];
            self.copy_out(at, piece)?;
            mirror.write(at, piece)?;
        }
        Ok(())
    }

    /// The address on a device for somebody who accesses it there whenever he likes; `make` makes a mirror.
    pub fn lend_there(
        &self,
        device: u64,
        make: impl FnOnce() -> Result<Box<dyn Mirror>, MemoryError>,
    ) -> Result<u64, MemoryError> {
        if self.is_borrowed() {
            return Err(MemoryError::HostOnly);
        }
        let there = self.on_device(device, make)?;
        there.changed();
        self.residence.lock().fixed = true;
        Ok(there.address())
    }

    /// As `come_home`, for callers that cannot return an error; they must call `expect_home` afterwards.
    pub(crate) fn try_home(&self, access: Access) {
        if let Err(e) = self.come_home(access) {
            self.note_failure(e);
        }
    }

    #[cold]
    pub(crate) fn note_failure(&self, e: MemoryError) {
        self.residence.lock().failed = Some(e);
    }

    /// Checks that all accesses since the last copy to the host have got the device's data.
    pub(crate) fn expect_home(&self) -> Result<(), MemoryError> {
        if self.residence.newest() != Newest::Device {
            return Ok(());
        }
        let mut inner = self.residence.after_launches();
        let Some(failure) = inner.failed else {
            return Ok(());
        };
        // What is over is forgotten then.
        let _ = self.bring_home(&mut inner, Access::Change);
        Err(failure)
    }

    /// The newest bytes in the host's memory, by address.
    pub fn at_home(&self, access: Access) -> Result<AtHome<'_>, MemoryError> {
        let mut inner = self.residence.after_launches();
        self.bring_home(&mut inner, access)?;
        inner.at_home += 1;
        Ok(AtHome {
            buffer: self,
            back: inner.fixed && access != Access::Read,
        })
    }

    /// Does what `come_home` says, when no launch has the bytes on the device.
    pub(crate) fn bring_home(&self, inner: &mut Inner, access: Access) -> Result<(), MemoryError> {
        let newest = self.residence.newest();
        let is_wanted = newest == Newest::Device && access != Access::Replace;
        if let (true, Some(mirror)) = (is_wanted, &inner.mirror) {
            let told = Told::ask(&**mirror, inner)?;
            let word = |offset| told.word(offset);
            let before = self.limits(inner)?;
            expect_room(inner, &before, &word)?;
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
        inner.failed = None;
        if inner.fixed {
            return Ok(());
        }
        self.residence.set(match access {
            Access::Read if newest != Newest::Host => Newest::Both,
            _ => Newest::Host,
        });
        Ok(())
    }

    /// Sees to it that a device has the newest bytes, for a launch. `make` makes a mirror, all of it zero.
    pub fn on_device(
        &self,
        device: u64,
        make: impl FnOnce() -> Result<Box<dyn Mirror>, MemoryError>,
    ) -> Result<OnDevice<'_>, MemoryError> {
        let elsewhere = |mirror: &Option<Box<dyn Mirror>>| {
            mirror
                .as_ref()
                .is_some_and(|mirror| mirror.device() != device)
        };
        let mut inner = self
            .residence
            .lock_when(|inner| inner.at_home > 0 || inner.launches > 0 && elsewhere(&inner.mirror));
        if elsewhere(&inner.mirror) && inner.fixed {
            return Err(MemoryError::DeviceOnly);
        }
        if elsewhere(&inner.mirror) {
            self.bring_home(&mut inner, Access::Change)?;
            inner.mirror = None;
        }
        let address = match &inner.mirror {
            Some(mirror) => {
                if self.residence.newest() == Newest::Host {
                    self.bring_there(&inner, &**mirror, false)?;
                }
                mirror.address()
            }
            None => {
                let mirror = make()?;
                self.bring_there(&inner, &*mirror, true)?;
                inner.mirror.insert(mirror).address()
            }
        };
        if self.residence.newest() == Newest::Host {
            self.residence.set(Newest::Both);
        }
        inner.small = 0;
        inner.launches += 1;
        Ok(OnDevice {
            buffer: self,
            address,
            changed: AtomicBool::new(false),
        })
    }

    /// Makes a mirror, of which all is zero if it is new, what the host has.
    fn bring_there(
        &self,
        inner: &Inner,
        mirror: &dyn Mirror,
        is_new: bool,
    ) -> Result<(), MemoryError> {
        let word = |offset| self.own_word(offset);
        let used = inner.used(self.len(), &word)?;
        if let Some(extents) = &inner.extents {
            if !is_new {
                // What was used there and is not any more is zero again.
                let told = Told::ask(mirror, inner)?;
                let before = extents.used(&|at| told.word(at))?;
                for (old, new) in before.iter().zip(&used) {
                    let rest = old.end.saturating_sub(new.end);
                    if rest > 0 {
                        mirror.fill(old.end - rest, rest, &[0])?;
                    }
                }
            }
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
        Ok(())
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
        let told = Told::ask(&**mirror, &inner)?;
        let word = |offset| told.word(offset);
        let limits = extents.limits(&word)?;
        let mut share = bytes / limits.len().max(1) as u64;
        loop {
            let raised = raised(&limits, share);
            if raised.is_empty() {
                return Ok(());
            }
            let all = |offset| match raised.iter().find(|(at, _)| *at == offset) {
                Some(&(_, limit)) => Ok(limit),
                None => word(offset),
            };
            let mut usable = extents.usable(&all)?.into_iter();
            match usable.try_for_each(|range| mirror.provide(range)) {
                // What was given already serves the smaller share too.
                Err(MemoryError::DeviceFull { .. }) if share > 0 => share /= 2,
                // A launch that needs more says for which node.
                Err(MemoryError::DeviceFull { .. }) => return Ok(()),
                Err(e) => return Err(e),
                Ok(()) => {
                    let mut raised = raised.into_iter();
                    return raised.try_for_each(|(offset, limit)| {
                        mirror.write(offset as usize, &limit.to_le_bytes())
                    });
                }
            }
        }
    }

    fn own_word(&self, offset: u64) -> Result<u32, MemoryError> {
        let mut word = [0; 4];
        self.copy_out(offset as usize, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }
}

/// The limits that a share of memory for each lets rise, by at least one element: where they are, and what they become.
fn raised(limits: &[Limit], share: u64) -> Vec<(u64, u32)> {
    let raised = limits.iter().filter_map(|limit| {
        let more = u32::try_from(share / limit.held).unwrap_or(u32::MAX).max(1);
        let wanted = limit.used.saturating_add(more).min(limit.most);
        let is_short = limit.limit - limit.used < more.div_ceil(2);
        (is_short && wanted > limit.limit).then_some((limit.offset, wanted))
    });
    raised.collect()
}

pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |any, byte| any | byte) == 0
}

/// Checks that the host has memory for the bytes in use on a device beyond those in use `before`.
fn expect_room(inner: &Inner, before: &[Limit], there: Words<'_>) -> Result<(), MemoryError> {
    let Some(extents) = &inner.extents else {
        return Ok(());
    };
    let more = before
        .iter()
        .zip(extents.limits(there)?)
        .map(|(here, there)| {
            let elements = there.used.saturating_sub(here.limit);
            u64::from(elements) * there.held
        });
    let bytes = more.sum::<u64>() as usize;
    match bytes == 0 || can_grow(bytes) {
        true => Ok(()),
        false => Err(MemoryError::OutOfMemory { bytes }),
    }
}

/// The words of a mirror that state which elements are in use, read in one request.
struct Told {
    first: u64,
    bytes: Vec<u8>,
}

impl Told {
    fn ask(mirror: &dyn Mirror, inner: &Inner) -> Result<Self, MemoryError> {
        let range = inner.extents.as_ref().map_or(0..0, |all| all.words());
        let mut bytes = vec![0; (range.end - range.start) as usize];
        if !bytes.is_empty() {
            mirror.read(range.start as usize, &mut bytes)?;
        }
        Ok(Self {
            first: range.start,
            bytes,
        })
    }

    fn word(&self, offset: u64) -> Result<u32, MemoryError> {
        let at = offset.wrapping_sub(self.first) as usize;
        let end = at.checked_add(4);
        let word = end.and_then(|end| self.bytes.get(at..end));
        let word = word.ok_or(MemoryError::OutOfRange {
            offset: offset as usize,
            bytes: 4,
            len: self.bytes.len(),
        })?;
        Ok(u32::from_le_bytes(word.try_into().expect("four bytes")))
    }
}

/// The number of bytes in one copy from or to a device.
const PIECE: usize = 1 << 20;
