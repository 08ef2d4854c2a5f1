"""Particles in lists of blocks, that give to cells around: what threads of a GPU's block share first is what each would have added."""

import json

import numpy as np
import pytest
from test_gpu import run

import aerogel as ti


@pytest.fixture(params=["machine", "cpu"])
def arch(request, monkeypatch):
    monkeypatch.setenv("AEROGEL_CUDA", "machine")
    if request.param == "machine":
        ti.init(arch=ti.cuda, log_level="error")
    else:
        ti.init(arch=ti.cpu, log_level="error")
    yield request.param
    ti.reset()


def scene(n_axes, side, block, dtype=ti.f32, node="pointer", offset=0):
    """A grid of blocks with lists of the particles in them."""
    axes = [ti.i, ti.ij, ti.ijk][n_axes - 1]
    last = [ti.j, ti.k, ti.l][n_axes - 1]
    mass, momentum = ti.field(dtype), ti.Vector.field(2, dtype)
    pid = ti.field(ti.i32)
    blocks = getattr(ti.root, node)(axes, side // block)
    where = (offset,) * n_axes
    blocks.dense(axes, block).place(mass, momentum, offset=where)
    blocks.dynamic(last, 256, chunk_size=16).place(pid)
    return blocks, mass, momentum, pid


def expected_of(places, n_axes, side, offset, spread):
    total = np.zeros((side,) * n_axes)
    for place in places:
        for off in np.ndindex((3,) * n_axes):
            at = tuple(place - offset + np.array(off) - 1 + spread)
            if all(0 <= k < side for k in at):
                total[at] += 1 + sum(off)
    return total


@pytest.mark.parametrize("n_axes, side, block", [(1, 64, 8), (2, 32, 8), (3, 24, 4)])
@pytest.mark.parametrize("dtype", [ti.i32, ti.f32, ti.f64, ti.u64])
@pytest.mark.parametrize("spread", [0, 3])
def test_particles_to_grid(arch, n_axes, side, block, dtype, spread):
    _, mass, momentum, pid = scene(n_axes, side, block, dtype)
    rng = np.random.default_rng(n_axes)
    n = 300
    places = rng.integers(4, side - 8, (n, n_axes)).astype(np.int32)
    # Many in one block, more than it has threads, and blocks with none.
    places[:180] = 2 * block - 1
    x = ti.Vector.field(n_axes, ti.i32, n)
    x.from_numpy(places)

    @ti.kernel
    def insert():
        for p in x:
            at = ti.Vector([0 for _ in ti.static(range(n_axes))])
            for d in ti.static(range(n_axes)):
                at[d] = x[p][d] // block
            ti.append(pid.parent(), at, p)

    @ti.kernel
    def give():
        ti.block_local(mass, momentum)
        for cell in ti.grouped(pid):
            p = pid[cell]
            base = x[p] - 1 + spread
            for off in ti.static(ti.grouped(ti.ndrange(*(3,) * n_axes))):
                weight = 1
                for d in ti.static(range(n_axes)):
                    weight += off[d]
                mass[base + off] += weight
                momentum[base + off] += ti.Vector([weight, -weight if ti.static(dtype != ti.u64) else 2 * weight])

    insert()
    for turn in (1, 2):
        give()
        expected = turn * expected_of(places, n_axes, side, 0, spread)
        assert (mass.to_numpy() == expected).all()
        found = momentum.to_numpy()
        assert (found[..., 0] == expected).all()
        assert (found[..., 1] == (2 * expected if dtype == ti.u64 else -expected)).all()


@pytest.mark.parametrize("block_dim", [None, 32, 256])
@pytest.mark.parametrize("node, offset", [("pointer", 0), ("hash", 0), ("pointer", -16)])
def test_cells_become_active_where_something_is_added(arch, block_dim, node, offset):
    blocks, mass, _, pid = scene(2, 64, 8, node=node, offset=offset)
    active = ti.field(ti.i32, (8, 8))

    @ti.kernel
    def insert(i: int, j: int):
        ti.append(pid.parent(), [i, j], 1)

    @ti.kernel
    def give(by: ti.f32):
        if ti.static(block_dim is not None):
            ti.loop_config(block_dim=block_dim)
        for bi, bj, k in pid:
            i, j = bi * 8 + offset, bj * 8 + offset
            for a, b in ti.static(ti.ndrange(2, 2)):
                # Just beyond the block, and far away.
                mass[i + 7 + a, j + 7 + b] += by
                mass[i + 24 + a, j + b] -= by

    @ti.kernel
    def look():
        for i, j in active:
            active[i, j] = ti.is_active(blocks, [i, j])

    insert(2, 2)
    insert(2, 2)
    give(0)
    look()
    expected = np.zeros((8, 8))
    expected[2:4, 2:4] = 1
    expected[5, 2] = 1
    assert (active.to_numpy() == expected).all()
    assert (mass.to_numpy() == 0).all()
    give(0.5)
    look()
    # Two particles in one block alone: lists of blocks that became active are empty.
    assert (active.to_numpy() == expected).all()
    found = mass.to_numpy()
    assert (found[23:25, 23:25] == 1).all() and (found[40:42, 16:18] == -1).all()
    assert np.abs(found).sum() == 8


def test_what_the_loop_reads_is_added_at_once(arch):
    """A field that is read too has no copy, and one in cells of another node neither."""
    _, mass, momentum, pid = scene(1, 64, 8)
    other = ti.field(ti.f32)
    ti.root.pointer(ti.i, 4).dense(ti.i, 16).place(other)

    @ti.kernel
    def insert():
        for i in range(8):
            ti.append(pid.parent(), i, i)

    @ti.kernel
    def give() -> int:
        n = 0
        for b, k in pid:
            i = b * 8
            for a in ti.static(range(3)):
                mass[i + a] += 1
                momentum[i + a] += [1, 2]
                other[i + a] += 1
            if momentum[i + 4][0] != 0:
                n += 1
        return n

    insert()
    assert give() == 0
    expected = np.tile([1, 1, 1, 0, 0, 0, 0, 0], 8)
    assert (mass.to_numpy() == expected).all() and (other.to_numpy() == expected).all()
    assert (momentum.to_numpy() == np.stack([expected, 2 * expected], 1)).all()


def test_nothing_becomes_minus_zero(arch):
    _, mass, _, pid = scene(1, 64, 8)

    @ti.kernel
    def insert():
        for i in range(8):
            mass[i * 8 + 5] = -0.0
            ti.append(pid.parent(), i, i)

    @ti.kernel
    def give(by: ti.f32):
        for b, k in pid:
            for a in ti.static(range(3)):
                mass[b * 8 + a] += by

    insert()
    give(0.0)
    give(-0.0)
    found = np.signbit(mass.to_numpy())
    assert (found == np.tile([0, 0, 0, 0, 0, 1, 0, 0], 8)).all()


COUNTED = """
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error", offline_cache=False)
mass, pid = ti.field(ti.f32), ti.field(ti.i32)
blocks = ti.root.pointer(ti.ij, 8)
blocks.dense(ti.ij, 8).place(mass)
blocks.dynamic(ti.k, 512, chunk_size=64).place(pid)
n = 2048

@ti.kernel
def insert():
    for p in range(n):
        ti.append(pid.parent(), [1 + p % 32 // 8, 1 + p // 128 % 16 // 8], p)

@ti.kernel
def give():
    for i, j, k in pid:
        p = pid[i, j, k]
        at = ti.Vector([8 + p % 32 - 1, 8 + p // 128 % 16 - 1])
        for a, b in ti.static(ti.ndrange(3, 3)):
            mass[at + [a, b]] += 1

insert()
give()
assert mass.to_numpy().sum() == 9 * n
"""


def test_a_touched_cell_takes_one_atomic(tmp_path):
    log = tmp_path / "counts"
    run(COUNTED, AEROGEL_CUDA="machine", AEROGEL_COUNT=str(log))
    counts = [json.loads(line) for line in log.read_text().splitlines()]
    atomics = sum(launch["atomics"] for launch in counts if launch["kernel"].startswith("give"))
    # Eight blocks of cells, in which and around which 10 x 10 cells are touched at most, and lists of them; not 9 of each particle.
    assert 8 * 64 <= atomics <= 8 * 125


@pytest.mark.parametrize("node", ["pointer", "hash"])
@pytest.mark.parametrize("each", [1, 5, 40])
def test_lanes_that_make_the_same_cell_active(arch, node, each):
    x, n = ti.field(ti.i32), ti.field(ti.i32, ())
    blocks = getattr(ti.root, node)(ti.i, 64)
    inner = blocks.pointer(ti.i, 4)
    inner.dense(ti.i, 4).place(x)

    @ti.kernel
    def touch(of: int):
        for i in range(512):
            if i % 3 != 1:
                x[i // each * 16 % 1024 + i % 2 * 4] += 1

    @ti.kernel
    def count(node: ti.template()):
        for _ in ti.grouped(node):
            n[None] += 1

    expected = np.zeros(1024, int)
    at = np.array([i // each * 16 % 1024 + i % 2 * 4 for i in range(512) if i % 3 != 1])
    for turn in (1, 2):
        touch(1)
        np.add.at(expected, at, 1)
        assert (x.to_numpy() == expected).all()
    for level, size in ((blocks, 16), (inner, 4)):
        n[None] = 0
        count(level)
        assert n[None] == len(set(at // size))


ACTIVATING = """
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error", offline_cache=False)
x = ti.field(ti.i32)
ti.root.pointer(ti.i, 64).dense(ti.i, 64).place(x)

@ti.kernel
def fresh():
    for i in range(4096):
        x[i] = 1

fresh()
assert x.to_numpy().sum() == 4096
"""


def test_a_cell_is_made_active_by_one_lane(tmp_path):
    log = tmp_path / "counts"
    run(ACTIVATING, AEROGEL_CUDA="machine", AEROGEL_COUNT=str(log))
    counts = [json.loads(line) for line in log.read_text().splitlines()]
    atomics = sum(launch["atomics"] for launch in counts if launch["kernel"].startswith("fresh"))
    # Two warps for each cell; 64 lanes would each have taken several.
    assert atomics <= 64 * 2 * 16
