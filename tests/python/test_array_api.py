"""What the Array API standard asks for at the edges, beyond what its conformance suite tries at few examples."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import aerogel as ti
from aerogel import xp

INF, NAN = float("inf"), float("nan")
ROOT = __file__.rsplit("/tests/", 1)[0]


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu)


def same(found, expected):
    """Whether numbers are equal, with the signs of zeros; NaN has none."""
    found, expected = np.asarray(found), np.asarray(expected)
    np.testing.assert_array_equal(found, expected)
    for part in ("real", "imag"):
        a, b = getattr(found, part), getattr(expected, part)
        zero = b == 0
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


def test_results_are_tuples():
    assert isinstance(xp.broadcast_arrays(xp.ones(2), xp.ones((3, 1))), tuple)
    assert xp.__array_namespace_info__().devices() == ("cpu",)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_zero_has_a_sign(dtype):
    x = np.array([-0.0, 0.0, -2.0, 3.0, NAN, -INF], dtype)
    same(xp.sign(xp.asarray(x)), np.array([0, 0, -1, 1, NAN, -1], dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floor_division_at_infinity(dtype):
    a = np.array([INF, INF, -INF, -INF, 2, -2, 2, -2, 0, INF, 7, -7, 7], dtype)
    b = np.array([2, -2, 2, -2, INF, INF, -INF, -INF, INF, -INF, 2, 2, 0], dtype)
    expected = np.array([INF, -INF, -INF, INF, 0, -0.0, -0.0, 0, 0, NAN, 3, -4, INF], dtype)
    same(xp.floor_divide(xp.asarray(a), xp.asarray(b)), expected)
    same(xp.asarray(a) // xp.asarray(b), expected)
    same(xp.asarray(a[:2]) // 2, [INF, INF])


def complex_of(*numbers):
    return np.array([complex(*n) for n in numbers])


def test_signs_of_complex_zeros():
    z = complex_of((NAN, 0.0), (NAN, -0.0), (INF, -1), (INF, 2), (-INF, -INF), (0, -0.0))
    same(xp.tanh(xp.asarray(z)), complex_of((NAN, 0), (NAN, -0.0), (1, -0.0), (1, 0), (-1, -0.0), (0, -0.0)))
    same(xp.expm1(xp.asarray(complex_of((-0.0, 0), (0, -0.0)))), complex_of((0, 0), (0, -0.0)))
    same(xp.tan(xp.asarray(complex_of((0, NAN), (-1, INF)))), complex_of((0, NAN), (-0.0, 1)))
    same(xp.log1p(xp.asarray(complex_of((0, -0.0), (-2, -0.0)))).imag, [-0.0, -np.pi])
    same(xp.sign(xp.asarray(complex_of((-0.0, -0.0), (0, -0.0)))), complex_of((0, 0), (0, 0)))
    same(xp.reciprocal(xp.asarray(complex_of((1, 0), (-2, -0.0), (0, 2)))), complex_of((1, -0.0), (-0.5, 0), (0, -0.5)))
    same(xp.asarray(np.array([1.0, 2.0])) - xp.asarray(complex_of((1, 0), (1, 0))), complex_of((0, 0), (1, 0)))
    same(xp.astype(xp.asarray([-1.0, INF, NAN]), xp.complex64), complex_of((-1, 0), (INF, 0), (NAN, 0)))


def test_powers_of_zero():
    z = xp.asarray(complex_of((INF, 1), (NAN, 0), (0, 0), (2, 1)))
    for zero in (0, 0.0, 0j, xp.zeros(4, dtype=xp.complex128)):
        same(z**zero, np.ones(4, complex))
    same(z[3:] ** 2.0, complex_of((3, 4)))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sums_and_products_in_complex_types(dtype):
    x, kind = xp.arange(1, 5), getattr(xp, dtype)
    for name, expected in (("sum", 10), ("prod", 24)):
        found = getattr(xp, name)(x, dtype=kind)
        assert found.dtype is kind and complex(found) == expected
    for name, expected in (("cumulative_sum", [1, 3, 6, 10]), ("cumulative_prod", [1, 2, 6, 24])):
        found = getattr(xp, name)(x, dtype=kind)
        assert found.dtype is kind and found.tolist() == expected
    z = xp.asarray(np.array([1 + 1j, 2j, -1]), dtype=xp.complex64)
    assert complex(xp.sum(z, dtype=kind)) == 3j and xp.sum(z, dtype=kind).dtype is kind
    assert complex(z.sum(dtype=kind)) == 3j and complex(z.prod()) == 2 - 2j
    with pytest.raises(TypeError, match="complex numbers do not convert to `f32`"):
        xp.sum(z, dtype=xp.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 8, 9])
def test_cumulative_products_of_complex_numbers(n, axis):
    rng = np.random.default_rng(n)
    z = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    expected = np.cumulative_prod(z, axis=axis, include_initial=True)
    found = xp.cumulative_prod(xp.asarray(z), axis=axis, include_initial=True)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(xp.asarray(z).cumprod(), np.cumprod(z), rtol=1e-12)


def test_pad_of_complex_numbers():
    z = xp.asarray(complex_of((1, 2), (3, -1)))
    assert ti.tensor.pad(z, 1, value=2j).tolist() == [2j, 1 + 2j, 3 - 1j, 2j]
    assert ti.tensor.pad(z, (0, 1), mode="edge").tolist() == [1 + 2j, 3 - 1j, 3 - 1j]


def test_vecdot_compares_sizes():
    for dtype in (xp.float32, xp.complex64):
        a, b = xp.ones((2, 3), dtype=dtype), xp.ones((2, 1), dtype=dtype)
        with pytest.raises(ValueError, match="3 elements in the first, 1 in the second"):
            xp.vecdot(a, b)
        with pytest.raises(IndexError):
            xp.vecdot(a, a, axis=0)
        assert xp.vecdot(a, a).tolist() == [3, 3]


def test_masks_without_elements():
    x = xp.zeros((2, 3))
    assert x[xp.zeros((0,), dtype=xp.bool)].shape == (0, 3)
    assert x[xp.zeros((2, 0), dtype=xp.bool)].shape == (0,)
    x[xp.zeros((0, 3), dtype=xp.bool)] = 1
    assert not x.any()
    with pytest.raises(IndexError, match="a mask of shape"):
        x[xp.zeros((0, 2), dtype=xp.bool)]
    with pytest.raises(IndexError, match="a mask of shape"):
        x[xp.zeros((1,), dtype=xp.bool)] = 1


def test_values_of_a_mask_that_is_one_number():
    x = xp.asarray(0.5)
    x[xp.asarray(False)] = x[xp.asarray(False)]
    assert x.item() == 0.5
    x[xp.asarray(True)] = xp.asarray([3.0])
    assert x.item() == 3
    with pytest.raises(ValueError, match="values of shape"):
        x[xp.asarray(True)] = xp.zeros((0,))


def test_asarray_without_copying():
    for x in (xp.asarray([1.0]), xp.asarray([1j])):
        assert xp.asarray(x, dtype=x.dtype, copy=False) is x
        with pytest.raises(ValueError, match="leave out copy=False"):
            xp.asarray(x, dtype=xp.complex128, copy=False)
        own = xp.asarray(x, copy=True)
        own[0] = 7
        assert x.tolist() != [7]


def test_dlpack_of_complex_tensors():
    z = xp.asarray(complex_of((1, 2), (3, -1)))
    assert z.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(z).tolist() == [1 + 2j, 3 - 1j]
    assert xp.from_dlpack(z).tolist() == [1 + 2j, 3 - 1j]
    z.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=True)
    with pytest.raises(BufferError, match="leave out copy=False"):
        z.__dlpack__(copy=False)


def test_from_dlpack_of_a_tensor_copies_nothing():
    for x in (xp.asarray([1.0, 2.0]), xp.asarray([1j, 2.0])):
        y = xp.from_dlpack(x, copy=False)
        x[0] = 9
        assert y.tolist()[0] != 9


def test_types_have_kinds():
    kinds = {"bool": "b", "int8": "i", "int64": "i", "uint16": "u", "float32": "f", "float64": "f", "complex64": "c"}
    for name, kind in kinds.items():
        dtype = getattr(xp, name)
        assert (dtype.kind, dtype.itemsize) == (kind, np.dtype(name).itemsize)
        assert dtype.__numpy_dtype__ == np.dtype(name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_decompositions_of_large_and_small_matrices(dtype, sign):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((5, 4)) + (1j * rng.standard_normal((5, 4)) if dtype[0] == "c" else 0)
    h = a.conj().T @ a
    by = 2.0 ** (sign * (120 if np.dtype(dtype).itemsize // (1 + (dtype[0] == "c")) == 4 else 1000))
    large, hermitian = xp.asarray((a * by).astype(dtype)), xp.asarray((h * by).astype(dtype))
    close = {"rtol": 1e-4 if by in (2.0**120, 2.0**-120) else 1e-11}
    found = xp.linalg.svdvals(large), xp.linalg.svd(large, full_matrices=False).S
    for values in found:
        np.testing.assert_allclose(np.asarray(values, np.float64) / by, np.linalg.svd(a)[1], **close)
    u, s, vh = xp.linalg.svd(large, full_matrices=False)
    np.testing.assert_allclose(u.numpy() * (s.numpy() / by) @ vh.numpy(), a, atol=close["rtol"])
    for values in (xp.linalg.eigvalsh(hermitian), xp.linalg.eigh(hermitian)[0]):
        np.testing.assert_allclose(np.asarray(values, np.float64) / by, np.linalg.eigvalsh(h), **close)
    for values in (xp.linalg.eigvals(hermitian), xp.linalg.eig(hermitian)[0]):
        found = np.sort(values.numpy().astype(np.complex128).real / by)
        np.testing.assert_allclose(found, np.linalg.eigvalsh(h), **close)


def test_xarray_holds_tensors():
    xr = pytest.importorskip("xarray")
    data = xr.DataArray(xp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), dims=("x", "y"), coords={"x": [10, 20]})
    for made, expected in (
        (data * 2 + 1, [[3, 5, 7], [9, 11, 13]]),
        (data.sel(x=20), [4, 5, 6]),
        (data.isel(y=[0, 2]), [[1, 3], [4, 6]]),
        (data.transpose("y", "x"), [[1, 4], [2, 5], [3, 6]]),
        (data.sum("y", skipna=False), [6, 15]),
        (xr.dot(data, data, dim="y"), [14, 77]),
        (xr.concat([data, data], "x"), [[1, 2, 3], [4, 5, 6]] * 2),
    ):
        assert isinstance(made.data, ti.tensor.Tensor)
        assert made.data.tolist() == expected
    assert "tensor([[1., 2., 3.]" in repr(data)


def test_the_suite_is_skipped_where_it_is_not_found(tmp_path):
    environment = {**os.environ, "AEROGEL_ARRAY_API_TESTS": str(tmp_path), "PYTHON": sys.executable}
    done = subprocess.run([f"{ROOT}/scripts/array_api.sh"], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0
    assert done.stdout == f"array_api: skipped, the conformance suite is not in {tmp_path}\n"


SCIPY = """
import numpy as np
import scipy.fft, scipy.ndimage, scipy.signal, scipy.special, scipy.stats
from aerogel import tensor, xp

a = np.random.default_rng(0).random((8, 3)) + 0.1
b = a[::-1, 0].copy()
for f, *given in (
    (scipy.stats.skew, a), (scipy.stats.zscore, a), (scipy.stats.pearsonr, a[:, 0], b),
    (scipy.stats.ttest_ind, a, a * 2), (scipy.stats.quantile, a[:, 0], b / 2), (scipy.special.logsumexp, a),
    (scipy.special.stdtr, b, b), (scipy.fft.dct, a), (scipy.fft.rfftn, a), (scipy.signal.fftconvolve, b, b),
    (scipy.signal.hilbert, b), (scipy.ndimage.gaussian_filter, a, 1.0),
):
    found = f(*(xp.asarray(x) if isinstance(x, np.ndarray) else x for x in given))
    found, expected = (getattr(x, "statistic", x) for x in (found, f(*given)))
    assert isinstance(found, (tensor.Tensor, tensor.ComplexTensor)), (f, type(found))
    np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=f.__name__)
"""


def test_scipy_computes_with_tensors():
    pytest.importorskip("scipy", minversion="1.17")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", SCIPY], capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
