"""Calls of kernels and functions, as a type checker sees them: lines marked `# wrong` are the ones it must flag."""

import numpy as np

import aerogel as ti

x = ti.field(float, shape=8)


@ti.kernel
def scale(by: float, n: int = 8) -> float:
    total = 0.0
    for i in range(n):
        x[i] *= by
        total += x[i]
    return total


@ti.kernel
def fill(a: ti.types.ndarray(dtype=float, ndim=1), value: ti.f32):
    for i in a:
        a[i] = value


@ti.kernel
def copy(source: ti.types.texture(2), target: ti.types.rw_texture(2, fmt=ti.Format.rgba8)):
    for i, j in target:
        target.store([i, j], source.fetch([i, j], 0))


@ti.func
def square(v: float) -> float:
    return v * v


@ti.data_oriented
class Box:
    def __init__(self, n: int):
        self.n = n

    @ti.kernel
    def step(self, dt: float, count: int) -> float:
        return dt * count * self.n

    @ti.kernel
    def reset(self):
        x[0] = 0


box = Box(3)

scale(2.0)
scale(2, 4)
scale(by=0.5, n=3)
fill(np.zeros(3), 2.0)
box.step(0.1, 3)
box.reset()
print(1.0 + scale(2.0), scale.inspect(2.0)["llvm"], scale.__name__, box.step(0.1, count=2) * 2)

scale()  # wrong
scale(1.0, 2, 3)  # wrong
scale("2")  # wrong
scale(2.0, m=3)  # wrong
scale(2.0).upper()  # wrong
scale.inspct()  # wrong
fill(np.zeros(3))  # wrong
square()  # wrong
square("a")  # wrong
box.step(0.1)  # wrong
box.step(0.1, "3")  # wrong
box.step(0.1, 3, 4)  # wrong
box.reset(1)  # wrong
Box()  # wrong
