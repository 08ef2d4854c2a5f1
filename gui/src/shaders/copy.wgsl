// A picture, pixel by pixel.

@group(0) @binding(0) var picture: texture_2d<f32>;

@vertex fn cover(@builtin(vertex_index) k: u32) -> @builtin(position) vec4f {
    let corner = vec2f(f32(k & 1u), f32(k >> 1u)) * 2.0;
    return vec4f(2.0 * corner - 1.0, 0.0, 1.0);
}

@fragment fn copy(@builtin(position) at: vec4f) -> @location(0) vec4f {
    return vec4f(textureLoad(picture, vec2i(at.xy), 0).rgb, 1.0);
}
