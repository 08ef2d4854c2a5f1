"""Second and third derivatives of programs with loops, against derivatives of the same formula written out."""

from collections.abc import Callable

import numpy as np
import pytest

import aerogel as ti
from aerogel.tensor import programs as p


def _written_out(step: Callable, n: int) -> Callable:
    def program(x, w):
        s = x
        for k in range(n):
            s = step(s, w, k)
        return (s * s).sum()

    return program


def _loop(step: Callable, n: int) -> Callable:
    @ti.program
    def program(x, w):
        s = x + 0.0
        with p.loop(n) as k:
            s.val = step(s, w, k)
        return (s * s).sum()

    return program


STEPS = {
    "product": lambda s, w, k: s * w + 0.5,
    "sine": lambda s, w, k: ti.tensor.sin(s * w) + s * s * 0.1,
    "sums": lambda s, w, k: s * 0.5 + (s * w).sum() * 0.1,
    "neighbours": lambda s, w, k: s * ti.tensor.roll(s, 1) * 0.3 + w,
    "counter": lambda s, w, k: s * s * 0.2 + w * (k + 1),
    "matrix": lambda s, w, k: ti.tensor.tanh((w[:, None] * w[None, :]) @ s),
}


@pytest.mark.parametrize("name", STEPS)
def test_derivatives_through_a_loop(name: str):
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    x, w = (ti.tensor.asarray(np.random.default_rng(k).uniform(0.2, 0.9, 3)) for k in (1, 2))
    step = STEPS[name]
    loop, plain = _loop(step, 3), _written_out(step, 3)

    def all_of(f: Callable) -> list[np.ndarray]:
        hessian = ti.hessian(f, argnums=(0, 1))(x, w)
        curvature = lambda a, b: (ti.grad(f, argnums=0)(a, b) ** 2).sum()
        third = lambda a, b: (ti.grad(curvature, argnums=1)(a, b) ** 2).sum()
        flat = [block.numpy() for row in hessian for block in row]
        return [*flat, ti.grad(curvature)(x, w).numpy(), ti.grad(third)(x, w).numpy()]

    for found, wanted in zip(all_of(loop), all_of(plain), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_a_hessian_inside_of_a_program():
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    f = _loop(STEPS["sine"], 4)
    plain = _written_out(STEPS["sine"], 4)
    x, w = (ti.tensor.asarray(np.random.default_rng(k).uniform(0.2, 0.9, 3)) for k in (1, 2))
    made = ti.program(lambda x, w: ti.hessian(lambda x: f(x, w))(x))(x, w)
    np.testing.assert_allclose(made.numpy(), ti.hessian(lambda x: plain(x, w))(x).numpy(), rtol=1e-9)
    made = ti.hvp(lambda x: f(x, w), [x], [w])
    np.testing.assert_allclose(made[0].numpy(), ti.hvp(lambda x: plain(x, w), [x], [w])[0].numpy(), rtol=1e-9)


def _power(x, n):
    y = x * 0 + 1
    with p.loop(n):
        y.val = y * ti.tensor.sin(x)
    return y.sum()


def _left_early(x, most):
    y = x * 0 + 1
    with p.loop(30):
        with p.if_cond(abs(y).max() > most):
            p.break_loop()
        y.val = y * (x + 1) + 0.1
    return y.sum()


def _nested(x, n):
    y = x * 0 + 1
    with p.loop(n) as k:
        z = y * 1
        with p.loop(k + 1):
            z.val = ti.tensor.sin(z) * x + 0.3
        y.val = y * z + 0.5
    return y.sum()


CASES = {
    "power": (_power, np.array([3, 1, 0, 2])),
    "left_early": (_left_early, np.array([3.0, 0.5, 9.0, 20.0])),
    "nested": (_nested, np.array([2, 0, 3, 1])),
}


@pytest.mark.parametrize("name", CASES)
def test_loops_that_each_of_many_leaves_by_itself(name: str):
    """Derivatives of many at once are those of each by itself."""
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    function, each = CASES[name]
    f = ti.program(function)
    x = np.random.default_rng(3).uniform(0.2, 0.9, (4, 3))
    for derivative in (ti.grad, ti.hessian):
        all_at_once = ti.vmap(derivative(f))(x, each).numpy()
        one_by_one = [derivative(f)(a, b).numpy() for a, b in zip(x, each, strict=True)]
        np.testing.assert_allclose(all_at_once, one_by_one, rtol=1e-9, atol=1e-12)
    for a, b in zip(x, each, strict=True):
        gradient = ti.grad(f)
        h = 1e-6
        differences = [(gradient(a + h * e, b).numpy() - gradient(a - h * e, b).numpy()) / (2 * h) for e in np.eye(3)]
        np.testing.assert_allclose(ti.hessian(f)(a, b).numpy(), differences, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_what_is_mapped_over_gradients_of_loops(name: str):
    """The adjoints of lanes that keep their values by themselves."""
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    function, each = CASES[name]
    x, h = np.random.default_rng(3).uniform(0.2, 0.9, (4, 3)), 1e-6

    def size(many, numbers):
        gradients = ti.vmap(lambda row, n: ti.grad(lambda r: function(r, n))(row))(many, numbers)
        return (gradients**2).sum()

    f = ti.program(size)
    differences = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = h
        differences[at] = (float(f(x + step, each)) - float(f(x - step, each))) / (2 * h)
    made = ti.grad(f)(x, each).numpy()
    np.testing.assert_allclose(made, differences, rtol=1e-5, atol=1e-6 * np.abs(differences).max())


def test_derivatives_of_trees_by_several_arguments():
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    made = ti.jacobian(lambda x, y: {"a": x * y, "b": (y * y).sum()}, argnums=(0, 1))(
        np.array([1.0, 2.0]), np.array([3.0, 4.0])
    )
    np.testing.assert_allclose(made["a"][0].numpy(), np.diag([3.0, 4.0]))
    np.testing.assert_allclose(made["a"][1].numpy(), np.diag([1.0, 2.0]))
    np.testing.assert_allclose(made["b"][0].numpy(), [0.0, 0.0])
    np.testing.assert_allclose(made["b"][1].numpy(), [6.0, 8.0])


SCANS = {
    "product": lambda x: x.prod(),
    "cumulative_prod": lambda x: (ti.tensor.cumulative_prod(x) ** 2 * np.arange(1.0, 4.0)).sum(),
    "cumulative_sum": lambda x: (ti.tensor.cumulative_sum(x * x) ** 2 * np.arange(1.0, 4.0)).sum(),
    "both": lambda x: (ti.tensor.cumulative_sum(ti.tensor.sin(x)) * ti.tensor.cumulative_prod(x + 1)).sum(),
}


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("is_traced", [False, True])
def test_third_derivatives_of_running_operations_for_many(name: str, is_traced: bool):
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    f = SCANS[name]
    x, h = np.array([0.5, 0.6, 0.7]), 1e-6
    hessian = ti.hessian(f)
    size = lambda x: (hessian(x) ** 2).sum()
    gradient = ti.grad(size)
    made = (ti.program(lambda x: gradient(x)) if is_traced else gradient)(x)
    differences = [(float(size(x + h * e)) - float(size(x - h * e))) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(made.numpy(), differences, rtol=1e-6)
