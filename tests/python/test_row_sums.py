"""Rows that one iteration of a parallel loop clears and adds to: sums without atomics, and those that must stay atomic."""

import numpy as np
import pytest

import aerogel as ti

N = 48
DTYPES = ["f32", "f64", "i32"]


@pytest.fixture(params=DTYPES)
def dtype(request):
    return getattr(ti, request.param)


def square(rng):
    return rng.integers(-4, 5, (N, N)).astype(np.int32)


def layouts(dtype):
    """Fields of all kinds, each with the offset of its indices."""
    dense = ti.field(dtype, (N, N))
    transposed = ti.field(dtype, (N, N), order="ji")
    vectors = ti.Vector.field(2, dtype, (N, N))
    structs = ti.Struct.field({"a": dtype, "b": dtype}, shape=(N, N))
    sparse = ti.field(dtype)
    ti.root.pointer(ti.ij, N // 8).bitmasked(ti.ij, 8).place(sparse)
    moved = ti.field(dtype, (N, N), offset=(-3, 5))
    plain = [dense, transposed, vectors.get_scalar_field(1), structs.b, sparse]
    return [*((field, (0, 0)) for field in plain), (moved, (-3, 5))]


def test_rows_of_fields(arch, dtype, rng):
    a, b = square(rng), square(rng)
    x, y = ti.field(dtype, (N, N)), ti.field(dtype, (N, N))
    x.from_numpy(a)
    y.from_numpy(b)

    @ti.kernel
    def product(c: ti.template(), di: ti.template(), dj: ti.template()):
        for i in range(N):
            for j in range(N):
                c[i + di, j + dj] = 1
            for k in range(N):
                w = x[i, k]
                for j in range(N):
                    c[i + di, j + dj] += w * y[k, j]

    for c, (di, dj) in layouts(dtype):
        product(c, di, dj)
        np.testing.assert_array_equal(c.to_numpy(), a @ b + 1)


def test_rows_of_arrays(arch, dtype, rng):
    a = square(rng)

    @ti.kernel
    def scaled(x: ti.types.ndarray(), c: ti.types.ndarray(), n: ti.i32):
        for i in range(N):
            for j in range(N):
                c[n - i, j] = 0
            for k, j in ti.ndrange(3, N):
                c[n - i, j] += x[i, j]

    x = ti.ndarray(dtype, (N, N))
    c = ti.ndarray(dtype, (N, N))
    x.from_numpy(a)
    scaled(x, c, N - 1)
    np.testing.assert_array_equal(c.to_numpy(), 3 * a[::-1])


def test_arrays_that_overlap(arch, dtype, rng):
    """Two names of one array: iterations add to the rows of others."""
    a = square(rng)

    @ti.kernel
    def add(p: ti.types.ndarray(), q: ti.types.ndarray()):
        for i in range(N - 1):
            for j in range(N):
                p[i, j] += 1
            for k in range(N):
                q[i + 1, k] += 2

    x = ti.ndarray(dtype, (N, N))
    x.from_numpy(a)
    add(x, x)
    added = np.full((N, 1), 3)
    added[0], added[-1] = 1, 2
    np.testing.assert_array_equal(x.to_numpy(), a + added)


def test_members_of_vectors(arch, dtype):
    c = ti.Vector.field(3, dtype, (N, N))

    @ti.kernel
    def sums():
        for i, j in ti.ndrange(N, N):
            c[j, i] = [1, 2, 3]
            for k in range(3):
                for m in ti.static(range(3)):
                    c[j, i][m] += k * j
                c[j, i][k] += i

    sums()
    i, j = np.arange(N)[:, None], np.arange(N)
    expected = np.stack([m + 1 + 3 * i + j for m in range(3)], -1)
    np.testing.assert_array_equal(c.to_numpy(), expected)


@pytest.mark.parametrize("threads", [1, 4])
def test_elements_of_several_iterations(dtype, threads):
    """Rows and columns: every element belongs to two iterations."""
    ti.init(arch=ti.cpu, cpu_max_num_threads=threads, log_level="error")
    n, turns = 400, 20
    c = ti.field(dtype, (n, n))

    @ti.kernel
    def cross():
        for i in range(n):
            for j in range(n):
                c[i, j] += 1
            for j in range(n):
                c[j, i] += 1

    @ti.kernel
    def halves():
        for i in range(n):
            for j in range(n):
                c[i // 2, j] += 1
            for j in range(n):
                c[i // 2, j] += 1

    for _ in range(turns):
        cross()
    np.testing.assert_array_equal(c.to_numpy(), np.full((n, n), 2 * turns))
    c.fill(0)
    for _ in range(turns):
        halves()
    np.testing.assert_array_equal(c.to_numpy()[: n // 2], np.full((n // 2, n), 4 * turns))
    ti.reset()
