"""Gradients of random functions by ``backward``, of programs, compiled, and twice."""

import pytest
from tensor_gradients.generated import FIRST, N, N_PARTS, are_close, directions, has, made, numbers, seeds

import aerogel as ti
from aerogel import tensor as t
import numpy as np

#: What programs refuse whose sizes are known when they run.
REFUSED = "broadcast", "transform a slice of the needed length"

parts = pytest.mark.parametrize("part", range(N_PARTS))


@pytest.fixture(autouse=True, scope="module")
def _start():
    ti.init(arch="interp", log_level="error")
    yield
    ti.reset()


@parts
def test_backward(part):
    for seed in seeds(part, each=5):
        r, f, of = made(seed)
        leaves = [t.asarray(a).requires_grad_() for a in r.arrays]
        f(*leaves).backward()
        found = [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]
        assert are_close(found, numbers(ti.grad(f, of)(*r.arrays)), 1e-11), r.steps


@parts
def test_second_derivatives(part):
    for seed in seeds(part, each=5, n=N // 5):
        r, f, of = made(seed)
        direction = directions(r, seed)
        product = numbers(ti.hvp(f, tuple(r.arrays), tuple(direction)))
        g = ti.grad(f, of)
        by_parts = ti.grad(lambda *x: sum((a * t.asarray(d)).sum() for a, d in zip(g(*x), direction)), of)(*r.arrays)
        assert are_close(product, numbers(by_parts), 1e-5 if has(r, "f32") else 1e-8), r.steps


@parts
def test_programs(part):
    """Loops and branches of a program, which are written out elsewhere."""
    n_refused, all = 0, seeds(part, each=5)
    for seed in all:
        r, f, of = made(seed)
        try:
            found = numbers(ti.grad(ti.program(f), of)(*r.arrays))
        except ValueError as e:
            assert any(text in str(e) for text in REFUSED), (str(e), r.steps)
            n_refused += 1
            continue
        assert are_close(found, numbers(ti.grad(f, of)(*r.arrays)), 1e-5 if has(r, "f32") else 1e-9), r.steps
    assert n_refused < 0.5 * len(all) + 3


def test_compiled():
    def all_of(seeds):
        out = []
        for seed in seeds:
            r, f, of = made(seed)
            out += ti.grad(f, of)(*r.arrays)
        t.realize(*out)
        return numbers(out)

    some = [seed for seed in range(FIRST + 3, FIRST + N, N // 25) if not has(made(seed)[0], "f32")]
    wanted = all_of(some)
    try:
        ti.init(arch="cpu", log_level="error")
        assert are_close(all_of(some), wanted, 1e-9)
    finally:
        ti.init(arch="interp", log_level="error")
