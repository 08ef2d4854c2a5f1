"""NumPy's names in `aerogel.xp`, each against NumPy, eagerly and in programs."""

import math

import numpy as np
import pytest

import aerogel as ti
from aerogel import xp
from aerogel.tensor import programs as p

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error", default_fp=ti.f64)


def parts(made):
    return [np.asarray(m) for m in made] if isinstance(made, (tuple, list)) else [np.asarray(made)]


def same(made, wanted, rtol=1e-13):
    made, wanted = parts(made), parts(wanted)
    assert len(made) == len(wanted)
    for got, want in zip(made, wanted):
        assert got.shape == want.shape
        kinds = {"i": "iu", "u": "iu"}
        assert got.dtype.kind in kinds.get(want.dtype.kind, want.dtype.kind), (got.dtype, want.dtype)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


RNG = np.random.default_rng(7)
X, Y = RNG.uniform(-2, 2, (3, 4)), RNG.uniform(-2, 2, (3, 4))
V, W = RNG.uniform(-2, 2, 7), RNG.uniform(-2, 2, 3)
I = RNG.integers(-5, 6, (3, 4))
C = V[:4] + 1j * V[3:]
N = np.where(RNG.random((3, 4)) < 0.3, NAN, X)
T = RNG.uniform(-1, 1, (2, 3, 4))

#: What is called with NumPy and with `xp`, and the arguments that are arrays.
CASES = {
    "append": (lambda m, x, y: m.append(x, y, axis=1), X, Y),
    "append flat": (lambda m, x, y: m.append(x, y), X, V),
    "hstack": (lambda m, x, y: m.hstack([x, y]), X, Y),
    "hstack of vectors": (lambda m, x, y: m.hstack((x, y)), V, W),
    "hstack of numbers": (lambda m, x: m.hstack([x[0], x[1], 3.0]), V),
    "vstack": (lambda m, x, y: m.vstack([x, y]), X, Y),
    "vstack of vectors": (lambda m, x: m.vstack([x, x * 2]), V),
    "vstack of complex": (lambda m, x: m.vstack([x, x * 2]), C),
    "dstack": (lambda m, x, y: m.dstack([x, y]), X, Y),
    "dstack of vectors": (lambda m, x: m.dstack([x, x]), V),
    "column_stack": (lambda m, x, y: m.column_stack([x, y, x[:, 0]]), X, Y),
    "block": (lambda m, x, y, w: m.block([[x, y], [y[:1], x[1:2]], [m.concatenate([w, w, w[:2]])]]), X, Y, W),
    "block of rows": (lambda m, x, y: m.block([x, y, 3.0]), V, W),
    "block of one": (lambda m, x: m.block(x), X),
    "atleast_1d": (lambda m, x: m.atleast_1d(x[0, 0]), X),
    "atleast_2d": (lambda m, x: m.atleast_2d(x), V),
    "atleast_3d": (lambda m, x: m.atleast_3d(x), V),
    "atleast_3d of two": (lambda m, x, y: m.atleast_3d(x, y), X, V),
    "split": (lambda m, x: m.split(x, 2, axis=1), X),
    "split at": (lambda m, x: m.split(x, [2, 3]), V),
    "array_split": (lambda m, x: m.array_split(x, 3), V),
    "array_split more": (lambda m, x: m.array_split(x, 5), W),
    "array_split at": (lambda m, x: m.array_split(x, [1, 5]), V),
    "hsplit": (lambda m, x: m.hsplit(x, 2), X),
    "vsplit": (lambda m, x: m.vsplit(x, 3), X),
    "dsplit": (lambda m, x: m.dsplit(x, 2), T),
    "swapaxes": (lambda m, x: m.swapaxes(x, 0, -1), T),
    "rollaxis": (lambda m, x: m.rollaxis(x, 2, 1), T),
    "ravel": (lambda m, x: m.ravel(x), X),
    "ravel of complex": (lambda m, x: m.ravel(x), C.reshape(2, 2)),
    "fliplr": (lambda m, x: m.fliplr(x), X),
    "flipud": (lambda m, x: m.flipud(x), X),
    **{f"rot90 {k}": (lambda m, x, k=k: m.rot90(x, k, axes=(-1, 0)), T) for k in (-1, 0, 1, 2, 3)},
    **{f"diag {k}": (lambda m, x, k=k: m.diag(x, k), V) for k in (-2, 0, 3)},
    "diag of a matrix": (lambda m, x: m.diag(x, 1), X),
    "diag of complex": (lambda m, x: m.diag(x), C),
    "diag of integers": (lambda m, x: m.diag(x), I[0]),
    "diagflat": (lambda m, x: m.diagflat(x, 1), X),
    "diagonal": (lambda m, x: m.diagonal(x), T),
    "trace": (lambda m, x: m.trace(x), T),
    "kron": (lambda m, x, y: m.kron(x, y), X, W),
    "kron of three": (lambda m, x, y: m.kron(x, y), T, X),
    "kron of numbers": (lambda m, x: m.kron(2.0, x), V),
    "outer": (lambda m, x, y: m.outer(x, y), X, W),
    "inner": (lambda m, x, y: m.inner(x, y), X, Y),
    "inner of vectors": (lambda m, x: m.inner(x, x), V),
    "inner of three": (lambda m, x, y: m.inner(x, y), T, X),
    "inner of numbers": (lambda m, x: m.inner(x, 2.0), X),
    "vdot": (lambda m, x, y: m.vdot(x, y), X, Y),
    "vdot of complex": (lambda m, x: m.vdot(x, x * 1j), C),
    "cross": (lambda m, x: m.cross(x, x[::-1]), W),
    "tril_indices": (lambda m, x: x[m.tril_indices(3, 1, 4)], X),
    "triu_indices": (lambda m, x: x[m.triu_indices(3, -1, 4)], X),
    "triu_indices_from": (lambda m, x: x[m.triu_indices_from(np.ones((3, 4)))], X),
    "diag_indices": (lambda m, x: x[m.diag_indices(3)], X),
    "indices": (lambda m: m.indices((2, 3)),),
    "indices sparse": (lambda m: m.indices((2, 3), sparse=True),),
    "select": (lambda m, x, y: m.select([x > 1, y > 0, x > 0], [x, y, x * 10], -1), X, Y),
    "select of integers": (lambda m, x: m.select([x > 0], [x], 2.5), I),
    "unravel_index": (lambda m, i: m.unravel_index(i, (3, 4, 2)), np.arange(24)),
    "unravel_index of one": (lambda m: m.unravel_index(7, (3, 4)),),
    "ravel_multi_index": (lambda m, i: m.ravel_multi_index((i, i * 2), (3, 6)), np.arange(3)),
    "ravel_multi_index of F": (lambda m, i: m.ravel_multi_index((i, i * 2), (3, 6), order="F"), np.arange(3)),
    "ravel_multi_index outside": (
        lambda m, i: m.ravel_multi_index((i, i * 3), (3, 6), mode=("wrap", "clip")),
        np.arange(-4, 4),
    ),
    "nan_to_num": (lambda m, x: m.nan_to_num(x), np.array([1.0, NAN, INF, -INF])),
    "nan_to_num of f32": (lambda m, x: m.nan_to_num(x), np.array([1.0, NAN, INF, -INF], np.float32)),
    "nan_to_num given": (lambda m, x: m.nan_to_num(x, nan=1, posinf=2, neginf=3), np.array([1.0, NAN, INF, -INF])),
    "nan_to_num of complex": (lambda m, x: m.nan_to_num(x, posinf=9), np.array([1 + NAN * 1j, complex(INF, 2)])),
    "nan_to_num of integers": (lambda m, x: m.nan_to_num(x), I),
    "average": (lambda m, x: m.average(x), X),
    "average weighted": (lambda m, x, w: m.average(x, axis=0, weights=w), X, np.abs(W)),
    "average of all": (lambda m, x, w: m.average(x, weights=w), X, np.abs(Y)),
    "average returned": (lambda m, x, w: m.average(x, axis=1, weights=w, returned=True), X, np.abs(V[:4])),
    "average plain returned": (lambda m, x: m.average(x, axis=1, returned=True, keepdims=True), X),
    "average of axes": (lambda m, x, w: m.average(x, axis=(0, 2), weights=w), T, np.abs(Y[:2])),
    "average of axes turned": (lambda m, x, w: m.average(x, axis=(2, 0), weights=w), T, np.abs(Y[:2].T)),
    "average of complex": (lambda m, x, w: m.average(x, weights=w), C, np.abs(V[:4])),
    "cov": (lambda m, x: m.cov(x), X),
    "cov of columns": (lambda m, x: m.cov(x, rowvar=False, bias=True), X),
    "cov of two": (lambda m, x, y: m.cov(x, y), V, V[::-1] * 2),
    "cov of one": (lambda m, x: m.cov(x), V),
    "cov weighted": (
        lambda m, x, f, a: m.cov(x, fweights=f, aweights=a, ddof=1),
        X, np.array([1, 2, 3, 1]), np.abs(V[:4]),
    ),  # fmt: skip
    "cov of frequencies": (lambda m, x, f: m.cov(x, fweights=f), X, np.array([1, 2, 3, 1])),
    "cov of complex": (lambda m, x: m.cov(x), np.stack([C, C**2])),
    "corrcoef": (lambda m, x: m.corrcoef(x), X),
    "corrcoef of two": (lambda m, x, y: m.corrcoef(x, y), V, V[::-1]),
    "digitize": (lambda m, x: m.digitize(x, [-1.0, 0.0, 1.0]), X),
    "digitize right": (lambda m, x: m.digitize(x, [-3, 0, 3], right=True), I),
    "digitize down": (lambda m, x: m.digitize(x, [3, 0, -3]), I),
    "digitize down right": (lambda m, x: m.digitize(x, [3, 0, -3], right=True), I),
    "digitize by tensors": (lambda m, x, b: m.digitize(x, b), X, np.array([1.0, 0.0, -1.0])),
    "digitize NaN": (lambda m, x: m.digitize(x, [0.0, 1.0]), N),
    "histogram": (lambda m, x: m.histogram(x, 5), X),
    "histogram in a range": (lambda m, x: m.histogram(x, 4, range=(-1, 1)), X),
    "histogram by edges": (lambda m, x: m.histogram(x, [-1.0, 0.0, 0.5, 2.0]), X),
    "histogram density": (lambda m, x: m.histogram(x, 4, density=True), X),
    "histogram weighted": (lambda m, x, w: m.histogram(x, 4, weights=w), X, Y),
    "histogram of integers": (lambda m, x: m.histogram(x, 4), I),
    "histogram by whole edges": (lambda m, x: m.histogram(x, [-3, 0, 3]), I),
    "histogram of equal": (lambda m, x: m.histogram(x * 0 + 2, 3), V),
    "histogram of NaN": (lambda m, x: m.histogram(x, 3, range=(-1.0, 1.0)), N),
    "histogram_bin_edges": (lambda m, x: m.histogram_bin_edges(x, 3), X),
    "gradient": (lambda m, x: m.gradient(x), X),
    "gradient of one axis": (lambda m, x: m.gradient(x, 0.5, axis=1), X),
    "gradient of second order": (lambda m, x: m.gradient(x, 0.5, 2.0, edge_order=2), X),
    "gradient uneven": (lambda m, x, h: m.gradient(x, m.cumsum(m.abs(h) + 1), axis=1), X, V[:4]),
    "gradient uneven second": (lambda m, x, h: m.gradient(x, m.cumsum(m.abs(h) + 1), edge_order=2, axis=0), X, W),
    "gradient of complex": (lambda m, x: m.gradient(x), C),
    "gradient of integers": (lambda m, x: m.gradient(x, axis=(0, 1)), I),
    "trapezoid": (lambda m, x: m.trapezoid(x), X),
    "trapezoid by steps": (lambda m, x: m.trapezoid(x, dx=0.5, axis=0), X),
    "trapezoid by places": (lambda m, x, h: m.trapezoid(x, h, axis=0), X, W),
    "trapezoid by all places": (lambda m, x, y: m.trapezoid(x, y), X, Y),
    "unwrap": (lambda m, x: m.unwrap(x * 5), X),
    "unwrap by a period": (lambda m, x: m.unwrap(x * 5, period=3.0, axis=0), X),
    "interp": (lambda m, x: m.interp(x, [-1.0, 0.0, 1.5], [3.0, 1.0, 2.0]), X),
    "ediff1d": (lambda m, x: m.ediff1d(x, to_end=[1.0, 2.0], to_begin=0.0), X),
    "polyval": (lambda m, x: m.polyval([1.0, -2.0, 0.5], x), X),
    "polyval of integers": (lambda m, x: m.polyval([1, -2, 3], x), I),
    "polyval of complex": (lambda m, x: m.polyval([1.0, -2.0], x), C),
    "polyval of nothing": (lambda m, x: m.polyval(np.zeros(0), x), V),
    "polyfit": (lambda m, x, y: m.polyfit(x, y, 2), V, V[::-1]),
    "polyfit weighted": (lambda m, x, y, w: m.polyfit(x, y, 1, w=w), V, V[::-1], np.abs(V)),
    "polyfit of columns": (lambda m, x, y: m.polyfit(x, y, 1), W, X),
    "polyfit cov": (lambda m, x, y: m.polyfit(x, y, 2, cov=True), V, V[::-1]),
    "polyfit cov unscaled": (lambda m, x, y: m.polyfit(x, y, 1, cov="unscaled"), V, V[::-1]),
    "polyadd": (lambda m, x, y: m.polyadd(x, y), V, W),
    "polysub": (lambda m, x, y: m.polysub(x, y), V, W),
    "polymul": (lambda m, x, y: m.polymul(x, y), V, W),
    "polyder": (lambda m, x: m.polyder(x, 2), V),
    "polyder to nothing": (lambda m, x: m.polyder(x, 4), W),
    "polyint": (lambda m, x: m.polyint(x, 2, k=[1.0, 2.0]), V),
    "vander": (lambda m, x: m.vander(x, 4), W),
    "vander rising": (lambda m, x: m.vander(x, increasing=True), W),
    "lexsort": (lambda m, x, y: m.lexsort((x, y)), np.array([3, 1, 2, 0, 1]), np.array([1, 0, 1, 0, 0])),
    "lexsort of rows": (lambda m, x: m.lexsort(x), I),
    "partition": (lambda m, x: m.partition(x, 2)[..., 2], X),
    "partition of all": (lambda m, x: m.partition(x, -1, axis=None)[-1], X),
    "argpartition": (lambda m, x: m.argpartition(x, 1, axis=0)[1], X),
    "fmax": (lambda m, x, y: m.fmax(x, y), N, N[::-1]),
    "fmin": (lambda m, x, y: m.fmin(x, y), N, N[::-1]),
    "fmin of integers": (lambda m, x: m.fmin(x, 2), I),
    "divmod": (lambda m, x, y: m.divmod(x, y), X, Y),
    "divmod of integers": (lambda m, x: m.divmod(x, 3), I),
    "modf": (lambda m, x: m.modf(x), np.array([1.5, -1.5, -0.0, 3.0, -3.0, INF, -INF, NAN])),
    "power": (lambda m, x: m.power(m.abs(x), 1.5), X),
    "float_power": (lambda m, x: m.float_power(x, 3), I),
    "heaviside": (lambda m, x: m.heaviside(x, 0.5), np.array([-1.0, 0.0, -0.0, 2.0, NAN])),
    "ldexp": (lambda m, x, n: m.ldexp(x, n), X, I),
    "logaddexp2": (lambda m, x, y: m.logaddexp2(x, y), np.array([1.0, -INF, INF, NAN]), np.array([2.0, -INF, INF, 1.0])),
    "sinc": (lambda m, x: m.sinc(x), np.array([-0.5, 0.0, 0.25, 1.5])),
    "isposinf": (lambda m, x: m.isposinf(x), np.array([1.0, INF, -INF, NAN])),
    "isneginf": (lambda m, x: m.isneginf(x), np.array([1.0, INF, -INF, NAN])),
    "around": (lambda m, x: m.around(x, 1), X),
    "fabs": (lambda m, x: m.fabs(x), I),
    "fix": (lambda m, x: m.fix(x), X),
    "geomspace": (lambda m: m.geomspace(1, 1000, 7),),
    "geomspace of negative": (lambda m: m.geomspace(-2, -32, 5, endpoint=False),),
    "geomspace of one": (lambda m: m.geomspace(2, 32, 1),),
    "logspace": (lambda m: m.logspace(0, 3, 7, base=2.0),),
    "tri": (lambda m: m.tri(3, 4, 1),),
    "convolve": (lambda m, x, y: m.convolve(x, y), V, W),
    "convolve of integers": (lambda m, x: m.convolve(x, [1, 2]), I[0]),
    "ptp": (lambda m, x: m.ptp(x, axis=1, keepdims=True), X),
    "nancumsum": (lambda m, x: m.nancumsum(x, axis=1), N),
    "nancumprod": (lambda m, x: m.nancumprod(x), N),
    "median": (lambda m, x: m.median(x, axis=(0, 2)), T),
    "median kept": (lambda m, x: m.median(x, axis=(0, -1), keepdims=True), T),
    "nanmedian": (lambda m, x: m.nanmedian(x, axis=0), N),
    "matvec": (lambda m, x, y: m.matvec(x, y), T, Y[:2]),
    "matvec of complex": (lambda m, x: m.matvec(m.outer(x, x), x), C),
    "vecmat": (lambda m, x, y: m.vecmat(y[:, :3], x), T, Y[:2]),
    "vecmat of complex": (lambda m, x: m.vecmat(x, m.outer(x, x)), C),
    "diag_indices_from": (lambda m, x: x[m.diag_indices_from(np.ones((3, 3)))], X),
    "hanning": (lambda m: m.hanning(7),),
    "hamming": (lambda m: m.hamming(8),),
    "blackman": (lambda m: m.blackman(7),),
    "bartlett": (lambda m: m.bartlett(8),),
    "bartlett of one": (lambda m: m.bartlett(1),),
    "bartlett of none": (lambda m: m.bartlett(0),),
}  # fmt: skip
for _name in ("arccos", "arcsin", "arctanh"):
    CASES[_name] = (lambda m, x, name=_name: getattr(m, name)(x / 3), X)
for _name in ("absolute", "arcsinh", "arctan", "deg2rad", "degrees", "rad2deg", "radians", "rint", "cbrt", "exp2"):
    CASES[_name] = (lambda m, x, name=_name: getattr(m, name)(x), X)
for _name in ("arctan2", "mod", "fmod", "true_divide"):
    CASES[_name] = (lambda m, x, y, name=_name: getattr(m, name)(x, y), X, Y)
CASES["arccosh"] = (lambda m, x: m.arccosh(x + 3), X)
for _name in ("left_shift", "right_shift"):
    CASES[_name] = (lambda m, x, name=_name: getattr(m, name)(x, 2), I)
for _name in ("invert", "bitwise_not"):
    CASES[_name] = (lambda m, x, name=_name: getattr(m, name)(x), I)
for _name in ("nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanstd", "nanvar"):
    for _axis in (None, 0, -1, (0, 1)):
        CASES[f"{_name} {_axis}"] = (lambda m, x, name=_name, axis=_axis: getattr(m, name)(x, axis=axis), N)
    CASES[f"{_name} kept"] = (lambda m, x, name=_name: getattr(m, name)(x, axis=1, keepdims=True), N)
    CASES[f"{_name} of integers"] = (lambda m, x, name=_name: getattr(m, name)(x, axis=0), I)
for _name in ("nanstd", "nanvar"):
    CASES[f"{_name} ddof"] = (lambda m, x, name=_name: getattr(m, name)(x, axis=1, ddof=1), N)
for _name in ("nanargmax", "nanargmin"):
    CASES[f"{_name}"] = (lambda m, x, name=_name: getattr(m, name)(x), N)
    CASES[f"{_name} kept"] = (lambda m, x, name=_name: getattr(m, name)(x, axis=1, keepdims=True), N)
for _mode in ("full", "same", "valid"):
    for _short in (1, 2, 3, 4, 7):
        CASES[f"convolve {_mode} {_short}"] = (
            lambda m, x, y, mode=_mode: m.convolve(x, y, mode),
            V,
            X.ravel()[:_short],
        )
        CASES[f"correlate {_mode} {_short}"] = (
            lambda m, x, y, mode=_mode: m.correlate(x, y, mode),
            V,
            X.ravel()[:_short],
        )
    CASES[f"correlate {_mode} of complex"] = (lambda m, x, y, mode=_mode: m.correlate(x, y, mode), C, C[:3] * 1j)

#: Shapes that follow from sizes, which a program has to know when it is traced.
OF_KNOWN_SIZES = ("polyadd", "polysub", "polymul", "polyder", "polyint", "vander rising", "lexsort of rows")
#: Names whose last digits depend on the order of sums, or on a decomposition.
LOOSE = ("polyfit", "cov", "corrcoef")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_like_numpy(name):
    f, *arrays = CASES[name]
    same(f(xp, *map(xp.asarray, arrays)), f(np, *arrays), rtol=1e-11 if name.startswith(LOOSE) else 1e-13)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_like_numpy_in_programs(name):
    f, *arrays = CASES[name]
    if any(a.dtype.kind == "c" for a in arrays):
        pytest.skip("programs take real tensors")
    wanted = f(np, *arrays)

    def traced(*given):
        made = f(xp, *given)
        return tuple(made) if isinstance(made, list) else made

    def of_known_sizes():
        return traced(*(p.input(a.shape, a.dtype) for a in arrays))

    run = p.program(of_known_sizes if name.startswith(OF_KNOWN_SIZES) else traced)
    same(run(*map(xp.asarray, arrays)), wanted, rtol=1e-11 if name.startswith(LOOSE) else 1e-13)
