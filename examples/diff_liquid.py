"""A soft fish learns to swim: gradient descent through water and body finds how its muscles should pull.

The liquid of Hu et al., DiffTaichi, ICLR 2020: weakly compressible water (Tampubolon et al., Multi-species
simulation of porous sand and water mixtures, ACM Transactions on Graphics 36(4), 2017) and an elastic body meet on a
grid of 64^3 nodes in 512 steps. From top to bottom the fish at three times; and the loss.
"""

import numpy as np
from common import run
from soft_points import IDENTITY, MUSCLES, SoftPoints, points

import aerogel as ti

LIQUID, STIFFNESS, GAMMA, STRENGTH = -2, 20.0, 7, 2.0
TANK, FISH = ([0.1, 0, 0.38], [0.7, 0.2, 0.62]), ([0.2, 0.06, 0.46], [0.44, 0.14, 0.54])


def tank(particles):
    """The positions of particles in a tank, and what they belong to: water, or muscles on either side of the fish."""
    x = points(particles, *TANK) + np.random.default_rng(4).uniform(-0.004, 0.004, (particles, 3))
    inside = ((x > FISH[0]) & (x < FISH[1])).all(1)
    x = np.concatenate([x[inside], x[~inside]])
    part = ((x[:, 0] - FISH[0][0]) / (FISH[1][0] - FISH[0][0]) * MUSCLES / 2).astype(int)
    muscle = np.where(np.arange(particles) < inside.sum(), 2 * part + (x[:, 2] > 0.5), LIQUID)
    return x, muscle, np.subtract(TANK[1], TANK[0]).prod() / particles


@ti.data_oriented
class Swimmer(SoftPoints):
    """A fish whose muscles pull along it, and water."""

    @ti.func
    def stress(self, p, t):
        stress = 0 * IDENTITY
        if self.muscle[p] == LIQUID:
            J = self.F[p].determinant()
            stress = IDENTITY * STIFFNESS / GAMMA * (J - J ** (1 - GAMMA))
        else:
            stress = self.elastic(p, t, 0, STRENGTH)
        return stress


def main(small=False, iterations=0):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    fish = Swimmer(*tank(2000), 32, 100, 0.01, TANK) if small else Swimmer(*tank(30000), 64, 512, 0.03, TANK)
    return fish.learnt(iterations or (4 if small else 8), 0.3)


if __name__ == "__main__":
    run(main)
