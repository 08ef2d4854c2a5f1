"""Rows of every type in order, as NumPy has them: NaN behind all, equal ones as they come."""

from __future__ import annotations

import numpy as np
import pytest

import aerogel as ti

T = ti.tensor


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f2", "f4", "f8"])
@pytest.mark.parametrize("k", [0, 1, 10, 600, 3000])
def test_the_first_of_all_in_order(dtype, k):
    rng = np.random.default_rng(k)
    x = (rng.standard_normal((3, 3000)) * 50).astype(dtype)
    if dtype[0] == "f":
        x[0, ::1000] = np.nan
    t = T.asarray(x)
    for largest in (True, False):
        order = T.argsort(t, descending=largest).numpy()[:, :k]
        values, indices = T.topk(t, k, largest=largest)
        assert np.array_equal(indices.numpy(), order)
        assert np.array_equal(values.numpy(), np.take_along_axis(x, order, 1), equal_nan=dtype[0] == "f")
    down = T.topk(t.T, k, axis=0)
    assert np.array_equal(down.values.numpy().T, T.topk(t, k).values.numpy(), equal_nan=dtype[0] == "f")


@pytest.mark.parametrize("period", [None, 3.0, -2.5])
@pytest.mark.parametrize("ends", [{}, {"left": 9.0}, {"left": -1.0, "right": 7.0}])
def test_between_places(period, ends):
    places, values = np.array([0, 1, 2.5, 4]), np.array([1.0, 3, -1, 2])
    x = np.array([[-1, 0, 0.5, 1, 2], [2.5, 4, 5, np.nan, 3.9]])
    for v in (values, values * (1 + 2j)):
        found = T.interp(T.asarray(x), places, v, **ends, period=period).numpy()
        assert np.allclose(found, np.interp(x, places, v, **ends, period=period), equal_nan=True)
    assert T.interp(0.25, [0, 1], [0, 8]).item() == 2
    with pytest.raises(ValueError, match=r"as many values as sample points, on one axis: \(3,\) for \(4,\)"):
        T.interp(x, places, values[:3])


@pytest.mark.parametrize("n", [1, 2, 7, 2000, 2001])
def test_medians(n):
    x = np.random.default_rng(n).standard_normal((3, n))
    y = x.copy()
    y[1, n // 2] = np.nan
    for a in (x, y):
        for axis in (None, 0, 1):
            for keepdims in (False, True):
                found = T.median(T.asarray(a), axis=axis, keepdims=keepdims).numpy()
                assert np.array_equal(found, np.median(a, axis=axis, keepdims=keepdims), equal_nan=True)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("n", [2047, 2048, 5000])
def test_as_numpy_sorts(dtype, n):
    rng = np.random.default_rng(n)
    if dtype[0] == "f":
        x = (rng.standard_normal((2, n)) * 100).astype(dtype)
        x[0, ::7], x[0, ::11], x[1, :3] = np.nan, -0.0, [np.inf, -np.inf, 0]
    else:
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, (2, n), dtype, endpoint=True)
        x[1] //= max(limits.max // 50, 1)
    t = T.asarray(x)
    assert np.array_equal(T.sort(t).numpy(), np.sort(x), equal_nan=dtype[0] == "f")
    assert np.array_equal(T.argsort(t).numpy(), np.argsort(x, kind="stable"))
    down = T.argsort(t, descending=True).numpy()
    values = np.take_along_axis(x, down, -1)
    whole = values[:, 1:] == values[:, :-1]
    # Equal ones stay in the order in which they come, and NaN is behind all.
    assert (down[:, 1:][whole] > down[:, :-1][whole]).all()
    if dtype[0] != "f":
        assert np.array_equal(values, np.sort(x)[:, ::-1])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_nan_comes_last_in_descending_order_too(dtype):
    """As in NumPy 2.5, where `sort` has `descending`."""
    x = np.array([3, np.nan, 1, -np.inf, np.inf, np.nan], dtype)
    t, down = T.asarray(x), np.array([np.inf, 3, 1, -np.inf, np.nan, np.nan], dtype)
    assert np.array_equal(T.sort(t, descending=True).numpy(), down, equal_nan=True)
    assert T.argsort(t, descending=True).tolist() == [4, 0, 2, 3, 1, 5]
    for largest, order in ((True, [4, 0, 2, 3, 1]), (False, [3, 2, 0, 4, 1])):
        values, indices = T.topk(t, 5, largest=largest)
        assert indices.tolist() == order
        assert np.array_equal(values.numpy(), x[order], equal_nan=True)


@pytest.mark.parametrize("dtype", [ti.f16, ti.f32, ti.f64])
def test_zeros_of_both_signs_stay_in_order(dtype):
    x = T.asarray([0.0, -0.0, 1.0, -0.0, -1.0, 0.0], dtype=dtype)
    signs = [True, False, True, True, False, False]
    for values in (T.sort(x), T.take_along_axis(x, T.argsort(x))):
        assert T.signbit(values).tolist() == signs, values
    assert T.signbit(T.sort(x, descending=True)).tolist() == [False, False, True, True, False, True]
    values, places = T.topk(T.asarray([-0.0, 0.0], dtype=dtype), 1)
    assert places.tolist() == [0] and T.signbit(values).tolist() == [True]
    only = T.topk(T.asarray([-0.0, 0.0], dtype=dtype), 1)[0]
    assert T.signbit(only).tolist() == [True]
