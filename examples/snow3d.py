"""Two snowballs hit each other in a domain of 4096^3 cells, of which only those near the snow take memory.

    python examples/snow3d.py --particles 1000000 --domain 4096 --steps 200 --out snow3d.png

The moving least squares material point method with quadratic kernels, see `mpm.py`; the snow is that of Stomakhin et
al., A Material Point Method for Snow Simulation, ACM Transactions on Graphics 32(4), 2013.
"""

import argparse
import time

import numpy as np

import aerogel as ti

DX, DT = 0.01, 1e-4
DENSITY, YOUNG, POISSON, HARDENING = 400.0, 1.4e5, 0.2, 10.0
MU, LAMBDA = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
GRAVITY, SPEED = 9.81, 20.0
VOLUME, MASS = DX**3 / 8, DENSITY * DX**3 / 8  # Eight particles in a cell.
LEAF, BRANCH, WALL = 4, 16, 3


@ti.data_oriented
class Snow:
    """The particles, and the grid over which they meet; lengths are in cells, except in velocities."""

    def __init__(self, particles, domain, kind="pointer"):
        self.domain = domain
        self.x, self.v = (ti.Vector.field(3, float, particles) for _ in range(2))
        self.C, self.F, self.stress = (ti.Matrix.field(3, 3, float, particles) for _ in range(3))
        self.plastic = ti.field(float, particles)
        self.mass, self.momentum = ti.field(float), ti.Vector.field(3, float)
        self.grid = getattr(ti.root, kind)(ti.ijk, domain // (BRANCH * LEAF))
        getattr(self.grid, kind)(ti.ijk, BRANCH).dense(ti.ijk, LEAF).place(self.mass, self.momentum)
        x, v = snowballs(particles)
        self.x.from_numpy(x + domain / 2)
        self.v.from_numpy(v)
        self.F.fill(np.eye(3))
        self.plastic.fill(1)

    def step(self):
        self.grid.deactivate_all()
        for stage in (self.deform, self.scatter, self.update, self.gather):
            stage()

    @ti.kernel
    def deform(self):
        for p in self.x:
            U, sigma, V = ti.svd((ti.Matrix.identity(float, 3) + DT * self.C[p]) @ self.F[p])
            J, plastic = 1.0, self.plastic[p]
            for d in ti.static(range(3)):
                s = ti.min(ti.max(sigma[d, d], 1 - 2.5e-2), 1 + 7.5e-3)
                plastic *= sigma[d, d] / s
                sigma[d, d] = s
                J *= s
            self.F[p] = U @ sigma @ V.transpose()
            self.plastic[p] = plastic
            hardening = ti.max(0.1, ti.min(5.0, ti.exp(HARDENING * (1.0 - plastic))))
            for d in ti.static(range(3)):
                sigma[d, d] = hardening * (2 * MU * (sigma[d, d] - 1) * sigma[d, d] + LAMBDA * J * (J - 1))
            self.stress[p] = U @ sigma @ U.transpose()

    @ti.kernel
    def scatter(self):
        for p in self.x:
            base = int(self.x[p] - 0.5)
            fx = self.x[p] - base
            w = weights(fx)
            affine = -DT * VOLUME * 4 / DX * self.stress[p] + MASS * DX * self.C[p]
            for offset in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                weight = w[offset[0]].x * w[offset[1]].y * w[offset[2]].z
                self.mass[base + offset] += weight * MASS
                self.momentum[base + offset] += weight * (MASS * self.v[p] + affine @ (offset - fx))

    @ti.kernel
    def update(self):
        for cell in ti.grouped(self.mass):
            if self.mass[cell] > 0:
                v = self.momentum[cell] / self.mass[cell] - ti.Vector([0, DT * GRAVITY, 0])
                inside = WALL <= cell.min() and cell.max() <= self.domain - WALL
                self.momentum[cell] = v if inside else 0 * v

    @ti.kernel
    def gather(self):
        for p in self.x:
            base = int(self.x[p] - 0.5)
            fx = self.x[p] - base
            w = weights(fx)
            v, C = ti.Vector.zero(float, 3), ti.Matrix.zero(float, 3, 3)
            for offset in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                weight = w[offset[0]].x * w[offset[1]].y * w[offset[2]].z
                g = weight * self.momentum[base + offset]
                v += g
                C += g.outer_product(offset - fx)
            self.v[p], self.C[p] = v, 4 / DX * C
            self.x[p] += DT / DX * v


@ti.func
def weights(fx):
    return [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]


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
    slope = np.stack(np.gradient(-depth * scale), -1)
    light = np.clip(0.35 + 0.65 * (slope @ [0.35, 0.6] + 0.7) / np.sqrt((slope**2).sum(-1) + 1), 0, 1)
    return np.where((depth > low[2] - 4)[..., None], light[..., None] * [0.92, 0.96, 1.0], [0.06, 0.12, 0.2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in [("particles", 1_000_000), ("domain", 4096), ("steps", 200), ("out", "snow3d.png")]:
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--small", action="store_true", help="3000 particles, 2 steps")
    args = parser.parse_args()
    if args.small:
        args.particles, args.steps = 3000, 2
    ti.init(arch=ti.cpu)
    snow = Snow(args.particles, args.domain)
    snow.step()  # Compiles the kernels.
    begin = time.perf_counter()
    for step in range(1, args.steps + 1):
        snow.step()
        if step % 20 == 0 or step == args.steps:
            nodes, seconds = snow.grid.stats(), (time.perf_counter() - begin) / step
            held = sum(node["held_bytes"] for node in nodes) / 2**20
            print(f"step {step}: {seconds:.3f} s per step, {nodes[1]['cells']} blocks, {held:.1f} MiB of grid")
    ti.tools.imwrite(picture(snow.x.to_numpy()), args.out)


if __name__ == "__main__":
    main()
