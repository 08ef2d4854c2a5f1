"""Accumulations in branches: their values are those of the program, whatever a branch computes that is not taken."""

import numpy as np
import pytest

import aerogel as ti

ROWS, N = 7, 203


@pytest.fixture(params=["f32", "f64", "i32"])
def dtype(request):
    return getattr(ti, request.param)


def numbers(rng, dtype):
    kind = {ti.f32: np.float32, ti.f64: np.float64, ti.i32: np.int32}[dtype]
    return rng.integers(-9, 10, (ROWS, N)).astype(kind)


def field_of(array, dtype):
    field = ti.field(dtype, array.shape)
    field.from_numpy(array)
    return field


def test_rows(arch, dtype, rng):
    a = numbers(rng, dtype)
    x, out = field_of(a, dtype), ti.field(dtype, (9, ROWS))

    @ti.kernel
    def rows():
        for i in range(ROWS):
            branch, early, choice, both, less, nested, index, several, bits = 0, 0, 0, 0, 0, 0, 0, 0, 1
            for j in range(N):
                v = x[i, j]
                if v > 0:
                    branch += int(v)
                choice = ti.select(v > 2, choice + int(v), choice)
                if v > 0:
                    both += int(v)
                else:
                    both -= 2 * int(v)
                if v < -1:
                    less -= int(v)
                if v != 0:
                    if v > -5:
                        nested += int(v)
                if i != j:
                    index += int(x[i, j] * x[i, i])
                if v > 1:
                    several += int(v)
                    several += 3
                if v > 3:
                    bits ^= int(v)
            for j in range(N):
                if x[i, j] <= 0:
                    continue
                if x[i, j] == 4:
                    continue
                early += int(x[i, j])
            for k, value in ti.static(enumerate([branch, early, choice, both, less, nested, index, several, bits])):
                out[k, i] = value

    rows()
    b = a.astype(np.int64)
    expected = [
        np.where(b > 0, b, 0).sum(1),
        np.where((b > 0) & (b != 4), b, 0).sum(1),
        np.where(b > 2, b, 0).sum(1),
        np.where(b > 0, b, -2 * b).sum(1),
        -np.where(b < -1, b, 0).sum(1),
        np.where(b > -5, b, 0).sum(1),
        np.array([b[i, i] * (b[i].sum() - b[i, i]) for i in range(ROWS)]),
        np.where(b > 1, b + 3, 0).sum(1),
        np.array([1 ^ np.bitwise_xor.reduce(row[row > 3]) for row in b]),
    ]
    np.testing.assert_array_equal(out.to_numpy(), np.stack(expected))


def test_parallel_sums(arch, dtype, rng):
    a = numbers(rng, dtype)
    x, total = field_of(a, dtype), ti.field(dtype, ())

    @ti.kernel
    def branch():
        for i, j in x:
            if x[i, j] > 0:
                total[None] += x[i, j]

    @ti.kernel
    def early() -> dtype:
        s = ti.cast(0, dtype)
        for i, j in ti.ndrange(ROWS, N):
            if x[i, j] <= 0:
                continue
            s += x[i, j]
        return s

    @ti.kernel
    def array(y: ti.types.ndarray()) -> dtype:
        s = ti.cast(0, dtype)
        for i, j in ti.ndrange(y.shape[0], y.shape[1]):
            if y[i, j] > 0:
                s += y[i, j]
            else:
                s -= 2 * y[i, j]
        return s

    @ti.kernel
    def extrema() -> ti.types.vector(2, dtype):
        most, least = ti.cast(-100, dtype), ti.cast(100, dtype)
        for i, j in x:
            if x[i, j] < 5:
                ti.atomic_max(most, x[i, j])
            if j % 3 == 0:
                ti.atomic_min(least, x[i, j])
        return ti.Vector([most, least])

    positive = np.where(a > 0, a, 0).sum()
    branch()
    assert total[None] == positive
    assert early() == positive
    assert array(a) == np.where(a > 0, a, -2 * a).sum()
    np.testing.assert_array_equal(extrema(), [a[a < 5].max(), a[:, ::3].min()])


def test_what_is_not_taken_does_not_reach_the_sum(arch):
    x = ti.field(ti.f32, N)
    x.from_numpy(np.where(np.arange(N) % 3 == 0, 0, np.where(np.arange(N) % 3 == 1, np.nan, 2)).astype(np.float32))

    @ti.kernel
    def serial() -> ti.f32:
        s = 0.0
        for _ in range(1):
            for j in range(N):
                if x[j] > 0:
                    s += 4.0 / x[j]
        return s

    @ti.kernel
    def parallel() -> ti.f32:
        s = 0.0
        for j in range(N):
            if x[j] > 0:
                s += 4.0 / x[j]
        return s

    assert serial() == parallel() == 2 * len(range(2, N, 3))


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("name", ["interp", "cpu"])
def test_nan_in_comparisons(name, fast_math):
    """A comparison with NaN is false, also where the first value is NaN."""
    ti.init(arch=getattr(ti, name, name), fast_math=fast_math, log_level="error")
    x = ti.field(ti.f64, (4, N))
    out = ti.field(ti.f64, (5, 4))
    a = np.sin(np.arange(4 * N).reshape(4, N))
    a[1, 0] = a[2, 5] = a[3, :] = np.nan
    x.from_numpy(a)

    @ti.kernel
    def extrema():
        for i in range(4):
            most, least, first = x[i, 0], x[i, 0], ti.cast(-10.0, ti.f64)
            early, guarded = x[i, 0], x[i, 0]
            for j in range(N):
                v = x[i, j]
                if v > most:
                    most = v
                if least >= v:
                    least = v
                if v > first:
                    first = v
            for j in range(N):
                if x[i, j] <= early:
                    continue
                early = x[i, j]
            for j in range(N):
                if j > 3:
                    if x[i, j] > guarded:
                        guarded = x[i, j]
            out[0, i], out[1, i], out[2, i], out[3, i], out[4, i] = most, least, first, early, guarded

    extrema()
    expected = np.empty((5, 4))
    for i, row in enumerate(a):
        most = least = early = guarded = row[0]
        first = -10.0
        for j, v in enumerate(row):
            most = v if v > most else most
            least = v if least >= v else least
            first = v if v > first else first
            early = early if v <= early else v
            guarded = v if j > 3 and v > guarded else guarded
        expected[:, i] = most, least, first, early, guarded
    np.testing.assert_array_equal(out.to_numpy(), expected)
    ti.reset()


def test_order_without_fast_math():
    """Not a bit changes where accumulations must not be regrouped."""
    ti.init(arch=ti.cpu, fast_math=False, log_level="error")
    a = (np.random.default_rng(1).standard_normal((ROWS, N)) * 1e3).astype(np.float32)
    x, out = field_of(a, ti.f32), ti.field(ti.f32, ROWS)

    @ti.kernel
    def rows():
        for i in range(ROWS):
            s = -0.0
            for j in range(N):
                if x[i, j] > 0:
                    s += x[i, j]
                elif x[i, j] < -500:
                    s -= x[i, j] * x[i, j]
                    s += 0.1
            out[i] = s

    rows()
    expected = np.full(ROWS, -0.0, np.float32)
    for i, row in enumerate(a):
        s = np.float32(-0.0)
        for v in row:
            if v > 0:
                s = s + v
            elif v < -500:
                s = np.float32(s - v * v)
                s = np.float32(s + np.float32(0.1))
        expected[i] = s
    assert out.to_numpy().tobytes() == expected.tobytes()
    ti.reset()


def test_loads_that_leave_branches(arch, dtype, rng):
    a = numbers(rng, dtype)
    x, out = field_of(a[0], dtype), ti.field(dtype, N)
    scale, params = ti.field(dtype, ()), ti.Struct.field({"p": dtype, "q": dtype}, shape=())
    scale[None], params[None].p, params[None].q = 3, 5, 7

    @ti.kernel
    def pairs(one: ti.types.ndarray()):
        for i in range(N):
            s = ti.cast(0, dtype)
            for j in range(N):
                if i != j:
                    s += (x[j] - x[i]) * scale[None] + params[None].p
            if x[i] > 0:
                s += params[None].q * one[0]
            out[i] = s

    @ti.kernel
    def written():
        for i in range(N):
            if i % 5 == 0:
                s = ti.cast(0, dtype)
                for j in range(4):
                    if j > 0:
                        s += out[i]
                        out[i] = 1
                out[i] = s

    one = np.array([2, 9], a.dtype)
    pairs(one)
    v = a[0]
    expected = 3 * (v.sum() - N * v) + 5 * (N - 1) + np.where(v > 0, 14, 0)
    np.testing.assert_array_equal(out.to_numpy(), expected)
    written()
    expected[::5] += 2
    np.testing.assert_array_equal(out.to_numpy(), expected)
