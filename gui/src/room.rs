//! Room for an image: memory of the device that Python writes pixels into, so that nothing copies them in between.
//!
//! Python has the memory as long as anything of it refers to the room, arrays made of it included; what is drawn from it is
//! drawn after that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wgpu::{
    Buffer, BufferDescriptor, BufferUsages, BufferViewMut, CommandEncoder, MapMode, Origin3d,
    PollType, TexelCopyBufferInfo, TexelCopyBufferLayout, TexelCopyTextureInfo, Texture,
    TextureAspect,
};

use crate::gpu::{Failure, Gpu};
use crate::picture::{BYTES_PER_PIXEL, ROW_ALIGN};

/// How many are cached for further images: one is drawn from while the next is written.
const MOST_FREE: usize = 3;

/// Pixels that the device copies from, in the order of the picture: rows from the top, each beginning at a multiple of `ROW_ALIGN`.
pub(crate) struct Staged {
    buffer: Buffer,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

fn padded(width: u32) -> u32 {
    (width * BYTES_PER_PIXEL).next_multiple_of(ROW_ALIGN)
}

impl Staged {
    /// Copies the pixels to a texture of the same size.
    pub(crate) fn copy(&self, encoder: &mut CommandEncoder, texture: &Texture) {
        let from = TexelCopyBufferInfo {
            buffer: &self.buffer,
            layout: TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(padded(self.width)),
                rows_per_image: None,
            },
        };
        let to = TexelCopyTextureInfo {
            texture,
            mip_level: 0,
            origin: Origin3d::ZERO,
            aspect: TextureAspect::All,
        };
        encoder.copy_buffer_to_texture(from, to, texture.size());
    }
}

/// Memory for an image's pixels, as an array by `numpy.asarray`: words, row by row from the top, each row as
/// long as the device wants it.
#[pyclass(unsendable, module = "aerogel_viz._viz")]
pub(crate) struct Room {
    /// Keeps the memory mapped.
    view: Option<BufferViewMut>,
    buffer: Buffer,
    rows: u32,
    /// Where the buffer returns when Python has released the staging memory.
    written: Arc<Mutex<Option<Buffer>>>,
}

#[pymethods]
impl Room {
    #[getter]
    fn __array_interface__<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let view = self.view.as_mut().expect("it is there until the end");
        let row = view.len() / self.rows as usize / BYTES_PER_PIXEL as usize;
        let start = view
            .slice(..)
            .as_raw_element_ptr()
            .as_ptr()
            .expose_provenance();
        let told = PyDict::new(py);
        told.set_item("version", 3)?;
        told.set_item("shape", (self.rows, row))?;
        told.set_item(
            "typestr",
            if cfg!(target_endian = "little") {
                "<u4"
            } else {
                ">u4"
            },
        )?;
        told.set_item("data", (start, false))?;
        Ok(told)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.view = None;
        *locked(&self.written) = Some(self.buffer.clone());
    }
}

fn locked(written: &Mutex<Option<Buffer>>) -> MutexGuard<'_, Option<Buffer>> {
    written.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A room that Python was given.
pub(crate) struct Given {
    written: Arc<Mutex<Option<Buffer>>>,
    width: u32,
    height: u32,
}

impl Given {
    /// What was written.
    ///
    /// # Errors
    /// Something of Python still has the memory.
    pub(crate) fn take(self) -> PyResult<Staged> {
        let buffer = locked(&self.written).take().ok_or_else(|| {
            PyBufferError::new_err("an array or something else still refers to the room")
        })?;
        buffer.unmap();
        Ok(Staged {
            buffer,
            width: self.width,
            height: self.height,
        })
    }
}

/// Memory that the device has read, for the next images.
#[derive(Default)]
pub(crate) struct Rooms {
    /// With whether the device is done with it.
    free: Vec<(Buffer, Arc<AtomicBool>)>,
}

impl Rooms {
    /// Room for an image of so many pixels.
    ///
    /// # Errors
    /// The device has no memory left, or is gone.
    pub(crate) fn open(
        &mut self,
        gpu: &Gpu,
        width: u32,
        height: u32,
    ) -> Result<(Room, Given), Failure> {
        let size = u64::from(padded(width)) * u64::from(height);
        let buffer = self.take(gpu, size)?;
        let view = buffer
            .get_mapped_range_mut(..)
            .map_err(|e| Failure(format!("memory for an image: {e}")))?;
        let written = Arc::default();
        let room = Room {
            view: Some(view),
            buffer,
            rows: height,
            written: Arc::clone(&written),
        };
        Ok((
            room,
            Given {
                written,
                width,
                height,
            },
        ))
    }

    fn take(&mut self, gpu: &Gpu, size: u64) -> Result<Buffer, Failure> {
        self.free.retain(|(buffer, _)| buffer.size() == size);
        let wait = if self.free.len() < MOST_FREE {
            PollType::Poll
        } else {
            PollType::wait_indefinitely()
        };
        gpu.device
            .poll(wait)
            .map_err(|e| Failure(format!("waiting for the device: {e}")))?;
        let ready = |(_, is_ready): &(Buffer, Arc<AtomicBool>)| is_ready.load(Ordering::Acquire);
        if let Some(k) = self.free.iter().position(ready) {
            return Ok(self.free.swap_remove(k).0);
        }
        let buffer = gpu.device.create_buffer(&BufferDescriptor {
            label: None,
            size,
            usage: BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        });
        gpu.check()?;
        Ok(buffer)
    }

    /// Takes back what no frame needs any more.
    pub(crate) fn give(&mut self, staged: Staged) {
        let is_ready = Arc::new(AtomicBool::new(false));
        let told = is_ready.clone();
        staged.buffer.map_async(MapMode::Write, .., move |mapped| {
            told.store(mapped.is_ok(), Ordering::Release)
        });
        self.free.push((staged.buffer, is_ready));
    }
}
