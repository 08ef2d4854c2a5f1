"""What serial loops read and write again and again: sums in memory, and elements at an index that the loop chooses."""

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


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32"])
@pytest.mark.parametrize("n, m", SHAPES)
def test_the_index_of_an_extreme(arch, n, m, dtype):
    ti.init(arch=arch)
    annotation = ti.types.ndarray(dtype=getattr(ti, dtype), ndim=2)
    indices = ti.types.ndarray(dtype=ti.i32, ndim=1)

    @ti.kernel
    def greatest(a: annotation, w: indices):
        for i in range(a.shape[0]):
            best = 0
            for j in range(1, a.shape[1]):
                if a[i, j] > a[i, best]:
                    best = j
            w[i] = best

    @ti.kernel
    def least(a: annotation, w: indices, count: ti.i32):
        for j in range(a.shape[1]):
            best = 0
            for i in range(count):
                best = ti.select(a[i, j] <= a[best, j], i, best)
            w[j] = best

    @ti.kernel
    def both(a: annotation, w: indices):
        for _ in range(1):
            row, column = 0, 0
            for i in range(a.shape[0]):
                for j in range(a.shape[1]):
                    if a[i, j] < a[row, column]:
                        row = i
                        column = j
            w[0] = row
            w[1] = column

    @ti.kernel
    def changed(a: annotation, w: indices):
        for i in range(a.shape[0]):
            best = 0
            for j in range(1, a.shape[1]):
                if a[i, j] > a[i, best]:
                    best = j
                a[i, best] -= 1
            w[i] = best

    values = (
        np.random.default_rng(3)
        .integers(0, 20, (n, m))
        .astype({"f32": np.float32, "f64": np.float64}.get(dtype, np.int32))
    )
    if dtype != "i32":
        values[0, m // 2] = np.nan
    w = np.zeros(max(n, m, 2), np.int32)

    def scan(line, better):
        best = 0
        for k, value in enumerate(line):
            if better(value, line[best]):
                best = k
        return best

    greatest(values, w)
    np.testing.assert_array_equal(w[:n], [scan(row, np.greater) for row in values])
    least(values, w, n)
    np.testing.assert_array_equal(w[:m], [scan(column, np.less_equal) for column in values.T])
    least(values, w, 0)
    np.testing.assert_array_equal(w[:m], 0)
    both(values, w)
    np.testing.assert_array_equal(w[:2], np.unravel_index(scan(values.ravel(), np.less), (n, m)))

    expected = []
    for row in values.copy():
        best = 0
        for k in range(1, m):
            if row[k] > row[best]:
                best = k
            row[best] -= 1
        expected.append(best)
    changed(values, w)
    np.testing.assert_array_equal(w[:n], expected)


def test_a_chosen_element_of_a_loop_that_does_not_run():
    ti.init()
    n, a, out = np.array([2, 0, 2], np.int32), np.array([10, 7, 3], np.int32), np.zeros(3, np.int32)

    @ti.kernel
    def run(n: ti.types.ndarray(), a: ti.types.ndarray(), out: ti.types.ndarray()):
        for _ in range(1):
            best = 0
            for j in range(3):
                out[j] = a[best]
                for i in range(n[j]):
                    if a[i] > a[best]:
                        best = i

    run(n, a, out)
    assert out.tolist() == [10, 10, 10]


def test_elements_are_as_they_are_where_a_check_fails():
    ti.init(debug=True)
    x, y = ti.field(ti.f32, 1), ti.field(ti.f32, 4)

    @ti.kernel
    def run(n: ti.i32):
        for _ in range(1):
            x[0] = 5.0
            for k in range(n):
                x[0] = x[0] + 1.0
                y[k] = x[0]

    with pytest.raises(ti.TaichiRuntimeError):
        run(10)
    assert x[0] == 10
    assert y.to_numpy().tolist() == [6, 7, 8, 9]
