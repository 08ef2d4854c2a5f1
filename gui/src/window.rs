//! The window class for Python: it receives objects to draw and reports user input.

use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes};
use wgpu::CommandEncoderDescriptor;
use winit::event::{ElementState, MouseScrollDelta, WindowEvent};

use crate::frame::{Bytes, Copies, Draw, Frame, MAX_LIGHTS, Params, World};
use crate::gpu::{Failure, Gpu};
use crate::keys;
use crate::packed::{SIZES, packed};
use crate::picture::{Picture, Plane};
use crate::pipelines::{Kind, RGBA};
use crate::plots::{self, Chart, Series};
use crate::present::Screen;
use crate::room::{Given, Room, Rooms};
use crate::screen::{self, Wanted};
use crate::widgets::{Change, Widget, Widgets};

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        PyRuntimeError::new_err(failure.0)
    }
}

/// A window of the desktop, with what belongs to it.
struct Desk {
    window: Arc<winit::window::Window>,
    screen: Screen,
    input: egui_winit::State,
}

impl Drop for Desk {
    fn drop(&mut self) {
        screen::forget(&self.window);
    }
}

/// How far a frame has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Made,
    /// It was looked at: what is drawn next begins another, and it may still be shown.
    Read,
    Shown,
}

/// The name of the device that draws.
#[pyfunction]
pub(crate) fn adapter() -> PyResult<String> {
    Ok(Gpu::get()?.adapter.get_info().name)
}

/// The most pixels that a picture has along an axis.
#[pyfunction]
pub(crate) fn most_pixels() -> PyResult<u32> {
    Ok(Gpu::get()?.device.limits().max_texture_dimension_2d)
}

/// A window, or with `visible=False` the same without a desktop.
///
/// What is drawn between two calls of `show` makes a frame. Positions in the plane go from (0, 0) at the lower left to
/// (1, 1) at the upper right. Arrays are bytes: f32, indices u32.
///
/// Those of the desktop belong to the main thread, which must also drop them; others may be dropped anywhere.
#[pyclass(module = "aerogel_viz._viz")]
pub(crate) struct Window {
    gpu: &'static Gpu,
    picture: Picture,
    copies: Copies,
    widgets: Widgets,
    frame: Frame,
    rooms: Rooms,
    /// What Python is writing into.
    room: Option<Given>,
    desk: Option<Desk>,
    stage: Stage,
    /// Whether the picture shows the frame.
    is_drawn: bool,
    is_closed: bool,
    cursor: (f64, f64),
}

type Event = (&'static str, String, f32, f32);

fn count(what: &str, n: usize) -> PyResult<u32> {
    u32::try_from(n).map_err(|_| PyValueError::new_err(format!("too many {what}: {n}")))
}

/// How many things of `n` there are from number `first` on, at most `number`.
fn part(what: &str, first: usize, number: Option<usize>, n: usize) -> PyResult<u32> {
    let rest = n.saturating_sub(first);
    count(what, number.map_or(rest, |number| number.min(rest)))
}

impl Window {
    /// The frame that is being made.
    fn open_frame(&mut self) -> &mut Frame {
        if self.stage != Stage::Made {
            self.forget_draws();
            self.frame = Frame {
                background: self.frame.background,
                ..Frame::default()
            };
            self.stage = Stage::Made;
        }
        self.is_drawn = false;
        &mut self.frame
    }

    /// Nothing is drawn; the memory of images serves others.
    fn forget_draws(&mut self) {
        for draw in self.frame.draws.drain(..) {
            if let Some(staged) = draw.picture {
                self.rooms.give(staged);
            }
        }
    }

    /// Draws the frame, if it is not; a window whose display is gone is closed.
    fn draw_frame(&mut self) -> Result<(), Failure> {
        let drawn = self.try_to_draw();
        if drawn.is_err() && screen::is_gone() {
            self.close();
        }
        drawn
    }

    fn try_to_draw(&mut self) -> Result<(), Failure> {
        if self.is_drawn {
            return Ok(());
        }
        let gpu = self.gpu;
        let mut encoder = gpu
            .device
            .create_command_encoder(&CommandEncoderDescriptor::default());
        self.copies
            .draw(gpu, &mut encoder, &self.picture, &self.frame)?;
        let mut buffers = Vec::new();
        if self.widgets.is_used() {
            let (input, scale) = match &mut self.desk {
                Some(desk) => screen::ask(|| {
                    let input = desk.input.take_egui_input(&desk.window);
                    let scale = egui_winit::pixels_per_point(desk.input.egui_ctx(), &desk.window);
                    Ok((input, scale))
                })?,
                None => (egui::RawInput::default(), 1.0),
            };
            let (more, output) = self
                .widgets
                .draw(gpu, &mut encoder, &self.picture, input, scale);
            buffers = more;
            if let Some(desk) = &mut self.desk {
                screen::ask(|| {
                    desk.input.handle_platform_output(&desk.window, output);
                    Ok(())
                })?;
            }
        }
        buffers.push(encoder.finish());
        gpu.queue.submit(buffers);
        gpu.check()?;
        self.is_drawn = true;
        Ok(())
    }

    /// What a plane of the frame holds.
    fn bytes<'py>(&mut self, py: Python<'py>, plane: Plane) -> PyResult<Bound<'py, PyBytes>> {
        self.read()?;
        self.picture.read(self.gpu, plane, |rows| {
            PyBytes::new_with(py, rows.size(), |out| {
                rows.copy(out);
                Ok(())
            })
        })?
    }

    /// Draws the frame to be looked at, which ends it.
    fn read(&mut self) -> Result<(), Failure> {
        self.draw_frame()?;
        if self.stage == Stage::Made {
            self.stage = Stage::Read;
        }
        Ok(())
    }

    fn take(&mut self, event: &WindowEvent, told: &mut Vec<Event>) -> Result<(), Failure> {
        let (x, y) = self.cursor();
        let mut tell = |kind: &'static str, key: String| told.push((kind, key, x, y));
        match event {
            WindowEvent::CloseRequested | WindowEvent::Destroyed => {
                self.is_closed = true;
                tell("Press", "WMClose".to_owned());
            }
            WindowEvent::Resized(size) if size.width > 0 && size.height > 0 => {
                let format = self.picture.format();
                self.picture = Picture::new(self.gpu, size.width, size.height, format)?;
                self.is_drawn = false;
            }
            WindowEvent::KeyboardInput { event, .. } if !event.repeat => {
                if let Some(key) = keys::of_key(event) {
                    tell(pressed(event.state), key);
                }
            }
            WindowEvent::MouseInput { state, button, .. } => {
                if let Some(key) = keys::of_button(*button) {
                    tell(pressed(*state), key.to_owned());
                }
            }
            WindowEvent::CursorMoved { position, .. } => {
                self.cursor = (position.x, position.y);
                let (x, y) = self.cursor();
                told.push(("Motion", "Motion".to_owned(), x, y));
            }
            WindowEvent::MouseWheel { delta, .. } => {
                let (dx, dy) = match *delta {
                    MouseScrollDelta::LineDelta(dx, dy) => (dx, dy),
                    MouseScrollDelta::PixelDelta(by) => (by.x as f32 / 120.0, by.y as f32 / 120.0),
                };
                told.push(("Wheel", "Wheel".to_owned(), dx, dy));
            }
            WindowEvent::Focused(false) => tell("Blur", String::new()),
            _ => {}
        }
        Ok(())
    }

    fn cursor(&self) -> (f32, f32) {
        let (x, y) = self.cursor;
        let (width, height) = (self.picture.width, self.picture.height);
        (
            (x / f64::from(width)) as f32,
            (1.0 - y / f64::from(height)) as f32,
        )
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.close();
    }
}

fn pressed(state: ElementState) -> &'static str {
    match state {
        ElementState::Pressed => "Press",
        ElementState::Released => "Release",
    }
}

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (title, width, height, *, visible = true, vsync = false, place = None, fullscreen = false))]
    fn new(
        title: &str,
        width: u32,
        height: u32,
        visible: bool,
        vsync: bool,
        place: Option<(i32, i32)>,
        fullscreen: bool,
    ) -> PyResult<Self> {
        let gpu = Gpu::get()?;
        let widgets = Widgets::new();
        let mut size = (width, height);
        let desk = if visible {
            let window = screen::open(&Wanted {
                title,
                size,
                place,
                is_fullscreen: fullscreen,
            })?;
            let inner = screen::ask(|| Ok(window.inner_size()))?;
            size = (inner.width.max(1), inner.height.max(1));
            let input = egui_winit::State::new(
                widgets.context().clone(),
                egui::ViewportId::ROOT,
                &window,
                None,
                None,
                Some(gpu.device.limits().max_texture_dimension_2d as usize),
            );
            Some(Desk {
                screen: screen::ask(|| Screen::new(gpu, window.clone(), vsync))?,
                window,
                input,
            })
        } else {
            None
        };
        let format = desk
            .as_ref()
            .map_or(RGBA, |desk: &Desk| desk.screen.format());
        Ok(Self {
            gpu,
            picture: Picture::new(gpu, size.0, size.1, format)?,
            copies: Copies::new(gpu),
            widgets,
            frame: Frame::default(),
            rooms: Rooms::default(),
            room: None,
            desk,
            stage: Stage::Made,
            is_drawn: false,
            is_closed: false,
            // The lower left corner, until the mouse is seen.
            cursor: (0.0, f64::from(size.1)),
        })
    }

    /// Width and height in pixels.
    #[getter]
    fn size(&self) -> (u32, u32) {
        (self.picture.width, self.picture.height)
    }

    /// The most pixels of an image along an axis for which there is room.
    #[getter(most_pixels)]
    fn most(&self) -> u32 {
        self.gpu.device.limits().max_texture_dimension_2d
    }

    /// Whether the user closed it.
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed
    }

    /// Whether it is on the desktop.
    #[getter]
    fn visible(&self) -> bool {
        self.desk.is_some()
    }

    /// Whether the bytes of an image's pixels are BGRA here, and not RGBA.
    #[getter]
    fn swapped(&self) -> bool {
        self.picture.is_swapped()
    }

    /// Closes it.
    fn close(&mut self) {
        self.is_closed = true;
        if let Some(desk) = self.desk.take() {
            // winit panics as it drops a window whose destruction has made it panic before.
            let _ = screen::caught(|| drop(desk));
            screen::settle();
        }
    }

    /// Sets the colour behind everything.
    fn background(&mut self, color: [f32; 3]) {
        self.open_frame().background = color;
    }

    /// Begins a scene: a camera (matrices row by row, for column vectors), the light from everywhere, and lights.
    fn world(
        &mut self,
        view: [[f32; 4]; 4],
        projection: [[f32; 4]; 4],
        eye: [f32; 3],
        ambient: [f32; 3],
        lights: Vec<([f32; 3], [f32; 3])>,
    ) -> PyResult<()> {
        if lights.len() > MAX_LIGHTS {
            let n = lights.len();
            let message = format!("a scene has at most {MAX_LIGHTS} lights, not {n}");
            return Err(PyValueError::new_err(message));
        }
        let transposed = |m: [[f32; 4]; 4]| [0, 1, 2, 3].map(|c| m.map(|row| row[c]));
        let wide = |[x, y, z]: [f32; 3]| [x, y, z, 1.0];
        let mut world = World {
            view: transposed(view),
            projection: transposed(projection),
            eye: wide(eye),
            ambient: wide(ambient),
            n_lights: [lights.len() as u32, 0, 0, 0],
            lights: [[[0.0; 4]; 2]; MAX_LIGHTS],
        };
        for (to, (position, color)) in world.lights.iter_mut().zip(lights) {
            *to = [wide(position), wide(color)];
        }
        self.open_frame().worlds.push(world);
        Ok(())
    }

    /// Draws an image over the whole picture, scaled to it: numbers of shape (width, height, channels), the second axis
    /// upwards. `kind` is 0 for f32, 1 for u8, 2 for u16, 3 for u32.
    fn image(
        &mut self,
        numbers: PyBackedBytes,
        width: u32,
        height: u32,
        channels: u32,
        kind: u32,
    ) -> PyResult<()> {
        let size = *SIZES
            .get(kind as usize)
            .ok_or_else(|| PyValueError::new_err(format!("there is no kind {kind} of numbers")))?;
        let n = u64::from(width) * u64::from(height) * u64::from(channels) * size as u64;
        if n != numbers.len() as u64 || n == 0 || !(1..=4).contains(&channels) {
            return Err(PyValueError::new_err("the image has another size"));
        }
        let pixels = match (channels, kind) {
            (4, 1) => Bytes::Given(numbers),
            _ => Bytes::Made(packed(&numbers, channels as usize, kind as usize)),
        };
        let params = Params {
            image: [width, height, 0, 0],
            ..Params::default()
        };
        self.open_frame().draws.push(Draw {
            kind: Kind::Image,
            params,
            arrays: [Some(Arc::new(pixels)), None, None, None, None],
            picture: None,
            n_vertices: 3,
            n_copies: 1,
            world: 0,
        });
        Ok(())
    }

    /// Room for an image's pixels. `fill` draws what was written there; there is one room at a time.
    fn room(&mut self, width: u32, height: u32) -> PyResult<Room> {
        let most = self.most();
        if width == 0 || height == 0 || width > most || height > most {
            let message = format!("an image has 1 to {most} pixels along each axis here");
            return Err(PyValueError::new_err(message));
        }
        let (room, given) = self.rooms.open(self.gpu, width, height)?;
        self.room = Some(given);
        Ok(room)
    }

    /// Draws the staged image over the whole picture, scaled to it. Nothing may refer to the staging memory any more.
    fn fill(&mut self) -> PyResult<()> {
        let room = self.room.take();
        let room = room.ok_or_else(|| PyValueError::new_err("there is no room"))?;
        let staged = room.take()?;
        self.open_frame().draws.push(Draw {
            kind: Kind::Picture,
            params: Params::default(),
            arrays: Default::default(),
            picture: Some(staged),
            n_vertices: 3,
            n_copies: 1,
            world: 0,
        });
        Ok(())
    }

    /// Covers everything drawn before in this frame by a picture, scaled to the window's: RGBA bytes, row by row from the
    /// top, as `pixels` gives them.
    fn rows(&mut self, pixels: PyBackedBytes, width: u32, height: u32) -> PyResult<()> {
        let n = u64::from(width) * u64::from(height) * 4;
        if n != pixels.len() as u64 || n == 0 {
            return Err(PyValueError::new_err("the picture has another size"));
        }
        self.open_frame();
        self.forget_draws();
        self.frame.cover = Some((pixels, width, height));
        Ok(())
    }

    /// Draws things of a kind: "triangles", "lines" or "circles" in the plane, "particles", "space_lines" or "mesh" in the
    /// scene begun last.
    ///
    /// `color` is that of all, unless `colors` has `n_color` numbers for each vertex; `size` a radius or a width; `extra` has
    /// each vertex's radius or normal; `transforms` a matrix for each copy of a mesh, row by row. With `indices`, `first`
    /// and `number` count those, and `base` is added to them; without, they count vertices. What names no vertex draws
    /// nothing that is meant: whoever calls knows what there is, and says what is wrong.
    #[pyo3(signature = (kind, positions, *, color, colors = None, n_color = 0, size = 0.0, indices = None,
        extra = None, transforms = None, two_sided = false, base = 0, first = 0, number = None,
        first_copy = 0, n_copies = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keywords of one call from Python"
    )]
    fn draw(
        &mut self,
        kind: &str,
        positions: PyBackedBytes,
        color: [f32; 4],
        colors: Option<PyBackedBytes>,
        n_color: u32,
        size: f32,
        indices: Option<PyBackedBytes>,
        extra: Option<PyBackedBytes>,
        transforms: Option<PyBackedBytes>,
        two_sided: bool,
        base: i64,
        first: usize,
        number: Option<usize>,
        first_copy: usize,
        n_copies: Option<usize>,
    ) -> PyResult<()> {
        let kind = Kind::named(kind)
            .ok_or_else(|| PyValueError::new_err(format!("there are no {kind}")))?;
        let n = positions.len() / (4 * kind.dimensions());
        let number = match &indices {
            Some(indices) => part("indices", first, number, indices.len() / 4)?,
            None => part("vertices", first, number, n)?,
        };
        let copies = match (&transforms, kind) {
            (Some(t), _) => part("instances", first_copy, n_copies, t.len() / 64)?,
            (None, _) => 1,
        };
        let (n_vertices, n_copies) = match kind {
            Kind::Triangles => (number - number % 3, 1),
            Kind::Mesh => (number - number % 3, copies),
            Kind::Lines | Kind::SpaceLines => (6, number / 2),
            Kind::Circles | Kind::Particles => (3, number),
            Kind::Image | Kind::Picture => {
                return Err(PyValueError::new_err("images have a call of their own"));
            }
        };
        if kind.is_spatial() && (self.stage != Stage::Made || self.frame.worlds.is_empty()) {
            return Err(PyValueError::new_err("no scene has begun"));
        }
        let frame = self.open_frame();
        if n_vertices == 0 || n_copies == 0 {
            return Ok(());
        }
        let params = Params {
            color,
            size,
            n_color: if colors.is_some() { n_color } else { 0 },
            indexed: indices.is_some().into(),
            has_extra: extra.is_some().into(),
            two_sided: two_sided.into(),
            has_transforms: transforms.is_some().into(),
            // Indices wrap: a negative base is one less than 2^32.
            base: base as u32,
            first: count("vertices", first)?,
            first_copy: count("instances", first_copy)?,
            ..Params::default()
        };
        let world = frame.worlds.len().saturating_sub(1);
        frame.draws.push(Draw {
            kind,
            params,
            arrays: [Some(positions), colors, indices, extra, transforms]
                .map(|array| array.map(|bytes| Arc::new(Bytes::Given(bytes)))),
            picture: None,
            n_vertices,
            n_copies,
            world,
        });
        Ok(())
    }

    /// Begins a panel of widgets, at (left, top) with (width, height), all as parts of the window's.
    fn panel(&mut self, name: &str, place: [f32; 4]) {
        self.open_frame();
        self.widgets.begin(name, place);
    }

    /// Adds a line of text.
    #[pyo3(signature = (text, color = None))]
    fn text(&mut self, text: String, color: Option<[f32; 3]>) {
        self.open_frame();
        self.widgets.add(Widget::Text(text, color));
    }

    /// Adds a button; whether it was pressed in the last frame.
    fn button(&mut self, label: String) -> bool {
        self.open_frame();
        self.widgets.add(Widget::Button(label)).is_some()
    }

    /// Adds a box to tick; what it is since the last frame.
    fn checkbox(&mut self, label: String, value: bool) -> bool {
        self.open_frame();
        match self.widgets.add(Widget::Checkbox(label, value)) {
            Some(Change::Checked(now)) => now,
            _ => value,
        }
    }

    /// Adds a slider over integers; what it is since the last frame.
    fn slider_int(&mut self, label: String, value: i64, low: i64, high: i64) -> i64 {
        self.open_frame();
        match self.widgets.add(Widget::Integer(label, value, low, high)) {
            Some(Change::Integer(now)) => now,
            _ => value,
        }
    }

    /// Adds a slider over numbers; what it is since the last frame.
    fn slider_float(&mut self, label: String, value: f64, low: f64, high: f64) -> f64 {
        self.open_frame();
        match self.widgets.add(Widget::Number(label, value, low, high)) {
            Some(Change::Number(now)) => now,
            _ => value,
        }
    }

    /// Adds a chooser of a colour; what it is since the last frame.
    fn color(&mut self, label: String, value: [f32; 3]) -> [f32; 3] {
        self.open_frame();
        match self.widgets.add(Widget::Color(label, value)) {
            Some(Change::Color(now)) => now,
            _ => value,
        }
    }

    /// Adds a plot. A series is its kind, its name, numbers (`f64`) and the width of bars, or the length of rows.
    fn plot(
        &mut self,
        label: String,
        axes: [String; 2],
        size: [f32; 2],
        series: Vec<(String, String, PyBackedBytes, f64)>,
    ) -> PyResult<()> {
        self.open_frame();
        let series = series.into_iter().map(|(kind, name, numbers, extra)| {
            let kind = match &*kind {
                "line" => plots::Kind::Line,
                "scatter" => plots::Kind::Scatter,
                "bars" => plots::Kind::Bars(extra),
                "heatmap" => plots::Kind::Heatmap(extra as usize),
                _ => return Err(PyValueError::new_err(format!("no plot is a {kind:?}"))),
            };
            let numbers = bytemuck::pod_collect_to_vec(&numbers[..]);
            Ok(Series {
                kind,
                name,
                numbers,
            })
        });
        let chart = Chart {
            label,
            axes,
            size,
            series: series.collect::<PyResult<_>>()?,
        };
        self.widgets.add(Widget::Plot(chart));
        Ok(())
    }

    /// Ends the frame: draws it, and shows it on the desktop.
    fn show(&mut self) -> PyResult<()> {
        if self.stage == Stage::Shown {
            self.open_frame();
        }
        let shown = self.draw_frame().and_then(|()| {
            self.stage = Stage::Shown;
            let Some(desk) = &mut self.desk else {
                return Ok(());
            };
            screen::ask(|| desk.screen.show(self.gpu, &self.picture))
        });
        let Err(failure) = shown else { return Ok(()) };
        let Some(desk) = &self.desk else {
            return Err(failure.into());
        };
        // The desktop may have taken the window away, which is no failure.
        let is_gone = |event: &WindowEvent| {
            matches!(event, WindowEvent::Destroyed | WindowEvent::CloseRequested)
        };
        let is_taken = screen::events(&desk.window).map(|events| events.iter().any(is_gone));
        if !matches!(is_taken, Ok(false)) {
            self.close();
        }
        // The caller of the frame gets the error of a lost display.
        match is_taken {
            Ok(true) => Ok(()),
            Ok(false) => Err(failure.into()),
            Err(gone) => Err(gone.into()),
        }
    }

    /// The events since the last call: (kind, key, x, y). "Press" and "Release" of a key or button at a cursor
    /// position, "Motion" to a position, "Wheel" by (dx, dy), "Blur" when the window loses the keyboard focus.
    fn events(&mut self) -> PyResult<Vec<Event>> {
        let Some(desk) = &mut self.desk else {
            return Ok(Vec::new());
        };
        let mut told = Vec::new();
        let came = screen::events(&desk.window);
        if came.is_err() {
            self.close();
        }
        for event in came? {
            let Some(desk) = &mut self.desk else { break };
            // What panels take is theirs, but for keys that go up: a program may have seen them go down.
            let told_it = screen::ask(|| Ok(desk.input.on_window_event(&desk.window, &event)));
            let taken = told_it.is_ok_and(|answer| answer.consumed) && self.widgets.is_used();
            let is_shared = matches!(
                event,
                WindowEvent::CursorMoved { .. }
                    | WindowEvent::Resized(_)
                    | WindowEvent::CloseRequested
                    | WindowEvent::Destroyed
                    | WindowEvent::Focused(_)
                    | WindowEvent::MouseInput {
                        state: ElementState::Released,
                        ..
                    }
            );
            if !taken || is_shared {
                self.take(&event, &mut told)?;
            }
        }
        Ok(told)
    }

    /// Where the mouse is.
    #[getter(cursor)]
    fn cursor_now(&self) -> (f32, f32) {
        self.cursor()
    }

    /// The frame's pixels: RGBA bytes, row by row from the top.
    fn pixels<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.bytes(py, Plane::Color)
    }

    /// The frame's pixels from 0 to 1: RGBA as bytes of f32, row by row from the top.
    fn floats<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        self.read()?;
        self.picture.read(self.gpu, Plane::Color, |rows| {
            PyByteArray::new_with(py, 4 * rows.size(), |out| {
                rows.floats(out);
                Ok(())
            })
        })?
    }

    /// The frame's depths as bytes of f32, row by row from the top: 1 at the near plane, 0 far away.
    fn depths<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.bytes(py, Plane::Depth)
    }
}
