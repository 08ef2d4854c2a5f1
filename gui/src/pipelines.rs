//! How each kind of thing is drawn.

use std::sync::OnceLock;

use wgpu::{
    BindGroupLayout, BindGroupLayoutDescriptor, BindGroupLayoutEntry, BindingType, BlendState,
    BufferBindingType, ColorTargetState, ColorWrites, CompareFunction, DepthStencilState, Device,
    FragmentState, MultisampleState, PipelineLayout, PipelineLayoutDescriptor, PrimitiveState,
    PrimitiveTopology, RenderPipeline, RenderPipelineDescriptor, ShaderModule,
    ShaderModuleDescriptor, ShaderSource, ShaderStages, TextureFormat, TextureSampleType,
    TextureViewDimension, VertexState,
};

/// The pixels of a picture that nobody shows.
pub(crate) const RGBA: TextureFormat = TextureFormat::Rgba8Unorm;
/// Those of the surfaces of most desktops: a picture in the same order is copied there.
pub(crate) const BGRA: TextureFormat = TextureFormat::Bgra8Unorm;
/// The distances behind them: 1 at the near plane, 0 at the far one, where floats are fine.
pub(crate) const DEPTH: TextureFormat = TextureFormat::Depth32Float;

/// The kinds of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of numbers of any size.
    Image,
    /// Of pixels as the device has them.
    Picture,
    Triangles,
    Lines,
    Circles,
    Particles,
    SpaceLines,
    Mesh,
}

impl Kind {
    /// What Python calls it. Pictures are drawn by a call of their own.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "image" => Self::Image,
            "triangles" => Self::Triangles,
            "lines" => Self::Lines,
            "circles" => Self::Circles,
            "particles" => Self::Particles,
            "space_lines" => Self::SpaceLines,
            "mesh" => Self::Mesh,
            _ => return None,
        })
    }

    /// Whether it stands in space.
    pub(crate) fn is_spatial(self) -> bool {
        matches!(self, Self::Particles | Self::SpaceLines | Self::Mesh)
    }

    /// Numbers in a position.
    pub(crate) fn dimensions(self) -> usize {
        if self.is_spatial() { 3 } else { 2 }
    }
}

/// The pipelines, and the layouts of what they read.
pub(crate) struct Pipelines {
    /// One draw's numbers and storage: `shaders/common.wgsl`.
    pub(crate) draw: BindGroupLayout,
    /// A scene's camera and lights: `shaders/scene.wgsl`.
    pub(crate) world: BindGroupLayout,
    /// A picture to draw: `shaders/stretch.wgsl`.
    pub(crate) texture: BindGroupLayout,
    layouts: Layouts,
    rgba: Kinds,
    /// Made when there is such a picture.
    bgra: OnceLock<Kinds>,
}

struct Layouts {
    plane: PipelineLayout,
    stretched: PipelineLayout,
    space: PipelineLayout,
}

/// A pipeline for each kind of thing, to pictures of one format.
struct Kinds {
    image: RenderPipeline,
    picture: RenderPipeline,
    triangles: RenderPipeline,
    lines: RenderPipeline,
    circles: RenderPipeline,
    particles: RenderPipeline,
    space_lines: RenderPipeline,
    mesh: RenderPipeline,
}

const FLAT: &str = concat!(
    include_str!("shaders/common.wgsl"),
    include_str!("shaders/flat.wgsl")
);
const IMAGE: &str = concat!(
    include_str!("shaders/common.wgsl"),
    include_str!("shaders/image.wgsl")
);
const STRETCH: &str = include_str!("shaders/stretch.wgsl");
const SCENE: &str = concat!(
    include_str!("shaders/common.wgsl"),
    include_str!("shaders/scene.wgsl")
);

fn binding(number: u32, ty: BufferBindingType) -> BindGroupLayoutEntry {
    BindGroupLayoutEntry {
        binding: number,
        visibility: ShaderStages::VERTEX_FRAGMENT,
        ty: BindingType::Buffer {
            ty,
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    }
}

impl Pipelines {
    pub(crate) fn new(device: &Device) -> Self {
        // No uniforms: Mesa's software Vulkan recompiles a shader for each value of a uniform, and caches them all.
        let storage = BufferBindingType::Storage { read_only: true };
        let entries: Vec<_> = (0..=5).map(|number| binding(number, storage)).collect();
        let group = |entries: &[BindGroupLayoutEntry]| {
            device.create_bind_group_layout(&BindGroupLayoutDescriptor {
                label: None,
                entries,
            })
        };
        let draw = group(&entries);
        let world = group(&[binding(0, storage)]);
        let layout = |groups: &[Option<&BindGroupLayout>]| {
            device.create_pipeline_layout(&PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: groups,
                immediate_size: 0,
            })
        };
        let plane = layout(&[Some(&draw)]);
        let texture = group(&[BindGroupLayoutEntry {
            binding: 0,
            visibility: ShaderStages::FRAGMENT,
            ty: BindingType::Texture {
                sample_type: TextureSampleType::Float { filterable: false },
                view_dimension: TextureViewDimension::D2,
                multisampled: false,
            },
            count: None,
        }]);
        let stretched = layout(&[Some(&texture)]);
        let space = layout(&[Some(&draw), Some(&world)]);
        let layouts = Layouts {
            plane,
            stretched,
            space,
        };
        Self {
            rgba: Kinds::new(device, &layouts, RGBA),
            bgra: OnceLock::new(),
            layouts,
            draw,
            world,
            texture,
        }
    }

    /// How a kind is drawn to pictures of a format.
    pub(crate) fn of(&self, device: &Device, kind: Kind, format: TextureFormat) -> &RenderPipeline {
        let kinds = if format == BGRA {
            self.bgra
                .get_or_init(|| Kinds::new(device, &self.layouts, BGRA))
        } else {
            &self.rgba
        };
        kinds.of(kind)
    }
}

impl Kinds {
    fn new(device: &Device, layouts: &Layouts, format: TextureFormat) -> Self {
        let shader = |text: &'static str| {
            device.create_shader_module(ShaderModuleDescriptor {
                label: None,
                source: ShaderSource::Wgsl(text.into()),
            })
        };
        let (flat, image, scene) = (shader(FLAT), shader(IMAGE), shader(SCENE));
        let Layouts {
            plane,
            stretched,
            space,
        } = layouts;
        let make = |layout: &PipelineLayout, module: &ShaderModule, vertex, fragment, deep| {
            pipeline(device, layout, module, vertex, fragment, deep, format)
        };
        Self {
            picture: make(stretched, &shader(STRETCH), "cover", "stretch", false),
            image: make(plane, &image, "cover", "sample", false),
            triangles: make(plane, &flat, "triangles", "fill", false),
            lines: make(plane, &flat, "lines", "fill", false),
            circles: make(plane, &flat, "circles", "disc", false),
            particles: make(space, &scene, "particles", "ball", true),
            space_lines: make(space, &scene, "lines", "plain", true),
            mesh: make(space, &scene, "mesh", "surface", true),
        }
    }

    fn of(&self, kind: Kind) -> &RenderPipeline {
        match kind {
            Kind::Image => &self.image,
            Kind::Picture => &self.picture,
            Kind::Triangles => &self.triangles,
            Kind::Lines => &self.lines,
            Kind::Circles => &self.circles,
            Kind::Particles => &self.particles,
            Kind::SpaceLines => &self.space_lines,
            Kind::Mesh => &self.mesh,
        }
    }
}

fn pipeline(
    device: &Device,
    layout: &PipelineLayout,
    module: &ShaderModule,
    vertex: &str,
    fragment: &str,
    deep: bool,
    format: TextureFormat,
) -> RenderPipeline {
    device.create_render_pipeline(&RenderPipelineDescriptor {
        label: Some(vertex),
        layout: Some(layout),
        vertex: VertexState {
            module,
            entry_point: Some(vertex),
            compilation_options: Default::default(),
            buffers: &[],
        },
        primitive: PrimitiveState {
            topology: PrimitiveTopology::TriangleList,
            ..Default::default()
        },
        depth_stencil: Some(DepthStencilState {
            format: DEPTH,
            depth_write_enabled: Some(deep),
            depth_compare: Some(if deep {
                CompareFunction::GreaterEqual
            } else {
                CompareFunction::Always
            }),
            stencil: Default::default(),
            bias: Default::default(),
        }),
        multisample: MultisampleState::default(),
        fragment: Some(FragmentState {
            module,
            entry_point: Some(fragment),
            compilation_options: Default::default(),
            targets: &[Some(ColorTargetState {
                format,
                blend: Some(BlendState::ALPHA_BLENDING),
                write_mask: ColorWrites::ALL,
            })],
        }),
        multiview_mask: None,
        cache: None,
    })
}
