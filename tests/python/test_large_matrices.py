"""Matrices too large to be taken apart into scalars, against NumPy."""

import numpy as np
import pytest

import aerogel as ti

N, M = 13, 9
Wide = ti.types.matrix(N, M, ti.f32)
Tall = ti.types.matrix(M, N, ti.f32)
Square = ti.types.matrix(N, N, ti.f32)
Row = ti.types.vector(100, ti.i32)


def filled(n, m):
    i, j = np.indices((n, m))
    return ((7 * i + 3 * j) % 11 - 4).astype(np.float32)


@ti.func
def make(shape: ti.template()):
    out = shape(0.0)
    for i in range(shape.n):
        for j in range(shape.m):
            out[i, j] = (7 * i + 3 * j) % 11 - 4
    return out


def test_products_and_sums(arch):
    @ti.kernel
    def run(out: ti.types.ndarray(dtype=ti.f32, ndim=2)) -> ti.f32:
        a = make(Wide)
        b = make(Tall)
        c = a @ b
        d = 2.0 * c - c.transpose() / 2 + ti.abs(c)
        e = d if a[1, 2] > 0 else -d
        for i, j in ti.ndrange(N, N):
            out[i, j] = e[i, j]
        v = c @ ti.Vector([1.0] * N)
        return v.sum() + d.max()

    a, b = filled(N, M), filled(M, N)
    c = a @ b
    d = 2 * c - c.T / 2 + abs(c)
    out = np.zeros((N, N), dtype=np.float32)
    assert run(out) == pytest.approx(c.sum() + d.max(), rel=1e-5)
    np.testing.assert_allclose(out, d if a[1, 2] > 0 else -d, rtol=1e-5)


def test_elements_by_element(arch):
    @ti.kernel
    def run(out: ti.types.ndarray(), k: ti.i32) -> ti.i32:
        v = Row(1)
        for i in range(100):
            v[i] += i
        w = v
        v[k] = -5
        u = (v > 20) and (w % 3 == 0)
        v, w = w, v
        w.fill(ti.select(v[3] == 4, 6, 7))
        v[99] = w[k] + ti.cast(u, ti.i32).sum()
        ti.atomic_add(v[k], 1000)
        for i in range(100):
            out[i] = v[i] if k > 0 else w[i]
        return v.min() * 10 + w[5]

    def expected(k):
        v = 1 + np.arange(100)
        w = v.copy()
        v[k] = -5
        u = (v > 20) & (w % 3 == 0)
        v, w = w, v
        w[:] = 6
        v[99] = w[k] + u.sum()
        v[k] += 1000
        return v, w

    out = np.zeros(100, dtype=np.int32)
    for k in (40, 0):
        v, w = expected(k)
        assert run(out, k) == v.min() * 10 + w[5]
        np.testing.assert_array_equal(out, v if k > 0 else w)


def test_in_fields_arrays_structs_and_calls(arch):
    field = Wide.field(shape=3)
    array = ti.Matrix.ndarray(N, M, ti.f32, 3)
    Pair = ti.types.struct(a=Wide, n=ti.i32)

    @ti.real_func
    def scale(m: Wide, by: ti.f32) -> Wide:
        if by > 100:
            return m
        return scale(m * by, by * 20)

    @ti.kernel
    def run(array: ti.types.ndarray(dtype=Wide, ndim=1)):
        for i in field:
            pair = Pair(make(Wide), i)
            pair.a += 1.0
            field[i] = pair.a * pair.n
            array[i] = field[i] + scale(pair.a, 2.0)
            field[i] -= 1.0

    run(array)
    m = filled(N, M) + 1
    for i in range(3):
        np.testing.assert_array_equal(field[i].to_numpy(), m * i - 1)
        np.testing.assert_array_equal(array[i].to_numpy(), m * i + m * 80)


def test_results(arch):
    @ti.kernel
    def run(m: Square) -> Square:
        return m @ m

    m = filled(N, N)
    np.testing.assert_array_equal(run(m.tolist()).to_numpy(), m @ m)
