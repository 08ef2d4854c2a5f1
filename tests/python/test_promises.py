"""What must never happen: memory written out of bounds in debug mode, undefined arithmetic, a
process that is unusable after an error."""

import operator

import numpy as np
import pytest

import aerogel as ti

INTEGERS = {
    "i8": (ti.i8, np.int8),
    "i16": (ti.i16, np.int16),
    "i32": (ti.i32, np.int32),
    "i64": (ti.i64, np.int64),
    "u8": (ti.u8, np.uint8),
    "u16": (ti.u16, np.uint16),
    "u32": (ti.u32, np.uint32),
    "u64": (ti.u64, np.uint64),
}


def wrap(value, dtype):
    """A Python integer as the type holds it."""
    info = np.iinfo(dtype)
    value &= (1 << info.bits) - 1
    return value - (1 << info.bits) if info.min < 0 and value >> (info.bits - 1) else value


def divided(a, b, rounding):
    return 0 if b == 0 else rounding(a, b)


def truncated(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def powered(a, b):
    if b < 0:
        return {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)
    return pow(a, min(b, 1 << 70), 1 << 64) if a >= 0 or b % 1 == 0 else 0


def model(bits):
    """Every operator on Python integers, as all targets must compute it."""
    return {
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "floordiv": lambda a, b: divided(a, b, operator.floordiv),
        "mod": lambda a, b: divided(a, b, operator.mod),
        "raw_div": lambda a, b: divided(a, b, truncated),
        "raw_mod": lambda a, b: divided(a, b, lambda a, b: a - truncated(a, b) * b),
        "and": operator.and_,
        "or": operator.or_,
        "xor": operator.xor,
        "shl": lambda a, b: a << (b % bits),
        "shr": lambda a, b: a >> (b % bits),
        "pow": powered,
        "min": min,
        "max": max,
    }


@pytest.mark.parametrize("name", INTEGERS)
def test_every_operator_on_edge_values(arch, name):
    dtype, np_dtype = INTEGERS[name]
    info = np.iinfo(np_dtype)
    edges = {0, 1, 2, 3, 7, info.bits - 1, info.bits, info.max, info.max - 1, info.min, info.min + 1}
    edges |= {v for v in (-1, -2, -7) if v >= info.min}
    pairs = [(a, b) for a in sorted(edges) for b in sorted(edges)]
    ops = model(info.bits)
    a = np.array([p[0] for p in pairs], np_dtype)
    b = np.array([p[1] for p in pairs], np_dtype)
    out = np.zeros((len(pairs), len(ops)), np_dtype)

    @ti.kernel
    def compute(a: ti.types.ndarray(dtype, 1), b: ti.types.ndarray(dtype, 1), out: ti.types.ndarray(dtype, 2)):
        for i in range(a.shape[0]):
            x, y = a[i], b[i]
            out[i, 0] = x + y
            out[i, 1] = x - y
            out[i, 2] = x * y
            out[i, 3] = x // y
            out[i, 4] = x % y
            out[i, 5] = ti.raw_div(x, y)
            out[i, 6] = ti.raw_mod(x, y)
            out[i, 7] = x & y
            out[i, 8] = x | y
            out[i, 9] = x ^ y
            out[i, 10] = x << y
            out[i, 11] = x >> y
            out[i, 12] = x**y
            out[i, 13] = ti.min(x, y)
            out[i, 14] = ti.max(x, y)

    compute(a, b, out)
    wrong = [
        (op, x, y, int(out[k, m]), wrap(f(x, y), np_dtype))
        for k, (x, y) in enumerate(pairs)
        for m, (op, f) in enumerate(ops.items())
        if int(out[k, m]) != wrap(f(x, y), np_dtype)
    ]
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("name", INTEGERS)
def test_floats_to_integers(arch, name):
    dtype, np_dtype = INTEGERS[name]
    values = np.array([0.0, -0.0, 1.9, -1.9, 300.7, -1.2, 3e9, -3e9, 1e19, -1e19, 1e30, np.inf, -np.inf, np.nan])
    out = np.zeros(len(values), np_dtype)

    @ti.kernel
    def convert(a: ti.types.ndarray(ti.f64, 1), out: ti.types.ndarray(dtype, 1)):
        for i in range(a.shape[0]):
            out[i] = ti.cast(a[i], dtype)

    def to_int(v, bits):
        lo, hi = -(1 << (bits - 1)), 1 << (bits - 1)
        return int(v) if np.isfinite(v) and lo <= int(v) < hi else lo

    def expected(v):
        if name == "u64" and v >= 2.0**63:
            return int(v) if v < 2.0**64 else to_int(v - 2.0**63, 64) ^ (1 << 63)
        return to_int(v, 64 if name in ("i64", "u32", "u64") else 32)

    convert(values, out)
    assert [int(v) for v in out] == [wrap(expected(v), np_dtype) for v in values]


def test_nan_compares_as_it_should_even_with_fast_maths(arch):
    @ti.kernel
    def compare(x: ti.f32) -> ti.types.vector(6, ti.i32):
        y = x / x
        return ti.Vector([int(y == y), int(y != y), int(y < y), int(y <= y), int(y > 1.0), int(not (y >= 1.0))])

    assert list(compare(0.0)) == [0, 1, 0, 0, 0, 1]


SHAPES = {"1d": (7,), "2d": (3, 5), "3d": (2, 3, 4)}


def outside(shape, rng, n):
    """Indices of which at least one lies outside."""
    for _ in range(n):
        index = [int(rng.integers(0, e)) for e in shape]
        axis = int(rng.integers(0, len(shape)))
        index[axis] = int(rng.choice([-1, -5, shape[axis], shape[axis] + 1, 1 << 20, -(1 << 31), (1 << 31) - 1]))
        yield index


@pytest.mark.parametrize("kind", ["field", "ndarray", "offset"])
@pytest.mark.parametrize("dims", SHAPES)
@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_indices_out_of_range_raise(debug, rng, kind, dims, write):
    shape = SHAPES[dims]
    d = len(shape)
    offset = tuple(3 for _ in shape) if kind == "offset" else None
    before, after = ti.field(ti.i32, 16), ti.field(ti.i32, 16)
    x = ti.ndarray(ti.i32, shape) if kind == "ndarray" else ti.field(ti.i32, shape, offset=offset)
    before.fill(77)
    after.fill(77)
    vec = ti.types.vector(d, ti.i32)
    annotation = ti.types.ndarray(ti.i32, d) if kind == "ndarray" else ti.template()

    @ti.kernel
    def read(x: annotation, at: vec) -> ti.i32:
        return x[at]

    @ti.kernel
    def change(x: annotation, at: vec):
        x[at] = 5

    shift = 3 if kind == "offset" else 0
    for index in outside(shape, rng, 12):
        index = [max(-(1 << 31), min((1 << 31) - 1, i + shift)) for i in index]
        with pytest.raises((IndexError, AssertionError, RuntimeError)) as caught:
            if write:
                change(x, vec(*index))
            else:
                read(x, vec(*index))
        text = str(caught.value)
        assert "out of bounds" in text and str(index[0]) in text and "test_promises.py:" in text and "^" in text
    assert (x.to_numpy() == 0).all()
    assert (before.to_numpy() == 77).all() and (after.to_numpy() == 77).all()


def test_a_vector_indexed_out_of_range_raises(debug):
    @ti.kernel
    def pick(k: ti.i32) -> ti.i32:
        v = ti.Vector([1, 2, 3])
        return v[k]

    assert pick(2) == 3
    with pytest.raises((IndexError, AssertionError, RuntimeError), match="out of bounds"):
        pick(3)
    assert pick(0) == 1


def test_division_by_zero_raises_with_the_values(debug):
    @ti.kernel
    def divide(a: ti.i32, b: ti.i32) -> ti.i32:
        return a // b

    @ti.kernel
    def modulo(a: ti.i32, b: ti.i32) -> ti.i32:
        return a % b

    for kernel in (divide, modulo):
        with pytest.raises(Exception, match="division by zero: 41") as caught:
            kernel(41, 0)
        assert "test_promises.py" in str(caught.value)
        assert kernel(41, 2) in (20, 1)


def test_a_thousand_failures_among_a_thousand_successes(debug):
    x = ti.field(ti.i32, 8)

    @ti.kernel
    def add(k: ti.i32):
        assert k < 8, "too far"
        x[k] += 1

    failed = 0
    for n in range(2000):
        k = n % 16
        try:
            add(k)
        except AssertionError:
            failed += 1
            assert k >= 8
    assert failed == 1000
    assert list(x.to_numpy()) == [125] * 8


def test_a_kernel_that_does_not_compile_leaves_others_alone(arch):
    x = ti.field(ti.i32, 4)

    @ti.kernel
    def good():
        for i in x:
            x[i] += 1

    good()
    for _ in range(3):

        @ti.kernel
        def bad():
            x[0] = unknown_name  # noqa: F821

        with pytest.raises(ti.TaichiNameError):
            bad()
        good()
    assert list(x.to_numpy()) == [4] * 4


def test_messages_name_the_field_as_the_kernel_does(debug):
    @ti.data_oriented
    class Cloth:
        def __init__(self):
            self.mass = ti.field(ti.f32, 4)

        @ti.kernel
        def touch(self, k: ti.i32):
            self.mass[k] = 1.0

    height = ti.field(ti.f32, (2, 3))

    @ti.kernel
    def touch(k: ti.i32):
        height[k, 0] = 1.0

    with pytest.raises(AssertionError, match=r"index \(9\) is out of bounds for field `mass` of shape \(4\)"):
        Cloth().touch(9)
    with pytest.raises(AssertionError, match=r"index \(2, 0\) is out of bounds for field `height` of shape \(2, 3\)"):
        touch(2)


def test_a_failed_assertion_points_at_its_condition(debug):
    @ti.kernel
    def check(n: ti.i32):
        for i in range(n):
            assert i < 5, f"i is {i}"

    with pytest.raises(AssertionError, match="i is 5") as caught:
        check(6)
    line, caret = str(caught.value).splitlines()[3:5]
    assert line[caret.index("^") : caret.rindex("^") + 1] == "i < 5"
