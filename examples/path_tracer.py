"""Light bounces through a scene of signed distances: a path tracer that marches spheres.

In a white furnace, where light comes evenly from everywhere and nothing absorbs any, every pixel must be as bright as
the sky: what is missing is lost. Hart, Sphere Tracing, The Visual Computer 12, 1996.
"""

import numpy as np
from common import run

import aerogel as ti
from aerogel.math import vec3

FAR = 20.0


@ti.func
def nearest(p):
    """The distance to the scene, and which material is there: floor, a carved cube, a ring, balls."""
    best, material = p.y, 0
    cube = ti.abs(p - vec3(0, 0.62, 0)) - 0.55
    box = ti.max(cube, 0.0).norm() + ti.min(cube.max(), 0.0) - 0.06
    carved = ti.max(box, 0.74 - (p - vec3(0, 0.62, 0)).norm())
    if carved < best:
        best, material = carved, 1
    inner = (p - vec3(0, 0.62, 0)).norm() - 0.42
    if inner < best:
        best, material = inner, 2
    away = p - vec3(0, 0.12, 0)
    ring = ti.Vector([ti.Vector([away.x, away.z]).norm() - 1.45, away.y]).norm() - 0.12
    if ring < best:
        best, material = ring, 3
    for k in ti.static(range(8)):
        at = vec3(2.1 * ti.cos(0.785 * k + 0.3), 0.2, 2.1 * ti.sin(0.785 * k + 0.3))
        ball = (p - at).norm() - 0.2
        if ball < best:
            best, material = ball, 4 + k % 2
    return best, material


@ti.func
def normal(p):
    """Differences towards the corners of a tetrahedron."""
    n = vec3(0.0)
    for way in ti.static([(1, -1, -1), (-1, -1, 1), (-1, 1, -1), (1, 1, 1)]):
        d, _ = nearest(p + 5e-4 * vec3(way))
        n += d * vec3(way)
    return n.normalized()


@ti.func
def march(origin, way):
    """How far the scene is, and the material that is hit, or -1."""
    t, hit = 1e-3, -1
    for _ in range(160):
        d, material = nearest(origin + t * way)
        if d < 2e-4 * (1 + t):
            hit = material
            break
        t += d
        if t > FAR:
            break
    return t, hit


@ti.func
def sky(way):
    sun = ti.max(way.dot(vec3(-0.60, 0.66, 0.46).normalized()), 0.0)
    blue = ti.math.mix(vec3(0.95, 0.50, 0.36), vec3(0.16, 0.32, 0.72), ti.sqrt(ti.max(way.y, 0.0)))
    return 0.7 * blue + vec3(7.0, 5.2, 3.4) * ti.math.smoothstep(0.90, 0.985, sun)


@ti.kernel
def trace(image: ti.types.ndarray(vec3, ndim=2), samples: int, furnace: int):
    colors = ti.Matrix(
        [
            [0.40, 0.42, 0.48],
            [0.86, 0.36, 0.26],
            [0.95, 0.78, 0.45],
            [0.13, 0.35, 0.46],
            [0.9, 0.9, 0.9],
            [0.95, 0.65, 0.2],
        ]
    )
    for i, j in image:
        total, shift = vec3(0.0), ti.Vector([ti.random(), ti.random()])
        for sample in range(samples):
            x = (i + ti.random() - image.shape[0] / 2) / image.shape[1]
            y = (j + ti.random() - image.shape[1] / 2) / image.shape[1]
            p, way = vec3(2.6, 2.6, 5.0), vec3(0.0)
            back = (p - vec3(0, 0.42, 0)).normalized()
            right = vec3(0, 1, 0).cross(back).normalized()
            way = (x * right + y * back.cross(right) - 1.45 * back).normalized()
            through = vec3(1.0)
            for bounce in range(24 if furnace else 6):
                t, hit = march(p, way)
                if hit < 0:
                    total += through if furnace else through * sky(way)
                    break
                p += t * way
                n = normal(p)
                if hit == 2 or hit == 4:  # polished metal
                    way -= 2 * way.dot(n) * n
                else:  # a direction by the cosine: a point of the unit ball's surface, on top of the normal
                    # First directions are spread evenly, by the golden ratio's relative for two dimensions.
                    u = ti.math.fract(shift + sample * ti.Vector([0.7548776662, 0.5698402910]))
                    if bounce > 0:
                        u = ti.Vector([ti.random(), ti.random()])
                    z, angle = 2 * u.x - 1, 2 * ti.math.pi * u.y
                    r = ti.sqrt(1 - z * z)
                    way = (1.0001 * n + vec3(r * ti.cos(angle), r * ti.sin(angle), z)).normalized()
                p += 2e-3 * n
                if not furnace:
                    through *= vec3(colors[hit, 0], colors[hit, 1], colors[hit, 2])
        image[i, j] = total / samples


def main(small=False):
    ti.init(arch=ti.cpu)
    furnace, image = np.zeros((96, 60, 3), np.float32), np.zeros((96, 60, 3) if small else (640, 400, 3), np.float32)
    trace(furnace, 4, 1)
    trace(image, 8 if small else 80, 0)
    toned = (image * (2.51 * image + 0.03)) / (image * (2.43 * image + 0.59) + 0.14)  # Narkowicz's fit of ACES
    return np.clip(toned, 0, 1) ** (1 / 2.2), {"furnace": furnace.mean(dtype=np.float64), "mean": image.mean()}


if __name__ == "__main__":
    run(main)
