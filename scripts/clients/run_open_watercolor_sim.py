"""Strokes of a brush, and 20 steps of water and pigment."""

import numpy as np
import taichi as ti
from _client import run
from open_watercolor_sim.brush import WatercolorEngine

engine = WatercolorEngine(res=256, arch="cpu")


def step():
    engine.clear()
    engine.set_color(0.2, 0.3, 0.8)
    for k in range(5):
        engine.paint(60 + 30 * k, 80 + 20 * k, 18, 0.3)
        engine.step(4)


def read():
    return {"picture": np.asarray(engine.render(full_res=True), np.float32)}


run(step, read, ti.sync)
