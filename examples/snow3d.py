"""Two snowballs hit each other in a domain of 4096^3 cells, of which only those near the snow take memory.

The material point method as in `material_points.py`; the snow is that of Stomakhin et al., A Material Point Method for
Snow Simulation, ACM Transactions on Graphics 32(4), 2013.
"""

import numpy as np
from common import lit, run
from material_points import MaterialPoints

import aerogel as ti

DX, DT = 0.01, 1e-4
DENSITY, YOUNG, POISSON, HARDENING = 400.0, 1.4e5, 0.2, 10.0
MU, LAMBDA = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
GRAVITY, SPEED = 9.81, 20.0
MASS = DENSITY * DX**3 / 8  # Eight particles in a cell.
LEAF, BRANCH = 4, 16


@ti.data_oriented
class Snow(MaterialPoints):
    """The particles, and the sparse grid over which they meet."""

    def __init__(self, particles, domain, kind="pointer"):
        x, v = snowballs(particles)
        super().__init__(x + domain / 2, v, domain, DX, DT, GRAVITY, DENSITY)
        self.grid = getattr(ti.root, kind)(ti.ijk, domain // (BRANCH * LEAF))
        getattr(self.grid, kind)(ti.ijk, BRANCH).dense(ti.ijk, LEAF).place(self.mass, self.momentum)
        self.plastic = ti.field(float, particles)
        self.plastic.fill(1)

    def step(self):
        self.grid.deactivate_all()
        super().step()

    @ti.func
    def stress(self, p):
        """Beyond a limit, snow flows, and gets softer or harder by that."""
        U, sigma, V = ti.svd((ti.Matrix.identity(float, 3) + DT * self.C[p]) @ self.F[p])
        J, plastic = 1.0, self.plastic[p]
        for d in ti.static(range(3)):
            s = ti.math.clamp(sigma[d, d], 1 - 2.5e-2, 1 + 7.5e-3)
            plastic *= sigma[d, d] / s
            sigma[d, d] = s
            J *= s
        self.F[p], self.plastic[p] = U @ sigma @ V.transpose(), plastic
        hardening = ti.math.clamp(ti.exp(HARDENING * (1 - plastic)), 0.1, 5)
        for d in ti.static(range(3)):
            sigma[d, d] = hardening * (2 * MU * (sigma[d, d] - 1) * sigma[d, d] + LAMBDA * J * (J - 1))
        return U @ sigma @ U.transpose()


def snowballs(particles):
    """Where the particles are, around the origin, and how fast; neighbours in space lie near each other in memory."""
    radius = (particles / 2 / 8 / (4 / 3 * np.pi)) ** (1 / 3)
    n = int(np.ceil(4 * radius)) + 2
    ball = (np.indices([n] * 3).reshape(3, -1).T - (n - 1) / 2) / 2
    ball = ball[np.argsort((ball**2).sum(1), kind="stable")[: (particles + 1) // 2]]
    ball = ball[np.lexsort((ball // LEAF).T)] + np.random.default_rng(1).uniform(-0.2, 0.2, ball.shape)
    apart, v = np.array([1.15, 0.35, 0]) * radius, np.tile([SPEED, 0, 0], (len(ball), 1))
    return np.concatenate([ball - apart, ball + apart])[:particles], np.concatenate([v, -v])[:particles]


def picture(x, size=640):
    """The snow seen along the third axis, lit from above."""
    low, high = x.min(0), x.max(0)
    scale = size / (1.1 * (high - low)[:2].max())
    pixel = ((x - (low + high) / 2)[:, :2] * scale + size / 2).astype(int)
    depth = np.full((size, size), low[2] - 8)
    for away in np.ndindex(5, 5):
        np.maximum.at(depth, tuple((pixel + away).T), x[:, 2])
    for _ in range(4):
        depth = sum(np.roll(depth, way, axis) for way in (-1, 1) for axis in (0, 1)) / 4
    light = np.clip(0.35 + 0.65 * lit(depth * scale, (0.35, 0.6, 0.7)), 0, 1)
    return np.where((depth > low[2] - 4)[..., None], light[..., None] * [0.92, 0.96, 1.0], [0.06, 0.12, 0.2])


def main(small=False, particles=1_000_000, domain=4096, steps=200):
    ti.init(arch=ti.cpu)
    snow = Snow(3000 if small else particles, domain)
    for _ in range(2 if small else steps):
        snow.step()
    nodes = snow.grid.stats()
    numbers = {"blocks": nodes[1]["cells"], "MiB of grid": sum(node["held_bytes"] for node in nodes) / 2**20}
    return picture(snow.x.to_numpy()), numbers


if __name__ == "__main__":
    run(main)
