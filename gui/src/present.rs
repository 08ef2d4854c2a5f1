//! A picture brought to a window on the screen.

use std::sync::Arc;

use wgpu::{
    BindGroupDescriptor, BindGroupEntry, BindingResource, Color, CommandEncoder,
    CommandEncoderDescriptor, CurrentSurfaceTexture, FragmentState, LoadOp, MultisampleState,
    Operations, PresentMode, PrimitiveState, RenderPassColorAttachment, RenderPassDescriptor,
    RenderPipeline, RenderPipelineDescriptor, ShaderModuleDescriptor, ShaderSource, StoreOp,
    Surface, SurfaceConfiguration, Texture, TextureFormat, TextureUsages, VertexState,
};
use winit::window::Window;

use crate::gpu::{Failure, Gpu};
use crate::picture::Picture;
use crate::pipelines::{BGRA, RGBA};

/// A window's surface.
pub(crate) struct Screen {
    surface: Surface<'static>,
    config: SurfaceConfiguration,
    /// Draws pictures of another order than the surface's.
    copy: RenderPipeline,
}

impl Screen {
    pub(crate) fn new(gpu: &Gpu, window: Arc<Window>, vsync: bool) -> Result<Self, Failure> {
        let size = window.inner_size();
        let surface = gpu
            .instance
            .create_surface(window)
            .map_err(|e| Failure(format!("Vulkan cannot draw into the window: {e}")))?;
        let able = surface.get_capabilities(&gpu.adapter);
        let plain = [BGRA, RGBA];
        let format = plain.into_iter().find(|f| able.formats.contains(f));
        let mut config = surface
            .get_default_config(&gpu.adapter, size.width.max(1), size.height.max(1))
            .ok_or_else(|| Failure("Vulkan cannot draw into the window".to_owned()))?;
        config.format = format.unwrap_or(config.format);
        config.present_mode = if vsync {
            PresentMode::AutoVsync
        } else {
            PresentMode::AutoNoVsync
        };
        // Where it may be copied to, nothing is drawn to show a picture.
        config.usage |= able.usages & TextureUsages::COPY_DST;
        surface.configure(&gpu.device, &config);
        gpu.check()?;
        let copy = copy_pipeline(gpu, config.format);
        Ok(Self {
            surface,
            config,
            copy,
        })
    }

    /// Which order of bytes pictures have best.
    pub(crate) fn format(&self) -> TextureFormat {
        match self.config.format {
            BGRA if self.is_copied_to() => BGRA,
            _ => RGBA,
        }
    }

    fn is_copied_to(&self) -> bool {
        self.config.usage.contains(TextureUsages::COPY_DST)
    }

    /// Shows the picture; nothing happens while the window cannot be seen.
    pub(crate) fn show(&mut self, gpu: &Gpu, picture: &Picture) -> Result<(), Failure> {
        if (self.config.width, self.config.height) != (picture.width, picture.height) {
            (self.config.width, self.config.height) = (picture.width, picture.height);
            self.surface.configure(&gpu.device, &self.config);
        }
        let shown = match self.surface.get_current_texture() {
            CurrentSurfaceTexture::Success(shown) | CurrentSurfaceTexture::Suboptimal(shown) => {
                shown
            }
            CurrentSurfaceTexture::Timeout | CurrentSurfaceTexture::Occluded => return Ok(()),
            CurrentSurfaceTexture::Outdated => {
                // The next frame finds it as it is then.
                self.surface.configure(&gpu.device, &self.config);
                return gpu.check();
            }
            CurrentSurfaceTexture::Lost | CurrentSurfaceTexture::Validation => {
                gpu.check()?;
                return Err(Failure("the window's surface is lost".to_owned()));
            }
        };
        let mut encoder = gpu
            .device
            .create_command_encoder(&CommandEncoderDescriptor::default());
        if self.is_copied_to() && picture.format() == self.config.format {
            let size = picture.color.size();
            encoder.copy_texture_to_texture(
                picture.color.as_image_copy(),
                shown.texture.as_image_copy(),
                size,
            );
        } else {
            self.draw(gpu, &mut encoder, picture, &shown.texture);
        }
        gpu.queue.submit([encoder.finish()]);
        gpu.queue.present(shown);
        gpu.check()
    }

    fn draw(&self, gpu: &Gpu, encoder: &mut CommandEncoder, picture: &Picture, to: &Texture) {
        let group = gpu.device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &self.copy.get_bind_group_layout(0),
            entries: &[BindGroupEntry {
                binding: 0,
                resource: BindingResource::TextureView(&picture.color_view),
            }],
        });
        let mut pass = encoder.begin_render_pass(&RenderPassDescriptor {
            label: None,
            color_attachments: &[Some(RenderPassColorAttachment {
                view: &to.create_view(&Default::default()),
                depth_slice: None,
                resolve_target: None,
                ops: Operations {
                    load: LoadOp::Clear(Color::BLACK),
                    store: StoreOp::Store,
                },
            })],
            ..Default::default()
        });
        pass.set_pipeline(&self.copy);
        pass.set_bind_group(0, &group, &[]);
        pass.draw(0..3, 0..1);
    }
}

fn copy_pipeline(gpu: &Gpu, format: TextureFormat) -> RenderPipeline {
    let module = gpu.device.create_shader_module(ShaderModuleDescriptor {
        label: None,
        source: ShaderSource::Wgsl(include_str!("shaders/copy.wgsl").into()),
    });
    gpu.device
        .create_render_pipeline(&RenderPipelineDescriptor {
            label: Some("copy"),
            layout: None,
            vertex: VertexState {
                module: &module,
                entry_point: Some("cover"),
                compilation_options: Default::default(),
                buffers: &[],
            },
            primitive: PrimitiveState::default(),
            depth_stencil: None,
            multisample: MultisampleState::default(),
            fragment: Some(FragmentState {
                module: &module,
                entry_point: Some("copy"),
                compilation_options: Default::default(),
                targets: &[Some(format.into())],
            }),
            multiview_mask: None,
            cache: None,
        })
}
