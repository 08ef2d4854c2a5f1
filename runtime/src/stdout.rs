//! C's standard output, which the user's C libraries and Python's `print` may share.
#![expect(unsafe_code, reason = "C's stdout has no other door")]

use std::ffi::{c_int, c_void};

use crate::launch::PrintSink;

/// Writes to C's `stdout`, in order with everything else that does.
pub struct CStdout;

unsafe extern "C" {
    #[cfg_attr(target_os = "macos", link_name = "__stdoutp")]
    static stdout: *mut c_void;
    fn fwrite(data: *const c_void, size: usize, count: usize, stream: *mut c_void) -> usize;
    fn fflush(stream: *mut c_void) -> c_int;
}

impl PrintSink for CStdout {
    fn print(&self, text: &str) {
        // SAFETY: the C library initialises `stdout` before `main`, and nobody assigns to it.
        let stream = unsafe { stdout };
        // SAFETY: the pointer and length are those of a live string; `fwrite` locks the stream.
        unsafe { fwrite(text.as_ptr().cast(), 1, text.len(), stream) };
    }

    fn flush(&self) {
        // SAFETY: as in `print`.
        let stream = unsafe { stdout };
        // SAFETY: `stream` is an open stream.
        unsafe { fflush(stream) };
    }
}
