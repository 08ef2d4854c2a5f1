// What lies in the plane: from (0, 0) at the lower left to (1, 1) at the upper right. Radii and widths are parts of the height.

struct Out {
    @builtin(position) position: vec4f,
    @location(0) color: vec4f,
    @location(1) at: vec2f,
    @location(2) radius: f32,
}

fn flat_position(vertex: u32) -> vec2f {
    return vec2f(coordinate(2u * vertex), coordinate(2u * vertex + 1u));
}

fn place(at: vec2f) -> vec4f {
    if !is_number(at.x) || !is_number(at.y) {
        return NOWHERE;
    }
    return vec4f(2.0 * at - 1.0, 0.0, 1.0);
}

@vertex fn triangles(@builtin(vertex_index) k: u32) -> Out {
    let vertex = vertex_number(k);
    return Out(place(flat_position(vertex)), color_of(vertex), vec2f(0.0), 0.0);
}

@vertex fn lines(@builtin(vertex_index) k: u32, @builtin(instance_index) line: u32) -> Out {
    let a = vertex_number(2u * line);
    let b = vertex_number(2u * line + 1u);
    let corner = corner(k);
    let vertex = select(a, b, corner.x > 0.0);
    let aspect = vec2f(params.viewport.x / params.viewport.y, 1.0);
    let along = (flat_position(b) - flat_position(a)) * aspect;
    let length = max(length(along), 1e-20);
    let side = vec2f(-along.y, along.x) / length * (0.5 * params.size * corner.y);
    return Out(place(flat_position(vertex) + side / aspect), color_of(vertex), vec2f(0.0), 0.0);
}

@vertex fn circles(@builtin(vertex_index) k: u32, @builtin(instance_index) number: u32) -> Out {
    let vertex = vertex_number(number);
    let pixels = size_of(vertex) * params.viewport.y;
    // Half a pixel more, for the soft edge.
    let reach = pixels + 0.5;
    let at = around(k) * reach;
    return Out(place(flat_position(vertex) + at / params.viewport), color_of(vertex), at, pixels);
}

@fragment fn fill(in: Out) -> @location(0) vec4f {
    return in.color;
}

@fragment fn disc(in: Out) -> @location(0) vec4f {
    let cover = clamp(in.radius + 0.5 - length(in.at), 0.0, 1.0);
    if cover <= 0.0 {
        discard;
    }
    return vec4f(in.color.rgb, in.color.a * cover);
}
