//! Memory of the system: how much it can still give, how it lies in pages and on cache sets, and fills past the caches.
//!
//! Linux promises memory that it does not have and ends a process that touches it. So a large
//! request is compared with what is available before it is made.
#![expect(
    unsafe_code,
    reason = "advice about memory, and stores past the caches"
)]

#[cfg(target_os = "linux")]
use std::ffi::{c_int, c_void};
use std::fs;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::group;

/// Requests below this do not check the limits: reading these takes tens of microseconds.
const ALWAYS_ASK: usize = 256 << 20;

/// Whether `bytes` more could be touched now. True where the system does not say.
pub fn can_allocate(bytes: usize) -> bool {
    bytes < ALWAYS_ASK || available().is_none_or(|available| bytes as u64 <= available)
}

/// Buffers that grow in steps check the limits once per this many bytes.
const ASK_EVERY: usize = 64 << 20;

/// Bytes by which buffers have grown since the last check.
static GROWN: AtomicUsize = AtomicUsize::new(0);

/// Whether a buffer that grows in steps may grow by `bytes`. Checking each time would be slow, so a granted request
/// leaves enough for the steps until the next check.
pub fn can_grow(bytes: usize) -> bool {
    let grown = GROWN.fetch_add(bytes, Ordering::Relaxed);
    if grown.saturating_add(bytes) < ASK_EVERY {
        return true;
    }
    let enough = (bytes as u64).saturating_add(ASK_EVERY as u64);
    if available().is_some_and(|available| available < enough) {
        // The next request checks, too.
        GROWN.store(ASK_EVERY, Ordering::Relaxed);
        return false;
    }
    GROWN.store(0, Ordering::Relaxed);
    true
}

/// Bytes of physical memory; none where the system does not say.
pub fn physical() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    entry_bytes(&text, "MemTotal:")
}

/// Bytes that the machine, or the control group this process is in, has left.
fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| entry_bytes(&text, "MemAvailable:"));
    let group = group::left();
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group)),
        (one, other) => one.or(other),
    }
}

/// The bytes of an entry of `/proc/meminfo`.
fn entry_bytes(text: &str, entry: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(entry))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// From this size on a buffer is worth huge pages: touching it for the first time faults 512 times
/// less, and strided access misses fewer translations.
pub(crate) const HUGE: usize = HUGE_PAGE;
/// A huge page on x86-64 and on AArch64 with pages of 4 KiB.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

const CACHE_LINE: usize = 64;
/// Addresses so far from each other fall on the same set of the first cache, and are taken for the same address by a load
/// that follows a store.
const PERIOD: usize = 4096;
/// Smaller buffers begin where the allocator says.
const STAGGERED: usize = 16 << 10;

/// How many bytes after the start of a page a new buffer begins: other cache lines for each of some dozens that are made
/// one after the other.
///
/// Large allocations begin at the start of a page. So the elements of arrays at one index would all lie on one cache set,
/// which holds fewer lines than a kernel may have arrays.
pub(crate) fn stagger(len: usize) -> usize {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    match len < STAGGERED {
        true => 0,
        false => start_of(MADE.fetch_add(1, Ordering::Relaxed)),
    }
}

/// Where the `k`-th large buffer begins.
fn start_of(k: usize) -> usize {
    // Any number of successive multiples of this, modulo the lines of a period, lie far from each other: the golden ratio.
    const STEP: usize = 39;
    k.wrapping_mul(STEP) % (PERIOD / CACHE_LINE) * CACHE_LINE
}

/// Requests huge pages in a range of a buffer, if it is long enough to contain one.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_huge_pages(start: NonNull<u8>, len: usize) {
    const MADV_HUGEPAGE: c_int = 14;
    if len >= HUGE {
        // SAFETY: the advice leaves the contents alone.
        unsafe { advise(start, len, MADV_HUGEPAGE) };
    }
}

/// Makes whole pages of a private anonymous mapping what they were before they were touched; which
/// bytes from `start` on these are.
#[cfg(target_os = "linux")]
pub(crate) fn give_back(start: NonNull<u8>, len: usize) -> Option<Range<usize>> {
    const MADV_DONTNEED: c_int = 4;
    // SAFETY: the pages read as zero afterwards, which is what the caller wants.
    unsafe { advise(start, len, MADV_DONTNEED) }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_back(_: NonNull<u8>, _: usize) -> Option<Range<usize>> {
    None
}

/// Advises the system about the whole pages in a range of a buffer: which these are, if it listens.
///
/// # Safety
///
/// What the advice does to contents is what the caller wants.
#[cfg(target_os = "linux")]
unsafe fn advise(start: NonNull<u8>, len: usize, advice: c_int) -> Option<Range<usize>> {
    unsafe extern "C" {
        fn madvise(start: *mut c_void, len: usize, advice: c_int) -> c_int;
    }
    // The largest pages that systems have.
    const PAGE: usize = 1 << 16;
    let skip = start.as_ptr().align_offset(PAGE);
    let inside = len.checked_sub(skip)? / PAGE * PAGE;
    let first = start.as_ptr().wrapping_add(skip);
    // SAFETY: whole pages of the buffer; the caller answers for the advice.
    let outcome = unsafe { madvise(first.cast(), inside, advice) };
    (outcome == 0).then_some(skip..skip + inside)
}

/// Does nothing on systems without such a call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_huge_pages(_: NonNull<u8>, _: usize) {}

/// From so many bytes on a fill goes past the caches.
pub(crate) const STREAMED: usize = 8 << 20;

/// How many bytes are copied before the phase of the pattern is recomputed; the source stays in the first-level cache.
const CHUNK: usize = 4096;

/// Repeats a pattern over `bytes` bytes at `to`, by stores that go past the caches.
///
/// An ordinary store reads the cache line first, so that a fill moves twice the bytes that it writes, and drives out what
/// the caches held.
///
/// # Safety
/// The bytes can be written, and are no part of the pattern.
pub(crate) unsafe fn fill_past_caches(to: *mut u8, bytes: usize, pattern: &[u8]) {
    // A chunk that begins anywhere in the pattern.
    let source = pattern.repeat(1 + CHUNK.div_ceil(pattern.len()));
    let from = |at: usize| source[at % pattern.len()..].as_ptr();
    let head = to.align_offset(CACHE_LINE).min(bytes);
    // SAFETY: the source has a chunk from each place of the pattern on, and a head is less than a line.
    unsafe { std::ptr::copy_nonoverlapping(from(0), to, head) };
    let mut at = head;
    while at < bytes {
        let n = CHUNK.min(bytes - at);
        let whole = n - n % CACHE_LINE;
        // SAFETY: as above; `to + at` begins a cache line.
        unsafe {
            copy_lines(to.add(at), from(at), whole);
            std::ptr::copy_nonoverlapping(from(at).add(whole), to.add(at + whole), n - whole);
        }
        at += n;
    }
    fence();
}

/// Copies whole cache lines.
///
/// # Safety
/// As for `copy_nonoverlapping`; `to` begins a cache line, and `bytes` is a multiple of a line.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_lines(to: *mut u8, from: *const u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    for at in (0..bytes).step_by(size_of::<__m128i>()) {
        // SAFETY: the caller's promise; every x86-64 has these instructions.
        unsafe {
            let value = _mm_loadu_si128(from.add(at).cast());
            _mm_stream_si128(to.add(at).cast(), value);
        }
    }
}

/// Makes non-temporal stores visible to other threads.
#[cfg(target_arch = "x86_64")]
fn fence() {
    // SAFETY: every x86-64 has the instruction, which has no operands.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_lines(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

#[cfg(not(target_arch = "x86_64"))]
fn fence() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_meminfo() {
        let text = "MemTotal:  100 kB\nMemAvailable:     42 kB\n";
        assert_eq!(entry_bytes(text, "MemAvailable:"), Some(42 * 1024));
        assert_eq!(entry_bytes("nothing", "MemAvailable:"), None);
    }

    #[test]
    fn large_buffers_begin_on_different_cache_sets() {
        for first in [0, 1000, usize::MAX - 10] {
            let mut starts: Vec<usize> = (0..64).map(|k| start_of(first.wrapping_add(k))).collect();
            assert!(
                starts
                    .iter()
                    .all(|&start| start % CACHE_LINE == 0 && start < PERIOD)
            );
            starts.sort_unstable();
            starts.dedup();
            assert_eq!(starts.len(), 64);
        }
        assert_eq!(stagger(100), 0);
    }

    #[test]
    fn patterns_of_any_length_at_any_address() {
        for length in [1, 3, 4, 12, 100, 5000] {
            let pattern: Vec<u8> = (0..length).map(|k| (7 * k + 1) as u8).collect();
            for (start, bytes) in [(0, 10_000), (1, 12_345), (63, 65), (5, 40), (64, 4096)] {
                let mut memory = vec![0xee; start + bytes + 1];
                // SAFETY: the bytes lie in the vector.
                unsafe { fill_past_caches(memory.as_mut_ptr().add(start), bytes, &pattern) };
                let expected = pattern.iter().cycle().take(bytes);
                assert!(memory[start..start + bytes].iter().eq(expected));
                assert_eq!(memory[start + bytes], 0xee);
                assert!(memory[..start].iter().all(|&byte| byte == 0xee));
            }
        }
    }
}
