"""Quantiles by every method, with and without NaN; reductions at the edges; histograms of any elements."""

import math

import numpy as np
import pytest

import aerogel as ti
from aerogel import xp
from aerogel.tensor._quantiles import METHODS

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error", default_fp=ti.f64)


def same(got, want, rtol=1e-14):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-15)


RNG = np.random.default_rng(3)
Q = [0.0, 0.1, 0.25, 0.3, 0.5, 2 / 3, 0.75, 0.99, 1.0]
X = RNG.integers(-9, 9, (5, 4, 3)).astype(float)


@pytest.mark.parametrize("method", METHODS)
def test_methods(method):
    for x in (X, X.astype(np.int32), X[0], X[0, :, 0], X[:1, 0, 0]):
        wanted = np.quantile(x, Q, method=method)
        same(xp.quantile(xp.asarray(x), Q, method=method), wanted)
        same(ti.program(lambda x: xp.quantile(x, Q, method=method))(xp.asarray(x)), wanted)
    for axis in (0, -1, (0, 2), (2, 1)):
        for keepdims in (False, True):
            wanted = np.quantile(X, Q, axis=axis, keepdims=keepdims, method=method)
            same(xp.quantile(xp.asarray(X), Q, axis=axis, keepdims=keepdims, method=method), wanted)
    same(xp.percentile(xp.asarray(X), 30, axis=1, method=method), np.percentile(X, 30, axis=1, method=method))
    same(xp.quantile(xp.asarray(X), [Q[:2], Q[2:4]], axis=1), np.quantile(X, Q[:4], axis=1).reshape(2, 2, 5, 3))
    # The probabilities of a tensor.
    q = xp.asarray(Q)
    run = ti.program(lambda x, q: xp.quantile(x, q, axis=0, method=method))
    same(run(xp.asarray(X), q), np.quantile(X, Q, axis=0, method=method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_elements_that_are_nan(method):
    x = np.where(RNG.random(X.shape) < 0.4, NAN, X)
    x[0, 0] = NAN
    for axis in (None, 0, -1, (0, 2)):
        same(xp.quantile(xp.asarray(x), Q, axis=axis), np.quantile(x, Q, axis=axis))
        wanted = np.nanquantile(x, Q, axis=axis, method=method)
        same(xp.nanquantile(xp.asarray(x), Q, axis=axis, method=method), wanted)
        same(ti.program(lambda x: xp.nanquantile(x, Q, axis=axis, method=method))(xp.asarray(x)), wanted)
    same(xp.nanpercentile(xp.asarray(x), 25, axis=1), np.nanpercentile(x, 25, axis=1))
    same(xp.nanmedian(xp.asarray(x), axis=(1, 2), keepdims=True), np.nanmedian(x, axis=(1, 2), keepdims=True))


def test_infinite_elements():
    # NumPy's own are NaN here, the difference of infinities.
    assert xp.quantile([1.0, 2.0, INF], [0.0, 0.5, 1.0]).tolist() == [1, 2, INF]
    assert xp.quantile([INF, INF, -INF], [0.0, 0.75]).tolist() == [-INF, INF]
    assert math.isnan(xp.quantile([1.0, 2.0], NAN).item())


def test_half_precision_is_computed_in_single():
    x = np.linspace(0, 2, 9).astype(np.float16)
    assert xp.quantile(xp.asarray(x), 0.3).dtype is ti.f16
    assert xp.nanmean(xp.asarray(x)).dtype is ti.f16
    same(xp.nanstd(xp.asarray(x)), np.nanstd(x), rtol=1e-3)


def test_wrong_arguments_of_quantiles():
    with pytest.raises(ValueError, match="a probability is from 0 to 1, not 1.5"):
        xp.quantile([1.0], 1.5)
    with pytest.raises(ValueError, match="from 0 to 100, not -1"):
        xp.percentile([1.0], -1)
    with pytest.raises(ValueError, match="no method 'x'; use one of inverted_cdf, "):
        xp.quantile([1.0], 0.5, method="x")
    with pytest.raises(ValueError, match="`quantile` of no elements"):
        xp.quantile(np.zeros((2, 0)), 0.5, axis=1)
    assert xp.quantile(np.zeros((0, 2)), 0.5, axis=1).shape == (0,)
    with pytest.raises(IndexError, match="no axis 1"):
        xp.quantile([1.0], 0.5, axis=1)
    with pytest.raises(TypeError, match="real numbers"):
        xp.quantile([1j], 0.5)
    with pytest.raises(ValueError, match="`quantile` of 0 elements"):
        ti.program(lambda x: xp.quantile(x, 0.5))(xp.zeros(0))
    assert math.isnan(xp.quantile(xp.asarray([1.0, 2.0]), xp.asarray(1.5)).item())


@pytest.mark.filterwarnings("ignore")
def test_reductions_of_nothing_but_nan():
    x = np.array([[NAN, NAN], [1.0, NAN]])
    for name in ("nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanstd", "nanvar"):
        same(getattr(xp, name)(xp.asarray(x), axis=1), getattr(np, name)(x, axis=1))
    same(xp.nanvar(xp.asarray(x), axis=1, ddof=1), np.nanvar(x, axis=1, ddof=1))
    same(xp.nanvar(xp.asarray(x), axis=1, correction=1), np.nanvar(x, axis=1, ddof=1))
    assert xp.nansum(xp.zeros((0,))).item() == 0 and xp.nanprod(xp.zeros((0,))).item() == 1
    assert math.isnan(xp.nanmean(xp.zeros((0,))).item())
    for name in ("nanargmax", "nanargmin"):
        with pytest.raises(ValueError, match="all elements of a slice are NaN"):
            getattr(xp, name)(xp.asarray(x), axis=1)
        with pytest.raises(ValueError, match="all elements of a slice are NaN"):
            ti.program(lambda x: getattr(xp, name)(x, axis=1))(xp.asarray(x))
    z = np.array([1 + 2j, complex(NAN, 0)])
    assert xp.nansum(xp.asarray(z)).item() == np.nansum(z) and xp.nanmean(xp.asarray(z)).item() == np.nanmean(z)
    with pytest.raises(TypeError, match="real"):
        xp.nanvar(z)


def test_empty_histograms():
    for f in (lambda m: m.histogram(np.zeros(0), 3), lambda m: m.histogram(np.zeros((2, 0)), [0.0, 1.0])):
        for got, want in zip(f(xp), f(np)):
            same(got, want)
    assert xp.bincount([]).tolist() == [] and xp.bincount([], minlength=2).tolist() == [0, 0]
    assert xp.digitize(xp.zeros(0), [1.0]).shape == (0,) and xp.digitize([1.0], []).tolist() == [0]


def test_histograms_of_every_dtype():
    for dtype in ("i1", "u1", "i2", "i4", "u4", "i8", "f4", "f8", "bool"):
        x = (RNG.uniform(0, 2, 50) if dtype == "bool" else RNG.uniform(0, 100, 50)).astype(dtype)
        got, want = xp.histogram(xp.asarray(x), 6), np.histogram(x, 6)
        same(got[0], want[0])
        same(got[1], want[1], rtol=1e-6)
    # Integers that `f32` does not hold.
    x = np.array([2**24, 2**24 + 1, 2**24 + 3])
    same(xp.histogram(xp.asarray(x), 3)[0], np.histogram(x, 3)[0])


def test_counts():
    i = np.array([3, 0, 3, 1])
    same(xp.bincount(xp.asarray(i)), np.bincount(i))
    same(xp.bincount(i, minlength=9), np.bincount(i, minlength=9))
    same(xp.bincount(i, weights=[0.5, 1, 2, 3]), np.bincount(i, weights=[0.5, 1, 2, 3]))
    same(xp.bincount(np.array([True, False, True])), [1, 2])
    same(xp.bincount(i.astype("u1")), np.bincount(i))
    run = ti.program(lambda i, w: (xp.bincount(i, length=3), xp.bincount(i, w, length=5)))
    counts, sums = run(xp.asarray(i), xp.asarray([0.5, 1.0, 2.0, 3.0]))
    assert counts.tolist() == [1, 1, 0] and sums.tolist() == [1, 3, 0, 2.5, 0]
    with pytest.raises(ValueError, match="cannot be part of a program.*pass a `length`"):
        ti.program(lambda i: xp.bincount(i))(xp.asarray(i))
    with pytest.raises(TypeError, match="`bincount` takes integers, not `f64`"):
        xp.bincount([1.5])
    with pytest.raises(ValueError, match="a value is negative"):
        xp.bincount([1, -1])
    with pytest.raises(ValueError, match="a value is negative"):
        ti.program(lambda i: xp.bincount(i, length=2))(xp.asarray([1, -1]))
    with pytest.raises(ValueError, match="one axis"):
        xp.bincount([[1]])
    with pytest.raises(ValueError, match="weights of shape"):
        xp.bincount([1, 2], weights=[1.0])
    with pytest.raises(ValueError, match="`minlength` is -1, below zero"):
        xp.bincount([1], minlength=-1)


def test_wrong_bins():
    with pytest.raises(ValueError, match="must increase or decrease"):
        xp.digitize([1.0], [1.0, 3.0, 2.0])
    with pytest.raises(ValueError, match="one axis of edges"):
        xp.digitize([1.0], [[1.0]])
    with pytest.raises(ValueError, match="edges of bins must increase"):
        xp.histogram([1.0], [3.0, 1.0])
    with pytest.raises(ValueError, match="`bins` must be at least 1"):
        xp.histogram([1.0], 0)
    with pytest.raises(ValueError, match="ends at 1, below its start 2"):
        xp.histogram([1.0], range=(2, 1))
    with pytest.raises(ValueError, match="not finite"):
        xp.histogram([1.0], range=(0, INF))
    with pytest.raises(ValueError, match="the rule 'auto' is not supported"):
        xp.histogram([1.0], "auto")
    with pytest.raises(TypeError, match="real"):
        xp.histogram([1j])


@pytest.mark.filterwarnings("ignore")
def test_averages_and_covariances_at_the_edges():
    assert math.isnan(xp.cov([1.0]).item()) and math.isnan(xp.average([1, 2], weights=[0, 0]).item())
    same(xp.corrcoef([1.0, 2.0]), np.corrcoef([1.0, 2.0]))
    with pytest.raises(TypeError, match="name an axis"):
        xp.average([1.0, 2.0, 3.0], weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="weights of shape"):
        xp.average([[1.0, 2.0, 3.0]], axis=1, weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="several in a matrix"):
        xp.cov(np.zeros((1, 1, 1)))
    with pytest.raises(TypeError, match="`fweights` are integers"):
        xp.cov([1.0, 2.0], fweights=[1.0, 1.0])
