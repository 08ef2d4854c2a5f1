//! If a display disappears, only windows fail.
//!
//! Xlib ends the process when its server does: it calls a handler of the process, and then one of the connection, which exits.
//! Ours of the connection returns. Until the connection stands there is none of ours, and Xlib has chosen the one that it will
//! call before it calls that of the process: so the event loop is created by a thread that the handler of the process blocks
//! forever. Other connections end the process as they would without Aerogel.
#![expect(
    unsafe_code,
    reason = "handlers are given to Xlib, whose functions are found by name"
)]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use libloading::Library;
use winit::event_loop::EventLoop;
use winit::platform::x11::EventLoopBuilderExtX11;
use winit::raw_window_handle::{HasDisplayHandle, RawDisplayHandle};

use crate::gpu::Failure;
use crate::screen::caught;

type Handler = unsafe extern "C" fn(*mut c_void) -> c_int;
type ExitHandler = unsafe extern "C" fn(*mut c_void, *mut c_void);

struct Xlib {
    set_exit_handler: unsafe extern "C" fn(*mut c_void, Option<ExitHandler>, *mut c_void),
    /// What was called before, for the connections of others.
    others: Option<Handler>,
}

/// How long a display may take until the event loop stands: a slow network's takes seconds.
const PATIENCE: Duration = Duration::from_secs(20);
/// How soon it is seen that the display went away meanwhile.
const LOOK: Duration = Duration::from_millis(10);

static XLIB: OnceLock<Option<Xlib>> = OnceLock::new();
/// Our connection; null until it stands.
static OURS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static IS_GONE: AtomicBool = AtomicBool::new(false);
/// Whether that is so because it never answered.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread makes the event loop: a connection that it loses is ours.
    static IS_OPENING: Cell<bool> = const { Cell::new(false) };
}

unsafe extern "C" fn stay(_: *mut c_void, _: *mut c_void) {}

unsafe extern "C" fn lost(display: *mut c_void) -> c_int {
    if IS_OPENING.get() {
        IS_GONE.store(true, Ordering::Release);
        loop {
            thread::park();
        }
    }
    if display == OURS.load(Ordering::Acquire) {
        IS_GONE.store(true, Ordering::Release);
        return 0;
    }
    match XLIB.get().and_then(Option::as_ref).and_then(|x| x.others) {
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

/// The event loop on its way from the thread that made it.
struct Made(EventLoop<()>);

// SAFETY: The thread that made it keeps nothing of it and ends: all that it counts and points to goes along, and nothing in it
// belongs to a thread. It goes one way, once.
unsafe impl Send for Made {}

/// Whether windows would be those of an X server, as the event loop chooses.
pub(crate) fn is_wanted() -> bool {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") && !is_set("WAYLAND_SOCKET")
}

/// Makes the event loop of an X server.
///
/// # Errors
/// There is no server, or it went away meanwhile, or it does not respond in time.
pub(crate) fn open() -> Result<EventLoop<()>, Failure> {
    XLIB.get_or_init(find);
    let (done, made) = sync_channel(1);
    thread::Builder::new()
        .name("aerogel-display".to_owned())
        .spawn(move || {
            IS_OPENING.set(true);
            let made = caught(|| {
                EventLoop::builder()
                    .with_x11()
                    .with_any_thread(true)
                    .build()
            });
            // Without an answer, whoever waits sees that there will be none.
            let Some(made) = made else { return };
            if let Ok(made) = &made {
                keep(made);
            }
            let made = made.map_err(|e| Failure(format!("there is no display: {e}")));
            // Nobody waits any more where the display took too long: nothing is shown on it then.
            let _ = done.send(made.map(Made));
        })
        .map_err(|e| Failure(format!("no thread could connect to the display: {e}")))?;
    let begin = Instant::now();
    loop {
        match made.recv_timeout(LOOK) {
            Ok(made) => return made.map(|made| made.0),
            // It panicked, or its connection is lost.
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if is_gone() => break,
            Err(RecvTimeoutError::Timeout) if begin.elapsed() > PATIENCE => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    // The thread may hold for ever what a second event loop would wait for.
    IS_SILENT.store(!is_gone(), Ordering::Release);
    IS_GONE.store(true, Ordering::Release);
    Err(gone())
}

/// From here on our connection's own handler is called, in whichever thread it is lost.
fn keep(made: &EventLoop<()>) {
    let Ok(handle) = made.display_handle() else {
        return;
    };
    let RawDisplayHandle::Xlib(handle) = handle.as_raw() else {
        return;
    };
    let (Some(display), Some(xlib)) = (handle.display, XLIB.get().and_then(Option::as_ref)) else {
        return;
    };
    OURS.store(display.as_ptr(), Ordering::Release);
    // SAFETY: The connection lives as long as the event loop, which is never dropped.
    unsafe { (xlib.set_exit_handler)(display.as_ptr(), Some(stay), ptr::null_mut()) };
}

/// Whether the server ended, or never answered.
pub(crate) fn is_gone() -> bool {
    IS_GONE.load(Ordering::Acquire)
}

/// What is to be said then.
pub(crate) fn gone() -> Failure {
    let is_silent = IS_SILENT.load(Ordering::Acquire);
    let state = if is_silent {
        "does not respond"
    } else {
        "is gone"
    };
    Failure(format!("the display {state}"))
}
