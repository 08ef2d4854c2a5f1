//! Windows on the screen: one event loop for the process, turned by whoever asks for events.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use winit::application::ApplicationHandler;
use winit::dpi::{PhysicalPosition, PhysicalSize};
use winit::event::WindowEvent;
use winit::event_loop::{ActiveEventLoop, EventLoop};
use winit::platform::pump_events::{EventLoopExtPumpEvents, PumpStatus};
use winit::window::{Window, WindowAttributes, WindowId};

use crate::gpu::Failure;

thread_local! {
    /// There may be one only, and never a second: it is kept for ever.
    static LOOP: RefCell<Option<EventLoop<()>>> = const { RefCell::new(None) };
    /// What came for each window and nobody has taken yet.
    static INBOX: RefCell<BTreeMap<WindowId, Vec<WindowEvent>>> = const { RefCell::new(BTreeMap::new()) };
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

fn turn(turn: &mut Turn) -> Result<(), Failure> {
    LOOP.with_borrow_mut(|kept| {
        if kept.is_none() {
            let made = EventLoop::new();
            *kept = Some(made.map_err(|e| Failure(format!("there is no display: {e}")))?);
        }
        let events = kept.as_mut().expect("it is there now");
        match events.pump_app_events(Some(Duration::ZERO), turn) {
            PumpStatus::Continue => Ok(()),
            PumpStatus::Exit(_) => Err(Failure("the display is gone".to_owned())),
        }
    })
}

/// Opens a window; its inside has the given size in pixels.
///
/// # Errors
/// There is no display, or it refuses.
pub(crate) fn open(
    title: &str,
    (width, height): (u32, u32),
    place: Option<(i32, i32)>,
) -> Result<Arc<Window>, Failure> {
    let mut wanted = Window::default_attributes()
        .with_title(title)
        .with_inner_size(PhysicalSize::new(width, height));
    if let Some((x, y)) = place {
        wanted = wanted.with_position(PhysicalPosition::new(x, y));
    }
    let mut first = Turn {
        wanted: Some(wanted),
        made: None,
    };
    turn(&mut first)?;
    let made = first
        .made
        .unwrap_or_else(|| Err("the display does not answer".to_owned()));
    let window = made.map_err(|e| Failure(format!("no window: {e}")))?;
    INBOX.with_borrow_mut(|inbox| inbox.insert(window.id(), Vec::new()));
    Ok(Arc::new(window))
}

/// What came for a window since this was last asked.
pub(crate) fn events(window: &Window) -> Result<Vec<WindowEvent>, Failure> {
    turn(&mut Turn::default())?;
    Ok(INBOX
        .with_borrow_mut(|inbox| inbox.get_mut(&window.id()).map(std::mem::take))
        .unwrap_or_default())
}

/// Nothing more is kept for a window.
pub(crate) fn forget(window: &Window) {
    INBOX.with_borrow_mut(|inbox| inbox.remove(&window.id()));
}
