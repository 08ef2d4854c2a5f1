//! The target of drawing: pixels and depths, and their transfer to the host.

use std::borrow::Cow;
use std::sync::OnceLock;

use wgpu::{
    Buffer, BufferDescriptor, BufferUsages, CommandEncoderDescriptor, Extent3d, MapMode, Origin3d,
    PollType, TexelCopyBufferInfo, TexelCopyBufferLayout, TexelCopyTextureInfo, Texture,
    TextureAspect, TextureDescriptor, TextureDimension, TextureFormat, TextureUsages, TextureView,
};

use crate::gpu::{Failure, Gpu};
use crate::pipelines::{BGRA, DEPTH};

/// Both formats have four bytes a pixel.
pub(crate) const BYTES_PER_PIXEL: u32 = 4;
/// Rows of a copy begin at multiples of it.
pub(crate) const ROW_ALIGN: u32 = wgpu::COPY_BYTES_PER_ROW_ALIGNMENT;

/// A picture that can be drawn into.
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) color: Texture,
    depth: Texture,
    pub(crate) color_view: TextureView,
    pub(crate) depth_view: TextureView,
    /// What the pixels or depths are read back through, once they are.
    back: OnceLock<Buffer>,
}

/// What a picture consists of.
#[derive(Clone, Copy)]
pub(crate) enum Plane {
    /// Four bytes for each pixel.
    Color,
    /// The bytes of `f32`.
    Depth,
}

impl Picture {
    /// A picture of pixels in one of the two orders.
    ///
    /// # Errors
    /// The size is none, or more than the device has.
    pub(crate) fn new(
        gpu: &Gpu,
        width: u32,
        height: u32,
        format: TextureFormat,
    ) -> Result<Self, Failure> {
        let most = gpu.device.limits().max_texture_dimension_2d;
        if width == 0 || height == 0 || width > most || height > most {
            return Err(Failure(format!(
                "a picture has 1 to {most} pixels along each axis, not {width} by {height}"
            )));
        }
        let texture = |format: TextureFormat, more: TextureUsages| {
            gpu.device.create_texture(&TextureDescriptor {
                label: None,
                size: Extent3d {
                    width,
                    height,
                    depth_or_array_layers: 1,
                },
                mip_level_count: 1,
                sample_count: 1,
                dimension: TextureDimension::D2,
                format,
                usage: TextureUsages::RENDER_ATTACHMENT | TextureUsages::COPY_SRC | more,
                view_formats: &[],
            })
        };
        let color = texture(
            format,
            TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST,
        );
        let depth = texture(DEPTH, TextureUsages::empty());
        gpu.check()?;
        Ok(Self {
            width,
            height,
            color_view: color.create_view(&Default::default()),
            depth_view: depth.create_view(&Default::default()),
            color,
            depth,
            back: OnceLock::new(),
        })
    }

    /// The order of a pixel's bytes.
    pub(crate) fn format(&self) -> TextureFormat {
        self.color.format()
    }

    /// Whether red and blue are where RGBA has them the other way round.
    pub(crate) fn is_swapped(&self) -> bool {
        self.format() == BGRA
    }

    /// Covers everything by another picture, scaled to this one: RGBA bytes, row by row from the top.
    pub(crate) fn cover(&self, gpu: &Gpu, rows: &[u8], width: u32, height: u32) {
        let mut rows = if (width, height) == (self.width, self.height) {
            Cow::Borrowed(rows)
        } else {
            Cow::Owned(self.stretched(rows, width as usize, height as usize))
        };
        if self.is_swapped() {
            swap(rows.to_mut());
        }
        let to = TexelCopyTextureInfo {
            texture: &self.color,
            mip_level: 0,
            origin: Origin3d::ZERO,
            aspect: TextureAspect::All,
        };
        let layout = TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(self.width * BYTES_PER_PIXEL),
            rows_per_image: None,
        };
        gpu.queue
            .write_texture(to, &rows, layout, self.color.size());
    }

    /// Each pixel as the one that lies there in a picture of another size.
    fn stretched(&self, rows: &[u8], width: usize, height: usize) -> Vec<u8> {
        let pixel = BYTES_PER_PIXEL as usize;
        let (wide, high) = (self.width as usize, self.height as usize);
        let mut out = Vec::with_capacity(wide * high * pixel);
        for y in 0..high {
            let row = &rows[y * height / high * width * pixel..][..width * pixel];
            for x in 0..wide {
                out.extend_from_slice(&row[x * width / wide * pixel..][..pixel]);
            }
        }
        out
    }

    /// Waits for what is drawn, and hands it out.
    pub(crate) fn read<T>(
        &self,
        gpu: &Gpu,
        plane: Plane,
        take: impl FnOnce(Rows<'_>) -> T,
    ) -> Result<T, Failure> {
        let (texture, aspect) = match plane {
            Plane::Color => (&self.color, TextureAspect::All),
            Plane::Depth => (&self.depth, TextureAspect::DepthOnly),
        };
        let row = self.width * BYTES_PER_PIXEL;
        let padded = row.next_multiple_of(ROW_ALIGN);
        let buffer = self.back.get_or_init(|| {
            gpu.device.create_buffer(&BufferDescriptor {
                label: None,
                size: u64::from(padded) * u64::from(self.height),
                usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
                mapped_at_creation: false,
            })
        });
        let description = CommandEncoderDescriptor::default();
        let mut encoder = gpu.device.create_command_encoder(&description);
        let source = TexelCopyTextureInfo {
            texture,
            mip_level: 0,
            origin: Origin3d::ZERO,
            aspect,
        };
        let layout = TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(padded),
            rows_per_image: None,
        };
        encoder.copy_texture_to_buffer(
            source,
            TexelCopyBufferInfo { buffer, layout },
            texture.size(),
        );
        gpu.queue.submit([encoder.finish()]);
        let (done, outcome) = std::sync::mpsc::sync_channel(1);
        buffer.slice(..).map_async(MapMode::Read, move |result| {
            // Nobody listens if polling failed.
            let _ = done.send(result);
        });
        let failed = |what: &dyn std::fmt::Display| Failure(format!("reading the picture: {what}"));
        gpu.device
            .poll(PollType::wait_indefinitely())
            .map_err(|e| failed(&e))?;
        outcome
            .recv()
            .map_err(|e| failed(&e))?
            .map_err(|e| failed(&e))?;
        let mapped = buffer
            .slice(..)
            .get_mapped_range()
            .map_err(|e| failed(&e))?;
        let taken = take(Rows {
            bytes: &mapped,
            row: row as usize,
            padded: padded as usize,
            is_swapped: matches!(plane, Plane::Color) && self.is_swapped(),
        });
        drop(mapped);
        buffer.unmap();
        gpu.check()?;
        Ok(taken)
    }
}

/// Rows from the top, as the device gives them back.
pub(crate) struct Rows<'a> {
    bytes: &'a [u8],
    row: usize,
    /// The bytes from one row's begin to the next.
    padded: usize,
    is_swapped: bool,
}

/// Lets red and blue change places.
fn swap(pixels: &mut [u8]) {
    for pixel in pixels.as_chunks_mut::<4>().0 {
        *pixel = [pixel[2], pixel[1], pixel[0], pixel[3]];
    }
}

impl Rows<'_> {
    /// How many bytes all have.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() / self.padded * self.row
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.bytes.chunks_exact(self.padded);
        lines.map(|line| &line[..self.row])
    }

    /// Copies all to memory of that size.
    pub(crate) fn copy(&self, out: &mut [u8]) {
        for (to, line) in out.chunks_exact_mut(self.row).zip(self.lines()) {
            to.copy_from_slice(line);
            if self.is_swapped {
                swap(to);
            }
        }
    }

    /// Each byte as an f32 from 0 to 1, in the order of RGBA.
    pub(crate) fn floats(&self, out: &mut [u8]) {
        let order = if self.is_swapped {
            [2, 1, 0, 3]
        } else {
            [0, 1, 2, 3]
        };
        for (to, line) in out.chunks_exact_mut(4 * self.row).zip(self.lines()) {
            let pixels = line.as_chunks::<4>().0;
            for (to, pixel) in to.as_chunks_mut::<16>().0.iter_mut().zip(pixels) {
                let floats = order.map(|k| f32::from(pixel[k]) / 255.0);
                *to = bytemuck::cast(floats);
            }
        }
    }
}
