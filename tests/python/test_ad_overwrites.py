"""Kernels that write an element more than once, or read it before and after: a right gradient, or an error."""

import numpy as np
import pytest

import aerogel as ti

N = 6


def fields():
    x, y = (ti.field(ti.f64, shape=N, needs_grad=True) for _ in range(2))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x.from_numpy(np.linspace(0.5, 1.3, N))
    y.from_numpy(np.linspace(1.2, 0.7, N))
    return x, y, loss


@ti.kernel
def in_order(x: ti.template(), y: ti.template(), loss: ti.template()):
    ti.loop_config(serialize=True)
    for i in range(1, N):
        x[i] = x[i] * x[i - 1] + y[i]


@ti.kernel
def in_two_loops(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        y[i] = x[i] * x[i]
    for i in x:
        x[i] = y[i] + 1
    for i in x:
        loss[None] += x[i] ** 3


@ti.kernel
def in_one_iteration(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        y[i] = x[i] * x[i]
        x[i] = ti.sin(x[i])
        loss[None] += x[i] * y[i]


@pytest.mark.parametrize("program", [in_order, in_two_loops, in_one_iteration])
def test_needed_as_it_was_and_as_the_kernel_made_it(arch, program):
    """Memory is put back as it was at one moment only."""
    x, y, loss = fields()
    with pytest.raises(ti.AerogelCompilationError, match="overwrites it"), ti.ad.Tape(loss):
        program(x, y, loss)
    assert not x.grad.to_numpy().any()


@ti.kernel
def backwards_in_order(x: ti.template(), y: ti.template()):
    ti.loop_config(serialize=True)
    for i in range(N - 1):
        x[i] = x[i] * x[i + 1]
    for i in y:
        y[i] = y[i] * 2


@ti.kernel
def twice(x: ti.template(), y: ti.template()):
    for i in range(1, N - 1):
        y[i] = ti.sin(x[i - 1])
        y[i] = x[i - 1] * x[i + 1]


@ti.kernel
def scaled(x: ti.template(), y: ti.template()):
    for i in range(1, N - 1):
        y[i] = x[i - 1] * x[i + 1]
        y[i] *= 2.0


@ti.kernel
def added(x: ti.template(), y: ti.template()):
    for i in range(1, N - 1):
        y[i] = x[i - 1] + x[i + 1] ** 2
        y[i] += x[i]


@ti.kernel
def in_a_branch(x: ti.template(), y: ti.template()):
    for i in range(1, N - 1):
        y[i] = x[i - 1] * x[i + 1]
        if i % 2 == 0:
            y[i] = 0.0


@ti.kernel
def in_place(x: ti.template(), y: ti.template()):
    for i in range(1, N - 1):
        y[i] = y[i] * 0.5 + x[i - 1] * x[i + 1]


@pytest.mark.parametrize("program", [backwards_in_order, twice, scaled, added, in_a_branch, in_place])
def test_an_element_written_more_than_once(arch, program):
    x, y, loss = fields()

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] * x[i] * y[i] + y[i] * y[i]

    def of(x0, y0):
        x.from_numpy(x0)
        y.from_numpy(y0)
        loss[None] = 0
        program(x, y)
        total()
        return loss[None]

    start = x.to_numpy(), y.to_numpy()
    with ti.ad.Tape(loss):
        program(x, y)
        total()
    for k, grad in enumerate((x.grad.to_numpy(), y.grad.to_numpy())):
        for i in range(N):
            moved = []
            for by in (1e-6, -1e-6):
                at = [a.copy() for a in start]
                at[k][i] += by
                moved.append(of(*at))
            assert grad[i] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-6, abs=1e-7)


@ti.kernel
def product_then_sum(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        ti.atomic_mul(y[i], x[i])
        ti.atomic_add(y[i], x[i])


@ti.kernel
def product_of_what_is_stored(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        y[i] = x[i]
        ti.atomic_mul(y[i], x[i])


@ti.kernel
def extremum_then_sum(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        ti.atomic_max(y[i], x[i])
        y[i] += x[i]


@ti.kernel
def extrema_of_both_kinds(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        ti.atomic_max(y[i], x[i])
    for i in x:
        ti.atomic_min(y[i], 1.0)


MIXED = [product_then_sum, product_of_what_is_stored, extremum_then_sum, extrema_of_both_kinds]


@pytest.mark.parametrize("program", MIXED)
def test_atomics_that_are_not_alone(arch, program):
    """Who won, and what the other factors are, is seen of what all of them leave."""
    x, y, loss = fields()
    with pytest.raises(ti.AerogelCompilationError, match="overwrites it"), ti.ad.Tape(loss):
        program(x, y, loss)
    assert not x.grad.to_numpy().any()
