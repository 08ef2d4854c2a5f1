"""A cloth falls over a ball: points at fixed distances, moved by position based dynamics.

Each point gathers the corrections of all its neighbours, so the result does not depend on threads (Müller et al. 2007).
"""

import numpy as np
from common import halve, rotation, run, sample

import aerogel as ti
from aerogel.math import vec2, vec3

RADIUS, SIDE, DT, FINE = 0.36, 1.3, 0.004, 24
VIEW = ti.Matrix((rotation(0, np.radians(24)) @ rotation(1, np.radians(32))).tolist())
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
            self.x[p], self.old[p] = x + 0.995 * (x - self.old[p]) - DT**2 * vec3(0, 9.81, 0), x

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
            on_ball = RADIUS * (0.7 * x.normalized() + 0.3 * self.old[i, j].normalized()).normalized()
            self.new[i, j] = on_ball if x.norm() < RADIUS else x
        for p in ti.grouped(self.x):
            self.x[p] = self.new[p]


@ti.func
def shade(color, normal):
    """Lit from the left and above, with a sheen along the edges; the viewer looks along the third axis."""
    n = normal * (1 if normal.z > 0 else -1)
    light = ti.max(n.dot(vec3(-0.5, 0.7, 0.5).normalized()), 0.0)
    return color * (0.22 + 0.85 * light) + 0.25 * (1 - n.z) ** 3 + 0.35 * light**24


@ti.kernel
def draw(
    x: ti.template(),
    image: ti.types.ndarray(vec3, ndim=2),
    depth: ti.types.ndarray(ndim=2),
    last: ti.types.ndarray(ndim=2),
):
    """The ball, and before it samples of the cloth: of each pixel's, the last one of the nearest counts."""
    scale, size = 0.62 * image.shape[0], ti.Vector([image.shape[0], image.shape[1]])
    for i, j in image:
        at = (vec2(i, j) - size / 2) / scale
        image[i, j] = ti.math.mix(vec3(0.16, 0.19, 0.27), vec3(0.42, 0.47, 0.55), j / image.shape[1])
        if at.norm() < RADIUS - 0.01:
            depth[i, j] = ti.sqrt((RADIUS - 0.01) ** 2 - at.norm_sqr())
            image[i, j] = shade(vec3(0.83, 0.80, 0.74), vec3(at, depth[i, j]).normalized())
    for step in ti.static(range(3)):
        for i, j in ti.ndrange(FINE * (x.shape[0] - 1), FINE * (x.shape[1] - 1)):
            at, e = vec2(i, j) / FINE, ti.Vector.unit(2, 0, float) / 2
            across, along = sample(x, at + e) - sample(x, at - e), sample(x, at + e.yx) - sample(x, at - e.yx)
            p, normal = VIEW @ sample(x, at), (VIEW @ along.cross(across)).normalized()
            pixel = ti.math.clamp(ti.cast(p.xy * scale + size / 2, int), 0, size - 1)
            number = i * FINE * x.shape[1] + j
            if ti.static(step == 0):
                ti.atomic_max(depth[pixel], p.z)
            elif ti.static(step == 1):
                if p.z > depth[pixel] - 0.003:
                    ti.atomic_max(last[pixel], number)
            elif last[pixel] == number:
                stripe = (16 * i // (FINE * x.shape[0]) + 16 * j // (FINE * x.shape[1])) % 2
                image[pixel] = shade(vec3(0.80, 0.16, 0.20) if stripe == 0 else vec3(0.95, 0.86, 0.72), normal)


def main(small=False):
    ti.init(arch=ti.cpu)
    cloth = Cloth(33 if small else 129)
    for _ in range(60 if small else 170):
        cloth.fall()
        for _ in range(30):
            cloth.relax()
    x = cloth.x.to_numpy()
    strain = np.linalg.norm(np.diff(x, axis=0), axis=-1) / cloth.width - 1
    numbers = {"mean strain": np.abs(strain).mean(), "nearest to the ball": np.linalg.norm(x, axis=-1).min() / RADIUS}
    numbers["asymmetry"] = np.abs(x[::-1] * [-1, 1, 1] - x).max()
    image = np.zeros((320, 200, 3) if small else (1280, 960, 3), np.float32)
    depth, last = (np.full(image.shape[:2], first, kind) for first, kind in [(-10, np.float32), (-1, np.int32)])
    draw(cloth.x, image, depth, last)
    return halve(np.clip(image, 0, 1)), numbers


if __name__ == "__main__":
    run(main)
