//! A display that goes away is a failure of windows only.
//!
//! Xlib ends the process when its server does: it calls a handler of the process, and then one of the connection, which exits.
//! Those of our connection note what happened and return; those of others stay as they are.
#![expect(
    unsafe_code,
    reason = "handlers are given to Xlib, whose functions are found by name"
)]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use libloading::Library;
use winit::event_loop::EventLoop;
use winit::raw_window_handle::{HasDisplayHandle, RawDisplayHandle};

type Handler = unsafe extern "C" fn(*mut c_void) -> c_int;
type ExitHandler = unsafe extern "C" fn(*mut c_void, *mut c_void);

struct Xlib {
    set_exit_handler: unsafe extern "C" fn(*mut c_void, Option<ExitHandler>, *mut c_void),
    /// What was called before, for the connections of others.
    others: Option<Handler>,
}

static XLIB: OnceLock<Option<Xlib>> = OnceLock::new();
/// Our connection; null until it stands.
static OURS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// Whether it is being made: one that is lost meanwhile is ours.
static IS_OPENING: AtomicBool = AtomicBool::new(false);
static IS_GONE: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn stay(_: *mut c_void, _: *mut c_void) {}

unsafe extern "C" fn lost(display: *mut c_void) -> c_int {
    let xlib = XLIB.get().and_then(Option::as_ref);
    if display == OURS.load(Ordering::Acquire) || IS_OPENING.load(Ordering::Acquire) {
        IS_GONE.store(true, Ordering::Release);
        if let Some(xlib) = xlib {
            // SAFETY: Xlib hands in a connection, and `stay` may be called with anything.
            unsafe { (xlib.set_exit_handler)(display, Some(stay), ptr::null_mut()) };
        }
        return 0;
    }
    match xlib.and_then(|xlib| xlib.others) {
        // SAFETY: It is called with what Xlib would have called it with.
        Some(others) => unsafe { others(display) },
        None => 0,
    }
}

/// Finds Xlib and sets the handler of the process; none where there is no Xlib, or one without handlers of connections
/// (before 1.7).
fn find() -> Option<Xlib> {
    // SAFETY: Loading Xlib runs no code that needs more than a C library does.
    let library = unsafe { Library::new("libX11.so.6") }.ok()?;
    type SetHandler = unsafe extern "C" fn(Option<Handler>) -> Option<Handler>;
    // SAFETY: The type is that of the function in Xlib's header.
    let set_exit_handler = unsafe { library.get(b"XSetIOErrorExitHandler\0") }.ok()?;
    let set_exit_handler = *set_exit_handler;
    // SAFETY: As above.
    let set_handler = unsafe { library.get::<SetHandler>(b"XSetIOErrorHandler\0") }.ok()?;
    // SAFETY: `lost` may be called at any time.
    let others = unsafe { set_handler(Some(lost)) };
    // It stays loaded as long as the process lives, as its handlers do.
    std::mem::forget(library);
    Some(Xlib {
        set_exit_handler,
        others,
    })
}

/// To be called before the event loop is made.
pub(crate) fn expect() {
    XLIB.get_or_init(find);
    IS_OPENING.store(true, Ordering::Release);
}

/// To be called when the event loop is made, or is not.
pub(crate) fn keep(made: Option<&EventLoop<()>>) {
    IS_OPENING.store(false, Ordering::Release);
    let Some(Ok(handle)) = made.map(HasDisplayHandle::display_handle) else {
        return;
    };
    let RawDisplayHandle::Xlib(handle) = handle.as_raw() else {
        return;
    };
    let (Some(display), Some(xlib)) = (handle.display, XLIB.get().and_then(Option::as_ref)) else {
        return;
    };
    OURS.store(display.as_ptr(), Ordering::Release);
    // SAFETY: The connection stands as long as the event loop, which is kept for ever.
    unsafe { (xlib.set_exit_handler)(display.as_ptr(), Some(stay), ptr::null_mut()) };
}

/// Whether the server ended.
pub(crate) fn is_gone() -> bool {
    IS_GONE.load(Ordering::Acquire)
}
