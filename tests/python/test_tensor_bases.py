"""fl::Tensor's base operations over all types, shapes with zeros and ones, and strides, against NumPy."""

import warnings

import aerogel as ti
import numpy as np
import pytest
from aerogel import tensor as t

FLOATS = ["float16", "float32", "float64"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
ALL = [*FLOATS, *INTS, "bool"]
NUMBERS = [*FLOATS, *INTS]
BITS = [*INTS, "bool"]

#: A way to lay out an array of each shape.
LAYOUTS = {
    "(4,)": lambda make: make(4),
    "(0,)": lambda make: make(0),
    "(1,)": lambda make: make(1),
    "(2, 3)": lambda make: make(2, 3),
    "(0, 3)": lambda make: make(0, 3),
    "(3, 1)": lambda make: make(3, 1),
    "(1, 1, 2)": lambda make: make(1, 1, 2),
    "turned": lambda make: make(3, 2).T,
    "every second": lambda make: make(4, 6)[::2, ::3],
    "from the end": lambda make: make(5, 3)[::-2, ::-1],
    "an axis moved": lambda make: np.moveaxis(make(2, 3, 2), 0, 2),
}


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error", fast_math=False)


def maker(dtype, seed):
    rng = np.random.default_rng(seed)

    def make(*shape):
        if dtype == "bool":
            return rng.random(shape) < 0.5
        if dtype in FLOATS:
            return (rng.integers(-12, 13, shape) / 4).astype(dtype)
        return rng.integers(-9 if dtype[0] == "i" else 0, 10, shape).astype(dtype)

    return make


def same_axis(f):
    """An operation along the first axis and along the last."""
    return lambda m, x: [f(m, x, axis) for axis in (0, -1)]


def of_something(f):
    """An operation that nothing has no result of."""
    return lambda m, x: f(m, x) if x.size else None


def positive(m, x):
    return m.abs(x) + m.ones(x.shape, dtype=x.dtype)


def dividing(f):
    return lambda m, x, y: f(m, x, positive(m, y))


#: The name there: the types, and what is done by either module.
UNARY = {
    "exp": (FLOATS, lambda m, x: m.exp(x)),
    "log": (FLOATS, lambda m, x: m.log(positive(m, x))),
    "negative": (NUMBERS, lambda m, x: -x),
    "logicalNot": (ALL, lambda m, x: m.logical_not(x)),
    "log1p": (FLOATS, lambda m, x: m.log1p(m.abs(x))),
    "sin": (FLOATS, lambda m, x: m.sin(x)),
    "cos": (FLOATS, lambda m, x: m.cos(x)),
    "sqrt": (FLOATS, lambda m, x: m.sqrt(m.abs(x))),
    "tanh": (FLOATS, lambda m, x: m.tanh(x)),
    "floor": (FLOATS, lambda m, x: m.floor(x)),
    "ceil": (FLOATS, lambda m, x: m.ceil(x)),
    "rint": (FLOATS, lambda m, x: np.rint(x) if m is np else m.round(x)),
    "absolute": (NUMBERS, lambda m, x: m.abs(x)),
    "sigmoid": (FLOATS, lambda m, x: 1 / (1 + np.exp(-x)) if m is np else m.sigmoid(x)),
    "flip": (ALL, same_axis(lambda m, x, axis: m.flip(x, axis=axis))),
    "clip": (NUMBERS, lambda m, x: m.clip(x, 1, 3)),
    "roll": (ALL, same_axis(lambda m, x, axis: m.roll(x, 2, axis=axis))),
    "isnan": (FLOATS, lambda m, x: m.isnan(x)),
    "isinf": (FLOATS, lambda m, x: m.isinf(x)),
    "sign": (NUMBERS, lambda m, x: m.sign(x)),
    "tril": (ALL, lambda m, x: m.tril(x) if x.ndim > 1 else None),
    "triu": (ALL, lambda m, x: m.triu(x, k=1) if x.ndim > 1 else None),
    "sort": (ALL, same_axis(lambda m, x, axis: m.sort(x, axis=axis))),
    "argsort": (ALL, same_axis(lambda m, x, axis: np.argsort(x, axis=axis, kind="stable") if m is np else m.argsort(x, axis=axis))),
    "topk": (
        NUMBERS,
        lambda m, x: None if not x.shape[-1] else np.sort(x)[..., ::-1][..., :1] if m is np else m.topk(x, 1).values,
    ),
    "nonzero": (ALL, lambda m, x: list(m.nonzero(x))),
    "reshape": (ALL, lambda m, x: [m.reshape(x, (-1,)) if x.size else None, m.reshape(x, (1, *x.shape))]),
    "transpose": (ALL, lambda m, x: x.T),
    "tile": (ALL, lambda m, x: m.tile(x, (2,) * x.ndim)),
    "concatenate": (ALL, same_axis(lambda m, x, axis: m.concatenate([x, x], axis=axis))),
    "pad": (ALL, lambda m, x: m.pad(x, ((1, 2),) * x.ndim)),
    "amin": (ALL, of_something(lambda m, x: [m.min(x, axis=0), m.min(x)])),
    "amax": (ALL, of_something(lambda m, x: [m.max(x, axis=-1), m.max(x)])),
    "sum": (NUMBERS, lambda m, x: [m.sum(x, axis=0, dtype=x.dtype), m.sum(x, dtype=x.dtype)]),
    "cumsum": (NUMBERS, same_axis(lambda m, x, axis: np.cumsum(x, axis=axis, dtype=x.dtype) if m is np
               else m.cumulative_sum(x, axis=axis, dtype=x.dtype))),
    "argmax": (NUMBERS, of_something(lambda m, x: [m.argmax(x, axis=0), m.argmax(x)])),
    "argmin": (NUMBERS, of_something(lambda m, x: [m.argmin(x, axis=-1), m.argmin(x)])),
    "mean": (FLOATS, of_something(lambda m, x: [m.mean(x, axis=0), m.mean(x)])),
    "median": (FLOATS, of_something(lambda m, x: m.median(x, axis=0))),
    "var": (FLOATS, of_something(lambda m, x: m.var(x, axis=-1))),
    "std": (FLOATS, of_something(lambda m, x: m.std(x, axis=0))),
    "norm": (FLOATS, lambda m, x: np.linalg.norm(x.ravel()) if m is np else m.norm(x)),
    "countNonzero": (ALL, lambda m, x: [m.count_nonzero(x, axis=0), m.count_nonzero(x)]),
    "any": (ALL, lambda m, x: [m.any(x, axis=0), m.any(x)]),
    "all": (ALL, lambda m, x: [m.all(x, axis=-1), m.all(x)]),
}  # fmt: skip

BINARY = {
    "add": (NUMBERS, lambda m, x, y: x + y),
    "sub": (NUMBERS, lambda m, x, y: x - y),
    "mul": (NUMBERS, lambda m, x, y: x * y),
    "div": (FLOATS, dividing(lambda m, x, y: x / y)),
    "mod": (NUMBERS, dividing(lambda m, x, y: x % y)),
    "eq": (ALL, lambda m, x, y: x == y),
    "neq": (ALL, lambda m, x, y: x != y),
    "lessThan": (ALL, lambda m, x, y: x < y),
    "lessThanEqual": (ALL, lambda m, x, y: x <= y),
    "greaterThan": (ALL, lambda m, x, y: x > y),
    "greaterThanEqual": (ALL, lambda m, x, y: x >= y),
    "logicalOr": (ALL, lambda m, x, y: m.logical_or(x, y)),
    "logicalAnd": (ALL, lambda m, x, y: m.logical_and(x, y)),
    "bitwiseAnd": (BITS, lambda m, x, y: x & y),
    "bitwiseOr": (BITS, lambda m, x, y: x | y),
    "bitwiseXor": (BITS, lambda m, x, y: x ^ y),
    "lShift": (INTS, lambda m, x, y: x << (y & 3)),
    "rShift": (INTS, lambda m, x, y: x >> (y & 3)),
    "minimum": (ALL, lambda m, x, y: m.minimum(x, y)),
    "maximum": (ALL, lambda m, x, y: m.maximum(x, y)),
    "power": (FLOATS, lambda m, x, y: positive(m, x) ** y),
    "where": (ALL, lambda m, x, y: m.where(x > y, x, y)),
    "matmul": (NUMBERS, lambda m, x, y: x @ m.matrix_transpose(y) if x.ndim > 1 else x @ y),
}

#: How far each type may be off where functions are rounded.
OFF = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-13}
ROUNDED = {"exp", "log", "log1p", "sin", "cos", "tanh", "sigmoid", "mean", "var", "std", "norm", "power", "div", "sqrt"}


def compared(name, dtypes, f, n_operands):
    pending = []
    for dtype in dtypes:
        for layout, lay in LAYOUTS.items():
            arrays = [lay(maker(dtype, seed)) for seed in range(n_operands)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = f(np, *arrays)
            got = f(t, *(t.asarray(a) for a in arrays))
            if expected is None:
                continue
            many = isinstance(expected, list)
            pairs = zip(got, expected) if many else [(got, expected)]
            pending += [(dtype, layout, g, np.asarray(e)) for g, e in pairs if e is not None]
    t.realize(*(g for _, _, g, _ in pending))
    for dtype, layout, got, expected in pending:
        where = f"{name} of {dtype}, {layout}"
        assert got.shape == expected.shape, where
        ours = got.numpy()
        if expected.dtype.kind == "f":
            assert ours.dtype == expected.dtype, where
        off = OFF[dtype] if dtype in OFF and name in ROUNDED else 0
        if off:
            np.testing.assert_allclose(ours.astype("f8"), expected.astype("f8"), rtol=off, atol=off, err_msg=where)
        else:
            assert ours.tolist() == expected.tolist(), where


@pytest.mark.parametrize("name", UNARY)
def test_of_one(name):
    dtypes, f = UNARY[name]
    compared(name, dtypes, f, 1)


@pytest.mark.parametrize("name", BINARY)
def test_of_two(name):
    dtypes, f = BINARY[name]
    compared(name, dtypes, f, 2)


# What makes tensors, and what is not of one or two of them.

SHAPES = [(), (0,), (1,), (3, 2), (2, 0, 3), (1, 4, 1)]


@pytest.mark.parametrize("dtype", ALL)
def test_made(dtype):
    """`fromScalar`, `full`, `identity`, `arange`, `iota`, `eval` and `supportsDataType` of each type."""
    kind = ti.tensor.asarray(np.zeros(1, dtype)).dtype
    for shape in SHAPES:
        value = dtype == "bool" or 3
        made = t.full(shape, value, dtype=kind).realize()
        assert made.shape == shape and made.numpy().dtype == dtype
        assert (made.numpy() == np.full(shape, value, dtype)).all()
    assert t.full((), 1, dtype=kind).item() == 1
    for n in (0, 1, 4):
        assert t.eye(n, dtype=kind).tolist() == np.eye(n, dtype=dtype).tolist()
        if dtype != "bool":
            assert t.arange(n, dtype=kind).tolist() == np.arange(n, dtype=dtype).tolist()
    if dtype != "bool":
        for axis in (0, 1):
            wanted = np.broadcast_to(np.arange((2, 3)[axis]).reshape((-1, 1) if axis == 0 else (1, -1)), (2, 3))
            assert t.iota((2, 3), axis, dtype=kind).tolist() == wanted.astype(dtype).tolist()
    assert t.zeros((2, 0), dtype=kind).numpy().dtype == dtype and t.ones((2,), dtype=kind).tolist() == [1, 1]


@pytest.mark.parametrize("dtype", FLOATS)
def test_drawn(dtype):
    """`setSeed`, `rand` and `randn`: a key says what is drawn, in every shape."""
    kind = ti.tensor.asarray(np.zeros(1, dtype)).dtype
    for shape in SHAPES:
        assert t.random.rand(*shape, dtype=kind).shape == shape
    t.random.seed(7)
    u, g = (f(20000, dtype=kind).numpy().astype("f8") for f in (t.random.rand, t.random.randn))
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.01 and abs(u.var() - 1 / 12) < 0.005
    assert abs(g.mean()) < 0.03 and abs(g.var() - 1) < 0.05
    t.random.seed(7)
    again = t.random.rand(20000, dtype=kind).numpy().astype("f8")
    assert (again == u).all()
    t.random.seed(8)
    assert (t.random.rand(20000, dtype=kind).numpy().astype("f8") != u).any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_erf(dtype):
    import math

    for layout, lay in LAYOUTS.items():
        x = lay(maker(dtype, 0))
        wanted = np.vectorize(math.erf, otypes=["f8"])(x.astype("f8")) if x.size else x.astype("f8")
        got = t.erf(t.asarray(x)).numpy()
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype("f8"), wanted, rtol=OFF[dtype], atol=OFF[dtype], err_msg=layout)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_least_and_most_with_their_places(dtype):
    """`min(values, indices)` and `max(values, indices)`: of equals the first."""
    for lay in LAYOUTS.values():
        x = lay(maker(dtype, 1))
        if not x.size:
            continue
        ours = t.asarray(x)
        for axis in range(x.ndim):
            for values, places, v, p in [
                (t.min(ours, axis=axis), t.argmin(ours, axis=axis), x.min(axis), x.argmin(axis)),
                (t.max(ours, axis=axis), t.argmax(ours, axis=axis), x.max(axis), x.argmax(axis)),
            ]:
                assert values.tolist() == v.tolist() and places.tolist() == p.tolist()


def test_printed():
    text = "tensor([[1., 2.],\n        [3., 4.]], dtype=f32)"
    assert repr(t.asarray(np.arange(1, 5, dtype=np.float32).reshape(2, 2))) == text
    assert repr(t.zeros((0, 2), dtype=ti.i8)) == "tensor([], dtype=i8)"
