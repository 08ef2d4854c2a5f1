//! What the system is told of a buffer's pages, and where buffers begin in them.
#![expect(
    unsafe_code,
    reason = "advice about memory that generated code reaches by address"
)]

#[cfg(target_os = "linux")]
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Asks for huge pages in a range of a buffer, if it is long enough to have any.
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

/// Asks for nothing where there is nobody to ask.
#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_huge_pages(_: NonNull<u8>, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

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
}
