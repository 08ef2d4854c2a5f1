// What stands in space. Depth is 1 at the near plane and 0 at the far one.

struct Light {
    position: vec4f,
    color: vec4f,
}

struct World {
    view: mat4x4f,
    projection: mat4x4f,
    eye: vec4f,
    ambient: vec4f,
    n_lights: vec4u,
    lights: array<Light, 16>,
}

@group(1) @binding(0) var<storage, read> world: World;

// What fragments of each kind read, and nothing else: software Vulkan prepares all of it for each triangle.
struct OfBall {
    @builtin(position) position: vec4f,
    @location(0) @interpolate(flat) color: vec4f,
    @location(1) at: vec3f,
    @location(2) corner: vec2f,
    @location(3) @interpolate(flat) radius: f32,
}

struct OfSurface {
    @builtin(position) position: vec4f,
    @location(0) color: vec4f,
    @location(1) at: vec3f,
    @location(2) normal: vec3f,
}

struct OfLine {
    @builtin(position) position: vec4f,
    @location(0) color: vec4f,
}

fn space_position(vertex: u32) -> vec3f {
    return vec3f(coordinate(3u * vertex), coordinate(3u * vertex + 1u), coordinate(3u * vertex + 2u));
}

fn is_placed(p: vec3f) -> bool {
    return is_number(p.x) && is_number(p.y) && is_number(p.z);
}

// Lambert's law for each light, after the ambient light.
fn lit(color: vec3f, at: vec3f, normal: vec3f) -> vec3f {
    var light = world.ambient.rgb;
    for (var k = 0u; k < world.n_lights.x; k++) {
        let way = world.lights[k].position.xyz - at;
        let facing = dot(normal, way) * inverseSqrt(max(dot(way, way), 1e-20));
        light += world.lights[k].color.rgb * max(facing, 0.0);
    }
    return color * light;
}

@vertex fn particles(@builtin(vertex_index) k: u32, @builtin(instance_index) number: u32) -> OfBall {
    let vertex = vertex_number(number);
    let center = space_position(vertex);
    let radius = size_of(vertex);
    let corner = around(k);
    let seen = (world.view * vec4f(center, 1.0)).xyz + vec3f(corner * radius, 0.0);
    var position = world.projection * vec4f(seen, 1.0);
    if !is_placed(center) {
        position = NOWHERE;
    }
    return OfBall(position, color_of(vertex), seen, corner, radius);
}

struct Ball {
    @location(0) color: vec4f,
    @builtin(frag_depth) depth: f32,
}

@fragment fn ball(in: OfBall) -> Ball {
    let squared = dot(in.corner, in.corner);
    if squared > 1.0 {
        discard;
    }
    // The sphere's point before the triangle.
    let towards = vec3f(in.corner, sqrt(1.0 - squared));
    let seen = in.at + vec3f(0.0, 0.0, towards.z * in.radius);
    let clip = world.projection * vec4f(seen, 1.0);
    // The view turns and moves: its transpose turns back.
    let turn = mat3x3f(world.view[0].xyz, world.view[1].xyz, world.view[2].xyz);
    let normal = towards * turn;
    let at = (seen - world.view[3].xyz) * turn;
    return Ball(vec4f(lit(in.color.rgb, at, normal), in.color.a), clamp(clip.z / clip.w, 0.0, 1.0));
}

@vertex fn mesh(@builtin(vertex_index) k: u32, @builtin(instance_index) number: u32) -> OfSurface {
    let vertex = vertex_number(k);
    var at = space_position(vertex);
    var normal = vec3f(0.0);
    if params.has_extra != 0u {
        normal = vec3f(extra[3u * vertex], extra[3u * vertex + 1u], extra[3u * vertex + 2u]);
    } else {
        let first = k - k % 3u;
        let a = space_position(vertex_number(first));
        let b = space_position(vertex_number(first + 1u));
        let c = space_position(vertex_number(first + 2u));
        normal = cross(b - a, c - a);
    }
    if params.has_transforms != 0u {
        // A matrix lies row by row.
        let m = 16u * (params.first_copy + number);
        let p = vec4f(at, 1.0);
        let n = vec4f(normal, 0.0);
        let x = vec4f(transforms[m], transforms[m + 1u], transforms[m + 2u], transforms[m + 3u]);
        let y = vec4f(transforms[m + 4u], transforms[m + 5u], transforms[m + 6u], transforms[m + 7u]);
        let z = vec4f(transforms[m + 8u], transforms[m + 9u], transforms[m + 10u], transforms[m + 11u]);
        at = vec3f(dot(x, p), dot(y, p), dot(z, p));
        normal = vec3f(dot(x, n), dot(y, n), dot(z, n));
    }
    var position = world.projection * (world.view * vec4f(at, 1.0));
    if !is_placed(at) {
        position = NOWHERE;
    }
    return OfSurface(position, color_of(vertex), at, normal);
}

@fragment fn surface(in: OfSurface, @builtin(front_facing) front: bool) -> @location(0) vec4f {
    var normal = normalize(in.normal + vec3f(0.0, 0.0, 1e-20));
    if params.two_sided != 0u && dot(normal, world.eye.xyz - in.at) < 0.0 {
        normal = -normal;
    }
    return vec4f(lit(in.color.rgb, in.at, normal), in.color.a);
}

// A line as wide as so many pixels, wherever it is.
@vertex fn lines(@builtin(vertex_index) k: u32, @builtin(instance_index) line: u32) -> OfLine {
    let a = vertex_number(2u * line);
    let b = vertex_number(2u * line + 1u);
    let corner = corner(k);
    let first = world.view * vec4f(space_position(a), 1.0);
    let last = world.view * vec4f(space_position(b), 1.0);
    // The part before the eye: what lies behind it has no place in the picture.
    let near = -1e-3;
    var from_seen = first;
    var to_seen = last;
    if first.z > near && last.z < near {
        from_seen = mix(first, last, (near - first.z) / (last.z - first.z));
    }
    if last.z > near && first.z < near {
        to_seen = mix(last, first, (near - last.z) / (first.z - last.z));
    }
    let start = world.projection * from_seen;
    let end = world.projection * to_seen;
    let along = (end.xy / end.w - start.xy / start.w) * params.viewport;
    let side = vec2f(-along.y, along.x) / max(length(along), 1e-20) * params.size * corner.y;
    var position = select(start, end, corner.x > 0.0);
    position += vec4f(side / params.viewport * position.w, 0.0, 0.0);
    let vertex = select(a, b, corner.x > 0.0);
    if !is_placed(space_position(a)) || !is_placed(space_position(b)) || (first.z > near && last.z > near) {
        position = NOWHERE;
    }
    return OfLine(position, color_of(vertex));
}

@fragment fn plain(in: OfLine) -> @location(0) vec4f {
    return in.color;
}
