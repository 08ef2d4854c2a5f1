"""Loops over sparse cells that are divided among threads."""

import pytest

import aerogel as ti


def count(place):
    x, n = ti.field(ti.i32), ti.field(ti.i32, ())
    place(x)

    @ti.kernel
    def sweep():
        for I in ti.grouped(x):
            n[None] += 1

    return x, n, sweep


@pytest.mark.parametrize(
    "place, cells",
    [
        (lambda x: ti.root.bitmasked(ti.i, 2).dense(ti.i, 8192).place(x), 8192),
        (lambda x: ti.root.pointer(ti.i, 4).bitmasked(ti.i, 64).dense(ti.i, 512).place(x), 512),
        (lambda x: ti.root.pointer(ti.i, 4).dense(ti.i, 20000).place(x), 20000),
        (lambda x: ti.root.dense(ti.i, 5000).dynamic(ti.j, 9000, 16).place(x), 1),
    ],
)
def test_large_cells_are_visited_once(cpu, place, cells):
    x, n, sweep = count(place)
    x[(3,) + (0,) * (len(x.shape) - 1)] = 1
    for times in (1, 2):
        sweep()
        assert n[None] == times * cells


def test_many_axes(cpu):
    axes = ti.axes(0, 1, 2, 3, 4, 5, 6, 7)
    x, n, sweep = count(
        lambda x: ti.root.dense(axes, (2,) * 8).dense(axes, (1,) * 8).pointer(axes, (1,) * 8).dense(ti.i, 2).place(x)
    )
    x[(3,) + (1,) * 7] = 1
    sweep()
    assert n[None] == 2


def test_more_neighbours_than_fit_the_stack(cpu):
    xs, y = [ti.Matrix.field(4, 4, ti.f64) for _ in range(6)], ti.field(ti.f64)
    block = ti.root.pointer(ti.ij, 2).dense(ti.ij, 60)
    block.place(*xs, y)
    for x in xs:
        x[0, 0] = [[1.0] * 4] * 4

    @ti.kernel
    def total() -> ti.f64:
        s = 0.0
        for i, j in y:
            for q in ti.static(range(6)):
                s += (xs[q][i, j] + xs[q][i + 1, j] + xs[q][i, j + 1]).sum()
        return s

    assert total() == 6 * 16.0
