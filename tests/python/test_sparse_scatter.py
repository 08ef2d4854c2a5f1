"""Loops over sparse cells that add to the cells around them: the same sums, and the same blocks active, as one by one."""

import itertools

import numpy as np
import pytest

import aerogel as ti

AXES = [None, ti.i, ti.ij, ti.ijk]
TYPES = {ti.i32: np.int32, ti.i64: np.int64, ti.f32: np.float32, ti.f64: np.float64}


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    ti.init(arch=ti.cpu, cpu_max_num_threads=request.param, log_level="error")
    yield request.param
    ti.reset()


def scattered(values, distances, weights):
    """What `y[i + d] += weight * values[i]` makes of zeros, and where it is not zero."""
    out = np.zeros_like(values)
    touched = np.zeros(values.shape, bool)
    for at in np.argwhere(values):
        for d, w in zip(distances, weights):
            out[tuple(at + d)] += values.dtype.type(w) * values[tuple(at)]
            touched[tuple(at + d)] = True
    return out, touched


def blocks_of(mask, extents):
    """The blocks that hold one of the marked elements."""
    return sorted({tuple(int(i) // e for i, e in zip(at, extents)) for at in np.argwhere(mask)})


@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize(
    "extents, distances",
    [
        ((8,), [(-1,), (0,), (1,)]),
        ((4,), [(4,), (-4,), (3,)]),
        ((4, 8), list(itertools.product((-1, 0, 1), repeat=2))),
        ((8, 4), [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)]),
        ((3, 5), [(3, 5), (-3, 2), (0, -5), (2, 0)]),
        ((4, 2, 4), list(itertools.product((-1, 0, 1), repeat=3))),
        ((2, 4, 4), [(0, 0, 0), (0, 0, 3), (-2, 1, 0)]),
    ],
)
@pytest.mark.parametrize("apart", [False, True], ids=["one tree", "two trees"])
def test_sums_and_blocks(threads, rng, ty, extents, distances, apart):
    n_axes = len(extents)
    shape = [5 * e for e in extents]
    x, y = ti.field(ti.i32), ti.field(ty)
    layout = lambda kind: getattr(ti.root, kind)(AXES[n_axes], 5)
    of_x = layout("pointer")
    of_y = layout("hash") if apart else of_x
    of_x.dense(AXES[n_axes], extents).place(x)
    of_y.dense(AXES[n_axes], extents).place(y)
    # Neighbours of what is not zero are inside; of a third of the blocks nothing is.
    values = rng.integers(1, 9, shape) * (rng.random(shape) < 0.3)
    inner = np.zeros(shape, bool)
    inner[tuple(slice(e, -e) for e in extents)] = True
    there = rng.random([5] * n_axes) < 0.7
    for axis, e in enumerate(extents):
        there = there.repeat(e, axis)
    values = values * inner * there
    weights = [k + 1 for k in range(len(distances))]

    @ti.kernel
    def fill(a: ti.types.ndarray()):
        for I in ti.grouped(a):
            if a[I] != 0:
                x[I] = a[I]

    @ti.kernel
    def scatter():
        for I in ti.grouped(x):
            v = ti.cast(x[I], ty)
            if v != 0:
                for k in ti.static(range(len(distances))):
                    y[I + ti.Vector(distances[k])] += weights[k] * v

    fill(values.astype(np.int32))
    expected, touched = scattered(values.astype(TYPES[ty]), distances, weights)
    active = blocks_of(touched if apart else touched | (values != 0), extents)
    # At first most blocks around are not there, then all are.
    for turn in (1, 2, 3):
        scatter()
        np.testing.assert_allclose(y.to_numpy(), turn * expected, rtol=1e-5)
        assert sorted(map(tuple, of_y.active_cells().tolist())) == active
    np.testing.assert_array_equal(x.to_numpy(), values)


def grid(n=4, extent=8, **fields):
    """Fields over blocks of one pointer node, all of which are active."""
    block = ti.root.pointer(ti.ij, n)
    made = {}
    for name, ty in fields.items():
        made[name] = ti.field(ty)
        block.dense(ti.ij, extent).place(made[name])
    for i, j in itertools.product(range(n), repeat=2):
        made[name][i * extent, j * extent] = 0
    return block, made.values()


def test_two_fields_at_once_and_what_is_read_around(threads, rng):
    _, (x, y, z) = grid(x=ti.f64, y=ti.f64, z=ti.i32)
    values = np.zeros((32, 32))
    values[1:-1, 1:-1] = rng.random((30, 30))
    x.from_numpy(values)

    @ti.kernel
    def step():
        for i, j in x:
            if x[i, j] > 0:
                mean = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4
                for a, b in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                    y[i + a, j + b] += mean * (1 + a)
                z[i + 1, j] += 1
                z[i, j + 1] -= 2
                z[i, j] += 4

    step()
    p = np.pad(values, 1)
    mean = (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) / 4 * (values > 0)
    square = list(itertools.product((-1, 0, 1), repeat=2))
    expected, _ = scattered(mean, square, [1 + a for a, _ in square])
    np.testing.assert_allclose(y.to_numpy(), expected)
    expected, _ = scattered((values > 0).astype(np.int32), [(1, 0), (0, 1), (0, 0)], [1, -2, 4])
    np.testing.assert_array_equal(z.to_numpy(), expected)


def test_what_is_read_or_set_as_well(threads):
    _, (x, y) = grid(x=ti.i32, y=ti.i32)
    x.fill(1)

    @ti.kernel
    def read():
        for i, j in x:
            if 0 < i < 31 and 0 < j < 31:
                y[i - 1, j] += 1
                y[i + 1, j] += 1
                x[i, j] = ti.min(y[i, j], 0)

    @ti.kernel
    def used():
        for i, j in x:
            if 0 < i < 31 and 0 < j < 31:
                before = ti.atomic_add(y[i - 1, j], 1)
                y[i, j + 1] += 1
                x[i, j] = ti.min(before, -1)

    @ti.kernel
    def largest():
        for i, j in x:
            if 0 < i < 31 and 0 < j < 31:
                ti.atomic_max(y[i - 1, j], 10 * i)
                ti.atomic_max(y[i + 1, j], 10 * i)

    ones = np.zeros((32, 32), np.int32)
    ones[1:-1, 1:-1] = 1
    read()
    expected, _ = scattered(ones, [(-1, 0), (1, 0)], [1, 1])
    np.testing.assert_array_equal(y.to_numpy(), expected)
    assert x.to_numpy()[1:-1, 1:-1].max() == 0
    used()
    expected += scattered(ones, [(-1, 0), (0, 1)], [1, 1])[0]
    np.testing.assert_array_equal(y.to_numpy(), expected)
    assert x.to_numpy()[1:-1, 1:-1].max() == -1
    largest()
    assert y.to_numpy()[:, 16].tolist() == [10 * (i + 1 if i < 30 else i - 1) for i in range(32)]


def test_offsets(threads):
    x, y = ti.field(ti.i32), ti.field(ti.i32)
    block = ti.root.pointer(ti.ij, 4)
    block.dense(ti.ij, 4).place(x, offset=(-8, 2))
    block.dense(ti.ij, 4).place(y, offset=(-8, 1))

    @ti.kernel
    def step():
        for i, j in x:
            if x[i, j] != 0:
                y[i, j - 1] += x[i, j]
                y[i + 1, j] += 2 * x[i, j]
                y[i - 1, j - 2] -= x[i, j]

    for i, j in itertools.product(range(16), repeat=2):
        x[i - 8, j + 2] = 0
    for i, j in [(4, 4), (7, 7), (8, 11), (10, 5)]:
        x[i - 8, j + 2] = i
    step()
    values = np.zeros((16, 16), np.int32)
    for i, j in [(4, 4), (7, 7), (8, 11), (10, 5)]:
        values[i, j] = i
    expected, _ = scattered(values, [(0, 0), (1, 1), (-1, -1)], [1, 2, -1])
    np.testing.assert_array_equal(y.to_numpy(), expected)


def test_beyond_the_border(threads):
    block, (x, y) = grid(n=2, x=ti.i32, y=ti.i32)

    @ti.kernel
    def step(least: ti.i32):
        for i, j in x:
            if x[i, j] > least:
                y[i + 1, j] += 1
                y[i, j + 1] += 1

    x[3, 3], x[15, 4], x[14, 15] = 5, 2, 1
    step(2)
    assert y[4, 3] == y[3, 4] == 1 and y.to_numpy().sum() == 2
    with pytest.raises(ti.AerogelAssertionError, match=r"index \(16, 4\) is out of bounds for field `y`"):
        step(1)
        ti.sync()
    x[15, 4] = 0
    with pytest.raises(ti.AerogelAssertionError, match=r"index \(14, 16\) is out of bounds for field `y`"):
        step(0)
        ti.sync()
    x[14, 15] = 0
    before = y.to_numpy()
    step(0)
    assert (y.to_numpy() - before).sum() == 2 and len(block.active_cells()) == 4


def test_where_blocks_become_inactive_meanwhile(threads):
    block, (x, y) = grid(x=ti.i32, y=ti.i32)
    x[12, 12] = 1

    @ti.kernel
    def step():
        for i, j in x:
            if x[i, j] != 0:
                y[i + 1, j] += 1
                y[i, j + 1] += 1
                ti.deactivate(block, [0, 0])

    step()
    assert len(block.active_cells()) == 15
    assert y[13, 12] == y[12, 13] == 1


def test_floats_that_are_not_numbers(threads):
    _, (x, y) = grid(x=ti.f32, y=ti.f32)
    x[7, 7], x[20, 12] = float("nan"), float("inf")

    @ti.kernel
    def step():
        for i, j in x:
            if x[i, j] != 0:
                y[i + 1, j] += x[i, j]
                y[i, j - 1] -= x[i, j]

    step()
    found = y.to_numpy()
    assert np.isnan(found[8, 7]) and np.isnan(found[7, 6])
    assert found[21, 12] == np.inf and found[20, 11] == -np.inf
    assert np.count_nonzero(found) == 4
