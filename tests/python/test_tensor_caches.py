"""What Python keeps of a program once it is traced, as in a cache: values made of known numbers alone are of use anywhere."""

import functools

import numpy as np
import pytest

import aerogel as ti
from aerogel.tensor import programs as p


@pytest.fixture(autouse=True)
def cpu():
    ti.init(arch=ti.cpu, log_level="error")


t = ti.tensor
X = np.arange(5.0)


def window(n):
    return 0.5 - 0.5 * np.cos(np.arange(n) * (2 * np.pi / n))


def test_a_cache_that_a_program_fills_is_of_use_to_it_and_outside():
    @functools.lru_cache
    def coefficients(n):
        return t.asarray(np.arange(n) + 1.0)

    @functools.lru_cache
    def hann(n):
        return 0.5 - 0.5 * t.cos(t.arange(n, dtype=ti.f64) * (2 * np.pi / n))

    others = {}

    @p.program
    def smooth():
        x = p.input([-1], ti.f64)
        if "product" not in others:
            others["product"] = t.eye(3, dtype=ti.f64) @ t.asarray(np.arange(9.0).reshape(3, 3))
        s = t.sum(x)
        # Set in a block: the function is traced twice.
        with p.loop(3):
            s.val = s * 0.5 + coefficients(3)[1] + hann(8)[2]
        return s + others["product"][1, 1], hann(8)

    expected = X.sum()
    for _ in range(3):
        expected = expected * 0.5 + 2 + window(8)[2]
    for _ in range(2):
        s, w = smooth(X)
        assert np.isclose(s.item(), expected + 4) and np.allclose(w.numpy(), window(8))
    assert coefficients.cache_info().misses == hann.cache_info().misses == 1
    # What is cached is a tensor as any other: here, and in programs that come.
    assert coefficients(3).tolist() == [1, 2, 3] and np.allclose((hann(8) * 2).numpy(), 2 * window(8))
    assert others["product"].tolist() == np.arange(9.0).reshape(3, 3).tolist()

    @p.program
    def other():
        return p.input([-1], ti.f64) + coefficients(3)

    assert other(np.ones(3)).tolist() == [2, 3, 4]


def test_tensors_that_a_cache_leaves_out_do_not_move_what_is_learned_of_others():
    cached = functools.lru_cache(lambda n: t.asarray([float(n)]))

    @p.program
    def both():
        x = p.input([-1], ti.f64)
        first, a = cached(1), p.const(0.0, ti.f64)
        second, b = cached(2), t.zeros(x.shape[0], dtype=ti.f64)
        with p.loop(4) as k:
            a.val = a + k
            b.val = b + x * first[0]
        return a + second[0], b

    a, b = both(X)
    assert a.item() == 8 and b.tolist() == (4 * X).tolist()


@pytest.mark.parametrize("runs", [False, True])
def test_a_cache_that_is_filled_in_a_block_has_its_values_though_the_block_does_not_run(runs):
    hann = functools.lru_cache(lambda n: 0.5 - 0.5 * t.cos(t.arange(n, dtype=ti.f64) * (2 * np.pi / n)))

    @p.program
    def after():
        x = p.input([-1], ti.f64)
        with p.if_cond(x.sum() > 100):
            p.assert_value("a window", hann(7)[0] == 0)
        return hann(7) + x[0]

    assert np.allclose(after(np.full(3, 50.0 if runs else 1.0)).numpy(), window(7) + (50 if runs else 1))


def test_what_is_made_of_inputs_memory_and_counters_stays_in_its_program():
    kept = {}

    @p.program
    def f():
        x = p.input([-1], ti.f64)
        total = p.const(0.0, ti.f64)
        kept["input"], kept["sum"] = x, (x * 2).sum()
        with p.loop(3) as k:
            total.val = total + k
            kept["counter"] = k * 2
        kept["memory"], kept["read"] = total, total * 2
        return total

    assert f(X).item() == 3
    for tensor in kept.values():
        with pytest.raises(ti.AerogelRuntimeError, match="let the program return it"):
            tensor.numpy()
        with pytest.raises(ValueError, match="what Python keeps of its inputs, as in a list"):
            t.ones((), dtype=ti.f64) + tensor


def test_a_program_returns_what_is_from_outside():
    outside = t.asarray([1.0, 2.0]) * 2

    @p.program
    def f():
        p.input([-1], ti.f64)
        return outside, outside.sum()

    both = f(X)
    assert both[0].tolist() == [2, 4] and both[1].item() == 6


def test_what_a_cache_makes_and_a_block_sets():
    def make(value):
        return t.asarray(np.array(value))

    three, pair = functools.lru_cache(lambda: make([3.0])), functools.lru_cache(lambda: make([1.0, 2.0]))

    @p.program
    def f():
        x = p.input([-1], ti.f64)
        c, d = three(), pair()
        a, b, e = t.sum(c), make(0.0), make([4.0, 5.0])
        with p.loop(2):
            a.val = a + x
            b.val = b + t.sum(d) * x
        return a, b, e, t.sum(d)

    a, b, e, d = f(X)
    assert a.tolist() == (3 + 2 * X).tolist() and b.tolist() == (6 * X).tolist()
    assert e.tolist() == [4, 5] and d.item() == 3


def test_a_cache_that_a_later_trace_fills_in_a_block():
    first = functools.lru_cache(lambda: t.arange(3, dtype=ti.f64) + 1)
    second = functools.lru_cache(lambda: t.arange(3, dtype=ti.f64) * 10)

    @p.program
    def f():
        x = p.input([-1], ti.f64)
        s, a = t.sum(x), p.const(0.0, ti.f64)
        chosen = second if a.ndim else first
        with p.if_cond(s > 1000):
            p.assert_value("q", chosen()[0] == 0)
        with p.loop(2):
            a.val = a + x
        return chosen()[1] + a

    assert f(X).tolist() == (10 + 2 * X).tolist()


def test_a_table_of_many_parts_is_cached():
    table = functools.lru_cache(lambda: t.stack([t.asarray(float(k)) for k in range(40)]))

    @p.program
    def f():
        return p.input([-1], ti.f32) + table()[39]

    assert f([1.0]).tolist() == [40] and table().tolist() == list(range(40)) and f([2.0]).tolist() == [41]


def test_a_cache_that_is_filled_where_an_error_is_raised():
    hann = functools.lru_cache(lambda: t.arange(3, dtype=ti.f64) * 2)

    def fails(row):
        hann()
        raise ZeroDivisionError

    @p.program
    def f():
        x, own = p.input([-1], ti.f64), t.arange(3, dtype=ti.f64)
        try:
            ti.vmap(fails)(x)
        except ZeroDivisionError:
            pass
        own.val = own + 1
        return hann() + x[0] + own - own

    assert f(X).tolist() == [0, 2, 4] and hann().tolist() == [0, 2, 4]
