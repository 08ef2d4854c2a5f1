"""Simulations that are written twice, with tensors and with kernels, and compute the same."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def fluid(monkeypatch):
    """The example of a fluid on a grid."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("tensor_fluid")
    sys.modules.pop("tensor_fluid", None)


def test_a_fluid_on_a_grid(fluid):
    ti.init(arch=ti.cpu, log_level="error")
    n, n_steps, n_sweeps, dt = 40, 12, 9, 0.5
    rng = np.random.default_rng(3)
    start = rng.standard_normal((n, n)).astype(np.float32)
    dye = rng.random((n, n)).astype(np.float32)

    @ti.kernel
    def sweep(vorticity: ti.template(), old: ti.template(), new: ti.template()):
        for i, j in old:
            around = old[(i - 1) % n, j] + old[(i + 1) % n, j] + old[i, (j - 1) % n] + old[i, (j + 1) % n]
            new[i, j] = (around + vorticity[i, j]) * 0.25

    @ti.kernel
    def centred(x: ti.template()):
        total = 0.0
        for i, j in x:
            total += x[i, j]
        for i, j in x:
            x[i, j] -= total / (n * n)

    @ti.kernel
    def carry(stream: ti.template(), old: ti.template(), new: ti.template()):
        for i, j in old:
            u = (stream[i, (j + 1) % n] - stream[i, (j - 1) % n]) * 0.5
            v = (stream[(i - 1) % n, j] - stream[(i + 1) % n, j]) * 0.5
            x, y = i - u * dt, j - v * dt
            a, b = ti.floor(x, ti.i32), ti.floor(y, ti.i32)
            fx, fy = x - a, y - b
            near = old[a % n, b % n] * (1 - fy) + old[a % n, (b + 1) % n] * fy
            far = old[(a + 1) % n, b % n] * (1 - fy) + old[(a + 1) % n, (b + 1) % n] * fy
            new[i, j] = near * (1 - fx) + far * fx

    vorticity, carried, stream, other, colour, coloured = (ti.field(ti.f32, (n, n)) for _ in range(6))
    vorticity.from_numpy(start)
    colour.from_numpy(dye)
    t = ti.tensor
    w, d, psi = t.asarray(start), t.asarray(dye), t.zeros((n, n))
    for _ in range(n_steps):
        for _ in range(n_sweeps):
            sweep(vorticity, stream, other)
            stream, other = other, stream
        centred(stream)
        carry(stream, vorticity, carried)
        carry(stream, colour, coloured)
        vorticity, carried, colour, coloured = carried, vorticity, coloured, colour
        psi = fluid.laplace_of(w, psi, n_sweeps)
        # The example's first axis is x, and what flows along it follows from the second.
        u, v = fluid.velocity(psi)
        w, d = fluid.carried(w, u, v, dt), fluid.carried(d, u, v, dt)
        t.realize(psi, w, d)
    np.testing.assert_allclose(psi.numpy(), stream.to_numpy(), atol=2e-5)
    np.testing.assert_allclose(w.numpy(), vorticity.to_numpy(), atol=2e-4)
    np.testing.assert_allclose(d.numpy(), colour.to_numpy(), atol=2e-4)


def test_bodies_that_attract_each_other():
    ti.init(arch=ti.cpu, log_level="error", default_fp=ti.f64)
    n, dt, soft = 50, 1e-3, 1e-2
    rng = np.random.default_rng(4)
    places, speeds = rng.random((n, 3)), rng.standard_normal((n, 3))

    x, v = (ti.Vector.field(3, ti.f64, n) for _ in range(2))
    x.from_numpy(places)
    v.from_numpy(speeds)

    @ti.kernel
    def pull():
        for i in x:
            total = ti.Vector.zero(ti.f64, 3)
            for j in range(n):
                d = x[j] - x[i]
                total += d * (d.norm_sqr() + soft) ** -1.5
            v[i] += dt * total

    @ti.kernel
    def move():
        for i in x:
            x[i] += dt * v[i]

    t = ti.tensor
    p, u = t.asarray(places), t.asarray(speeds)
    for _ in range(100):
        pull()
        move()
        d = p[None, :, :] - p[:, None, :]
        u = u + dt * (d * ((d * d).sum(axis=-1, keepdims=True) + soft) ** -1.5).sum(axis=1)
        p = p + dt * u
        t.realize(p, u)
    np.testing.assert_allclose(p.numpy(), x.to_numpy(), rtol=1e-11)
    np.testing.assert_allclose(u.numpy(), v.to_numpy(), rtol=1e-9)
