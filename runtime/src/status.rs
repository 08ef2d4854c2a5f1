//! What a process says when it ends, of failures that nobody could be told of before.
#![expect(unsafe_code, reason = "the end of a process is the C library's")]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FAILED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn atexit(last: extern "C" fn()) -> c_int;
    fn fflush(stream: *mut c_void) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// Lets `fail` be heard when the process ends. What asks later to be called then is called before.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `last` is a function that lives as long as the process.
        unsafe { atexit(last) };
    });
}

/// The process ends with status 1, whatever it was going to say.
pub fn fail() {
    FAILED.store(true, Ordering::Relaxed);
}

extern "C" fn last() {
    if !FAILED.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: no stream means all of them.
    unsafe { fflush(ptr::null_mut()) };
    // SAFETY: ends the process; what asked to be called before `watch` is not.
    unsafe { _exit(1) }
}
