"""A column of water collapses against a wall: smoothed particle hydrodynamics, weakly compressible, in two dimensions.

Particles find their neighbours in lists, one for each cell of a grid. Forces are equal and opposite in pairs.
Monaghan, Smoothed Particle Hydrodynamics, Reports on Progress in Physics 68, 2005, with the viscosity of section 4.1.
"""

import numpy as np
from common import halve, palette, run

import aerogel as ti
from aerogel.math import vec2

SIZE = vec2(1.6, 1.0)
GRAVITY, SOUND = 9.81, 20.0


@ti.data_oriented
class Water:
    """Particles `spacing` apart, of density 1; the kernel reaches two smoothing lengths."""

    def __init__(self, x, spacing):
        self.h, self.mass = 1.3 * spacing, spacing**2
        self.x, self.v, self.a = (ti.Vector.field(2, float, len(x)) for _ in range(3))
        self.density = ti.field(float, len(x))
        self.x.from_numpy(x.astype(np.float32))
        self.members = ti.field(int)
        self.cells = ti.root.dense(ti.ij, [int(n / (2 * self.h)) + 2 for n in SIZE])
        self.lists = self.cells.dynamic(ti.k, 128, chunk_size=16)
        self.lists.place(self.members)
        self.find_neighbours()
        self.weigh()
        self.push()

    @ti.func
    def cell(self, x):
        return ti.cast(ti.floor(x / (2 * self.h)), int) + 1

    @ti.func
    def slope(self, d):
        """The derivative of the quintic kernel of Wendland, divided by the distance."""
        q = d.norm() / self.h
        return -35 / (4 * ti.math.pi * self.h**4) * ti.max(1 - q / 2, 0.0) ** 3

    @ti.func
    def weight(self, d):
        q = d.norm() / self.h
        return 7 / (4 * ti.math.pi * self.h**2) * ti.max(1 - q / 2, 0.0) ** 4 * (2 * q + 1)

    @ti.kernel
    def sort(self):
        for p in self.x:
            c = self.cell(self.x[p])
            ti.append(self.lists, [c.x, c.y], p)

    def find_neighbours(self):
        self.lists.deactivate_all()
        self.sort()

    @ti.kernel
    def weigh(self):
        for p in self.x:
            density = 0.0
            c = self.cell(self.x[p])
            for k, l in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                for n in range(ti.length(self.lists, [c.x + k, c.y + l])):
                    density += self.mass * self.weight(self.x[p] - self.x[self.members[c.x + k, c.y + l, n]])
            self.density[p] = density

    @ti.func
    def pressure(self, density):
        """The equation of state, divided by the density's square; water does not pull."""
        return ti.max(SOUND**2 / 7 * (density**7 - 1), 0.0) / density**2

    @ti.kernel
    def push(self):
        """Accelerations by pressure and viscosity."""
        for p in self.x:
            a, c = vec2(0.0), self.cell(self.x[p])
            for k, l in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                for n in range(ti.length(self.lists, [c.x + k, c.y + l])):
                    q = self.members[c.x + k, c.y + l, n]
                    d, dv = self.x[p] - self.x[q], self.v[p] - self.v[q]
                    both = self.pressure(self.density[p]) + self.pressure(self.density[q])
                    approach = ti.min(dv.dot(d), 0.0) * self.h / (d.norm_sqr() + 0.01 * self.h**2)
                    mean = 0.5 * (self.density[p] + self.density[q])
                    a -= self.mass * (both - 0.08 * SOUND * approach / mean) * self.slope(d) * d
            self.a[p] = a

    @ti.kernel
    def move(self, dt: float):
        for p in self.x:
            v = self.v[p] + dt * (self.a[p] - vec2(0, GRAVITY))
            x = self.x[p] + dt * v
            for axis in ti.static(range(2)):
                if (x[axis] < 0 and v[axis] < 0) or (x[axis] > SIZE[axis] and v[axis] > 0):
                    x[axis], v[axis] = ti.math.clamp(x[axis], 0, SIZE[axis]), 0
            self.x[p], self.v[p] = x, v

    def step(self):
        self.find_neighbours()
        self.weigh()
        self.push()
        self.move(0.3 * self.h / SOUND)

    def energy(self):
        """Kinetic and potential, without that of the compression."""
        x, v = self.x.to_numpy(), self.v.to_numpy()
        return self.mass * (0.5 * (v**2).sum() + GRAVITY * x[:, 1].sum(dtype=np.float64))


def main(small=False):
    ti.init(arch=ti.cpu)
    spacing = 0.03 if small else 0.008
    x = np.mgrid[0:0.55:spacing, 0:0.75:spacing].reshape(2, -1).T + spacing / 2
    water = Water(x, spacing)
    before = water.energy()
    steps = int((0.5 if small else 0.66) / (0.3 * water.h / SOUND))
    for _ in range(steps):
        water.step()
    a, x, v = water.a.to_numpy(), water.x.to_numpy(), water.v.to_numpy()
    numbers = {
        "energy left": water.energy() / before,
        "sum of inner forces": np.linalg.norm(a.sum(0, dtype=np.float64)) / np.linalg.norm(a, axis=1).sum(),
        "mean density": water.density.to_numpy().mean(),
    }
    gui = ti.GUI("water", res=(320, 200) if small else (1280, 800), background_color=0x0B1622)
    colors = (palette(np.linalg.norm(v, axis=1) / 4.5, "123a7a 1f7fd0 4fc3e8 c9f2fb ffffff") * 255).astype(int)
    colors = colors @ [65536, 256, 1]
    gui.circles(x / SIZE.to_numpy(), radius=0.7 * spacing / SIZE[0] * gui.res[0], color=colors)
    return halve(gui.get_image()[..., :3]), numbers


if __name__ == "__main__":
    run(main)
