"""Shapes, parts, joins, reductions, scans, sorts and computed indices of tensors against NumPy."""

import functools
import gc

import aerogel as ti
import numpy as np
import pytest
from aerogel import _native
from aerogel import tensor as t
from aerogel.tensor import programs

DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint32", "uint64", "bool"]


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


def numbers(shape, dtype="int32", seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("float"):
        return np.asarray(rng.uniform(-2, 2, shape)).astype(dtype)
    return np.asarray(rng.integers(0 if dtype[0] == "u" else -9, 9, shape)).astype(dtype)


def exact(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


def close(got, want, tolerance=1e-5):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=tolerance, atol=tolerance)


VIEWS = {
    "reshape": lambda m, x: m.reshape(x, (4, 6)),
    "reshape_back": lambda m, x: m.reshape(m.reshape(x, (3, 8)), (2, 3, 4)),
    "reshape_split": lambda m, x: m.reshape(x, (2, 3, 2, 2)),
    "minus_one": lambda m, x: m.reshape(x, (-1, 3)),
    "ones": lambda m, x: m.reshape(x, (1, 2, 1, 12, 1)),
    "transposed": lambda m, x: m.permute_dims(x, (2, 0, 1)),
    "moved": lambda m, x: m.moveaxis(x, 0, -1),
    "expanded": lambda m, x: m.expand_dims(x, axis=1),
    "flipped": lambda m, x: m.flip(x, axis=(0, 2)),
    "flipped_all": lambda m, x: m.flip(x),
    "rolled": lambda m, x: m.roll(x, (1, -5), axis=(0, 2)),
    "rolled_flat": lambda m, x: m.roll(x, 7),
    "tiled": lambda m, x: m.tile(x, (2, 1, 1, 3)),
    "tiled_last": lambda m, x: m.tile(x, (2,)),
    "repeated": lambda m, x: m.repeat(x, 3, axis=1),
    "stretched": lambda m, x: m.broadcast_to(x[:, :1], (5, 2, 3, 4)),
    "joined": lambda m, x: m.concat([x, x[:, :2], x], axis=1),
    "many_joined": lambda m, x: m.concat([x] * 7, axis=-1),
    "fifty_joined": lambda m, x: m.concat([x if k % 3 else x[:2] for k in range(50)], axis=0),
    "fifty_stacked": lambda m, x: m.stack([m.flip(x, axis=k % 2) for k in range(50)], axis=1),
    "joined_flat": lambda m, x: m.concat([x, x], axis=None),
    "stacked": lambda m, x: m.stack([x, x + x], axis=1),
    "lower": lambda m, x: m.tril(x, k=-1),
    "upper": lambda m, x: m.triu(x, k=1),
    "last_part": lambda m, x: x[..., -1],
    "backwards": lambda m, x: x[::-1, 2:0:-1, ::3],
    "negative_start": lambda m, x: x[-1, :, -3:-1],
    "new_axes": lambda m, x: x[None, 1, :, None, 1:],
    "empty": lambda m, x: x[:, 2:1],
    "one": lambda m, x: x[1, 2, 3],
    "diagonal": lambda m, x: m.linalg.diagonal(x, offset=1) if m is np else m.diagonal(x, offset=1),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VIEWS)
def test_same_elements_elsewhere(name, dtype):
    x = numbers((2, 3, 4), dtype)
    f = VIEWS[name]
    want = np.diagonal(x, 1, -2, -1) if name == "diagonal" else f(np, x)
    exact(f(t, t.asarray(x)), want)


def test_what_lies_otherwise_in_memory():
    x = numbers((6, 8), "float32")
    for view in (x.T, x[::2, ::-1], x[1:4, 3:], np.asfortranarray(x), x[:, :0]):
        exact(t.asarray(view), view)
        exact(t.asarray(view).T + 1, view.T + 1)


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap", "reflect"])
def test_margins(mode):
    x = numbers((3, 4))
    widths = [(1, 2), (2, 0)]
    keywords = {"constant_values": 5} if mode == "constant" else {}
    exact(t.pad(t.asarray(x), widths, mode, **({"value": 5} if keywords else {})), np.pad(x, widths, mode, **keywords))


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric"])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("widths", [(0, 0), (1, 2), (4, 7), (0, 20)])
def test_margins_of_more_than_there_is(mode, n, widths):
    x = np.arange(n) + 3
    exact(t.pad(t.asarray(x), [widths], mode), np.pad(x, [widths], mode))


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric"])
def test_margins_of_extents_that_the_run_knows(mode):
    def padded():
        return t.pad(programs.input([-1], ti.f32), [(2, 3)], mode)

    program = programs.program(padded)
    for n in (1, 2, 4):
        x = numbers((n,), "float32")
        exact(program(x), np.pad(x, [(2, 3)], mode))
    with pytest.raises(ValueError, match="this mode copies elements of axis 0, which has 0"):
        program(np.zeros(0, "f")).numpy()


def test_splits():
    x = numbers((6, 4))
    for a, b in zip(t.split(t.asarray(x), 3), np.split(x, 3)):
        exact(a, b)
    for a, b in zip(t.split(t.asarray(x), [1, 3], axis=1), np.split(x, [1, 3], axis=1)):
        exact(a, b)
    assert [u.shape for u in t.unstack(t.asarray(x), axis=1)] == [(6,)] * 4


REDUCTIONS = ["sum", "prod", "min", "max", "mean", "var", "std", "any", "all", "count_nonzero"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, dtype):
    if name in ("mean", "var", "std") and not dtype.startswith("float"):
        return
    if name in ("min", "max") and dtype == "bool":
        return
    for shape in [(7,), (3, 4), (2, 1, 5), (2, 3, 4)]:
        x = numbers(shape, dtype, 1)
        axes = [None, 0, -1, *([(0, 1), (1, 0)] if len(shape) > 1 else []), *([(0, 2)] if len(shape) > 2 else [])]
        for axis in axes:
            for keepdims in (False, True):
                want = getattr(np, name)(x, axis=axis, keepdims=keepdims)
                close(getattr(t, name)(t.asarray(x), axis=axis, keepdims=keepdims), want, 1e-4)


def test_reductions_of_nothing():
    x = np.zeros((0, 3), "float32")
    exact(t.sum(t.asarray(x), axis=0), x.sum(axis=0))
    exact(t.prod(t.asarray(x), axis=0), x.prod(axis=0))
    exact(t.all(t.asarray(x)), True)
    exact(t.any(t.asarray(x)), False)
    with pytest.raises(ValueError, match=r"`max` of no elements: the shape is \(0, 3\)"):
        t.max(t.asarray(x), axis=0)


def test_nan_among_numbers():
    x = np.array([[1, np.nan, 2], [3, 4, 5]], "float32")
    exact(t.max(t.asarray(x), axis=1), x.max(axis=1))
    exact(t.min(t.asarray(x)), x.min())
    assert t.argmax(t.asarray(x)).item() == np.argmax(x)
    assert t.argmin(t.asarray(x), axis=1).tolist() == np.argmin(x, axis=1).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_the_extremes_are(dtype):
    for shape in [(9,), (3, 4), (2, 3, 4)]:
        x = numbers(shape, dtype, 2)
        for axis in [None, *range(len(shape))]:
            for name in ("argmax", "argmin"):
                want = getattr(np, name)(x, axis=axis, keepdims=True)
                got = getattr(t, name)(t.asarray(x), axis=axis, keepdims=True)
                assert got.shape == want.shape and got.tolist() == want.tolist()


def test_norms():
    x = numbers((3, 4), "float64")
    for order in (1, 2, 3, np.inf, -np.inf, 0):
        close(t.norm(t.asarray(x), axis=1, ord=order), np.linalg.norm(x, axis=1, ord=order), 1e-12)
    close(t.norm(t.asarray(x)), np.linalg.norm(x), 1e-12)
    close(t.median(t.asarray(x), axis=0), np.median(x, axis=0))
    close(t.median(t.asarray(x)), np.median(x))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_running_sums(dtype):
    x = numbers((3, 5), dtype)
    for axis in (0, 1, -1):
        close(t.cumulative_sum(t.asarray(x), axis=axis), np.cumsum(x, axis=axis))
        close(t.cumulative_prod(t.asarray(x), axis=axis), np.cumprod(x, axis=axis), 1e-4)
        close(t.cummax(t.asarray(x), axis=axis), np.maximum.accumulate(x, axis=axis))
        close(t.cummin(t.asarray(x), axis=axis), np.minimum.accumulate(x, axis=axis))
    got = t.cumulative_sum(t.asarray(x), axis=1, include_initial=True)
    close(got, np.concatenate([np.zeros((3, 1)), np.cumsum(x, axis=1)], axis=1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorting(dtype):
    for shape, axis in [((9,), 0), ((4, 5), 0), ((4, 5), 1), ((2, 0), 1), ((2, 3, 4), 1)]:
        x = numbers(shape, dtype, 3)
        exact(t.sort(t.asarray(x), axis=axis), np.sort(x, axis=axis))
        got = t.argsort(t.asarray(x), axis=axis)
        assert got.tolist() == np.argsort(x, axis=axis, kind="stable").tolist()
        exact(t.sort(t.asarray(x), axis=axis, descending=True), np.flip(np.sort(x, axis=axis), axis=axis))
    values, places = t.topk(t.asarray(numbers((7,), dtype, 4)), 3)
    assert values.tolist() == np.sort(numbers((7,), dtype, 4))[::-1][:3].tolist() and len(places) == 3


def test_searching():
    x = numbers((4, 5))
    for a, b in zip(t.nonzero(t.asarray(x)), np.nonzero(x)):
        assert a.tolist() == b.tolist()
    sorted_ = np.sort(numbers((12,), "float32"))
    for side in ("left", "right"):
        v = numbers((3, 4), "float32", 9)
        assert (
            t.searchsorted(t.asarray(sorted_), t.asarray(v), side=side).tolist()
            == np.searchsorted(sorted_, v, side=side).tolist()
        )
    got, want = t.unique_all(t.asarray(x)), np.unique_all(x)
    for a, b in zip(got, want):
        assert a.tolist() == b.tolist()
    assert t.isin(t.asarray(x), t.asarray([1, 2])).tolist() == np.isin(x, [1, 2]).tolist()


def test_computed_indices():
    x = numbers((4, 5, 6))
    i, j = np.array([[0, -1], [2, 3]]), np.array([1, -2])
    tx, ti_, tj = t.asarray(x), t.asarray(i), t.asarray(j)
    for key, want in [
        ((ti_,), x[i]),
        ((ti_, tj), x[i, j]),
        ((slice(None), tj), x[:, j]),
        ((slice(None), ti_, 2), x[:, i, 2]),
        ((ti_, slice(1, 4), tj), x[i, 1:4, j]),
        ((1, slice(None), tj), x[1, :, j]),
        ((Ellipsis, ti_), x[..., i]),
        ((None, ti_, slice(None), slice(0, 2)), x[None, i, :, 0:2]),
        ((tx > 3,), x[x > 3]),
        ((tx[:, 0, 0] > 0,), x[x[:, 0, 0] > 0]),
    ]:
        exact(tx[key], want)
    exact(t.take(tx, tj, axis=1), np.take(x, j, axis=1))
    order = np.argsort(x, axis=2)
    exact(t.take_along_axis(tx, t.asarray(order), axis=2), np.take_along_axis(x, order, axis=2))


def test_parts_are_replaced():
    for key, value in [
        (1, 7),
        ((slice(None), 2), 5),
        ((slice(None, None, -1), slice(1, 4)), np.arange(3)),
        ((slice(0, 0),), 1),
        (np.array([0, 2]), 9),
        ((slice(None), np.array([0, 2])), np.arange(8).reshape(4, 2)),
        ((np.array([0, 1]), np.array([2, 3])), 4),
        (Ellipsis, 3),
    ]:
        want = numbers((4, 5))
        got = t.asarray(want)
        old = got
        got = t.asarray(got.numpy())
        as_tensor = (
            tuple(t.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
            if isinstance(key, tuple)
            else (t.asarray(key) if isinstance(key, np.ndarray) else key)
        )
        got[as_tensor] = value if isinstance(value, int) else t.asarray(value)
        exact(old, want)
        want = want.copy()
        want[key] = value
        exact(got, want)
    x = t.asarray(numbers((4, 5)))
    x[x < 0] = 0
    exact(x, np.maximum(numbers((4, 5)), 0))


def test_scatters():
    i = np.array([0, 3, 0, 1, 0])
    v = np.array([1, 2, 3, 4, 5], "int32")
    for how, f in [("add", np.add), ("min", np.minimum), ("max", np.maximum), ("mul", np.multiply)]:
        want = np.full(5, 2, "int32")
        f.at(want, i, v)
        exact(t.scatter(t.full((5,), 2), t.asarray(i), t.asarray(v), how=how), want)
    got = t.scatter(t.zeros((2,), dtype=ti.i32).outside("zero"), t.asarray([0, 5, -9]), 1, how="add")
    assert got.tolist() == [1, 0]


def test_indices_outside():
    x = t.arange(4)
    i = t.asarray([-3, 1, 6])
    assert t.gather(x.outside("clamp"), i).tolist() == [0, 1, 3]
    assert t.gather(x.outside("wrap"), i).tolist() == [1, 1, 2]
    assert t.gather(x.outside("zero"), i).tolist() == [0, 1, 0]
    with pytest.raises(IndexError):
        t.gather(x, i).numpy()
    with pytest.raises(IndexError, match="index 4 is outside axis 0 with 4 elements"):
        x[4]


def test_products():
    for dtype in ("float32", "float64", "int32"):
        for left, right in [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)),
                            ((3, 0), (0, 2))]:  # fmt: skip
            a, b = numbers(left, dtype), numbers(right, dtype, 1)
            close(t.asarray(a) @ t.asarray(b), a @ b, 1e-4)
    a, b = numbers((3, 4, 5), "float64"), numbers((4, 3, 2), "float64", 1)
    close(t.tensordot(t.asarray(a), t.asarray(b), axes=([1, 0], [0, 1])), np.tensordot(a, b, axes=([1, 0], [0, 1])))
    for equation in ("ijk,jil->kl", "ijk->ki", "ijk,jil->ijkl", "ijk->", "...k->...", "ijk,jim->mk"):
        operands = [a, b] if "," in equation else [a]
        close(t.einsum(equation, *map(t.asarray, operands)), np.einsum(equation, *operands))
    square = numbers((4, 4), "float64")
    close(t.einsum("ii->i", t.asarray(square)), np.diagonal(square))
    close(t.trace(t.asarray(square)), np.trace(square))
    v, w = numbers((5, 3), "float64"), numbers((5, 3), "float64", 1)
    close(t.cross(t.asarray(v), t.asarray(w)), np.cross(v, w))
    close(t.vecdot(t.asarray(v), t.asarray(w)), (v * w).sum(axis=1))


def test_creation():
    exact(t.arange(3, 20, 4), np.arange(3, 20, 4, dtype="int32"))
    exact(t.arange(5, 0, -2), np.arange(5, 0, -2, dtype="int32"))
    close(t.arange(0.0, 1.0, 0.1), np.arange(0, 1, 0.1))
    close(t.linspace(0, 1, 7), np.linspace(0, 1, 7))
    close(t.linspace(2, 1, 5, endpoint=False), np.linspace(2, 1, 5, endpoint=False))
    exact(t.eye(3, 4, k=1), np.eye(3, 4, k=1, dtype="float32"))
    for a, b in zip(t.meshgrid(t.arange(2), t.arange(3)), np.meshgrid(np.arange(2), np.arange(3))):
        exact(a, b.astype("int32"))
    exact(t.full((2, 0), 3), np.full((2, 0), 3, dtype="int32"))


def test_random_numbers():
    g = t.random.Generator(3)
    x = g.rand(10000).numpy()
    assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.02 and abs(x.var() - 1 / 12) < 0.005
    n = g.randn(10000).numpy()
    assert abs(n.mean()) < 0.05 and abs(n.std() - 1) < 0.03
    k = g.integers(-3, 4, (5000,)).numpy()
    assert sorted(set(k.tolist())) == list(range(-3, 4))
    assert sorted(g.permutation(50).tolist()) == list(range(50))
    # The published vector of Threefry-2x32 with 20 rounds: key and counter zero.
    key = t.asarray(np.zeros(2, "uint32"))
    assert t.random.bits(key, (1,)).tolist() == [0x6B200159]


def test_arrays_of_the_programs_own():
    a = ti.ndarray(ti.f32, (3, 2))
    a.fill(2)
    x = t.asarray(a)
    assert (x * 3).tolist() == [[6, 6]] * 3
    b = (x + 1).to_ndarray()

    @ti.kernel
    def total(b: ti.types.ndarray(dtype=ti.f32, ndim=2)) -> ti.f32:
        s = 0.0
        for i in ti.grouped(b):
            s += b[i]
        return s

    assert total(b) == 18


def test_what_nobody_holds_is_dropped():
    gc.collect()
    # Other tests in this process may hold some.
    alive = _native.tensor_counts()[0]
    x = t.zeros((100,))
    for k in range(20000):
        x = x * 0.5 + 1
        if k % 500 == 0:
            x.realize()
    gc.collect()
    buffers, statements, held, _ = _native.tensor_counts()
    assert buffers < 10000 + 2 * alive and statements < 10000 + 2 * alive
    before = ti._native.live_bytes()
    for _ in range(40):
        x = t.full((1 << 18,), 1.0) + t.asarray(np.ones(1 << 18, "float32"))
        x.realize()
    assert ti._native.live_bytes() - before < 1 << 27


def test_equal_programs_are_made_once():
    def step(x):
        return (x * 2 + 1).sum(axis=0)

    step(t.asarray(np.ones((5, 6), "float32"))).realize()
    made = _native.tensor_counts()[3]
    for k in range(5):
        step(t.asarray(np.full((5, 6), k, "float32"))).realize()
    assert _native.tensor_counts()[3] == made


def test_equal_operations_are_one():
    x = t.asarray(numbers((4, 4)))
    x.realize()
    n = _native.tensor_counts()[1]
    a, b = (x + x) * x, (x + x) * x
    assert _native.tensor_counts()[1] == n + 2
    exact(a, b)


WRONG = {
    "extents": (lambda x: x + t.zeros((4,)), ValueError, r"`add`: axis 1 of operand 0 has 3 elements, axis 0 of operand 1 "
                r"has 4; the shapes are \(2, 3\) and \(4,\)"),
    "axis": (lambda x: x.sum(axis=2), IndexError, "`sum`: there is no axis 2: the tensor has axes 0 to 1"),
    "twice": (lambda x: x.sum(axis=(0, -2)), ValueError, "`sum`: axis -2 is named twice"),
    "reshape": (lambda x: x.reshape(4, 2), ValueError, r"`reshape`: \(2, 3\) has 6 elements, \(4, 2\) has 8"),
    "matmul": (lambda x: x @ x, ValueError, "`matmul`: axis 1 of operand 0 has 3 elements, axis 0 of operand 1 has 2"),
    "concat": (lambda x: t.concat([x, x.T]), ValueError, "`concat`: axis 1 of operand 0 has 3 elements, axis 1 of "
               "operand 1 has 2"),
    "squeeze": (lambda x: x.squeeze(0), ValueError, "`squeeze`: axis 0 has 2 elements, not 1"),
    "types": (lambda x: x & x, TypeError, "`and` takes integers, not `f32` and `f32`"),
    "truth": (lambda x: bool(x), ValueError, "is ambiguous"),
    "float index": (lambda x: x[x], IndexError, "an index is an integer, not `f32`"),
    "too many": (lambda x: x[0, 0, 0], IndexError, "3 indices for a tensor with 2 axes"),
    "lost": (lambda x: t.asarray([1]).__setitem__(0, t.asarray(1.5)), TypeError, "elements of `i32` take no `f32`"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    f, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        f(t.zeros((2, 3)))


def test_loops_over_rows_are_compiled_a_few_times():
    x = np.arange(40 * 300, dtype="f").reshape(40, 300)
    rows = t.asarray(x)
    made = _native.tensor_counts()[3]
    for k in range(40):
        assert np.array_equal((rows[k] * 2).numpy(), x[k] * 2)
        found = rows[k, 1:] - rows[k, :-1] * rows[7, 1:]
        assert np.array_equal(found.numpy(), x[k, 1:] - x[k, :-1] * x[7, 1:])
    # Two for their numbers, one for all others; where both rows are one, another two.
    assert _native.tensor_counts()[3] - made <= 8


def test_loops_over_windows_are_compiled_a_few_times():
    x = np.arange(500, dtype="i")
    all_ = t.asarray(x)
    made = _native.tensor_counts()[3]
    for k in range(60):
        found = all_[k : k + 400] + all_[k + 1 : k + 401]
        assert np.array_equal(found.numpy(), x[k : k + 400] + x[k + 1 : k + 401])
    assert _native.tensor_counts()[3] - made <= 4


#: What a loop over `k` reads: other extents at each turn.
WINDOWS = {
    "from the front": lambda m, x, k: x[:k].sum(),
    "from the end": lambda m, x, k: x[k:].max(),
    "every second": lambda m, x, k: x[k::2] * 2,
    "turned": lambda m, x, k: x[k::-1] + x[0],
    "means": lambda m, x, k: m.mean(x[3:k]) - m.var(x[:k]),
    "rows of a square": lambda m, x, k: (x[:k, None] * x[None, :k]).sum(axis=0),
    "two extents": lambda m, x, k: m.concat([x[:k], x[k:], x[:k]]),
    "shapes": lambda m, x, k: m.flip(x[: 2 * k].reshape(k, 2), axis=0),
    "made numbers": lambda m, x, k: m.arange(k) * 2 + m.ones(k)[::-1],
}


@pytest.mark.parametrize("name", WINDOWS)
def test_loops_over_other_extents_are_compiled_a_few_times(name):
    x = numbers((80,), "int32").astype("float64")
    f = WINDOWS[name]
    held = t.asarray(x)
    made = _native.tensor_counts()[3]
    for k in range(6, 39):
        expected = np.asarray(f(np, x, k))
        got = f(t, held, k)
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    # Two for their numbers, one for all others, and where extents are equal to others by chance.
    assert _native.tensor_counts()[3] - made <= 8, name


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (3, 4), (2, 1, 5)])
def test_what_is_turned_round_by_any_number(shape):
    """The index is turned without a division: the same at every shift, by the axis's end, and of fixed and unknown extents."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for shift in (0, 1, -1, 4, 5, -7, 2**31 - 1, -(2**31) + 1):
        for axis in range(len(shape)):
            expected = np.roll(x, shift, axis)

            def made(n, axis, shift):
                given = ti.tensor.programs.input([n] * len(shape) if n else list(shape), ti.f32)
                i = given.index(axis)
                key = [given.index(k) for k in range(len(shape))]
                key[axis] = i - shift % max(shape[axis], 1)
                return ti.tensor.roll(given, shift, axis), given.outside("wrap")[tuple(key)]

            for n in (-1, 0):
                rolled, wrapped = ti.tensor.programs.program(functools.partial(made, n, axis, shift))(x)
                assert np.array_equal(rolled.numpy(), expected) and np.array_equal(wrapped.numpy(), expected)


#: What takes numbers of elements, and how it names the argument that has one below zero.
COUNTED = {
    "topk": (lambda x: t.topk(x, -1), "`topk`: `k` is -1, below zero"),
    "pad": (lambda x: t.pad(x, ((0, 1), (-1, 0))), "`pad`: `widths` has -1, below zero"),
    "split": (lambda x: t.split(x, -1), "`split`: `sections` must be at least 1, not -1"),
    "tile": (lambda x: t.tile(x, (2, -1)), "`tile`: `repetitions` has -1, below zero"),
    "repeat": (lambda x: t.repeat(x, -1, axis=0), "`repeat`: `repeats` is -1, below zero"),
    "repeat each": (lambda x: t.repeat(x, [2, -1, 1], axis=0), "`repeat`: `repeats` contains -1, below zero"),
    "broadcast_to": (lambda x: t.broadcast_to(x, (-1, 3, 4)), "`broadcast_to`: `shape` has -1, below zero"),
    "eye": (lambda x: t.eye(-2), "`eye`: `n_rows` is -2, below zero"),
    "eye wide": (lambda x: t.eye(2, -1), "`eye`: `n_cols` is -1, below zero"),
    "zeros": (lambda x: t.zeros(-1), "`zeros`: `shape` is -1, below zero"),
    "ones": (lambda x: t.ones((2, np.int64(-1))), "`ones`: `shape` has -1, below zero"),
    "empty": (lambda x: t.empty([-1]), "`empty`: `shape` has -1, below zero"),
    "full": (lambda x: t.full((-1, 2), 1 + 1j), "`full`: `shape` has -1, below zero"),
    "iota": (lambda x: t.iota((3, -1)), "`iota`: `shape` has -1, below zero"),
    "linspace": (lambda x: t.linspace(0, 1, -1), "`linspace`: `num` is -1, below zero"),
    "rand": (lambda x: t.random.rand(2, -1), "`rand`: `shape` has -1, below zero"),
    "randn": (lambda x: t.random.randn(-1), "`randn`: `shape` has -1, below zero"),
    "integers": (lambda x: t.random.integers(0, 3, (-1,)), "`integers`: `shape` has -1, below zero"),
    "permutation": (lambda x: t.random.permutation(-1), "`permutation`: `n` is -1, below zero"),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_number_of_elements_below_zero_names_the_function_and_the_argument(name):
    make, text = COUNTED[name]
    with pytest.raises(ValueError, match=f"^{text}$"):
        make(t.zeros((3, 4)))
    with pytest.raises(ValueError, match=f"^{text}$"):
        programs.program(lambda: make(programs.input([-1, 4], ti.f32))).compile()


def test_numbers_of_elements_below_zero_in_words_of_programs():
    def at_points():
        with programs.kernel([2, -3]):
            pass

    for make, text in (
        (lambda: programs.buffer([2, -1]), "`buffer`: `shape` has -1, below zero"),
        (lambda: programs.input([-1, -3]), "`input`: `shape` has -3, below zero"),
        (lambda: programs.indices([2, -3]), "`indices`: `shape` has -3, below zero"),
        (lambda: programs.assert_tensor(t.zeros(2), [-2]), "`assert_tensor`: `shape` has -2, below zero"),
        (at_points, "`kernel`: `shape` has -3, below zero"),
    ):
        with pytest.raises(ValueError, match=f"^{text}$"):
            programs.program(make).compile()


def test_a_number_of_times_for_each_element_in_programs():
    @programs.program
    def made():
        x, y = programs.input([-1], ti.i32), programs.input([2, 3], ti.i32)
        return t.repeat(x, [2, 0, 1]), t.repeat(y, np.array([1, 2]), axis=0), t.repeat(x, [2])

    x, y = np.arange(3, dtype=np.int32), np.arange(6, dtype=np.int32).reshape(2, 3)
    first, second, third = (out.numpy() for out in made(x, y))
    assert np.array_equal(first, np.repeat(x, [2, 0, 1])) and np.array_equal(third, np.repeat(x, 2))
    assert np.array_equal(second, np.repeat(y, [1, 2], axis=0))
    with pytest.raises(ValueError, match="axis 0 has 4 elements where 3 are needed"):
        made(np.arange(4, dtype=np.int32), y)
    with pytest.raises(ValueError, match="`repeat`: 3 counts for 2 elements along axis 0"):
        t.repeat(y, [1, 2, 3], axis=0)
