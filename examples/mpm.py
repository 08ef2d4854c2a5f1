"""Water, jelly and snow fall into a box: the material point method in two dimensions.

How particles push each other is in `material_points.py`; here is what they are made of.
"""

import numpy as np
from common import halve, run
from material_points import MaterialPoints

import aerogel as ti
from aerogel.math import mat2

GRID = 192
YOUNG, POISSON = 1500.0, 0.2
MU, LAMBDA = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
WATER, JELLY, SNOW = 0, 1, 2
COLORS = np.array([0x3A9BD9, 0xF2A541, 0xEDF2F4])
IDENTITY = mat2([[1, 0], [0, 1]])


@ti.data_oriented
class Blocks(MaterialPoints):
    """Three blocks, one of each material, in a box of width 1."""

    def __init__(self, particles):
        kind = np.arange(particles) * 3 // particles
        x = np.outer(kind, [0.3, 0.22]) + [0.06, 0.12] + np.random.default_rng(1).uniform(0, 0.24, (particles, 2))
        v = np.outer(1.5 - 1.5 * kind, [1, 0]) + [0, -2]
        super().__init__(x * GRID, v, GRID, dx=1 / GRID, dt=6e-5, gravity=40)
        ti.root.dense(ti.ij, GRID).place(self.mass, self.momentum)
        self.material, self.plastic = ti.field(int, particles), ti.field(float, particles)
        self.material.from_numpy(kind.astype(np.int32))
        self.plastic.fill(1)

    def step(self):
        self.mass.fill(0)
        self.momentum.fill(0)
        super().step()

    @ti.func
    def stress(self, p):
        """Water keeps its volume only, jelly its form; snow flows beyond a limit, and gets softer or harder by that."""
        F = (IDENTITY + self.dt * self.C[p]) @ self.F[p]
        hardening = ti.math.clamp(ti.exp(10 * (1 - self.plastic[p])), 0.1, 5)
        if self.material[p] == JELLY:
            hardening = 0.3
        mu, la, J = MU * hardening, LAMBDA * hardening, 1.0
        U, sigma, V = ti.svd(F)
        for d in ti.static(range(2)):
            if self.material[p] == SNOW:
                s = ti.math.clamp(sigma[d, d], 1 - 2.5e-2, 1 + 4.5e-3)
                self.plastic[p] *= sigma[d, d] / s
                sigma[d, d] = s
            J *= sigma[d, d]
        if self.material[p] == WATER:
            F, mu, la = IDENTITY * ti.sqrt(J), 0.0, LAMBDA
        elif self.material[p] == SNOW:
            F = U @ sigma @ V.transpose()
        self.F[p] = F
        return 2 * mu * (F - U @ V.transpose()) @ F.transpose() + IDENTITY * la * J * (J - 1)


def picture(blocks, gui):
    """The particles in the colours of their materials."""
    gui.clear()
    gui.circles(blocks.x.to_numpy() / GRID, radius=1.6, color=COLORS[blocks.material.to_numpy()])
    return gui.get_image()[..., :3]


def main(small=False, frames=66, particles=30_000, moving=False):
    ti.init(arch=ti.cpu)
    blocks, frames = Blocks(particles), 2 if small else frames
    gui = ti.GUI("water, jelly, snow", res=640 if moving else 768, background_color=0x10202C, show_gui=False)
    images = []
    for _ in range(frames):
        for _ in range(40):
            blocks.step()
        if moving:
            images.append(halve(picture(blocks, gui)))
    image = np.array(images) if moving else picture(blocks, gui)
    return image, {"mass": blocks.mass.to_numpy().sum() / (blocks.particle_mass * particles)}


if __name__ == "__main__":
    run(main)
