"""Gradients beside differences."""

import numpy as np
import pytest
from test_ad_tape import fields

import aerogel as ti


def test_a_table(arch):
    x, y, loss = fields()

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += ti.exp(x[i]) * y[i]

    x.from_numpy(np.array([0.0, 0.5, -1]))
    y.fill(2)
    check = ti.ad.check_grad(energy, [x, y], loss)
    assert check and check.ok
    assert [row.name for row in check] == ["x"] * 3 + ["y"] * 3
    assert str(check).splitlines()[0].split() == ["element", "reverse", "difference", "relative", "error"]
    assert str(check).splitlines()[1].split()[:2] == ["x[0]", "2"]
    assert str(check).endswith("6 gradients agree")
    # All is as it was.
    assert x.to_numpy().tolist() == [0, 0.5, -1]
    assert loss[None] == 0


def test_a_wrong_gradient_is_found(arch):
    x, y, loss = fields()

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += x[i] ** 2

    @ti.ad.grad_replaced
    def forward():
        energy()

    @ti.ad.grad_for(forward)
    def backward():
        energy.grad()
        x.grad[1] += 0.01

    x.fill(1)
    check = ti.ad.check_grad(forward, x, loss)
    assert not check
    assert [row.ok for row in check] == [True, False, True]
    assert "x[1]" in str(check) and "WRONG" in str(check) and str(check).endswith("1 of 3 gradients are wrong")


def test_large_fields_are_looked_at_here_and_there(arch):
    x = ti.field(ti.f32, shape=(40, 50), needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def energy():
        for i, j in x:
            loss[None] += x[i, j] * (i % 7 - j % 5)

    check = ti.ad.check_grad(energy, x, loss, most=20)
    assert check and 10 < len(check) <= 20
    assert len({row.index[1] for row in check}) > 5


def test_arrays_and_random_numbers(arch):
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    a = ti.ndarray(ti.f64, 3, needs_grad=True)

    @ti.kernel
    def energy(a: ti.types.ndarray()):
        for i in a:
            loss[None] += a[i] ** 2

    a.fill(2)
    check = ti.ad.check_grad(lambda: energy(a), a, loss)
    assert check and len(check) == 3
    with pytest.raises(RuntimeError, match="an input is a field or an array of floats, not int"):
        ti.ad.check_grad(lambda: energy(a), 3, loss)


def test_a_tape_that_checks(arch, capfd):
    ti.init(arch=arch, log_level="warn")
    x, y, loss = fields()

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] ** 2 + y[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    x.fill(0.5)
    y.fill(0.25)
    with ti.ad.Tape(loss, grad_check=[x, y]):
        step()
        y[1] = 3
        step()
        total()
    assert capfd.readouterr().err == ""
    end = x.to_numpy()
    with ti.ad.Tape(loss, grad_check=True):
        step()
        total()
        y.grad.fill(0)
    assert (x[0], y[1]) == (end[0] ** 2 + 0.25, 3)

    @ti.ad.grad_replaced
    def forward():
        total()

    @ti.ad.grad_for(forward)
    def backward():
        x.grad.fill(5)

    with ti.ad.Tape(loss, grad_check=[x]):
        forward()
    assert "gradients do not agree with differences" in capfd.readouterr().err


@pytest.mark.parametrize("arch", [ti.cpu, "interp"])
def test_a_tape_that_checks_steps_and_sparse_cells(arch, capfd):
    """All that a tape has is run again: steps of a checkpoint, their random numbers, and the deactivation of cells."""
    ti.init(arch=arch, log_level="warn", random_seed=3)
    x = ti.field(ti.f64, shape=4, name="x", needs_grad=True)
    grid, loss = ti.field(ti.f64, needs_grad=True), ti.field(ti.f64, shape=(), needs_grad=True)
    cells = ti.root.pointer(ti.i, 4)
    cells.dense(ti.i, 2).place(grid, grid.grad)

    @ti.kernel
    def scatter():
        for i in x:
            grid[i // 2] += x[i] * (1 + ti.random(ti.f64))

    @ti.kernel
    def gather():
        for i in grid:
            x[2 * i] = grid[i] * grid[i] / 4

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    def step(k=0):
        cells.deactivate_all()
        scatter()
        gather()

    for run in (step, lambda: ti.ad.checkpoint(step, steps=5, snapshots=2)):
        x.from_numpy(np.array([0.5, 0.75, 1.0, 0.25]))
        grid[0] = grid[7] = 5
        with ti.ad.Tape(loss, grad_check=[x]):
            run()
            total()
        assert np.abs(x.grad.to_numpy()).min() > 0
        assert capfd.readouterr().err == ""


def test_a_tape_with_tensors_cannot_check(cpu):
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def total(a: ti.types.ndarray()):
        for i in a:
            loss[None] += a[i]

    x.fill(2)
    with pytest.raises(ti.AerogelRuntimeError, match=r"this tape has tensors.*ti.ad.check_grad"):
        with ti.ad.Tape(loss, grad_check=[x]):
            total(ti.tensor.asarray(x) ** 2)
