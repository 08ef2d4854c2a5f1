"""Loops over bitmasked cells that ask which cells around are active."""

import itertools

import numpy as np
import pytest

import aerogel as ti


def node_of(blocks, leaf):
    """Nodes under the root, given as pairs of axes and extents, the last one bitmasked."""
    node = ti.root
    for kind, axes, extents in blocks:
        node = getattr(node, kind)(axes, extents)
    return node.bitmasked(*leaf)


LAYOUTS = {
    "1d": ([("pointer", ti.i, 4)], (ti.i, 64), (256,)),
    "hash": ([("hash", ti.i, 3)], (ti.i, 96), (288,)),
    "divided otherwise": ([("pointer", ti.i, 4)], (ti.i, 24), (96,)),
    "2d": ([("pointer", ti.ij, (4, 3))], (ti.ij, (4, 32)), (16, 96)),
    "two pointers": ([("pointer", ti.ij, 2), ("pointer", ti.ij, (2, 1))], (ti.ij, (3, 64)), (12, 128)),
    "axes apart": ([("pointer", ti.j, 2), ("pointer", ti.i, 3)], (ti.ij, (5, 32)), (15, 64)),
    "axes the other way": ([("hash", ti.axes(1, 0), (3, 4))], (ti.axes(1, 0), (32, 4)), (16, 96)),
    "one axis of blocks": ([("pointer", ti.i, 4)], (ti.ij, (4, 32)), (16, 32)),
    "dense above": ([("dense", ti.ij, 2), ("pointer", ti.ij, (2, 1))], (ti.ij, (2, 32)), (8, 64)),
    "3d": ([("pointer", ti.ijk, 2)], (ti.ijk, (2, 3, 32)), (4, 6, 64)),
    "root": ([], (ti.ij, (16, 64)), (16, 64)),
}


def distances_around(extents, random, n):
    """The cells beside one, and others at most a block away or a little further."""
    beside = [d for d in itertools.product((-1, 0, 1), repeat=len(extents)) if any(d)]
    random.shuffle(beside)
    far = [[int(random.integers(-e - 1, e + 2)) for e in extents] for _ in range(n)]
    border = [[int(random.choice([-e, 1 - e, e - 1, e])) for e in extents] for _ in range(2)]
    return [tuple(d) for d in beside[:n] + far + border]


def expected(active, distances):
    """For each cell the bits that say which at the distances are active, 0 where it is not."""
    reach = np.abs(distances).max()
    padded = np.pad(active, reach)
    answers = np.zeros(active.shape, np.int32)
    for k, off in enumerate(distances):
        moved = tuple(slice(reach + d, reach + d + n) for d, n in zip(off, active.shape, strict=True))
        answers |= padded[moved].astype(np.int32) << k
    return np.where(active, answers, 0)


@pytest.mark.parametrize("density", [0.02, 0.4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cells_around(arch, layout, density):
    blocks, leaf, shape = LAYOUTS[layout]
    extents = (leaf[1],) if len(shape) == 1 else leaf[1]
    if layout == "axes the other way":
        extents = extents[::-1]
    random = np.random.default_rng(len(layout))
    distances = distances_around(extents, random, 8)
    x, answers = ti.field(ti.i32), ti.field(ti.i32, shape)
    node = node_of(blocks, leaf)
    node.place(x)
    active = random.random(shape) < density
    # A block that is not there, and one with a single cell.
    first, second = (tuple(slice(b * e, (b + 1) * e) for e in extents) for b in (0, 1))
    active[first] = False
    if active[second].size:
        active[second] = False
        active[tuple(s.stop - 1 for s in second)] = True

    @ti.kernel
    def fill(a: ti.types.ndarray()):
        for index in ti.grouped(a):
            if a[index] > 0:
                x[index] = 1

    @ti.kernel
    def ask():
        for index in ti.grouped(x):
            bits = 0
            for k in ti.static(range(len(distances))):
                if ti.is_active(node, index + ti.Vector(distances[k])):
                    bits += 1 << k
            answers[index] = bits

    fill(active.astype(np.int32))
    ask()
    np.testing.assert_array_equal(answers.to_numpy(), expected(active, distances))
    # Neither what there is nor what a new block holds is remembered from the first time.
    active[first] = random.random(active[first].shape) < density
    fill(active.astype(np.int32))
    answers.fill(0)
    ask()
    np.testing.assert_array_equal(answers.to_numpy(), expected(active, distances))


@pytest.mark.parametrize("offset", [(0, 0), (-3, 5), (4, -32), (16, -96)])
def test_fields_with_an_offset(debug, offset):
    x, answers = ti.field(ti.i32), ti.field(ti.i32)
    node = ti.root.pointer(ti.ij, (4, 3)).bitmasked(ti.ij, (4, 32))
    node.place(x, offset=offset)
    ti.root.dense(ti.ij, (16, 96)).place(answers, offset=offset)
    random = np.random.default_rng(1)
    active = random.random((16, 96)) < 0.2
    distances = distances_around((4, 32), random, 8)
    for i, j in np.argwhere(active):
        x[int(i) + offset[0], int(j) + offset[1]] = 1

    @ti.kernel
    def ask():
        for i, j in x:
            bits = 0
            for k in ti.static(range(len(distances))):
                # Nodes have no offset.
                a = i - offset[0] + distances[k][0]
                b = j - offset[1] + distances[k][1]
                bits += ti.cast(ti.is_active(node, [a, b]), ti.i32) << k
            answers[i, j] = bits

    ask()
    np.testing.assert_array_equal(answers.to_numpy(), expected(active, distances))

    @ti.kernel
    def ask_with_it():
        for i, j in x:
            answers[i, j] = ti.cast(ti.is_active(node, [i, j + 1]), ti.i32)

    answers.fill(0)
    ask_with_it()
    moved = [(offset[0], offset[1] + 1)]
    np.testing.assert_array_equal(answers.to_numpy(), expected(active, moved))


def test_loops_that_change_what_they_ask(arch):
    x = ti.field(ti.i32)
    node = ti.root.pointer(ti.i, 2).bitmasked(ti.i, 32)
    node.place(x)
    answers = ti.field(ti.i32, 64)

    def begin():
        ti.deactivate_all_snodes()
        answers.fill(-1)
        for i in (3, 4, 5, 9, 31, 32):
            x[i] = 1

    @ti.kernel
    def thin_out():
        ti.loop_config(serialize=True)
        for i in x:
            before = ti.is_active(node, [i - 1])
            answers[i] = ti.cast(before, ti.i32)
            if before:
                ti.deactivate(node, [i])

    begin()
    thin_out()
    assert answers.to_numpy()[[3, 4, 5, 9, 31, 32]].tolist() == [0, 1, 0, 0, 0, 1]
    assert node.active_cells().tolist() == [[3], [5], [9], [31]]

    @ti.kernel
    def look_back():
        ti.loop_config(serialize=True)
        for i in x:
            x[(i + 20) % 64] += 1
            answers[i] = ti.cast(ti.is_active(node, [i + 20]), ti.i32)

    begin()
    look_back()
    assert answers.to_numpy()[[3, 4, 5, 9, 31, 32]].tolist() == [1] * 6


def test_own_cells_and_others_are_written(arch):
    x, y = ti.field(ti.i32), ti.field(ti.i32)
    block = ti.root.pointer(ti.ij, 3)
    node = block.bitmasked(ti.ij, (4, 32))
    node.place(x)
    block.bitmasked(ti.ij, (4, 32)).place(y)
    random = np.random.default_rng(3)
    active = random.random((12, 96)) < 0.1
    active[4:8, 32:64] = False
    for i, j in np.argwhere(active):
        x[int(i), int(j)] = 1

    @ti.kernel
    def life():
        for i, j in x:
            n = 0
            for a, b in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                n += ti.cast(ti.is_active(node, [i + a, j + b]), ti.i32)
            x[i, j] = n
            # Makes blocks that were not there.
            y[i, (j + 40) % 96] = n

    life()
    p = np.pad(active.astype(np.int32), 1)
    n = sum(p[a : a + 12, b : b + 96] for a in range(3) for b in range(3)) * active
    np.testing.assert_array_equal(x.to_numpy(), n)
    np.testing.assert_array_equal(y.to_numpy(), np.roll(n, 40, axis=1))
    assert len(node.active_cells()) == active.sum()
