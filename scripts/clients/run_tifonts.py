"""Text drawn into an image, with a font of two letters: the wheel has none."""

import json
import os

import numpy as np
import taichi as ti
import tifonts
from _client import run

ti.init(arch=ti.cpu)
os.makedirs("fonts")
rng = np.random.default_rng(0)
with open("fonts/fonts.json", "w") as file:
    json.dump({"fonts": {"char_width": 5, "char_height": 7, "chars": ["letters.json"]}}, file)
with open("fonts/letters.json", "w") as file:
    json.dump({"letters": {c: {"pixels": rng.integers(0, 2, 35).tolist()} for c in "AB"}}, file)
font = tifonts.load("fonts")
canvas = ti.Vector.field(3, ti.f32, (800, 200))
run(
    lambda: tifonts.text(canvas, "ABBA?A", 10, 20, 8, (1.0, 0.5, 0.25), font),
    lambda: {"canvas": canvas.to_numpy(), "size": [font.char_width, font.char_height]},
    ti.sync,
)
