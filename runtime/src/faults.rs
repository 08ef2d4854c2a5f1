//! The kernel that ends the process by a fault is named.
//!
//! Indices are not checked by default, so a kernel may access memory that is not there. The system then ends the process by a
//! signal, whose handler here writes which kernels are running, puts back what was there before (Python's `faulthandler`, or
//! nothing), and returns: the access is tried again and ends the process as it would have.
#![expect(unsafe_code, reason = "signals are the C library's")]

use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{LazyLock, Mutex, Once, PoisonError};

use aerogel_base::hash::LookupMap;

/// Of launches that run at the same time, as many as these are named.
const MOST: usize = 32;

static RUNNING: [AtomicPtr<Kernel>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];

/// A kernel's name in a report. It is never freed: a report may read it when the launch has ended on another thread.
#[derive(Debug)]
pub struct Kernel {
    text: Box<str>,
}

impl Kernel {
    /// By its name and where it is defined, such as `file.py:12`. Equal ones are one.
    pub fn named(name: &str, location: &str) -> &'static Self {
        static ALL: LazyLock<Mutex<LookupMap<Box<str>, &'static Kernel>>> =
            LazyLock::new(Mutex::default);
        let text: Box<str> = format!("`{name}` ({location})").into();
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = all.get(&text) {
            return known;
        }
        let new = Box::leak(Box::new(Self { text: text.clone() }));
        all.insert(text, new);
        new
    }
}

/// A launch under way; it ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    slot: Option<&'static AtomicPtr<Kernel>>,
}

/// Notes that a kernel runs from now on.
pub fn running(kernel: &'static Kernel) -> Running {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(install);
    let at = ptr::from_ref(kernel).cast_mut();
    // A report reads the text on whatever thread the fault is.
    let take = |slot: &&AtomicPtr<Kernel>| {
        slot.compare_exchange(null_mut(), at, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    };
    Running {
        slot: RUNNING.iter().find(take),
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.store(null_mut(), Ordering::Release);
        }
    }
}

#[cfg(unix)]
mod handler {
    use std::cell::UnsafeCell;
    use std::mem::{MaybeUninit, zeroed};

    use super::*;

    const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

    /// The previous handlers of the signals.
    struct Previous(UnsafeCell<[MaybeUninit<libc::sigaction>; 2]>);

    // SAFETY: written once, before the handlers that read it are there.
    unsafe impl Sync for Previous {}

    static PREVIOUS: Previous = Previous(UnsafeCell::new([MaybeUninit::uninit(); 2]));

    pub(super) fn install() {
        for (k, signal) in SIGNALS.into_iter().enumerate() {
            // SAFETY: the handler does nothing but what a handler may; the place for the previous one is this call's own,
            // since `Once` makes it a single one.
            unsafe {
                let previous = PREVIOUS.0.get().cast::<libc::sigaction>().add(k);
                libc::sigaction(signal, ptr::null(), previous);
                let mut action: libc::sigaction = zeroed();
                action.sa_sigaction = on_fault as *const () as usize;
                // On the stack of the handler before, if it has one of its own.
                action.sa_flags = libc::SA_ONSTACK | libc::SA_SIGINFO;
                libc::sigemptyset(&mut action.sa_mask);
                libc::sigaction(signal, &action, null_mut());
            }
        }
    }

    extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        static REPORTS: AtomicBool = AtomicBool::new(false);
        static REPORTED: AtomicBool = AtomicBool::new(false);
        if REPORTS.swap(true, Ordering::AcqRel) {
            // Another thread writes: that should not be cut off.
            while !REPORTED.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
        } else {
            report();
            REPORTED.store(true, Ordering::Release);
        }
        for (k, handled) in SIGNALS.into_iter().enumerate() {
            if handled == signal {
                // SAFETY: `install` has written it.
                unsafe {
                    let previous = PREVIOUS.0.get().cast::<libc::sigaction>().add(k);
                    libc::sigaction(signal, previous, null_mut());
                }
            }
        }
        // SAFETY: the system gives it. A signal sent by `kill` does not come again by itself.
        if unsafe { (*info).si_code } <= 0 {
            // SAFETY: it has no memory of its own.
            unsafe { libc::raise(signal) };
        }
    }

    fn report() {
        let mut any = false;
        for slot in &RUNNING {
            let kernel = slot.load(Ordering::Acquire);
            if kernel.is_null() {
                continue;
            }
            write(if any {
                ", "
            } else {
                "aerogel: invalid memory access while running the kernel "
            });
            // SAFETY: kernels are never freed.
            write(unsafe { &(*kernel).text });
            any = true;
        }
        if any {
            write("; ti.init(debug=True) finds indices that are out of bounds\n");
        }
    }

    /// Writes to the standard error without a lock or memory of its own.
    fn write(text: &str) {
        // SAFETY: the bytes are the text's.
        unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    }
}

#[cfg(unix)]
use handler::install;

#[cfg(not(unix))]
fn install() {}
