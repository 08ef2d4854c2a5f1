"""Neighbours that are asked for at the edges of grids, on each axis: every cell gets what NumPy gives."""

import numpy as np
import pytest

import aerogel as ti

LINKS = [(-2, 0), (-1, -1), (-1, 0), (0, -2), (0, 1), (1, 1), (2, 0)]


def summed(x, inside):
    """The sum of each cell's neighbours for which `inside(i, j)` holds."""
    n, m = x.shape
    want = np.zeros((n, m), x.dtype)
    for i in range(n):
        for j in range(m):
            for di, dj in LINKS:
                if inside(i + di, j + dj):
                    want[i, j] += x[i + di, j + dj]
    return want


@pytest.mark.parametrize("shape", [(3, 40), (40, 3), (64, 64), (9, 200)])
@pytest.mark.parametrize("threads", [1, 2])
def test_fields(shape, threads):
    ti.init(cpu_max_num_threads=threads)
    n, m = shape
    x, y = ti.field(ti.i32, shape), ti.field(ti.i32, shape)

    @ti.kernel
    def run():
        for i in ti.grouped(x):
            total = 0
            for o in ti.static(LINKS):
                j = i + ti.Vector([o[0], o[1]])
                if 0 <= j[0] < n and 0 <= j[1] < m:
                    total += x[j]
            y[i] = total

    given = np.random.default_rng(3).integers(0, 100, shape, dtype=np.int32)
    x.from_numpy(given)
    run()
    assert np.array_equal(y.to_numpy(), summed(given, lambda i, j: 0 <= i < n and 0 <= j < m))


@pytest.mark.parametrize("shape", [(5, 70), (70, 5), (64, 64)])
def test_arrays_whose_shape_is_not_known(shape):
    ti.init()

    @ti.kernel
    def run(x: ti.types.ndarray(), y: ti.types.ndarray()):
        n, m = x.shape
        for i, j in x:
            total = 0
            for o in ti.static(LINKS):
                if i + o[0] >= 0 and i + o[0] < n and j + o[1] >= 0 and j + o[1] < m:
                    total += x[i + o[0], j + o[1]]
            y[i, j] = total

    given = np.random.default_rng(3).integers(0, 100, shape, dtype=np.int32)
    got = np.zeros_like(given)
    run(given, got)
    n, m = shape
    assert np.array_equal(got, summed(given, lambda i, j: 0 <= i < n and 0 <= j < m))


@pytest.mark.parametrize(("first", "last"), [(20, 45), (0, 64), (1, 2), (-5, 70)])
def test_a_window_that_is_not_at_the_edges(first, last):
    ti.init()
    x, y = ti.field(ti.i32, (64, 64)), ti.field(ti.i32, (64, 64))

    @ti.kernel
    def run(first: ti.i32, last: ti.i32):
        for i, j in ti.ndrange((2, 62), (2, 62)):
            total = 0
            for o in ti.static(LINKS):
                a, b = i + o[0], j + o[1]
                if first <= a < last and 3 <= a < 61 and 2 <= b < 63 and a < b + 20:
                    total += x[a, b]
            y[i, j] = total

    given = np.random.default_rng(3).integers(0, 100, (64, 64), dtype=np.int32)
    x.from_numpy(given)
    run(first, last)
    want = summed(given, lambda a, b: first <= a < last and 3 <= a < 61 and 2 <= b < 63 and a < b + 20)
    assert np.array_equal(y.to_numpy()[2:62, 2:62], want[2:62, 2:62])


def test_three_axes_wrapped_and_clamped():
    ti.init()
    shape = (12, 40, 40)
    x, y = ti.field(ti.i32, shape), ti.field(ti.i32, shape)

    @ti.kernel
    def run():
        for i, j, k in x:
            y[i, j, k] = (
                x[(i + 1) % 12, (j - 1 + 40) % 40, (k + 3) % 40]
                + x[ti.max(i - 1, 0), ti.min(j + 2, 39), ti.max(k - 1, 0)]
            )

    given = np.random.default_rng(3).integers(0, 100, shape, dtype=np.int32)
    x.from_numpy(given)
    run()
    i, j, k = np.mgrid[:12, :40, :40]
    wrapped = given[(i + 1) % 12, (j - 1) % 40, (k + 3) % 40]
    want = wrapped + given[np.maximum(i - 1, 0), np.minimum(j + 2, 39), np.maximum(k - 1, 0)]
    assert np.array_equal(y.to_numpy(), want)
