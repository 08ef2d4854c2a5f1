"""Smoke that folds itself into a sign: gradient descent finds the wind that it needs at the start.

The smoke of Hu et al., DiffTaichi, ICLR 2020: a fluid on a torus, carried along by its own velocity, with a few of
Jacobi's iterations for the pressure of each step. The smoke at the start, half-way and at the end, and the loss.
"""

import numpy as np
from common import curve, learn, palette, run, slope_error_of
from diff_wave import sign

import aerogel as ti

JACOBI = 6


@ti.data_oriented
class Smoke:
    """Smoke, velocity and pressure at all times."""

    def __init__(self, n, steps):
        self.n, self.steps = n, steps
        self.smoke = ti.field(ti.f64, (steps + 1, n, n), needs_grad=True)
        self.v = ti.Vector.field(2, ti.f64, (steps + 1, n, n), needs_grad=True)
        self.carried = ti.Vector.field(2, ti.f64, (steps + 1, n, n), needs_grad=True)
        self.pressure = ti.field(ti.f64, (steps + 1, JACOBI + 1, n, n), needs_grad=True)
        self.divergence = ti.field(ti.f64, (steps + 1, n, n), needs_grad=True)
        self.wind = ti.Vector.field(2, ti.f64, (n, n), needs_grad=True)
        self.start, self.target = ti.field(ti.f64, (n, n)), ti.field(ti.f64, (n, n))
        self.loss = ti.field(ti.f64, (), needs_grad=True)
        x = (np.arange(n) + 0.5) / n
        half = np.tile(x > 0.5, (n, 1)).astype(np.float64)
        disc = np.hypot(x[:, None] - 0.5, x - 0.5) < 0.35
        self.start.from_numpy(half)
        self.target.from_numpy(np.where(disc, sign(n) > 0, half).astype(np.float64))

    @ti.func
    def near(self, i, j):
        return i % self.n, j % self.n

    @ti.kernel
    def begin(self):
        for i, j in self.wind:
            self.smoke[0, i, j] = self.start[i, j]
            self.carried[0, i, j] = self.wind[i, j]

    @ti.kernel
    def carry(self, t: ti.i32):
        """What is at a cell was where the velocity points back to."""
        for i, j in self.wind:
            x = ti.Vector([i, j]) - self.v[t - 1, i, j]
            low = ti.floor(x)
            f = x - low
            smoke, v = 0 * f.x, 0 * f
            for a, b in ti.static(ti.ndrange(2, 2)):
                k, l = self.near(int(low.x) + a, int(low.y) + b)
                weight = (f.x if a else 1 - f.x) * (f.y if b else 1 - f.y)
                smoke += weight * self.smoke[t - 1, k, l]
                v += weight * self.v[t - 1, k, l]
            self.smoke[t, i, j] = smoke
            self.carried[t, i, j] = v

    @ti.kernel
    def diverge(self, t: ti.i32):
        for i, j in self.wind:
            west, east = self.near(i - 1, j), self.near(i + 1, j)
            south, north = self.near(i, j - 1), self.near(i, j + 1)
            across = self.carried[t, east[0], j].x - self.carried[t, west[0], j].x
            along = self.carried[t, i, north[1]].y - self.carried[t, i, south[1]].y
            self.divergence[t, i, j] = 0.5 * (across + along)

    @ti.kernel
    def relax(self, t: ti.i32, k: ti.i32):
        for i, j in self.wind:
            (w, _), (e, _), (_, s), (_, n) = (
                self.near(i - 1, j),
                self.near(i + 1, j),
                self.near(i, j - 1),
                self.near(i, j + 1),
            )
            around = self.pressure[t, k, w, j] + self.pressure[t, k, e, j]
            around += self.pressure[t, k, i, s] + self.pressure[t, k, i, n]
            self.pressure[t, k + 1, i, j] = (around - self.divergence[t, i, j]) / 4

    @ti.kernel
    def project(self, t: ti.i32):
        for i, j in self.wind:
            w, s = self.near(i - 1, j - 1)
            e, n = self.near(i + 1, j + 1)
            across = self.pressure[t, JACOBI, e, j] - self.pressure[t, JACOBI, w, j]
            along = self.pressure[t, JACOBI, i, n] - self.pressure[t, JACOBI, i, s]
            self.v[t, i, j] = self.carried[t, i, j] - 0.5 * ti.Vector([across, along])

    @ti.kernel
    def compare(self):
        for i, j in self.target:
            self.loss[None] += (self.smoke[self.steps, i, j] - self.target[i, j]) ** 2 / self.n**2

    def simulate(self):
        self.begin()
        for t in range(self.steps + 1):
            if t > 0:
                self.carry(t)
            self.diverge(t)
            for k in range(JACOBI):
                self.relax(t, k)
            self.project(t)
        self.compare()


def main(small=False, iterations=0):
    ti.init(arch=ti.cpu)
    n, steps = (40, 24) if small else (110, 100)
    fluid = Smoke(n, steps)
    fluid.wind.from_numpy(np.random.default_rng(1).normal(0, 1e-3, (n, n, 2)))
    error = slope_error_of(fluid.simulate, fluid.loss, fluid.wind, 1e-6)
    losses = learn(fluid.simulate, fluid.loss, fluid.wind, iterations or (15 if small else 80), 0.02)
    numbers = {"loss at first": losses[0], "loss at last": losses[-1], "error of the slope": error}
    smoke = fluid.smoke.to_numpy()
    views = [palette(smoke[t], "1b2a41 5c7a99 f7f3e9").repeat(2, 0).repeat(2, 1) for t in (0, steps // 2, steps)]
    return np.concatenate([*views, curve(losses, 2 * n, 2 * n)]), numbers


if __name__ == "__main__":
    run(main)
