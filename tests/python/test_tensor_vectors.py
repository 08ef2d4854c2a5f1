"""Vectors and matrices at the active cells of fields, in programs: against kernels and NumPy."""

import re
import resource

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p
from test_tensor_fields import LAYOUTS as FIELD_LAYOUTS
from test_tensor_fields import M, N, active

LAYOUTS = [name for name in FIELD_LAYOUTS if name != "dense"]


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


def fill(field, seed=0, one_in=5):
    """Small numbers in some cells."""
    rng = np.random.default_rng(seed)
    last = field.to_numpy().shape[2:]
    values = rng.integers(1, 6, (N, M, *last)).astype(np.int32)
    for i, j in np.argwhere(rng.integers(0, one_in, (N, M)) == 0):
        field[i, j] = values[i, j].tolist()
    return field.to_numpy()


def moved(values, a, b):
    """`x[i + a, j + b]`, zero outside."""
    wide = np.pad(values, [(1, 1), (1, 1)] + [(0, 0)] * (values.ndim - 2))
    return wide[1 + a : 1 + a + N, 1 + b : 1 + b + M]


@pytest.mark.parametrize("dtype", [ti.f32, ti.i32, ti.f16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_vectors_are_what_they_are_in_kernels(layout, dtype):
    v, w, x = ti.Vector.field(3, dtype), ti.Vector.field(3, dtype), ti.field(dtype)
    k = ti.Vector.field(3, dtype)
    FIELD_LAYOUTS[layout](ti.root).place(v, w, x, k)
    fill(v)
    for i, j in np.argwhere(active(v)):
        k[i, j] = v[i, j]
        x[i, j] = (i + j) % 4
    mask = active(v)

    @ti.kernel
    def by_kernel():
        for i, j in k:
            k[i, j] = k[i, j] * 2 + x[i, j]
        for i, j in k:
            k[i, j] += ti.Vector([1, 2, 3]) * k[i, j].sum()
            if x[i, j] > 1:
                k[i, j] = ti.Vector([7, 8, 9]) - k[i, j]

    @p.program
    def by_program():
        i, j = p.indices(v)
        u = v[i, j]
        assert u.shape == (N, M, 3)
        v[i, j] = u * 2 + x[i, j][..., None]
        v[i, j] += ti.tensor.asarray(np.array([1, 2, 3], np.int32)).astype(dtype) * v[i, j].sum(axis=-1, keepdims=True)
        with p.if_cond(x[i, j] > 1):
            v[i, j] = ti.tensor.asarray(np.array([7, 8, 9], np.int32)).astype(dtype) - v[i, j]
        w[i, j] = v[i + 1, j] + v[i, j - 1][..., ::-1]
        return u

    before = v.to_numpy()
    got = by_program().numpy()
    by_kernel()
    after = k.to_numpy()
    assert before.any() and np.array_equal(got, np.where(mask[..., None], before, 0))
    assert not np.array_equal(after, before) and np.array_equal(v.to_numpy(), after)
    want = moved(after, 1, 0) + moved(after, 0, -1)[..., ::-1]
    assert np.array_equal(w.to_numpy(), np.where(mask[..., None], want, 0))
    assert np.array_equal(active(v), mask)
    assert " over the cells of " in by_program.explain()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_and_means_go_over_active_cells(layout):
    v = ti.Vector.field(3, ti.f32)
    FIELD_LAYOUTS[layout](ti.root).place(v)
    values = fill(v)
    mask = active(v)

    @p.program
    def sums():
        i, j = p.indices(v)
        u = v[i, j]
        return (
            u.sum(),
            u.sum(axis=(0, 1)),
            u.sum(axis=(0, 1), keepdims=True),
            u.sum(axis=0),
            u.sum(axis=(1, 2)),
            u.sum(axis=-1),
            u.mean(),
            u.mean(axis=(0, 1)),
            u.mean(axis=-1),
            u.max(axis=(0, 1)),
            ti.tensor.min(u),
            ti.tensor.norm(u, axis=-1),
            ti.tensor.norm(u),
            (u > 2).any(axis=-1),
            ti.tensor.count_nonzero(u, axis=(0, 1)),
            ti.tensor.var(u),
            ti.tensor.std(u, axis=(0, 1), correction=1),
            ti.tensor.std(u, axis=-1),
            p.dense(u).argmax(axis=-1),
        )

    got = [r.numpy() for r in sums()]
    cells = values[mask]
    want = [
        values.sum(),
        values.sum((0, 1)),
        values.sum((0, 1), keepdims=True),
        values.sum(0),
        values.sum((1, 2)),
        values.sum(-1),
        cells.mean(),
        cells.mean(0),
        values.mean(-1),
        cells.max(0),
        cells.min(),
        np.sqrt((values**2).sum(-1)),
        np.sqrt((values**2).sum()),
        (values > 2).any(-1),
        (cells != 0).sum(0),
        cells.var(),
        cells.std(0, ddof=1),
        values.std(-1),
        values.argmax(-1),
    ]
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("layout", ["pointer", "bitmasked", "hash"])
def test_matrices(layout):
    m, v, t = ti.Matrix.field(2, 3, ti.f32), ti.Vector.field(3, ti.f32), ti.Vector.field(2, ti.f32)
    FIELD_LAYOUTS[layout](ti.root).place(m, v, t)
    matrices, vectors = fill(m, one_in=3), fill(v, 1, one_in=3)
    mask = active(m)

    @p.program
    def products():
        i, j = p.indices(m)
        a, b = m[i, j], v[i, j]
        assert a.shape == (N, M, 2, 3)
        t[i, j] = (a @ b[..., None])[..., 0]
        m[i, j] = [[1, 2, 3], [4.0, i, j]]
        m[i, j] += a
        turned = a.mT
        return turned, turned[..., 1, :], a.sum(axis=(0, 1)), a.sum(axis=2), turned @ a, ti.tensor.flip(b, axis=-1)

    turned, row, total, columns, squares, back = (r.numpy() for r in products())
    i, j = np.indices((N, M))
    ones, at = np.ones((N, M)), mask[..., None, None]
    added = np.stack([ones, 2 * ones, 3 * ones, 4 * ones, i, j], axis=-1).reshape(N, M, 2, 3)
    assert np.array_equal(m.to_numpy(), np.where(at, matrices + added, 0))
    assert np.array_equal(t.to_numpy(), np.einsum("ijab,ijb->ija", matrices, vectors))
    assert np.array_equal(turned, matrices.swapaxes(-1, -2))
    assert np.array_equal(row, matrices[..., 1])
    assert np.array_equal(total, matrices.sum((0, 1)))
    assert np.array_equal(columns, matrices.sum(2))
    assert np.array_equal(squares, matrices.swapaxes(-1, -2) @ matrices)
    assert np.array_equal(back, vectors[..., ::-1])


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "dynamic"])
def test_stores_beside_cells_make_cells_active(layout):
    v = ti.Vector.field(2, ti.i32)
    FIELD_LAYOUTS[layout](ti.root).place(v)
    values = fill(v, one_in=9)
    mask = active(v)

    @p.program
    def grow():
        i, j = p.indices(v)
        v[i, j + 1] = v[i, j] * 10 + i[..., None]
        i, j = p.indices(v)
        return (v[i, j] * 0 + 1).sum()

    n = grow().item()
    new = np.where(mask[..., None], 10 * values + np.arange(N)[:, None, None], 0)
    want = np.where(moved(mask, 0, -1)[..., None], moved(new, 0, -1), values)
    assert np.array_equal(v.to_numpy(), want)
    now = active(v)
    assert n == 2 * now.sum() and (now | mask | moved(mask, 0, -1) == now).all() and now.sum() > mask.sum()
    assert layout != "bitmasked" or (now == mask | moved(mask, 0, -1)).all()


def test_components_that_are_placed_apart():
    v = ti.Vector.field(2, ti.i32, name="v")
    a, b = v.get_scalar_field(0), v.get_scalar_field(1)
    FIELD_LAYOUTS["bitmasked"](ti.root).place(a)
    FIELD_LAYOUTS["pointer"](ti.root).place(b)
    a[3, 4], b[3, 4], a[9, 9], b[1, 1] = 1, 2, 3, 4

    @p.program
    def steps():
        i, j = p.indices(v)
        u = v[i, j]
        v[i, j] = u * 2 + 1
        return u.sum(axis=-1), u.sum(axis=(0, 1))

    sums, total = (r.numpy() for r in steps())
    assert total.tolist() == [4, 2] and sums[3, 4] == 3 and sums[9, 9] == 3 and sums.sum() == 6
    assert [a[3, 4], b[3, 4], a[9, 9], b[9, 9], a[1, 1], b[1, 1]] == [3, 5, 7, 1, 0, 4]
    assert active(a).sum() == 2 and active(b).sum() == 48

    @p.program
    def grow():
        i, j = p.indices(v)
        v[i + 1, j] = v[i, j]

    grow()
    assert [a[4, 4], b[4, 4], a[10, 9], b[10, 9], a[2, 1], b[2, 1]] == [3, 5, 7, 1, 0, 0]
    assert active(a).sum() == 4


def test_masks_memory_and_other_points():
    v, x = ti.Vector.field(2, ti.f32), ti.field(ti.f32)
    FIELD_LAYOUTS["pointer"](ti.root).place(v, x)
    count = ti.field(ti.f32, shape=N)
    values = fill(v)
    mask = active(v)
    table = np.arange(N * 2, dtype=np.float32).reshape(N, 2)

    @p.program
    def steps():
        rows = p.input([N, 2], ti.f32)
        i, j = p.indices(v)
        u = v[i, j] + rows[i]
        t = p.const(0.0)
        with p.loop(3):
            t.val = t + u
        p.scatter_add(count, i, u.sum(axis=-1))
        with p.if_cond((u[..., 0] > 4) & (i > 2)):
            v[i, j] = ti.tensor.where(u > 9, u, [-1.0, -2.0])
        at = p.input([-1], ti.i32)
        return u, t, u[(i + 1) % N, j], u[at, at % M], p.dense(u).T, x[i, j][..., None] + u

    at = np.array([3, 15, 0], np.int32)
    u, t, beside, taken, turned, same = (r.numpy() for r in steps(table, at))
    want = np.where(mask[..., None], values + table[:, None], 0)
    assert np.array_equal(u, want) and np.array_equal(same, want)
    assert np.array_equal(t, 3 * want)
    assert np.array_equal(beside, np.where(mask[..., None], np.roll(want, -1, axis=0), 0))
    assert np.array_equal(taken, want[at, at % M])
    assert np.array_equal(turned, want.T)
    np.testing.assert_allclose(count.to_numpy(), want.sum((1, 2)), rtol=1e-6)
    chosen = mask & (want[..., 0] > 4) & (np.arange(N)[:, None] > 2)
    assert np.array_equal(v.to_numpy(), np.where(chosen[..., None], np.where(want > 9, want, [-1, -2]), values))


LARGE = 16384

# Each tree has addresses for all cells that the machine's memory holds.
UNLIMITED = resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


@pytest.mark.skipif(not UNLIMITED, reason="addresses are limited, and do not suffice for several trees")
@pytest.mark.parametrize("n", [3, 6])
def test_large_fields_take_the_memory_of_their_cells(n):
    v = ti.Vector.field(n, ti.f32)
    ti.root.pointer(ti.ijk, 64).pointer(ti.ijk, 64).dense(ti.ijk, 4).place(v)
    at = [(8, 8, 8), (9, 8, 8), (4096, 80, 16000), (16383, 16383, 16383)]
    given = np.arange(1.0, 4 * n + 1).reshape(4, n)
    for place, value in zip(at, given, strict=True):
        v[place] = value.tolist()

    @p.program
    def steps():
        i, j, k = p.indices(v)
        u = v[i, j, k] * 2
        v[i, j, k] = u[(i + 1) % LARGE, j, k] + v[i + 1, j, k] + ti.tensor.norm(u, axis=-1, keepdims=True)
        return u.sum(axis=(0, 1, 2)), u.max()

    total, most = (r.numpy() for r in steps())
    assert np.array_equal(total, 2 * given.sum(0)) and most == 8 * n
    want = np.linalg.norm(2 * given, axis=1)[:, None] + [3 * given[1], 0 * given[1], 0 * given[1], 0 * given[1]]
    np.testing.assert_allclose([v[place].to_list() for place in at], want, rtol=1e-6)
    assert " at active cells, materialised" in steps.explain()


def test_an_axis_of_one_element_and_rows_of_tensors():
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.pointer(ti.ij, (1, 4)).dense(ti.ij, (1, 4)).place(x)
    ti.root.pointer(ti.i, 4).dense(ti.i, 4).place(y)
    x[0, 5], y[5] = 3, 3
    table = np.arange(48, dtype=np.float32).reshape(16, 3)

    @p.program
    def program():
        rows = p.input([16, 3], ti.f32)
        i, j = p.indices(x)
        (k,) = p.indices(y)
        return (x[i, j] * 2).sum(axis=0), rows[k]

    doubled, rows = (r.numpy() for r in program(table))
    assert doubled.tolist() == [0] * 5 + [6] + [0] * 10
    want = np.zeros((16, 3))
    want[4:8] = table[4:8]
    assert np.array_equal(rows, want)


def test_what_is_refused():
    v, x = ti.Vector.field(2, ti.f32, name="v"), ti.field(ti.f32, name="x")
    FIELD_LAYOUTS["pointer"](ti.root).place(v, x)

    def fails(error, message, function):
        with pytest.raises(error, match=message) as info:
            p.program(lambda: function(*p.indices(v))).compile()
        # The user's line is the last one of theirs.
        own = [e for e in info.traceback if str(e.path) == __file__]
        assert own[-1].name == "<lambda>" and "lambda i, j" in str(own[-1].statement)

    set_ = type(v).__setitem__
    elements = r"elements have the shape \(2,\), not that of "
    fails(
        ValueError, r"of shape \(2,\) are stored, not \[1.0, 2.0, 3.0\]", lambda i, j: set_(v, (i, j), [1.0, 2.0, 3.0])
    )
    fails(ValueError, elements + "the last axes of ", lambda i, j: set_(v, (i, j), v[i, j][..., :1]))
    fails(ValueError, elements + "the last axes of ", lambda i, j: set_(v, (i, j), x[i, j]))
    fails(IndexError, "1 index for `v_0`, which has 2 axes", lambda i, j: set_(v, i, v[i, j]))
    everywhere = re.escape("and a value on the cells of `v_0` has those of active cells only: take `dense` of it")
    fails(ValueError, everywhere, lambda i, j: v[i, j].T)
    fails(ValueError, everywhere, lambda i, j: v[i, j].reshape(-1))
    fails(ValueError, everywhere, lambda i, j: v[i, j][0])
    fails(ValueError, everywhere, lambda i, j: v[i, j] @ np.ones((2, 2), np.float32))
    fails(
        ValueError, r"does not broadcast to \(16, 12, 1100\)", lambda i, j: v[i, j][..., :1] + np.ones(1100, np.float32)
    )

    square, y = ti.Vector.field(2, ti.f32, name="square"), ti.field(ti.f32, name="y")
    ti.root.pointer(ti.ij, 2).place(square, y)

    def misplaced():
        i, j = p.indices(square)
        return square[i, j] * y[i, j]

    with pytest.raises(ValueError, match=r"a value on the cells of `square_0` does not broadcast to \(2, 2, 2\)"):
        p.program(misplaced).compile()

    def stale():
        i, j = p.indices(v)
        u = v[i, j]
        v[i + 1, j] = u
        return u

    with pytest.raises(ValueError, match="a store has activated cells of `v_0` since its indices were read"):
        p.program(stale).compile()


@pytest.mark.parametrize("layout", FIELD_LAYOUTS)
def test_what_is_stacked_along_the_last_axis_is_stored(layout):
    v, m, x = ti.Vector.field(2, ti.f32), ti.Matrix.field(2, 2, ti.f32), ti.field(ti.f32)
    FIELD_LAYOUTS[layout](ti.root).place(v, m, x)
    before, cells = fill(v), active(v)
    T = ti.tensor

    @p.program
    def made():
        i, j = p.indices(v)
        old = v[i, j]
        both = T.stack([i * 2, j + 0.5], axis=-1)
        total = both.sum(), both.sum(axis=(0, 1))
        v[i, j] = both
        m[i, j] = T.stack([old, both + 1], axis=2)
        with p.kernel(m) as (a, b):
            with p.if_cond(a > b):
                m[a, b] += T.stack([T.stack([a, b], axis=-1), T.stack([b, b], axis=-1)], axis=-1)
        # What is everywhere, along with what is at cells.
        x[i, j] = T.stack([x[i, j], T.ones((N, M))], axis=-1).sum(axis=-1)
        return total

    total, sums = made()
    i, j = np.indices((N, M))
    both = np.stack([i * 2, j + 0.5], axis=-1)
    matrices = np.stack([before, both + 1], axis=2)
    more = np.stack([np.stack([i, j], axis=-1), np.stack([j, j], axis=-1)], axis=-1)
    matrices = matrices + np.where((i > j)[..., None, None], more, 0)
    assert np.array_equal(v.to_numpy(), np.where(cells[..., None], both, 0))
    assert np.array_equal(m.to_numpy(), np.where(cells[..., None, None], matrices, 0))
    assert np.array_equal(x.to_numpy(), cells)
    np.testing.assert_allclose(sums.numpy(), both[cells].sum(axis=0))
    assert total.item() == both[cells].sum()


@pytest.mark.parametrize("layout", FIELD_LAYOUTS)
def test_what_is_stacked_along_the_first_axis_is_refused(layout):
    v = ti.Vector.field(2, ti.f32)
    FIELD_LAYOUTS[layout](ti.root).place(v)
    v[1, 2] = [1, 2]

    def of_cells():
        i, j = p.indices(v)
        v[i, j] = ti.tensor.stack([i, j])

    def of_points():
        with p.kernel([N, M]) as (i, j):
            v[i, j] = ti.tensor.stack([i, j])

    with pytest.raises(ValueError, match=r"whose first 2 axes are those of the cells: .* `stack\(\[...\], axis=-1\)`"):
        p.program(of_cells)()
    text = f"elements have the shape (2,), not that of the last axes of (2, {N}, {M}): the components are the last axis"
    with pytest.raises(ValueError, match=re.escape(text + ", as of `stack([...], axis=-1)`")):
        p.program(of_points)()
