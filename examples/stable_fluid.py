"""Four jets of ink meet in a square and stir it: a fluid without viscosity, in two dimensions.

The method: Stam, Stable Fluids, SIGGRAPH 1999, with paths followed backwards to second order. The flow looks the same
after a quarter turn, and stays so.
"""

import numpy as np
from common import palette, run

import aerogel as ti
from aerogel.math import vec2, vec3

INKS = palette(np.array([0.0, 0.33, 0.67, 1.0]), "ff5d5d ffd166 38d9c0 5b7cff").tolist()


@ti.data_oriented
class Fluid:
    """A square of n x n cells of width 1 in walls; velocities lie in the middle of cells."""

    def __init__(self, n):
        self.n = n
        self.v, self.new_v = ti.Vector.field(2, float, (n, n)), ti.Vector.field(2, float, (n, n))
        self.ink, self.new_ink = ti.Vector.field(3, float, (n, n)), ti.Vector.field(3, float, (n, n))
        self.p, self.new_p, self.div = (ti.field(float, (n, n)) for _ in range(3))

    @ti.func
    def at(self, field: ti.template(), i, j):
        return field[ti.math.clamp(i, 0, self.n - 1), ti.math.clamp(j, 0, self.n - 1)]

    @ti.func
    def sample(self, field: ti.template(), x):
        """Linear interpolation between the four nearest cells."""
        i, f = ti.cast(ti.floor(x), int), x - ti.floor(x)
        low = self.at(field, i.x, i.y) * (1 - f.x) + self.at(field, i.x + 1, i.y) * f.x
        high = self.at(field, i.x, i.y + 1) * (1 - f.x) + self.at(field, i.x + 1, i.y + 1) * f.x
        return low * (1 - f.y) + high * f.y

    @ti.kernel
    def advect(self, dt: float):
        for i, j in self.v:
            x = vec2(i, j)
            x -= dt * self.sample(self.v, x - 0.5 * dt * self.v[i, j])
            self.new_v[i, j] = self.sample(self.v, x)
            self.new_ink[i, j] = self.sample(self.ink, x)
        for i, j in self.v:
            self.v[i, j], self.ink[i, j] = self.new_v[i, j], self.new_ink[i, j]

    @ti.kernel
    def jets(self, speed: float):
        """A jet from the middle of each wall, a little beside the centre, each with its own ink."""
        for i, j in self.v:
            x = (vec2(i, j) + 0.5) / self.n - 0.5
            for k in ti.static(range(4)):
                y = ti.Vector([[x.x, x.y], [-x.y, x.x], [-x.x, -x.y], [x.y, -x.x]][k])
                if abs(y.x + 0.05) < 0.028 and abs(y.y + 0.4) < 0.03:
                    self.v[i, j] = ti.Vector([[0, 1], [1, 0], [0, -1], [-1, 0]][k]) * speed
                    self.ink[i, j] = vec3(INKS[k])

    @ti.kernel
    def divergence(self) -> float:
        """Notes the divergence of each cell, and gives its root mean square."""
        total = 0.0
        for i, j in self.v:
            # Behind a wall lies the mirror image.
            right = self.v[i + 1, j].x if i + 1 < self.n else -self.v[i, j].x
            left = self.v[i - 1, j].x if i > 0 else -self.v[i, j].x
            top = self.v[i, j + 1].y if j + 1 < self.n else -self.v[i, j].y
            bottom = self.v[i, j - 1].y if j > 0 else -self.v[i, j].y
            self.div[i, j] = 0.5 * (right - left + top - bottom)
            total += self.div[i, j] ** 2
        return ti.sqrt(total) / self.n

    @ti.kernel
    def jacobi(self, p: ti.template(), new_p: ti.template()):
        for i, j in p:
            around = self.at(p, i + 1, j) + self.at(p, i - 1, j) + self.at(p, i, j + 1) + self.at(p, i, j - 1)
            new_p[i, j] = (around - self.div[i, j]) / 4

    @ti.kernel
    def subtract_gradient(self):
        for i, j in self.v:
            across, up = self.at(self.p, i + 1, j) - self.at(self.p, i - 1, j), self.at(self.p, i, j + 1)
            self.v[i, j] -= 0.5 * vec2(across, up - self.at(self.p, i, j - 1))

    def step(self, dt=1.0, speed=1.5, sweeps=40):
        """The divergence before and after pressure has acted."""
        self.jets(speed)
        self.advect(dt)
        before = self.divergence()
        for _ in range(sweeps // 2):
            self.jacobi(self.p, self.new_p)
            self.jacobi(self.new_p, self.p)
        self.subtract_gradient()
        return before, self.divergence()


def main(small=False):
    ti.init(arch=ti.cpu)
    fluid = Fluid(64 if small else 512)
    before = after = 0.0
    for _ in range(20 if small else 520):
        before, after = fluid.step(speed=1.5 if small else 3.0)
    v, ink = fluid.v.to_numpy(), fluid.ink.to_numpy()
    turned = np.rot90(np.stack([-v[..., 1], v[..., 0]], -1))
    asymmetry = np.abs(turned - v).max() / np.abs(v).max()
    image = 1 - np.exp(-1.6 * ink) + np.array([0.03, 0.04, 0.08])
    return image, {"divergence before": before, "divergence after": after, "asymmetry": asymmetry}


if __name__ == "__main__":
    run(main)
