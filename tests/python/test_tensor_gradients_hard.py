"""Gradients where naive rules go wrong: ties, zeros, indices outside, stores, loops, and singular matrices."""

import numpy as np
import pytest

import aerogel as ti
from aerogel import tensor as t
from aerogel.tensor import programs as p

INF, NAN = np.inf, np.nan


@pytest.fixture(autouse=True, scope="module", params=["interp", "cpu"])
def _start(request):
    ti.init(arch=request.param, log_level="error")
    yield request.param
    ti.reset()


def f64(x):
    return t.asarray(np.asarray(x, dtype="float64"))


def numbers(x):
    return [g.detach().numpy() for g in (x if isinstance(x, (tuple, list)) else [x])]


def check(function, arguments, *wanted):
    made = ti.grad(function, tuple(range(len(arguments))))(*map(f64, arguments))
    for got, want in zip(numbers(made), wanted):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def stored(x, key, value):
    x[key] = value
    return x


AT = np.asarray([-2, -1, 0, 1, 2, 3, 4, 5], dtype="int32")


def window(mode):
    return lambda x: (t.gather(x.outside(mode), t.asarray(AT)) * f64(np.arange(1, 9))).sum()


#: Name, function, arguments, and the gradients by them.
TABLE = [
    # Ties are shared equally, but a bound of `clip` has no part, nor has a running extreme that was there before.
    ("max", lambda x: t.max(x), [[1, 3, 3, 2]], [0, 0.5, 0.5, 0]),
    ("max along an axis", lambda x: t.max(x, axis=1).sum(), [[[1, 1], [0, 2]]], [[0.5, 0.5], [0, 1]]),
    ("max of infinities", lambda x: t.max(x), [[-INF, -INF]], [0.5, 0.5]),
    ("minimum", lambda x, y: t.minimum(x, y).sum(), [[1, 2], [1, 5]], [0.5, 1], [0.5, 0]),
    ("clip", lambda x: t.clip(x, 0.0, 1.0).sum(), [[0, 1, 0.5, -1, 2]], [1, 1, 1, 0, 0]),
    ("clip by tensors", lambda x, a: t.clip(x, a, 2.0).sum(), [[0, 1, -1], [0, 0, 0]], [1, 1, 0], [0, 0, 1]),
    ("relu, abs", lambda x: (t.relu(x) + abs(x)).sum(), [[0, -0.0]], [0, 0]),
    ("cummax", lambda x: (t.cummax(x) * f64([1, 10, 100])).sum(), [[2, 2, 1]], [1, 110, 0]),
    ("sort", lambda x: (t.sort(x) * f64([1, 10, 100])).sum(), [[2, 2, 1]], [10, 100, 1]),
    ("median", lambda x: t.median(x), [[2, 2, 1]], [1, 0, 0]),
    ("log_softmax", lambda x: t.log_softmax(x)[0], [[0, 0]], [0.5, -0.5]),
    ("log_softmax, masked", lambda x: t.log_softmax(x)[0], [[0, 0, -INF]], [0.5, -0.5, 0]),
    ("softmax, masked", lambda x: (t.softmax(x) * f64([1, 2])).sum(), [[0, -INF]], [0, 0]),
    # Zeros in products, and slopes that are infinite or undefined.
    ("prod of two zeros", lambda x: t.prod(x), [[0, 2, 0, 3]], [0, 0, 0, 0]),
    ("prod of a zero", lambda x: t.prod(x), [[0, 2, 4, 3]], [24, 0, 0, 0]),
    ("cumprod", lambda x: (t.cumprod(x) * f64([1, 2, 3, 4])).sum(), [[2, 0, 3, 0]], [1, 22, 0, 0]),
    ("where, sqrt", lambda x: t.where(x > 0, t.sqrt(x), 0.0).sum(), [[0, -1, 4]], [0, 0, 0.25]),
    ("where, log", lambda x: t.where(x > 0, t.log(x), 0.0).sum(), [[0, -1, 4]], [0, 0, 0.25]),
    ("where, quotient", lambda x: t.where(x != 0, 1 / x, 0.0).sum(), [[0, 2]], [0, -0.25]),
    ("where, power", lambda x: t.where(x > 0, x**0.5, 0.0).sum(), [[0, -1, 4]], [0, 0, 0.25]),
    ("norm of zeros", lambda x: t.norm(x), [[0, 0]], [0, 0]),
    ("root of squares", lambda x: t.sqrt((x * x).sum()), [[0, 0]], [0, 0]),
    ("hypot", lambda x: t.hypot(x, x).sum(), [[0]], [0]),
    ("0 squared", lambda x: (x**2).sum(), [[0]], [0]),
    ("root of 0 as a power", lambda x: (x**0.5).sum(), [[0]], [INF]),
    ("0 to a power", lambda x, y: (x**y).sum(), [[0, 0, 0], [2, 1, 0]], [0, 1, 0], [0, 0, 0]),
    ("0 to a negative power", lambda x, y: (x**y).sum(), [[0], [-1]], [-INF], [-INF]),
    ("by the exponent of a negative base", lambda x, y: (x**y).sum(), [[-2, -2], [2, -1]], [-4, -0.25], [NAN, NAN]),
    ("by the exponent of NaN", lambda y: (NAN**y).sum(), [[2]], [NAN]),
    # What is no number.
    ("max with NaN", lambda x: t.max(x, axis=1).sum(), [[[1, NAN, 3], [1, 2, 3], [NAN, NAN, NAN]]],
     [[0, NAN, NAN], [0, 0, 1], [NAN, NAN, NAN]]),
    ("min with NaN", lambda x: t.min(x), [[1, NAN, 3]], [NAN, NAN, 0]),
    ("max with NaN, masked", lambda x: t.where(t.isnan(t.max(x)), 0.0, t.max(x)), [[1, NAN, 3]], [0, 0, 0]),
    ("maximum with NaN", lambda x, y: t.maximum(x, y).sum(), [[1, NAN, 3], [NAN, 1, 3]], [0, 1, 0.5], [1, 0, 0.5]),
    ("scatter max with NaN", lambda x, y: t.scatter(x, AT[2:3], y, how="max").sum(), [[1, 2], [NAN]], [1, 1], [0]),
    ("scatter max to NaN", lambda x, y: t.scatter(x, AT[2:3], y, how="max").sum(), [[NAN, 2], [3]], [0, 1], [1]),
    ("scatter max of NaN", lambda x, y: t.scatter(x, AT[2:3], y, how="max").sum(), [[NAN, 2], [NAN]], [0.5, 1], [0.5]),
    ("negative base", lambda x: (x**2.0).sum(), [[-2]], [-4]),
    ("log 0", lambda x: t.log(x).sum(), [[0]], [INF]),
    ("asin 1", lambda x: t.asin(x).sum(), [[1]], [INF]),
    ("std of equal numbers", lambda x: t.std(x), [[2, 2]], [0, 0]),
    # Indices.
    ("clamp", window("clamp"), [[1, 2, 3, 4]], [6, 4, 5, 21]),
    ("wrap", window("wrap"), [[1, 2, 3, 4]], [10, 12, 6, 8]),
    ("zero", window("zero"), [[1, 2, 3, 4]], [3, 4, 5, 6]),
    ("a stride that does not divide", lambda x: (x[::3] * f64([1, 2, 3])).sum(), [np.arange(8)], [1, 0, 0, 2, 0, 0, 3, 0]),
    ("windows with gaps", lambda x: t.accum("3*o<+k; k => o", x, f64([1, 10])).sum(), [np.arange(8)],
     [1, 10, 0, 1, 10, 0, 1, 10]),
    ("overlapping windows", lambda x: t.accum("2*o+k; k => o", x, f64([1, 10, 100])).sum(), [np.arange(7)],
     [1, 10, 101, 10, 101, 10, 100]),
    ("embedding", lambda x: (x[np.asarray([1, 1, 0, 1])] * f64([[1], [2], [3], [4]])).sum(), [np.ones((3, 2))],
     [[3, 3], [7, 7], [0, 0]]),
    # Stores.
    ("store after a read", lambda x: (lambda y: ((y * y) + stored(y, 1, 5.0)).sum())(x * 1), [[1, 2, 3]], [3, 4, 7]),
    ("last of several", lambda x, v: (stored(x * 1, [0, 0, 0], v) * f64([1, 10])).sum(), [[1, 2], [5, 6, 7]],
     [0, 10], [0, 0, 1]),
    ("store of itself", lambda x: (stored(x * 1, slice(1, 3), x[:2] * x[1:]) ** 2).sum(), [[1, 2, 3]], [10, 40, 24]),
    ("store and read in turns", lambda x: (lambda y: stored(stored(y, 0, y[1] * y[2]), 1, y[0] * y[2]).sum())(x * 1),
     [[2, 3, 5]], [0, 30, 34]),
    # Empty axes.
    ("sum of nothing", lambda x: x.sum(), [np.zeros((0, 3))], np.zeros((0, 3))),
    ("prod of nothing", lambda x: t.prod(x, axis=0).sum(), [np.zeros((0, 3))], np.zeros((0, 3))),
    ("product over nothing", lambda x, y: (x @ y).sum(), [np.zeros((2, 0)), np.zeros((0, 3))], np.zeros((2, 0)),
     np.zeros((0, 3))),
    ("sort of nothing", lambda x: t.sort(x).sum(), [np.zeros(0)], np.zeros(0)),
    ("max of no rows", lambda x: t.max(x, axis=1).sum(), [np.zeros((0, 3))], np.zeros((0, 3))),
    # Matrices.
    ("equal singular values", lambda x: t.linalg.svdvals(x).sum(), [2 * np.eye(2)], np.eye(2)),
    ("equal eigenvalues", lambda x: t.linalg.eigvalsh(x).sum(), [2 * np.eye(2)], np.eye(2)),
    ("pinv of deficient rank", lambda x: t.linalg.pinv(x).sum(), [np.ones((2, 2))], -np.ones((2, 2)) / 4),
    # Many of one, each with a choice.
    ("vmap", lambda x: ti.vmap(lambda a: t.where(a > 0, t.sqrt(a), a * a))(x).sum(), [[4, -3, 0]], [0.25, -6, 0]),
]  # fmt: skip


@pytest.mark.parametrize("name, function, arguments, wanted", [(n, f, a, w) for n, f, a, *w in TABLE],
                         ids=[row[0] for row in TABLE])  # fmt: skip
def test_table(name, function, arguments, wanted):
    check(function, arguments, *wanted)


@pytest.mark.parametrize("x, wanted", [([[1, 2], [2, 4]], [[4, -2], [-2, 1]]), (np.zeros((2, 2)), np.zeros((2, 2))),
    (np.diag([0.0, 2, 3]), np.diag([6, 0, 0])), (np.diag([0.0, 2, 0]), np.zeros((3, 3))), ([[0]], [[1]]),
    (np.diag(np.arange(10.0)), np.diag([362880, *[0] * 9])), (np.zeros((9, 9)), np.zeros((9, 9)))])  # fmt: skip
def test_singular_determinants(x, wanted):
    check(t.linalg.det, [x], wanted)
    assert t.linalg.det(f64(x)).item() == 0


def test_second_derivatives_of_singular_determinants_are_refused():
    """They are there, but not by the inverse."""
    with pytest.raises(ValueError, match="singular"):
        ti.hessian(t.linalg.det)(f64([[1, 2], [2, 4]])).numpy()


def test_equal_values_leave_finite_vectors():
    for f in (
        lambda x: t.linalg.eigh(x)[1].sum(),
        lambda x: sum(y.sum() for y in t.linalg.svd(x, full_matrices=False)),
    ):
        assert np.isfinite(ti.grad(f)(f64(2 * np.eye(2))).numpy()).all()


def test_the_second_derivative_of_a_product_with_zeros():
    np.testing.assert_array_equal(ti.hessian(t.prod)(f64([0, 2, 3])).numpy(), [[0, 3, 2], [3, 0, 0], [2, 0, 0]])
    np.testing.assert_array_equal(ti.hessian(t.prod)(f64([0, 2, 0])).numpy(), [[0, 0, 2], [0, 0, 0], [2, 0, 0]])


@pytest.mark.parametrize("f, x, wanted", [
    (lambda x: (x / 3) ** 2, 0, 2 / 9), (lambda x: t.log(x) ** 2, 1, 2), (lambda x: t.log1p(x) ** 2, 0, 2),
    (lambda x: (x**3 - 1) ** 2, 1, 18), (lambda x: (1 / x - 1) ** 2, 1, 2), (lambda x: t.atanh(x) ** 2, 0, 2),
    (lambda x: (t.acosh(x) - t.acosh(x).detach()) ** 2, 2, 2 / 3), (lambda x: t.asin(x) ** 2, 0, 2),
    (lambda x: (t.cbrt(x) - 1) ** 2, 1, 2 / 9), (lambda x: (t.sqrt(x) - 1) ** 2, 1, 0.5),
    (lambda x: (t.rsqrt(x) - 1) ** 2, 1, 0.5), (lambda x: t.atan2(x, f64(1)) ** 2, 0, 2),
    (lambda x: (2.0**x - 1) ** 2, 0, 2 * np.log(2) ** 2), (lambda x: t.fmod(x, f64(2)) ** 2, 0, 2),
])  # fmt: skip
def test_second_derivatives_where_the_first_is_zero(f, x, wanted):
    """A factor that could be infinite does not count where its adjoint is zero, but its derivative does."""
    assert np.isclose(ti.grad(ti.grad(f))(f64(x)).item(), wanted, rtol=1e-12)
    assert np.isclose(ti.hvp(f, (f64(x),), (f64(1),))[0].item(), wanted, rtol=1e-12)


def test_changes_where_seeds_cancel():
    for f in (lambda x: x / 3, t.log, t.log1p, t.asin):
        made = ti.jvp(lambda x: (lambda y: t.stack([y, -y]))(f(x)), (f64(0.25),), (f64(1),))[1].numpy()
        assert np.isclose(made[0], ti.grad(f)(f64(0.25)).item(), rtol=1e-12) and made[1] == -made[0]


def test_hvp_through_sums_over_the_first_axis():
    x, d = f64([[0.1, -0.2], [0.6, 0.1]]), f64([[1, 2], [-1, 0.5]])

    def f(x):
        return (t.var(x, axis=0, keepdims=True) ** 2).sum()

    twice = ti.grad(lambda x: (ti.grad(f)(x) * d).sum())(x)
    assert np.allclose(ti.hvp(f, (x,), (d,))[0].numpy(), twice.numpy(), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sums_of_halves_are_taken_in_single_precision(dtype):
    n = 512
    one = t.ones((1,), dtype=dtype)
    for f in (lambda x: (x * t.ones((n,), dtype=dtype)).sum(), lambda x: t.broadcast_to(x, (n, 1)).sum(),
              lambda x: x[np.zeros(n, dtype="int32")].sum()):  # fmt: skip
        made = ti.grad(f)(one)
        assert made.dtype is one.dtype and made.astype("f32").item() == n
    big = ti.grad(lambda x: t.broadcast_to(x, (6000,)).sum())(t.asarray(1, dtype="f16"))
    assert big.item() == 6000


@pytest.mark.parametrize("fast", [False, True])
def test_the_largest_is_found_again(_start, fast):
    """Also where what is computed again might be rounded otherwise."""
    x = np.random.default_rng(0).uniform(-1, 1, 4096).astype("float32")
    ti.init(arch=_start, log_level="error", fast_math=fast)
    made = ti.grad(lambda x: t.max(t.sin(x) * t.exp(x) / 3 + x * 1.1 - 0.2))(x).numpy()
    ti.init(arch=_start, log_level="error")
    assert (made != 0).sum() == 1


def test_dropout_is_drawn_again():
    key = t.asarray([1, 2], dtype="u32")

    def mask():
        return t.random.uniform(key, (50,)) > 0.5

    made = ti.grad(lambda x: (x * mask()).sum())(t.ones((50,)))
    np.testing.assert_array_equal(made.numpy(), mask().numpy())


# Loops.


def program(function, arguments, *wanted):
    check(ti.program(function), arguments, *wanted)


def test_a_store_in_a_loop():
    def f(x):
        y = x * 1
        with p.loop(2) as k:
            y[k + 1] = y[k] * y[k + 1]
        return y.sum()

    # x0 + x0 x1 + x0 x1 x2
    program(f, [[2, 3, 5]], [1 + 3 + 15, 2 + 10, 6])


@pytest.mark.parametrize("most, n", [(0.5, 0), (3.0, 1), (100.0, 6)])
def test_a_loop_that_is_left_early(most, n):
    def f(x):
        y = p.const(1.0, "f64") + x * 0
        with p.loop(1000):
            with p.if_cond(abs(y).max() > most):
                p.break_loop()
            y.val = y * x
        return y.sum()

    n = 0 if most < 1 else int(np.floor(np.log(most) / np.log(2))) + 1
    program(f, [[2.0]], [n * 2.0 ** (n - 1) if n else 0.0])


def test_a_count_that_only_the_run_knows():
    def f(x, n):
        y = x * 1
        with p.loop(n.astype("i32")):
            y.val = t.sin(y) * x
        return y.sum()

    def by_hand(x, n):
        y = x * 1
        for _ in range(n):
            y = t.sin(y) * x
        return y.sum()

    x = f64([0.5, 1.5])
    made = ti.program(lambda x, n: ti.grad(lambda x: f(x, n))(x))
    for n in (0, 1, 5):
        want = ti.grad(lambda x: by_hand(x, n))(x).numpy()
        np.testing.assert_allclose(made(x, t.asarray(n)).numpy(), want, rtol=1e-12)


def test_nested_loops():
    def f(x):
        y = x * 1
        with p.loop(3):
            z = y * 0 + 1
            with p.loop(2):
                z.val = z * y
            y.val = z * x
        return y.sum()

    # y -> y^2 x, three times: x^15.
    program(f, [[1.1, 0.9]], 15 * np.asarray([1.1, 0.9]) ** 14)


def test_points_leave_a_loop_one_by_one():
    def f(x):
        y = x * 1
        with p.loop(10):
            with p.if_cond(y > 10):
                p.break_loop()
            y.val = y * y
        return y.sum()

    program(f, [[2.0, 3.0, 11.0]], [4 * 2.0**3, 4 * 3.0**3, 1])


def test_a_branch_of_the_host():
    def f(x):
        y = x * 1
        with p.if_cond(x.sum() > 0):
            y.val = y * y
        with p.if_cond(x.sum() <= 0):
            y.val = y * 3
        return y.sum()

    program(f, [[1.0, 2.0]], [2, 4])
    program(f, [[-1.0, -2.0]], [3, 3])


def test_a_hessian_through_a_loop():
    @ti.program
    def f(x):
        y = x * 1
        with p.loop(2):
            y.val = y * x
        return y.sum()

    assert np.allclose(ti.hessian(f)(f64([2.0])).numpy(), [[12.0]])
