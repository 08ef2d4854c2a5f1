// An image over the whole picture: a word for each pixel. Its first axis goes right, its second up.

struct Out {
    @builtin(position) position: vec4f,
    @location(0) at: vec2f,
}

@vertex fn cover(@builtin(vertex_index) k: u32) -> Out {
    let corner = vec2f(f32(k & 1u), f32(k >> 1u)) * 2.0;
    return Out(vec4f(2.0 * corner - 1.0, 0.0, 1.0), corner);
}

fn texel(x: i32, y: i32) -> vec4f {
    let size = vec2i(params.image.xy);
    let at = clamp(vec2i(x, y), vec2i(0), size - 1);
    let pixel = u32(at.x) * params.image.y + u32(at.y);
    return vec4f(unpack4x8unorm(words[pixel]).rgb, 1.0);
}

@fragment fn sample(in: Out) -> @location(0) vec4f {
    let at = in.at * vec2f(params.image.xy) - 0.5;
    let low = floor(at);
    let t = at - low;
    let x = i32(low.x);
    let y = i32(low.y);
    if all(abs(t) < vec2f(1e-3)) {
        return texel(x, y);
    }
    let below = mix(texel(x, y), texel(x + 1, y), t.x);
    let above = mix(texel(x, y + 1), texel(x + 1, y + 1), t.x);
    return mix(below, above, t.y);
}
