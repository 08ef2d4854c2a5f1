"""Gradients of the names of NumPy, SciPy and JAX: against differences at usual points, and against formulas at the others."""

import math

import numpy as np
import pytest

import aerogel as ti
from aerogel import special, xp
from aerogel.nn import functional as F


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error", default_fp=ti.f64)


RNG = np.random.default_rng(3)
A, POSITIVE = RNG.standard_normal((3, 4)), np.abs(RNG.standard_normal((3, 4))) + 0.1
SQUARE, ROW, LONG = RNG.standard_normal((3, 3)), RNG.standard_normal(4), RNG.standard_normal(6)
HOLES = np.where(A > 0.8, np.nan, A)

USUAL = [-20.3, -3.3, -0.7, -0.3, 0.2, 0.6, 1.4, 3.1, 9.3]
ABOVE = [0.2, 0.6, 0.9, 1.4, 2.2, 3.1, 9.3, 500.0]
WITHIN = [-0.95, -0.7, -0.3, 0.2, 0.6, 0.9]
OF_ONE = {
    (
        special,
        "cbrt erf erfc exp2 exprel expit expm1 exp10 gammaln digamma log_expit log_ndtr ndtr sinc softplus",
    ): USUAL,
    (special, "erfcx"): USUAL[1:],
    (special, "log1p entr"): ABOVE,
    (special, "erfinv"): WITHIN,
    (special, "logit ndtri"): [0.02, 0.3, 0.6, 0.97],
    (special, "erfcinv"): [0.02, 0.3, 0.6, 1.7],
    (F, "celu elu gelu hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid mish relu relu6 selu silu"): USUAL,
    (F, "soft_sign sparse_plus sparse_sigmoid squareplus tanh"): USUAL,
    (F, "log1mexp"): ABOVE[:-1],
    (xp, "arcsinh arctan fabs nan_to_num degrees radians rint fix ptp"): USUAL,
    (xp, "arccosh"): ABOVE[3:],
    (xp, "arcsin arccos arctanh"): WITHIN,
}


def expect_gradient(function, *arguments):
    """Compares the gradients of a sum of the results, each with another weight, with differences."""

    def total(*arguments):
        out = function(*arguments)
        parts = list(out) if isinstance(out, (list, tuple)) else [out]
        return sum((part * (xp.cos(xp.arange(part.size) * 1.0).reshape(part.shape))).sum() for part in parts)

    ti.check_grad(total, *arguments, tolerance=2e-5)


@pytest.mark.parametrize(("module", "names"), OF_ONE)
def test_functions_of_one_number(module, names):
    for name in names.split():
        # All at once: no result depends on two elements, but that of `ptp`.
        expect_gradient(getattr(module, name), np.array(OF_ONE[module, names]))


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_functions_of_two_numbers(name):
    expect_gradient(getattr(special, name), POSITIVE, POSITIVE[::-1].copy())


OF_TENSORS = {
    "logsumexp": (lambda x, b: special.logsumexp(x, axis=1, b=b), A, POSITIVE),
    "logsumexp, sign": (lambda x, b: special.logsumexp(x, axis=1, b=b, return_sign=True)[0], A, A[::-1].copy()),
    "logmeanexp": (F.logmeanexp, A),
    "softmax": (F.softmax, A),
    "log_softmax": (F.log_softmax, A),
    "standardize": (F.standardize, A),
    "glu": (F.glu, A),
    "gelu": (lambda x: F.gelu(x, False), A),
    "average": (lambda x, w: xp.average(x, axis=1, weights=w), A, POSITIVE),
    "cov": (lambda x, w: xp.cov(x, aweights=w), A, POSITIVE[0]),
    "corrcoef": (xp.corrcoef, A),
    "convolve": (xp.convolve, LONG, ROW),
    "correlate": (lambda x, y: xp.correlate(x, y, "same"), LONG, ROW),
    "cross": (xp.cross, SQUARE, SQUARE[::-1].copy()),
    "cumprod": (lambda x: xp.cumprod(x, 1), A),
    "median": (lambda x: xp.median(x, axis=1), A),
    "quantile": (lambda x, q: xp.quantile(x, q, axis=1), A, np.array([0.1, 0.4, 0.77])),
    "percentile": (lambda x: xp.percentile(x, 33.0, method="midpoint"), A),
    "ptp": (lambda x: xp.ptp(x, axis=0), A),
    "trapezoid": (lambda y, x: xp.trapezoid(y, x, axis=1), A, POSITIVE),
    "gradient": (lambda x: xp.gradient(x, 2.0, axis=1), A),
    "interp": (lambda x, y: xp.interp(x, xp.asarray([-1.0, 0.0, 1.0, 2.0]), y), LONG, ROW),
    "unwrap": (lambda x: xp.unwrap(x, axis=1), A * 5),
    "kron": (xp.kron, SQUARE, ROW[:3]),
    "matvec": (xp.matvec, A, ROW),
    "vecmat": (lambda x, y: xp.vecmat(y, x), A, ROW[:3].copy()),
    "inner": (xp.inner, A, POSITIVE),
    "outer": (xp.outer, LONG, ROW),
    "vdot": (xp.vdot, A, POSITIVE),
    "trace": (xp.trace, A),
    "diag": (xp.diag, ROW),
    "rot90": (lambda x: xp.rot90(x) * xp.rot90(x), A),
    "pad": (lambda x: xp.pad(x, ((1, 2), (0, 1)), mode="reflect") ** 2, A),
    "partition": (lambda x: xp.partition(x, 1, axis=1), A),
    "unique": (xp.unique, LONG),
    "polyadd": (xp.polyadd, LONG, ROW),
    "polymul": (xp.polymul, LONG, ROW),
    "polyder": (lambda p: xp.polyder(p, 2), LONG),
    "polyint": (lambda p: xp.polyint(p, 2), LONG),
    "polyval": (xp.polyval, ROW, LONG),
    "polyfit": (lambda x, y: xp.polyfit(x, y, 2), LONG, LONG[::-1].copy()),
    "vander": (lambda x: xp.vander(x, 4), ROW),
    "select": (lambda x, y: xp.select([x > 1, x < 0], [y * 2, x * x], 0.5), A, POSITIVE),
    "histogram": (lambda w: xp.histogram(xp.asarray(LONG), 4, weights=w, density=True)[0], LONG + 3),
    "bincount": (lambda w: xp.bincount(xp.asarray([0, 2, 2, 1]), weights=w), ROW),
    "block": (lambda x, y: xp.block([[x, y], [y, x]]) ** 2, A, POSITIVE),
    "append": (lambda x, y: xp.append(x, y) ** 2, A, ROW),
    "ediff1d": (xp.ediff1d, A),
    "divmod": (lambda x: xp.divmod(x, 0.7)[1], A),
    "fmod": (lambda x, y: xp.fmod(x, y), A * 3, POSITIVE),
    "power": (xp.power, POSITIVE, A),
    "logaddexp2": (xp.logaddexp2, A, POSITIVE),
    "fmax": (xp.fmax, A, POSITIVE),
    "linspace": (lambda x: xp.linspace(x[0], x[1], 5), ROW),
    "logspace": (lambda x: xp.logspace(x[0], x[1], 5), ROW),
    "geomspace": (lambda x: xp.geomspace(x[0], x[1], 5), POSITIVE[0]),
}


@pytest.mark.parametrize("name", OF_TENSORS)
def test_functions_of_tensors(name):
    expect_gradient(*OF_TENSORS[name])


@pytest.mark.parametrize("name", "sum mean prod max min std var median cumsum cumprod".split())
def test_nan_is_ignored(name):
    function = getattr(xp, f"nan{name}")
    at = np.isnan(HOLES)
    gradient = ti.grad(lambda x: (function(x, axis=1) ** 2).sum())(HOLES).numpy()
    assert np.all(gradient[at] == 0)
    expect_gradient(lambda x: function(xp.where(xp.asarray(at), np.nan, x), axis=1), A)


#: Where a formula divides by zero, subtracts infinities or has a kink: the function, points, and its derivatives.
ROOT = 2 / math.sqrt(math.pi)
POINTS = {
    "erfc": (special.erfc, [0, -1e300, 1e300], [-ROOT, 0, 0]),
    "erfcx": (special.erfcx, [0, -1000, -30, 1e300], [-ROOT, -math.inf, -math.inf, 0]),
    "erfinv": (special.erfinv, [0, 1, -1], [1 / ROOT, math.inf, math.inf]),
    "erfcinv": (special.erfcinv, [1], [-1 / ROOT]),
    "ndtr": (special.ndtr, [0, 1e300, -1e300], [math.sqrt(0.5 / math.pi), 0, 0]),
    "log_ndtr": (special.log_ndtr, [-1e8, 0, 1e300], [1e8, ROOT / math.sqrt(2), 0]),
    "gammaln": (special.gammaln, [1, 2, 1e300], [-np.euler_gamma, 1 - np.euler_gamma, 300 * math.log(10)]),
    "digamma": (special.digamma, [1, 1e300], [math.pi**2 / 6, 0]),
    "xlogy by x": (lambda x: special.xlogy(x, 2.0), [0], [math.log(2)]),
    "xlogy by y": (lambda y: special.xlogy(0.0, y), [0, 1, 5], [0, 0, 0]),
    "xlog1py by y": (lambda y: special.xlog1py(0.0, y), [-1, 0, 5], [0, 0, 0]),
    "entr": (special.entr, [0, 1], [0, -1]),
    "rel_entr": (lambda x: special.rel_entr(x, 2.0), [0, 2], [0, 1]),
    "kl_div by y": (lambda y: special.kl_div(0.0, y), [2], [1]),
    "expit": (special.expit, [0, 800, -800, 1e300], [0.25, 0, 0, 0]),
    "log_expit": (special.log_expit, [0, 1e300, -1e300], [0.5, 0, 1]),
    "softplus": (special.softplus, [0, 1e300, -1e300], [0.5, 1, 0]),
    "logit": (special.logit, [0.5, 0.25], [4, 16 / 3]),
    "exprel": (special.exprel, [0, 1e-9, -1e-5, -1e300], [0.5, 0.5, 0.5 - 1e-5 / 3, 0]),
    "sinc": (special.sinc, [0, 1e-9, 1], [0, -1e-9 * math.pi**2 / 3, -1]),
    "mish": (F.mish, [0, 1e300, -1e300], [0.6, 1, 0]),
    "gelu": (F.gelu, [0, 50, -50, 1e100], [0.5, 1, 0, 1]),
    "exact gelu": (lambda x: F.gelu(x, False), [0, 50, -50], [0.5, 1, 0]),
    "silu": (F.silu, [0, 1e300, -1e300], [0.5, 1, 0]),
    "elu": (F.elu, [-1e300, 1e300], [0, 1]),
    "soft_sign": (F.soft_sign, [0, 1e300], [1, 0]),
    "squareplus": (F.squareplus, [0, 1e100], [0.5, 1]),
    "sparse_plus": (F.sparse_plus, [-5, -1, 1, 5], [0, 0, 1, 1]),
    "power 2": (lambda x: xp.power(x, 2.0), [0, -2], [0, -4]),
    "power 0": (lambda x: xp.power(x, 0.0), [0, 3], [0, 0]),
    "logaddexp2": (lambda x: xp.logaddexp2(x, 1.0), [1, 1e300, -1e300], [0.5, 1, 0]),
    "fmax": (lambda x: xp.fmax(x, np.nan), [1], [1]),
    "nan_to_num": (xp.nan_to_num, [np.nan, np.inf, 2], [0, 0, 1]),
    "heaviside": (lambda x: xp.heaviside(x, 0.5), [0, 1], [0, 0]),
    "float32": (lambda x: special.erfcx(x.astype(ti.f32)), [-20, 0], [-math.inf, -ROOT]),
}


@pytest.mark.parametrize("name", POINTS)
def test_awkward_points(name):
    function, points, wanted = POINTS[name]
    gradient = ti.grad(lambda x: function(x).sum())(np.array(points, dtype=np.float64)).numpy()
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize("name", ["relu6", "hard_tanh", "hard_sigmoid", "leaky_relu", "sparse_sigmoid"])
def test_kinks(name):
    """At a kink the derivative is one of those on both sides, or between."""
    function = getattr(F, name)
    at = np.array([-3.0, -1.0, 0.0, 1.0, 3.0, 6.0])
    below, gradient, above = (ti.grad(lambda x: function(x).sum())(at + d).numpy() for d in (-1e-3, 0.0, 1e-3))
    assert np.all(np.minimum(below, above) <= gradient) and np.all(gradient <= np.maximum(below, above))


def test_sums_of_exponentials():
    x = np.array([[3.0, 3.0, 1.0], [1e300, 0, 1e300], [-math.inf, 0, 0], [-math.inf] * 3])
    wanted = np.exp(x[0]) / np.exp(x[0]).sum(), [0.5, 0, 0.5], [0, 0.5, 0.5], [0, 0, 0]
    for function in (special.logsumexp, F.logmeanexp):
        gradient = ti.grad(lambda x: function(x, axis=1).sum())(x).numpy()
        np.testing.assert_allclose(gradient, wanted)
    b = np.array([0.0, 1.0, 1.0])
    gradient = ti.grad(lambda x: special.logsumexp(x, b=b))(np.array([math.inf, 2.0, 2.0]))
    assert gradient.tolist() == [0, 0.5, 0.5]


def test_ties_share_or_choose():
    """Where elements are equal, their gradients sum to that of the result."""
    x = np.array([2.0, 5.0, 5.0, 2.0, 5.0])
    for name in "amax amin median nanmax nanmin nanmedian".split():
        gradient = ti.grad(getattr(xp, name))(x).numpy()
        assert gradient.sum() == pytest.approx(1) and np.all(gradient >= 0)
        assert np.all(gradient[x != getattr(np, name)(x)] == 0)
    assert ti.grad(xp.nanstd)(np.array([1.0, 1.0, np.nan])).tolist() == [0, 0, 0]


KEYS = {"one": 1, "part": slice(1, None), "repeated": np.array([0, 2, 2, 1])}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"])
def test_at(name, key):
    if key == "repeated" and name not in ("add", "subtract"):
        pytest.skip("only sums of several values have gradients")
    key = KEYS[key]
    values = np.abs(RNG.standard_normal(POSITIVE[key].shape)) + 0.2

    def function(x, v):
        return getattr(x.at[key], name)(v)

    expect_gradient(function, POSITIVE, values)
    ti.check_grad(ti.program(lambda x, v: (function(x, v) ** 2).sum()), POSITIVE, values)


def test_at_masks():
    for name in ("set", "add", "multiply", "min", "max", "divide", "power"):
        expect_gradient(lambda x, v: getattr(x.at[x > 0.6], name)(v), POSITIVE, np.array(1.7))
