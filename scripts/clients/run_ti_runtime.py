"""The vector operations of which solvers consist."""

import numpy as np
import taichi as ti
from _client import run
from ti_runtime import fields, vector_ops

fields.init("cpu")
n = 500_000
x, y, z = (fields.vector_field(3, n) for _ in range(3))
values = [np.random.default_rng(seed).random((n, 3)) + 0.1 for seed in range(2)]
sums = []


def step():
    x.from_numpy(values[0])
    y.from_numpy(values[1])
    for k in range(5):
        vector_ops.axpy(y, 0.3, x)
        vector_ops.xpay(x, 0.7, y)
        vector_ops.vec_add(z, 0.5, x, -0.25 * k, y)
        vector_ops.ediv(z, z, y, 1e-12)
        sums.append([vector_ops.dot(x, z), vector_ops.norm2(y)])


run(step, lambda: {"x": x.to_numpy(), "z": z.to_numpy(), "sums": sums[:5]}, ti.sync)
