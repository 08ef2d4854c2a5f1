//! Byte buffers that generated code and the host share: trees, arrays, temporaries.
//!
//! A buffer never lends out references into its memory: the host copies bytes in and out, bounds
//! checked, and generated code works on the address. Bytes that two threads write at once are
//! unspecified afterwards, as they are between the iterations of a kernel.
#![expect(unsafe_code, reason = "memory that generated code reaches by address")]

use std::alloc::Layout;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use aerogel_base::{Scalar, ScalarType};
use aerogel_snode::control;
use memmap2::{MmapOptions, MmapRaw};

use crate::cpu::memory::{self, HUGE, HUGE_PAGE, give_back, prefer_huge_pages, stagger};
pub use crate::memory_error::MemoryError;
use crate::residence::{Access, Extents, Mirror, Newest, Residence, is_zero, single_byte};

/// Alignment of every buffer: a cache line, and the widest vector.
pub const ALIGNMENT: usize = 64;

/// Bytes that generated code and the host share; its own are zeroed and begin a cache line.
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    memory: Memory,
    /// The buffer's share of `live_bytes`.
    counted: AtomicUsize,
    pub(crate) residence: Residence,
    /// The number of inaccessible bytes before and after.
    margin: usize,
}

/// Where a buffer's bytes come from.
enum Memory {
    Heap(NonNull<u8>, Layout),
    /// Addresses that take physical memory when touched; unmapped when dropped.
    Reserved {
        _map: MmapRaw,
    },
    /// Addresses that stand for memory of a device.
    Elsewhere {
        _map: MmapRaw,
    },
    /// Somebody else's.
    Borrowed,
}

// SAFETY: the memory is owned, and every access through a shared reference is a copy of bytes.
unsafe impl Send for Buffer {}
// SAFETY: as above; the module's text says what racing copies give.
unsafe impl Sync for Buffer {}

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static FAIL_AT: AtomicUsize = AtomicUsize::new(0);

/// Bytes in all live buffers of the process.
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Ordering::Relaxed)
}

/// Makes the `k`-th allocation from now fail (from 1; 0 turns it off). For tests of error paths.
pub fn fail_allocation(k: usize) {
    FAIL_AT.store(k, Ordering::Relaxed);
}

/// Whether the allocation that is about to be made shall fail.
pub(crate) fn injected_failure() -> bool {
    FAIL_AT.load(Ordering::Relaxed) != 0 && FAIL_AT.fetch_sub(1, Ordering::Relaxed) == 1
}

impl Buffer {
    /// A buffer of `len` zero bytes. Large ones take physical memory only when touched; what the
    /// system could not give when it is touched is refused here.
    pub fn zeroed(len: usize) -> Result<Self, MemoryError> {
        Self::with_margin(len, 0)
    }

    /// As `zeroed`, with at least `margin` more bytes before and after that nobody should touch:
    /// a kernel whose unchecked index is off by a little finds zeros there and harms nothing else.
    pub fn with_margin(len: usize, margin: usize) -> Result<Self, MemoryError> {
        let failure = MemoryError::OutOfMemory { bytes: len };
        if injected_failure() || !memory::can_allocate(len) {
            return Err(failure);
        }
        // Requesting the alignment by layout would make the allocator write zeros itself;
        // `calloc` takes untouched pages. So align by hand.
        let alignment = if len >= HUGE { HUGE_PAGE } else { ALIGNMENT };
        let stagger = stagger(len);
        let around = alignment + stagger + margin.saturating_mul(2);
        let padded = len.max(1).checked_add(around).ok_or(failure)?;
        let layout = Layout::from_size_align(padded, 16).map_err(|_| failure)?;
        // SAFETY: the layout's size is not zero.
        let allocation =
            NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).ok_or(failure)?;
        let skip = margin
            + allocation
                .as_ptr()
                .wrapping_add(margin)
                .align_offset(alignment);
        // SAFETY: `skip` is less than `margin + alignment`, and that many bytes were added to the length.
        let page = unsafe { allocation.add(skip) };
        prefer_huge_pages(page, stagger + len);
        // SAFETY: as above.
        let start = unsafe { page.add(stagger) };
        LIVE_BYTES.fetch_add(len, Ordering::Relaxed);
        Ok(Self {
            start,
            len,
            memory: Memory::Heap(allocation, layout),
            counted: AtomicUsize::new(len),
            residence: Residence::default(),
            margin,
        })
    }

    /// Addresses for `len` zero bytes, with `margin` bytes before and after that must not be
    /// accessed. Pages take physical memory at the first access; callers reserve it before that
    /// by `commit`.
    pub(crate) fn reserved(len: usize, margin: usize) -> Result<Self, MemoryError> {
        let failure = MemoryError::OutOfMemory { bytes: len };
        let margin = margin.next_multiple_of(ALIGNMENT);
        let whole = margin
            .checked_mul(2)
            .and_then(|around| len.max(1).checked_add(around))
            .ok_or(failure)?;
        let map = MmapOptions::new()
            .len(whole)
            .no_reserve_swap()
            .map_anon()
            .map_err(|_| failure)?;
        let map = MmapRaw::from(map);
        let start = map.as_mut_ptr().wrapping_add(margin);
        Ok(Self {
            start: NonNull::new(start).ok_or(failure)?,
            len,
            memory: Memory::Reserved { _map: map },
            counted: AtomicUsize::new(0),
            residence: Residence::default(),
            margin,
        })
    }

    /// Counts `bytes` of a reserved buffer as used, if the system can give them.
    pub(crate) fn commit(&self, bytes: usize) -> Result<(), MemoryError> {
        if !memory::can_grow(bytes) {
            return Err(MemoryError::OutOfMemory { bytes });
        }
        self.count(bytes);
        Ok(())
    }

    /// Counts bytes that are used already.
    pub(crate) fn count(&self, bytes: usize) {
        LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed);
        self.counted.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that the buffer adds to `live_bytes`.
    pub(crate) fn counted(&self) -> usize {
        self.counted.load(Ordering::Relaxed)
    }

    /// Announces that all of a range will be accessed soon.
    pub(crate) fn expect_use(&self, offset: usize, bytes: usize) {
        let start = self.place(offset, bytes).ok().and_then(NonNull::new);
        if let Some(start) = start {
            prefer_huge_pages(start, bytes);
        }
    }

    /// A buffer over memory that somebody else owns, such as a NumPy array.
    ///
    /// # Safety
    ///
    /// The `len` bytes at `start` stay valid for reads and writes as long as the buffer lives, and
    /// no Rust reference to them is used in that time.
    pub unsafe fn borrowed(start: NonNull<u8>, len: usize) -> Self {
        Self {
            start,
            len,
            memory: Memory::Borrowed,
            counted: AtomicUsize::new(0),
            residence: Residence::default(),
            margin: 0,
        }
    }

    /// A buffer over memory of a device that somebody else uses too. The host's copy of it takes memory while it is looked at.
    pub fn elsewhere(mirror: Box<dyn Mirror>, len: usize) -> Result<Self, MemoryError> {
        let mut buffer = Self::reserved(len, 0)?;
        if let Memory::Reserved { _map } = std::mem::replace(&mut buffer.memory, Memory::Borrowed) {
            buffer.memory = Memory::Elsewhere { _map };
        }
        let mut inner = buffer.residence.lock();
        (inner.mirror, inner.fixed) = (Some(mirror), true);
        drop(inner);
        buffer.residence.set(Newest::Device);
        Ok(buffer)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address for code of the processor that may write there; valid as long as the buffer lives, and of use until a
    /// device is given the bytes.
    pub fn address(&self) -> Result<*mut u8, MemoryError> {
        self.come_home(Access::Change)?;
        Ok(self.start.as_ptr())
    }

    /// As `address`, for code that only reads.
    pub fn address_to_read(&self) -> Result<*const u8, MemoryError> {
        self.come_home(Access::Read)?;
        Ok(self.start.as_ptr())
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> Result<(), MemoryError> {
        let from = self.place(offset, out.len())?;
        if self.residence.newest() == Newest::Device && self.read_there(offset, out)? {
            return Ok(());
        }
        // SAFETY: `place` checked the range, and `out` is no part of the buffer, since the buffer
        // lends out no references.
        unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        let to = self.place(offset, bytes.len())?;
        if self.residence.newest() != Newest::Host && self.write_there(offset, bytes)? {
            return Ok(());
        }
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Repeats a pattern from `offset` on, over `bytes` bytes, a multiple of its length: where the bytes are.
    pub fn fill(&self, offset: usize, bytes: usize, pattern: &[u8]) -> Result<(), MemoryError> {
        self.fill_part(offset, bytes, pattern, bytes)
    }

    /// As `fill`, for one of the threads that fill `whole` bytes together.
    pub fn fill_part(
        &self,
        offset: usize,
        bytes: usize,
        pattern: &[u8],
        whole: usize,
    ) -> Result<(), MemoryError> {
        /// As much as stays in the first cache while it is written again and again.
        const PIECE: usize = 16 << 10;
        debug_assert!(bytes.is_multiple_of(pattern.len()));
        let to = self.place(offset, bytes)?;
        if self.residence.newest() != Newest::Host {
            let mut inner = self.residence.after_launches();
            if let (Some(mirror), false) = (&inner.mirror, self.is_sparse()) {
                mirror.fill(offset, bytes, pattern)?;
                if bytes == self.len {
                    self.residence.set(Newest::Device);
                }
                if self.residence.newest() == Newest::Device {
                    return Ok(());
                }
            } else {
                self.bring_home(&mut inner, Access::Change)?;
            }
        }
        if let Some(value) = single_byte(pattern) {
            // SAFETY: `place` checked the range.
            unsafe { std::ptr::write_bytes(to, value, bytes) };
            return Ok(());
        }
        if whole >= memory::STREAMED {
            // SAFETY: `place` checked the range, and the pattern is no part of the buffer.
            unsafe { memory::fill_past_caches(to, bytes, pattern) };
            return Ok(());
        }
        let piece = pattern.repeat((PIECE.min(bytes) / pattern.len()).max(1));
        for at in (0..bytes).step_by(piece.len()) {
            let n = piece.len().min(bytes - at);
            // SAFETY: `place` checked the range, and the piece is no part of the buffer.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), to.add(at), n) };
        }
        Ok(())
    }

    /// Sets `bytes` bytes from `offset` to zero. Where there are many, whole pages go back to
    /// the system, and take memory when they are touched again.
    pub fn zero(&self, offset: usize, bytes: usize) -> Result<(), MemoryError> {
        let start = NonNull::new(self.place(offset, bytes)?);
        let own = self.is_sparse();
        if own {
            self.come_home(Access::Change)?;
        }
        let gone = start
            .filter(|_| own && bytes as u64 >= control::LARGE_ELEMENT)
            .and_then(|start| give_back(start, bytes));
        let Some(gone) = gone else {
            return self.fill(offset, bytes, &[0]);
        };
        self.fill(offset, gone.start, &[0])?;
        self.fill(offset + gone.end, bytes - gone.end, &[0])
    }

    /// Sets `bytes` bytes from `offset` to zero, but leaves pages alone that are: one that was never
    /// touched takes no memory.
    pub(crate) fn clear(&self, offset: usize, bytes: usize) -> Result<(), MemoryError> {
        self.come_home(Access::Change)?;
        self.clear_here(offset, bytes)
    }

    /// As `clear`, of the host's memory.
    pub(crate) fn clear_here(&self, offset: usize, bytes: usize) -> Result<(), MemoryError> {
        const PIECE: usize = 4096;
        let mut copy = [0; PIECE];
        let mut at = offset;
        let end = offset.saturating_add(bytes);
        self.place(offset, bytes)?;
        while at < end {
            let n = (PIECE - at % PIECE).min(end - at);
            self.copy_out(at, &mut copy[..n])?;
            if !is_zero(&copy[..n]) {
                self.copy_in(at, &[0; PIECE][..n])?;
            }
            at += n;
        }
        Ok(())
    }

    /// The 32-bit word at `offset`, which is aligned.
    ///
    /// # Panics
    /// If it is not inside: the caller follows the buffer's own format.
    pub(crate) fn word(&self, offset: u64) -> &AtomicU32 {
        let word = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.aligned_place(offset, 4).ok())
            .expect("a word of the format lies inside");
        self.try_home(Access::Change);
        // SAFETY: in range and aligned, and the memory lives as long as the buffer. Others access
        // the word atomically too, or by copies, of which the module's text speaks.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }

    /// The value at `word`: zero if a device cannot return it, which `expect_home` reports later.
    ///
    /// # Panics
    /// As `word`.
    pub(crate) fn read_word(&self, offset: u64) -> u32 {
        let at = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.aligned_place(offset, 4).ok())
            .expect("a word of the format lies inside");
        if self.residence.newest() == Newest::Device
            && let Some(there) = self.word_there(offset as usize)
        {
            return there;
        }
        // SAFETY: in range and aligned.
        unsafe { AtomicU32::from_ptr(at.cast()) }.load(Ordering::Relaxed)
    }

    /// A word of a device; nothing if it is here now.
    #[cold]
    fn word_there(&self, offset: usize) -> Option<u32> {
        let mut word = [0; 4];
        match self.read_there(offset, &mut word) {
            Ok(true) => Some(u32::from_le_bytes(word)),
            Ok(false) => None,
            Err(e) => {
                self.note_failure(e);
                Some(0)
            }
        }
    }

    /// As `word`, of 64 bits.
    ///
    /// # Panics
    /// As `word`.
    pub(crate) fn long_word(&self, offset: u64) -> &AtomicU64 {
        let word = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.aligned_place(offset, 8).ok())
            .expect("a word of the format lies inside");
        self.try_home(Access::Change);
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(word.cast()) }
    }

    /// Reads one scalar, which is aligned as its type requires.
    pub fn read_scalar(&self, ty: ScalarType, offset: usize) -> Result<Scalar, MemoryError> {
        let from = self.aligned_place(offset, ty.bytes() as usize)?;
        if self.residence.newest() == Newest::Device {
            let mut slot = [0; 8];
            if self.read_there(offset, &mut slot[..ty.bytes() as usize])? {
                return Ok(Scalar::from_slot(ty, u64::from_le_bytes(slot)));
            }
        }
        let slot = match ty.bytes() {
            // SAFETY: in range and aligned; the same holds for the other widths.
            1 => u64::from(unsafe { AtomicU8::from_ptr(from) }.load(Ordering::Relaxed)),
            // SAFETY: see above.
            2 => u64::from(unsafe { AtomicU16::from_ptr(from.cast()) }.load(Ordering::Relaxed)),
            // SAFETY: see above.
            4 => u64::from(unsafe { AtomicU32::from_ptr(from.cast()) }.load(Ordering::Relaxed)),
            // SAFETY: see above.
            _ => unsafe { AtomicU64::from_ptr(from.cast()) }.load(Ordering::Relaxed),
        };
        Ok(Scalar::from_slot(ty, slot))
    }

    /// Changes the unsigned integer at an offset in one step, as no other thread sees half of.
    pub(crate) fn change_scalar(
        &self,
        ty: ScalarType,
        offset: usize,
        change: &dyn Fn(u64) -> u64,
    ) -> Result<(), MemoryError> {
        let at = self.aligned_place(offset, ty.bytes() as usize)?;
        self.come_home(Access::Change)?;
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        // The closure always returns a new value, so no update fails.
        match ty.bytes() {
            1 => {
                // SAFETY: in range and aligned; the same holds for the other widths.
                let word = unsafe { AtomicU8::from_ptr(at) };
                let _ = word.fetch_update(set, get, |w| Some(change(w.into()) as u8));
            }
            2 => {
                // SAFETY: see above.
                let word = unsafe { AtomicU16::from_ptr(at.cast()) };
                let _ = word.fetch_update(set, get, |w| Some(change(w.into()) as u16));
            }
            4 => {
                // SAFETY: see above.
                let word = unsafe { AtomicU32::from_ptr(at.cast()) };
                let _ = word.fetch_update(set, get, |w| Some(change(w.into()) as u32));
            }
            _ => {
                // SAFETY: see above.
                let word = unsafe { AtomicU64::from_ptr(at.cast()) };
                let _ = word.fetch_update(set, get, |w| Some(change(w)));
            }
        }
        Ok(())
    }

    /// Writes one scalar, which is aligned as its type requires.
    pub fn write_scalar(&self, offset: usize, value: Scalar) -> Result<(), MemoryError> {
        let bytes = value.ty().bytes() as usize;
        let to = self.aligned_place(offset, bytes)?;
        let slot = value.slot();
        if self.residence.newest() != Newest::Host
            && self.write_there(offset, &slot.to_le_bytes()[..bytes])?
        {
            return Ok(());
        }
        match bytes {
            // SAFETY: in range and aligned; the same holds for the other widths.
            1 => unsafe { AtomicU8::from_ptr(to) }.store(slot as u8, Ordering::Relaxed),
            // SAFETY: see above.
            2 => unsafe { AtomicU16::from_ptr(to.cast()) }.store(slot as u16, Ordering::Relaxed),
            // SAFETY: see above.
            4 => unsafe { AtomicU32::from_ptr(to.cast()) }.store(slot as u32, Ordering::Relaxed),
            // SAFETY: see above.
            _ => unsafe { AtomicU64::from_ptr(to.cast()) }.store(slot, Ordering::Relaxed),
        }
        Ok(())
    }

    /// Makes each of `n` words from `offset` on what `sum` makes of it and of one of `copy`, from `from` on; those are
    /// zero afterwards. What is zero there changes nothing. `T` is an unsigned integer.
    pub(crate) fn gather<T: Copy + Default + PartialEq>(
        &self,
        offset: usize,
        (copy, from): (&Buffer, usize),
        n: usize,
        sum: impl Fn(T, T) -> T,
    ) -> Result<(), MemoryError> {
        let size = size_of::<T>();
        self.come_home(Access::Change)?;
        copy.come_home(Access::Change)?;
        let (to, from) = (self.place(offset, n * size)?, copy.place(from, n * size)?);
        let (to, from) = (to.cast::<T>(), from.cast::<T>());
        // Looked at before any of them is added: often there are none.
        const BLOCK: usize = 256;
        for first in (0..n).step_by(BLOCK) {
            let block = first..n.min(first + BLOCK);
            // SAFETY: in range, as is what follows.
            let is_zero = |k: usize| unsafe { from.add(k).read_unaligned() } == T::default();
            if block.clone().fold(true, |all, k| all & is_zero(k)) {
                continue;
            }
            for k in block {
                let is_zero = is_zero(k);
                // SAFETY: see above.
                let (old, other) =
                    unsafe { (to.add(k).read_unaligned(), from.add(k).read_unaligned()) };
                let new = if is_zero { old } else { sum(old, other) };
                // SAFETY: see above.
                unsafe { to.add(k).write_unaligned(new) };
                // SAFETY: see above.
                unsafe { from.add(k).write_unaligned(T::default()) };
            }
        }
        Ok(())
    }

    /// Whether it is a range of addresses of which only parts are used.
    pub(crate) fn is_sparse(&self) -> bool {
        matches!(self.memory, Memory::Reserved { .. })
    }

    /// Whether the memory belongs to another owner, who may access it at any time.
    pub fn is_borrowed(&self) -> bool {
        matches!(self.memory, Memory::Borrowed) || self.residence.is_lent()
    }

    /// Whether another owner may access the bytes on a device at any time.
    pub fn is_fixed(&self) -> bool {
        self.residence.newest() == Newest::Device && self.residence.fixed_address().is_some()
    }

    /// Its addresses, to compare them: those of a device, where somebody else sees them there, else of the host.
    pub fn addresses(&self) -> Range<usize> {
        let start = self.start.as_ptr() as usize;
        let start = match self.residence.newest() {
            Newest::Device => self.residence.fixed_address().unwrap_or(start),
            _ => start,
        };
        start..start + self.len
    }

    pub(crate) fn host_start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The address for somebody who accesses it whenever he likes.
    pub fn lend(&self) -> Result<*mut u8, MemoryError> {
        let mut inner = self.residence.after_launches();
        if inner.fixed {
            return Err(MemoryError::DeviceOnly);
        }
        self.bring_home(&mut inner, Access::Change)?;
        inner.lent = true;
        Ok(self.start.as_ptr())
    }

    /// Bytes before and after that nobody should touch.
    pub fn margin(&self) -> usize {
        self.margin
    }

    /// Declares which parts of a range of addresses are in use.
    pub(crate) fn set_extents(&self, extents: Box<dyn Extents>) {
        self.residence.lock().extents = Some(extents);
    }

    /// Copies bytes to the host's memory, whatever a device has.
    pub(crate) fn copy_in(&self, offset: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        let to = self.place(offset, bytes.len())?;
        // SAFETY: in range; the bytes are no part of the buffer.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Copies bytes of the host's memory, whatever a device has.
    pub(crate) fn copy_out(&self, offset: usize, out: &mut [u8]) -> Result<(), MemoryError> {
        let from = self.place(offset, out.len())?;
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    fn place(&self, offset: usize, bytes: usize) -> Result<*mut u8, MemoryError> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.len) {
            return Err(MemoryError::OutOfRange {
                offset,
                bytes,
                len: self.len,
            });
        }
        Ok(self.start.as_ptr().wrapping_add(offset))
    }

    fn aligned_place(&self, offset: usize, bytes: usize) -> Result<*mut u8, MemoryError> {
        let place = self.place(offset, bytes)?;
        assert!(
            place as usize & (bytes - 1) == 0,
            "a scalar at {offset} is not aligned"
        );
        Ok(place)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        LIVE_BYTES.fetch_sub(*self.counted.get_mut(), Ordering::Relaxed);
        if let Memory::Heap(allocation, layout) = self.memory {
            // SAFETY: allocated in `with_margin` with this layout, and freed once.
            unsafe { std::alloc::dealloc(allocation.as_ptr(), layout) };
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_aligned_and_zero() {
        for len in [0, 1, 63, 64, 65, 100_000] {
            let buffer = Buffer::zeroed(len).unwrap();
            assert_eq!(buffer.addresses().start % ALIGNMENT, 0);
            let mut bytes = vec![1; len];
            buffer.read(0, &mut bytes).unwrap();
            assert!(bytes.iter().all(|&b| b == 0));
        }
    }

    #[test]
    fn checks_bounds() {
        let buffer = Buffer::zeroed(8).unwrap();
        buffer.write_scalar(4, Scalar::f32(1.5)).unwrap();
        assert_eq!(
            buffer.read_scalar(ScalarType::F32, 4).unwrap(),
            Scalar::f32(1.5)
        );
        assert!(buffer.write_scalar(8, Scalar::i32(1)).is_err());
        assert!(buffer.write(usize::MAX, &[0, 0]).is_err());
        assert!(buffer.read(7, &mut [0, 0]).is_err());
    }

    #[test]
    fn too_much_is_an_error() {
        assert!(matches!(
            Buffer::zeroed(512 << 40),
            Err(MemoryError::OutOfMemory { .. })
        ));
        assert!(Buffer::zeroed(usize::MAX).is_err());
    }
}
