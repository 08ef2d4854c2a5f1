//! Windows on the screen: one event loop for the process, run by each call that polls events.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};
use std::time::Duration;

use winit::application::ApplicationHandler;
use winit::dpi::{PhysicalPosition, PhysicalSize};
use winit::event::WindowEvent;
use winit::event_loop::{ActiveEventLoop, EventLoop};
use winit::platform::pump_events::{EventLoopExtPumpEvents, PumpStatus};
use winit::window::{Fullscreen, Window, WindowAttributes, WindowId};

use crate::gpu::Failure;
use crate::x11;

thread_local! {
    /// A process may create only one event loop, ever: it is never dropped.
    static LOOP: RefCell<Option<EventLoop<()>>> = const { RefCell::new(None) };
    /// The unread events of each window.
    static INBOX: RefCell<BTreeMap<WindowId, Vec<WindowEvent>>> = const { RefCell::new(BTreeMap::new()) };
    /// Whether a panic of this thread becomes a failure, which says what there is to say.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// Whether it failed, and will for ever.
    static IS_BROKEN: Cell<bool> = const { Cell::new(false) };
}

/// How many events of a destroyed window may make winit panic, one after the other, before the display counts as gone.
const MOST_EVENTS: usize = 256;

/// What a window shall be.
pub(crate) struct Wanted<'a> {
    pub(crate) title: &'a str,
    /// Of its inside, in pixels.
    pub(crate) size: (u32, u32),
    pub(crate) place: Option<(i32, i32)>,
    pub(crate) is_fullscreen: bool,
}

#[derive(Default)]
struct Turn {
    wanted: Option<WindowAttributes>,
    made: Option<Result<Window, String>>,
}

impl Turn {
    fn make(&mut self, active: &ActiveEventLoop) {
        if let Some(wanted) = self.wanted.take() {
            self.made = Some(active.create_window(wanted).map_err(|e| e.to_string()));
        }
    }
}

impl ApplicationHandler for Turn {
    fn resumed(&mut self, active: &ActiveEventLoop) {
        self.make(active);
    }

    fn window_event(&mut self, _: &ActiveEventLoop, id: WindowId, event: WindowEvent) {
        INBOX.with_borrow_mut(|inbox| {
            if let Some(events) = inbox.get_mut(&id) {
                events.push(event);
            }
        });
    }

    fn about_to_wait(&mut self, active: &ActiveEventLoop) {
        self.make(active);
    }
}

/// Whether the display went away, or the loop broke.
pub(crate) fn is_gone() -> bool {
    x11::is_gone() || IS_BROKEN.get()
}

/// What is made, or nothing where winit panics, as it does where the display goes away.
pub(crate) fn caught<T>(what: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_CAUGHT.get() {
                others(info);
            }
        }));
    });
    let before = IS_CAUGHT.replace(true);
    let made = panic::catch_unwind(AssertUnwindSafe(what)).ok();
    IS_CAUGHT.set(before);
    made
}

/// Calls the display, which may disappear meanwhile, or a window of it: an error then, not a panic.
pub(crate) fn ask<T>(what: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    if is_gone() {
        return Err(x11::gone());
    }
    let answer = caught(what).unwrap_or_else(|| {
        // winit also panics at each event of a window that another process has destroyed. The display still works then, and a
        // later iteration delivers the event that the window is destroyed.
        let mut turns = (0..MOST_EVENTS).map(|_| caught(|| turn(&mut Turn::default())));
        if turns.all(|turned| turned.is_none()) {
            IS_BROKEN.set(true);
        }
        Err(Failure("the window is gone".to_owned()))
    });
    if is_gone() { Err(x11::gone()) } else { answer }
}

fn make() -> Result<EventLoop<()>, Failure> {
    if x11::is_wanted() {
        return x11::open();
    }
    caught(EventLoop::new)
        .ok_or_else(|| Failure("the display does not respond".to_owned()))?
        .map_err(|e| Failure(format!("there is no display: {e}")))
}

fn turn(turn: &mut Turn) -> Result<(), Failure> {
    LOOP.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Some(make()?);
        }
        let events = kept.as_mut().expect("it is there now");
        match events.pump_app_events(Some(Duration::ZERO), turn) {
            PumpStatus::Continue => Ok(()),
            PumpStatus::Exit(_) => {
                IS_BROKEN.set(true);
                // Its thread listens to the display, and would poll a lost display forever.
                *kept = None;
                Ok(())
            }
        }
    })
}

/// Flushes requests to the display: closed windows vanish then.
pub(crate) fn settle() {
    // A display that is gone shows none of them.
    let _ = ask(|| turn(&mut Turn::default()));
}

/// Opens a window.
///
/// # Errors
/// There is no display, or it refuses.
pub(crate) fn open(wanted: &Wanted<'_>) -> Result<Arc<Window>, Failure> {
    let (width, height) = wanted.size;
    let mut attributes = Window::default_attributes()
        // The desktop takes names as C does, which end there.
        .with_title(wanted.title.replace('\0', " "))
        .with_inner_size(PhysicalSize::new(width, height));
    if let Some((x, y)) = wanted.place {
        attributes = attributes.with_position(PhysicalPosition::new(x, y));
    }
    if wanted.is_fullscreen {
        attributes = attributes.with_fullscreen(Some(Fullscreen::Borderless(None)));
    }
    let mut first = Turn {
        wanted: Some(attributes),
        made: None,
    };
    ask(|| turn(&mut first))?;
    let made = first
        .made
        .unwrap_or_else(|| Err("the display does not respond".to_owned()));
    let window = made.map_err(|e| Failure(format!("no window: {e}")))?;
    INBOX.with_borrow_mut(|inbox| inbox.insert(window.id(), Vec::new()));
    Ok(Arc::new(window))
}

/// The events of a window since the last call.
pub(crate) fn events(window: &Window) -> Result<Vec<WindowEvent>, Failure> {
    let turned = ask(|| turn(&mut Turn::default()));
    // If only a window is gone, there is an event that says so.
    if is_gone() {
        turned?;
    }
    Ok(INBOX
        .with_borrow_mut(|inbox| inbox.get_mut(&window.id()).map(std::mem::take))
        .unwrap_or_default())
}

/// Stops storing events for a window.
pub(crate) fn forget(window: &Window) {
    // At the end of a thread there may be no inbox any more.
    let _ = INBOX.try_with(|inbox| inbox.borrow_mut().remove(&window.id()));
}
