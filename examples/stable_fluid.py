"""Four jets of ink meet in a square and stir it: a fluid without viscosity, in two dimensions.

The method is in `fluid.py`, here with paths followed backwards to second order. The flow looks the same after a quarter
turn, and stays so.
"""

import numpy as np
from common import palette, run, sample
from fluid import Fluid

import aerogel as ti
from aerogel.math import vec2, vec3

INKS = palette(np.array([0.0, 0.33, 0.67, 1.0]), "ff5d5d ffd166 38d9c0 5b7cff").tolist()


@ti.data_oriented
class Inks(Fluid):
    """A fluid that carries colours."""

    def __init__(self, n):
        super().__init__(n, n)
        self.n = n
        self.ink, self.new_ink = (ti.Vector.field(3, float, (n, n)) for _ in range(2))

    @ti.kernel
    def advect(self, dt: float):
        for c in ti.grouped(self.v):
            x = float(c) - dt * sample(self.v, c - 0.5 * dt * self.v[c])
            self.new_v[c], self.new_ink[c] = sample(self.v, x), sample(self.ink, x)
        for c in ti.grouped(self.v):
            self.v[c], self.ink[c] = self.new_v[c], self.new_ink[c]

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

    def step(self, dt=1.0, speed=1.5):
        """The divergence before and after pressure has acted."""
        self.jets(speed)
        self.advect(dt)
        return self.project()


def main(small=False):
    ti.init(arch=ti.cpu)
    fluid = Inks(64 if small else 512)
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
