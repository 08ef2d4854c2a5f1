"""Smoothed particles: a block of 4,000 falls for ten frames."""

import numpy as np
import taichi as ti
from _client import run
from particlefx.core.particle_taichi import TaichiSPHSystem

ti.init(arch=ti.cpu)
n = 4000
system = TaichiSPHSystem(max_particles=n, taichi_arch="cpu")
i, j = np.divmod(np.arange(n), 80)
places = np.stack([200 + 5.5 * j, 100 + 5.5 * i], 1).astype(np.float32)
places += np.random.default_rng(0).random((n, 2), dtype=np.float32)


def step():
    system.pos.from_numpy(places)
    system.vel.fill(0)
    system.alive.fill(1)
    system._count = n
    for _ in range(10):
        system.update(1 / 600)


run(step, lambda: {"places": system.positions_numpy(), "density": system.density.to_numpy()}, ti.sync)
