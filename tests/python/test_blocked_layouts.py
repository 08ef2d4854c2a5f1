"""Dense blocks compute what plain fields do, in the order of the blocks where order counts; on CPUs their nodes are merged."""

import itertools

import numpy as np
import pytest

import aerogel as ti

#: Extents of each level, outermost first, by axis.
SHAPES = {
    "i": [{0: 5}, {0: 7}],
    "i three": [{0: 3}, {0: 2}, {0: 4}],
    "ij": [{0: 3, 1: 2}, {0: 4, 1: 8}],
    "ij uneven": [{0: 3, 1: 5}, {0: 7, 1: 1}],
    "mixed": [{0: 3, 1: 6}, {0: 5}],
    "mixed below": [{0: 3}, {0: 2, 1: 6}],
    "one between": [{0: 3}, {1: 4}, {0: 5}],
    "three levels": [{0: 2, 1: 2}, {1: 3}, {0: 3, 1: 2}],
    "columns of blocks": [{1: 3}, {0: 4}, {0: 2, 1: 2}],
    "ijk": [{0: 2, 1: 3, 2: 2}, {0: 3, 1: 2, 2: 4}],
    "ones": [{0: 1, 1: 4}, {0: 6, 1: 1}],
}
SHAPE = pytest.mark.parametrize("levels", SHAPES.values(), ids=SHAPES)


def extents(levels):
    axes = sorted({axis for level in levels for axis in level})
    return tuple(int(np.prod([level.get(axis, 1) for level in levels])) for axis in axes)


def below(node, levels):
    for level in levels:
        axes = sorted(level)
        node = node.dense(ti.axes(*axes), [level[axis] for axis in axes])
    return node


def visits(levels):
    """Indices in the order of Taichi's loops: level by level."""
    axes = sorted({axis for level in levels for axis in level})
    ranges = [range(level[axis]) for level in levels for axis in sorted(level)]
    order = []
    for digits in itertools.product(*ranges):
        index = dict.fromkeys(axes, 0)
        for (depth, axis), digit in zip([(d, a) for d, level in enumerate(levels) for a in sorted(level)], digits):
            index[axis] = index[axis] * levels[depth][axis] + digit
        order.append(tuple(index[axis] for axis in axes))
    return order


def numbers(shape, seed=0):
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.int32)


def stencil(a):
    b = a.copy()
    for axis in range(a.ndim):
        for by in (-1, 1):
            moved = np.roll(a, by, axis)
            edge = [slice(None)] * a.ndim
            edge[axis] = 0 if by > 0 else -1
            moved[tuple(edge)] = 0
            b += (axis + 2) * moved
    return b


@ti.kernel
def relax(a: ti.template(), b: ti.template()):
    for I in ti.grouped(a):
        s = a[I]
        for axis in ti.static(range(len(a.shape))):
            for by in ti.static((-1, 1)):
                J = I + by * ti.Vector.unit(len(a.shape), axis)
                if 0 <= J[axis] < a.shape[axis]:
                    s += (axis + 2) * a[J]
        b[I] = s


@ti.kernel
def relax_in_ranges(a: ti.template(), b: ti.template()):
    for I in ti.grouped(ti.ndrange(*a.shape)):
        s = a[I]
        for axis in ti.static(range(len(a.shape))):
            for by in ti.static((-1, 1)):
                J = I + by * ti.Vector.unit(len(a.shape), axis)
                if 0 <= J[axis] < a.shape[axis]:
                    s += (axis + 2) * a[J]
        b[I] = s


@SHAPE
@pytest.mark.parametrize("placed", ["apart", "together", "side by side"])
@pytest.mark.parametrize("kernel", [relax, relax_in_ranges])
def test_stencils(arch, levels, placed, kernel):
    a, b = ti.field(int), ti.field(int)
    if placed == "apart":
        below(ti.root, levels).place(a)
        below(ti.root, levels).place(b)
    elif placed == "together":
        below(ti.root, levels).place(a, b)
    else:
        blocks = below(ti.root, levels[:1])
        below(blocks, levels[1:]).place(a)
        below(blocks, levels[1:]).place(b)
    assert a.shape == extents(levels)
    values = numbers(a.shape)
    a.from_numpy(values)
    kernel(a, b)
    np.testing.assert_array_equal(b.to_numpy(), stencil(values))
    np.testing.assert_array_equal(a.to_numpy(), values)


@SHAPE
def test_values_from_outside(arch, levels):
    a, plain = ti.field(int), ti.field(int, extents(levels))
    below(ti.root, levels).place(a)
    for k, at in enumerate(np.ndindex(a.shape)):
        a[at] = k
    assert all(a[at] == k for k, at in enumerate(np.ndindex(a.shape)))
    np.testing.assert_array_equal(a.to_numpy().ravel(), np.arange(np.prod(a.shape)))
    plain.copy_from(a)
    np.testing.assert_array_equal(plain.to_numpy(), a.to_numpy())
    a.fill(3)
    assert (a.to_numpy() == 3).all()
    a.copy_from(plain)
    np.testing.assert_array_equal(plain.to_numpy(), a.to_numpy())


@SHAPE
def test_serial_loops_follow_blocks(arch, levels):
    a = ti.field(int)
    below(ti.root, levels).place(a)

    @ti.kernel
    def number(first: int):
        n = first
        ti.loop_config(serialize=True)
        for I in ti.grouped(a):
            if n == 17:
                break
            a[I] = n
            n += 1

    number(100)
    expected = np.zeros(a.shape, np.int32)
    for k, at in enumerate(visits(levels)):
        expected[at] = 100 + k
    np.testing.assert_array_equal(a.to_numpy(), expected)
    a.fill(0)
    number(0)
    np.testing.assert_array_equal(a.to_numpy(), np.where(expected < 117, np.maximum(expected - 100, 0), 0))


@SHAPE
def test_cells_are_listed_in_the_order_of_blocks(arch, levels):
    a = ti.field(int)
    node = below(ti.root, levels)
    node.place(a)
    values = numbers(a.shape)
    a.from_numpy(values)
    order = visits(levels)
    indices, listed = a.active_cells()
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(listed, [values[at] for at in order])
    above = node.parent()
    if above.parent() is not None:
        np.testing.assert_array_equal(above.active_cells(), visits(levels[:-1]))


@SHAPE
def test_loops_over_each_level(arch, levels):
    a = ti.field(int)
    nodes = [below(ti.root, levels[:1])]
    for k in range(1, len(levels)):
        nodes.append(below(nodes[-1], levels[k : k + 1]))
    nodes[-1].place(a)
    for k, node in enumerate(nodes):
        assert node.shape == extents(levels[: k + 1])
        count, order = ti.field(int, node.shape), ti.field(int, node.shape)
        total = ti.field(int, ())

        @ti.kernel
        def visit():
            for I in ti.grouped(node):
                count[I] += 1
                ti.atomic_add(total[None], 1)

        @ti.kernel
        def number():
            n = 0
            ti.loop_config(serialize=True)
            for I in ti.grouped(node):
                order[I] = n
                n += 1

        visit()
        number()
        assert (count.to_numpy() == 1).all() and total[None] == np.prod(node.shape)
        expected = visits(levels[: k + 1])
        found = order.to_numpy()
        assert [found[at] for at in expected] == list(range(len(expected)))


def test_indices_of_blocks(arch):
    a = ti.field(int)
    top = ti.root.dense(ti.ij, (3, 2))
    leaf = top.dense(ti.ij, (4, 8))
    leaf.place(a)
    sums = ti.field(int, (3, 2))

    @ti.kernel
    def of_cells():
        for i, j in a:
            block = ti.rescale_index(a, top, ti.Vector([i, j]))
            sums[block] += a[i, j]

    @ti.kernel
    def of_blocks():
        for i, j in top:
            first = ti.rescale_index(top, a, ti.Vector([i, j]))
            for k, l in ti.ndrange(4, 8):
                sums[i, j] -= a[first + ti.Vector([k, l])]

    values = numbers(a.shape)
    a.from_numpy(values)
    of_cells()
    np.testing.assert_array_equal(sums.to_numpy(), values.reshape(3, 4, 2, 8).sum(axis=(1, 3)))
    of_blocks()
    assert (sums.to_numpy() == 0).all()
    assert leaf.parent() is top and a.parent() is leaf and a.parent(2) is top
    assert top.shape == (3, 2) and leaf.shape == (12, 16)
    assert top._cell_size_bytes == 4 * 8 * 4 and leaf._cell_size_bytes == 4
    assert repr(top).splitlines()[1] == "dense i:3 j:2"


def test_addresses_of_cells(arch):
    a, b = ti.field(int), ti.field(ti.f64)
    top = ti.root.dense(ti.ij, (3, 2))
    top.dense(ti.ij, (4, 8)).place(a, b)

    @ti.kernel
    def address(i: int, j: int) -> ti.u64:
        return ti.get_addr(a, [i, j])

    @ti.kernel
    def of_block(i: int, j: int) -> ti.u64:
        return ti.get_addr(top, [i, j])

    all_of_them = [address(i, j) for i, j in np.ndindex(a.shape)]
    assert len(set(all_of_them)) == 12 * 16 and max(all_of_them) - min(all_of_them) == 16 * (12 * 16 - 1)
    for i, j in np.ndindex(3, 2):
        assert of_block(i, j) == address(4 * i, 8 * j)
    # Addresses are those of the layout as it is written, block after block.
    places = [(0, 1), (1, 0), (3, 7), (0, 8), (4, 0)]
    assert [address(i, j) - address(0, 0) for i, j in places] == [16, 128, 496, 512, 1024]


@SHAPE
@pytest.mark.parametrize("serial", [False, True])
def test_gradients(arch, levels, serial):
    def gradient(place):
        x, y, loss = (
            ti.field(float, needs_grad=True),
            ti.field(float, needs_grad=True),
            ti.field(float, (), needs_grad=True),
        )
        place(x, y)
        if x.grad.parent() is None:
            ti.root.lazy_grad()

        @ti.kernel
        def step():
            ti.loop_config(serialize=serial)
            for I in ti.grouped(x):
                before = I[0] - 1
                y[I] = x[I] ** 2
                if before >= 0:
                    J = I
                    J[0] = before
                    y[I] += 3 * x[J] * x[I]

        @ti.kernel
        def total():
            for I in ti.grouped(y):
                loss[None] += y[I] ** 2

        x.from_numpy(numbers(x.shape).astype(np.float32) / 8)
        with ti.ad.Tape(loss):
            step()
            total()
        return x.grad.to_numpy()

    def in_blocks(x, y):
        leaf = below(ti.root, levels)
        leaf.place(x, y, x.grad, y.grad)

    def plain(x, y):
        ti.root.dense(ti.axes(*range(len(extents(levels)))), extents(levels)).place(x, y, x.grad, y.grad)

    expected = gradient(plain)
    assert np.abs(expected).max() > 0
    np.testing.assert_allclose(gradient(in_blocks), expected, rtol=1e-5, atol=1e-5)


def test_vectors_and_offsets(arch):
    v, m = ti.Vector.field(3, float), ti.Matrix.field(2, 2, float)
    ti.root.dense(ti.ij, 4).dense(ti.ij, 3).place(v, m, offset=(-6, 2))
    v.fill(1)

    @ti.kernel
    def fill():
        for i, j in v:
            for k in range(3):
                v[i, j][k] += i * 100 + j * 10 + k
            m[i, j] = [[i, j], [i + j, i * j]]

    fill()
    i, j = np.mgrid[-6:6, 2:14].astype(np.float32)
    np.testing.assert_array_equal(v.to_numpy(), 1 + np.stack([i * 100 + j * 10 + k for k in range(3)], axis=-1))
    np.testing.assert_array_equal(m.to_numpy()[..., 1, 1], i * j)
    assert v[-6, 2][2] == 1 - 600 + 20 + 2


def test_components_apart(arch):
    v = ti.Vector.field(2, int)
    blocks = ti.root.dense(ti.i, 4)
    for k in range(2):
        blocks.dense(ti.i, 8).place(v.get_scalar_field(k))

    @ti.kernel
    def fill():
        for i in v:
            v[i] = [i, -i]

    fill()
    n = np.arange(32)
    np.testing.assert_array_equal(v.to_numpy(), np.stack([n, -n], axis=-1))


def test_words_of_bits(arch):
    q = ti.types.quant.int(4, signed=False)
    x, y = ti.field(q), ti.field(q)
    blocks = ti.root.dense(ti.i, 3).dense(ti.i, 5)
    blocks.quant_array(ti.i, 8, max_num_bits=32).place(x)
    word = ti.BitpackedFields(max_num_bits=32)
    word.place(y)
    blocks.dense(ti.j, 2).place(word)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = i % 16
        for i, j in y:
            y[i, j] = (i + 3 * j) % 16

    fill()
    np.testing.assert_array_equal(x.to_numpy(), np.arange(120) % 16)
    i, j = np.mgrid[:15, :2]
    np.testing.assert_array_equal(y.to_numpy(), (i + 3 * j) % 16)


@pytest.mark.parametrize("kind", ["pointer", "hash", "bitmasked"])
def test_sparse_nodes_above_and_below(arch, kind):
    above, under = ti.field(int), ti.field(int)
    outer = getattr(ti.root, kind)(ti.i, 4)
    outer.dense(ti.i, 2).dense(ti.i, 4).place(above)
    inner = getattr(ti.root.dense(ti.i, 2).dense(ti.i, 4), kind)(ti.i, 4)
    inner.place(under)
    above[9], under[9] = 1, 1
    assert "merged" not in outer._aerogel_snode.tree_text()

    @ti.kernel
    def count() -> int:
        n = 0
        for i in above:
            n += 1
        for i in under:
            n += 100
        return n

    assert count() == 108
    assert [above[i] for i in (8, 9, 10)] == [0, 1, 0]
    assert above.active_cells()[0].ravel().tolist() == list(range(8, 16))


def test_threads_share_blocks(arch):
    a, b = ti.field(float), ti.field(float)
    for f in (a, b):
        ti.root.dense(ti.ij, 4).dense(ti.ij, 16).place(f)

    @ti.kernel
    def smooth():
        ti.block_local(a)
        for i, j in b:
            b[i, j] = a[i, j] + a[max(i - 1, 0), j] + a[i, min(j + 1, 63)]

    @ti.kernel
    def scatter():
        ti.block_local(b)
        for i, j in a:
            b[min(i + 1, 63), j] += a[i, j]

    values = numbers((64, 64)).astype(np.float32)
    a.from_numpy(values)
    smooth()
    up, right = np.vstack([values[:1], values[:-1]]), np.hstack([values[:, 1:], values[:, -1:]])
    expected = values + up + right
    np.testing.assert_array_equal(b.to_numpy(), expected)
    scatter()
    expected[1:] += values[:-1]
    expected[-1] += values[-1]
    np.testing.assert_array_equal(b.to_numpy(), expected)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_blocks_are_merged_on_processors(arch, axes):
    a = ti.field(int)
    top = ti.root.dense(ti.axes(*range(axes)), 2)
    top.dense(ti.axes(*range(axes)), 3).place(a)
    assert ("merged" in top._aerogel_snode.tree_text()) == (arch in ("cpu", "interp") and not is_gpu())


def is_gpu():
    return ti.lang.impl.current_cfg().arch == ti.cuda


def test_random_numbers_in_serial_loops(arch):
    def drawn(place):
        ti.init(arch=arch, log_level="error", random_seed=3)
        a = ti.field(float)
        place(a)

        @ti.kernel
        def draw():
            ti.loop_config(serialize=True)
            for i in a:
                a[i] = ti.random()

        draw()
        return a.to_numpy()

    blocks = drawn(lambda a: ti.root.dense(ti.i, 4).dense(ti.i, 8).place(a))
    plain = drawn(lambda a: ti.root.dense(ti.i, 32).place(a))
    np.testing.assert_array_equal(blocks, plain)
