"""What a tape keeps of fields and arrays: as little as gradients need, and enough."""

import random

import numpy as np
import pytest

import aerogel as ti

T, N = 6, 6
LAYOUTS = ("dense", "time last", "blocked", "sparse", "sparse blocks", "array")


def place(layout):
    """A field ``x[t, i]`` or an array, all of it active, with a gradient."""
    if layout == "array":
        return ti.ndarray(ti.f64, (T, N), needs_grad=True)
    if layout == "dense":
        return ti.field(ti.f64, (T, N), needs_grad=True)
    x = ti.field(ti.f64, needs_grad=True)
    node = {
        "time last": lambda: ti.root.dense(ti.j, N).dense(ti.i, T),
        "blocked": lambda: ti.root.dense(ti.ij, (3, 3)).dense(ti.ij, 2),
        "sparse": lambda: ti.root.pointer(ti.i, T).bitmasked(ti.j, N),
        "sparse blocks": lambda: ti.root.pointer(ti.ij, (3, 3)).dense(ti.ij, 2),
    }[layout]()
    node.place(x, x.grad)
    for t, i in np.ndindex(T, N):
        x[t, i] = x.grad[t, i] = 0
    return x


class Program:
    """A made-up program over a field or an array."""

    def __init__(self, layout, seed):
        self.x, self.loss = place(layout), ti.field(ti.f64, (), needs_grad=True)
        kind = ti.types.ndarray() if layout == "array" else ti.template()
        loss = self.loss

        @ti.kernel
        def advance(x: kind, t: ti.i32, lo: ti.i32, hi: ti.i32):
            for i in range(lo, hi):
                x[t + 1, i] = ti.sin(x[t, i]) + 0.3 * x[t, (i + 1) % N] * x[t, i]

        @ti.kernel
        def bend(x: kind, t: ti.i32, lo: ti.i32, hi: ti.i32):
            for i in range(lo, hi):
                x[t, i] = 0.5 * x[t, i] ** 2 + 0.2

        @ti.kernel
        def mix(x: kind, t: ti.i32, s: ti.i32):
            for i in range(N):
                x[t, i] = x[s, i] * x[t, i]

        @ti.kernel
        def forget(x: kind, t: ti.i32, lo: ti.i32, hi: ti.i32):
            for i in range(lo, hi):
                x[t, i] = 0.7

        @ti.kernel
        def total(x: kind, t: ti.i32):
            for i in range(N):
                loss[None] += x[t, i] ** 3 / (i + 1)

        @ti.ad.grad_replaced
        def given(t, lo, hi):
            advance(self.x, t, lo, hi)

        @ti.ad.grad_for(given)
        def given_back(t, lo, hi):
            # Whatever is written here is put back.
            forget(self.x, t + 1, 0, N)
            self.x[t + 1, lo] = 3
            advance(self.x, t, lo, hi)
            advance.grad(self.x, t, lo, hi)

        draw = random.Random(seed)
        self.steps = []
        for _ in range(12):
            t, lo = draw.randrange(T - 1), draw.randrange(N)
            box = (lo, draw.randrange(lo + 1, N + 1))
            self.steps.append(
                draw.choice(
                    (
                        lambda t=t, box=box: advance(self.x, t, *box),
                        lambda t=t, box=box: bend(self.x, t, *box),
                        lambda t=t, s=draw.randrange(T - 1): mix(self.x, t + (s >= t), s if s != t else T - 1),
                        lambda t=t, box=box: forget(self.x, t, *box),
                        lambda t=t, lo=lo: self.x.__setitem__((t, lo), 0.4),
                        lambda t=t, box=box: given(t, *box),
                        lambda t=t: total(self.x, t),
                    )
                )
            )
        self.steps.append(lambda: total(self.x, T - 2))

    def run(self, start):
        self.x.from_numpy(start)
        self.loss[None] = 0
        for step in self.steps:
            step()
        return self.loss[None]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(8))
def test_made_up_programs(layout, seed):
    ti.init(arch=ti.cpu, log_level="error")
    program = Program(layout, seed)
    start = np.random.default_rng(seed).uniform(0.4, 1.1, (T, N))
    program.run(start)
    end = program.x.to_numpy()
    if layout == "array":
        program.x.grad.fill(0)
    with ti.ad.Tape(program.loss, validation=False):
        program.x.from_numpy(start)
        for step in program.steps:
            step()
    assert (program.x.to_numpy() == end).all()
    # The write of the start consumes the gradient; without it, it stays.
    assert (program.x.grad.to_numpy() == 0).all()
    program.x.from_numpy(start)
    with ti.ad.Tape(program.loss):
        for step in program.steps:
            step()
    assert (program.x.to_numpy() == end).all()
    found, h = program.x.grad.to_numpy(), 1e-6
    for t in range(T):
        for i in range(N):
            beside = [start.copy(), start.copy()]
            beside[0][t, i] -= h
            beside[1][t, i] += h
            low, high = (program.run(each) for each in beside)
            difference = (high - low) / (2 * h)
            assert abs(found[t, i] - difference) < 1e-6 * max(1, abs(difference)), (t, i)


@pytest.mark.parametrize("layout", ("dense", "sparse", "array"))
def test_slices_are_kept_as_slices(layout):
    ti.init(arch=ti.cpu, log_level="error")
    n = 64
    if layout == "array":
        x = ti.ndarray(ti.f64, (2 * n, 1000), needs_grad=True)
    elif layout == "dense":
        x = ti.field(ti.f64, (2 * n, 1000), needs_grad=True)
    else:
        x = ti.field(ti.f64, needs_grad=True)
        ti.root.pointer(ti.i, 2 * n).dense(ti.j, 1000).place(x, x.grad)
    loss = ti.field(ti.f64, (), needs_grad=True)
    kind = ti.types.ndarray() if layout == "array" else ti.template()

    @ti.kernel
    def read(x: kind, t: ti.i32):
        for i in range(1000):
            loss[None] += x[t, i] ** 2

    @ti.kernel
    def write(x: kind, t: ti.i32, value: ti.f64):
        for i in range(10):
            x[t, i] = value

    for t in range(2 * n):
        write(x, t, t)
    with ti.ad.Tape(loss) as tape:
        for t in range(n):
            read(x, 2 * t)
            # Nobody has read that.
            write(x, 2 * t + 1, 3)
        assert tape.entries.nbytes == 0
        for t in range(n):
            write(x, 2 * t, 4)
            # What the first one overwrote is kept; the number between is read by nobody.
            write(x, 2 * t, 5)
            x[2 * t, 3] = 6
        assert tape.entries.nbytes == n * 10 * 8
        x[0, 20] = 7
        assert tape.entries.nbytes == (n * 10 + 1) * 8
    assert x.grad.to_numpy()[2, :10].tolist() == [4.0] * 10
    assert x[2, 3] == 6
    assert x[2, 4] == 5


def test_what_a_kernel_keeps_for_itself_is_kept_once():
    ti.init(arch=ti.cpu, log_level="error")
    x, loss = ti.field(ti.f64, 100, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def bend():
        for i in x:
            x[i] = x[i] ** 2

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    x.fill(3)
    with ti.ad.Tape(loss) as tape:
        bend()
        assert tape.entries.nbytes == 800
        x.fill(2)
        assert tape.entries.nbytes == 800
        total()
    assert x.grad[5] == 0
    assert x[5] == 2


@pytest.mark.parametrize("layout", ("dense", "blocked", "sparse blocks"))
def test_retained_gradients_of_slices(layout):
    ti.init(arch=ti.cpu, log_level="error")
    x, loss = place(layout), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(N):
            x[t + 1, i] = 2 * x[t, i]

    @ti.kernel
    def total():
        for i in range(N):
            loss[None] += x[T - 1, i]

    x.fill(1)
    x.from_numpy(np.ones((T, N)))
    with ti.ad.Tape(loss, retain_grad=[x]):
        for t in range(T - 1):
            step(t)
        total()
    assert x.grad.to_numpy().tolist() == [[2.0 ** (T - 1 - t)] * N for t in range(T)]
