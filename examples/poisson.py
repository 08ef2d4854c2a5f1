"""A film over a flower with holes: Poisson's equation by conjugate gradients, on a sparse grid.

The cells of the grid are those of the domain. What is not there reads as zero, and that is the boundary condition.
"""

import numpy as np
from common import halve, lit, palette, run

import aerogel as ti


@ti.data_oriented
class Poisson:
    """-laplacian(u) = f in the active cells, of width 1, and u = 0 in all others."""

    def __init__(self, extent):
        self.u, self.f, self.r, self.p, self.Ap = (ti.field(ti.f64) for _ in range(5))
        blocks = ti.root.pointer(ti.ij, (extent + 15) // 16)
        blocks.bitmasked(ti.ij, 16).place(self.u, self.f, self.r, self.p, self.Ap)

    @ti.func
    def apply(self, x: ti.template(), i, j):
        """The negative Laplacian by five points."""
        return 4 * x[i, j] - x[i - 1, j] - x[i + 1, j] - x[i, j - 1] - x[i, j + 1]

    @ti.kernel
    def begin(self) -> ti.f64:
        total = ti.cast(0.0, ti.f64)
        for i, j in self.f:
            r = self.f[i, j] - self.apply(self.u, i, j)
            self.r[i, j], self.p[i, j] = r, r
            total += r**2
        return total

    @ti.kernel
    def direction(self) -> ti.f64:
        total = ti.cast(0.0, ti.f64)
        for i, j in self.f:
            self.Ap[i, j] = self.apply(self.p, i, j)
            total += self.p[i, j] * self.Ap[i, j]
        return total

    @ti.kernel
    def advance(self, alpha: ti.f64) -> ti.f64:
        total = ti.cast(0.0, ti.f64)
        for i, j in self.f:
            self.u[i, j] += alpha * self.p[i, j]
            self.r[i, j] -= alpha * self.Ap[i, j]
            total += self.r[i, j] ** 2
        return total

    @ti.kernel
    def turn(self, beta: ti.f64):
        for i, j in self.f:
            self.p[i, j] = self.r[i, j] + beta * self.p[i, j]

    def solve(self, tolerance=1e-6, limit=10_000):
        """The number of iterations until the residual is `tolerance` of what it was."""
        first = rr = self.begin()
        for iteration in range(limit):
            if rr <= tolerance**2 * first:
                return iteration
            before, rr = rr, self.advance(rr / self.direction())
            self.turn(rr / before)
        return limit


def film(inside, f):
    """The solution over a domain given as an array of truth values, the iterations, and the residual that is left."""
    poisson = Poisson(max(inside.shape))
    poisson.f.set_cells(np.argwhere(inside), f[inside])
    first = np.sqrt(poisson.begin())
    iterations = poisson.solve()
    residual = np.sqrt(poisson.begin()) / first
    return poisson.u.to_numpy()[: inside.shape[0], : inside.shape[1]], iterations, residual


def main(small=False):
    ti.init(arch=ti.cpu)
    n = 160 if small else 1280
    x, y = (np.mgrid[:n, :n] + 0.5 - n / 2) / n
    r, angle = np.hypot(x, y), np.arctan2(y, x)
    inside = (r < 0.37 + 0.085 * np.cos(8 * angle)) & (r > 0.06)
    for at in np.arange(8) * np.pi / 4:
        inside &= np.hypot(x - 0.32 * np.cos(at), y - 0.32 * np.sin(at)) > 0.035
    u, iterations, residual = film(inside, np.ones_like(x))
    u /= u.max()
    light = np.clip(lit(np.sqrt(np.maximum(u, 0)) * 0.16 * n, (-0.45, 0.6, 0.9)), 0, 1.3)
    image = palette(u**0.8, "2b1055 6a2c91 c8386f f5793b fcc65a fff3c4") * (0.35 + 0.65 * light)[..., None]
    lines = np.abs((u * 12) % 1 - 0.5) > 0.5 - np.hypot(*np.gradient(u * 12)) * 0.9
    image = np.where((lines & (u > 0.02))[..., None], image * 0.72 + 0.05, image)
    image = np.where(inside[..., None], image, palette(r * 1.3, "1b1d36 0c0d1c"))
    return halve(np.clip(image, 0, 1)), {"cells": inside.sum(), "iterations": iterations, "residual": residual}


if __name__ == "__main__":
    run(main)
