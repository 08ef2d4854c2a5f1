"""Its kernel: the Mandelbrot set in `f64`."""

import importlib.util
import os

import numpy as np
import taichi as ti
from _client import run

ti.init(arch=ti.cpu)
# The package imports a toolkit of windows; the file with the kernel does not.
path = os.path.join(os.environ["CLIENT_SITE"], "mandelbrot_viewer", "mandelbrot_calculator.py")
spec = importlib.util.spec_from_file_location("mandelbrot_calculator", path)
calculator = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calculator)

picture = np.zeros((600, 800), np.float32)
run(lambda: calculator.compute(-2.2, -1.2, 1.0, 1.2, 600, 800, picture, 200), lambda: {"picture": picture}, ti.sync)
