"""Puffs of hot smoke rise from a burner, in three dimensions, and the light that they scatter is gathered along rays.

The steps are those of `fluid.py`, with buoyancy; Fedkiw, Stam and Jensen, Visual Simulation of Smoke, SIGGRAPH 2001,
show how to light smoke by single scattering. The burner sways, or else left and right would stay mirror images.
"""

import numpy as np
from common import run, sample
from fluid import Fluid

import aerogel as ti
from aerogel.math import vec2, vec3


@ti.data_oriented
class Smoke(Fluid):
    """A box of n x 2n x n cells."""

    def __init__(self, n):
        super().__init__(n, 2 * n, n)
        self.n = n
        self.soot, self.new_soot, self.light = (ti.field(float, self.shape) for _ in range(3))

    @ti.kernel
    def move(self, dt: float, x0: float, z0: float, on: int):
        """Everything is carried along; then heat lifts, and a burner at x0, z0 feeds if it is on."""
        for c in ti.grouped(self.v):
            x = float(c) - dt * sample(self.v, c - 0.5 * dt * self.v[c])
            self.new_v[c], self.new_soot[c] = sample(self.v, x), sample(self.soot, x)
        for c in ti.grouped(self.v):
            # MacCormack's correction: half of what is lost on the way there and back.
            y = float(c) + dt * self.v[c]
            soot = self.new_soot[c] + 0.5 * (self.soot[c] - sample(self.new_soot, y))
            self.light[c] = ti.math.clamp(soot, 0, 1)
        for c in ti.grouped(self.v):
            away = (c + 0.5) / self.n - vec3(x0, 0.08, z0)
            feed = float(vec2(away.x, away.z).norm() < 0.10 and abs(away.y) < 0.03) * on
            self.soot[c] = ti.max(self.light[c] * 0.998, feed)
            self.v[c] = self.new_v[c] + dt * 0.03 * self.soot[c] * vec3(0, 1, 0)

    def step(self, time=0, sway=0.0):
        """The divergence before pressure acts, and after; the burner puffs, and sways in circles."""
        self.move(1.0, 0.5 + sway * np.cos(2.4 * time), 0.5 + sway * np.sin(2.4 * time), time % 80 < 16)
        return self.project()

    @ti.kernel
    def shine(self, way: vec3):
        """How much of the sun's light reaches each cell."""
        for c in ti.grouped(self.light):
            thick, x = 0.0, float(c)
            for _ in range(self.n):
                x += 1.5 * way
                thick += 1.5 * sample(self.soot, x)
            self.light[c] = ti.exp(-10.0 * thick / self.n)

    @ti.kernel
    def render(self, image: ti.types.ndarray(vec3, ndim=2)):
        for i, j in image:
            through, color, pixel = 1.0, vec3(0.0), image.shape[0] / self.n
            x = vec3((i + 0.5 - image.shape[0] / 2) / pixel + self.n / 2, (j + 0.5) / pixel + 0.14 * self.n, 0)
            for step in range(2 * self.n):
                x.z = 0.5 * step
                a = 1 - ti.exp(-5 * sample(self.soot, x) / self.n)
                color += through * a * (sample(self.light, x) * vec3(1.5, 0.95, 0.55) + vec3(0.03, 0.06, 0.14))
                through *= 1 - a
            back = ti.math.mix(vec3(0.10, 0.08, 0.12), vec3(0.02, 0.03, 0.07), j / image.shape[1])
            image[i, j] = color + through * back


def main(small=False):
    ti.init(arch=ti.cpu)
    smoke = Smoke(24 if small else 64)
    before = after = 0.0
    for time in range(30 if small else 230):
        before, after = smoke.step(time, 0.0 if small else 0.035)
    soot = smoke.soot.to_numpy()
    numbers = {
        "divergence before": before,
        "divergence after": after,
        "asymmetry": np.abs(soot - soot[::-1]).max(),
        "highest soot": soot.max(),
    }
    smoke.shine(vec3(-0.6, 0.62, -0.5).normalized())
    image = np.zeros((160, 200, 3) if small else (640, 800, 3), np.float32)
    smoke.render(image)
    return np.clip(image, 0, 1) ** (1 / 1.8), numbers


if __name__ == "__main__":
    run(main)
