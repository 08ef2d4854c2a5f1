// A picture stretched over the whole: row by row from the top.

@group(0) @binding(0) var picture: texture_2d<f32>;

struct Out {
    @builtin(position) position: vec4f,
    @location(0) at: vec2f,
}

@vertex fn cover(@builtin(vertex_index) k: u32) -> Out {
    let corner = vec2f(f32(k & 1u), f32(k >> 1u)) * 2.0;
    return Out(vec4f(2.0 * corner - 1.0, 0.0, 1.0), vec2f(corner.x, 1.0 - corner.y));
}

fn texel(x: i32, y: i32) -> vec4f {
    let at = clamp(vec2i(x, y), vec2i(0), vec2i(textureDimensions(picture)) - 1);
    return vec4f(textureLoad(picture, at, 0).rgb, 1.0);
}

@fragment fn stretch(in: Out) -> @location(0) vec4f {
    let at = in.at * vec2f(textureDimensions(picture)) - 0.5;
    let low = floor(at);
    let t = at - low;
    let x = i32(low.x);
    let y = i32(low.y);
    let above = mix(texel(x, y), texel(x + 1, y), t.x);
    let below = mix(texel(x, y + 1), texel(x + 1, y + 1), t.x);
    return mix(above, below, t.y);
}
