"""Adam on the distance of two sets of points."""

import numpy as np
import taichi as ti
from _client import run
from taichi_extras.optimize.minimize.gradient_descent.adam import Adam

ti.init(arch=ti.cpu)
n = 20_000
start, goal = (np.random.default_rng(seed).random((n, 3), dtype=np.float32) for seed in (0, 1))
x = ti.Vector.field(3, ti.f32, n, needs_grad=True)
target = ti.Vector.field(3, ti.f32, n)
loss = ti.field(ti.f32, (), needs_grad=True)
target.from_numpy(goal)


@ti.kernel
def distance():
    for i in x:
        loss[None] += (x[i] - target[i]).norm_sqr() / n


adam = Adam(distance, loss, (x,), eta=0.02)


def step():
    x.from_numpy(start)
    adam.m[0].fill(0)
    adam.v[0].fill(0)
    adam.run(iters=20, report_interval=0)


run(step, lambda: {"x": x.to_numpy(), "loss": loss.to_numpy()}, ti.sync)
