"""Sums, products and quotients of floats of 192 bits."""

import numpy as np
import taichi as ti
from _client import run

ti.init(arch=ti.cpu)
from taichi_big_float import make_float_t  # noqa: E402, it makes kernels

big = make_float_t(6)
float_t = big.float_t
n = 50_000
a, b = ti.field(ti.f32, n), ti.field(ti.f32, n)
out = ti.Vector.field(8, ti.u32, (4, n))
a.from_numpy(np.random.default_rng(0).standard_normal(n).astype(np.float32))
b.from_numpy(np.random.default_rng(1).standard_normal(n).astype(np.float32) + 3)


@ti.kernel
def compute():
    for i in a:
        x, y = big.f32_to_float(a[i]), big.f32_to_float(b[i])
        out[0, i] = big.add(x, y)
        out[1, i] = big.sub(x, y)
        out[2, i] = big.mul(x, y)
        out[3, i] = big.div(x, y)


def read():
    found = out.to_numpy()
    # Quotients begin with one in `f32`, whose last bit Taichi does not round correctly: their lowest words differ.
    return {"exact": found[:3], "quotients": found[3, :, 3:]}


run(compute, read, ti.sync)
