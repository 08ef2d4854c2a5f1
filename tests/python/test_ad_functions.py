"""Gradients of real functions that call themselves, and of vector components that are named at run time."""

import numpy as np
import pytest

import aerogel as ti

N = 7
PAIR = ti.types.vector(2, ti.f64)


def make(**more):
    more = more or dict(needs_grad=True, needs_dual=True)
    x = ti.field(ti.f64, shape=N, **more)
    loss = ti.field(ti.f64, shape=(), **more)
    x.from_numpy(np.linspace(0.2, 0.7, N))
    return x, loss


def check(run, x, loss, rtol=1e-7):
    """The gradient under a tape against central differences, with the fields as they were."""
    start = x.to_numpy()
    loss[None] = 0
    with ti.ad.Tape(loss):
        run()
    found = x.grad.to_numpy()
    want = np.zeros_like(start)
    for at in np.ndindex(start.shape):
        for sign in (1, -1):
            moved = start.copy()
            moved[at] += sign * 1e-6
            x.from_numpy(moved)
            loss[None] = 0
            run()
            want[at] += sign * loss[None] / 2e-6
    x.from_numpy(start)
    assert np.abs(want).max() > 1e-3
    assert np.allclose(found, want, rtol=rtol, atol=1e-8)
    return found


@ti.real_func
def even(a: PAIR, n: ti.i32) -> PAIR:
    r = PAIR(1.0, a[0])
    if n > 0:
        r = a * odd(ti.sin(a), n - 1)
    return r


@ti.real_func
def odd(a: PAIR, n: ti.i32) -> PAIR:
    r = PAIR(a[1], 2.0)
    if n > 0:
        r = ti.exp(a) + even(a * a[0], n - 1)
    return r


@ti.kernel
def by_turns(x: ti.template(), loss: ti.template()):
    for i in x:
        loss[None] += even(PAIR(x[i], 0.5), i).sum()


@ti.real_func
def growing(s: ti.ref(ti.f64), t: ti.f64, n: ti.i32):
    if n > 0:
        s += t * s
        growing(s, t * t, n - 1)


@ti.kernel
def by_reference(x: ti.template(), loss: ti.template()):
    for i in x:
        s = x[i]
        growing(s, x[i], 3)
        loss[None] += s


@ti.real_func
def looping(a: ti.f64, n: ti.i32) -> ti.f64:
    s = a
    while s < 2.0:
        s += 0.013 * ti.sin(s) + 0.01
    if n > 0:
        s = s * looping(a * 0.9, n - 1)
    return ti.sin(s)


@ti.kernel
def with_loops(x: ti.template(), loss: ti.template()):
    for i in x:
        loss[None] += looping(x[i], i % 4)


@pytest.mark.parametrize("kernel", [by_turns, by_reference, with_loops])
def test_recursion(arch, kernel):
    x, loss = make()
    found = check(lambda: kernel(x, loss), x, loss)
    along = np.linspace(-1, 1, N)
    loss[None] = 0
    with ti.ad.FwdMode(loss=loss, param=x, seed=list(along)):
        kernel(x, loss)
    assert np.isclose(loss.dual[None], found @ along, rtol=1e-11)


def test_what_functions_read_and_write(arch):
    x, loss = make()
    trace = ti.field(ti.f64, shape=N, needs_grad=True, needs_dual=True)

    @ti.real_func
    def walk(a: ti.f64, n: ti.i32):
        if n < N:
            trace[n] += a * x[n]
            walk(ti.sin(a + x[n]), n + 1)

    @ti.kernel
    def run():
        walk(x[0], 1)

    @ti.kernel
    def add():
        for i in trace:
            loss[None] += trace[i] ** 2

    def both():
        trace.fill(0)
        run()
        add()

    check(both, x, loss)


def test_what_a_kernel_writes_before_it_calls(arch):
    """Functions read memory as the kernel leaves it, and that is what was there when they were called."""
    x, loss = make()
    y = ti.field(ti.f64, shape=N, needs_grad=True)

    @ti.real_func
    def chain(n: ti.i32) -> ti.f64:
        r = y[0]
        if n > 0:
            r = ti.sin(y[n]) * chain(n - 1) + y[n] ** 2
        return r

    @ti.kernel
    def run():
        for i in x:
            y[i] = ti.cos(x[i]) + x[(i + 1) % N]
        for i in x:
            loss[None] += chain(i) * x[i]

    check(run, x, loss)

    @ti.kernel
    def afterwards():
        for i in x:
            loss[None] += chain(i) * x[i]
        for i in x:
            y[i] = ti.cos(x[i])

    @ti.kernel
    def between():
        for i in x:
            y[i] = ti.cos(x[i])
        for i in x:
            loss[None] += chain(i) * x[i]
            y[i] = 0.0

    for kernel in (afterwards, between):
        with pytest.raises(ti.AerogelCompilationError, match="E0603"), ti.ad.Tape(loss):
            kernel()


def test_arrays(arch):
    a = ti.ndarray(ti.f64, N, needs_grad=True)
    a.from_numpy(np.linspace(0.2, 0.9, N))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.real_func
    def chain(a: ti.types.ndarray(dtype=ti.f64, ndim=1), n: ti.i32) -> ti.f64:
        r = a[0]
        if n > 0:
            r = ti.cos(a[n]) * chain(a, n - 1)
        return r

    @ti.kernel
    def run(a: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in range(N):
            loss[None] += chain(a, i)

    check(lambda: run(a), a, loss)


def test_second_derivatives(arch):
    x, loss = make()

    @ti.real_func
    def power(a: ti.f64, n: ti.i32) -> ti.f64:
        r = 1.0
        if n > 0:
            r = a * power(a, n - 1)
        return r

    @ti.kernel
    def run():
        for i in x:
            loss[None] += power(x[i], i)

    found = ti.ad.hvp(run, loss, x, np.ones(N))
    n, at = np.arange(N), x.to_numpy()
    assert np.allclose(found, n * (n - 1) * at ** np.maximum(n - 2, 0))


@ti.real_func
def deep(a: ti.f64, n: ti.i32) -> ti.f64:
    r = a
    if n > 0:
        r = ti.sin(deep(a, n - 1))
    return r


def test_depth(arch):
    x, loss = make(needs_grad=True)

    @ti.kernel
    def run(n: ti.i32):
        for _ in range(1):
            loss[None] += deep(x[1], n)

    start = x.to_numpy()
    with ti.ad.Tape(loss):
        run(1000)
    value, want = start[1], 1.0
    for _ in range(1000):
        value, want = np.sin(value), want * np.cos(value)
    assert np.isclose(x.grad[1], want, rtol=1e-9)
    # The way back needs more of the stack: it says so as the way there does.
    for n in (10_000, 1_000_000):
        with pytest.raises(ti.AerogelRecursionError, match="`deep` calls itself too deeply"), ti.ad.Tape(loss):
            run(n)
        assert (x.to_numpy() == start).all()


def test_what_is_refused(arch):
    x, loss = make(needs_grad=True)
    beside = ti.field(ti.f64, shape=N)

    @ti.real_func
    def reads(n: ti.i32) -> ti.f64:
        r = 1.0
        if n > 0:
            r = x[n] * reads(n - 1)
        return r

    @ti.kernel
    def overwrites():
        for i in x:
            loss[None] += reads(i)
        for i in x:
            x[i] = 0

    @ti.real_func
    def draws(n: ti.i32) -> ti.f64:
        r = x[0]
        if n > 0:
            r = ti.random(ti.f64) * draws(n - 1)
        return r

    @ti.kernel
    def random():
        loss[None] += draws(3)

    @ti.real_func
    def shares(n: ti.i32):
        ti.atomic_max(loss[None], x[n])
        if n > 0:
            shares(n - 1)

    @ti.kernel
    def extremum():
        shares(N - 1)

    for kernel, code in (overwrites, "E0603"), (random, "E0601"), (extremum, "E0601"):
        with pytest.raises(ti.AerogelCompilationError, match=code), ti.ad.Tape(loss):
            kernel()

    @ti.real_func
    def leaves(n: ti.i32):
        beside[n] = x[n]
        if n > 0:
            leaves(n - 1)

    @ti.kernel
    def ends():
        leaves(N - 1)
        loss[None] += beside[1]

    with pytest.raises(ti.AerogelRuntimeError, match="depends on data with a gradient"):
        with ti.ad.Tape(loss, validation=True):
            ends()


def test_components_named_at_run_time(arch):
    x, loss = make()
    v = ti.Vector.field(3, ti.f64, N, needs_grad=True)
    which = ti.field(ti.i32, shape=9)
    which.from_numpy(np.array([0, 2, 1, 1, 0, 2, 2, 0, 1]))

    @ti.kernel
    def run():
        for i in v:
            for s in range(9):
                k = which[s]
                v[i][k] = ti.sin(v[i][(k + s) % 3]) * x[i] + v[i][k]
            v[i] *= 1.1
        for i in v:
            loss[None] += (v[i] ** 2).sum() * (i + 1)

    def whole():
        v.from_numpy(np.linspace(-1, 1, 3 * N).reshape(N, 3))
        run()

    check(whole, x, loss, rtol=1e-6)


def test_functions_that_collect(arch):
    x, loss = make(needs_grad=True)
    found = ti.field(ti.i32)
    ti.root.dynamic(ti.i, 1024, chunk_size=8).place(found)

    @ti.real_func
    def collect(n: ti.i32, a: ti.f64) -> ti.f64:
        r = ti.stop_grad(a) * a
        found.append(n)
        if n > 0:
            r = ti.sin(a) * collect(n - 1, a)
        return r

    @ti.kernel
    def run():
        for i in x:
            loss[None] += collect(2, x[i])

    @ti.kernel
    def length() -> ti.i32:
        return found.length()

    with ti.ad.Tape(loss):
        run()
    assert length() == 3 * N
    at = x.to_numpy()
    # The first factor of `a * a` is a constant.
    assert np.allclose(x.grad.to_numpy(), 2 * np.sin(at) * np.cos(at) * at**2 + np.sin(at) ** 2 * at)


def test_functions_that_need_what_they_counted(arch):
    x, loss = make(needs_grad=True)
    count = ti.field(ti.i32, shape=())
    order = ti.field(ti.i32, shape=64)

    @ti.real_func
    def visit(n: ti.i32, a: ti.f64) -> ti.f64:
        at = ti.atomic_add(count[None], 1)
        order[at] = n
        r = a
        if n > 0:
            r = ti.sin(a) * visit(n - 1, a * 1.1)
        return r

    @ti.kernel
    def listed():
        for i in x:
            loss[None] += visit(3, x[i])

    check(lambda: (count.fill(0), listed()), x, loss)

    @ti.real_func
    def weigh(n: ti.i32, a: ti.f64) -> ti.f64:
        r = a * ti.atomic_add(count[None], 1)
        if n > 0:
            r = ti.sin(a) * weigh(n - 1, a)
        return r

    @ti.kernel
    def weighed():
        for i in x:
            loss[None] += weigh(3, x[i])

    with pytest.raises(ti.AerogelCompilationError, match="E0602"), ti.ad.Tape(loss):
        weighed()
