"""Ranges and indices at the ends of their types."""

import sys

import aerogel as ti
import numpy as np
import pytest

I32 = (-(2**31), 2**31 - 1)
I64 = (-(2**63), 2**63 - 1)

RANGES = [
    ("i32", I32[0], I32[1], 2**30),
    ("i32", I32[1], I32[0], -(2**30)),
    ("i32", I32[0], I32[1], 2**31 - 1),
    ("i32", I32[1], I32[0], I32[0]),
    ("i32", 0, I32[1], 2**30),
    ("i32", I32[1] - 3, I32[1], 2),
    ("i32", I32[0] + 3, I32[0], -2),
    ("i32", I32[1] - 3, I32[1], 1),
    ("i32", I32[0] + 3, I32[0], -1),
    ("i32", 5, 3, 1),
    ("i32", 3, 5, -1),
    ("i64", I64[0], I64[1], 2**61),
    ("i64", I64[1], I64[0], -(2**61)),
    ("i64", I64[0], I64[1], 2**63 - 1),
    ("i64", I64[1] - 5, I64[1], 2),
    ("i64", I64[0] + 5, I64[0], -2),
    ("i64", 2**31 - 2, 2**31 + 2, 1),
    ("i64", 2**40, 2**40 - 3, -1),
]


@pytest.mark.parametrize("ty, lo, hi, step", RANGES)
@pytest.mark.parametrize("known", ["all", "step", "none"])
@pytest.mark.parametrize("outermost", [True, False])
def test_range(arch, ty, lo, hi, step, known, outermost):
    ti.init(arch=arch, log_level="error")
    t = getattr(ti, ty)
    n, total = ti.field(ti.i32, ()), ti.field(ti.u64, ())

    @ti.func
    def visit(i):
        ti.atomic_add(n[None], 1)
        ti.atomic_add(total[None], ti.cast(i, ti.u64))

    if outermost and known == "all":

        @ti.kernel
        def run(a: t, b: t, c: t):
            for i in range(lo, hi, step):
                visit(i)
    elif outermost and known == "step":

        @ti.kernel
        def run(a: t, b: t, c: t):
            for i in range(a, b, step):
                visit(i)
    elif outermost:

        @ti.kernel
        def run(a: t, b: t, c: t):
            for i in range(a, b, c):
                visit(i)
    elif known == "all":

        @ti.kernel
        def run(a: t, b: t, c: t):
            if True:
                for i in range(lo, hi, step):
                    visit(i)
    elif known == "step":

        @ti.kernel
        def run(a: t, b: t, c: t):
            if True:
                for i in range(a, b, step):
                    visit(i)
    else:

        @ti.kernel
        def run(a: t, b: t, c: t):
            if True:
                for i in range(a, b, c):
                    visit(i)

    run(lo, hi, step)
    turns = range(lo, hi, step)
    assert n[None] == len(turns)
    assert total[None] == sum(turns) % 2**64


def test_unsigned_bounds(arch):
    ti.init(arch=arch, log_level="error")
    n, last = ti.field(ti.i32, ()), ti.field(ti.i64, ())

    @ti.kernel
    def run(lo: ti.u32, hi: ti.u32):
        for i in range(lo, hi):
            n[None] += 1
            ti.atomic_max(last[None], i)
        for i in ti.ndrange((lo, hi)):
            n[None] += 1

    run(2**31 - 2, 2**31 + 3)
    assert (n[None], last[None]) == (10, 2**31 + 2)
    run(2**32 - 3, 2**32 - 1)
    assert (n[None], last[None]) == (14, 2**32 - 2)


def test_cells_of_a_serial_nest_past_i32(arch):
    """70000 times 70000 cells, of which the loop sees a few."""
    ti.init(arch=arch, log_level="error")

    @ti.kernel
    def count(n: ti.i32) -> ti.i32:
        seen = 0
        if True:
            for i, j in ti.ndrange(n, n):
                seen += 1
                if seen == 100000:
                    break
        return seen

    @ti.kernel
    def constant() -> ti.i32:
        seen = 0
        if True:
            for i, j in ti.ndrange(70000, 70000):
                seen += i + 1
                if i == 1:
                    break
        return seen

    assert count(70000) == 100000
    assert constant() == 70002


def test_an_axis_that_ends_far_before_it_begins(arch):
    """No turn, though the distance of its ends wraps to a positive number."""
    ti.init(arch=arch, log_level="error")

    @ti.kernel
    def count(lo: ti.i32, hi: ti.i32) -> ti.i32:
        seen = 0
        if True:
            for i, j in ti.ndrange((2000000000, -2000000000), 3):
                seen += 1
                if seen == 5:
                    break
            for i, j in ti.ndrange((lo, hi), 3):
                seen += 1
                if seen == 5:
                    break
        return seen

    assert count(2000000000, -2000000000) == 0


def test_grouped_indices_past_i32(arch):
    ti.init(arch=arch, log_level="error")
    last = ti.field(ti.i64, 2)

    @ti.kernel
    def run(lo: ti.i64):
        for I in ti.grouped(ti.ndrange((lo, lo + 3), 2)):
            for k in ti.static(range(2)):
                ti.atomic_max(last[k], I[k])

    run(3_000_000_000)
    assert last.to_numpy().tolist() == [3_000_000_002, 1]


@pytest.mark.skipif(sys.platform != "linux", reason="memory that is not touched must cost nothing")
@pytest.mark.parametrize("index", ["u32", "i64", "u64"])
def test_indices_past_i32(index):
    """A field of three billion bytes, of which a few are touched."""
    ti.init(log_level="error")
    n = 3_000_000_000
    x = ti.field(ti.u8, n)
    t = getattr(ti, index)

    @ti.kernel
    def put(i: t, v: ti.u8):
        x[i] = v

    @ti.kernel
    def get(i: t) -> ti.u8:
        return x[i]

    for k, i in enumerate([0, 2**31 - 1, 2**31, 2**31 + 1, n - 1]):
        put(i, k + 1)
        assert get(i) == k + 1
        assert x[i] == k + 1
    ti.reset()


def test_an_array_too_long_for_its_indices():
    ti.init(log_level="error")

    @ti.kernel
    def put(a: ti.types.ndarray(dtype=ti.u8, ndim=1), i: ti.u32):
        a[i] = 7

    with pytest.raises(ValueError, match="more than an `i32` can index; reshape the array to more axes"):
        put(np.zeros(2**31 + 16, np.uint8), 2**31 + 5)


@pytest.mark.parametrize(
    "a, b, c", [(-(2**31), 2**31 - 1, 0), (-(2**31), -(2**31), 0), (2**31 - 1, 2**31 - 1, 3), (9, 2, 1)]
)
def test_sums_that_wrap_are_indices(arch, a, b, c):
    """What a sum is modulo 2^32 names the element, in every form that code generation knows."""
    ti.init(arch=arch, log_level="error")
    f = ti.field(ti.i32, 16)
    for i in range(16):
        f[i] = 100 + i

    def element(n):
        n = (n + 2**31) % 2**32 - 2**31
        return 100 + n if 0 <= n < 16 else None

    @ti.kernel
    def difference(a: ti.i32, b: ti.i32) -> ti.i32:
        return f[a - b]

    @ti.kernel
    def total(a: ti.i32, b: ti.i32, c: ti.i32) -> ti.i32:
        return f[a + b + c]

    @ti.kernel
    def multiple(a: ti.i32, b: ti.i32) -> ti.i32:
        return f[4 * a + 4 * b]

    for kernel, args, index in (
        (difference, (a, b), a - b),
        (total, (a, b, c), a + b + c),
        (multiple, (a, b), 4 * a + 4 * b),
    ):
        if element(index) is not None:
            assert kernel(*args) == element(index)
