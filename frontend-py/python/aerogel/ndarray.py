"""``ti.ndarray``: dense arrays that are passed to kernels as arguments."""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel._dtypes import DataType, dtype_of
from aerogel.errors import AerogelNotSupportedError
from aerogel.field import _components, _shape
from aerogel.snode import Layout


class Ndarray(_native.NativeNdarray):
    """What all arrays have in common. Element access is native code."""

    dtype: DataType
    layout = Layout.AOS
    grad: Any = None

    @property
    def element_type(self) -> DataType:
        """The scalar type of the components."""
        return self.dtype

    def _view(self) -> Any:
        """The memory as a NumPy array, without copying."""
        import numpy as np

        return np.asarray(self)

    def to_numpy(self) -> Any:
        """The elements as a new NumPy array."""
        return self._view().copy()

    def from_numpy(self, arr: Any) -> None:
        """Sets all elements from a NumPy array of the same shape."""
        import numpy as np

        arr = np.asarray(arr)
        view = self._view()
        if arr.shape != view.shape:
            raise ValueError(f"Mismatch shape: {view.shape} expected, but {arr.shape} provided")
        view[...] = arr

    def fill(self, val: Any) -> None:
        """Sets every element."""
        values = _components(val)
        view = self._view()
        view[...] = values[0] if len(values) == 1 else _as_array(values, view.shape[len(self.shape) :])

    def copy_from(self, other: Ndarray) -> None:
        """Sets all elements from another array of the same shape."""
        self.from_numpy(other._view())

    def to_torch(self) -> Any:
        """The elements as a new PyTorch tensor."""
        import torch

        return torch.from_numpy(self.to_numpy())

    def __deepcopy__(self, memo: Any = None) -> Any:
        out = type(self)(self._dtype_name, list(self.shape), list(self.element_shape))
        out.dtype = self.dtype
        out.copy_from(self)
        return out

    __copy__ = __deepcopy__

    def get_type(self) -> tuple:
        """Scalar type, shape of an element and number of axes."""
        return (self.dtype, self.element_shape, len(self.shape))

    def __repr__(self) -> str:
        return "<ti.ndarray>"

    __hash__ = object.__hash__


class ScalarNdarray(Ndarray):
    """An array of numbers."""


class MatrixNdarray(Ndarray):
    """An array of matrices."""

    def __repr__(self) -> str:
        n, m = self.element_shape
        return f"<{n}x{m} Layout.AOS ti.Matrix.ndarray>"


class VectorNdarray(Ndarray):
    """An array of vectors."""

    def __repr__(self) -> str:
        return f"<{self.element_shape[0]} Layout.AOS ti.Vector.ndarray>"


def _as_array(values: list, shape: tuple) -> Any:
    import numpy as np

    return np.array(values).reshape(shape)


def ndarray(dtype: Any, shape: Any, needs_grad: bool = False) -> Any:
    """Makes an array of zeros.

    Args:
        dtype: The type of an element: a scalar type, ``float``, ``int``, or a vector or matrix type.
        shape: The extent of each axis.
        needs_grad: Gradients are not supported yet.
    """
    from aerogel.types import MatrixType

    if needs_grad:
        raise AerogelNotSupportedError("gradients are not supported yet")
    if isinstance(dtype, MatrixType):
        return matrix_ndarray(dtype.n, dtype.m, dtype.ndim, dtype.dtype, shape)
    _native.check_initialized()
    scalar = dtype_of(dtype)
    out = ScalarNdarray(scalar._aerogel_dtype, list(_shape(shape)), [])
    out.dtype = scalar
    return out


def matrix_ndarray(n: int, m: int, ndim: int, dtype: Any, shape: Any) -> Any:
    """Makes an array of vectors (``ndim`` 1) or matrices."""
    _native.check_initialized()
    scalar = dtype_of(dtype)
    kind = VectorNdarray if ndim == 1 else MatrixNdarray
    out = kind(scalar._aerogel_dtype, list(_shape(shape)), [int(n)] if ndim == 1 else [int(n), int(m)])
    out.dtype = scalar
    return out


__all__ = ["MatrixNdarray", "Ndarray", "ScalarNdarray", "VectorNdarray", "ndarray"]
