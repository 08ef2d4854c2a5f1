"""A soft animal in three dimensions learns to walk: gradient descent finds how the muscles of its legs should pull.

The elastic material points of Hu et al., DiffTaichi, ICLR 2020, with its settings: a grid of 64^3 nodes, 512 steps.
From top to bottom the animal at three times; and the loss, the square of the part of the way that is left.
"""

import numpy as np
from common import run
from soft_points import SoftPoints, points

import aerogel as ti


def animal(particles):
    """The positions of particles in a body and four legs, and the muscle that each belongs to, or -1."""
    n = particles * 3 // 40
    parts, muscles = [points(particles - 4 * n, [0.1, 0.1, 0], [0.4, 0.2, 0.2])], [np.full(particles - 4 * n, -1)]
    for leg, (x, z) in enumerate([(0.1, 0), (0.32, 0), (0.1, 0.12), (0.32, 0.12)]):
        parts.append(points(n, [x, 0, z], [x + 0.08, 0.1, z + 0.08]))
        muscles.append(2 * leg + (parts[-1][:, 0] > x + 0.04))
    return np.concatenate(parts) + [0, 0, 0.4], np.concatenate(muscles), 0.0086 / particles


@ti.data_oriented
class Animal(SoftPoints):
    """An animal whose muscles pull along its legs."""

    @ti.func
    def stress(self, p, t):
        return self.elastic(p, t, 1, 4.0)


def main(small=False, iterations=0):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    soft = Animal(*animal(2000), 32, 100, 0.02) if small else Animal(*animal(18000), 64, 512, 0.15)
    return soft.learnt(iterations or (4 if small else 8), 0.2)


if __name__ == "__main__":
    run(main)
