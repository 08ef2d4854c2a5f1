"""What a tape notices: memory that goes away, hand-written gradients that change it, arrays that change by themselves."""

import numpy as np
import pytest
from test_ad_tape import fields, squares

import aerogel as ti


def sparse():
    x = ti.field(ti.f64, name="x")
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    block = ti.root.pointer(ti.i, 4)
    block.dense(ti.i, 2).place(x, x.grad)

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += x[i] ** 2

    @ti.kernel
    def drop():
        for i in range(4):
            ti.deactivate(block, [i])

    @ti.kernel
    def fill():
        for i in range(2, 4):
            x[i] = 3.0

    return x, loss, block, energy, drop, fill


def test_cells_that_gradients_need_stay(arch):
    x, loss, block, energy, drop, fill = sparse()
    fill()
    with pytest.raises(
        RuntimeError, match="kernel `drop` deactivates cells of .* that gradients of earlier kernels need"
    ):
        with ti.ad.Tape(loss):
            energy()
            drop()
    # It was refused before it happened.
    assert x[2] == 3
    for gone in (block.deactivate_all, ti.root.deactivate_all, ti.deactivate_all_snodes):
        with pytest.raises(RuntimeError, match="deactivates cells"), ti.ad.Tape(loss):
            energy()
            gone()
        assert x[2] == 3
    # Before anything is needed, and afterwards, cells come and go.
    with ti.ad.Tape(loss, retain_grad=[x]):
        drop()
        block.deactivate_all()
        fill()
        energy()
    assert x.grad.to_numpy().tolist() == [0, 0, 6, 6, 0, 0, 0, 0]
    block.deactivate_all()
    assert x[2] == 0


def test_cells_of_other_layouts_may_go(arch):
    x, loss, block, energy, drop, fill = sparse()
    seen = ti.field(ti.i32)
    other = ti.root.pointer(ti.i, 4)
    other.place(seen)

    @ti.kernel
    def mark():
        for i in range(4):
            seen[i] = i

    @ti.kernel
    def unmark():
        for i in range(4):
            ti.deactivate(other, [i])

    fill()
    with ti.ad.Tape(loss):
        mark()
        energy()
        unmark()
        other.deactivate_all()
    assert x.grad[2] == 6


def test_each_step_of_a_checkpoint_may_begin_with_empty_cells(arch):
    """As the grid of a particle method; the state is named, since the grid is no part of it."""
    v = ti.field(ti.f64, shape=4, needs_grad=True)
    grid = ti.field(ti.f64, name="grid")
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    block = ti.root.pointer(ti.i, 4)
    block.place(grid, grid.grad)

    @ti.kernel
    def scatter():
        for i in v:
            grid[i] = v[i] ** 2

    @ti.kernel
    def gather():
        for i in v:
            v[i] = ti.sin(grid[i]) + grid[i] * 0.5

    @ti.kernel
    def total():
        for i in v:
            loss[None] += v[i]

    def step(t):
        block.deactivate_all()
        scatter()
        gather()

    start = np.array([0.9, 1.0, 0.8, 0.7])

    def of(v0):
        for _ in range(5):
            v0 = np.sin(v0**2) + v0**2 * 0.5
        return v0

    v.from_numpy(start)
    with ti.ad.Tape(loss):
        ti.ad.checkpoint(step, steps=5, snapshots=2, state=[v])
        total()
    want = (of(start + 1e-6) - of(start - 1e-6)) / 2e-6
    assert np.allclose(v.grad.to_numpy(), want, rtol=1e-6)


def test_gradients_by_hand_that_run_steps_again(arch):
    """As checkpointing by hand: the way back of a segment runs its steps once more, in the same fields."""
    x, y, loss = fields()
    n, length = 6, 2
    start = ti.field(ti.f64, shape=(n // length, 3))

    @ti.kernel
    def step():
        for i in x:
            y[i] = x[i]
            x[i] = y[i] * (1.6 - y[i])

    @ti.kernel
    def keep(k: ti.i32):
        for i in x:
            start[k, i] = x[i]

    @ti.kernel
    def load(k: ti.i32):
        for i in x:
            x[i] = start[k, i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    count = []

    @ti.ad.grad_replaced
    def segment(k):
        keep(k)
        for _ in range(length):
            step()

    @ti.ad.grad_for(segment)
    def segment_back(k):
        load(k)
        inside = x.to_numpy()
        states = []
        for _ in range(length):
            states.append(x.to_numpy())
            step()
        for state in reversed(states):
            x.from_numpy(state)
            count.append(inside)
            back(0)

    @ti.kernel
    def back_of_step():
        for i in x:
            x.grad[i] = x.grad[i] * (1.6 - 2 * x[i])

    def back(_):
        back_of_step()

    x.from_numpy(np.array([0.3, 0.4, 0.5]))
    with ti.ad.Tape(loss):
        for k in range(n // length):
            segment(k)
        total()
    found, after = x.grad.to_numpy(), x.to_numpy()

    def of(a):
        for _ in range(n):
            a = a * (1.6 - a)
        return a**2

    a = np.array([0.3, 0.4, 0.5])
    assert np.allclose(found, (of(a + 1e-6) - of(a - 1e-6)) / 2e-6, rtol=1e-6)
    x.from_numpy(a)
    for _ in range(n):
        step()
    assert (x.to_numpy() == after).all()
    assert len(count) == n


def test_gradients_by_hand_leave_the_memory_of_the_tape(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    own = ti.field(ti.f64, shape=3)
    a = ti.ndarray(ti.f64, 3)

    @ti.kernel
    def spoil(a: ti.types.ndarray()):
        for i in x:
            x[i] = -5
            y[i] = 7
            own[i] += 1
            a[i] = 8
            x.grad[i] += 2 * y.grad[i]

    @ti.ad.grad_replaced
    def forward():
        square()

    @ti.ad.grad_for(forward)
    def backward():
        spoil(a)
        x[1] = 99
        y.fill(3)
        with ti.ad.Tape(other_loss, clear_gradients=False):
            of_x()

    other_loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def of_x():
        for i in x:
            x[i] = 4
            other_loss[None] += 0

    @ti.kernel
    def cube():
        for i in x:
            x[i] = x[i] ** 3

    x.from_numpy(np.array([1.0, 2, 3]))
    with ti.ad.Tape(loss):
        cube()
        forward()
        total()
    assert x.to_numpy().tolist() == [1, 8, 27]
    assert y.to_numpy().tolist() == [1, 64, 729]
    # What is no part of the tape is the function's own.
    assert own.to_numpy().tolist() == [1, 1, 1] and a.to_numpy().tolist() == [8, 8, 8]


def test_validation_sees_arrays_change_between_launches(arch):
    x, _, loss = fields()

    @ti.kernel
    def total(a: ti.types.ndarray()):
        for i in a:
            loss[None] += a[i] * x[i]

    a = np.ones(3)
    with pytest.raises(RuntimeError, match="modified outside of kernels"), ti.ad.Tape(loss, validation=True):
        total(a)
        a[1] = 5
        total(a)


def test_validation_refuses_gradients_that_end(arch):
    """What is a warning otherwise, since programs do so and mean it."""
    x, y, loss = fields()
    between = ti.field(ti.f64, shape=3, name="between")

    @ti.kernel
    def first():
        for i in x:
            between[i] = x[i] ** 2

    @ti.kernel
    def second():
        for i in x:
            loss[None] += between[i]

    @ti.kernel
    def both():
        for i in x:
            between[i] = x[i] ** 2
        for i in x:
            loss[None] += between[i]

    @ti.kernel
    def meant():
        for i in x:
            loss[None] += ti.stop_grad(between[i]) * x[i]

    for _ in range(2):
        with pytest.raises(RuntimeError, match="kernel `second` reads `between`"), ti.ad.Tape(loss, validation=True):
            first()
            second()
        with (
            pytest.raises(RuntimeError, match="stored in a field or array without one"),
            ti.ad.Tape(loss, validation=True),
        ):
            both()
    with ti.ad.Tape(loss, validation=True):
        first()
        meant()
    with ti.ad.Tape(loss):
        first()
        second()


N = 6


def sweeps():
    x, speed = (ti.field(ti.f64, shape=(4, N), needs_grad=True) for _ in range(2))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def advect(field: ti.template(), out: ti.template(), now: int, then: int):
        for i in range(N):
            at = i - 0.3 * speed[now, i] + N
            k = ti.cast(at, int)
            f = at - k
            out[then + 1, i] = (1 - f) * field[now, k % N] + f * field[now, (k + 1) % N]

    @ti.kernel
    def total():
        for i in range(N):
            loss[None] += x[3, i] ** 2

    rng = np.random.default_rng(1)
    x.from_numpy(rng.uniform(0.5, 1, (4, N)))
    speed.from_numpy(rng.uniform(0.2, 0.8, (4, N)))
    return x, speed, loss, advect, total


def test_arguments_tell_apart_what_is_read_and_what_is_written(arch):
    x, speed, loss, advect, total = sweeps()

    def run():
        for t in range(3):
            advect(x, x, t, t)
        total()

    assert ti.ad.check_grad(run, [x, speed], loss)
    # As two arguments of a kernel without a tape.
    advect(x, x, 0, 0)
    advect.grad(x, x, 0, 0)


def test_arguments_that_do_not_tell_them_apart(arch):
    x, speed, loss, advect, total = sweeps()
    before = x.to_numpy()
    with pytest.raises(ti.AerogelCompilationError, match="in this launch both are the same elements") as found:
        with ti.ad.Tape(loss):
            advect(x, x, 2, 1)
    assert "E0603" in str(found.value) and "out[then + 1, i] =" in str(found.value)
    np.testing.assert_array_equal(x.to_numpy(), before)
    with pytest.raises(ti.AerogelCompilationError, match="in this launch both are the same elements"):
        advect.grad(x, x, 3, 2)
    with ti.ad.Tape(loss):
        for t in range(3):
            advect(x, x, t, t)
        total()
    assert speed.grad.to_numpy()[0].any()


def test_validation_counts_roots_of_zero_that_matter(arch, capfd):
    ti.init(arch=arch, log_level="warn")
    x, scale = ti.Vector.field(2, ti.f64, 40, needs_grad=True), ti.field(ti.f64, 40)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def lengths():
        for i in x:
            for k in ti.static(range(2)):
                loss[None] += scale[i] * ((k + 1) * x[i]).norm()

    numbers = np.zeros((40, 2))
    numbers[10:] = [3.0, 4.0]
    x.from_numpy(numbers)
    scale.from_numpy((np.arange(40) % 2).astype(np.float64))  # Of the ten lengths of nothing five matter, twice each.
    with ti.ad.Tape(loss, validation=True):
        lengths()
    gradient = x.grad.to_numpy()
    said = capfd.readouterr().err
    assert "the square root of 0 has an infinite slope" in said
    assert "scale[i] * ((k + 1) * x[i]).norm()" in said
    assert "gradients passed here 10 times" in said
    with ti.ad.Tape(loss, validation=True):
        ti.ad.checkpoint(lambda t: lengths(), steps=3, snapshots=2)
    assert "gradients passed here 30 times" in capfd.readouterr().err
    with ti.ad.Tape(loss):
        lengths()
    assert "square root" not in capfd.readouterr().err
    assert np.array_equal(x.grad.to_numpy(), gradient)
    assert np.array_equal(gradient[:10], np.zeros((10, 2)))
    numbers[:10] = 1
    x.from_numpy(numbers)
    with ti.ad.Tape(loss, validation=True):
        lengths()
    assert "square root" not in capfd.readouterr().err


def test_values_that_pass_through_two_fields_without_gradient_are_told():
    """Neither kernel between them has anything with a gradient: what the second writes depends on what the first has."""
    ti.init(arch=ti.cpu, log_level="error")
    x, loss = (ti.field(float, shape=(), needs_grad=True) for _ in range(2))
    first, second, apart = (ti.field(float, shape=3) for _ in range(3))

    @ti.kernel
    def begin():
        for i in first:
            first[i] = x[None]

    @ti.kernel
    def between():
        for i in first:
            s = 0.0
            for k in range(3):
                s += first[k]
            second[i] = ti.sin(s)
            apart[i] = 2.0 * i + (1.0 if first[i] > 0 else 0.0)

    @ti.kernel
    def end(f: ti.template()):
        for i in f:
            loss[None] += f[i]

    with pytest.raises(RuntimeError, match="kernel `end` reads `f`, which kernel `between` has computed from data"):
        with ti.ad.Tape(loss, validation=True):
            begin()
            between()
            end(second)
    # What only a comparison depends on has no derivative by it.
    with ti.ad.Tape(loss, validation=True):
        begin()
        between()
        end(apart)
    # Nothing with a gradient is behind it.
    with ti.ad.Tape(loss, validation=True):
        between()
        end(second)
    assert x.grad[None] == 0
