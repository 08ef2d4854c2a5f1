"""Checkpointing: many steps with few states in memory."""

import numpy as np
import pytest

import aerogel as ti
from aerogel.ad._schedule import dropped, first_leg, first_states, n_advances


def model(n=16):
    x = ti.field(ti.f64, shape=n, name="x", needs_grad=True)
    v = ti.field(ti.f64, shape=n, name="v", needs_grad=True)
    force = ti.field(ti.f64, shape=n, name="force", needs_grad=True)
    k = ti.field(ti.f64, shape=(), name="k", needs_grad=True)
    loss = ti.field(ti.f64, shape=(), name="loss", needs_grad=True)

    @ti.kernel
    def pull(t: ti.i32):
        for i in x:
            force[i] = -k[None] * ti.sin(x[i]) * (1 + 0.01 * t)

    @ti.kernel
    def move():
        for i in x:
            v[i] += 0.01 * force[i]
            x[i] += 0.01 * v[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    def step(t):
        pull(t)
        move()

    def begin():
        x.from_numpy(np.linspace(0.1, 1, n))
        v.fill(0)
        k[None] = 2

    return x, v, k, loss, step, begin, total


def brute(n, s, known={}):
    """The fewest steps by trying everything."""
    if n <= 1:
        return 0
    if s == 1:
        return n * (n - 1) // 2
    if (n, s) not in known:
        known[n, s] = min(m + brute(n - m, s - 1) + brute(m, s) for m in range(1, n))
    return known[n, s]


def planned(n, s):
    if n <= 1:
        return 0
    leg = first_leg(n, s)
    return n * (n - 1) // 2 if leg >= n else leg + planned(n - leg, s - 1) + planned(leg, s)


def expected(n, s):
    """The first run does not end before the last step, as it would if nothing but gradients were wanted: the steps after
    the last state are run once more."""
    return n_advances(n, s) + n - first_states(n, s)[-1]


def test_the_schedule_is_the_best():
    for n in range(1, 40):
        for s in range(1, 9):
            assert brute(n, s) == n_advances(n, s) == planned(n, s)
            assert len(first_states(n, s)) <= s
    for states, per_step in ((10, 5.8), (30, 3.4), (100, 2.5), (150, 1.98)):
        assert n_advances(10_000, states) / 10_000 == pytest.approx(per_step, rel=0.02)


def kept_online(n, s):
    """Before which of ``n`` steps states are kept in the end, if nobody says how many there will be."""
    kept = [0]
    for at in range(1, n):
        if len(kept) == s:
            which = dropped(kept, at, s)
            if which is None:
                continue
            del kept[which]
        kept.append(at)
    return kept


def planned_online(n, s):
    """How many steps are run without being recorded: all of them for the first time, and then segment by segment."""
    kept = kept_online(n, s)
    lengths = [end - begin for begin, end in zip(kept, [*kept[1:], n])]
    return n + sum(planned(length, s - k) for k, length in enumerate(lengths))


def fewest(n, s, known={}):
    """The fewest of all choices of states, the first run not counted."""
    if n == 0 or s == 1:
        return planned(n, 1)
    if (n, s) not in known:
        known[n, s] = min(planned(m, s) + fewest(n - m, s - 1) for m in range(1, n + 1))
    return known[n, s]


def test_the_schedule_without_a_number_of_steps():
    """Optimal for as many steps as Stumm and Walther's first algorithm is, and close to it for more."""
    for s, most in ((2, 1.15), (3, 1.08), (5, 1.05), (10, 1.03)):
        for n in range(1, 100):
            found, best = planned_online(n, s), n + fewest(n, s)
            if n < (s + 1) * (s + 2) // 2:
                assert found == best, (n, s)
            assert found <= most * best, (n, s)
            assert len(kept_online(n, s)) == min(n, s)


@pytest.mark.parametrize("n, snapshots", [(1, 1), (2, 1), (7, 1), (20, 3), (33, 5), (12, 40)])
def test_the_same_gradients(cpu, n, snapshots):
    x, v, k, loss, step, begin, total = model()
    begin()
    with ti.ad.Tape(loss):
        for t in range(n):
            step(t)
        total()
    want = [f.to_numpy() for f in (x, v, loss, x.grad, v.grad, k.grad)]
    begin()
    with ti.ad.Tape(loss):
        entry = ti.ad.checkpoint(step, steps=n, snapshots=snapshots)
        total()
    found = [f.to_numpy() for f in (x, v, loss, x.grad, v.grad, k.grad)]
    for a, b in zip(want, found):
        assert (a == b).all()
    assert entry.n_advanced == expected(n, snapshots)
    assert entry.n_states <= snapshots


def test_memory(cpu):
    x, v, k, loss, step, begin, total = model(1000)
    begin()
    with ti.ad.Tape(loss) as tape:
        # The state is x and v: a step overwrites force before it reads it.
        entry = ti.ad.checkpoint(step, steps=50, memory=5 * 2 * 8000)
        total()
    assert entry.n_states == 5
    assert tape.entries.nbytes <= 5 * 3 * 8000
    assert entry.n_advanced == expected(50, 5)
    with pytest.raises(MemoryError, match="one state of the checkpointed steps takes 16000 bytes"), ti.ad.Tape(loss):
        ti.ad.checkpoint(step, steps=50, memory="10 KB")
    begin()
    with ti.ad.Tape(loss):
        entry = ti.ad.checkpoint(step, steps=50, memory=5 * 2 * 8000, state=[x, v])
        total()
    assert entry.n_states == 5
    named = x.grad.to_numpy()
    begin()
    with ti.ad.Tape(loss):
        ti.ad.checkpoint(step, steps=50)
        total()
    assert (x.grad.to_numpy() == named).all()


def test_until(cpu):
    x, v, k, loss, step, begin, total = model()
    for snapshots in (1, 2, 5, 100):
        begin()
        with ti.ad.Tape(loss):
            entry = ti.ad.checkpoint(step, until=lambda n: n == 37, snapshots=snapshots)
            total()
        found = [f.to_numpy() for f in (x, x.grad, k.grad)]
        assert entry.n_steps == 37 and entry.n_states <= snapshots
        assert entry.n_advanced == planned_online(37, snapshots)
        begin()
        with ti.ad.Tape(loss):
            for t in range(37):
                step(t)
            total()
        for a, b in zip(found, (x, x.grad, k.grad)):
            assert (a == b.to_numpy()).all()


def test_before_and_after_the_steps(cpu):
    x, v, k, loss, step, begin, total = model()

    @ti.kernel
    def scale():
        for i in x:
            x[i] = x[i] ** 2

    def run(steps):
        begin()
        with ti.ad.Tape(loss):
            scale()
            total()
            steps(10)
            scale()
            total()
            k[None] = 5
            steps(4)
            total()
        return [f.to_numpy() for f in (x, v, loss, k, x.grad, v.grad, k.grad)]

    plain = run(lambda n: [step(t) for t in range(n)])
    for a, b in zip(plain, run(lambda n: ti.ad.checkpoint(step, steps=n, snapshots=2))):
        assert (a == b).all()


def test_what_a_step_may_do(cpu):
    x, v, k, loss, step, begin, total = model()

    @ti.kernel
    def shake():
        for i in x:
            v[i] += 0.1 * x[i] * y[i]

    y = ti.field(ti.f64, shape=16, needs_grad=True)

    def odd(t):
        step(t)
        if t % 3 == 1:
            shake()
        if t == 4:
            y[2] = 7

    def run(steps):
        begin()
        y.fill(1)
        with ti.ad.Tape(loss):
            steps()
            total()
        return [f.to_numpy() for f in (x, y, x.grad, y.grad, k.grad)]

    plain = run(lambda: [odd(t) for t in range(9)])
    for a, b in zip(plain, run(lambda: ti.ad.checkpoint(odd, steps=9, snapshots=3))):
        assert (a == b).all()


def test_outside_of_a_tape_steps_are_steps(cpu):
    x, v, k, loss, step, begin, total = model()
    begin()
    done = []
    assert ti.ad.checkpoint(lambda t: done.append(t), steps=3) is None
    ti.ad.checkpoint(lambda t: done.append(t), until=lambda n: n == 2)
    assert done == [0, 1, 2, 0, 1]
    with ti.ad.Tape(loss):
        assert ti.ad.checkpoint(step, steps=0) is None
        total()


def test_a_failing_step(cpu):
    x, v, k, loss, step, begin, total = model()
    begin()
    calls = []

    def fails(t):
        calls.append(t)
        if len(calls) == 12:
            raise KeyError("mine")
        step(t)

    with pytest.raises(KeyError), ti.ad.Tape(loss):
        ti.ad.checkpoint(fails, steps=10, snapshots=2)
        total()
        want = x.to_numpy()
    assert (x.to_numpy() == want).all()
    assert not x.grad.to_numpy().any()
    with ti.ad.Tape(loss):
        ti.ad.checkpoint(step, steps=10, snapshots=2)
        total()
    assert x.grad.to_numpy().any()


def test_mistakes(cpu):
    x, v, k, loss, step, begin, total = model()
    with pytest.raises(RuntimeError, match="takes the number of `steps`, or `until`"):
        ti.ad.checkpoint(step)
    with pytest.raises(RuntimeError, match="the number of steps is at least 0"):
        ti.ad.checkpoint(step, steps=-1)
    with pytest.raises(RuntimeError, match="at least one state"):
        ti.ad.checkpoint(step, steps=2, snapshots=0)
    with pytest.raises(ValueError, match="memory is a number of bytes"), ti.ad.Tape(loss):
        ti.ad.checkpoint(step, steps=2, memory="lots")
