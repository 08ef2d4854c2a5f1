"""Loops over elements and their partners, whose numbers differ in the bits of another number."""

import numpy as np
import pytest

import aerogel as ti

SIZES = [8, 64, 1000, 1024]


@pytest.mark.parametrize("n", [64, 1024])
def test_sorting_network(arch, rng, n):
    a = ti.field(ti.i32, n)

    @ti.kernel
    def step(k: ti.i32, j: ti.i32):
        for i in range(n):
            l = i ^ j
            if l > i:
                u, v = a[i], a[l]
                if (u > v) == ((i & k) == 0):
                    a[i] = v
                    a[l] = u

    start = rng.integers(0, 1000, n, dtype=np.int32)
    a.from_numpy(start)
    k = 2
    while k <= n:
        j = k // 2
        while j > 0:
            step(k, j)
            j //= 2
        k *= 2
    np.testing.assert_array_equal(a.to_numpy(), np.sort(start))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("j", [-1, 0, 1, 2, 3, 8, 12, 16, 17, 32, 48, 256, 512])
def test_distances(arch, rng, n, j):
    """Also those that are no power of two, and where some partners are outside of the loop."""
    a = ti.field(ti.f32, 2048)
    b = ti.field(ti.f32, 2048)

    @ti.kernel
    def exchange(n: ti.i32, j: ti.i32):
        for i in range(n):
            l = i ^ j
            if i < l:
                u = a[i]
                v = a[l]
                w = b[i]
                if u > v:
                    a[i] = v
                    a[l] = u + w
                else:
                    a[l] = v * 2.0
                if v > w:
                    a[i] = w

    values, others = (rng.standard_normal(2048).astype(np.float32) for _ in range(2))
    a.from_numpy(values)
    b.from_numpy(others)
    exchange(n, j)
    expected = values.copy()
    for i in range(n):
        partner = i ^ j
        if i < partner:
            u, v, w = values[i], values[partner], others[i]
            if u > v:
                expected[i], expected[partner] = v, u + w
            else:
                expected[partner] = v * 2
            if v > w:
                expected[i] = w
    np.testing.assert_array_equal(a.to_numpy(), expected)


def test_butterflies(arch, rng):
    """A Walsh transform of arrays, whose pairs begin where a bit is zero."""
    n = 1 << 9
    values = rng.integers(-5, 6, n).astype(np.float64)

    @ti.kernel
    def step(a: ti.types.ndarray(), j: ti.i32):
        for i in range(a.shape[0]):
            if i & j == 0:
                u, v = a[i], a[i + j]
                if u != v or u != 0.0:
                    a[i] = u + v
                    a[i | j] = u - v

    got = values.copy()
    for bit in range(9):
        step(got, 1 << bit)
    expected = values.copy()
    for bit in range(9):
        rows = expected.reshape(-1, 2, 1 << bit)
        expected = np.stack([rows[:, 0] + rows[:, 1], rows[:, 0] - rows[:, 1]], 1).ravel()
    np.testing.assert_array_equal(got, expected)


def test_neighbours_of_pairs_stay(arch):
    """A loop that reads elements of other pairs is left alone."""
    n = 64
    a, b = ti.field(ti.i32, n), ti.field(ti.i32, n + 1)

    @ti.kernel
    def step(j: ti.i32):
        ti.loop_config(serialize=True)
        for i in range(n):
            l = i ^ j
            if l > i:
                u, v = a[i], a[l]
                if u + b[i + 1] > v:
                    a[i] = v
                    a[l] = u
                    b[i] = 3

    a.from_numpy(np.arange(n, dtype=np.int32))
    expected_a, expected_b = np.arange(n), np.zeros(n + 1, int)
    step(16)
    for i in range(n):
        partner = i ^ 16
        if partner > i:
            u, v = expected_a[i], expected_a[partner]
            if u + expected_b[i + 1] > v:
                expected_a[i], expected_a[partner], expected_b[i] = v, u, 3
    np.testing.assert_array_equal(a.to_numpy(), expected_a)
    np.testing.assert_array_equal(b.to_numpy(), expected_b)
