//! The memory of the simulated device: allocations with gaps between them, and records of accesses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use std::sync::{OnceLock, PoisonError, RwLock};

mod constant;
mod own;

use constant::Stamps;
pub(crate) use own::Own;

use crate::error::FaultKind;

/// What is wrong with an access, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) kind: FaultKind,
    pub(crate) message: String,
}

impl Bad {
    pub(crate) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// Where allocations begin: nothing that a program computes by mistake comes here.
const FIRST: u64 = 0x10_0000_0000;
/// Addresses are multiples of it, and as much lies between two of them.
const ALIGN: u64 = 512;

/// Bytes that get memory of the host's together, when one of them is written.
const PAGE: u64 = 16 << 10;
/// So many pages have a table.
const TABLE: u64 = 4096;
/// What is given to a range of addresses is a multiple of this.
const GRAIN: u64 = 64 << 10;

/// Bytes that have been written.
struct Page {
    words: Box<[AtomicU64]>,
    /// For each word the bytes that hold something.
    written: Box<[AtomicU8]>,
    /// For each word in which launch it was written, and read as a constant.
    stamps: Box<[Stamps]>,
    /// For each byte who wrote it last, and who read it.
    touched: Box<[[AtomicU64; 2]]>,
}

impl Page {
    fn new(track: bool, is_written: bool) -> Box<Self> {
        let n = (PAGE / 8) as usize;
        let held = if is_written { u8::MAX } else { 0 };
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0));
        let touched = zeros(if track { 8 * n } else { 0 });
        Box::new(Self {
            words: zeros(n).collect(),
            written: (0..n).map(|_| AtomicU8::new(held)).collect(),
            stamps: (0..n).map(|_| Stamps::default()).collect(),
            touched: touched.map(|w| [w, AtomicU64::new(0)]).collect(),
        })
    }
}

type Table = Box<[OnceLock<Box<Page>>]>;

/// A piece of memory; threads of a launch may all use it.
pub(crate) struct Allocation {
    address: u64,
    bytes: u64,
    /// Pages come when something is written there.
    tables: Box<[OnceLock<Table>]>,
    /// Of a range of addresses, which grains have memory.
    given: Option<RwLock<BTreeSet<u64>>>,
    /// Whether all of it was set to zero before anything was written.
    zero: AtomicBool,
    read_only: bool,
    track: bool,
}

fn none_of<T>(n: u64) -> Option<Box<[OnceLock<T>]>> {
    let n = usize::try_from(n).ok()?;
    let mut all = Vec::new();
    all.try_reserve_exact(n).ok()?;
    all.resize_with(n, OnceLock::new);
    Some(all.into())
}

impl Allocation {
    fn new(address: u64, bytes: u64, track: bool) -> Option<Self> {
        Some(Self {
            address,
            bytes,
            tables: none_of(bytes.div_ceil(PAGE * TABLE))?,
            given: None,
            zero: AtomicBool::new(false),
            read_only: false,
            track,
        })
    }

    /// The page of an address, if something was written there, the number of its word in it, and how far it is shifted in
    /// that. Accesses are aligned, so they lie in one word.
    fn place(&self, address: u64) -> (Option<&Page>, usize, u32) {
        let offset = address - self.address;
        let number = offset / PAGE;
        let table = self.tables[(number / TABLE) as usize].get();
        let page = table.and_then(|table| table[(number % TABLE) as usize].get());
        let word = (offset % PAGE / 8) as usize;
        (page.map(|page| &**page), word, (offset % 8) as u32 * 8)
    }

    /// As `place`, where something is about to be written.
    fn page(&self, address: u64) -> (&Page, usize, u32) {
        let (found, word, shift) = self.place(address);
        let page = found.unwrap_or_else(|| {
            let number = (address - self.address) / PAGE;
            let table = self.tables[(number / TABLE) as usize].get_or_init(|| {
                let before = number / TABLE * TABLE;
                let pages = TABLE.min(self.bytes.div_ceil(PAGE) - before);
                none_of(pages).expect("a table is small")
            });
            let zero = self.is_zero();
            table[(number % TABLE) as usize].get_or_init(|| Page::new(self.track, zero))
        });
        (page, word, shift)
    }

    /// Whether what has no page is zero: memory that is given to addresses is.
    fn is_zero(&self) -> bool {
        self.given.is_some() || self.zero.load(Relaxed)
    }

    /// Sets all to zero, if nothing was written yet; whether it was so.
    fn begin_with_zeros(&self) -> bool {
        let untouched = self.tables.iter().all(|table| table.get().is_none());
        if untouched {
            self.zero.store(true, Relaxed);
        }
        untouched
    }

    /// Whether bytes lie in it and have memory.
    fn holds(&self, address: u64, bytes: u64) -> bool {
        let inside = address >= self.address && address + bytes <= self.address + self.bytes;
        inside && self.has_memory(address, bytes)
    }

    /// Whether bytes have memory: those of a range of addresses need not.
    fn has_memory(&self, address: u64, bytes: u64) -> bool {
        let Some(given) = &self.given else {
            return true;
        };
        // What has a page has memory.
        if bytes <= 8 && self.place(address).0.is_some() {
            return true;
        }
        let first = (address - self.address) / GRAIN;
        let last = (address - self.address + bytes.max(1) - 1) / GRAIN;
        let given = given.read().unwrap_or_else(PoisonError::into_inner);
        (first..=last).all(|grain| given.contains(&grain))
    }

    fn mask(bytes: u64) -> u64 {
        u64::MAX >> (64 - 8 * bytes)
    }

    fn byte_mask(bytes: u64, shift: u32) -> u8 {
        (((1_u16 << bytes) - 1) as u8) << (shift / 8)
    }

    fn load(&self, address: u64, bytes: u64) -> Result<u64, Bad> {
        let (page, word, shift) = self.place(address);
        let wanted = Self::byte_mask(bytes, shift);
        if page.is_none() && self.is_zero() {
            return Ok(0);
        }
        let page = page.filter(|page| page.written[word].load(Relaxed) & wanted == wanted);
        let Some(page) = page else {
            return Err(Bad::new(
                FaultKind::NeverWritten,
                format!("{bytes} uninitialised bytes at {address:#x} are read"),
            ));
        };
        Ok(page.words[word].load(Relaxed) >> shift & Self::mask(bytes))
    }

    /// Copies bytes of one page.
    fn copy_out(&self, address: u64, to: &mut [u8]) {
        for (at, chunk) in chunks(address, to.len()) {
            let (page, word, shift) = self.place(address + at as u64);
            let value = page.map_or(0, |page| page.words[word].load(Relaxed) >> shift);
            to[at..at + chunk].copy_from_slice(&value.to_le_bytes()[..chunk]);
        }
    }

    fn store(&self, address: u64, bytes: u64, value: u64) {
        if bytes == 8 {
            let (page, word, _) = self.page(address);
            page.words[word].store(value, Relaxed);
            page.written[word].store(u8::MAX, Relaxed);
            return;
        }
        self.update(address, bytes, |_| Some(value));
    }

    /// Changes what is there in one step; what was there.
    fn update(&self, address: u64, bytes: u64, change: impl Fn(u64) -> Option<u64>) -> u64 {
        let (page, word, shift) = self.page(address);
        let mask = Self::mask(bytes);
        let changed = page.words[word].fetch_update(Relaxed, Relaxed, |old| {
            let new = change(old >> shift & mask)?;
            Some(old & !(mask << shift) | (new & mask) << shift)
        });
        let now = Self::byte_mask(bytes, shift);
        if page.written[word].load(Relaxed) & now != now {
            page.written[word].fetch_or(now, Relaxed);
        }
        changed.unwrap_or_else(|old| old) >> shift & mask
    }
}

/// All memory of a simulated device.
pub(crate) struct Memory {
    allocations: BTreeMap<u64, Allocation>,
    /// What has been given back: where it began and how long it was.
    freed: BTreeMap<u64, u64>,
    next: u64,
    used: u64,
    limit: u64,
    track: bool,
}

impl Memory {
    pub(crate) fn new(limit: u64, track: bool) -> Self {
        Self {
            allocations: BTreeMap::new(),
            freed: BTreeMap::new(),
            next: FIRST,
            used: 0,
            limit,
            track,
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// An address of so many bytes that hold nothing; none if there is no memory.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let used = self.used.checked_add(bytes).filter(|&n| n <= self.limit)?;
        let address = self.next;
        let allocation = Allocation::new(address, bytes, self.track)?;
        self.next += bytes.next_multiple_of(ALIGN) + ALIGN;
        self.used = used;
        self.allocations.insert(address, allocation);
        Some(address)
    }

    pub(crate) fn free(&mut self, address: u64) -> Result<(), Bad> {
        let Some(found) = self.allocations.remove(&address) else {
            return Err(match self.freed.contains_key(&address) {
                true => Bad::new(
                    FaultKind::Freed,
                    format!("{address:#x} was given back before"),
                ),
                false => nothing_at(address, 1),
            });
        };
        self.used -= match &found.given {
            Some(given) => {
                given.read().unwrap_or_else(PoisonError::into_inner).len() as u64 * GRAIN
            }
            None => found.bytes,
        };
        self.freed.insert(address, found.bytes);
        Ok(())
    }

    /// Addresses for so many bytes, which have no memory yet.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Option<u64> {
        let address = self.next.next_multiple_of(GRAIN);
        let mut allocation = Allocation::new(address, bytes, self.track)?;
        allocation.given = Some(RwLock::default());
        self.next = address + bytes.next_multiple_of(ALIGN) + ALIGN;
        self.allocations.insert(address, allocation);
        Some(address)
    }

    /// Gives bytes of a range of addresses memory; whether there is any.
    pub(crate) fn commit(&mut self, address: u64, bytes: u64) -> Result<bool, Bad> {
        let found = self.find(address, bytes)?;
        let Some(given) = &found.given else {
            return Err(nothing_at(address, bytes));
        };
        let (first, end) = (address - found.address, address - found.address + bytes);
        let mut given = given.write().unwrap_or_else(PoisonError::into_inner);
        let grains = first / GRAIN..end.div_ceil(GRAIN);
        let new = grains
            .clone()
            .filter(|grain| !given.contains(grain))
            .count() as u64
            * GRAIN;
        if self.used + new > self.limit {
            return Ok(false);
        }
        given.extend(grains);
        drop(given);
        self.used += new;
        Ok(true)
    }

    /// What is written from now on is only read.
    pub(crate) fn seal(&mut self, address: u64) {
        if let Some(found) = self.allocations.get_mut(&address) {
            found.read_only = true;
        }
    }

    pub(crate) fn find(&self, address: u64, bytes: u64) -> Result<&Allocation, Bad> {
        let before = self.allocations.range(..=address).next_back();
        let end = address.checked_add(bytes);
        match before {
            Some((_, found)) if end.is_some_and(|end| end <= found.address + found.bytes) => {
                Ok(found)
            }
            Some((_, found))
                if address < found.address + found.bytes.next_multiple_of(ALIGN) + ALIGN =>
            {
                Err(Bad::new(
                    FaultKind::OutOfBounds,
                    format!(
                        "{bytes} bytes at {address:#x} are {} bytes behind the beginning of an allocation of {}",
                        address - found.address,
                        found.bytes
                    ),
                ))
            }
            _ => Err(self.missing(address, bytes)),
        }
    }

    fn missing(&self, address: u64, bytes: u64) -> Bad {
        match self.freed.range(..=address).next_back() {
            Some((&at, &length)) if address < at + length => Bad::new(
                FaultKind::Freed,
                format!("{bytes} bytes at {address:#x} belong to memory that was given back"),
            ),
            _ => nothing_at(address, bytes),
        }
    }

    /// Copies from the host.
    pub(crate) fn write(&self, address: u64, from: &[u8]) -> Result<(), Bad> {
        let found = self.held(address, from.len() as u64)?;
        for (at, chunk) in chunks(address, from.len()) {
            let mut value = [0; 8];
            value[..chunk].copy_from_slice(&from[at..at + chunk]);
            found.store(address + at as u64, chunk as u64, u64::from_le_bytes(value));
        }
        Ok(())
    }

    /// Copies to the host; uninitialised bytes are zero.
    pub(crate) fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Bad> {
        let found = self.held(address, to.len() as u64)?;
        let mut at = 0;
        while at < to.len() {
            let here = address + at as u64;
            let rest = (PAGE - (here - found.address) % PAGE) as usize;
            let end = to.len().min(at + rest);
            let part = &mut to[at..end];
            match found.place(here).0 {
                Some(_) => found.copy_out(here, part),
                None => part.fill(0),
            }
            at = end;
        }
        Ok(())
    }

    /// Whether all of these bytes have been written.
    pub(crate) fn is_written(&self, address: u64, bytes: u64) -> bool {
        let Ok(found) = self.find(address, bytes) else {
            return false;
        };
        (0..bytes).all(|k| {
            let (page, word, shift) = found.place(address + k);
            page.map_or(found.is_zero(), |page| {
                page.written[word].load(Relaxed) >> (shift / 8) & 1 == 1
            })
        })
    }

    /// Sets bytes.
    pub(crate) fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), Bad> {
        let found = self.held(address, bytes)?;
        let whole = (address, bytes) == (found.address, found.bytes);
        if value == 0 && whole && found.begin_with_zeros() {
            return Ok(());
        }
        for (at, chunk) in chunks(address, bytes as usize) {
            let value = u64::from_le_bytes([value; 8]);
            found.store(address + at as u64, chunk as u64, value);
        }
        Ok(())
    }
}

/// Pieces of up to eight bytes that lie in one word each.
fn chunks(address: u64, length: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let here = address + at as u64;
        let room = (8 - here % 8) as usize;
        let chunk = room.min(length - at);
        (chunk > 0).then(|| {
            at += chunk;
            (at - chunk, chunk)
        })
    })
}

fn nothing_at(address: u64, bytes: u64) -> Bad {
    Bad::new(
        FaultKind::OutOfBounds,
        format!("{bytes} bytes at {address:#x} belong to no allocation"),
    )
}

/// Who accesses memory, and when: for races.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    /// The number of the thread in the launch.
    pub(crate) thread: u64,
    /// How many threads a block has.
    pub(crate) block: u64,
    /// How many barriers its block, and its warp, have passed.
    pub(crate) phase: u64,
    pub(crate) warp_phase: u64,
    /// The launch.
    pub(crate) epoch: u64,
    /// Whether the access is atomic.
    pub(crate) ordered: bool,
    /// Whether it says that nobody writes there as long as the launch runs.
    pub(crate) constant: bool,
}

const THREAD_BITS: u32 = 28;
const PHASE_BITS: u32 = 12;
const WARP_BITS: u32 = 8;
const EPOCH_BITS: u32 = 15;

impl Visit {
    fn pack(self) -> u64 {
        let field = |value: u64, bits: u32| value & ((1 << bits) - 1);
        let mut packed = field(self.thread, THREAD_BITS);
        packed |= field(self.phase, PHASE_BITS) << THREAD_BITS;
        packed |= field(self.warp_phase, WARP_BITS) << (THREAD_BITS + PHASE_BITS);
        packed |= field(self.epoch, EPOCH_BITS) << (THREAD_BITS + PHASE_BITS + WARP_BITS);
        packed | u64::from(self.ordered) << 63
    }

    /// Of the last write and the last read that which this access races with.
    fn conflict(self, [written, read]: [u64; 2], access: Access) -> Option<u64> {
        let earlier = match access {
            Access::SameAgain => [0, 0],
            Access::Read => [written, 0],
            Access::Write => [written, read],
        };
        earlier.into_iter().find(|&e| !self.is_behind(e))
    }

    /// Whether an earlier access came certainly before this one, or is no conflict.
    fn is_behind(self, earlier: u64) -> bool {
        let field = |shift: u32, bits: u32| earlier >> shift & ((1 << bits) - 1);
        let epoch = field(THREAD_BITS + PHASE_BITS + WARP_BITS, EPOCH_BITS);
        let thread = field(0, THREAD_BITS);
        let same_epoch = epoch == self.epoch & ((1 << EPOCH_BITS) - 1);
        if earlier == 0 || !same_epoch || thread == self.thread & ((1 << THREAD_BITS) - 1) {
            return true;
        }
        if earlier >> 63 == 1 && self.ordered {
            return true;
        }
        let block = self.block.max(1);
        let same_block = thread / block == self.thread / block;
        let before_barrier = field(THREAD_BITS, PHASE_BITS) != self.phase & ((1 << PHASE_BITS) - 1);
        let warp = |t: u64| t % block / 32;
        let same_warp = same_block && warp(thread) == warp(self.thread);
        let before_sync =
            field(THREAD_BITS + PHASE_BITS, WARP_BITS) != self.warp_phase & ((1 << WARP_BITS) - 1);
        same_block && before_barrier || same_warp && before_sync
    }
}

/// The allocation that was accessed last: often it is accessed again.
pub(crate) type Last<'l, 'm> = &'l mut Option<&'m Allocation>;

/// An access of a thread, checked in all ways.
impl Memory {
    pub(crate) fn thread_load<'m>(
        &'m self,
        last: Last<'_, 'm>,
        address: u64,
        bytes: u64,
        visit: Visit,
    ) -> Result<u64, Bad> {
        let found = self.checked(last, address, bytes)?;
        let value = found.load(address, bytes)?;
        found.read_in(address, bytes, visit)?;
        self.note(found, address, bytes, visit, Access::Read)?;
        Ok(value)
    }

    pub(crate) fn thread_store<'m>(
        &'m self,
        last: Last<'_, 'm>,
        (address, bytes): (u64, u64),
        value: u64,
        visit: Visit,
    ) -> Result<(), Bad> {
        let found = self.checked(last, address, bytes)?;
        writable(found, address)?;
        found.written_in(address, found.bits(address, bytes) ^ value, visit)?;
        // The same number twice is no race that anybody could see.
        if !self.track {
            found.store(address, bytes, value);
            return Ok(());
        }
        let access = match found.load(address, bytes) == Ok(value) {
            true => Access::SameAgain,
            false => Access::Write,
        };
        found.store(address, bytes, value);
        self.note(found, address, bytes, visit, access)
    }

    pub(crate) fn thread_update<'m>(
        &'m self,
        last: Last<'_, 'm>,
        (address, bytes): (u64, u64),
        visit: Visit,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, Bad> {
        let found = self.checked(last, address, bytes)?;
        writable(found, address)?;
        found.load(address, bytes)?;
        let old = found.update(address, bytes, &change);
        let new = change(old).unwrap_or(old);
        found.written_in(address, (old ^ new) & Allocation::mask(bytes), visit)?;
        self.note(found, address, bytes, visit, Access::Write)?;
        Ok(old)
    }

    /// That there is memory.
    pub(crate) fn expect<'m>(
        &'m self,
        last: Last<'_, 'm>,
        address: u64,
        bytes: u64,
    ) -> Result<(), Bad> {
        self.checked(last, address, bytes).map(drop)
    }

    fn checked<'m>(
        &'m self,
        last: Last<'_, 'm>,
        address: u64,
        bytes: u64,
    ) -> Result<&'m Allocation, Bad> {
        aligned(address, bytes)?;
        if let Some(found) = last.filter(|found| found.holds(address, bytes)) {
            return Ok(found);
        }
        let found = self.held(address, bytes)?;
        *last = Some(found);
        Ok(found)
    }

    /// The allocation of bytes that have memory.
    fn held(&self, address: u64, bytes: u64) -> Result<&Allocation, Bad> {
        let found = self.find(address, bytes)?;
        match found.has_memory(address, bytes) {
            true => Ok(found),
            false => Err(Bad::new(
                FaultKind::OutOfBounds,
                format!(
                    "{bytes} bytes at {address:#x} are of a range of addresses, and have no memory"
                ),
            )),
        }
    }

    /// Notes an access, and finds whether it races with one before.
    fn note(
        &self,
        found: &Allocation,
        address: u64,
        bytes: u64,
        visit: Visit,
        access: Access,
    ) -> Result<(), Bad> {
        if !self.track {
            return Ok(());
        }
        // What is only read has been written before, so it has a page.
        let (page, word, shift) = found.page(address);
        let first = 8 * word + shift as usize / 8;
        for [write, read] in &page.touched[first..first + bytes as usize] {
            let before = [write.load(Relaxed), read.load(Relaxed)];
            if let Some(other) = visit.conflict(before, access) {
                return Err(race(address, other, visit, access));
            }
            let slot = if access == Access::Read { read } else { write };
            slot.store(visit.pack(), Relaxed);
        }
        Ok(())
    }
}

/// What is done with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    /// What is written is there already.
    SameAgain,
}

fn race(address: u64, earlier: u64, visit: Visit, access: Access) -> Bad {
    let other = earlier & ((1 << THREAD_BITS) - 1);
    let what = if access == Access::Read {
        "read"
    } else {
        "written"
    };
    let by = visit.thread;
    Bad::new(
        FaultKind::Race,
        format!(
            "{address:#x} is {what} by thread {by} of the launch, and nothing orders that and what thread {other} did"
        ),
    )
}

fn writable(found: &Allocation, address: u64) -> Result<(), Bad> {
    match found.read_only {
        true => Err(Bad::new(
            FaultKind::ReadOnly,
            format!("{address:#x} is written, which may only be read"),
        )),
        false => Ok(()),
    }
}

/// An address is a multiple of what is accessed there.
pub(crate) fn aligned(address: u64, bytes: u64) -> Result<(), Bad> {
    match address.is_multiple_of(bytes) {
        true => Ok(()),
        false => Err(Bad::new(
            FaultKind::Misaligned,
            format!("{address:#x} is no multiple of {bytes}"),
        )),
    }
}
