"""Code that the examples of the material point method share: transfers between particles and a grid, in any dimension.

Hu et al., A Moving Least Squares Material Point Method with Displacement Discontinuity and Two-Way Rigid Body Coupling,
ACM Transactions on Graphics 37(4), 2018.
"""

from typing import Any

import numpy as np
from common import nearby

import aerogel as ti

WALL = 3


@ti.data_oriented
class MaterialPoints:
    """Particles at `x` with velocities `v`, and a grid; lengths are in cells of width `dx`, except in velocities.

    What they are made of says a subclass: its function `stress(p)` updates the deformation `F` of a particle, whose
    gradient of velocity is `C`, and gives its Cauchy stress.
    """

    stress: Any

    def __init__(self, x, v, cells, dx, dt, gravity, density=1.0):
        n, self.dim = x.shape
        self.cells, self.dx, self.dt, self.gravity = cells, dx, dt, gravity
        self.volume = (dx / 2) ** self.dim  # Particles start half a cell apart.
        self.particle_mass = density * self.volume
        self.x, self.v = (ti.Vector.field(self.dim, float, n) for _ in range(2))
        self.C, self.F, self.stresses = (ti.Matrix.field(self.dim, self.dim, float, n) for _ in range(3))
        self.mass, self.momentum = ti.field(float), ti.Vector.field(self.dim, float)
        self.x.from_numpy(x.astype(np.float32))
        self.v.from_numpy(v.astype(np.float32))
        self.F.fill(np.eye(self.dim))

    def step(self):
        """One step; the grid has to be empty."""
        for stage in (self.deform, self.scatter, self.update, self.gather):
            stage()

    @ti.kernel
    def deform(self):
        for p in self.x:
            self.stresses[p] = self.stress(p)

    @ti.func
    def weight(self, w, offset):
        """That of one of the nodes near a particle."""
        product = 1.0
        for axis in ti.static(range(self.dim)):
            product *= w[offset[axis]][axis]
        return product

    @ti.kernel
    def scatter(self):
        for p in self.x:
            base, fx, w = nearby(self.x[p])
            affine = self.particle_mass * self.dx * self.C[p] - self.dt * self.volume * 4 / self.dx * self.stresses[p]
            for offset in ti.static(ti.grouped(ti.ndrange(*(3,) * self.dim))):
                weight = self.weight(w, offset)
                self.mass[base + offset] += weight * self.particle_mass
                self.momentum[base + offset] += weight * (self.particle_mass * self.v[p] + affine @ (offset - fx))

    @ti.kernel
    def update(self):
        """Momenta become velocities; then gravity acts, and the walls do, which matter may leave, but not enter."""
        for cell in ti.grouped(self.mass):
            if self.mass[cell] > 0:
                v = self.momentum[cell] / self.mass[cell]
                v[1] -= self.dt * self.gravity
                for axis in ti.static(range(self.dim)):
                    if (cell[axis] < WALL and v[axis] < 0) or (cell[axis] > self.cells - WALL and v[axis] > 0):
                        v[axis] = 0
                self.momentum[cell] = v

    @ti.kernel
    def gather(self):
        for p in self.x:
            base, fx, w = nearby(self.x[p])
            v, C = 0 * self.v[p], 0 * self.C[p]
            for offset in ti.static(ti.grouped(ti.ndrange(*(3,) * self.dim))):
                g = self.weight(w, offset) * self.momentum[base + offset]
                v += g
                C += g.outer_product(offset - fx)
            self.v[p], self.C[p] = v, 4 / self.dx * C
            self.x[p] += self.dt / self.dx * v
