"""A Lenia automaton: two steps from a pattern, and its picture."""

import continuous_cellular_engine as engine
import numpy as np
import taichi as ti
from _client import run

i, j = np.mgrid[0 : engine.RES_X, 0 : engine.RES_Y].astype(np.float32)
pattern = (0.5 + 0.5 * np.sin(0.11 * i) * np.cos(0.07 * j)).astype(np.float32)


def step():
    engine.field_curr.from_numpy(pattern)
    for _ in range(2):
        engine.step_simulation(engine.MU, engine.SIGMA, engine.DT)
        engine.swap_fields()
    engine.render_procedural_palette()


run(step, lambda: {"state": engine.field_curr.to_numpy(), "picture": engine.display_pixels.to_numpy()}, ti.sync)
