"""Rows of every type in order, as NumPy has them: NaN behind all, equal ones as they come."""

from __future__ import annotations

import numpy as np
import pytest

import aerogel as ti

T = ti.tensor


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu)


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
