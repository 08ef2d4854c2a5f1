//! Panels of widgets over the picture.
//!
//! A program calls its widgets again in every frame, each with its current value. They are stored in a list; when the frame
//! is shown, egui draws them and handles input. The next call of a widget returns the user's changes: a value is at most
//! one frame late, whatever the order of the calls.

use std::collections::BTreeMap;

use egui::{Color32, Context, RawInput};
use egui_wgpu::{Renderer, RendererOptions, ScreenDescriptor};
use wgpu::{
    CommandBuffer, CommandEncoder, LoadOp, Operations, RenderPassColorAttachment,
    RenderPassDescriptor, StoreOp,
};

use crate::gpu::Gpu;
use crate::picture::Picture;
use crate::plots::{self, Chart};

/// A widget with its value.
#[derive(Clone, Debug)]
pub(crate) enum Widget {
    Text(String, Option<[f32; 3]>),
    Button(String),
    Checkbox(String, bool),
    Integer(String, i64, i64, i64),
    Number(String, f64, f64, f64),
    Color(String, [f32; 3]),
    Plot(Chart),
}

/// What the user made of one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Pressed,
    Checked(bool),
    Integer(i64),
    Number(f64),
    Color([f32; 3]),
}

impl Widget {
    fn label(&self) -> &str {
        match self {
            Self::Text(label, _)
            | Self::Button(label)
            | Self::Checkbox(label, _)
            | Self::Integer(label, ..)
            | Self::Number(label, ..)
            | Self::Color(label, _) => label,
            Self::Plot(chart) => &chart.label,
        }
    }
}

/// A widget's name: panel, label, and which of the panel's with this label.
type Key = (String, String, usize);

struct Panel {
    name: String,
    /// Left, top, width and height as parts of the picture's.
    place: [f32; 4],
    widgets: Vec<(Key, Widget)>,
}

/// The panels of a window.
pub(crate) struct Widgets {
    context: Context,
    renderer: Option<Renderer>,
    panels: Vec<Panel>,
    changes: BTreeMap<Key, Change>,
}

impl Widgets {
    pub(crate) fn new() -> Self {
        Self {
            context: Context::default(),
            renderer: None,
            panels: Vec::new(),
            changes: BTreeMap::new(),
        }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Begins a panel, or continues one of this frame's.
    pub(crate) fn begin(&mut self, name: &str, place: [f32; 4]) {
        let known = self.panels.iter().position(|panel| panel.name == name);
        let panel = known.map_or_else(
            || Panel {
                name: name.to_owned(),
                place,
                widgets: Vec::new(),
            },
            |k| self.panels.remove(k),
        );
        self.panels.push(panel);
    }

    /// Adds a widget to the panel begun last; what the user made of it since.
    pub(crate) fn add(&mut self, widget: Widget) -> Option<Change> {
        if self.panels.is_empty() {
            self.begin("", [0.02, 0.02, 0.3, 0.3]);
        }
        let panel = self.panels.last_mut().expect("one was begun");
        let label = widget.label().to_owned();
        let alike = |(key, _): &&(Key, Widget)| key.1 == label;
        let number = panel.widgets.iter().filter(alike).count();
        let key = (panel.name.clone(), label, number);
        let change = self.changes.remove(&key);
        let widget = match (widget, change) {
            (Widget::Checkbox(label, _), Some(Change::Checked(now))) => {
                Widget::Checkbox(label, now)
            }
            (Widget::Integer(label, _, low, high), Some(Change::Integer(now))) => {
                Widget::Integer(label, now, low, high)
            }
            (Widget::Number(label, _, low, high), Some(Change::Number(now))) => {
                Widget::Number(label, now, low, high)
            }
            (Widget::Color(label, _), Some(Change::Color(now))) => Widget::Color(label, now),
            (widget, _) => widget,
        };
        panel.widgets.push((key, widget));
        change
    }

    /// Draws the panels named since the last time over the picture, and forgets them.
    pub(crate) fn draw(
        &mut self,
        gpu: &Gpu,
        encoder: &mut CommandEncoder,
        picture: &Picture,
        mut input: RawInput,
        scale: f32,
    ) -> (Vec<CommandBuffer>, egui::PlatformOutput) {
        let panels = std::mem::take(&mut self.panels);
        let size = egui::vec2(picture.width as f32, picture.height as f32) / scale;
        input.screen_rect = Some(egui::Rect::from_min_size(egui::Pos2::ZERO, size));
        let changes = &mut self.changes;
        let mut output = self.context.run_ui(input, |ui| {
            // It may be called again for the same frame.
            changes.clear();
            for panel in &panels {
                show(ui.ctx(), panel, size, changes);
            }
        });
        let jobs = self
            .context
            .tessellate(output.shapes, output.pixels_per_point);
        let renderer = self.renderer.get_or_insert_with(|| {
            Renderer::new(&gpu.device, picture.format(), RendererOptions::PREDICTABLE)
        });
        for (id, deltas) in output.textures_delta.set.drain() {
            for delta in &deltas {
                renderer.update_texture(&gpu.device, &gpu.queue, id, delta);
            }
        }
        let screen = ScreenDescriptor {
            size_in_pixels: [picture.width, picture.height],
            pixels_per_point: output.pixels_per_point,
        };
        let more = renderer.update_buffers(&gpu.device, &gpu.queue, encoder, &jobs, &screen);
        let pass = encoder.begin_render_pass(&RenderPassDescriptor {
            label: None,
            color_attachments: &[Some(RenderPassColorAttachment {
                view: &picture.color_view,
                depth_slice: None,
                resolve_target: None,
                ops: Operations {
                    load: LoadOp::Load,
                    store: StoreOp::Store,
                },
            })],
            ..Default::default()
        });
        renderer.render(&mut pass.forget_lifetime(), &jobs, &screen);
        for id in output.textures_delta.free.drain() {
            renderer.free_texture(&id);
        }
        (more, output.platform_output)
    }

    /// Whether there is anything to draw or to answer.
    pub(crate) fn is_used(&self) -> bool {
        self.renderer.is_some() || !self.panels.is_empty()
    }
}

fn show(context: &Context, panel: &Panel, size: egui::Vec2, changes: &mut BTreeMap<Key, Change>) {
    let [left, top, width, height] = panel.place;
    let id = egui::Id::unique(("panel", &panel.name));
    // A program may show a single frame: its panels are there at once. egui measures a new one first, in a pass that
    // is not seen.
    if egui::AreaState::load(context, id).is_none() {
        context.request_discard("a new panel");
    }
    egui::Window::new(&panel.name)
        .fade_in(false)
        .id(id)
        .default_pos([left * size.x, top * size.y])
        .default_size([width * size.x, height * size.y])
        .show(context, |ui| {
            for (key, widget) in &panel.widgets {
                let change = ui.push_id(key, |ui| one(ui, widget)).inner;
                if let Some(change) = change {
                    changes.insert(key.clone(), change);
                }
            }
        });
}

fn one(ui: &mut egui::Ui, widget: &Widget) -> Option<Change> {
    if let Widget::Plot(chart) = widget {
        plots::show(ui, chart);
        return None;
    }
    match widget.clone() {
        Widget::Plot(_) => None,
        Widget::Text(text, color) => {
            let mut text = egui::RichText::new(text);
            if let Some(color) = color {
                let [r, g, b] = color.map(|c| (c.clamp(0.0, 1.0) * 255.0).round() as u8);
                text = text.color(Color32::from_rgb(r, g, b));
            }
            ui.label(text);
            None
        }
        Widget::Button(label) => ui.button(label).clicked().then_some(Change::Pressed),
        Widget::Checkbox(label, mut value) => ui
            .checkbox(&mut value, label)
            .changed()
            .then_some(Change::Checked(value)),
        Widget::Integer(label, mut value, low, high) => ui
            .add(egui::Slider::new(&mut value, low..=high).text(label))
            .changed()
            .then_some(Change::Integer(value)),
        Widget::Number(label, mut value, low, high) => ui
            .add(egui::Slider::new(&mut value, low..=high).text(label))
            .changed()
            .then_some(Change::Number(value)),
        Widget::Color(label, mut value) => ui
            .horizontal(|ui| {
                let changed = ui.color_edit_button_rgb(&mut value).changed();
                ui.label(label);
                changed
            })
            .inner
            .then_some(Change::Color(value)),
    }
}
