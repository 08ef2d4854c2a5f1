//! What a process says when it ends, of failures that nobody could be told of before.
#![expect(unsafe_code, reason = "the end of a process is the C library's")]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Once;

unsafe extern "C" {
    fn atexit(last: extern "C" fn()) -> c_int;
    fn fflush(stream: *mut c_void) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// From now on the process ends with status 1, whatever it was going to say: everything else that ends with it still does.
pub fn fail() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `last` may be called at the end, and calls nothing that may not.
        unsafe { atexit(last) };
    });
}

extern "C" fn last() {
    // SAFETY: no stream means all of them.
    unsafe { fflush(ptr::null_mut()) };
    // SAFETY: what is registered before this one is the C library's and other packages' own, who are asked for nothing after
    // they have been left in peace.
    unsafe { _exit(1) }
}
