"""Loops over sparse cells that are divided among threads."""

import numpy as np
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


@pytest.mark.parametrize("kind", ["pointer", "hash"])
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64, ti.i16, ti.i64])
@pytest.mark.parametrize("leaf", [(4, 8), (3, 5), (2, 2), (1, 16)])
def test_neighbours_across_blocks(arch, kind, dtype, leaf):
    offset = (-2, 3)
    x, y, z = ti.field(dtype), ti.field(dtype), ti.field(dtype)
    blocks = getattr(ti.root, kind)(ti.ij, 4)
    for f in (x, y, z):
        blocks.dense(ti.ij, leaf).place(f, offset=offset)
    shape = tuple(4 * e for e in leaf)

    @ti.kernel
    def near():
        for i, j in x:
            y[i, j] = x[i - 1, j] + 2 * x[i + 1, j] + 3 * x[i, j - 1] + 4 * x[i, j + 1] + 5 * x[i - 1, j + 1]

    @ti.kernel
    def many():
        for i, j in x:
            for a, b in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                z[i, j] += (3 * a + b + 5) * x[i + a, j + b]

    rng = np.random.default_rng(1)
    active = rng.random((4, 4)) < 0.6
    mask = np.kron(active, np.ones(leaf)).astype(bool)
    values = rng.integers(-9, 9, shape) * mask
    x.set_cells(
        np.argwhere(mask).astype(np.int32) + np.array(offset, np.int32), values[mask].astype(x.to_numpy().dtype)
    )
    near()
    many()
    padded = np.pad(values, 1)

    def at(a, b):
        return padded[1 + a : 1 + a + shape[0], 1 + b : 1 + b + shape[1]]

    expected = at(-1, 0) + 2 * at(1, 0) + 3 * at(0, -1) + 4 * at(0, 1) + 5 * at(-1, 1)
    assert (y.to_numpy() == expected * mask).all()
    expected = sum((3 * a + b + 5) * at(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1))
    assert (z.to_numpy() == expected * mask).all()


@pytest.mark.parametrize("nodes", [("pointer",), ("pointer", "pointer"), ("hash",), ("pointer", "bitmasked")])
def test_a_box_activates_what_it_writes(arch, nodes):
    x, y = ti.field(ti.i32), ti.field(ti.i32)
    node = ti.root
    for kind in nodes[:-1] if nodes[-1] == "bitmasked" else nodes:
        node = getattr(node, kind)(ti.ijk, 4)
    listed = node
    leaf = getattr(node, "bitmasked" if nodes[-1] == "bitmasked" else "dense")(ti.ijk, 4)
    leaf.place(x, y)
    n = x.shape[0]
    bases = np.array([[0, 0, 0], [2, 3, 4], [3, 3, 3], [n - 3, 1, 2]], np.int32)

    @ti.kernel
    def scatter(bases: ti.types.ndarray(ti.types.vector(3, ti.i32), ndim=1)):
        for p in bases:
            base = bases[p]
            for off in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                x[base + off] += 1 + off[0] + 3 * off[1] + 9 * off[2]

    @ti.kernel
    def gather(i: ti.i32, j: ti.i32, k: ti.i32) -> ti.i32:
        s = 0
        for a, b, c in ti.static(ti.ndrange(3, 3, 3)):
            s += (a + 2 * b + 5 * c + 1) * x[i + a, j + b, k + c]
        return s

    scatter(bases)
    expected = np.zeros((n,) * 3, int)
    weights = np.fromfunction(lambda a, b, c: a + 3 * b + 9 * c + 1, (3, 3, 3), dtype=int)
    for i, j, k in bases:
        expected[i : i + 3, j : j + 3, k : k + 3] += weights
    assert (x.to_numpy() == expected).all()
    touched = {tuple(c // 4) for c in np.argwhere(expected)}
    assert {tuple(c) for c in listed.active_cells()} == touched
    padded = np.pad(expected, 4)
    weights = np.fromfunction(lambda a, b, c: a + 2 * b + 5 * c + 1, (3, 3, 3), dtype=int)
    for i, j, k in [(0, 0, 0), (-1, 2, 3), (-3, -1, 1), (n - 2, 2, 1), (3, 2, 4), (n, n, n), (1, n - 1, 0)]:
        part = padded[i + 4 : i + 7, j + 4 : j + 7, k + 4 : k + 7]
        assert gather(i, j, k) == (weights * part).sum(), (i, j, k)
    with pytest.raises(AssertionError, match="out of bounds"):
        scatter(np.array([[n - 2, 0, 0]], np.int32))
    with pytest.raises(AssertionError, match="out of bounds"):
        scatter(np.array([[0, -1, 0]], np.int32))


def _active_cells(x):
    return sorted({tuple(int(c) // e for c, e in zip(at, (2, 4))) for at in x.active_cells()[0]})


def _blocks_of_2_by_4(arch):
    x = ti.field(ti.i32)
    ti.root.pointer(ti.ij, 8).dense(ti.ij, (2, 4)).place(x)
    return x


def test_a_box_that_is_left_early_activates_what_was_written(arch):
    x = _blocks_of_2_by_4(arch)

    @ti.kernel
    def leave(b: ti.i32):
        for i in range(2):
            at = b + 8 * i
            x[0, at + 1] += 1
            if i == 0:
                continue
            x[0, at] += 1
            x[0, at + 2] += 1

    leave(3)
    assert _active_cells(x) == [(0, 1), (0, 2), (0, 3)]


@pytest.mark.parametrize("width", [3, 4])
def test_a_box_wider_than_a_cell_activates_what_was_written(arch, width):
    x = _blocks_of_2_by_4(arch)

    @ti.kernel
    def write(b: ti.i32, c: ti.i32):
        for _ in range(1):
            for i, j in ti.static([(0, 0), (0, 2), (width, 0), (width, 2), (1, 1)]):
                x[b + i, c + j] = 1

    write(1, 3)
    expected = {((1 + i) // 2, (3 + j) // 4) for i, j in [(0, 0), (0, 2), (width, 0), (width, 2), (1, 1)]}
    assert _active_cells(x) == sorted(expected)
