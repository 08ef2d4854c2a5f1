"""Checks of indices that the compiler proves, or decides before a loop: loops that just fit, and loops that are one too long."""

import re

import numpy as np
import pytest

import aerogel as ti


@pytest.fixture(params=[{"debug": True}, {"check_out_of_bound": True}], ids=["debug", "bounds"])
def checked(request, arch):
    ti.init(arch=arch, log_level="error", **request.param)
    yield arch
    ti.reset()


def fails(call, index, line):
    """Expects that a call fails by an index, on the line of the test's source that ends in a comment."""
    with pytest.raises(ti.AerogelAssertionError) as caught:
        call()
        # On a GPU a launch does not wait for its errors.
        ti.sync()
    message = str(caught.value)
    assert re.search(rf"index \({re.escape(index)}\) is out of bounds", message), message
    assert line in message, message


@ti.kernel
def shifted(a: ti.types.ndarray(ti.i32, 1), n: int, by: int):
    for i in range(n):
        a[i + by] = i + 1  # shifted


def test_the_ends_of_a_loop_over_an_array(checked):
    a = np.zeros(64, np.int32)
    shifted(a, 60, 4)
    assert (a[4:] == np.arange(1, 61)).all() and not a[:4].any()
    fails(lambda: shifted(a, 61, 4), "64", "# shifted")
    fails(lambda: shifted(a, 10, -1), "-1", "# shifted")
    # No iteration, no error.
    shifted(a, 0, 1000)
    shifted(a, -5, -1000)
    shifted(np.zeros(0, np.int32), 0, 0)
    fails(lambda: shifted(np.zeros(0, np.int32), 1, 0), "0", "# shifted")


def test_sums_that_wrap(checked):
    a = np.zeros(64, np.int32)
    fails(lambda: shifted(a, 1, 2**31 - 1), "2147483647", "# shifted")
    with pytest.raises(ti.AerogelAssertionError, match=r"index \((2147483647|-214748364[78])\) is out of bounds"):
        shifted(a, 3, 2**31 - 1)
    assert not a.any()


@ti.kernel
def nested(a: ti.types.ndarray(ti.i32, 2), n: int, m: int, step: int):
    for i in range(n):
        for j in range(i, m, step):
            a[2 * i + 1, m - 1 - j] += 1  # nested


@pytest.mark.parametrize("step", [1, 2, 3])
def test_loops_inside(checked, step):
    a = np.zeros((8, 10), np.int32)
    nested(a, 4, 10, step)
    expected = np.zeros_like(a)
    for i in range(4):
        for j in range(i, 10, step):
            expected[2 * i + 1, 9 - j] += 1
    assert (a == expected).all()
    with pytest.raises(
        ti.AerogelAssertionError, match=r"index \(9, \d+\) is out of bounds for array `a` of shape \(8, 10\)"
    ):
        nested(a, 5, 10, step)
    with pytest.raises(ti.AerogelAssertionError, match=r"index \(1, 10\) is out of bounds"):
        nested(a, 1, 11, step)


def test_what_is_proved_for_fields(checked):
    x = ti.field(ti.i32, (16, 8), name="x")
    y = ti.field(ti.i32, (16, 8), offset=(-3, 5), name="y")

    @ti.kernel
    def inside():
        for i, j in ti.ndrange((1, 15), (1, 7)):
            x[i, j] = x[i - 1, j] + x[i, j + 1] + 1
        for i, j in y:
            y[i, j] += i
        for i, j in x:
            if i > 0 and j < 7:
                x[i - 1, j + 1] += 0
            x[ti.min(i + 5, 15), ti.max(j - 9, 0)] += 0
            x[(i * 7 + j) % 16, (i + j) & 7] += 0

    @ti.kernel
    def low():
        for i, j in ti.ndrange(15, (1, 7)):
            x[i, j] = x[i - 1, j]  # low

    @ti.kernel
    def high():
        for i, j in x:
            if i >= 0 and j == 3:
                x[i, j + 5 - (i & 1)] += 1  # high

    @ti.kernel
    def offset():
        for i in range(-3, 14):
            y[i, 12] = 1  # offset

    inside()
    assert (y.to_numpy() == np.arange(-3, 13)[:, None]).all()
    with pytest.raises(ti.AerogelAssertionError, match=r"index \(-1, \d\) is out of bounds for field `x`"):
        low()
        ti.sync()
    with pytest.raises(ti.AerogelAssertionError, match=r"index \(\d+, 8\) is out of bounds for field `x`"):
        high()
        ti.sync()
    fails(offset, "13, 12", "# offset")


def test_what_is_read_stays_checked(checked):
    @ti.kernel
    def gather(a: ti.types.ndarray(ti.i32, 1), at: ti.types.ndarray(ti.i32, 1), n: int):
        for i in range(n):
            a[i] = a[at[i]] + 1  # gather

    a, at = np.zeros(8, np.int32), np.arange(8, dtype=np.int32)
    gather(a, at, 8)
    assert (a == 1).all()
    at[5] = 8
    fails(lambda: gather(a, at, 8), "8", "# gather")
    at[5] = -1
    fails(lambda: gather(a, at, 8), "-1", "# gather")


def test_loops_that_leave_early(checked):
    @ti.kernel
    def first(a: ti.types.ndarray(ti.i32, 1), n: int) -> int:
        found = -1
        for _ in range(1):
            for j in range(n):
                if j >= a.shape[0]:
                    break
                if a[j] == 7:
                    found = j
                    break
        return found

    a = np.zeros(8, np.int32)
    assert first(a, 100) == -1
    a[7] = 7
    assert first(a, 100) == 7


def test_a_serial_loop_stops_where_it_fails(checked):
    @ti.kernel
    def fill(a: ti.types.ndarray(ti.i32, 1), n: int):
        ti.loop_config(serialize=True)
        for i in range(n):
            a[i] = i + 1  # fill

    whole = np.zeros(16, np.int32)
    a = whole[:8]
    fails(lambda: fill(a, 9), "8", "# fill")
    assert (a == np.arange(1, 9)).all() and not whole[8:].any()


def test_sparse_loops(checked):
    x = ti.field(ti.i32, name="x")
    ti.root.pointer(ti.i, 8).dense(ti.i, 4).place(x)

    @ti.kernel
    def fill(n: int):
        for i in range(n):
            x[3 * i] = i  # fill

    @ti.kernel
    def next_one() -> int:
        s = 0
        for i in x:
            s += x[i + 1]  # next
        return s

    fill(3)
    assert next_one() == 3
    fails(lambda: fill(12), "33", "# fill")
    with pytest.raises(ti.AerogelAssertionError, match=r"index \(32\) is out of bounds for field `x`"):
        x[31] = 1
        next_one()


@pytest.mark.parametrize("option", ["debug", "check_out_of_bound"])
def test_checks_do_not_change_what_is_drawn(arch, option):
    """A loop that is duplicated counts as one loop, by whose number the others draw."""
    found = []
    for options in ({}, {option: True}):
        ti.init(arch=arch, log_level="error", random_seed=3, **options)
        x = ti.field(ti.f64, 64, needs_grad=True)
        kept, y = ti.field(ti.f64, 64), ti.field(ti.f64, 65)
        loss = ti.field(ti.f64, (), needs_grad=True)

        @ti.kernel
        def dropout(n: int):
            for i in range(n):
                y[i + 1] = 1
            for i in range(n):
                share = 2.0 if ti.random(ti.f64) > 0.5 else 0.0
                kept[i] = share
                loss[None] += share * x[i]
            for i in range(n):
                y[i] += ti.random(ti.f64)

        x.fill(1)
        with ti.ad.Tape(loss):
            dropout(64)
        found.append([a.to_numpy() for a in (kept, x.grad, y)])
        assert 10 < np.count_nonzero(found[-1][0]) < 54
        np.testing.assert_array_equal(found[-1][0], found[-1][1])
    for plain, checked in zip(*found):
        np.testing.assert_array_equal(plain, checked)
