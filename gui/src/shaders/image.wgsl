// An image over the whole picture. Its first axis goes right, its second up; the numbers are read as they lie.

struct Out {
    @builtin(position) position: vec4f,
    @location(0) at: vec2f,
}

@vertex fn cover(@builtin(vertex_index) k: u32) -> Out {
    let corner = vec2f(f32(k & 1u), f32(k >> 1u)) * 2.0;
    return Out(vec4f(2.0 * corner - 1.0, 0.0, 1.0), corner);
}

// Kinds of number: 0 f32, 1 bytes, 2 u16, 3 u32, 4 f16.
fn number(k: u32) -> f32 {
    switch params.image.w {
        case 0u: { return bitcast<f32>(words[k]); }
        case 1u: { return f32((words[k / 4u] >> (8u * (k % 4u))) & 255u) / 255.0; }
        case 2u: { return f32((words[k / 2u] >> (16u * (k % 2u))) & 65535u) / 65535.0; }
        case 3u: { return f32(words[k]) / 4294967295.0; }
        default: {
            let pair = unpack2x16float(words[k / 2u]);
            return select(pair.x, pair.y, k % 2u == 1u);
        }
    }
}

fn texel(x: i32, y: i32) -> vec4f {
    let size = vec2i(params.image.xy);
    let at = clamp(vec2i(x, y), vec2i(0), size - 1);
    let n = params.image.z;
    let k = (u32(at.x) * params.image.y + u32(at.y)) * n;
    if n == 1u {
        let v = number(k);
        return vec4f(v, v, v, 1.0);
    }
    if n == 2u {
        return vec4f(number(k), number(k + 1u), 0.0, 1.0);
    }
    return vec4f(number(k), number(k + 1u), number(k + 2u), 1.0);
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
