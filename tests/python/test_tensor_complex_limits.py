"""Functions of complex numbers at infinity, at NaN, and where parts are too large for a number."""

from __future__ import annotations

import numpy as np
import pytest

import aerogel as ti

T = ti.tensor


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu)


INF, NAN = float("inf"), float("nan")

#: Annex G of the standard of C says each; the signs of zeros and of NaN are left open there, and here.
VALUES = [
    ("exp", complex(INF, 0), complex(INF, 0)),
    ("exp", complex(-INF, INF), 0),
    ("exp", complex(-INF, NAN), 0),
    ("exp", complex(INF, INF), complex(INF, NAN)),
    ("exp", complex(NAN, 0), complex(NAN, 0)),
    ("exp", 1e5, INF),
    ("sinh", -1e5, -INF),
    ("cosh", 1e5, INF),
    ("sin", 1e5j, complex(0, INF)),
    ("sqrt", complex(0, INF), complex(INF, INF)),
    ("sqrt", complex(NAN, INF), complex(INF, INF)),
    ("sqrt", complex(-INF, 1), complex(0, INF)),
    ("sqrt", complex(INF, 1), complex(INF, 0)),
    ("sinh", complex(0, INF), complex(0, NAN)),
    ("sinh", complex(INF, 0), complex(INF, 0)),
    ("cosh", complex(INF, 0), complex(INF, 0)),
    ("cosh", complex(INF, INF), complex(INF, NAN)),
    ("cosh", complex(NAN, 0), complex(NAN, 0)),
    ("sin", complex(0, INF), complex(0, INF)),
    ("cos", complex(0, INF), complex(INF, 0)),
    ("tanh", complex(INF, 2), complex(1, 0)),
    ("tanh", complex(INF, INF), complex(1, 0)),
    ("tanh", complex(400, NAN), complex(NAN, NAN)),
    ("exp", complex(-800, NAN), complex(NAN, NAN)),
    ("exp", complex(1500, INF), complex(NAN, NAN)),
    ("sin", complex(INF, 1500), complex(NAN, NAN)),
    ("expm1", complex(-INF, INF), complex(-1, 0)),
    ("expm1", complex(INF, 0), complex(INF, 0)),
    ("sign", complex(INF, 3), complex(1, 0)),
    ("sign", complex(0, -INF), complex(0, -1)),
]


def same(found, expected):
    found, expected = complex(found), complex(expected)
    return all(
        abs(a) == b if b in (0, INF) else np.isnan(b) and np.isnan(a) or a == b
        for a, b in ((found.real, expected.real), (found.imag, expected.imag))
    )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(("name", "at", "expected"), VALUES)
def test_at_infinity(name, at, expected, dtype):
    found = getattr(T, name)(T.asarray(np.array([at], dtype))).numpy()[0]
    assert same(found, expected), found


def test_one_by_infinity_is_nothing():
    z = T.asarray(np.array([complex(INF, 0), complex(2, 0)]))
    assert same((1 / z).numpy()[0], 0)
    assert (1 / z).numpy()[1] == 0.5


@pytest.mark.parametrize("name", ["exp", "sinh", "cosh", "sin", "cos"])
def test_what_is_large_only_on_the_way(name):
    # The exponential of 710 is too large for a number; times the cosine of pi / 2 it is not.
    at = np.array([complex(710, np.pi / 2), complex(-711, 1.57), complex(1.57, 712), complex(-3, 2), 1418 + 1e-310j])
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(at)
    found = getattr(T, name)(T.asarray(at)).numpy()
    assert np.allclose(found.real, expected.real, rtol=1e-11)
    assert np.allclose(found.imag, expected.imag, rtol=1e-11)


def test_running_sums_and_what_has_none():
    z = np.array([[1 + 2j, 3 - 1j], [0.5j, 4]])
    x = T.asarray(z)
    assert np.array_equal(T.cumsum(x, axis=1).numpy(), np.cumsum(z, axis=1))
    assert np.array_equal(T.cumsum(x).numpy(), np.cumsum(z))
    assert np.array_equal(T.cumulative_sum(x, axis=0, include_initial=True).numpy()[1:], np.cumsum(z, axis=0))
    assert np.allclose(T.cumprod(x).numpy(), np.cumprod(z))
    for refused in (T.max, T.sort, lambda z: T.clip(z, 0, 1)):
        with pytest.raises(TypeError, match="takes real numbers, not `complex128`"):
            refused(x)


def test_large_and_small_parts():
    at = np.array([1.79e308, -1.79e308 + 1j, 1.5e308 + 1.5e308j, 3e-310 + 4e-310j, -2e-310j, 3 - 4j])
    for name in ("sqrt", "log"):
        expected, found = getattr(np, name)(at), getattr(T, name)(T.asarray(at)).numpy()
        assert np.allclose(found / expected, 1, rtol=1e-12), name
    assert np.allclose(T.sign(T.asarray(at)).numpy(), np.exp(1j * np.angle(at)), rtol=0, atol=1e-12)
    assert T.sign(T.asarray(np.ones(1, "complex64"))).dtype is T.complex64


def test_running_sums_in_another_type():
    z = np.array([1, 1e-8, -1], "complex64")
    assert T.cumsum(T.asarray(z), dtype=T.complex128).numpy()[-1] != 0
    assert T.cumulative_sum(T.asarray([1.0, 2.0]), dtype=T.complex128).tolist() == [1, 3]
