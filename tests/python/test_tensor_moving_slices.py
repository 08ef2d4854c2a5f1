"""Slices of programs whose bounds are computed while the program runs, and whose length is known before."""

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

X = np.random.default_rng(0).standard_normal((32, 3))
Y = X @ np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True, params=["cpu", "interp"])
def _start(request):
    ti.init(arch=request.param, log_level="error")


def epoch(x, y):
    """The weights after one step of gradient descent for each batch."""
    w = p.const(ti.xp.zeros(3, dtype=ti.f64))
    with p.loop(x.shape[0] // 4) as b:
        xb, yb = x[b * 4 : b * 4 + 4], y[b * 4 : b * 4 + 4]
        w.val -= 0.05 * (xb.T @ (xb @ w - yb))
    return w


def epoch_in_numpy(x, y):
    w = np.zeros(3)
    for b in range(8):
        xb, yb = x[b * 4 : b * 4 + 4], y[b * 4 : b * 4 + 4]
        w = w - 0.05 * (xb.T @ (xb @ w - yb))
    return w


def test_batches_of_an_epoch():
    made = ti.program(epoch)(X, Y)
    np.testing.assert_allclose(made.numpy(), epoch_in_numpy(X, Y), rtol=1e-13)


def test_gradients_through_batches():
    def loss(x, y):
        return (epoch(x, y) ** 2).sum()

    by_x, by_y = ti.program(ti.grad(loss, (0, 1)))(X, Y)
    rng = np.random.default_rng(1)
    dx, dy = rng.standard_normal(X.shape), rng.standard_normal(Y.shape)
    above, below = ((epoch_in_numpy(X + h * dx, Y + h * dy) ** 2).sum() for h in (1e-6, -1e-6))
    np.testing.assert_allclose((by_x.numpy() * dx).sum() + (by_y.numpy() * dy).sum(), (above - below) / 2e-6, rtol=1e-7)


def test_stores_to_slices():
    @ti.program
    def f(x):
        z = ti.xp.zeros((6, 5), dtype=ti.f64)
        with p.loop(3) as b:
            z[b * 2 : b * 2 + 2, 1:3] = x[b : b + 2, None]
            z[0, b + 1 : b + 3] += x[b]
        return z

    x = np.arange(1.0, 5.0)
    z = np.zeros((6, 5))
    for b in range(3):
        z[b * 2 : b * 2 + 2, 1:3] = x[b : b + 2, None]
        z[0, b + 1 : b + 3] += x[b]
    np.testing.assert_array_equal(f(x).numpy(), z)


@pytest.mark.parametrize(
    "bounds",
    [
        lambda k, n: (k, k + 2),
        lambda k, n: (k - 1, 1 + k),
        lambda k, n: (k * n, k * n + n),
        lambda k, n: (n * k, (k + 1) * n),
        lambda k, n: ((n - 1) * k, k * n - k + 2),
        lambda k, n: (3 * (k + 1) - 4, k * 3 + n // 2),
        lambda k, n: (k, k),
        lambda k, n: (k + 0, k + 0 + 0 * n),
        lambda k, n: (k, k + 0),
    ],
)
def test_bounds(bounds):
    @ti.program
    def f(x, m, k):
        start, stop = bounds(k, m.shape[0])
        return x[:, start:stop], x[1, start:stop]

    x = np.arange(24.0).reshape(2, 12)
    start, stop = bounds(2, 4)
    for made, expected in zip(f(x, np.zeros(4), 2), (x[:, start:stop], x[1, start:stop])):
        np.testing.assert_array_equal(made.numpy(), expected)


def test_a_variable_as_a_bound():
    @ti.program
    def f(x):
        k, out = p.const(0), p.const(ti.xp.zeros(2, dtype=ti.f64))
        with p.loop(3):
            with p.if_cond(k < 4):
                out.val += x[k : k + 2]
            k.val += 2
        return out

    np.testing.assert_array_equal(f(np.arange(5.0)).numpy(), [2, 4])


def test_batches_of_slices():
    x, k = np.arange(24.0).reshape(3, 2, 4), np.array([0, 1, 2])
    made = ti.program(ti.vmap(lambda x, k: x[1, k : k + 2]))(x, k)
    np.testing.assert_array_equal(made.numpy(), [x[n, 1, n : n + 2] for n in range(3)])


def test_a_slice_that_is_outside():
    @ti.program
    def f(x, k):
        return x[k : k + 2]

    for k in (3, -1):
        with pytest.raises(IndexError, match=rf"index {4 if k > 0 else -1} is outside axis 0 with 4 elements"):
            f(np.zeros(4), k).numpy()


@pytest.mark.parametrize(
    "key", [lambda k: slice(k, None), lambda k: slice(None, k), lambda k: slice(k, 2 * k), lambda k: slice(k, k + 4, 2)]
)
def test_a_length_that_is_not_known(key):
    with pytest.raises(ValueError, match="its length has to be known before: write `x\\[k : k \\+ 4\\]`"):
        ti.program(lambda x, k: x[key(k)])(np.zeros(9), 2)
