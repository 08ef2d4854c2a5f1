//! The picture behind `ti.GUI`: a canvas to draw into, and PNG files. Windows know nothing of it yet.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aerogel_base::ScalarType;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tiny_skia::{Color, FillRule, LineCap, Paint, PathBuilder, Pixmap, Rect, Stroke, Transform};

use super::font;
use super::foreign::ForeignArray;

/// A picture under construction, the origin at the upper left.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct Canvas {
    pixmap: Mutex<Pixmap>,
}

impl Canvas {
    fn pixmap(&self) -> MutexGuard<'_, Pixmap> {
        self.pixmap.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rgb(color: u32) -> [u8; 3] {
    let [_, r, g, b] = color.to_be_bytes();
    [r, g, b]
}

fn paint(color: u32) -> Paint<'static> {
    let [r, g, b] = rgb(color);
    let mut paint = Paint::default();
    paint.set_color_rgba8(r, g, b, 255);
    paint.anti_alias = true;
    paint
}

fn bytes(array: &ForeignArray, ty: ScalarType) -> PyResult<Vec<u8>> {
    if array.ty != Some(ty) {
        return Err(PyTypeError::new_err(format!("an array of {ty} is needed")));
    }
    let buffer = array.buffer()?;
    let mut out = vec![0; buffer.len()];
    buffer.read(0, &mut out).map_err(super::error::memory)?;
    Ok(out)
}

fn floats(array: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let raw = bytes(&ForeignArray::new(array)?, ScalarType::F32)?;
    Ok(raw
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect())
}

fn colors(array: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let raw = bytes(&ForeignArray::new(array)?, ScalarType::U32)?;
    Ok(raw
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect())
}

/// The values for `n` shapes, of which one may stand for all.
fn each<T: Copy>(values: &[T], n: usize, what: &str) -> PyResult<impl Fn(usize) -> T + use<T>> {
    if values.len() != n && values.len() != 1 {
        return Err(PyValueError::new_err(format!(
            "{} {what} for {n} shapes",
            values.len()
        )));
    }
    let (values, one) = (values.to_vec(), values.len() == 1);
    Ok(move |k: usize| values[if one { 0 } else { k }])
}

/// Draws a disc with smooth edges: thousands of small ones are usual, so this goes pixel by pixel.
fn disc(pixmap: &mut Pixmap, x: f32, y: f32, radius: f32, color: u32) {
    let (width, height) = (pixmap.width() as i32, pixmap.height() as i32);
    if !(x.is_finite() && y.is_finite() && radius > 0.0) {
        return;
    }
    let reach = radius + 0.5;
    let range = |c: f32, end: i32| {
        (
            (c - reach).floor().max(0.0) as i32,
            ((c + reach).ceil() as i32).min(end),
        )
    };
    let ((x0, x1), (y0, y1)) = (range(x, width), range(y, height));
    let color = rgb(color);
    let data = pixmap.data_mut();
    for py in y0..y1 {
        for px in x0..x1 {
            let distance = (px as f32 + 0.5 - x).hypot(py as f32 + 0.5 - y);
            let coverage = (reach - distance).clamp(0.0, 1.0).min(2.0 * radius);
            if coverage > 0.0 {
                let at = 4 * (py * width + px) as usize;
                for (have, want) in data[at..at + 3].iter_mut().zip(color) {
                    let mixed =
                        f32::from(*have) + (f32::from(want) - f32::from(*have)) * coverage.min(1.0);
                    *have = (mixed + 0.5) as u8;
                }
            }
        }
    }
}

#[pymethods]
impl Canvas {
    #[new]
    fn new(width: u32, height: u32) -> PyResult<Self> {
        let pixmap = Pixmap::new(width, height)
            .ok_or_else(|| PyValueError::new_err("a picture has at least one pixel"))?;
        Ok(Self {
            pixmap: Mutex::new(pixmap),
        })
    }

    fn copy(&self) -> Self {
        Self {
            pixmap: Mutex::new(self.pixmap().clone()),
        }
    }

    fn clear(&self, color: u32) {
        let [r, g, b] = rgb(color);
        self.pixmap().fill(Color::from_rgba8(r, g, b, 255));
    }

    /// Draws bytes of shape (width, height, channels), the second axis upwards.
    fn set_image(&self, image: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = ForeignArray::new(image)?;
        let source = bytes(&array, ScalarType::U8)?;
        let mut pixmap = self.pixmap();
        let (width, height) = (pixmap.width() as usize, pixmap.height() as usize);
        let &[w, h, channels] = array.shape.as_slice() else {
            return Err(PyValueError::new_err("an image has three axes"));
        };
        if (w, h) != (width, height) || !(1..=4).contains(&channels) {
            return Err(PyValueError::new_err(
                "the image has another size than the canvas",
            ));
        }
        let data = pixmap.data_mut();
        for x in 0..width {
            for y in 0..height {
                let from = &source[(x * height + height - 1 - y) * channels..][..channels];
                let to = &mut data[4 * (y * width + x)..][..4];
                match *from {
                    [v] => to.copy_from_slice(&[v, v, v, 255]),
                    [r, g] => to.copy_from_slice(&[r, g, 0, 255]),
                    _ => to.copy_from_slice(&[from[0], from[1], from[2], 255]),
                }
            }
        }
        Ok(())
    }

    fn circles(
        &self,
        pos: &Bound<'_, PyAny>,
        radius: &Bound<'_, PyAny>,
        color: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let pos = floats(pos)?;
        let n = pos.len() / 2;
        let (radius, color) = (floats(radius)?, colors(color)?);
        let (radius, color) = (each(&radius, n, "radii")?, each(&color, n, "colours")?);
        let mut pixmap = self.pixmap();
        for k in 0..n {
            disc(&mut pixmap, pos[2 * k], pos[2 * k + 1], radius(k), color(k));
        }
        Ok(())
    }

    fn lines(
        &self,
        begin: &Bound<'_, PyAny>,
        end: &Bound<'_, PyAny>,
        radius: &Bound<'_, PyAny>,
        color: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (a, b) = (floats(begin)?, floats(end)?);
        let n = a.len().min(b.len()) / 2;
        let (radius, color) = (floats(radius)?, colors(color)?);
        let (radius, color) = (each(&radius, n, "radii")?, each(&color, n, "colours")?);
        let mut pixmap = self.pixmap();
        for k in 0..n {
            let mut path = PathBuilder::new();
            path.move_to(a[2 * k], a[2 * k + 1]);
            path.line_to(b[2 * k], b[2 * k + 1]);
            if let Some(path) = path.finish() {
                let stroke = Stroke {
                    width: 2.0 * radius(k),
                    line_cap: LineCap::Round,
                    ..Stroke::default()
                };
                pixmap.stroke_path(
                    &path,
                    &paint(color(k)),
                    &stroke,
                    Transform::identity(),
                    None,
                );
            }
        }
        Ok(())
    }

    fn triangles(
        &self,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        c: &Bound<'_, PyAny>,
        color: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let corners = [floats(a)?, floats(b)?, floats(c)?];
        let n = corners.iter().map(Vec::len).min().unwrap_or(0) / 2;
        let color = each(&colors(color)?, n, "colours")?;
        let mut pixmap = self.pixmap();
        for k in 0..n {
            let mut path = PathBuilder::new();
            path.move_to(corners[0][2 * k], corners[0][2 * k + 1]);
            for corner in &corners[1..] {
                path.line_to(corner[2 * k], corner[2 * k + 1]);
            }
            path.close();
            if let Some(path) = path.finish() {
                pixmap.fill_path(
                    &path,
                    &paint(color(k)),
                    FillRule::Winding,
                    Transform::identity(),
                    None,
                );
            }
        }
        Ok(())
    }

    /// Draws a text whose upper left corner is at (x, y).
    fn text(&self, content: &str, x: f32, y: f32, size: f32, color: u32) {
        let dot = size / 8.0;
        let paint = paint(color);
        let mut pixmap = self.pixmap();
        let (mut left, mut top) = (x, y);
        for c in content.chars() {
            if c == '\n' {
                (left, top) = (x, top + 9.0 * dot);
                continue;
            }
            for (k, column) in font::columns(c).into_iter().enumerate() {
                for row in (0..7).filter(|row| column >> row & 1 == 1) {
                    let (dx, dy) = (left + k as f32 * dot, top + row as f32 * dot);
                    if let Some(rect) = Rect::from_xywh(dx, dy, dot, dot) {
                        pixmap.fill_rect(rect, &paint, Transform::identity(), None);
                    }
                }
            }
            left += 6.0 * dot;
        }
    }

    /// The picture as RGBA bytes, row by row from the top.
    fn pixels<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.pixmap().data())
    }

    fn save_png(&self, path: &str) -> PyResult<()> {
        self.pixmap()
            .save_png(path)
            .map_err(|e| PyOSError::new_err(format!("{path}: {e}")))
    }
}

/// Writes bytes of shape (height, width, channels) as a PNG.
pub(crate) fn write_png(path: &str, rows: &ForeignArray) -> PyResult<()> {
    let data = bytes(rows, ScalarType::U8)?;
    let &[height, width, channels] = rows.shape.as_slice() else {
        return Err(PyValueError::new_err("an image has three axes"));
    };
    let failed = |e: String| PyOSError::new_err(format!("{path}: {e}"));
    let file = std::fs::File::create(path).map_err(|e| failed(e.to_string()))?;
    let mut encoder = png::Encoder::new(std::io::BufWriter::new(file), width as u32, height as u32);
    encoder.set_color(match channels {
        1 => png::ColorType::Grayscale,
        3 => png::ColorType::Rgb,
        4 => png::ColorType::Rgba,
        _ => return Err(PyValueError::new_err("a PNG has 1, 3 or 4 channels")),
    });
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|e| failed(e.to_string()))?;
    writer
        .write_image_data(&data)
        .map_err(|e| failed(e.to_string()))
}

/// Width, height, channels and bytes of a PNG.
pub(crate) fn read_png(path: &str) -> PyResult<(u32, u32, u32, Vec<u8>)> {
    let failed = |e: String| PyOSError::new_err(format!("{path}: {e}"));
    let file = std::fs::File::open(path).map_err(|e| failed(e.to_string()))?;
    let mut decoder = png::Decoder::new(std::io::BufReader::new(file));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(|e| failed(e.to_string()))?;
    let mut data = vec![0; reader.output_buffer_size()];
    let info = reader
        .next_frame(&mut data)
        .map_err(|e| failed(e.to_string()))?;
    data.truncate(info.buffer_size());
    Ok((
        info.width,
        info.height,
        info.color_type.samples() as u32,
        data,
    ))
}
