// What every draw has: numbers of its own, and storage that shaders read by index.
// Positions, colours and sizes lie as in the arrays that they come from; nothing is packed anew.

struct Params {
    color: vec4f,
    // The picture's size in pixels.
    viewport: vec2f,
    // A radius or a width.
    size: f32,
    // Components of a colour for each vertex; 0: one colour for all.
    n_color: u32,
    // Whether vertices are named by indices, and whether each has a size, or a normal.
    indexed: u32,
    has_extra: u32,
    two_sided: u32,
    has_transforms: u32,
    // What is added to an index, the first index, the first copy.
    base: u32,
    first: u32,
    first_copy: u32,
    padding: u32,
    // Of an image: width, height, channels, kind of number.
    image: vec4u,
}

@group(0) @binding(0) var<storage, read> params: Params;
// Positions, or an image's numbers, as they lie.
@group(0) @binding(1) var<storage, read> words: array<u32>;
@group(0) @binding(2) var<storage, read> colors: array<f32>;
@group(0) @binding(3) var<storage, read> indices: array<u32>;
@group(0) @binding(4) var<storage, read> extra: array<f32>;
@group(0) @binding(5) var<storage, read> transforms: array<f32>;

fn coordinate(k: u32) -> f32 {
    return bitcast<f32>(words[k]);
}

fn vertex_number(k: u32) -> u32 {
    if params.indexed != 0u {
        return indices[params.first + k] + params.base;
    }
    return params.first + k + params.base;
}

fn color_of(vertex: u32) -> vec4f {
    if params.n_color == 0u {
        return params.color;
    }
    let at = vertex * params.n_color;
    let alpha = select(1.0, colors[at + params.n_color - 1u], params.n_color == 4u);
    return vec4f(colors[at], colors[at + 1u], colors[at + 2u], alpha);
}

fn size_of(vertex: u32) -> f32 {
    if params.has_extra != 0u {
        return extra[vertex];
    }
    return params.size;
}

// A corner of the square from (-1, -1) to (1, 1), as two triangles.
fn corner(k: u32) -> vec2f {
    let right = k == 1u || k == 2u || k == 4u;
    let up = k == 2u || k == 4u || k == 5u;
    return vec2f(select(-1.0, 1.0, right), select(-1.0, 1.0, up));
}

// A corner of a triangle around the circle of radius 1: fewer vertices than a square's, and little more area.
fn around(k: u32) -> vec2f {
    return vec2f(1.7320508 * (f32(k & 1u) - f32(k >> 1u)), select(-1.0, 2.0, k == 0u));
}

// What is outside of everything: a vertex that is not drawn.
const NOWHERE = vec4f(2.0, 2.0, 2.0, 1.0);

fn is_number(x: f32) -> bool {
    return abs(x) < 1e30;
}
