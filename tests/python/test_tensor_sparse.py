"""Programs of tensors over the active cells of fields that as arrays would take terabytes, against NumPy around these cells."""

import re
import resource

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

N = 16384
# Where numbers are: corners of cubes with SIDE elements along each axis, of which some blocks are active.
CORNERS = [(8, 8, 8), (4096, 80, 16000), (16372, 16372, 16372)]
SIDE = 12
HERE = re.escape(__file__)

LAYOUTS = {
    "pointer": lambda: ti.root.pointer(ti.ijk, 64).pointer(ti.ijk, 64).dense(ti.ijk, 4),
    "bitmasked": lambda: ti.root.pointer(ti.ijk, 64).pointer(ti.ijk, 64).bitmasked(ti.ijk, 4),
    "hash": lambda: ti.root.hash(ti.ijk, 4096).dense(ti.ijk, 4),
    "dynamic": lambda: ti.root.pointer(ti.ij, 64).pointer(ti.ij, 64).dense(ti.ij, 4).dynamic(ti.k, N, chunk_size=32),
}

# Each tree has addresses for all cells that the machine's memory holds.
UNLIMITED = resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
some_trees = pytest.mark.skipif(not UNLIMITED, reason="addresses are limited, and do not suffice for several trees")


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    # A failure that a test asked for, and that did not come there, must not meet the next one.
    ti._native.fail_allocation(0)


def fields(layout, *dtypes):
    all_of = [ti.field(dtype, name=name) for dtype, name in zip(dtypes, "xyz", strict=False)]
    LAYOUTS[layout]().place(*all_of)
    return all_of


def cubes(seed=0, one_in=40):
    rng = np.random.default_rng(seed)
    shape = (len(CORNERS), SIDE, SIDE, SIDE)
    return (rng.integers(1, 9, shape) * (rng.integers(0, one_in, shape) == 0)).astype(np.int32)


CORNER = np.array(CORNERS, np.int32)


def put(field, values):
    """Stores what is not zero."""

    @ti.kernel
    def store(values: ti.types.ndarray(), corner: ti.types.ndarray()):
        for c, i, j, k in values:
            if values[c, i, j, k] != 0:
                field[corner[c, 0] + i, corner[c, 1] + j, corner[c, 2] + k] = values[c, i, j, k]

    store(values, CORNER)


def taken(field):
    """The numbers around the corners, zero where cells are inactive."""
    out = np.zeros((len(CORNERS), SIDE, SIDE, SIDE), np.float64)

    @ti.kernel
    def read(out: ti.types.ndarray(), corner: ti.types.ndarray()):
        for c, i, j, k in out:
            out[c, i, j, k] = field[corner[c, 0] + i, corner[c, 1] + j, corner[c, 2] + k]

    read(out, CORNER)
    return out


def active(field):
    """Where cells around the corners are active; there are none elsewhere, but on the way to the end of a list."""
    out, others = np.zeros((len(CORNERS), SIDE, SIDE, SIDE), np.int32), ti.field(ti.i32, shape=())

    @ti.kernel
    def mark(out: ti.types.ndarray(), corner: ti.types.ndarray()):
        for i, j, k in field:
            inside = 0
            for c in range(corner.shape[0]):
                a, b, d = i - corner[c, 0], j - corner[c, 1], k - corner[c, 2]
                if min(a, b, d) >= 0 and max(a, b, d) < SIDE:
                    out[c, a, b, d] = 1
                    inside = 1
            others[None] += 1 - inside

    mark(out, CORNER)
    return out != 0, others[None]


def moved(values, *by):
    """`x[i + a, j + b, k + c]` around the corners, zero outside."""
    wide = np.pad(values, ((0, 0), *[(1, 1)] * 3))
    return wide[(slice(None), *[slice(1 + n, 1 + n + SIDE) for n in by])]


def blocks(mask, side):
    """The blocks of which some cell is in a mask."""
    split = [n for _ in range(3) for n in (SIDE // side, side)]
    some = mask.reshape(len(CORNERS), *split).any(axis=(2, 4, 6), keepdims=True)
    return np.broadcast_to(some, (len(CORNERS), *split)).reshape(mask.shape)


def in_trees(program):
    return re.findall(r"\[16384, 16384, 16384\] at active cells, materialised", program.explain())


@pytest.mark.parametrize(
    "layout", [pytest.param(name, marks=some_trees) if name == "dynamic" else name for name in LAYOUTS]
)
def test_stores_to_what_neighbours_read(layout):
    (x,) = fields(layout, ti.i32)

    @p.program
    def steps():
        with p.loop(3):
            i, j, k = p.indices(x)
            x[i, j, k] = x[i + 1, j, k] + 2 * x[i, j - 1, k] - x[i, j, k + 1] + 1

    for seed in (1, 2):
        put(x, cubes(seed))
        want, (mask, _) = taken(x), active(x)
        steps()
        for _ in range(3):
            want = np.where(mask, moved(want, 1, 0, 0) + 2 * moved(want, 0, -1, 0) - moved(want, 0, 0, 1) + 1, 0)
        assert mask.any() and (taken(x) == want).all()
        assert (active(x)[0] == mask).all()
        if seed == 1 and layout != "dynamic":
            # Other cells, in part, in the next run.
            ti.root.deactivate_all()
    assert len(in_trees(steps)) == 1


@some_trees
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_at_cells_are_read_at_other_points(layout):
    x, y = fields(layout, ti.i32, ti.i32)
    put(x, cubes())

    @p.program
    def beside():
        i, j, k = p.indices(x)
        v = x[i, j, k] * 3 + 1
        y[i, j, k] = v[(i + 1) % N, j, k] + 10 * v[i, (j - 1) % N, k]
        at = p.input([-1, 3], ti.i32)
        return v[at[:, 0], at[:, 1], at[:, 2]], ti.tensor.sum(y[i, j, k])

    values, (mask, others) = taken(x), active(x)
    at = np.concatenate([np.argwhere(values[c]) + CORNERS[c] for c in range(len(CORNERS))]).astype(np.int32)
    at = np.concatenate([at, [[0, 0, 0], [N - 1, 0, 7]]]).astype(np.int32)
    gathered, total = (r.numpy() for r in beside(at))
    v = np.where(mask, values * 3 + 1, 0)
    assert gathered[:-2].tolist() == v[values != 0].tolist()
    assert gathered[-2:].tolist() == [0, 0]
    want = np.where(mask, moved(v, 1, 0, 0) + 10 * moved(v, 0, -1, 0), 0)
    assert (taken(y) == want).all()
    # Lists begin at 0: beside what is around the corners there is more of each.
    assert (others > 0) == (layout == "dynamic") and (others > 0 or total == want.sum())
    assert in_trees(beside)


@some_trees
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "dynamic"])
def test_stores_beside_cells_in_a_loop(layout):
    (x,) = fields(layout, ti.i32)
    put(x, cubes()[:, ::-1])
    side = 1 if layout == "bitmasked" else 4

    @p.program
    def grow():
        with p.loop(3):
            i, j, k = p.indices(x)
            v = x[i, j, k] * 2 + 1
            x[i, j, k] = v - x[i, j, k - 1]
            with p.if_cond(x[i, j, k] > 1):
                x[i - 1, j, k] = v
        i, j, k = p.indices(x)
        return ti.tensor.sum(i * 0 + 1)

    want, (mask, _) = taken(x), active(x)
    for _ in range(3):
        v = np.where(mask, want * 2 + 1, 0)
        want = np.where(mask, v - moved(want, 0, 0, -1), 0)
        stored = moved(mask & (want > 1), 1, 0, 0)
        want = np.where(stored, moved(v, 1, 0, 0), want)
        mask = mask | blocks(stored, side)
    n = grow().item()
    now, others = active(x)
    assert (now == mask).all() and (taken(x) == want).all()
    assert n == now.sum() + others
    assert len(in_trees(grow)) >= 2


def test_kernels_stand_between():
    x, y = fields("pointer", ti.i32, ti.i32)
    put(x, cubes())
    block = x.parent().parent()

    @ti.kernel
    def scale(a: ti.types.ndarray(), by: int) -> int:
        a[0] = a[0] * by
        return a[0]

    @ti.kernel
    def drop(at: int):
        for i, j, k in block:
            if i < at:
                ti.deactivate(block, [i, j, k])

    @p.program
    def mixed():
        factor = p.input([1], ti.i32) + 0
        i, j, k = p.indices(x)
        v = x[i, j, k] + 1
        n = scale(factor, 5)
        y[i, j, k] = v[i, (j + 1) % N, k] * factor[0] + n
        drop(1024)
        i, j, k = p.indices(x)
        x[i, j, k] = y[i, j, k] + x[i, j, k + 1]
        w = y[i, j, k] - 1
        x[i, j, k] = x[i, j, k] + w[(i + 1) % N, j, k]
        return ti.tensor.sum(x[i, j, k])

    for factor in (2, 3):
        values, mask = taken(x), active(x)[0]
        total = mixed(np.array([factor], np.int32)).item()
        v = np.where(mask, values + 1, 0)
        stored = np.where(mask, moved(v, 0, 1, 0) * factor * 5 + factor * 5, 0)
        stays = np.array([c[0] >= 1024 * 4 for c in CORNERS])[:, None, None, None]
        values, stored, mask = (np.where(stays, a, 0) for a in (values, stored, mask))
        want = stored + np.where(mask, moved(values, 0, 0, 1), 0)
        want = np.where(mask, want + moved(np.where(mask, stored - 1, 0), 1, 0, 0), 0)
        assert (taken(x) == want).all() and total == want.sum()
        assert (active(x)[0] == mask).all()
        put(x, cubes(5))
    assert len(in_trees(mixed)) >= 3


def test_numbers_of_few_bits():
    x, y = ti.field(ti.types.quant.int(bits=10), name="x"), ti.field(ti.types.quant.fixed(bits=14, max_value=64.0))
    bits = ti.BitpackedFields(max_num_bits=32)
    bits.place(x, y)
    ti.root.pointer(ti.ijk, 64).pointer(ti.ijk, 64).dense(ti.ijk, 4).place(bits)
    z = ti.field(ti.types.quant.int(bits=4))
    ti.root.pointer(ti.ijk, 64).pointer(ti.ijk, 64).quant_array(ti.ijk, 2, max_num_bits=32).place(z)
    put(x, cubes())

    @p.program
    def steps():
        i, j, k = p.indices(x)
        x[i, j, k] = x[i + 1, j, k] * 3 - x[i, j, k - 1]
        # Beyond what the field holds.
        v = x[i, j, k] * 1000
        y[i, j, k] = v[i, (j + 1) % N, k] / 1000.0 + 0.5

    values, mask = taken(x), active(x)[0]
    steps()
    want = np.where(mask, moved(values, 1, 0, 0) * 3 - moved(values, 0, 0, -1), 0)
    assert (taken(x) == want).all()
    np.testing.assert_allclose(taken(y), np.where(mask, moved(want, 0, 1, 0) + 0.5, 0), atol=0.01)
    assert len(in_trees(steps)) == 2


def test_a_tree_that_is_gone_and_another_one():
    def tree():
        builder, x = ti.FieldsBuilder(), ti.field(ti.i32, name="x")
        builder.pointer(ti.ijk, 64).pointer(ti.ijk, 64).dense(ti.ijk, 4).place(x)
        return x, builder.finalize()

    def traced(x):
        @p.program
        def step():
            i, j, k = p.indices(x)
            x[i, j, k] = x[i, j, k - 1] + 1

        return step

    x, first = tree()
    step = traced(x)
    put(x, cubes())
    step()
    first.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        step()
    for seed in (3, 4):
        x, other = tree()
        put(x, cubes(seed))
        values, mask = taken(x), active(x)[0]
        again = traced(x)
        again()
        assert (taken(x) == np.where(mask, moved(values, 0, 0, -1) + 1, 0)).all()
        other.destroy()
        assert in_trees(again)


def test_memory_that_does_not_suffice():
    (x,) = fields("pointer", ti.i32)
    put(x, cubes())

    @p.program
    def step():
        i, j, k = p.indices(x)
        x[i, j, k] = x[i, j, k - 1] + 1

    def stepped(values):
        return np.where(mask, moved(values, 0, 0, -1) + 1, 0)

    mask = active(x)[0]
    step()
    failures = 0
    for at in range(1, 9):
        values = taken(x)
        ti._native.fail_allocation(at)
        try:
            step()
        except MemoryError as e:
            failures += 1
            first, where, _, line, caret = str(e).splitlines()
            assert first == "out of memory for i32[16384, 16384, 16384] at active cells"
            assert re.fullmatch(rf" +--> {HERE}:\d+:22", where)
            assert line.endswith("|         x[i, j, k] = x[i, j, k - 1] + 1") and caret.endswith(
                "| " + 21 * " " + 18 * "^"
            )
            assert (taken(x) == values).all()
        else:
            assert (taken(x) == stepped(values)).all()
        finally:
            ti._native.fail_allocation(0)
        values = taken(x)
        step()
        assert (taken(x) == stepped(values)).all()
        put(x, cubes(at))
        mask = active(x)[0]
    assert failures >= 3


def test_fields_that_cannot_grow():
    (x,) = fields("pointer", ti.i32)
    x[0, 0, 0] = 1

    @p.program
    def grow():
        n = p.input([-1], ti.i32)
        x[n * 4, n * 0, n * 0] = 7

    ti._native.fail_allocation(3)
    with pytest.raises(ti.AerogelMemoryError, match=r"out of memory for the pointer node S\d of `x`"):
        grow(np.arange(4096, dtype=np.int32))
    grow(np.arange(4096, dtype=np.int32))
    assert x[4 * 4095, 0, 0] == 7 == x[0, 0, 0]


def test_values_that_are_set_at_cells_take_memory_for_these():
    (x,) = fields("pointer", ti.f32)
    x[5, 6, 7], x[16000, 3, 4] = 1, 10

    @p.program
    def counted():
        i, j, k = p.indices(x)
        n, last = p.const(0.0), x[i, j, k] * 2
        with p.loop(100):
            with p.if_cond(n > x[i, j, k]):
                p.break_loop()
            n.val += 1.0
        with p.if_cond(last > 5):
            last.val += 1.0
        x[i, j, k] = n
        return n.sum(), last.max()

    mask, others = active(x)
    total, last = counted()
    # At every other cell x is 0, and the loop is left after one turn.
    assert total == 2 + 11 + (mask.sum() + others - 2) and last == 21
    assert x[5, 6, 7] == 2 and x[16000, 3, 4] == 11
    assert in_trees(counted)


def test_memory_is_everywhere_where_cells_are_not_all():
    x = ti.field(ti.f32)
    ti.root.pointer(ti.i, 8).bitmasked(ti.i, 4).place(x)
    x[5], x[30] = 1, 10

    @p.program
    def spread():
        n = p.const(1.0)
        with p.loop(3):
            (i,) = p.indices(x)
            n.val += x[i]
            x[(i + 1) % 32] = 1.0
        return n, n.sum()

    @p.program
    def stored():
        (i,) = p.indices(x)
        n = p.const(1.0)
        with p.loop(3):
            n.val += x[i]
            n[i] = n[i] + 1
        n[2] = 7
        return n

    def other(n, there):
        for _ in range(3):
            n[there] += values[there] + 1
        n[2] = 7
        return n

    n, total = spread()
    expected = np.ones(32, np.float32)
    values = np.zeros(32, np.float32)
    values[[5, 30]] = 1, 10
    there = values != 0
    for _ in range(3):
        expected[there] += values[there]
        values[(np.flatnonzero(there) + 1) % 32] = 1
        there |= np.roll(there, 1)
    assert (n.numpy() == expected).all() and total == expected.sum()
    assert (stored().numpy() == other(np.ones(32, np.float32), there)).all()


def test_vectors_are_set_at_cells():
    v = ti.Vector.field(2, ti.f32)
    ti.root.pointer(ti.i, 8).bitmasked(ti.i, 4).place(v)
    v[3], v[9] = [1, 2], [3, 4]

    @p.program
    def doubled():
        (i,) = p.indices(v)
        u = v[i]
        with p.loop(2):
            u.val = u * 2
        with p.if_cond(ti.tensor.norm(u, axis=-1) > 10):
            u.val += 1
        return u, u.sum()

    u, total = doubled()
    assert total == 42 and u[3].tolist() == [4, 8] and u[9].tolist() == [13, 17] and not u[4].numpy().any()


@pytest.mark.parametrize("in_block", [False, True])
def test_what_is_set_at_cells_stays_at_them(in_block):
    x, v = ti.field(ti.f32), ti.Vector.field(3, ti.f32)
    for field in (x, v):
        ti.root.pointer(ti.i, 4).dense(ti.i, 4).place(field)
    x[1], v[5] = 2, [1, 2, 3]

    @p.program
    def sums():
        (i,), (j,) = p.indices(x), p.indices(v)
        a, b, c = x[i], v[j], x[i]
        if in_block:
            with p.loop(1):
                a.val, b.val, c.val = 5.0, 5.0, c * 2
        else:
            a.val, b.val, c.val = 5.0, 5.0, c * 2
        return ti.tensor.sum(a), ti.tensor.sum(b), ti.tensor.sum(c)

    assert [s.item() for s in sums()] == [20, 60, 4]
