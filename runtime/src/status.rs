//! The exit status of a process after failures that could not be reported earlier.
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

/// Makes `fail` set the exit status of the process. Exit handlers that are registered later run earlier.
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
    // SAFETY: ends the process; exit handlers registered before `watch` do not run.
    unsafe { _exit(1) }
}
