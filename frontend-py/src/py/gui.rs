//! The picture behind `ti.GUI`: a canvas to draw into, and PNG files. Windows know nothing of it yet.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aerogel_base::ScalarType;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tiny_skia::{BYTES_PER_PIXEL, Color, IntSize, Paint, Pixmap, Rect, Transform};

use super::font;
use super::numpy_arrays::ForeignArray;

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
    // This copy, one of other types, and what is made of it.
    super::error::room(buffer.len().saturating_mul(4))?;
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

/// The pixels of `extent` that a shape from `low` to `high` can touch.
fn pixels_between(low: f32, high: f32, extent: u32) -> std::ops::Range<i32> {
    // A conversion saturates, so shapes of any size end at the picture's edges.
    (low.floor().max(0.0) as i32)..(high.ceil() as i32).saturating_add(1).min(extent as i32)
}

/// Mixes a colour into a pixel: the part `coverage` of it, from 0 to 1.
fn blend(data: &mut [u8], at: usize, color: [u8; 3], coverage: f32) {
    if coverage >= 1.0 {
        data[at..at + 3].copy_from_slice(&color);
    } else if coverage > 0.0 {
        for (have, want) in data[at..at + 3].iter_mut().zip(color) {
            let mixed = f32::from(*have) + (f32::from(want) - f32::from(*have)) * coverage;
            *have = (mixed + 0.5) as u8;
        }
    }
}

/// Draws a disc with smooth edges. As in Taichi a pixel is where its corner is (the lower left one), and covered by as
/// much as it lies within the radius, at most by 1.
fn disc(pixmap: &mut Pixmap, x: f32, y: f32, radius: f32, color: u32) {
    if !(x.is_finite() && y.is_finite() && radius > 0.0) {
        return;
    }
    let (width, height) = (pixmap.width(), pixmap.height());
    let color = rgb(color);
    let data = pixmap.data_mut();
    // The lower left corner of the pixel in row `py` counted from the top is at `py + 1`.
    for py in pixels_between(y - radius - 1.0, y + radius - 1.0, height) {
        let dy = py as f32 + 1.0 - y;
        for px in pixels_between(x - radius, x + radius, width) {
            let dx = px as f32 - x;
            let squared = dx * dx + dy * dy;
            if squared < radius * radius {
                let at = 4 * (py * width as i32 + px) as usize;
                blend(data, at, color, radius - squared.sqrt());
            }
        }
    }
}

/// Draws a line with round ends: a pixel's centre is covered by as much as it lies within the radius.
fn line(pixmap: &mut Pixmap, a: [f32; 2], b: [f32; 2], radius: f32, color: u32) {
    if !(a.into_iter().chain(b).all(f32::is_finite) && radius > 0.0) {
        return;
    }
    let (width, height) = (pixmap.width(), pixmap.height());
    let color = rgb(color);
    let data = pixmap.data_mut();
    let along = [b[0] - a[0], b[1] - a[1]];
    let squared_length = along[0] * along[0] + along[1] * along[1];
    // Of a row only the pixels near the line are looked at: `reach` is how far from it they lie at most, sidewards.
    let slope = (along[1].abs() > 1e-3).then(|| along[0] / along[1]);
    for py in pixels_between(a[1].min(b[1]) - radius, a[1].max(b[1]) + radius, height) {
        let y = py as f32 + 0.5;
        let (mut low, mut high) = (a[0].min(b[0]) - radius, a[0].max(b[0]) + radius);
        if let Some(slope) = slope {
            let middle = a[0] + (y - a[1]) * slope;
            let reach = radius * slope.hypot(1.0) + 1.0;
            // Beyond the ends, where the line's own extension may be far away, the caps remain.
            if (a[1].min(b[1])..=a[1].max(b[1])).contains(&y) {
                low = low.max(middle - reach);
                high = high.min(middle + reach);
            }
        }
        for px in pixels_between(low, high, width) {
            let p = [px as f32 + 0.5 - a[0], y - a[1]];
            let t = if squared_length > 0.0 {
                ((p[0] * along[0] + p[1] * along[1]) / squared_length).clamp(0.0, 1.0)
            } else {
                0.0
            };
            let (dx, dy) = (p[0] - t * along[0], p[1] - t * along[1]);
            let squared = dx * dx + dy * dy;
            if squared < radius * radius {
                let at = 4 * (py * width as i32 + px) as usize;
                blend(data, at, color, radius - squared.sqrt());
            }
        }
    }
}

/// Fills the pixels whose centres lie in a triangle.
fn triangle(pixmap: &mut Pixmap, [a, b, c]: [[f32; 2]; 3], color: u32) {
    if !a.into_iter().chain(b).chain(c).all(f32::is_finite) {
        return;
    }
    let (width, height) = (pixmap.width(), pixmap.height());
    let [red, green, blue] = rgb(color);
    let data = pixmap.data_mut();
    let side = |p: [f32; 2], q: [f32; 2], x: f32, y: f32| {
        (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0])
    };
    if side(a, b, c[0], c[1]) == 0.0 {
        return;
    }
    let bounds = |k: usize| (a[k].min(b[k]).min(c[k]), a[k].max(b[k]).max(c[k]));
    let ((left, right), (top, bottom)) = (bounds(0), bounds(1));
    for py in pixels_between(top, bottom, height) {
        for px in pixels_between(left, right, width) {
            let (x, y) = (px as f32 + 0.5, py as f32 + 0.5);
            let sides = [side(a, b, x, y), side(b, c, x, y), side(c, a, x, y)];
            if sides.iter().all(|s| *s >= 0.0) || sides.iter().all(|s| *s <= 0.0) {
                let at = 4 * (py * width as i32 + px) as usize;
                data[at..at + 3].copy_from_slice(&[red, green, blue]);
            }
        }
    }
}

#[pymethods]
impl Canvas {
    #[new]
    fn new(width: u32, height: u32) -> PyResult<Self> {
        let size = IntSize::from_wh(width, height)
            .ok_or_else(|| PyValueError::new_err("a picture has at least one pixel"))?;
        let too_large =
            || PyMemoryError::new_err(format!("no memory for a picture of {width} by {height}"));
        let pixels = (width as usize).checked_mul(height as usize);
        let bytes = pixels.and_then(|n| n.checked_mul(BYTES_PER_PIXEL));
        let bytes = bytes.ok_or_else(too_large)?;
        let mut data = Vec::new();
        data.try_reserve_exact(bytes).map_err(|_| too_large())?;
        data.resize(bytes, 0);
        let pixmap = Pixmap::from_vec(data, size).ok_or_else(too_large)?;
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
            let (from, to) = ([a[2 * k], a[2 * k + 1]], [b[2 * k], b[2 * k + 1]]);
            line(&mut pixmap, from, to, radius(k), color(k));
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
            let corners = [0, 1, 2].map(|c| [corners[c][2 * k], corners[c][2 * k + 1]]);
            triangle(&mut pixmap, corners, color(k));
        }
        Ok(())
    }

    /// Draws a text whose upper left corner is at (x, y).
    fn text(&self, content: &str, x: f32, y: f32, size: f32, color: u32) {
        // A capital is as high and begins as far below the top as one of Taichi's font.
        let dot = size / 11.0;
        let y = y + 0.12 * size;
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
}

/// Bytes of shape (height, width, channels) as a PNG.
pub(crate) fn encode_png(rows: &ForeignArray) -> PyResult<Vec<u8>> {
    let data = bytes(rows, ScalarType::U8)?;
    let &[height, width, channels] = rows.shape.as_slice() else {
        return Err(PyValueError::new_err("an image has three axes"));
    };
    let failed = |e: png::EncodingError| PyValueError::new_err(e.to_string());
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width as u32, height as u32);
    encoder.set_color(match channels {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        4 => png::ColorType::Rgba,
        _ => return Err(PyValueError::new_err("a PNG has 1 to 4 channels")),
    });
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&data).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}

/// Width, height, channels and bytes of a PNG.
pub(crate) fn read_png(path: &str) -> PyResult<(u32, u32, u32, Vec<u8>)> {
    let failed = |e: String| PyOSError::new_err(format!("{path}: {e}"));
    let file = std::fs::File::open(path).map_err(|e| failed(e.to_string()))?;
    let mut decoder = png::Decoder::new(std::io::BufReader::new(file));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(|e| failed(e.to_string()))?;
    // The pixels, and Python's copy of them.
    super::error::room(reader.output_buffer_size().saturating_mul(3))?;
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
