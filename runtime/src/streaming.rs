//! Filling more memory than the caches hold: by stores that go past them.
//!
//! An ordinary store reads the cache line first, so that a fill moves twice the bytes that it writes, and drives out what
//! the caches held.
#![expect(unsafe_code, reason = "memory of buffers")]

/// From so many bytes on a fill goes past the caches.
pub(crate) const LARGE: usize = 8 << 20;

/// What is copied before the phase of the pattern is computed anew; the source stays in the first cache.
const CHUNK: usize = 4096;
const LINE: usize = 64;

/// Repeats a pattern over `bytes` bytes at `to`.
///
/// # Safety
/// The bytes can be written, and are no part of the pattern.
pub(crate) unsafe fn fill(to: *mut u8, bytes: usize, pattern: &[u8]) {
    // A chunk that begins anywhere in the pattern.
    let source = pattern.repeat(1 + CHUNK.div_ceil(pattern.len()));
    let from = |at: usize| source[at % pattern.len()..].as_ptr();
    let head = to.align_offset(LINE).min(bytes);
    // SAFETY: the source has a chunk from each place of the pattern on, and a head is less than a line.
    unsafe { std::ptr::copy_nonoverlapping(from(0), to, head) };
    let mut at = head;
    while at < bytes {
        let n = CHUNK.min(bytes - at);
        let whole = n - n % LINE;
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

/// Stores past the caches are seen by other threads from here on.
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
    fn patterns_of_any_length_at_any_address() {
        for length in [1, 3, 4, 12, 100, 5000] {
            let pattern: Vec<u8> = (0..length).map(|k| (7 * k + 1) as u8).collect();
            for (start, bytes) in [(0, 10_000), (1, 12_345), (63, 65), (5, 40), (64, 4096)] {
                let mut memory = vec![0xee; start + bytes + 1];
                // SAFETY: the bytes lie in the vector.
                unsafe { fill(memory.as_mut_ptr().add(start), bytes, &pattern) };
                let expected = pattern.iter().cycle().take(bytes);
                assert!(memory[start..start + bytes].iter().eq(expected));
                assert_eq!(memory[start + bytes], 0xee);
                assert!(memory[..start].iter().all(|&byte| byte == 0xee));
            }
        }
    }
}
