"""What statements have in common is computed once, and what only looks alike is not."""

import re

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

T = None


@pytest.fixture(autouse=True)
def started():
    global T
    ti.init(arch=ti.cpu)
    T = ti.tensor


X = np.random.default_rng(5).random((4, 4)).astype("f")


def n_statements(program):
    found = re.search(r"(\d+) statements? became (\d+) kernel", program.explain())
    return int(found[1]), int(found[2])


def test_what_is_written_twice_is_one_value():
    @p.program
    def twice():
        x = p.input([-1], ti.f32)
        return T.exp(x) + 1, T.exp(x) * 2

    @p.program
    def once():
        x = p.input([-1], ti.f32)
        y = T.exp(x)
        return y + 1, y * 2

    assert n_statements(twice) == n_statements(once)
    assert n_statements(once)[1] == 1
    a, b = twice(X[0])
    assert np.allclose(a.numpy(), np.exp(X[0]) + 1) and np.allclose(b.numpy(), np.exp(X[0]) * 2)


def test_other_indices_are_other_values():
    @p.program
    def both():
        x = p.input([4, 4], ti.f32)
        i, j = p.indices([4, 4])
        return x[i, j] * 2 + x[j, i] * 2

    assert np.array_equal(both(X).numpy(), X * 2 + X.T * 2)


def test_what_is_stored_between_is_seen():
    @p.program
    def between():
        x = p.input([-1], ti.f32)
        y = p.buffer([x.shape[0]], ti.f32)
        (i,) = p.indices([x.shape[0]])
        y[i] = x[i]
        before = T.exp(y[i])
        y[i] = x[i] + 1
        after = T.exp(y[i])
        return before, after

    before, after = between(X[0])
    assert np.allclose(before.numpy(), np.exp(X[0])) and np.allclose(after.numpy(), np.exp(X[0] + 1))


def test_other_precision_is_another_value():
    @p.program
    def both():
        x = p.input([-1], ti.f32)
        return T.exp(x), T.exp(T.astype(x, ti.f64)), T.exp(T.astype(x, ti.f16))

    single, double, half = (value.numpy() for value in both(X[0]))
    assert (single.dtype, double.dtype, half.dtype) == ("f4", "f8", "f2")
    assert np.array_equal(double, np.exp(X[0].astype("d"))) or np.allclose(double, np.exp(X[0].astype("d")), rtol=1e-15)
    assert not np.array_equal(double, single)


def test_what_a_turn_or_a_branch_computes_is_its_own():
    @p.program
    def turns():
        x = p.input([-1], ti.f32)
        y, z = p.const(0.0), p.const(0.0)
        y.val = x
        with p.loop(3):
            y.val = T.sin(y)
        with p.if_cond(x > 0.5):
            z.val = T.sin(x)
        with p.if_cond(x <= 0.5):
            z.val = T.sin(x) * 2
        return y, z

    y, z = (value.numpy() for value in turns(X[0]))
    assert np.allclose(y, np.sin(np.sin(np.sin(X[0]))))
    assert np.allclose(z, np.where(X[0] > 0.5, 1, 2) * np.sin(X[0]))


def test_a_value_of_other_settings_is_not_shared():
    """After `ti.init` an expression is computed by its settings, though an equal one is there."""
    x = ti.tensor.asarray(np.arange(5.0, dtype=np.float32))
    y = ti.tensor.sin(x + 1)
    y.numpy()
    assert "0 statements" in ti.tensor.explain(ti.tensor.sin(x + 1))
    ti.init(arch=ti.cpu, fast_math=False, log_level="error")
    z = ti.tensor.sin(x + 1)
    assert "0 statements" not in ti.tensor.explain(z)
    assert np.allclose(z.numpy(), y.numpy(), rtol=1e-6)
