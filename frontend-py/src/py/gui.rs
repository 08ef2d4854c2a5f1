//! Pictures painted by the processor, as Python sees them: a canvas to draw into, and PNG files.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aerogel_base::ScalarType;
use aerogel_draw::{File, Picture, Refusal};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::foreign::{self, ForeignArray};

/// A picture under construction, the origin at the upper left.
#[pyclass(module = "aerogel._native", frozen)]
pub(crate) struct Canvas {
    picture: Mutex<Picture>,
}

impl Canvas {
    fn picture(&self) -> MutexGuard<'_, Picture> {
        self.picture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(why: Refusal) -> PyErr {
    match why {
        Refusal::TooLarge(..) => PyMemoryError::new_err(why.to_string()),
        Refusal::Empty | Refusal::OtherSize => PyValueError::new_err(why.to_string()),
    }
}

fn bytes(array: &ForeignArray, ty: ScalarType) -> PyResult<Vec<u8>> {
    if array.ty != Some(ty) {
        return Err(PyTypeError::new_err(format!("an array of {ty} is needed")));
    }
    let buffer = array.contents()?;
    // This copy, one of other types, and what is made of it.
    super::error::room(buffer.len().saturating_mul(4))?;
    let mut out = vec![0; buffer.len()];
    buffer.read(0, &mut out).map_err(super::error::memory)?;
    Ok(out)
}

fn floats(array: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let raw = bytes(&foreign::on_host(array)?, ScalarType::F32)?;
    Ok(raw
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect())
}

fn colors(array: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let raw = bytes(&foreign::on_host(array)?, ScalarType::U32)?;
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

#[pymethods]
impl Canvas {
    #[new]
    fn new(width: u32, height: u32) -> PyResult<Self> {
        let picture = Picture::new(width, height).map_err(refused)?;
        Ok(Self {
            picture: Mutex::new(picture),
        })
    }

    fn copy(&self) -> Self {
        Self {
            picture: Mutex::new(self.picture().clone()),
        }
    }

    fn clear(&self, color: u32) {
        self.picture().clear(color);
    }

    /// Draws bytes of shape (width, height, channels), the second axis upwards.
    fn set_image(&self, image: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = foreign::on_host(image)?;
        let source = bytes(&array, ScalarType::U8)?;
        let &[w, h, channels] = array.shape.as_slice() else {
            return Err(PyValueError::new_err("an image has three axes"));
        };
        self.picture()
            .image(&source, (w, h, channels))
            .map_err(refused)
    }

    /// Covers everything by words of RGBA bytes of shape (height, width), row by row from the top, opaque.
    fn set_rows(&self, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = foreign::on_host(rows)?;
        let mut picture = self.picture();
        let (width, height) = picture.size();
        if array.ty != Some(ScalarType::U32) || array.shape != [height as usize, width as usize] {
            return Err(refused(Refusal::OtherSize));
        }
        let buffer = array.contents()?;
        buffer
            .read(0, picture.rows_mut())
            .map_err(super::error::memory)
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
        let mut picture = self.picture();
        for k in 0..n {
            picture.disc(pos[2 * k], pos[2 * k + 1], radius(k), color(k));
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
        let mut picture = self.picture();
        for k in 0..n {
            let (from, to) = ([a[2 * k], a[2 * k + 1]], [b[2 * k], b[2 * k + 1]]);
            picture.line(from, to, radius(k), color(k));
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
        let mut picture = self.picture();
        for k in 0..n {
            let corners = [0, 1, 2].map(|c| [corners[c][2 * k], corners[c][2 * k + 1]]);
            picture.triangle(corners, color(k));
        }
        Ok(())
    }

    /// Draws a text whose upper left corner is at (x, y).
    fn text(&self, content: &str, x: f32, y: f32, size: f32, color: u32) {
        self.picture().text(content, x, y, size, color);
    }

    /// The picture as RGBA bytes, row by row from the top.
    fn pixels<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.picture().rows())
    }
}

/// Bytes of shape (height, width, channels) as a PNG.
pub(crate) fn encode_png(rows: &ForeignArray) -> PyResult<Vec<u8>> {
    let data = bytes(rows, ScalarType::U8)?;
    let &[height, width, channels] = rows.shape.as_slice() else {
        return Err(PyValueError::new_err("an image has three axes"));
    };
    aerogel_draw::encode(&data, (height, width, channels)).map_err(PyValueError::new_err)
}

/// Width, height, channels and bytes of a PNG.
pub(crate) fn read_png(path: &str) -> PyResult<(u32, u32, u32, Vec<u8>)> {
    let failed = |e: String| PyOSError::new_err(format!("{path}: {e}"));
    let file = File::open(path).map_err(failed)?;
    // The pixels, and Python's copy of them.
    super::error::room(file.n_bytes().saturating_mul(3))?;
    file.read().map_err(failed)
}
