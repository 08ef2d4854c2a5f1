"""The base operations of fl::Tensor by their names, each once more against NumPy; the names of the Array API."""

import re

import aerogel as ti
import numpy as np
import pytest
from aerogel import tensor as t
from aerogel import xp
from aerogel.tensor import _elsewhere


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


def floats(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 2, shape).astype(np.float32)


X, Y = floats(3, 4), floats(3, 4, seed=1)
I, J = (X * 9).astype(np.int32), (Y * 5).astype(np.int32)

#: The name there: what it is here, and in NumPy.
OPERATIONS = {
    "fromScalar": (lambda: t.full((), 2.5), lambda: np.float32(2.5)),
    "full": (lambda: t.full((2, 3), 7), lambda: np.full((2, 3), 7)),
    "identity": (lambda: t.identity(4), lambda: np.identity(4)),
    "arange": (lambda: t.arange(2, 9, 3), lambda: np.arange(2, 9, 3)),
    "iota": (lambda: t.tile(t.iota((3, 4), 1), (2, 1)), lambda: np.tile(np.indices((3, 4))[1], (2, 1))),
    "reshape": (lambda: t.reshape(X, (2, 6)), lambda: X.reshape(2, 6)),
    "transpose": (lambda: t.transpose(X), lambda: X.T),
    "tile": (lambda: t.tile(X, (2, 3)), lambda: np.tile(X, (2, 3))),
    "concatenate": (lambda: t.concatenate([X, Y], axis=1), lambda: np.concatenate([X, Y], axis=1)),
    "nonzero": (lambda: t.nonzero(I > 4)[0], lambda: np.nonzero(I > 4)[0]),
    "pad": (lambda: t.pad(X, ((1, 2), (0, 1))), lambda: np.pad(X, ((1, 2), (0, 1)))),
    "exp": (lambda: t.exp(X), lambda: np.exp(X)),
    "log": (lambda: t.log(X), lambda: np.log(X)),
    "negative": (lambda: t.negative(X), lambda: -X),
    "logicalNot": (lambda: t.logical_not(I > 3), lambda: ~(I > 3)),
    "log1p": (lambda: t.log1p(X), lambda: np.log1p(X)),
    "sin": (lambda: t.sin(X), lambda: np.sin(X)),
    "cos": (lambda: t.cos(X), lambda: np.cos(X)),
    "sqrt": (lambda: t.sqrt(X), lambda: np.sqrt(X)),
    "tanh": (lambda: t.tanh(X), lambda: np.tanh(X)),
    "floor": (lambda: t.floor(X * 9), lambda: np.floor(X * 9)),
    "ceil": (lambda: t.ceil(X * 9), lambda: np.ceil(X * 9)),
    "rint": (lambda: t.round(X * 9), lambda: np.rint(X * 9)),
    "absolute": (lambda: t.abs(-X), lambda: X),
    "sigmoid": (lambda: t.sigmoid(X), lambda: 1 / (1 + np.exp(-X))),
    "erf": (lambda: t.erf(t.asarray([0.5, 1.5])), lambda: np.array([0.5204998778, 0.9661051465])),
    "flip": (lambda: t.flip(X, axis=1), lambda: np.flip(X, 1)),
    "clip": (lambda: t.clip(X, 0.5, 1.0), lambda: np.clip(X, 0.5, 1.0)),
    "roll": (lambda: t.roll(X, 2, axis=1), lambda: np.roll(X, 2, axis=1)),
    "isnan": (lambda: t.isnan(X), lambda: np.isnan(X)),
    "isinf": (lambda: t.isinf(X), lambda: np.isinf(X)),
    "sign": (lambda: t.sign(X - 1), lambda: np.sign(X - 1)),
    "tril": (lambda: t.tril(X), lambda: np.tril(X)),
    "triu": (lambda: t.triu(X), lambda: np.triu(X)),
    "where": (lambda: t.where(I > 4, X, Y), lambda: np.where(I > 4, X, Y)),
    "topk": (lambda: t.topk(X, 2).values, lambda: np.sort(X)[:, ::-1][:, :2]),
    "sort": (lambda: t.sort(X), lambda: np.sort(X)),
    "argsort": (lambda: t.argsort(X), lambda: np.argsort(X)),
    "add": (lambda: t.add(X, Y), lambda: X + Y),
    "sub": (lambda: t.subtract(X, Y), lambda: X - Y),
    "mul": (lambda: t.multiply(X, Y), lambda: X * Y),
    "div": (lambda: t.divide(X, Y), lambda: X / Y),
    "eq": (lambda: t.equal(I, J), lambda: I == J),
    "neq": (lambda: t.not_equal(I, J), lambda: I != J),
    "lessThan": (lambda: t.less(I, J), lambda: I < J),
    "lessThanEqual": (lambda: t.less_equal(I, J), lambda: I <= J),
    "greaterThan": (lambda: t.greater(I, J), lambda: I > J),
    "greaterThanEqual": (lambda: t.greater_equal(I, J), lambda: I >= J),
    "logicalOr": (lambda: t.logical_or(I > 3, J > 3), lambda: (I > 3) | (J > 3)),
    "logicalAnd": (lambda: t.logical_and(I > 3, J > 3), lambda: (I > 3) & (J > 3)),
    "mod": (lambda: t.remainder(I, J + 1), lambda: I % (J + 1)),
    "bitwiseAnd": (lambda: t.bitwise_and(I, J), lambda: I & J),
    "bitwiseOr": (lambda: t.bitwise_or(I, J), lambda: I | J),
    "bitwiseXor": (lambda: t.bitwise_xor(I, J), lambda: I ^ J),
    "lShift": (lambda: t.bitwise_left_shift(I, J), lambda: I << J),
    "rShift": (lambda: t.bitwise_right_shift(I, J), lambda: I >> J),
    "minimum": (lambda: t.minimum(X, Y), lambda: np.minimum(X, Y)),
    "maximum": (lambda: t.maximum(X, Y), lambda: np.maximum(X, Y)),
    "power": (lambda: t.pow(X, Y), lambda: X**Y),
    "matmul": (lambda: t.matmul(X, t.transpose(Y)), lambda: X @ Y.T),
    "amin": (lambda: t.min(X, axis=0), lambda: X.min(0)),
    "amax": (lambda: t.max(X, axis=0), lambda: X.max(0)),
    "min": (lambda: t.argmin(X, axis=1), lambda: X.argmin(1)),
    "max": (lambda: t.argmax(X, axis=1), lambda: X.argmax(1)),
    "sum": (lambda: t.sum(X, axis=1), lambda: X.sum(1)),
    "cumsum": (lambda: t.cumulative_sum(X, axis=0), lambda: X.cumsum(0)),
    "argmax": (lambda: t.argmax(X), lambda: X.argmax()),
    "argmin": (lambda: t.argmin(X), lambda: X.argmin()),
    "mean": (lambda: t.mean(X, axis=0), lambda: X.mean(0)),
    "median": (lambda: t.median(X, axis=1), lambda: np.median(X, axis=1)),
    "var": (lambda: t.var(X, axis=1, correction=1), lambda: X.var(1, ddof=1)),
    "std": (lambda: t.std(X, axis=1), lambda: X.std(1)),
    "norm": (lambda: t.norm(X, axis=1, ord=3), lambda: np.linalg.norm(X, axis=1, ord=3)),
    "countNonzero": (lambda: t.count_nonzero(I > 4, axis=1), lambda: np.count_nonzero(I > 4, axis=1)),
    "any": (lambda: t.any(I > 14, axis=0), lambda: (I > 14).any(0)),
    "all": (lambda: t.all(I > 1, axis=0), lambda: (I > 1).all(0)),
}

#: What is no operation on numbers, and what stands for it.
OTHERS = {
    "backendType": "device", "eval": "realize", "supportsDataType": "asarray", "getMemMgrInfo": "nbytes",
    "setMemMgrLogStream": "", "setMemMgrLoggingEnabled": "", "setMemMgrFlushInterval": "",
    "setSeed": "random.seed", "randn": "random.randn", "rand": "random.rand", "print": "__repr__",
}  # fmt: skip


def test_all_are_here():
    assert len(OPERATIONS) + len(OTHERS) == 87


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name):
    ours, numpys = OPERATIONS[name]
    got, want = np.asarray(ours()), np.asarray(numpys())
    assert got.shape == want.shape
    np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=2e-5, atol=1e-6)


STANDARD = """
e inf nan newaxis pi arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu
zeros zeros_like astype broadcast_arrays broadcast_to broadcast_shapes can_cast finfo iinfo isdtype result_type bool int8 int16
int32 int64 uint8 uint16 uint32 uint64 float32 float64 abs acos acosh add asin asinh atan atan2 atanh bitwise_and
bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip copysign cos cosh divide equal exp expm1
floor floor_divide greater greater_equal hypot isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and
logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow reciprocal remainder round
sign signbit sin sinh square sqrt subtract tan tanh trunc take take_along_axis matmul matrix_transpose tensordot vecdot concat
expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack argmax argmin count_nonzero nonzero
searchsorted where isin unique_all unique_counts unique_inverse unique_values argsort sort cumulative_prod cumulative_sum max mean
min prod std sum var all any diff __array_namespace_info__ __array_api_version__ linalg
""".split()


def test_names_of_the_standard():
    assert [name for name in STANDARD if not hasattr(xp, name)] == []
    x = xp.asarray([1.0, 2.0])
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2025.12") is xp
    with pytest.raises(ValueError, match="version '1999' of the Array API is not supported"):
        x.__array_namespace__(api_version="1999")


def test_types_of_the_standard():
    assert xp.result_type(xp.int8, xp.uint8) is xp.int16
    assert xp.result_type(xp.asarray([1.0]), 2) is xp.float32
    assert xp.can_cast(xp.int8, xp.int32) and not xp.can_cast(xp.int32, xp.int8)
    assert xp.isdtype(xp.uint8, "integral") and not xp.isdtype(xp.bool, "numeric")
    assert xp.finfo(xp.float32).eps == np.finfo("float32").eps
    assert (xp.iinfo(xp.int8).min, xp.iinfo(xp.uint16).max) == (-128, 65535)
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] is xp.float32
    assert set(info.dtypes(kind="bool")) == {"bool"}
    x = floats(5)
    np.testing.assert_allclose(xp.diff(xp.asarray(x)).numpy(), np.diff(x), rtol=1e-5)
    m = floats(3, 3)
    for order in ("fro", 1, -1, np.inf, -np.inf):
        np.testing.assert_allclose(
            xp.linalg.matrix_norm(xp.asarray(m), ord=order).item(), np.linalg.norm(m, order), 1e-5
        )
    np.testing.assert_allclose(
        xp.linalg.matrix_power(xp.asarray(m), 5).numpy(), np.linalg.matrix_power(m, 5), rtol=1e-4
    )


def test_axes_by_place():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    t = ti.tensor.asarray(x)
    T = ti.tensor
    for name in ("argmax", "argmin", "sort", "argsort", "flip", "expand_dims", "any", "all", "cumulative_sum"):
        expected = getattr(np, name)(x, 1) if name != "cumulative_sum" else np.cumsum(x, 1)
        assert np.array_equal(getattr(T, name)(t, 1).numpy(), expected), name
    assert np.array_equal(T.roll(t, 1, 0).numpy(), np.roll(x, 1, 0))
    assert np.array_equal(T.stack([t, t], 1).numpy(), np.stack([x, x], 1))
    assert np.array_equal(T.concat([t, t], 1).numpy(), np.concatenate([x, x], 1))
    assert np.array_equal(T.take(t, [0, 2], 1).numpy(), np.take(x, [0, 2], 1))
    assert np.array_equal(T.tril(t, -1).numpy(), np.tril(x, -1))
    assert np.array_equal(T.repeat(t, 2, 0).numpy(), np.repeat(x, 2, 0))
    assert T.zeros(2, ti.i32).dtype is ti.i32 and T.full(2, 1, ti.i8).dtype is ti.i8
    assert T.asarray([1], dtype="float32").dtype is ti.f32 and T.arange(0, 5, 1, ti.f32).dtype is ti.f32
    assert [w.tolist() for w in T.where(t > 4)] == [[1], [2]]


def test_methods_of_numpy():
    x = np.array([[3.0, -1.5], [2.25, 8.0]], dtype=np.float32)
    t = ti.tensor.asarray(x)
    for name, args in {
        "argmax": (0,), "any": (0,), "all": (1,), "copy": (), "clip": (0, 2.5), "round": (1,), "argsort": (0,),
        "cumsum": (0,), "cumprod": (), "dot": (x,), "ravel": (), "swapaxes": (0, 1), "take": ([1, 2],), "transpose": (),
        "squeeze": (), "diagonal": (), "trace": (), "repeat": (2, 1), "sum": (0,), "mean": (), "std": (1,), "var": (),
    }.items():  # fmt: skip
        assert np.allclose(getattr(t, name)(*args).numpy(), getattr(x, name)(*args)), name
    assert t.nbytes == x.nbytes and t.itemsize == 4
    assert np.array_equal(t.sort(0).numpy(), np.sort(x, 0)) and t.tolist() == x.tolist()
    assert [i.tolist() for i in t.nonzero()] == [i.tolist() for i in x.nonzero()]
    both = divmod(t, 2)
    assert np.array_equal(both[0].numpy(), x // 2) and np.array_equal(both[1].numpy(), x % 2)
    t.fill(4)
    assert t.tolist() == [[4, 4], [4, 4]]
    y = ti.tensor.zeros((2, 1, 3))
    assert y.permute(np.int64(2), np.int64(0), np.int64(1)).shape == (3, 2, 1)
    assert y.squeeze(np.int64(1)).shape == (2, 3) == y.squeeze().shape


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "std", "var", "argmax", "any", "all"])
def test_functions_of_numpy_find_methods(name):
    x = np.array([[3.0, -1.5], [2.25, 8.0]], dtype=np.float32)
    assert np.allclose(getattr(np, name)(ti.tensor.asarray(x)), getattr(x, name)())


def test_copies_pickles_and_formats():
    import copy
    import pickle

    t = ti.tensor.asarray([1.0, 2.5]).outside("wrap")
    for other in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        other[0] = 9
        assert other.tolist() == [9, 2.5] and t.tolist() == [1, 2.5]
        assert ti.tensor.gather(other, ti.tensor.asarray([3])).item() == 2.5
    assert f"{t[1]:.2f}" == "2.50" and round(t[1]) == 2
    with pytest.raises(TypeError):
        f"{t:.2f}"


def traced(f):
    """Calls a function with the words of programs and an input, in a program."""
    from aerogel.tensor import programs as p

    p.program(lambda: f(p, p.input([-1], ti.f32)))([1.0])


WORDS = {
    "extents": (lambda: ti.tensor.zeros(2.0), TypeError, "`shape` takes integers"),
    "axes": (lambda: ti.tensor.sum([1], axis=1.0), TypeError, "takes integers"),
    "reshape": (lambda: ti.tensor.arange(2).reshape(2.0), TypeError, "`reshape` takes integers"),
    "large": (lambda: ti.tensor.zeros(2**64), ValueError, "at most 2147483647 elements"),
    "huge": (lambda: ti.tensor.zeros((2**20,) * 3), MemoryError, "too large for any memory"),
    "times": (lambda: ti.tensor.tile([1], 1.5), TypeError, r"`repetitions` takes integers, not \[1.5\]"),
    "how": (
        lambda: ti.tensor.accum("i =>", [1], how="mean"),
        ValueError,
        '"mean"; there are add, mul, min, max, and, or',
    ),
    "loop": (
        lambda: traced(lambda p, x: p.loop()),
        TypeError,
        r"`loop` takes the number of iterations.* `loop\(10\)`.*`break_loop\(\)`",
    ),
    "points": (
        lambda: traced(lambda p, x: p.kernel(x).__enter__()),
        ValueError,
        "for the shape of a tensor write `x.shape`",
    ),
    "flat": (lambda: t.argmax(t.zeros((50000, 50000))), ValueError, "`argmax`: the shape is .* indices go up to"),
    "gradients": (lambda: t.jacrev, AttributeError, "write `jacobian"),
    "chance": (lambda: t.random.shuffle, AttributeError, r"write `x\[random.permutation\(n\)\]`"),
    "repeat": (lambda: ti.tensor.repeat([1], 2.5), TypeError, "takes integers"),
    "word": (lambda: ti.tensor.full(2, "a"), TypeError, "takes a number"),
    "words": (lambda: ti.tensor.asarray([[1, "a"]]), TypeError, "are numbers, not list with 'a' in it"),
    "ragged": (lambda: ti.tensor.asarray([[1, 2], [3]]), ValueError, "have different shapes, .*: pad them, or make"),
    "steps": (lambda: ti.tensor.linspace(0, 1, 2.5), TypeError, "`linspace`: `num` takes an integer"),
    "sums": (lambda: ti.tensor.cumulative_sum([1], axis=3), IndexError, "`cumulative_sum`"),
    "stack": (lambda: ti.tensor.stack([[1]], axis=3), IndexError, "`stack`"),
    "ranks": (lambda: ti.tensor.concat([[1], [[1]]]), ValueError, "operand 1 has 2 axes"),
    "dtype": (lambda: __import__("aerogel.xp").xp.isdtype("i32", "none"), ValueError, "no dtype kind"),
}


@pytest.mark.parametrize("name", WORDS)
def test_what_cannot_be_says_so(name):
    f, kind, message = WORDS[name]
    with pytest.raises(kind, match=message):
        f()


def expression(module, name):
    """What the message about a name says is to be written."""
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    text = str(caught.value)
    assert re.fullmatch(rf".* has no attribute '{name}': .*`[^`]+`", text), text
    return text.split("`")[1]


def numbers_of(array):
    """Names that messages use."""
    first, second = np.array([[0.25, 0.5], [0.75, 1.0]], np.float32), np.array([[0.5, 1.0], [1.5, 0.125]], np.float32)
    return {
        "x": array(first), "y": array(second), "i": array(np.array([1, 0])), "a": array(first[0]), "b": array(first[1]),
        "bins": array(first[0]), "mask": array(first > 0.5), "values": array(second), "n": 2, "low": 0.3, "high": 0.6,
        "value": 3, "shape": (4, 1), "axes": (1, 0), "dtype": ti.f64, "ti": ti,
    }  # fmt: skip


@pytest.mark.parametrize("name", _elsewhere.FUNCTIONS)
def test_functions_of_other_packages_are_named(name):
    ours = expression(t, name)
    assert ours == _elsewhere.FUNCTIONS[name]
    given = numbers_of(t.asarray)
    if name == "expand":
        given["shape"] = (3, 2, 2)
    made = eval(ours, {**vars(t), **given})
    # NumPy's, of the same operands.
    names = re.findall(r"\b(x|y|i|n|a|b|axes|mask|bins|values|value|low|high|shape)\b", ours)
    operands = list(dict.fromkeys(names))
    if hasattr(np, name) and set(operands) <= set("xyi") and name not in ("average", "range", "ndarray", "silu"):
        theirs = numbers_of(np.asarray)
        in_lists = name in ("hstack", "vstack", "dstack")
        arguments = [[theirs[k] for k in operands]] if in_lists else [theirs[k] for k in operands]
        arguments += {"swapaxes": [0, 1]}.get(name, [])
        with np.errstate(all="ignore"):
            want = getattr(np, name)(*arguments)
        np.testing.assert_allclose(np.asarray(made).astype(float), np.asarray(want).astype(float), rtol=1e-5)


@pytest.mark.parametrize("name", _elsewhere.METHODS)
def test_methods_of_other_packages_are_named(name):
    x = t.asarray([[0.25, 0.5], [0.75, 1.0]])
    ours = expression(x, name)
    given = numbers_of(t.asarray)
    if name == "expand":
        given["shape"] = (3, 2, 2)
    exec(ours, {**given, "ti": ti})


def test_names_that_are_elsewhere_in_the_package():
    x = t.asarray([[0.25, 0.5]])
    for where, name, ours in (
        (t, "float32", "ti.f32"),
        (t, "inv", "ti.tensor.linalg"),
        (t, "randn", "ti.tensor.random"),
        (t, "shape", "x.shape"),
        (t, "argwhere_", None),
        (x, "exp", "ti.tensor.exp"),
        (x, "matmul", "ti.tensor.matmul"),
        (t, "hstack", "ti.xp.hstack"),
        (t, "erfc", "ti.special.erfc"),
        (t, "gelu", "aerogel.nn.functional.gelu"),
        (x, "unique", "ti.xp.unique"),
        (x, "fourier", None),
    ):
        with pytest.raises(
            AttributeError, match=f"has no attribute '{name}'" + ("$" if ours is None else "")
        ) as caught:
            getattr(where, name)
        assert ours is None or f"`{ours}" in str(caught.value)
    assert not hasattr(x, "__array_struct__") and not hasattr(x, "to_list")
