"""A kernel whose arguments are annotated by the package."""

import numpy as np
import quadrants as qd
from _client import run
from quadrants_typing import Dim1, NDArray, Vec3f

qd.init(arch=qd.cpu)
n = 200_000
x, y = qd.ndarray(qd.f32, n), qd.ndarray(qd.f32, n)
x.from_numpy(np.random.default_rng(0).random(n, dtype=np.float32))


@qd.kernel
def wave(x: NDArray[qd.f32, Dim1], y: NDArray[qd.f32, Dim1], k: Vec3f):
    for i in range(x.shape[0]):
        y[i] = qd.sin(k[0] * x[i]) + k[1] * x[i] + k[2]


run(lambda: wave(x, y, qd.Vector([1.0, 2.0, 3.0])), lambda: {"y": y.to_numpy()}, qd.sync)
