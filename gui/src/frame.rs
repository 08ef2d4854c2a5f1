//! A frame: a list of things to draw, and the device's copies of their arrays.
//!
//! The arrays of the k-th object are stored where those of the last frame's k-th object were: unchanged arrays are not
//! copied again, and arrays of the same length need no new memory.

use std::ops::Deref;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use pyo3::pybacked::PyBackedBytes;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindingResource, Buffer, BufferDescriptor,
    BufferUsages, Color, CommandEncoder, Extent3d, IndexFormat, LoadOp, Operations,
    RenderPassColorAttachment, RenderPassDepthStencilAttachment, RenderPassDescriptor, StoreOp,
    Texture, TextureDescriptor, TextureDimension, TextureFormat, TextureUsages,
};

use crate::gpu::{Failure, Gpu};
use crate::picture::Picture;
use crate::pipelines::Kind;
use crate::room::Staged;

/// The most lights of a scene: `shaders/scene.wgsl`.
pub(crate) const MAX_LIGHTS: usize = 16;

/// `Params` of `shaders/common.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
pub(crate) struct Params {
    pub(crate) color: [f32; 4],
    pub(crate) viewport: [f32; 2],
    pub(crate) size: f32,
    pub(crate) n_color: u32,
    pub(crate) indexed: u32,
    pub(crate) has_extra: u32,
    pub(crate) two_sided: u32,
    pub(crate) has_transforms: u32,
    pub(crate) base: u32,
    pub(crate) first: u32,
    pub(crate) first_copy: u32,
    /// So that the next begins at a multiple of 16.
    pub(crate) padding: u32,
    /// Width and height of an image.
    pub(crate) image: [u32; 4],
}

/// `World` of `shaders/scene.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(crate) struct World {
    pub(crate) view: [[f32; 4]; 4],
    pub(crate) projection: [[f32; 4]; 4],
    pub(crate) eye: [f32; 4],
    pub(crate) ambient: [f32; 4],
    pub(crate) n_lights: [u32; 4],
    pub(crate) lights: [[[f32; 4]; 2]; MAX_LIGHTS],
}

/// The arrays that a thing may have, in the order of the bindings.
pub(crate) const N_ARRAYS: usize = 5;
/// Which of them are indices.
const INDICES: usize = 2;
/// Positions or pixels, colours, indices, radii or normals, matrices.
pub(crate) type Arrays = [Option<Arc<Bytes>>; N_ARRAYS];

/// What an array holds: as it came from Python, or made of that.
pub(crate) enum Bytes {
    Given(PyBackedBytes),
    Made(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Given(bytes) => bytes,
            Self::Made(bytes) => bytes,
        }
    }
}

/// A thing to draw.
pub(crate) struct Draw {
    pub(crate) kind: Kind,
    pub(crate) params: Params,
    pub(crate) arrays: Arrays,
    /// Of `Kind::Picture`.
    pub(crate) picture: Option<Staged>,
    /// Vertices of each copy, and copies.
    pub(crate) n_vertices: u32,
    pub(crate) n_copies: u32,
    /// Which of the frame's scenes it stands in.
    pub(crate) world: usize,
}

/// What a frame consists of.
#[derive(Default)]
pub(crate) struct Frame {
    pub(crate) background: [f32; 3],
    /// A picture behind all, instead of the background: RGBA bytes, row by row from the top, width and height.
    pub(crate) cover: Option<(PyBackedBytes, u32, u32)>,
    pub(crate) draws: Vec<Draw>,
    pub(crate) worlds: Vec<World>,
}

impl Draw {
    /// Whether the device fetches vertices by the indices: each is computed once for all triangles around it.
    fn is_by_index(&self) -> bool {
        let is_of_vertices = match self.kind {
            Kind::Triangles => true,
            // Without normals a vertex reads the other vertices of its triangle.
            Kind::Mesh => self.params.has_extra != 0,
            _ => false,
        };
        is_of_vertices && self.params.indexed != 0
    }

    /// The numbers that shaders read.
    fn numbers(&self, viewport: [f32; 2]) -> Params {
        let mut params = Params {
            viewport,
            ..self.params
        };
        if self.is_by_index() {
            // The number of a vertex is its index then.
            (params.indexed, params.first, params.base) = (0, 0, 0);
        }
        params
    }
}

impl Frame {
    /// The last image that covers the whole picture pixel by pixel, and what is drawn after it: all, where there is none.
    /// What stands in space before it stays, for its depths.
    fn covered(&self, picture: &Picture) -> (Option<&Staged>, &[Draw]) {
        let fits = |s: &&Staged| (s.width, s.height) == (picture.width, picture.height);
        for (k, draw) in self.draws.iter().enumerate().rev() {
            if let Some(staged) = draw.picture.as_ref().filter(fits)
                && !self.draws[..k].iter().any(|d| d.kind.is_spatial())
            {
                return (Some(staged), &self.draws[k + 1..]);
            }
        }
        (None, &self.draws)
    }
}

/// An array on the device, with what it holds.
struct Held {
    bytes: Arc<Bytes>,
    buffer: Buffer,
}

#[derive(Default)]
struct Slot {
    params: Option<Buffer>,
    arrays: [Option<Held>; N_ARRAYS],
    texture: Option<Texture>,
    group: Option<BindGroup>,
}

/// What the device keeps from frame to frame.
pub(crate) struct Copies {
    slots: Vec<Slot>,
    worlds: Vec<(Buffer, BindGroup)>,
    /// Stands for arrays that are not there.
    nothing: Buffer,
}

fn buffer(gpu: &Gpu, size: u64, usage: BufferUsages) -> Buffer {
    gpu.device.create_buffer(&BufferDescriptor {
        label: None,
        size,
        usage: usage | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

/// Writes bytes of any length: the device wants words.
fn write(gpu: &Gpu, to: &Buffer, bytes: &[u8]) {
    let whole = bytes.len() & !3;
    gpu.queue.write_buffer(to, 0, &bytes[..whole]);
    if whole < bytes.len() {
        let mut last = [0; 4];
        last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
        gpu.queue.write_buffer(to, whole as u64, &last);
    }
}

impl Slot {
    /// Brings the thing's arrays to the device.
    fn fill(
        &mut self,
        gpu: &Gpu,
        encoder: &mut CommandEncoder,
        nothing: &Buffer,
        draw: &Draw,
        picture: &Picture,
    ) {
        if let Some(staged) = &draw.picture {
            self.stage(gpu, encoder, staged, picture.format());
            return;
        }
        if self.texture.take().is_some() {
            self.group = None;
        }
        let params = self.params.get_or_insert_with(|| {
            let size = size_of::<Params>() as u64;
            buffer(gpu, size, BufferUsages::STORAGE)
        });
        let numbers = draw.numbers([picture.width as f32, picture.height as f32]);
        gpu.queue
            .write_buffer(params, 0, bytemuck::bytes_of(&numbers));
        for (held, wanted) in self.arrays.iter_mut().zip(&draw.arrays) {
            if update(gpu, held, wanted.as_ref()) {
                self.group = None;
            }
        }
        if self.group.is_some() {
            return;
        }
        let mut entries = vec![BindGroupEntry {
            binding: 0,
            resource: params.as_entire_binding(),
        }];
        for (k, held) in self.arrays.iter().enumerate() {
            let held = held.as_ref().map_or(nothing, |held| &held.buffer);
            entries.push(BindGroupEntry {
                binding: k as u32 + 1,
                resource: held.as_entire_binding(),
            });
        }
        self.group = Some(gpu.device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &gpu.pipelines.draw,
            entries: &entries,
        }));
    }

    /// Brings a picture to the device.
    fn stage(
        &mut self,
        gpu: &Gpu,
        encoder: &mut CommandEncoder,
        staged: &Staged,
        format: TextureFormat,
    ) {
        let is_so = |t: &Texture| {
            (t.width(), t.height(), t.format()) == (staged.width, staged.height, format)
        };
        if !self.texture.as_ref().is_some_and(is_so) {
            *self = Self::default();
        }
        let texture = self.texture.get_or_insert_with(|| {
            gpu.device.create_texture(&TextureDescriptor {
                label: None,
                size: Extent3d {
                    width: staged.width,
                    height: staged.height,
                    depth_or_array_layers: 1,
                },
                mip_level_count: 1,
                sample_count: 1,
                dimension: TextureDimension::D2,
                format,
                usage: TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST,
                view_formats: &[],
            })
        });
        staged.copy(encoder, texture);
        self.group.get_or_insert_with(|| {
            gpu.device.create_bind_group(&BindGroupDescriptor {
                label: None,
                layout: &gpu.pipelines.texture,
                entries: &[BindGroupEntry {
                    binding: 0,
                    resource: BindingResource::TextureView(
                        &texture.create_view(&Default::default()),
                    ),
                }],
            })
        });
    }
}

/// Makes `held` hold what is wanted; whether it is another buffer afterwards.
fn update(gpu: &Gpu, held: &mut Option<Held>, wanted: Option<&Arc<Bytes>>) -> bool {
    let Some(wanted) = wanted.filter(|bytes| !bytes.is_empty()) else {
        return held.take().is_some();
    };
    let size = (wanted.len() as u64).next_multiple_of(4);
    match held {
        Some(held) if held.buffer.size() == size => {
            // What has not changed often comes as the same object.
            let is_same = std::ptr::eq(&**held.bytes, &***wanted);
            if !is_same && **held.bytes != ***wanted {
                write(gpu, &held.buffer, wanted);
            }
            held.bytes = wanted.clone();
            false
        }
        _ => {
            let buffer = buffer(gpu, size, BufferUsages::STORAGE | BufferUsages::INDEX);
            write(gpu, &buffer, wanted);
            let bytes = wanted.clone();
            *held = Some(Held { bytes, buffer });
            true
        }
    }
}

impl Copies {
    pub(crate) fn new(gpu: &Gpu) -> Self {
        Self {
            slots: Vec::new(),
            worlds: Vec::new(),
            nothing: buffer(gpu, 16, BufferUsages::STORAGE),
        }
    }

    fn fill_world(&mut self, gpu: &Gpu, k: usize, world: &World) {
        if k == self.worlds.len() {
            let size = size_of::<World>() as u64;
            let buffer = buffer(gpu, size, BufferUsages::STORAGE);
            let group = gpu.device.create_bind_group(&BindGroupDescriptor {
                label: None,
                layout: &gpu.pipelines.world,
                entries: &[BindGroupEntry {
                    binding: 0,
                    resource: buffer.as_entire_binding(),
                }],
            });
            self.worlds.push((buffer, group));
        }
        let bytes = bytemuck::bytes_of(world);
        gpu.queue.write_buffer(&self.worlds[k].0, 0, bytes);
    }

    /// Draws a frame.
    ///
    /// # Errors
    /// The device has no memory for its arrays, or is gone.
    pub(crate) fn draw(
        &mut self,
        gpu: &Gpu,
        encoder: &mut CommandEncoder,
        picture: &Picture,
        frame: &Frame,
    ) -> Result<(), Failure> {
        let (covering, draws) = frame.covered(picture);
        self.slots.resize_with(draws.len(), Slot::default);
        for (k, world) in frame.worlds.iter().enumerate() {
            self.fill_world(gpu, k, world);
        }
        for (slot, draw) in self.slots.iter_mut().zip(draws) {
            slot.fill(gpu, encoder, &self.nothing, draw, picture);
        }
        if let Err(failure) = gpu.check() {
            // Which of them hold what they should is not known.
            self.slots.clear();
            return Err(failure);
        }
        let [r, g, b] = frame.background.map(f64::from);
        let load = match (covering, &frame.cover) {
            (Some(staged), _) => {
                staged.copy(encoder, &picture.color);
                LoadOp::Load
            }
            (None, Some((rows, width, height))) => {
                picture.cover(gpu, rows, *width, *height);
                LoadOp::Load
            }
            (None, None) => LoadOp::Clear(Color { r, g, b, a: 1.0 }),
        };
        let mut pass = encoder.begin_render_pass(&RenderPassDescriptor {
            label: None,
            color_attachments: &[Some(RenderPassColorAttachment {
                view: &picture.color_view,
                depth_slice: None,
                resolve_target: None,
                ops: Operations {
                    load,
                    store: StoreOp::Store,
                },
            })],
            depth_stencil_attachment: Some(RenderPassDepthStencilAttachment {
                view: &picture.depth_view,
                depth_ops: Some(Operations {
                    load: LoadOp::Clear(0.0),
                    store: StoreOp::Store,
                }),
                stencil_ops: None,
            }),
            ..Default::default()
        });
        for (slot, draw) in self.slots.iter().zip(draws) {
            let pipeline = gpu.pipelines.of(&gpu.device, draw.kind, picture.format());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, slot.group.as_ref(), &[]);
            if draw.kind.is_spatial() {
                pass.set_bind_group(1, &self.worlds[draw.world].1, &[]);
            }
            match &slot.arrays[INDICES] {
                Some(indices) if draw.is_by_index() => {
                    let first = draw.params.first;
                    pass.set_index_buffer(indices.buffer.slice(..), IndexFormat::Uint32);
                    pass.draw_indexed(
                        first..first + draw.n_vertices,
                        draw.params.base as i32,
                        0..draw.n_copies,
                    );
                }
                _ => pass.draw(0..draw.n_vertices, 0..draw.n_copies),
            }
        }
        Ok(())
    }
}
