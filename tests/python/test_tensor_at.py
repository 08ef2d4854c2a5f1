"""`x.at[key].add(v)` and its kin, eagerly, in programs and under `vmap`: results against NumPy's `ufunc.at`, `x` unchanged."""

import numpy as np
import pytest

import aerogel as ti
from aerogel import tensor as t


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


X = np.arange(12.0, dtype=np.float32).reshape(3, 4) + 1
KEYS = {
    "one": (1, 2),
    "row": 1,
    "last row": -1,
    "part": (slice(1, None), slice(None, None, 2)),
    "dots": (..., 1),
    "repeated": (np.array([0, 2, 0, 0]),),
    "list": [0, 2, 2],
    "below zero": (np.array([-1, 1, -1]), np.array([0, 1, 0])),
    "both": (slice(None), np.array([1, 1, 3])),
    "points": (np.array([[0, 1], [1, 0]]), np.array([[3, 3], [3, 3]])),
}
UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def tensors(key):
    if isinstance(key, tuple):
        return tuple(t.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
    return key


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", UFUNCS)
def test_updates(key, name):
    key = KEYS[key]
    for value in (3.0, np.linspace(0.5, 20, X[key].size, dtype=np.float32).reshape(X[key].shape)):
        wanted = X.copy()
        UFUNCS[name].at(wanted, key, value)
        x = t.asarray(X)
        values = value if isinstance(value, float) else t.asarray(value)
        np.testing.assert_allclose(getattr(x.at[tensors(key)], name)(values).numpy(), wanted, rtol=1e-6)
        assert np.array_equal(x.numpy(), X)
        np.testing.assert_allclose(getattr(x.at[key], name)(value).numpy(), wanted, rtol=1e-6)

        def update(x, v):
            return getattr(x.at[key], name)(v), x

        made, same = ti.program(update)(x, values)
        np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-6)
        assert np.array_equal(same.numpy(), X)


@pytest.mark.parametrize("key", [k for k in KEYS if k not in ("repeated", "list", "below zero", "both", "points")])
def test_set_get_divide_and_power(key):
    key = KEYS[key]
    x = t.asarray(X)
    for run in (lambda f: f(x), lambda f: ti.program(f)(x)):
        wanted = X.copy()
        wanted[key] = 7
        assert np.array_equal(run(lambda x: x.at[key].set(7)).numpy(), wanted)
        assert np.array_equal(run(lambda x: x.at[key].get()).numpy(), X[key])
        wanted[key] = X[key] / 4
        np.testing.assert_allclose(run(lambda x: x.at[key].divide(4)).numpy(), wanted)
        wanted[key] = X[key] ** 2
        np.testing.assert_allclose(run(lambda x: x.at[key].power(2)).numpy(), wanted, rtol=1e-6)
    assert np.array_equal(x.numpy(), X)


def test_masks():
    x = t.asarray(X)
    mask = X % 3 == 0
    wanted = np.where(mask, X + 1, X)
    assert np.array_equal(x.at[t.asarray(mask)].add(1).numpy(), wanted)
    assert np.array_equal(x.at[x % 3 == 0].add(1).numpy(), wanted)
    assert np.array_equal(ti.program(lambda x: x.at[x % 3 == 0].add(1))(x).numpy(), wanted)
    assert np.array_equal(ti.program(lambda x: x.at[x[:, 0] > 4].set(0))(x).numpy(), np.where(X[:, :1] > 4, 0, X))
    assert np.array_equal(x.at[mask].set(-X[mask]).numpy(), np.where(mask, -X, X))
    with pytest.raises(IndexError, match="a mask of shape"):
        x.at[np.ones((2, 4), bool)].add(1)


def test_truth_values():
    """A truth value without axes takes all or nothing."""
    x = t.asarray(X)
    for key, wanted in {(True,): X + 1, (False, 1): X}.items():
        assert np.array_equal(x.at[key].add(1).numpy(), wanted)
        assert np.array_equal(ti.program(lambda x: x.at[key].add(1))(x).numpy(), wanted)
    positive = ti.program(lambda x, n: x.at[n > 0, 0].multiply(2))
    assert np.array_equal(positive(x, 0).numpy(), X)
    assert positive(x, 1)[0].tolist() == (2 * X[0]).tolist()


def test_nan_is_no_smaller_and_no_larger():
    x = t.asarray([np.nan, 1.0, np.nan])
    for key in (0, slice(0, 1), [0], t.asarray([True, False, False])):
        for run in (lambda f: f(x), lambda f: ti.program(f)(x)):
            assert run(lambda x: x.at[key].min(2.0)).tolist()[:2] == [2, 1]


def test_dtypes():
    i = t.asarray([1, 2, 3])
    assert i.at[0].add(True).tolist() == [2, 2, 3] and i.at[0].divide(2).tolist() == [0.5, 2, 3]
    assert t.asarray([1, 2], ti.u8).at[0].subtract(2).tolist() == [255, 2]
    with pytest.raises(TypeError, match="take no 0.5"):
        i.at[0].add(0.5)
    with pytest.raises(TypeError, match="take no `f32`"):
        i.at[0].add(t.asarray(0.5))
    z = t.asarray([1j, 2j])
    assert z.at[[0, 0]].add(1 + 1j).tolist() == [2 + 3j, 2j] and z.at[1].set(5).tolist() == [1j, 5]
    assert z.at[1].subtract(1j).tolist() == [1j, 1j]
    with pytest.raises(TypeError, match=r"`x.at\[...\].multiply` takes real tensors"):
        z.at[0].multiply(2)


def test_indices_outside():
    x = t.asarray([1.0, 2.0])
    with pytest.raises(IndexError):
        x.at[[0, 5]].add(1.0).realize()
    with pytest.raises(IndexError):
        x.at[2].add(1.0)
    assert x.outside("zero").at[t.asarray([0, 5])].add(1.0).tolist() == [2, 2]
    assert x.outside("clamp").at[t.asarray([0, 5])].add(1.0).tolist() == [2, 3]
    assert x.at[[]].add(1.0).tolist() == [1, 2] and t.zeros((0, 2)).at[:].set(1.0).shape == (0, 2)


def test_under_vmap():
    x, i = t.asarray(X), t.asarray([0, 3, 3])
    wanted = X.copy()
    wanted[np.arange(3), [0, 3, 3]] += 1
    assert np.array_equal(ti.vmap(lambda row, k: row.at[k].add(1.0))(x, i).numpy(), wanted)
    assert np.array_equal(ti.vmap(lambda row: row.at[1:].multiply(2.0))(x).numpy(), X * [1, 2, 2, 2])
