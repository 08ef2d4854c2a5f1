"""A cloth falls over a ball: points at fixed distances, moved by position based dynamics.

Each point gathers the corrections of all its neighbours, so the result does not depend on threads. Müller et al.,
Position Based Dynamics, Journal of Visual Communication and Image Representation 18(2), 2007.
"""

import numpy as np
from common import halve, run

import aerogel as ti
from aerogel.math import vec3

RADIUS, SIDE, DT, FINE = 0.36, 1.3, 0.004, 24
WAYS = [(s * k, s * l) for k, l in [(1, 0), (0, 1), (1, 1), (1, -1), (2, 0), (0, 2)] for s in (-1, 1)]


@ti.data_oriented
class Cloth:
    """n x n points over a square, and where they were a step ago."""

    def __init__(self, n):
        self.n, self.width = n, SIDE / (n - 1)
        self.x, self.old, self.new = (ti.Vector.field(3, float, (n, n)) for _ in range(3))
        i, j = np.mgrid[:n, :n] - (n - 1) / 2
        self.x.from_numpy(np.stack([i * self.width, RADIUS + 0.02 + 0 * i, j * self.width], -1).astype(np.float32))
        self.old.copy_from(self.x)

    @ti.kernel
    def fall(self):
        for p in ti.grouped(self.x):
            x = self.x[p]
            self.x[p] += 0.995 * (x - self.old[p]) + DT**2 * vec3(0, -9.81, 0)
            self.old[p] = x

    @ti.kernel
    def relax(self):
        """Each point moves as its distances to its neighbours want it, and leaves the ball, which holds it."""
        for i, j in self.x:
            x, change = self.x[i, j], vec3(0.0)
            for way in ti.static(WAYS):
                k, l = i + way[0], j + way[1]
                if 0 <= k and k < self.n and 0 <= l and l < self.n:
                    d = self.x[k, l] - x
                    change += (1 - self.width * ti.sqrt(float(way[0] ** 2 + way[1] ** 2)) / d.norm()) * d
            x += change / 10
            if x.norm() < RADIUS:
                x = RADIUS * (0.7 * x.normalized() + 0.3 * self.old[i, j].normalized()).normalized()
            self.new[i, j] = x
        for p in ti.grouped(self.x):
            self.x[p] = self.new[p]

    def step(self, sweeps=30):
        self.fall()
        for _ in range(sweeps):
            self.relax()


@ti.func
def shade(color, normal):
    """Lit from the left and above, with a sheen along the edges; the viewer looks along the third axis."""
    n = normal * (1 if normal.z > 0 else -1)
    light = ti.max(n.dot(vec3(-0.5, 0.7, 0.5).normalized()), 0.0)
    return color * (0.22 + 0.85 * light) + 0.25 * (1 - n.z) ** 3 + 0.35 * light**24


@ti.kernel
def draw(x: ti.template(), view: ti.math.mat3, image: ti.types.ndarray(vec3, ndim=2), depth: ti.types.ndarray(ndim=2)):
    """The ball, and before it samples of the cloth: of each pixel's, the nearest counts."""
    scale = 0.62 * image.shape[0]
    for i, j in image:
        at = ti.Vector([i - image.shape[0] / 2, j - image.shape[1] / 2]) / scale
        depth[i, j] = -10.0
        image[i, j] = ti.math.mix(vec3(0.16, 0.19, 0.27), vec3(0.42, 0.47, 0.55), j / image.shape[1])
        if at.norm() < RADIUS - 0.01:
            depth[i, j] = ti.sqrt((RADIUS - 0.01) ** 2 - at.norm_sqr())
            image[i, j] = shade(vec3(0.83, 0.80, 0.74), vec3(at, depth[i, j]).normalized())
    for nearest in ti.static([False, True]):
        for i, j in ti.ndrange(FINE * (x.shape[0] - 1), FINE * (x.shape[1] - 1)):
            k, l, s, t = i // FINE, j // FINE, i % FINE / FINE, j % FINE / FINE
            a, b = ti.math.mix(x[k, l], x[k + 1, l], s), ti.math.mix(x[k, l + 1], x[k + 1, l + 1], s)
            along = ti.math.mix(x[k + 1, l] - x[k, l], x[k + 1, l + 1] - x[k, l + 1], t)
            p, normal = view @ ti.math.mix(a, b, t), (view @ (b - a).cross(along)).normalized()
            pixel = ti.cast(p.xy * scale + ti.Vector([image.shape[0], image.shape[1]]) / 2, int)
            if 0 <= pixel.min() and pixel.x < image.shape[0] and pixel.y < image.shape[1]:
                if ti.static(not nearest):
                    ti.atomic_max(depth[pixel], p.z)
                elif p.z > depth[pixel] - 0.003:
                    stripe = (16 * i // (FINE * x.shape[0]) + 16 * j // (FINE * x.shape[1])) % 2
                    image[pixel] = shade(vec3(0.80, 0.16, 0.20) if stripe == 0 else vec3(0.95, 0.86, 0.72), normal)


def main(small=False):
    ti.init(arch=ti.cpu)
    cloth = Cloth(33 if small else 129)
    for _ in range(60 if small else 170):
        cloth.step()
    x = cloth.x.to_numpy()
    edges = np.linalg.norm(np.diff(x, axis=0), axis=-1) / cloth.width
    numbers = {
        "mean strain": np.abs(edges - 1).mean(),
        "nearest to the ball": np.linalg.norm(x, axis=-1).min() / RADIUS,
        "asymmetry": np.abs(x[::-1] * [-1, 1, 1] - x).max(),
    }
    a, b = np.radians(32), np.radians(24)
    turn = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
    tilt = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    image = np.zeros((320, 200, 3) if small else (1280, 960, 3), np.float32)
    draw(cloth.x, ti.Matrix((tilt @ turn).tolist()), image, np.zeros(image.shape[:2], np.float32))
    return halve(np.clip(image, 0, 1)), numbers


if __name__ == "__main__":
    run(main)
