//! Ctrl-C while a kernel runs.
//!
//! The handler only sets a flag, if a launch is running, and calls the previous handler.
//! The launcher checks the flag between chunks, and generated code in every iteration of a loop that
//! may run long; both then end the launch. If the program handles Ctrl-C itself, the first one of
//! a launch is left to it: it may want to end later, with all its results.
#![expect(unsafe_code, reason = "signals are the C library's")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// Not zero when launches shall end.
pub(crate) static STOP: AtomicU32 = AtomicU32::new(0);
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);
/// Whether the program's handler is one that it has brought along.
static IS_OWN: AtomicBool = AtomicBool::new(false);
/// How many signals have come since the launches under way began.
static HEARD: AtomicU32 = AtomicU32::new(0);

const SIGINT: c_int = 2;
/// The numbers of C's `SIG_DFL` and `SIG_IGN`.
const DEFAULT_AND_IGNORE: [usize; 2] = [0, 1];

unsafe extern "C" {
    fn signal(number: c_int, handler: usize) -> usize;
    fn siginterrupt(number: c_int, flag: c_int) -> c_int;
}

/// Whether some milliseconds have gone by since this was true: time to `watch` again, since a program may give
/// itself a handler whenever it wants, and looking takes as long as a short launch.
pub fn is_due() -> bool {
    static LAST: AtomicI64 = AtomicI64::new(i64::MIN);
    #[cfg(target_os = "linux")]
    let clock = ClockId::MonotonicCoarse;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let now = clock_gettime(clock);
    let now = now.tv_sec as i64 * 1000 + now.tv_nsec as i64 / 1_000_000;
    now != LAST.load(Ordering::Relaxed) && LAST.swap(now, Ordering::Relaxed) != now
}

/// Makes SIGINT end kernels from now on, if the process has a handler for it (as Python has): the first one of a
/// launch, or, if the handler `is_own` to the program, the second.
pub fn watch(is_own: bool) {
    IS_OWN.store(is_own, Ordering::Relaxed);
    let ours = on_interrupt as *const () as usize;
    // SAFETY: the handler does nothing but what a handler may.
    let previous = unsafe { signal(SIGINT, ours) };
    if previous == ours {
        return;
    }
    if DEFAULT_AND_IGNORE.contains(&previous) {
        // SAFETY: puts back what was there.
        unsafe { signal(SIGINT, previous) };
        return;
    }
    PREVIOUS.store(previous, Ordering::Relaxed);
    // The signal must continue to interrupt reads from a terminal.
    // SAFETY: sets a flag of the handler.
    unsafe { siginterrupt(SIGINT, 1) };
}

extern "C" fn on_interrupt(number: c_int) {
    let is_first = HEARD.fetch_add(1, Ordering::Relaxed) == 0;
    if !is_first || !IS_OWN.load(Ordering::Relaxed) {
        stop();
    }
    let previous = PREVIOUS.load(Ordering::Relaxed);
    if !DEFAULT_AND_IGNORE.contains(&previous) {
        // SAFETY: `signal` said that this is a handler.
        let previous =
            unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(c_int)>(previous) };
        // SAFETY: as the system would have called it.
        unsafe { previous(number) };
    }
}

/// Ends the launches that are under way.
pub fn stop() {
    if ACTIVE.load(Ordering::SeqCst) > 0 {
        STOP.store(1, Ordering::SeqCst);
    }
}

static STOP_AFTER: AtomicUsize = AtomicUsize::new(0);

/// Makes launches end after the `k`-th task from now (from 1; 0 turns it off). For tests.
pub fn stop_after(k: usize) {
    STOP_AFTER.store(k, Ordering::Relaxed);
}

/// Whether somebody counts tasks that end.
pub fn counts_tasks() -> bool {
    STOP_AFTER.load(Ordering::Relaxed) != 0
}

/// A task of a launch has ended.
pub fn task_ended() {
    if STOP_AFTER.load(Ordering::Relaxed) != 0 && STOP_AFTER.fetch_sub(1, Ordering::Relaxed) == 1 {
        stop();
    }
}

/// Whether launches shall end.
pub fn requested() -> bool {
    STOP.load(Ordering::Relaxed) != 0
}

/// A launch under way.
pub struct Active;

impl Active {
    /// A launch begins; it is over when the result is dropped.
    pub fn begin() -> Self {
        if ACTIVE.fetch_add(1, Ordering::SeqCst) == 0 {
            STOP.store(0, Ordering::SeqCst);
            HEARD.store(0, Ordering::Relaxed);
        }
        Active
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        ACTIVE.fetch_sub(1, Ordering::SeqCst);
    }
}
