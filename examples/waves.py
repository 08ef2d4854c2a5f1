"""Circular waves pass through two slits and a lens of glass: the wave equation by finite differences.

Leapfrog in time, central differences in space; what is behind the edges reflects, unless the damping rim lies before
it. Without source and rim, a discrete energy is conserved exactly, up to rounding.
"""

import numpy as np
from common import palette, run

import aerogel as ti

COURANT = 0.6  # Cells that a wave passes in a step, outside of the lens.


@ti.data_oriented
class Waves:
    """Heights at three times, the squared speed and the damping of each cell."""

    def __init__(self, width, height):
        self.old, self.now, self.new, self.speed2, self.damping = (ti.field(ti.f64, (width, height)) for _ in range(5))
        self.speed2.fill(COURANT**2)

    @ti.func
    def slope(self, u: ti.template(), i, j, di, dj):
        """The difference to a neighbour; there is none to a wall, where speed is zero, or over the edge."""
        k, l = i + di, j + dj
        result = ti.cast(0.0, ti.f64)
        if 0 <= k and k < u.shape[0] and 0 <= l and l < u.shape[1]:
            if self.speed2[k, l] > 0:
                result = u[k, l] - u[i, j]
        return result

    @ti.kernel
    def advance(self, old: ti.template(), now: ti.template(), new: ti.template()):
        for i, j in now:
            if self.speed2[i, j] > 0:
                across = self.slope(now, i, j, 1, 0) + self.slope(now, i, j, -1, 0)
                along = self.slope(now, i, j, 0, 1) + self.slope(now, i, j, 0, -1)
                d = self.damping[i, j]
                new[i, j] = (2 * now[i, j] - (1 - d) * old[i, j] + self.speed2[i, j] * (across + along)) / (1 + d)

    def step(self):
        self.advance(self.old, self.now, self.new)
        self.old, self.now, self.new = self.now, self.new, self.old

    @ti.kernel
    def energy_of(self, old: ti.template(), now: ti.template()) -> ti.f64:
        total = ti.cast(0.0, ti.f64)
        for i, j in now:
            if self.speed2[i, j] > 0:
                total += (now[i, j] - old[i, j]) ** 2 / self.speed2[i, j]
                total += self.slope(now, i, j, 1, 0) * self.slope(old, i, j, 1, 0)
                total += self.slope(now, i, j, 0, 1) * self.slope(old, i, j, 0, 1)
        return total / 2

    def energy(self):
        return self.energy_of(self.old, self.now)


def conserved(n, steps):
    """The relative change of the energy of a drop in a box with a wall and a lens."""
    x, y = np.mgrid[:n, :n] / n
    waves = Waves(n, n)
    waves.speed2.from_numpy(np.where((abs(x - 0.5) < 0.05) & (y < 0.4), 0, np.where(y > 0.6, 0.1, COURANT**2)))
    drop = np.exp(-200 * ((x - 0.3) ** 2 + (y - 0.5) ** 2)) * (waves.speed2.to_numpy() > 0)
    waves.old.from_numpy(drop)
    waves.now.from_numpy(drop)
    before = waves.energy()
    for _ in range(steps):
        waves.step()
    return waves.energy() / before - 1


def main(small=False):
    ti.init(arch=ti.cpu)
    width, height = (160, 100) if small else (640, 400)
    s = height / 400
    x, y = (np.mgrid[:width, :height] + 0.5) / s
    wall = (abs(x - 190) < 5) & (abs(abs(y - 200) - 45) > 17)
    lens = (x - 410) ** 2 + (y - 200) ** 2 < 85**2
    waves = Waves(width, height)
    waves.speed2.from_numpy(COURANT**2 * np.where(wall, 0, np.where(lens, 1 / 1.6**2, 1)))
    rim = np.minimum(np.minimum(x, 640 - x), np.minimum(y, 400 - y))
    waves.damping.from_numpy(0.12 * np.clip(1 - rim / 40, 0, 1) ** 2)
    steps = int(1500 * s)
    for step in range(steps):
        waves.now[int(70 * s), height // 2] = 14 * np.sin(2 * np.pi * step * COURANT / max(18 * s, 8))
        waves.step()
    u = waves.now.to_numpy() * np.minimum(1, 0.35 + x / 300)
    image = palette(
        0.5 + 0.5 * np.tanh(1.6 * u / np.abs(u)[x > 210].max()), "dff6ff 39b6e0 0b3c6f 06112b 5d1049 e0533d ffe3b0"
    )
    image = np.where(wall[..., None], [0.93, 0.90, 0.84], np.where(lens[..., None], 0.82 * image + 0.14, image))
    return image, {"change of energy": conserved(64 if small else 200, 500), "highest": np.abs(u).max()}


if __name__ == "__main__":
    run(main)
