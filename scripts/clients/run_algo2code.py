"""Conjugate gradients, written from LaTeX, solve a dense system."""

import sys

import numpy as np
import taichi as ti
from _client import run
from algo2code import get_pcg_algorithm_latex, transpile

source = transpile(get_pcg_algorithm_latex()).replace("ti.gpu", "ti.cpu")
with open("solver.py", "w") as file:  # kernels need a file
    file.write(source)
sys.path.insert(0, ".")
import solver  # noqa: E402

n = 1500
rng = np.random.default_rng(0)
half = rng.random((n, n))
matrix, b, x = ti.field(ti.f64, (n, n)), ti.field(ti.f64, n), ti.field(ti.f64, n)
matrix.from_numpy(half @ half.T / n + 10 * np.eye(n))
b.from_numpy(rng.random(n))


@ti.kernel
def precondition(r: ti.template(), z: ti.template()):
    for i in r:
        z[i] = r[i] / matrix[i, i]


def step():
    x.fill(0)
    solver.pcg(matrix, b, x, precondition, 1e-10, 200)


run(step, lambda: {"x": x.to_numpy()}, ti.sync)
