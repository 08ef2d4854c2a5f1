"""Gradients in programs of tensors: blocks, values that are set, and what has no gradient."""

from __future__ import annotations

import numpy as np
import pytest

import aerogel as ti
from aerogel import tensor as t
from aerogel.tensor import programs as p


def heat(x, n: int):
    u = x + 0.0
    with p.loop(n):
        u.val = u + 0.1 * (t.roll(u, 1) + t.roll(u, -1) - 2 * u)
    return (u * u).sum()


def growth(x, w, n: int):
    u = x + 0.0
    with p.loop(n):
        u.val = u + 0.1 * t.sin(u) * w * u
    return (u * u).sum()


def branch(x):
    u = x * 1.0
    with p.if_cond(x.sum() > 0):
        u.val = u * u
        u.val = u * 3
    return (u * x).sum()


def left_early(x):
    u = x + 0.0
    with p.loop(100):
        u.val = u * u * 1.1
        with p.if_cond(u.sum() > 50):
            p.break_loop()
    return u.sum()


def skipping(x):
    u = x + 0.0
    with p.loop(6) as i:
        with p.if_cond(i % 2 == 0):
            p.continue_loop()
        u.val = t.sin(u) * (i + 1)
    return (u * u).sum()


def never(x):
    u = x * 2
    with p.loop(0):
        u.val = u * u
    return (u * u).sum()


def nested(x):
    u = x + 0.0
    with p.loop(3):
        v = u * u
        with p.loop(2) as j:
            v.val = t.sin(v) + u * (j + 1)
        u.val = v * 0.5 + u[::-1]
    return (u * u).sum()


def stores(x):
    u, out = x + 0.0, t.zeros(5, dtype=ti.f64)
    with p.loop(5) as i:
        u.val = t.cos(u) * u
        out[i] = u.sum() * i
    return (out * out).sum()


def set_after_use(x):
    y = x * 2
    z = (y * y).sum()
    y.val = y * 3
    y[1:2] = 5.0
    return z + (y * y * y).sum()


def masked(x):
    u = x + 0.0
    with p.if_cond(u > 0):
        u.val = u * u * 2
    return (u * x).sum()


def points_leave(x):
    u = x + 0.0
    with p.loop(20):
        with p.if_cond(u > 10):
            p.break_loop()
        u.val = u * 1.5
    return (u * u).sum()


X = np.array([0.3, 1.7, 0.9, 1.2])
CASES = {
    "heat": (heat, (X,), (5,)),
    "growth": (growth, (X, X[::-1].copy()), (4,)),
    "branch taken": (branch, (X,), ()),
    "branch not taken": (branch, (-X,), ()),
    "left early": (left_early, (X + 1,), ()),
    "skipping": (skipping, (X,), ()),
    "never": (never, (X,), ()),
    "nested": (nested, (X,), ()),
    "stores": (stores, (X,), ()),
    "set after use": (set_after_use, (X,), ()),
    "masked": (masked, (X - 1,), ()),
    "points leave": (points_leave, (X,), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_blocks_against_differences(name):
    function, given, known = CASES[name]
    program = ti.program(function)
    gradients = ti.program(ti.grad(function, argnums=tuple(range(len(given)))))(*given, *known)
    step = 1e-6
    for k, (x, gradient) in enumerate(zip(given, gradients)):
        direction = np.cos(np.arange(x.size) + k)

        def at(sign, k=k, direction=direction):
            moved = [y + sign * step * direction if j == k else y for j, y in enumerate(given)]
            return float(program(*moved, *known))

        difference = (at(1) - at(-1)) / (2 * step)
        slope = float((gradient.numpy() * direction).sum())
        assert slope == pytest.approx(difference, rel=1e-6, abs=1e-8)


def test_a_program_and_its_function_have_one_gradient():
    def loss(x, w):
        return (t.tanh(x @ w) ** 2).mean()

    x, w = np.outer(X, X), X.reshape(2, 2)[:, :1].repeat(2, 0)
    for made, eager in zip(ti.grad(ti.program(loss), (0, 1))(x, w), ti.grad(loss, (0, 1))(x, w)):
        np.testing.assert_allclose(made.numpy(), eager.numpy(), rtol=1e-14)


def test_a_step_of_training_traces_once():
    @ti.program
    def step(w, x, y, rate=0.1):
        def loss(w):
            return ((x @ w - y) ** 2).mean()

        value, gradient = ti.value_and_grad(loss)(w)
        return w - rate * gradient, value

    x, w = np.outer(X, X) + np.eye(4), np.zeros(4)
    losses = []
    for _ in range(20):
        w, value = step(w, x, X, 0.05)
        losses.append(float(value))
    assert step.trace_count == 1
    assert losses[-1] < 0.1 * losses[0]


def test_what_has_no_gradient_is_refused():
    with pytest.raises(ValueError, match="differentiates a scalar"):
        ti.grad(lambda x: x * 2)(X)
    with pytest.raises(TypeError, match="floats"):
        ti.grad(lambda x: x.sum())(np.arange(3))

    def through_a_block(x):
        out = t.zeros(4, dtype=ti.f64)
        y = x * x
        with p.loop(2):
            out.val = ti.grad(y.sum(), x)
        return out

    with pytest.raises(ValueError, match="outside the block"):
        ti.program(through_a_block)(X)


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "eigvalsh", "svdvals"])
def test_matrices_that_are_stored_to_after_a_decomposition(name):
    """The gradient is at what the operation has read, not at what is there now."""

    def f(x):
        y = x[:, None] * np.ones((1, 2, 1))
        y = y @ y.mT + np.eye(2)
        made = getattr(t.linalg, name)(y)
        y[-1, 1] = made[0].sum() * 5
        y[0, 0, 0] = 3.0
        return (made * made).sum() + y.sum()

    x = np.random.default_rng(0).uniform(0.3, 1, (2, 3))
    np.testing.assert_allclose(ti.grad(ti.program(f))(x).numpy(), ti.grad(f)(x).numpy(), rtol=1e-6)
