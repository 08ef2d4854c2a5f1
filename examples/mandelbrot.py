"""The Mandelbrot set, deep in Seahorse Valley, in double precision and with four samples for each pixel.

Colours follow the smooth number of steps, light the distance to the set, which the derivative of the orbit gives.
"""

import numpy as np
from common import halve, palette, run

import aerogel as ti


@ti.func
def squared(z):
    return ti.Vector([z.x * z.x - z.y * z.y, 2 * z.x * z.y])


@ti.func
def product(a, b):
    return ti.Vector([a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x])


@ti.func
def escape(c, limit):
    """Steps until an orbit leaves a circle of radius 256 (or `limit`), with a fraction; the distance to the set."""
    z, slope, n = ti.Vector([0.0, 0.0], ti.f64), ti.Vector([0.0, 0.0], ti.f64), 0
    while n < limit and z.norm_sqr() < 65536:
        slope = 2 * product(z, slope) + ti.Vector([1.0, 0.0])
        z = squared(z) + c
        n += 1
    smooth, distance = ti.cast(n, ti.f64), ti.cast(0.0, ti.f64)
    if n < limit:
        r = z.norm()
        smooth -= ti.log(ti.log(r) / ti.log(256.0)) / ti.log(2.0)
        distance = 2 * r * ti.log(r) / slope.norm()
    return smooth, distance


@ti.kernel
def mandelbrot(out: ti.types.ndarray(ti.math.vec2, ndim=2), x: ti.f64, y: ti.f64, width: ti.f64, limit: int) -> int:
    """Steps and distance for each pixel, the distance in pixels; the number of pixels inside."""
    inside = 0
    for i, j in out:
        pixel = width / out.shape[0]
        c = ti.Vector([x + (i + 0.5 - out.shape[0] / 2) * pixel, y + (j + 0.5 - out.shape[1] / 2) * pixel])
        smooth, distance = escape(c, limit)
        inside += smooth >= limit
        out[i, j] = [smooth, distance / pixel]
    return inside


def area(n, limit=2000):
    """The area of the set, 1.5066, by counting n x n points; and how far the picture is from its mirror image."""
    out = np.zeros((n, n, 2), np.float32)
    inside = mandelbrot(out, -0.75, 0.0, 2.6, limit)
    return inside * (2.6 / n) ** 2, np.mean(out[..., 0] != out[:, ::-1, 0])


def main(small=False):
    ti.init(arch=ti.cpu)
    width, height = (160, 100) if small else (640, 400)
    out = np.zeros((2 * width, 2 * height, 2), np.float32)
    mandelbrot(out, -0.743643135, 0.131825963, 0.000051299, 500 if small else 3000)
    steps, distance = out[..., 0], out[..., 1]
    outside = distance > 0
    colors = palette(
        (np.log(np.maximum(steps, 1)) * 1.4) % 1, "0b1d51 1b6ca8 7fd1e8 fff6d6 ffb347 c8553d 4a1942 0b1d51"
    )
    shade = np.tanh(1.2 * distance) ** 0.6
    image = np.where(outside[..., None], colors * shade[..., None], 0.0)
    measured, asymmetry = area(200 if small else 1000)
    return halve(image), {"area": measured, "asymmetry": asymmetry}


if __name__ == "__main__":
    run(main)
