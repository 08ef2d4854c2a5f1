"""Nests of serial loops in any order: values are those of the order that is written."""

import aerogel as ti
import numpy as np
import pytest

N, M = 40, 56


def started(fast_math=True):
    ti.init(arch=ti.cpu, log_level="error", fast_math=fast_math)


def numbers(*shape, ty=ti.f32):
    field = ti.field(ty, shape)
    field.from_numpy(np.random.default_rng(3).uniform(-2, 2, shape).astype(np.float32))
    return field


@pytest.mark.parametrize("serial", [False, True])
def test_copies_in_a_loop_over_time(serial):
    started(fast_math=False)
    a, b = numbers(N, M), numbers(N, M)
    start = b.to_numpy()

    @ti.kernel
    def run():
        ti.loop_config(serialize=serial)
        for t in range(1):
            for s in range(5):
                for j in range(M):
                    for i in range(N):
                        b[i, j] = a[i, j] + b[i, j] * 0.5

    run()
    for _ in range(5):
        start = a.to_numpy() + start * np.float32(0.5)
    np.testing.assert_array_equal(b.to_numpy(), start)


@pytest.mark.parametrize("offset", [(-1, 0), (0, -1), (-1, -1), (-1, 1), (1, -1), (1, 1), (0, 1)])
def test_what_iterations_need_of_each_other(offset):
    started(fast_math=False)
    a = numbers(N, M)
    want = a.to_numpy()
    di, dj = offset

    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for t in range(2):
            for j in range(1, M - 1):
                for i in range(1, N - 1):
                    a[i, j] = a[i, j] * 0.25 + a[i + di, j + dj]

    run()
    for _ in range(2):
        for j in range(1, M - 1):
            for i in range(1, N - 1):
                want[i, j] = want[i, j] * np.float32(0.25) + want[i + di, j + dj]
    np.testing.assert_array_equal(a.to_numpy(), want)


def test_a_column_that_all_read():
    started()
    a = numbers(N, M)
    want = a.to_numpy()

    @ti.kernel
    def run(w: ti.i32):
        ti.loop_config(serialize=True)
        for t in range(1):
            for j in range(M):
                for i in range(N):
                    a[i, j] = a[i, j] + a[i, w]

    run(7)
    for j in range(M):
        for i in range(N):
            want[i, j] += want[i, 7]
    np.testing.assert_array_equal(a.to_numpy(), want)


@pytest.mark.parametrize("fast_math", [True, False])
def test_sums_column_by_column(fast_math):
    started(fast_math)
    a, s, w = numbers(3, N, M), ti.field(ti.f32, 3), ti.field(ti.i32, 3)

    @ti.kernel
    def run():
        for k in range(3):
            total, greatest = 0.0, -9.0
            whole = 0
            for j in range(M):
                for i in range(N):
                    total += a[k, i, j]
                    greatest = max(greatest, a[k, i, j])
                    whole ^= i * 3 + j
            s[k] = total + greatest
            w[k] = whole

    run()
    values = a.to_numpy()
    if fast_math:
        want = values.sum((1, 2), dtype=np.float64) + values.max((1, 2))
        np.testing.assert_allclose(s.to_numpy(), want, rtol=1e-5)
    else:
        for k in range(3):
            total = np.float32(0)
            for v in values[k].T.ravel():
                total += v
            assert s[k] == total + values[k].max()
    i, j = np.indices((N, M))
    assert w[0] == np.bitwise_xor.reduce((i * 3 + j).ravel())


def test_a_parallel_loop_of_other_bounds():
    started()
    a, b = numbers(5, N, M), numbers(5, N, M)

    @ti.kernel
    def run():
        for k in range(5):
            for j in range(M):
                for i in range(N):
                    b[k, i, j] = a[k, i, j] + i - j

    run()
    i, j = np.indices((N, M))
    want = a.to_numpy() + (i).astype(np.float32)[None]
    np.testing.assert_array_equal(b.to_numpy(), want - j.astype(np.float32)[None])
