"""Functions of tensors against NumPy: all types, shapes with zeros and ones, steps of any sign."""

import aerogel as ti
import numpy as np
import pytest
from aerogel import tensor as t
from aerogel.tensor import programs

FLOATS = ["float16", "float32", "float64"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTS = SIGNED + UNSIGNED
ALL = [*FLOATS, *INTS, "bool"]
SHAPES = [(), (1,), (7,), (0,), (3, 4), (2, 0, 3), (2, 1, 3)]


@pytest.fixture(autouse=True, params=["cpu"])
def _start(request):
    ti.init(arch=getattr(ti, request.param), log_level="error")


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in FLOATS:
        return np.asarray(rng.uniform(-2, 2, shape)).astype(dtype)
    low = 0 if dtype in UNSIGNED else -20
    return np.asarray(rng.integers(low, 20, shape)).astype(dtype)


def same(got, want, rtol=None):
    got = np.asarray(got)
    want = np.asarray(want)
    assert got.shape == want.shape
    tolerance = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-13}.get(str(got.dtype), 0)
    np.testing.assert_allclose(
        got.astype("float64"), want.astype("float64"), rtol=rtol or tolerance, atol=rtol or tolerance
    )


def exact(got, want):
    got = np.asarray(got)
    assert got.dtype == np.asarray(want).dtype
    np.testing.assert_array_equal(got, want)


UNARY = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "asinh": np.arcsinh, "atan": np.arctan, "cbrt": np.cbrt,
    "degrees": np.degrees, "radians": np.radians, "reciprocal": lambda x: 1 / x,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "fract": lambda x: x - np.floor(x),
}  # fmt: skip
OF_POSITIVE = {
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "acosh": lambda x: np.arccosh(x),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*UNARY, *OF_POSITIVE, "asin", "acos", "atanh"])
def test_functions_of_floats(name, dtype):
    for shape in SHAPES:
        x = numbers(shape, dtype, 1)
        if name in OF_POSITIVE:
            x = (np.abs(x) + 1).astype(dtype)
        if name in ("asin", "acos", "atanh"):
            x = (x / 2.1).astype(dtype)
        wide = x.astype("float64")
        want = {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh, **UNARY, **OF_POSITIVE}[name](wide)
        got = getattr(t, name)(t.asarray(x))
        same(got, want, rtol={"float16": 4e-3, "float32": 4e-6, "float64": 2e-14}[dtype])


EXACT = {
    "abs": np.abs, "negative": np.negative, "sign": np.sign, "square": np.square, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.rint, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "logical_not": np.logical_not,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize("name", EXACT)
def test_exact_functions(name, dtype):
    for shape in SHAPES:
        x = numbers(shape, dtype, 2)
        want = EXACT[name](x)
        if name in ("floor", "ceil", "trunc", "round") and dtype in INTS:
            want = x
        exact(getattr(t, name)(t.asarray(x)), want)


def test_special_numbers():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -0.5, -1.5, 1e-30, 5e-324])
    for name in ("round", "sign", "isnan", "isinf", "isfinite", "signbit"):
        want = {"round": np.rint}.get(name, getattr(np, name, None))(x)
        exact(getattr(t, name)(t.asarray(x)), want)
    same(
        t.erf(t.asarray([0.0, 0.5, 1.0, 2.0, 3.0, 7.0, -1.0], dtype=ti.f64)),
        [0.0, 0.5204998778130465, 0.8427007929497149, 0.9953222650189527, 0.9999779095030014, 1.0, -0.8427007929497149],
    )
    for name in ("log1p", "expm1", "asinh", "atanh"):
        small = np.array([1e-12, -1e-12, 1e-300])
        want = {"asinh": np.arcsinh, "atanh": np.arctanh}.get(name, getattr(np, name, None))(small)
        np.testing.assert_allclose(getattr(t, name)(t.asarray(small)).numpy(), want, rtol=1e-14)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
PAIRS = [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)), ((0, 3), (1, 3)), ((2, 1, 3), (4, 1))]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name, dtype):
    for left, right in PAIRS:
        a, b = numbers(left, dtype, 3), numbers(right, dtype, 4)
        exact(getattr(t, name)(t.asarray(a), t.asarray(b)), BINARY[name](a, b))


@pytest.mark.parametrize("dtype", INTS)
def test_bits(dtype):
    a, b = numbers((5,), dtype, 5), numbers((5,), dtype, 6)
    for name, f in {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}.items():
        exact(getattr(t, name)(t.asarray(a), t.asarray(b)), f(a, b))
    exact(t.bitwise_invert(t.asarray(a)), ~a)
    n = (np.abs(b) % 70).astype(dtype)
    exact(t.bitwise_left_shift(t.asarray(a), t.asarray(n)), np.left_shift(a, n))
    exact(t.bitwise_right_shift(t.asarray(a), t.asarray(n)), np.right_shift(a, n))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
def test_division(dtype):
    a, b = numbers((40,), dtype, 7), numbers((40,), dtype, 8)
    b[b == 0] = 3
    exact(t.floor_divide(t.asarray(a), t.asarray(b)), np.floor_divide(a, b))
    same(t.remainder(t.asarray(a), t.asarray(b)), np.remainder(a, b))
    if dtype in FLOATS:
        exact(t.divide(t.asarray(a), t.asarray(b)), a / b)
        same(t.fmod(t.asarray(a), t.asarray(b)), np.fmod(a, b))


def test_more_of_two():
    a, b = numbers((50,), "float64", 9), numbers((50,), "float64", 10)
    for name, f in {"atan2": np.arctan2, "hypot": np.hypot, "logaddexp": np.logaddexp, "copysign": np.copysign}.items():
        same(getattr(t, name)(t.asarray(a), t.asarray(b)), f(a, b))
    same(t.pow(t.asarray(abs(a)), t.asarray(b)), np.power(abs(a), b))
    for dtype in ("float32", "float64"):
        x = np.array([0, -0.0, 1, -1, np.inf, 1e-40, np.nan, 2], dtype)
        y = np.array([1, -1, 2, 1, 0, 0, 1, np.nan], dtype)
        exact(t.nextafter(t.asarray(x), t.asarray(y)), np.nextafter(x, y))
    nan = np.array([np.nan, 1.0, np.nan])
    exact(t.minimum(t.asarray(nan), t.asarray(nan[::-1].copy())), np.minimum(nan, nan[::-1]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp_rounds_once(dtype):
    limits, rng = np.finfo(dtype), np.random.default_rng(11)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, limits.tiny, -limits.smallest_subnormal]
    x = np.concatenate([np.array(special), rng.uniform(1, 2, 200)]).astype(dtype)[:, None]
    # Sums of exponents around the ends of the range, where numbers lose bits, and others far outside.
    lowest = int(np.log2(limits.smallest_subnormal))
    n = np.array(
        [*range(lowest - 2, lowest + 60), -5, 0, 1, limits.maxexp - 1, limits.maxexp, 2**31 - 1, -(2**31)], "int32"
    )
    with np.errstate(all="ignore"):
        for scale in (0, 40, -40):
            start = np.ldexp(x, np.int32(scale))
            want, got = np.ldexp(start, n), t.ldexp(t.asarray(start), t.asarray(n)).numpy()
            exact(got, want)
            exact(np.signbit(got) & (got == 0), np.signbit(want) & (want == 0))


@pytest.mark.parametrize("dtype", [*INTS, "bool"])
def test_ldexp_of_integers(dtype):
    for left, right in PAIRS:
        x, n = numbers(left, dtype, 12), numbers(right, dtype, 13)
        exact(t.ldexp(t.asarray(x), t.asarray(n)), np.ldexp(x.astype("float32"), n.astype("int32")))
    most = 1 if dtype == "bool" else np.iinfo(dtype).max
    want = np.float32(2.0**most if most < 128 else np.inf)
    exact(t.ldexp(1.0, t.asarray(np.asarray(most, dtype))), want)


def test_ldexp_takes_integers_as_exponents():
    for wrong in (2.0, 2j, [0.5]):
        with pytest.raises(TypeError, match=r"`ldexp` takes exponents of integers, not `(f32|f64|complex64)`: write"):
            t.ldexp(1.0, wrong)


def test_numbers_of_python_take_the_tensors_type():
    x = t.asarray(np.array([1, 2], "int8"))
    assert (x + 1).dtype is ti.i8
    assert (x * 2.5).dtype is ti.f32
    assert (t.asarray(np.array([1.0], "float64")) + 1.5).dtype is ti.f64
    assert (x > 1).dtype is ti.u1
    with pytest.raises(OverflowError, match="300 is not a number of type `i8`: its values are -128 to 127"):
        x + 300


@pytest.mark.parametrize("a", [*INTS, "bool", *FLOATS])
def test_types_meet(a):
    for b in [*INTS, "bool", *FLOATS]:
        x, y = t.zeros((1,), dtype=np.dtype(a)), t.zeros((1,), dtype=np.dtype(b))
        if {a, b} & {"uint64"} and {a, b} & set(SIGNED):
            with pytest.raises(TypeError, match="no dtype holds all values of"):
                x + y
            continue
        if (a in FLOATS) == (b in FLOATS):
            want = np.result_type(a, b)
            assert np.asarray(x * y).dtype == want
        else:
            assert np.asarray(x * y).dtype == (a if a in FLOATS else b)


@pytest.mark.parametrize("dtype, close", [(np.float32, 1e-6), (np.float64, 1e-14), (np.float16, 1e-3)])
@pytest.mark.parametrize("axis", [-1, 0, (0, 2), None])
def test_softmax(axis, dtype, close):
    x = np.random.default_rng(0).uniform(-9, 9, (3, 4, 5)).astype(dtype)
    x[0, 0, :] += dtype(1000)
    exact = x.astype(np.float64)
    exact = exact - exact.max(axis=axis, keepdims=True)
    logs = exact - np.log(np.exp(exact).sum(axis=axis, keepdims=True))
    made = ti.tensor.asarray(x)
    for out, want in (
        (ti.tensor.softmax(made, axis), np.exp(logs)),
        (made.softmax(axis=axis), np.exp(logs)),
        (ti.tensor.log_softmax(x, axis=axis), logs),
        (made.log_softmax(axis), logs),
    ):
        assert out.numpy().dtype == dtype
        np.testing.assert_allclose(out.numpy().astype(np.float64), want, rtol=close, atol=close)


def test_softmax_of_what_is_no_row_of_floats():
    T = ti.tensor
    assert T.softmax([[0, 0], [7, 7]]).tolist() == [[0.5, 0.5]] * 2 and T.softmax([1.0, -T.inf]).tolist() == [1, 0]
    assert T.softmax(T.zeros((0, 3))).shape == (0, 3) == T.log_softmax(T.zeros((0, 3))).shape
    for name in ("softmax", "log_softmax"):
        function = getattr(T, name)
        for wrong, kind, text in (
            (lambda: function(T.zeros((2, 0))), ValueError, rf"`{name}` of 0 elements: the shape is \(2, 0\)"),  # noqa: B023
            (lambda: function(1.0), IndexError, f"`{name}`: there is no axis -1"),  # noqa: B023
            (lambda: function([1j]), TypeError, f"`{name}` takes real numbers"),  # noqa: B023
        ):
            with pytest.raises(kind, match=text):
                wrong()


def test_softmax_in_programs():
    f = ti.field(ti.f32)
    ti.root.bitmasked(ti.i, 8).place(f)
    f[2], f[5] = 1, 3

    @programs.program
    def made():
        x = programs.input([-1, -1], ti.f32)
        i = programs.indices(f)
        return x.softmax(axis=0), ti.tensor.softmax(f[i])

    x = np.random.default_rng(0).uniform(-9, 9, (3, 4)).astype(np.float32)
    columns, cells = made(x)
    np.testing.assert_allclose(columns.numpy(), np.exp(x) / np.exp(x).sum(axis=0), rtol=1e-5)
    # The cells that are active alone.
    parts = np.exp([1, 3]) / np.exp([1, 3]).sum()
    np.testing.assert_allclose(cells.numpy(), [0, 0, parts[0], 0, 0, parts[1], 0, 0], rtol=1e-5)
    with pytest.raises(ValueError, match="`softmax` of 0 elements"):
        made(np.zeros((0, 2), np.float32))


FUNCTIONS = "sin cos tan asin acos tanh exp log sqrt floor ceil abs".split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_kernels_take_tensors(name):
    ours = np.array([0.25, 0.5, 1], "float32")
    other = {"asin": "arcsin", "acos": "arccos"}.get(name, name)
    result = getattr(ti, name)(t.asarray(ours))
    assert isinstance(result, t.Tensor)
    assert np.allclose(result.numpy(), getattr(np, other)(ours), rtol=1e-5)
    one = getattr(ti, name)(t.asarray(ours[:1]))
    assert isinstance(one, t.Tensor) and one.shape == (1,)


def test_functions_of_kernels_of_several_take_tensors():
    x, y = np.array([1.0, -2, 3], "float32"), np.array([2.0, -3, 1], "float32")
    a, b = t.asarray(x), t.asarray(y)
    assert np.array_equal(ti.max(a, b, 0).numpy(), np.maximum(np.maximum(x, y), 0))
    assert np.array_equal(ti.min(2.5, a).numpy(), np.minimum(x, 2.5))
    assert np.allclose(ti.atan2(a, b).numpy(), np.arctan2(x, y))
    assert np.array_equal(ti.select(a > 0, a, b).numpy(), np.where(x > 0, x, y))
    assert np.array_equal(ti.pow(a, 2).numpy(), x**2) and ti.cast(a, ti.i32).tolist() == [1, -2, 3]
    assert np.allclose(ti.rsqrt(t.abs(a)).numpy(), 1 / np.sqrt(abs(x)))
    assert np.allclose(t.vmap(lambda v: ti.sin(v))(a).numpy(), np.sin(x))
    assert ti.round(t.asarray([0.5, 1.5, -0.5, 2.25])).tolist() == [1, 2, -1, 2], "as in a kernel, not as NumPy has it"
    assert ti.floor(a / 2, ti.i32).tolist() == [0, -1, 1] and ti.ceil(a / 2, dtype=ti.i32).dtype is ti.i32
    assert ti.zero(a).tolist() == [0, 0, 0] and ti.one(a).dtype is ti.f32 and ti.math.sign(a).tolist() == [1, -1, 1]
    assert np.allclose(ti.sqrt(t.asarray([1j])).numpy(), np.sqrt([1j]))
    with pytest.raises(TypeError, match="`ti.raw_div` takes numbers, vectors and matrices, not tensors"):
        ti.raw_div(t.asarray([1]), 2)
    assert ti.max(1, 2) == 2 and ti.sqrt(4.0) == 2
