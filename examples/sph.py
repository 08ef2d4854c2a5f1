"""A column of water collapses against a wall: smoothed particle hydrodynamics, weakly compressible, in two dimensions.

Particles find their neighbours in lists, one for each cell of a grid. Forces are equal and opposite in pairs.
Monaghan, Smoothed Particle Hydrodynamics, Reports on Progress in Physics 68, 2005, with the viscosity of section 4.1.
"""

import numpy as np
from common import halve, palette, run

import aerogel as ti
from aerogel.math import vec2

SIZE, GRAVITY, SOUND = vec2(1.6, 1.0), 9.81, 20.0
NEAR = [(k, l) for k in (-1, 0, 1) for l in (-1, 0, 1)]


@ti.data_oriented
class Water:
    """Particles `spacing` apart, of density 1; the kernel reaches two smoothing lengths."""

    def __init__(self, x, spacing):
        self.h, self.mass = 1.3 * spacing, spacing**2
        self.x, self.v, self.a = (ti.Vector.field(2, float, len(x)) for _ in range(3))
        self.density, self.members = ti.field(float, len(x)), ti.field(int)
        self.x.from_numpy(x.astype(np.float32))
        self.lists = ti.root.dense(ti.ij, [int(n / (2 * self.h)) + 2 for n in SIZE]).dynamic(ti.k, 128, chunk_size=16)
        self.lists.place(self.members)
        self.step(0.0)

    @ti.func
    def wendland(self, d):
        """The quintic kernel of Wendland, and its derivative divided by the distance."""
        q, scale = d.norm() / self.h, 7 / (4 * ti.math.pi * self.h**2)
        rest = ti.max(1 - q / 2, 0.0)
        return scale * rest**4 * (2 * q + 1), -5 * scale / self.h**2 * rest**3

    @ti.func
    def pressure(self, density):
        """The equation of state, divided by the density's square; water does not pull."""
        return ti.max(SOUND**2 / 7 * (density**7 - 1), 0.0) / density**2

    @ti.func
    def cell(self, p):
        return ti.cast(ti.floor(self.x[p] / (2 * self.h)), int) + 1

    @ti.kernel
    def advance(self, dt: float):
        for p in self.x:
            ti.append(self.lists, self.cell(p), p)
        for p in self.x:
            self.density[p], self.a[p] = 0, 0
            for near in ti.static(NEAR):
                c = self.cell(p) + ti.Vector(near)
                for n in range(ti.length(self.lists, c)):
                    self.density[p] += self.mass * self.wendland(self.x[p] - self.x[self.members[c, n]])[0]
        for p in self.x:  # Pressure and viscosity.
            for near in ti.static(NEAR):
                c = self.cell(p) + ti.Vector(near)
                for n in range(ti.length(self.lists, c)):
                    q = self.members[c, n]
                    d, mean = self.x[p] - self.x[q], 0.5 * (self.density[p] + self.density[q])
                    both = self.pressure(self.density[p]) + self.pressure(self.density[q])
                    approach = ti.min((self.v[p] - self.v[q]).dot(d), 0) * self.h / (d.norm_sqr() + 0.01 * self.h**2)
                    self.a[p] -= self.mass * (both - 0.08 * SOUND * approach / mean) * self.wendland(d)[1] * d
        for p in self.x:
            v = self.v[p] + dt * (self.a[p] - vec2(0, GRAVITY))
            x = self.x[p] + dt * v
            for axis in ti.static(range(2)):
                if (x[axis] < 0 and v[axis] < 0) or (x[axis] > SIZE[axis] and v[axis] > 0):
                    x[axis], v[axis] = ti.math.clamp(x[axis], 0, SIZE[axis]), 0
            self.x[p], self.v[p] = x, v

    def step(self, dt):
        self.lists.deactivate_all()
        self.advance(dt)


def main(small=False):
    ti.init(arch=ti.cpu)
    spacing = 0.03 if small else 0.008
    start = np.mgrid[0:0.55:spacing, 0:0.75:spacing].reshape(2, -1).T + spacing / 2
    water, dt = Water(start, spacing), 0.3 * 1.3 * spacing / SOUND
    for _ in range(int((0.5 if small else 0.66) / dt)):
        water.step(dt)
    a, x, v = water.a.to_numpy(), water.x.to_numpy(), water.v.to_numpy()
    speed = np.linalg.norm(v, axis=1)
    numbers = {
        "energy left": (0.5 * speed**2 + GRAVITY * x[:, 1]).mean(dtype=np.float64) / (GRAVITY * start[:, 1].mean()),
        "sum of inner forces": np.linalg.norm(a.sum(0, dtype=np.float64)) / np.linalg.norm(a, axis=1).sum(),
        "mean density": water.density.to_numpy().mean(),
    }
    gui = ti.GUI("water", res=(320, 200) if small else (1280, 800), background_color=0x0B1622, show_gui=False)
    colors = (palette(speed / 4.5, "123a7a 1f7fd0 4fc3e8 c9f2fb ffffff") * 255).astype(int) @ [65536, 256, 1]
    gui.circles(x / SIZE.to_numpy(), radius=0.7 * spacing / SIZE[0] * gui.res[0], color=colors)
    return halve(gui.get_image()[..., :3]), numbers


if __name__ == "__main__":
    run(main)
