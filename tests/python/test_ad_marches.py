"""Gradients of loops whose number of turns differs from iteration to iteration: they run in the lanes of vectors, with what
their turns save."""

import numpy as np
import pytest

import aerogel as ti

#: Shorter than a vector, as long, longer, and several.
SIZES = [1, 7, 16, 33, 200]


def compare(kernel, x, y, at):
    """The gradient of a kernel whose iterations touch their own elements alone is what differences say."""

    def run(values):
        x.from_numpy(values)
        kernel()
        return y.to_numpy()

    x.from_numpy(at)
    x.grad.fill(0)
    y.grad.fill(1)
    kernel.grad()
    found, h = x.grad.to_numpy(), 1e-6
    np.testing.assert_allclose(found, (run(at + h) - run(at - h)) / (2 * h), rtol=1e-6, atol=1e-7)
    assert not y.grad.to_numpy().any()


def fields(n):
    return [ti.field(ti.f64, shape=n, needs_grad=True) for _ in range(2)]


def points(n):
    return np.random.default_rng(n).uniform(0.1, 0.9, n)


@pytest.mark.parametrize("n", SIZES)
def test_each_lane_goes_back_its_own_turns(arch, n):
    x, y = fields(n)

    @ti.kernel
    def march():
        for i in x:
            v, k = x[i], 0
            while k < i * 7 % 23:
                v += 0.1 * ti.sin(v + k)
                k += 1
            y[i] = v * v

    compare(march, x, y, points(n))


@pytest.mark.parametrize("n", SIZES)
def test_loops_inside_and_one_after_the_other(arch, n):
    x, y = fields(n)

    @ti.kernel
    def march():
        for i in x:
            v, w, k = x[i], ti.f64(1.0), i * 5 % 11
            while k > 0:
                for j in range(i % 4 + k % 3):
                    w = ti.cos(w * v) + 0.1 * j
                    if j == 2 and i % 5 == 1:
                        break
                v += 0.1 * w * w
                k -= 1
            for j in range(i % 6):
                if (i + j) % 3 == 0:
                    continue
                w = w * ti.sin(v) + v
            y[i] = v * w

    compare(march, x, y, points(n))


@pytest.mark.parametrize("n", SIZES)
def test_turns_that_are_known_beforehand(arch, n):
    """Few of them save in locals, many in buffers; with loops inside whose turns nobody knows."""
    x, y = fields(n)

    @ti.kernel
    def march():
        for i in x:
            v = x[i]
            for _ in range(20):
                w, k = v, 0
                while k < i % 3:
                    w *= 0.5 + 0.01 * ti.sin(v)
                    k += 1
                v = v * 0.9 + 0.1 * ti.sin(w)
            for j in range(70):
                v = ti.sin(v * 1.1) + 0.001 * j
            y[i] = v * v

    compare(march, x, y, points(n))


@pytest.mark.parametrize("n", SIZES)
def test_rays_that_leave(arch, n):
    """Steps along a ray up to a ball, with vectors and two ways out."""
    x, y = fields(n)

    @ti.kernel
    def march():
        for i in x:
            at, to = (
                ti.Vector([0.2 * x[i], 0.0, -1.5]),
                ti.Vector([0.1 + i % 7 // 6, x[i] * 0.02 * (i % 9), 1.0]).normalized(),
            )
            t = ti.f64(0.0)
            for _ in range(60):
                s = (at + to * t).norm() - 0.5
                if s < 1e-13 or t > 2.0:
                    break
                t += s * 0.8
            y[i] = t

    compare(march, x, y, points(n))


@pytest.mark.parametrize("n", SIZES)
def test_what_stands_between_loops_happens_once(arch, n):
    """What is read and zeroed, and sums over all iterations, before and between the loops on the way back."""
    x, y = fields(n)
    z = ti.field(ti.f64, shape=n, needs_grad=True)
    c, d = (ti.field(ti.f64, shape=(), needs_grad=True) for _ in range(2))
    c[None], d[None] = 0.7, 1.3

    @ti.kernel
    def march():
        for i in x:
            v, k = x[i], 0
            while k < i * 3 % 13:
                v = ti.sin(v) * 1.5
                k += 1
            z[i] = v * c[None]
            w, k2 = v, 0
            while k2 < i * 7 % 5:
                w = w * w * 0.9 + 0.2
                k2 += 1
            y[i] = w * d[None] + v

    at = points(n)
    x.from_numpy(at)
    march()
    for grad, value in ((y.grad, 1), (z.grad, 1), (x.grad, 0), (c.grad, 0), (d.grad, 0)):
        grad.fill(value)
    march.grad()
    grads = x.grad.to_numpy(), c.grad[None], d.grad[None]
    assert not y.grad.to_numpy().any() and not z.grad.to_numpy().any()

    def total(values, c0, d0):
        x.from_numpy(values)
        c[None], d[None] = c0, d0
        march()
        return y.to_numpy() + z.to_numpy()

    h = 1e-6
    by = [
        (total(at + h, 0.7, 1.3) - total(at - h, 0.7, 1.3)) / (2 * h),
        (total(at, 0.7 + h, 1.3) - total(at, 0.7 - h, 1.3)).sum() / (2 * h),
        (total(at, 0.7, 1.3 + h) - total(at, 0.7, 1.3 - h)).sum() / (2 * h),
    ]
    for found, expected in zip(grads, by, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_memory_of_all_lanes_is_bounded():
    """A lane of very many turns among short ones is a ``MemoryError``, and the next launch is as if there had been none."""
    ti.init(arch=ti.cpu, ad_memory=1 << 20)
    x, y = fields(50)
    turns = ti.field(ti.i32, shape=50)

    @ti.kernel
    def march():
        for i in x:
            v, k = x[i], 0
            while k < turns[i]:
                v = ti.sin(v)
                k += 1
            y[i] = v

    turns.fill(3)
    turns[17] = 1_000_000
    y.grad.fill(1)
    with pytest.raises(MemoryError, match="ad_memory"):
        march.grad()
        ti.sync()
    turns[17] = 2
    compare(march, x, y, points(50))
