"""Loops over several axes that access memory along rows and across are walked in tiles."""

import numpy as np
import pytest

import aerogel as ti

SHAPES = [(1, 1), (5, 3), (16, 16), (37, 53), (64, 17), (17, 64), (3, 40000), (40000, 3), (500, 700)]


@pytest.mark.parametrize("shape", SHAPES)
def test_transposed_copies(arch, shape):
    n, m = shape
    a, b, c = ti.field(ti.i32, (n, m)), ti.field(ti.i32, (m, n)), ti.field(ti.i32, (n + 2, m + 1))

    @ti.kernel
    def gather():
        for i, j in b:
            b[i, j] = a[j, i] * 2 + i - j

    @ti.kernel
    def scatter(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i, j in ti.ndrange((1, n), m):
            if (i + j) % 7 != 3:
                y[j, i - 1] = x[i, j]

    @ti.kernel
    def back():
        for i, j in ti.ndrange((-1, m - 1), n):
            c[j + 2, i + 1] = b[i + 1, j]

    numbers = np.arange(n * m, dtype=np.int32).reshape(n, m)
    a.from_numpy(numbers)
    gather()
    i, j = np.indices((m, n))
    right = (numbers.T * 2 + i - j).astype(np.int32)
    assert np.array_equal(b.to_numpy(), right)
    back()
    assert np.array_equal(c.to_numpy()[2:, :m], right.T)
    y = np.full((m, n), -1, np.int32)
    scatter(numbers, y)
    i, j = np.indices((n, m))
    moved = np.full((m, n), -1, np.int32)
    chosen = ((i + j) % 7 != 3) & (i >= 1)
    moved[j[chosen], i[chosen] - 1] = numbers[chosen]
    assert np.array_equal(y, moved)


def test_three_axes(arch):
    shape = (6, 40, 70)
    a, b = ti.field(ti.f64, shape), ti.field(ti.f64, (shape[0], shape[2], shape[1]))
    v = ti.Vector.field(2, ti.f64, (shape[2], shape[0], shape[1]))

    @ti.kernel
    def turn():
        for k, i, j in a:
            b[k, j, i] = a[k, i, j]
            v[j, k, i] = ti.Vector([a[k, i, j], 1.0 * i])

    numbers = np.random.default_rng(0).random(shape)
    a.from_numpy(numbers)
    turn()
    assert np.array_equal(b.to_numpy(), numbers.transpose(0, 2, 1))
    assert np.array_equal(v.to_numpy()[..., 0], numbers.transpose(2, 0, 1))
    assert np.array_equal(v.to_numpy()[..., 1], np.broadcast_to(np.arange(40.0), (70, 6, 40)))


def test_random_numbers_stay_those_of_their_cells(arch):
    """The number of an iteration decides what it draws, whatever the order."""
    across, along = ti.field(ti.f32, (40, 30)), ti.field(ti.f32, (30, 40))

    @ti.kernel
    def draw(transposed: ti.template()):
        for i, j in along:
            if ti.static(transposed):
                across[j, i] = ti.random()
            else:
                along[i, j] = ti.random()

    found = []
    for transposed, field in ((True, across), (False, along)):
        ti.reset()
        ti.init(arch=arch, random_seed=3)
        across, along = ti.field(ti.f32, (40, 30)), ti.field(ti.f32, (30, 40))
        draw(transposed)
        found.append((across if transposed else along).to_numpy())
    assert np.array_equal(found[0], found[1].T)
