"""Fields as operands of programs of tensors: statements over active cells, against NumPy with masks."""

import warnings

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

N, M = 16, 12

LAYOUTS = {
    "dense": lambda root: root.dense(ti.ij, (N, M)),
    "bitmasked": lambda root: root.bitmasked(ti.ij, (N, M)),
    "pointer": lambda root: root.pointer(ti.ij, (4, 3)).dense(ti.ij, 4),
    "pointers": lambda root: root.pointer(ti.ij, (2, 3)).pointer(ti.ij, (2, 1)).bitmasked(ti.ij, 4),
    "hash": lambda root: root.hash(ti.ij, (4, 3)).dense(ti.ij, 4),
    "dynamic": lambda root: root.dense(ti.i, N).dynamic(ti.j, M, chunk_size=4),
}


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


def placed(layout, *fields, offset=None):
    for field in fields:
        assert field is not None
    LAYOUTS[layout](ti.root).place(*fields, offset=offset)


def active(field):
    """Where cells are active."""
    mask = ti.field(ti.i32, shape=(N, M))

    @ti.kernel
    def mark():
        for i, j in field:
            mask[i, j] = 1

    mark()
    return mask.to_numpy() != 0


def fill(field, seed=0, one_in=5):
    """Numbers in some cells; those beside them are zero, where they are active with them."""
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 9, (N, M)) * (rng.integers(0, one_in, (N, M)) == 0)

    @ti.kernel
    def put(values: ti.types.ndarray()):
        for i, j in ti.ndrange(N, M):
            if values[i, j] != 0:
                field[i, j] = values[i, j]

    put(values.astype(np.int32))
    return values


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_go_over_active_cells(layout):
    x = ti.field(ti.f32)
    placed(layout, x)
    values = fill(x)

    @p.program
    def sums():
        i, j = p.indices(x)
        v = x[i, j]
        return (
            v.sum(),
            (v * v).sum(axis=0),
            v.sum(axis=1),
            ti.tensor.min(v),
            ti.tensor.mean(v),
            (i * M + j).sum(),
            v.max(),
        )

    mask = active(x)
    total, squares, rows, least, mean, places, most = (r.numpy() for r in sums())
    assert total == values.sum()
    assert (squares == (values**2).sum(axis=0)).all()
    assert (rows == values.sum(axis=1)).all()
    assert least == values[mask].min()
    assert most == values[mask].max()
    assert mean == pytest.approx(values[mask].mean())
    at = np.argwhere(mask)
    assert places == (at[:, 0] * M + at[:, 1]).sum()
    assert " over the cells of " in sums.explain()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64, ti.f16, ti.i32])
def test_variances_go_over_active_cells(layout, dtype):
    x = ti.field(dtype)
    placed(layout, x)
    fill(x, one_in=3)
    # Numbers far from zero lose their digits where squares are subtracted.
    away = 1000 if dtype == ti.f16 else 10000

    @p.program
    def spread():
        i, j = p.indices(x)
        v = x[i, j] + away
        T = ti.tensor
        return (
            T.var(v), T.std(v), T.var(v, axis=0), T.std(v, axis=-1, keepdims=True), T.var(v, correction=1.5),
            T.std(v, axis=(0, 1), keepdims=True), v.var(axis=1, ddof=1), T.std(v * 0 + 3),
        )  # fmt: skip

    mask = active(x)
    values = np.where(mask, x.to_numpy().astype(float) + away, np.nan)
    n, rows = mask.sum(), mask.sum(axis=1)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        squares = np.nanvar(values, axis=1) * rows
        want = (
            np.nanvar(values), np.nanstd(values), np.nanvar(values, axis=0),
            np.nanstd(values, axis=-1, keepdims=True), np.nanvar(values) * n / (n - 1.5),
            np.nanstd(values, keepdims=True), squares / (rows - 1), 0.0,
        )  # fmt: skip
    for got, expected in zip(spread(), want, strict=True):
        assert got.dtype is (dtype if dtype != ti.i32 else ti.f32) and got.shape == np.shape(expected)
        rtol, atol = (4e-3, 0.02) if dtype == ti.f16 else (2e-4, 1e-4)
        np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=atol)
    assert " over the cells of " in spread.explain()


def test_what_counts_elements_in_a_row_says_what_to_write_at_active_cells():
    x = ti.field(ti.f32)
    placed("pointer", x)
    fill(x)
    T, inf = ti.tensor, ti.tensor.inf

    def refused(function, text):
        @p.program
        def program():
            return function(x[p.indices(x)])

        with pytest.raises(ValueError, match=text):
            program()

    refused(
        lambda v: T.argmax(v), r"`argmax` of a value `v` on the active cells.*`min\(where\(v == max\(v\), k, most\)\)`"
    )
    refused(lambda v: v.argmin(0), r"`argmin` of a value.*v == min\(v\)")
    for name in ("sort", "argsort", "median"):
        refused(getattr(T, name), f"`{name}` of a value `v` on the active cells.*inactive cells are zeros")
    refused(lambda v: T.topk(v, 2).values, "`topk` of a value `v` on the active cells")

    @p.program
    def as_said():
        i, j = p.indices(x)
        v = x[i, j]
        k = i * M + j
        inside = p.dense(T.ones_like(v)) != 0
        n = T.sum(T.ones_like(v, dtype=ti.i32))
        rows = T.sort(T.where(inside, p.dense(v), inf).reshape(-1))
        middle = (rows[(n - 1) // 2] + rows[n // 2]) / 2
        return T.min(T.where(v == T.max(v), k, N * M)), T.min(T.where(v == T.min(v), k, N * M)), rows, middle

    values = np.where(active(x), x.to_numpy(), np.nan)
    most, least, rows, middle = as_said()
    assert (most.item(), least.item()) == (np.nanargmax(values), np.nanargmin(values))
    n = active(x).sum()
    assert (rows.numpy()[:n] == np.sort(values[active(x)])).all()
    assert middle.item() == np.nanmedian(values)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_at_cells_are_computed_at_them_alone(layout):
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    placed(layout, x, y)
    values = fill(x)
    mask = active(x)

    @p.program
    def neighbours():
        with p.kernel(x) as (i, j):
            y[i, j] = x[i + 1, j] + x[i - 1, j] + x[i, j + 1] - 3 * x[i, j] + 1
            x[i, j] = y[i, j] * 2
        i, j = p.indices(x)
        return ti.tensor.exp(0 * x[i, j])

    got = neighbours().numpy()
    around = np.pad(values, 1)
    want = np.where(mask, around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] - 3 * values + 1, 0)
    assert (y.to_numpy() == want).all()
    assert (x.to_numpy() == 2 * want).all()
    assert (active(x) == mask).all()
    assert (got == mask).all()


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "dynamic"])
def test_stores_beside_cells_make_cells_active(layout):
    x = ti.field(ti.i32)
    placed(layout, x)
    values = fill(x, one_in=9)
    mask = active(x)

    @p.program
    def grow():
        i, j = p.indices(x)
        x[i, j + 1] = 10 * x[i, j] + i
        k, l = p.indices(x)
        return ti.tensor.sum(k * 0 + 1)

    n = grow().item()
    want = values.copy()
    new = np.where(mask, 10 * values + np.arange(N)[:, None], 0)
    want[:, 1:] = np.where(mask[:, :-1], new[:, :-1], values[:, 1:])
    assert (x.to_numpy() == want).all()
    now = active(x)
    assert n == now.sum()
    wanted = mask.copy()
    wanted[:, 1:] |= mask[:, :-1]
    assert (now | wanted == now).all()
    assert layout != "bitmasked" or (now == wanted).all()


def test_masks_and_scatters():
    x, count = ti.field(ti.f32), ti.field(ti.i32, shape=M)
    placed("pointer", x)
    values = fill(x)
    mask = active(x)

    @p.program
    def halves():
        limit = p.input([], ti.f32)
        i, j = p.indices(x)
        with p.if_cond(x[i, j] > limit):
            x[i, j] = -x[i, j]
        p.scatter_add(count, j, 1)
        seen = p.buffer([N])
        p.scatter_max(seen, i, x[i, j])
        return seen

    seen = halves(np.float32(4)).numpy()
    want = np.where(mask & (values > 4), -values, values)
    assert (x.to_numpy() == want).all()
    assert (count.to_numpy() == mask.sum(axis=0)).all()
    assert (seen == np.maximum(np.where(mask, want, 0).max(axis=1), 0)).all()


def test_tensors_are_read_at_cells():
    x = ti.field(ti.i32)
    placed("hash", x)
    values = fill(x)
    mask = active(x)
    table = np.arange(N * M, dtype=np.int32).reshape(N, M)

    @p.program
    def read():
        a = p.input([N, M], ti.i32)
        i, j = p.indices(x)
        v = a[i, j] + x[i, j]
        beside = v[(i + 1) % N, j]
        return v, beside, ti.tensor.sum(a[j, i % M] * x[i, j])

    v, beside, total = (r.numpy() for r in read(table))
    want = np.where(mask, table + values, 0)
    assert (v == want).all()
    assert (beside == np.where(mask, np.roll(want, -1, axis=0), 0)).all()
    square = table[np.arange(M)[None, :], np.arange(N)[:, None] % M]
    assert total == (square * values).sum()


def test_all_elements_of_a_field():
    x = ti.field(ti.i32)
    placed("bitmasked", x)
    values = fill(x)
    assert (ti.tensor.asarray(x).numpy() == values).all()

    @p.program
    def whole():
        y = ti.tensor.asarray(x)
        return ti.tensor.flip(y, axis=0), x[2, 3], ti.tensor.sum(x)

    flipped, one, total = whole()
    assert (flipped.numpy() == values[::-1]).all()
    assert one.item() == values[2, 3]
    assert total.item() == values.sum()
    x[2, 3] = 77
    assert whole()[1].item() == 77


def test_indices_begin_at_the_offset():
    x = ti.field(ti.i32)
    placed("pointer", x, offset=(-5, 3))
    x[-4, 6], x[1, 3] = 5, 7

    @p.program
    def moved():
        i, j = p.indices(x)
        x[i, j] = x[i, j] + 100 * (x[i, j] > 0).astype(ti.i32)
        i, j = p.indices(x)
        return ti.tensor.min(i), ti.tensor.max(j), x[1, 3], x[i, j].sum()

    assert [int(r.item()) for r in moved()] == [-5, 6, 107, 212]


def test_loops_and_symbolic_extents():
    x = ti.field(ti.f64)
    placed("pointer", x)
    values = fill(x).astype(float)
    mask = active(x)

    @p.program
    def steps():
        weights = p.input([-1], ti.f64)
        with p.loop(weights.shape[0]) as k:
            i, j = p.indices(x)
            x[i, j] = x[i, j] * weights[k] + x[i, j - 1]
        i, j = p.indices(x)
        t = p.const(0.0, ti.f64)
        with p.loop(3):
            t.val = t + x[i, j]
        return t

    got = steps(np.array([2.0, 0.5, 1.0])).numpy()
    for w in (2.0, 0.5, 1.0):
        values = np.where(mask, values * w + np.pad(values, ((0, 0), (1, 0)))[:, :-1], 0)
    assert (x.to_numpy() == values).all()
    assert (got == 3 * values).all()


def test_components_of_vectors():
    v = ti.Vector.field(2, ti.f32)
    placed("pointer", v)
    v[3, 4] = [1, 2]

    @p.program
    def lengths():
        a, b = v.get_scalar_field(0), v.get_scalar_field(1)
        i, j = p.indices(a)
        b[i, j] = a[i, j] * 10 + b[i, j]
        return (a[i, j] ** 2 + b[i, j] ** 2).sum()

    assert lengths().item() == 145
    assert list(v[3, 4]) == [1, 12]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_vectors_at_computed_points(layout):
    v = ti.Vector.field(3, ti.f32)
    placed(layout, v)
    v[3, 4], v[3, 5] = [1, 2, 3], [4, 5, 6]

    @p.program
    def program():
        i = p.input([-1], ti.i32)
        v[i, 6] = v[i, 4] * 2 + v[i, 5]
        v[i, 7] = [1.0, i, ti.tensor.norm(v[i, 6], axis=-1)]
        return v[i, 6], ti.tensor.asarray(v)

    at = np.array([3, 5], np.int32)
    rows, all_of = (r.numpy() for r in program(at))
    assert rows.tolist() == [[6, 9, 12], [0, 0, 0]]
    assert np.array_equal(all_of, v.to_numpy())
    assert v.to_numpy()[3, 6].tolist() == [6, 9, 12]
    np.testing.assert_allclose(v.to_numpy()[[3, 5], 7], [[1, 3, np.sqrt(261)], [1, 5, 0]], rtol=1e-6)


def test_dense_fields_of_vectors_and_matrices():
    v, m = ti.Vector.field(2, ti.f64, shape=(5, 4)), ti.Matrix.field(2, 3, ti.f64, shape=5)
    given, matrices = np.arange(40.0).reshape(5, 4, 2), np.arange(30.0).reshape(5, 2, 3)
    v.from_numpy(given)
    m.from_numpy(matrices)

    @p.program
    def program():
        i, j = p.indices(v)
        (k,) = p.indices(m)
        v[i, j] = v[i, j] * 2 + ti.Vector([1.0, 10.0])[1]
        m[k] = ti.tensor.flip(m[k], axis=-1) + v[k, 0][..., None]
        with p.if_cond(i == j):
            v[i, j] = 0.0
        return v[i, j].sum(axis=(0, 1)), v[i, j].mean(), m[k] @ v[k, 1][..., None].repeat(3, axis=-2)[:, :3]

    sums, mean, products = (r.numpy() for r in program())
    v1 = given * 2 + 10
    m1 = matrices[:, :, ::-1] + v1[:, 0][..., None]
    for k in range(4):
        v1[k, k] = 0
    assert np.array_equal(v.to_numpy(), v1) and np.array_equal(m.to_numpy(), m1)
    assert np.array_equal(sums, v1.sum((0, 1))) and np.isclose(mean, v1.mean())
    assert np.allclose(products, m1 @ np.repeat(v1[:, 1][..., None], 3, axis=-2)[:, :3])


def test_vectors_that_do_not_fit():
    v = ti.Vector.field(2, ti.f32, shape=4)

    def stores(value):
        def program():
            (i,) = p.indices(v)
            v[i] = value(i)

        return p.program(program)

    with pytest.raises(ValueError, match=r"elements of shape \(2,\) are stored, not \[1.0, 2.0, 3.0\]"):
        stores(lambda i: [1.0, 2.0, 3.0])()
    with pytest.raises(ValueError, match=r"elements have the shape \(2,\), not that of the last axes of \(4,\)"):
        stores(lambda i: i * 1.0)()


def test_quantised_numbers():
    x, y = ti.field(ti.types.quant.int(bits=6)), ti.field(ti.types.quant.fixed(bits=12, max_value=8.0))
    bits = ti.BitpackedFields(max_num_bits=32)
    bits.place(x, y)
    ti.root.pointer(ti.ij, (4, 3)).dense(ti.ij, 4).place(bits)
    x[3, 4], y[3, 4] = 9, 1.5

    @p.program
    def both():
        i, j = p.indices(x)
        x[i, j] = x[i, j] * 2 + 1
        y[i, j] = y[i, j] + 0.25
        return x[i, j].sum(), y[i, j].sum()

    n, s = (r.item() for r in both())
    assert (n, x[3, 4], x[3, 5]) == (19 + 15, 19, 1)
    assert y[3, 4] == pytest.approx(1.75, abs=0.01)
    assert s == pytest.approx(1.75 + 15 * 0.25, abs=0.1)


def traced(function):
    return p.program(function).compile()


@pytest.mark.parametrize("layout", ["pointer", "bitmasked"])
def test_what_is_refused(layout):
    x, y = ti.field(ti.f32, name="x"), ti.field(ti.f32, name="y")
    placed(layout, x)
    placed("hash", y)

    def stale():
        i, j = p.indices(x)
        x[i + 1, j] = 1.0
        return x[i, j]

    with pytest.raises(ValueError, match="a store has activated cells of `x` since its indices were read"):
        traced(stale)

    def in_a_loop():
        i, j = p.indices(x)
        with p.loop(3):
            x[i + 1, j] = x[i, j]

    with pytest.raises(ValueError, match="uses indices of its cells from before the loop"):
        traced(in_a_loop)

    def two():
        i, j = p.indices(x)
        k, l = p.indices(y)
        return x[i, j] + y[k, l]

    with pytest.raises(ValueError, match="the cells of `x` and on those of `y` do not match"):
        traced(two)

    def turned():
        i, j = p.indices(x)
        return x[i, j].T

    with pytest.raises(ValueError, match="`dense` of it, which is zero elsewhere"):
        traced(turned)
    with pytest.raises(IndexError, match="1 index for `x`, which has 2 axes"):
        traced(lambda: x[3])
    with pytest.raises(TypeError, match="indices of integers|an index"):
        traced(lambda: x[p.indices(y)[0] > 0, 0])

    @ti.kernel
    def other():
        x[0, 0] = 1

    with pytest.raises(RuntimeError, match="modified while a program is traced"):
        traced(lambda: x.fill(1))
    with pytest.raises(RuntimeError, match="cells are deactivated while a program is traced"):
        traced(lambda: ti.root.deactivate_all())


def test_a_store_to_other_cells_of_a_tree_leaves_these_as_they_are():
    x, y = ti.field(ti.i32), ti.field(ti.i32)
    placed("pointer", x)
    placed("bitmasked", y)
    values = fill(x)
    mask = active(x)

    @p.program
    def copy():
        i, j = p.indices(x)
        y[i, j] = x[i, j] + 1
        return x[i, j].sum()

    assert copy().item() == values.sum()
    assert (y.to_numpy() == np.where(mask, values + 1, 0)).all()
    assert (active(y) == mask).all()


def test_fields_that_are_gone():
    builder = ti.FieldsBuilder()
    x = ti.field(ti.f32)
    builder.dense(ti.i, 4).place(x)
    tree = builder.finalize()
    total = p.program(lambda: ti.tensor.sum(x))
    assert total().item() == 0
    tree.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        total()
    y = ti.field(ti.f32, shape=4)
    total = p.program(lambda: ti.tensor.sum(y))
    assert total().item() == 0
    ti.reset()
    ti.init(arch=ti.cpu, log_level="error")
    with pytest.raises(RuntimeError, match="ti.init|ti.reset"):
        total()


def test_a_tape_does_not_take_what_it_does_not_record():
    x, loss = ti.field(ti.f32, shape=4, needs_grad=True), ti.field(ti.f32, shape=(), needs_grad=True)

    @p.program
    def double():
        (i,) = p.indices(x)
        x[i] = i * 2.0

    double()
    with pytest.raises(RuntimeError, match="is not recorded"), ti.ad.Tape(loss):
        double()


@pytest.mark.parametrize("source", ["field", "vectors", "array"])
def test_no_tensor_loses_a_derivative_without_a_word(source):
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    x = {
        "field": lambda: ti.field(ti.f32, shape=4, needs_grad=True),
        "vectors": lambda: ti.Vector.field(2, ti.f32, shape=4, needs_grad=True),
        "array": lambda: ti.ndarray(ti.f32, shape=4, needs_grad=True),
    }[source]()
    if source != "array":
        for way in (p.program(lambda: ti.tensor.asarray(x)), p.program(lambda: x[p.indices(x)[0]])):
            way()
            with (
                pytest.raises(RuntimeError, match="is a constant, and a tape would lose the gradient"),
                ti.ad.Tape(loss),
            ):
                way()
    with ti.ad.Tape() as tape:
        total = (ti.tensor.asarray(x, copy=True) * 2).sum()
    tape.grad(total)
    assert (x.grad.to_numpy() == 2).all()


def test_forward_mode_loses_no_tangent_without_a_word():
    x, loss = (ti.field(ti.f32, shape=n, needs_dual=True) for n in (4, ()))
    with pytest.raises(RuntimeError, match="would lose the tangent"), ti.ad.FwdMode(loss=loss, param=x, seed=[1] * 4):
        ti.tensor.asarray(x)


def test_a_tape_lets_constants_become_tensors():
    x, loss = ti.field(ti.f32, shape=4), ti.field(ti.f32, shape=(), needs_grad=True)
    y = ti.field(ti.f32, shape=4, needs_grad=True)
    x.fill(3)
    with ti.ad.Tape(loss):
        assert (ti.tensor.asarray(x) * 2).tolist() == [6] * 4
        assert p.program(lambda: ti.tensor.sum(x))().item() == 12
        assert ti.tensor.asarray(y.to_numpy()).tolist() == [0] * 4


def test_programs_see_what_fields_hold_when_they_run():
    x = ti.field(ti.i32, shape=4)
    copy = ti.tensor.asarray(x) + 1
    total = p.program(lambda: ti.tensor.sum(x))
    x.fill(3)
    assert total().item() == 12
    x[1] = 5
    assert total().item() == 14
    assert copy.tolist() == [1, 1, 1, 1]


def test_operators_of_fields_say_what_has_them():
    f, v = ti.field(ti.f32, shape=(2, 3)), ti.Vector.field(2, ti.f32, shape=3)
    f[1, 2], v[1] = 3, [1, 2]
    x, numbers = ti.tensor.ones((2, 3)), f.to_numpy()
    refused = {
        "+": (lambda: f + 1, lambda: 1 + f, lambda: f + f, lambda: v + v),
        "*": (lambda: 2.0 * v, lambda: f * v),
        "**": (lambda: f**2,),
        "@": (lambda: f @ f,),
        "-": (lambda: -f, lambda: f - 1),
        "abs": (lambda: abs(v),),
    }
    for symbol, functions in refused.items():
        for function in functions:
            for run in (function, p.program(function).compile):
                with pytest.raises(TypeError) as caught:
                    run()
                text = str(caught.value)
                assert text.startswith(f"`{symbol}` is not defined for fields: in a kernel index the field"), text
    # Beside tensors and arrays these have them.
    for made in (f + x, x + f, x * 1 + f, p.program(lambda: f + ti.tensor.ones((2, 3)))(), ti.tensor.asarray(f) + 1):
        assert np.array_equal(made.numpy(), numbers + 1)
    for array in (f + np.ones((2, 3)), np.ones((2, 3)) + f, f + np.float64(1), np.float32(1) + f):
        assert np.array_equal(array, numbers + 1)
    assert f == f and f != v and len({f, v}) == 2
