"""Gradients of loops whose states exceed `ad_memory`: iterations run again, and results are the same to the bit."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import aerogel as ti
from aerogel.tensor import programs as p

t = ti.tensor
X = np.linspace(0.5, 0.9, 1024, dtype=np.float32)


def gradient(limit: str | None, f: Callable, *args: Any, n_threads: int = 1) -> tuple[list[bytes], str]:
    """The value and the gradient of a function of X, and what the program explains."""
    memory = {} if limit is None else {"ad_memory": limit}
    ti.init(arch=ti.cpu, log_level="error", cpu_max_num_threads=n_threads, **memory)
    program = ti.program(lambda x, args: ti.value_and_grad(lambda x: f(x, *args))(x))
    made = program(X, args)
    return [m.numpy().tobytes() for m in made], program.explain()


def last_run(explained: str) -> list[list[int]]:
    """For each loop in segments its iterations, the most states at a time, and the iterations that ran again."""
    lines = [line for line in explained.splitlines() if line.startswith("last run")]
    return [[int(n) for n in re.findall(r" (\d+) ", line)] for line in lines]


def check(f: Callable, *args: Any, limit: str = "100kB", n_threads: int = 1) -> list[list[int]]:
    """Compares with a run that saves all states."""
    expected, explained = gradient(None, f, *args)
    assert not last_run(explained)
    made, explained = gradient(limit, f, *args, n_threads=n_threads)
    assert made == expected
    return last_run(explained)


def counted(x, n):
    y = x * 1
    with p.loop(n):
        y.val = t.sin(y) * x
    return y.sum()


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_a_counted_loop(n_threads: int):
    # 24 states have room, of which 23 besides the first: two levels reverse up to 300 iterations, each once more.
    [[iterations, states, again]] = check(counted, t.asarray(200), n_threads=n_threads)
    assert iterations == 200
    assert states <= 24
    assert 176 <= again < 200
    # Three levels: each iteration at most twice more.
    [[iterations, states, again]] = check(counted, t.asarray(1000), n_threads=n_threads)
    assert states <= 24
    assert 1000 < again < 2000


def test_states_that_all_have_room():
    assert check(counted, t.asarray(20)) == []
    assert check(counted, t.asarray(0)) == []


def test_a_state_that_only_the_next_iteration_needs():
    def f(x, n):
        y, v = x * 1, x * 0
        with p.loop(n):
            y.val = t.sin(y) + v
            v.val = v * 0.9 + x * 0.1
        return y.sum() + v.sum()

    [[_, _, again]] = check(f, t.asarray(100))
    assert again >= 80


def test_a_loop_that_a_condition_ends():
    def f(x, least):
        y = x * 1
        with p.loop(100_000):
            with p.if_cond(y.sum() < least):
                p.break_loop()
            y.val = y * t.cos(y * 0.1 * x)
        return (y * y).sum()

    [[iterations, states, again]] = check(f, t.asarray(300.0))
    assert 300 < iterations < 3000
    assert states <= 24
    assert again < 3 * iterations
    # It ends at once.
    assert check(f, t.asarray(10_000.0)) == [[1, 1, 0]]


def test_loops_in_loops():
    def f(x, n, m):
        y = x * 1
        with p.loop(n):
            z = y + 0
            with p.loop(m):
                z.val = t.sin(z) * x + y * 0.01
            y.val = z * 1.01
        return y.sum()

    outer, inner = check(f, t.asarray(40), t.asarray(30))
    assert outer[0] == 40
    # An outer iteration that runs again does not save the states of the inner ones.
    assert inner[0] == 40 * 30
    assert outer[2] < 2 * 40
    assert inner[2] < 2 * 40 * 30


@pytest.mark.parametrize("limit", ["4kB", "8kB", "16kB"])
def test_inner_loops_of_other_lengths(limit: str):
    """Where an inner loop is short, all of its states have room, though they had none before."""

    def f(x):
        s = p.const(x[:100] * 1.0)
        with p.loop(30) as i:
            u = p.const(s * 1.0)
            with p.loop(i + 1):
                u.val = t.sin(u) * 1.1 + 0.01 * x[:100]
            s.val = s * 0.9 + u * u * 0.2
        return s.sum()

    assert check(f, limit=limit)


def test_loops_one_after_the_other():
    def f(x, n, m):
        y = x * 1
        with p.loop(n):
            y.val = t.sin(y) * x
        with p.loop(m):
            y.val = t.exp(-y) * x
        return y.sum()

    # The first one makes room for the second.
    for n, m in [(100, 100), (30, 100), (100, 30)]:
        first, second = check(f, t.asarray(n), t.asarray(m))
        assert first[0] == n
        assert second[0] == m


def test_loops_in_branches():
    def f(x, c, n):
        y = x * 1
        with p.if_cond(c > 0):
            z = x * 0.5
            with p.loop(n):
                y.val = t.sin(y) * z
        return (y * y).sum()

    [[iterations, _, _]] = check(f, t.asarray(1.0), t.asarray(100))
    assert iterations == 100
    assert check(f, t.asarray(-1.0), t.asarray(100)) == []


def test_random_numbers_are_the_same_again():
    def f(x, n):
        y = x * 1
        with p.loop(n) as k:
            key = t.stack([k, k * 0 + 7]).astype("u32")
            y.val = t.sin(y) * x * t.random.uniform(key, (1024,))
        return y.sum()

    [[_, _, again]] = check(f, t.asarray(100))
    assert again > 50


def test_kernels_run_again():
    @ti.kernel
    def step(a: ti.types.ndarray(dtype=ti.f32, ndim=1), b: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        for i in a:
            b[i] = ti.sin(a[i]) * b[i]

    def f(x, n):
        y = x * 1
        with p.loop(n):
            z = t.cos(y) * x
            step(y, z)
            y.val = z + 0.01
        return (y * y).sum()

    [[_, _, again]] = check(f, t.asarray(100))
    assert again > 50


def test_kernels_that_print_do_so_once(capfd: pytest.CaptureFixture[str]):
    @ti.kernel
    def show(a: ti.types.ndarray(dtype=ti.f32, ndim=1), k: ti.i32):
        print("iteration", k, a.shape[0])

    def f(x, n):
        y = x * 1
        with p.loop(n) as k:
            y.val = t.sin(y) * x
            show(y, k)
        return (y * y).sum()

    [[_, _, again]] = check(f, t.asarray(60))
    assert again > 30
    assert capfd.readouterr().out.count("iteration") == 2 * 60


def test_a_tensor_that_is_assigned_after_the_loop():
    def f(x, n):
        w = x * 2
        y = x * 1
        with p.loop(n):
            y.val = t.sin(y) * w
        w.val = w * 0 + 5
        return (y * w).sum()

    [[_, _, again]] = check(f, t.asarray(100))
    assert again > 50


def test_what_does_not_run_again_is_refused():
    # With so few states each iteration would run too often.
    with pytest.raises(MemoryError, match=r"(?s)needs more than 9000 bytes.*ad_memory=.*y = x . 1"):
        gradient("9kB", counted, t.asarray(1000))

    # Each lane has a history of its own.
    ti.init(arch=ti.cpu, log_level="error", ad_memory="100kB")
    with pytest.raises(MemoryError, match="needs more than"):
        ti.program(lambda x, n: t.vmap(ti.grad(counted))(x, n))(X, np.arange(1024) % 7 + 50)

    # The process goes on.
    check(counted, t.asarray(100))
