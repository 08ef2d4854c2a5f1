"""NumPy's names in `aerogel.xp` at the edges: wrong arguments, dtypes, NaN among unique elements, what depends on values."""

import math

import numpy as np
import pytest

import aerogel as ti
from aerogel import xp

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


WRONG = {
    "hstack": (lambda: xp.hstack(xp.ones(()), xp.ones(2)), TypeError, "positional"),
    "hstack of nothing": (lambda: xp.hstack([]), ValueError, "`hstack` takes at least one tensor"),
    "hstack of one": (lambda: xp.hstack(3), TypeError, r"in one list, as in `hstack\(\[a, b\]\)`"),
    "vstack": (lambda: xp.vstack([[1, 2], [3]]), ValueError, "operand 1|axis"),
    "block": (lambda: xp.block([[[1]], [2]]), ValueError, "nested equally deep"),
    "block of nothing": (lambda: xp.block([[], [1]]), ValueError, "a list is empty"),
    "block of tuples": (lambda: xp.block(((1,),)), TypeError, "lists, not tuples"),
    "split": (
        lambda: xp.split(xp.arange(5), 2),
        ValueError,
        "5 elements along axis 0 do not divide into 2 equal parts",
    ),
    "array_split": (lambda: xp.array_split(xp.arange(5), 0), ValueError, "`sections` must be at least 1"),
    "vsplit": (lambda: xp.vsplit(xp.arange(5), 1), ValueError, "at least two axes"),
    "dsplit": (lambda: xp.dsplit(xp.ones((2, 2)), 1), ValueError, "at least three axes"),
    "swapaxes": (lambda: xp.swapaxes(xp.ones(2), 0, 1), IndexError, "`swapaxes`: there is no axis 1"),
    "rollaxis": (lambda: xp.rollaxis(xp.ones(2), 0, 5), IndexError, "`start` is 5"),
    "fliplr": (lambda: xp.fliplr([1]), ValueError, "at least two axes"),
    "flipud": (lambda: xp.flipud(1), ValueError, "at least one axis"),
    "rot90": (lambda: xp.rot90(xp.ones((2, 2)), axes=(0, -2)), ValueError, "two different axes"),
    "diag": (lambda: xp.diag(5), ValueError, "one axis or two"),
    "diag by": (lambda: xp.diag([5], 0.5), TypeError, "`diag`: `k` takes an integer"),
    "inner": (lambda: xp.inner([1, 2], [1, 2, 3]), ValueError, "axis 0 of the first has 2 elements"),
    "vdot": (lambda: xp.vdot([1, 2], [1, 2, 3]), ValueError, "2 elements"),
    "tril_indices": (lambda: xp.tril_indices(-1), ValueError, "below zero"),
    "tril_indices of": (lambda: xp.tril_indices(2.5), TypeError, "an integer"),
    "tril_indices_from": (lambda: xp.tril_indices_from(xp.ones(2)), ValueError, "takes a matrix"),
    "select": (lambda: xp.select([], []), ValueError, "at least one condition"),
    "select of more": (lambda: xp.select([[True]], [1, 2]), ValueError, "1 conditions for 2 choices"),
    "select by numbers": (lambda: xp.select([[1]], [1]), TypeError, "a condition is boolean, not `i32`"),
    "unravel_index": (lambda: xp.unravel_index(7, (2, 3)), ValueError, r"outside of the shape \(2, 3\)"),
    "unravel_index below": (lambda: xp.unravel_index([-1], (2, 3)), ValueError, "outside of the shape"),
    "unravel_index of floats": (lambda: xp.unravel_index(0.5, (2, 3)), TypeError, "integers, not `f32`"),
    "ravel_multi_index": (lambda: xp.ravel_multi_index(([1], [5]), (2, 3)), ValueError, "outside of the shape"),
    "ravel_multi_index few": (lambda: xp.ravel_multi_index(([1],), (2, 3)), ValueError, "1 indices for 2 axes"),
    "ravel_multi_index mode": (lambda: xp.ravel_multi_index(([1], [1]), (2, 3), "x"), ValueError, "'clip' or 'wrap'"),
    "ravel_multi_index order": (lambda: xp.ravel_multi_index(([1], [1]), (2, 3), order="x"), ValueError, "'C' or 'F'"),
    "gradient": (lambda: xp.gradient([1.0]), ValueError, "axis 0 has 1 samples, and at least 2"),
    "gradient order": (lambda: xp.gradient([1.0, 2.0], edge_order=2), ValueError, "at least 3"),
    "gradient edge": (lambda: xp.gradient([1.0, 2.0], edge_order=3), ValueError, "`edge_order` is 1 or 2"),
    "gradient distances": (lambda: xp.gradient(xp.ones((3, 3, 3)), 1, 2), TypeError, "2 distances for 3"),
    "gradient places": (lambda: xp.gradient([1.0, 2.0], [1.0, 2.0, 3.0]), ValueError, "coordinates of shape"),
    "trapezoid": (lambda: xp.trapezoid([1.0, 2.0], [1.0, 2.0, 3.0]), ValueError, "coordinates of shape"),
    "polyval": (lambda: xp.polyval([[1.0]], 1), ValueError, "coefficients along one axis"),
    "polyfit": (lambda: xp.polyfit([1.0], [1.0], -1), ValueError, "the degree must not be negative"),
    "polyfit of none": (lambda: xp.polyfit([], [], 1), ValueError, "at least one point"),
    "polyfit of others": (lambda: xp.polyfit([1.0, 2.0], [1.0], 1), TypeError, "as many coordinates as values"),
    "polyfit few": (lambda: xp.polyfit([1.0, 2.0], [1.0, 3.0], 1, cov=True), ValueError, "too few for covariances"),
    "polyint": (lambda: xp.polyint([1.0], 2, k=[1.0]), ValueError, "1 constants for 2 integrations"),
    "vander": (lambda: xp.vander([[1]]), ValueError, "one axis of numbers"),
    "lexsort": (lambda: xp.lexsort(()), ValueError, "at least one key"),
    "lexsort of numbers": (lambda: xp.lexsort((1, 2)), ValueError, "at least one axis"),
    "partition": (lambda: xp.partition([1, 2], 2), ValueError, "`kth` is 2, and axis 0 has 2 elements"),
    "argpartition": (lambda: xp.argpartition([1, 2], 0.5), TypeError, "integers"),
    "convolve": (lambda: xp.convolve([], [1.0]), ValueError, "`convolve` of no elements"),
    "convolve mode": (lambda: xp.convolve([1], [1], "x"), ValueError, "'full', 'same' or 'valid', not 'x'"),
    "correlate": (lambda: xp.correlate([[1]], [1]), ValueError, "takes vectors"),
    "geomspace": (lambda: xp.geomspace(0, 1), ValueError, "the endpoints must not be zero"),
    "geomspace signs": (lambda: xp.geomspace(-1, 1), ValueError, "the endpoints need the same sign"),
    "hanning": (lambda: xp.hanning(2.5), TypeError, "an integer"),
    "unique": (lambda: ti.program(lambda x: xp.unique(x))(xp.ones(2)), ValueError, "cannot be part of a program"),
    "in programs": (
        lambda: ti.program(lambda i: xp.unravel_index(i, (2, 3)))(xp.asarray([9])),
        ValueError,
        "outside of the shape",
    ),
    "convolve in programs": (
        lambda: ti.program(lambda a, b: xp.convolve(a, b, "valid"))(xp.ones(2), xp.ones(3)),
        ValueError,
        "the second vector is longer",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name):
    f, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        made = f()
        for x in made if isinstance(made, (tuple, list)) else [made]:
            x.realize()


def test_dtypes_are_those_of_the_standard():
    i, f, d = xp.asarray([1, 2], dtype=xp.int16), xp.asarray([1.0, 2.0]), xp.asarray([1.0, 2.0], dtype=xp.float64)
    assert xp.hstack([i, f]).dtype is ti.f32 and xp.kron(i, d).dtype is ti.f64 and xp.inner(i, i).dtype is ti.i16
    assert xp.average(i).dtype is ti.f32 and xp.median(i).dtype is ti.f32 and xp.quantile(d, 0.5).dtype is ti.f64
    assert xp.gradient(i).dtype is ti.f32 and xp.trapezoid(i).dtype is ti.f32 and xp.trapezoid(d, i).dtype is ti.f64
    assert (
        xp.convolve(i, i).dtype is ti.i16 and xp.polyval(i, f).dtype is ti.f32 and xp.float_power(i, 2).dtype is ti.f64
    )
    assert xp.select([f > 0], [i], 2.5).dtype is ti.f32 and xp.select([f > 0], [i], 2).dtype is ti.i16
    assert xp.diag(xp.asarray([True])).dtype is ti.u1 and xp.nansum(i).dtype is ti.i32 and xp.nanmax(i).dtype is ti.i16
    assert xp.bincount(i).dtype is ti.i32 and xp.digitize(f, [1.0]).dtype is ti.i32 and xp.fmax(i, f).dtype is ti.f32
    assert xp.polyfit(i, i, 1).dtype is ti.f32 and xp.geomspace(1, 2, 3, dtype=xp.float64).dtype is ti.f64
    assert xp.logspace(0, 2, 3, dtype=xp.int32).tolist() == [1, 10, 100] and xp.tri(2, dtype=xp.int8).dtype is ti.i8
    # Indices that `i32` and narrower dtypes do not hold.
    assert (
        xp.ravel_multi_index((xp.asarray([99], dtype=xp.int8), xp.asarray([99], dtype=xp.int8)), (100, 100)).item()
        == 9999
    )
    assert xp.ravel_multi_index(([70000], [1]), (80000, 80000)).item() == 70000 * 80000 + 1


def same(made, wanted):
    for got, want in zip(made, wanted, strict=True):
        got = np.asarray(got)
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


ALL = {"return_index": True, "return_inverse": True, "return_counts": True}


def test_unique():
    rng = np.random.default_rng(1)
    for x in (
        rng.integers(0, 5, 30), rng.integers(0, 3, (4, 5)), np.array([NAN, 1.0, NAN, -0.0, 0.0, NAN]), np.array([NAN]),
        np.zeros(0), np.array([1j, 1.0, 1j]), np.array(3.0), np.array([True, False, True]),
    ):  # fmt: skip
        same(xp.unique(xp.asarray(x), **ALL), np.unique(x, **ALL))
        same([xp.unique(xp.asarray(x))], [np.unique(x)])
    x = np.array([NAN, 1.0, NAN])
    same(xp.unique(x, equal_nan=False, **ALL), np.unique(x, equal_nan=False, **ALL))
    for x in (rng.integers(0, 2, (6, 2)), rng.integers(0, 2, (2, 6, 2)), np.zeros((0, 2)), np.zeros((3, 0))):
        for axis in (0, 1, -1):
            same(xp.unique(xp.asarray(x), axis=axis, **ALL), np.unique(x, axis=axis, **ALL))


def test_what_is_computed_at_once():
    x = np.array([[0, 1], [2, 0]])
    assert np.array_equal(xp.flatnonzero(x).numpy(), np.flatnonzero(x))
    assert xp.array_equal(x, x) is True and xp.array_equal(x, [1]) is False and xp.array_equiv(x, x[None]) is True
    assert not xp.array_equal([NAN], [NAN]) and xp.array_equal([NAN], [NAN], equal_nan=True)
    assert xp.array_equiv([1, 2], [1, 2, 3]) is False


@pytest.mark.filterwarnings("ignore")
def test_empty_axes():
    x = np.zeros((0, 3))
    for f in (
        lambda m, x: m.hstack([x, x]), lambda m, x: m.vstack([x, x]), lambda m, x: m.kron(x, x), lambda m, x: m.ravel(x),
        lambda m, x: m.inner(x, x), lambda m, x: m.rot90(x), lambda m, x: m.diag(x[:, 0]), lambda m, x: m.trapezoid(x, axis=0),
        lambda m, x: m.nansum(x, axis=0), lambda m, x: m.nanmean(x, axis=1), lambda m, x: m.polyval([1.0], x),
        lambda m, x: m.lexsort((x[:, 0], x[:, 1])), lambda m, x: m.vdot(x, x), lambda m, x: m.array_split(x, 2)[0],
        lambda m, x: m.partition(x, 1), lambda m, x: m.atleast_3d(x),
    ):  # fmt: skip
        got, want = np.asarray(f(xp, xp.asarray(x))), f(np, x)
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


def test_what_is_known_of_a_tensor():
    x = xp.ones((2, 3))
    assert (xp.ndim(x), xp.shape(x), xp.size(x), xp.size(x, -1), xp.ndim(3)) == (2, (2, 3), 6, 3, 0)
    assert xp.iscomplexobj([1j]) and not xp.iscomplexobj(x) and xp.isrealobj(1) and xp.euler_gamma == np.euler_gamma
    assert xp.bitwise_count(xp.asarray([0, 7])).tolist() == [0, 3]
    with pytest.raises(ValueError, match="all of one size"):
        xp.diag_indices_from(x)
    with pytest.raises(ValueError, match="`matvec` takes matrices and vectors"):
        xp.matvec([1], [1])
    with pytest.raises(ValueError, match="`vecmat` takes vectors and matrices"):
        xp.vecmat([1], [1])


def test_the_names_of_numpys_functions():
    for name in ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "arctan2", "absolute", "power", "mod"):
        assert callable(getattr(xp, name)) and getattr(xp, name).__doc__
    from aerogel.xp import _numpy

    for name in _numpy.__all__:
        assert name == "euler_gamma" or getattr(xp, name).__doc__, name
