"""Loops over sparse cells that read and write blocks of other trees."""

import numpy as np
import pytest

import aerogel as ti


@pytest.mark.parametrize("other", ["pointer", "hash"])
def test_blocks_of_another_tree_become_active_where_written(arch, other):
    x, y, z = ti.field(ti.i32), ti.field(ti.i32), ti.field(ti.i32)
    ti.root.pointer(ti.ij, 4).dense(ti.ij, 8).place(x)
    block = getattr(ti.root, other)(ti.ij, 4)
    block.dense(ti.ij, 8).place(y)
    block.dense(ti.ij, 8).place(z)
    for b in range(4):
        x[8 * b, 8 * b] = b + 1

    @ti.kernel
    def step(least: ti.i32):
        for i, j in x:
            if x[i, j] > least:
                y[i, j] = 10 * x[i, j] + z[i, j]
                z[i, j] += 1

    step(2)
    assert block.active_cells().tolist() == [[2, 2], [3, 3]]
    # The blocks of the first two are not there, those of the others are.
    step(0)
    assert [y[8 * b, 8 * b] for b in range(4)] == [10, 20, 31, 41]
    assert len(block.active_cells()) == 4
    assert y.to_numpy().sum() == 102


@pytest.mark.parametrize("other", ["pointer", "hash"])
def test_neighbours_in_another_tree(arch, other):
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    getattr(ti.root, other)(ti.ij, 4).dense(ti.ij, 8).place(x)
    ti.root.pointer(ti.ij, 4).dense(ti.ij, 8).place(y)
    values = np.zeros((32, 32), np.float32)
    values[7:17, 8:32] = np.arange(240).reshape(10, 24)
    for i, j in np.argwhere(values):
        x[i, j] = values[i, j]
    for b in (0, 8, 16):
        y[b, 24] = 0.0

    @ti.kernel
    def sum_around():
        for i, j in y:
            y[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - x[i, j]

    sum_around()
    p = np.pad(values, 1)
    expected = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - values
    expected[24:] = 0
    expected[:, :24] = 0
    np.testing.assert_allclose(y.to_numpy(), expected)
