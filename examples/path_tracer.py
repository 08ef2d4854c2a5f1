"""A path tracer: light bounces through a scene that is given by signed distances.

In a white furnace, where light comes evenly from everywhere and nothing absorbs any, every pixel must be as bright as
the sky: what is missing is lost. Hart, Sphere Tracing, The Visual Computer 12, 1996.
"""

import numpy as np
from common import run

import aerogel as ti
from aerogel.math import vec2, vec3

FAR, GOLD, SILVER = 20.0, 2, 4  # The materials 2 and 4 are polished metal.
COLORS = ti.Matrix(
    [[0.40, 0.42, 0.48], [0.86, 0.36, 0.26], [0.95, 0.78, 0.45], [0.13, 0.35, 0.46], [0.9] * 3, [0.95, 0.65, 0.2]]
)


@ti.func
def nearest(p):
    """The distance to the scene, and which material is there: floor, a carved cube, its core, a ring, balls."""
    q = p - vec3(0, 0.62, 0)
    box = ti.max(abs(q) - 0.55, 0.0).norm() + ti.min((abs(q) - 0.55).max(), 0.0) - 0.06
    ring = vec2(vec2(p.x, p.z).norm() - 1.45, p.y - 0.12).norm() - 0.12
    best, material, balls = FAR, 0, vec2(FAR)
    for k in ti.static(range(8)):
        centre = vec3(2.1 * ti.cos(0.785 * k + 0.3), 0.2, 2.1 * ti.sin(0.785 * k + 0.3))
        balls[k % 2] = ti.min(balls[k % 2], (p - centre).norm() - 0.2)
    distances = ti.Vector([p.y, ti.max(box, 0.74 - q.norm()), q.norm() - 0.42, ring, balls.x, balls.y])
    for k in ti.static(range(6)):
        best, material = ti.min(best, distances[k]), k if distances[k] < best else material
    return best, material


@ti.func
def normal(p):
    """Differences towards the corners of a tetrahedron."""
    n = vec3(0.0)
    for way in ti.static([(1, -1, -1), (-1, -1, 1), (-1, 1, -1), (1, 1, 1)]):
        n += nearest(p + 5e-4 * vec3(way))[0] * vec3(way)
    return n.normalized()


@ti.func
def march(origin, way):
    """How far the scene is, and the material that is hit, or -1."""
    t, d, material = 1e-3, FAR, -1
    for _ in range(160):
        d, material = nearest(origin + t * way)
        if d < 2e-4 * (1 + t) or t > FAR:
            break
        t += d
    return t, material if d < 2e-4 * (1 + t) else -1


@ti.func
def sky(way):
    sun = ti.max(way.dot(vec3(-0.60, 0.66, 0.46).normalized()), 0.0)
    blue = ti.math.mix(vec3(0.95, 0.50, 0.36), vec3(0.16, 0.32, 0.72), ti.sqrt(ti.max(way.y, 0.0)))
    return 0.7 * blue + vec3(7.0, 5.2, 3.4) * ti.math.smoothstep(0.90, 0.985, sun)


@ti.kernel
def trace(image: ti.types.ndarray(vec3, ndim=2), samples: int, furnace: int):
    for i, j in image:
        for _ in range(samples):
            at = (vec2(i + ti.random(), j + ti.random()) - vec2(image.shape[0], image.shape[1]) / 2) / image.shape[1]
            p, through = vec3(2.6, 2.6, 5.0), vec3(1.0)
            back = (p - vec3(0, 0.42, 0)).normalized()
            right = vec3(back.z, 0, -back.x).normalized()
            way = (at.x * right + at.y * back.cross(right) - 1.45 * back).normalized()
            for _ in range(24 if furnace else 6):
                t, hit = march(p, way)
                if hit < 0:
                    image[i, j] += (through if furnace else through * sky(way)) / samples
                    break
                p += t * way
                n = normal(p)
                through *= vec3(1.0) if furnace else COLORS[hit, :]
                if hit == GOLD or hit == SILVER:
                    way -= 2 * way.dot(n) * n
                else:  # A direction by the cosine: a point of the unit ball's surface, on top of the normal.
                    z, angle = 2 * ti.random() - 1, 2 * ti.math.pi * ti.random()
                    around = ti.sqrt(1 - z * z) * vec2(ti.cos(angle), ti.sin(angle))
                    way = (1.0001 * n + vec3(around, z)).normalized()
                p += 2e-3 * n


def main(small=False):
    ti.init(arch=ti.cpu)
    furnace, image = np.zeros((96, 60, 3), np.float32), np.zeros((96, 60, 3) if small else (640, 400, 3), np.float32)
    trace(furnace, 4, 1)
    trace(image, 8 if small else 100, 0)
    toned = (image * (2.51 * image + 0.03)) / (image * (2.43 * image + 0.59) + 0.14)  # Narkowicz's fit of ACES
    return np.clip(toned, 0, 1) ** (1 / 2.2), {"furnace": furnace.mean(dtype=np.float64), "mean": image.mean()}


if __name__ == "__main__":
    run(main)
