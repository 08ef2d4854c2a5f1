"""Elements that serial loops read and write again and again."""

import numpy as np
import pytest

import aerogel as ti

SHAPES = [(33, 70), (1, 5), (5, 1), (16, 64)]


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize("n, m", SHAPES)
def test_sums_in_memory(arch, n, m, fast_math):
    ti.init(arch=arch, fast_math=fast_math)
    a, b = ti.field(ti.f32, (n, m)), ti.field(ti.f32, m)
    values = np.random.default_rng(1).standard_normal((n, m), dtype=np.float32)
    a.from_numpy(values)

    @ti.kernel
    def cleared():
        for j in range(m):
            b[j] = 0
            for i in range(n):
                b[j] += a[i, j]

    @ti.kernel
    def added(count: ti.i32):
        for j in range(m):
            for i in range(count):
                b[j] = b[j] + a[i, j]

    @ti.kernel
    def positive():
        for j in range(m):
            b[j] = 0
            for i in range(n):
                if a[i, j] > 0:
                    b[j] += a[i, j]

    def in_order(start, terms):
        total = start.copy()
        for row in terms:
            total += row
        return total

    def check(expected):
        if fast_math:
            np.testing.assert_allclose(b.to_numpy(), expected, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(b.to_numpy(), expected)

    zero = np.zeros(m, np.float32)
    cleared()
    check(in_order(zero, values))
    b.from_numpy(values[0])
    added(n)
    check(in_order(values[0], values))
    before = b.to_numpy()
    added(0)
    added(-3)
    np.testing.assert_array_equal(b.to_numpy(), before)
    positive()
    check(in_order(zero, np.maximum(values, 0)))


def test_elements_that_only_some_iterations_write(arch):
    ti.init(arch=arch)
    a, b = ti.field(ti.i32, (64, 8)), ti.field(ti.i32, 4)

    @ti.kernel
    def scatter():
        for i in range(64):
            for j in range(8):
                if a[i, j] > 0:
                    b[i % 4] = b[i % 4] + a[i, j]

    values = np.zeros((64, 8), np.int32)
    values[[3, 8, 17, 30], [1, 2, 3, 4]] = [5, 6, 7, 8]
    a.from_numpy(values)
    scatter()
    np.testing.assert_array_equal(b.to_numpy(), [6, 7, 8, 5])


def test_loops_that_are_left(arch):
    ti.init(arch=arch)
    a, b = ti.field(ti.i32, (16, 40)), ti.field(ti.i32, 16)

    @ti.kernel
    def count():
        for i in range(16):
            b[i] = 0
            for j in range(40):
                if a[i, j] == 9:
                    break
                if a[i, j] == 3:
                    continue
                b[i] += a[i, j]

    values = np.random.default_rng(2).integers(0, 10, (16, 40)).astype(np.int32)
    a.from_numpy(values)
    count()
    before = np.cumsum(values == 9, axis=1) == 0
    np.testing.assert_array_equal(b.to_numpy(), np.where(before & (values != 3), values, 0).sum(axis=1))


def test_one_array_under_two_names(arch):
    ti.init(arch=arch)

    @ti.kernel
    def add(a: ti.types.ndarray(dtype=ti.i32, ndim=2), b: ti.types.ndarray(dtype=ti.i32, ndim=2)):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                b[i, 2] = b[i, 2] + a[i, j]

    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    expected = x.copy()
    for j in range(4):
        expected[:, 2] += expected[:, j]
    add(x, x)
    np.testing.assert_array_equal(x, expected)
