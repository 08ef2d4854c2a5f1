"""``ti.ndarray``: dense arrays that are passed to kernels as arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from aerogel import _native
from aerogel._dtypes import DataType, dtype_of, numpy_dtype
from aerogel._outside import outside_kernels
from aerogel.data import _torch
from aerogel.data.axes import Layout, is_grid
from aerogel.data.field import _check, _shape, alike, converted, copying, numbers
from aerogel.errors import AerogelRuntimeError, AerogelRuntimeTypeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aerogel.data.matrix import Matrix
    from aerogel.data.matrix_type import MatrixType
    from aerogel.mpi._arrays import SplitMatrixNdarray, SplitNdarray
    from aerogel.mpi._grid import Grid


class Ndarray(_native.NativeNdarray):
    """The base class of all arrays. Element access is native code."""

    if TYPE_CHECKING:
        # What kernels do with the name of an array.
        def __iter__(self) -> Iterator[Any]: ...

    dtype: DataType
    layout = Layout.AOS
    grad: Any = None
    dual: Any = None

    @property
    def element_type(self) -> DataType:
        """The scalar type of the components."""
        return self.dtype

    def _view(self) -> Any:
        """The memory as a NumPy array, without copying."""
        import numpy as np

        return np.asarray(self)

    def _numpy_shape(self) -> tuple[int, ...]:
        """The shape as NumPy has it, with the axes of an element behind those of the array."""
        return (*self.shape, *self.element_shape)

    def _repr_png_(self) -> bytes | None:
        from aerogel import _notebook

        return _notebook.png(self)

    def _repr_html_(self) -> str | None:
        from aerogel import _notebook

        return _notebook.summary(self)

    def to_numpy(self) -> Any:
        """The elements as a new NumPy array."""
        import numpy as np

        out = np.empty(self._numpy_shape(), numpy_dtype(self.dtype))
        self._copy_to(out)
        return out

    def from_numpy(self, arr: Any) -> None:
        """Sets all elements from a NumPy array of the same shape."""
        if _native.is_torch_tensor(arr) and arr.requires_grad:
            return self.from_torch(arr)
        if getattr(arr, "_aerogel_tensor", False) and arr.requires_grad and hasattr(_native.recorder(), "read"):
            with copying(arr):
                return self.from_numpy(arr.detach())
        arr = numbers(arr, self.dtype)
        shape = self._numpy_shape()
        if not alike(arr.shape, shape):
            raise ValueError(f"Mismatch shape: {shape} expected, but {arr.shape} provided")
        self._copy_from(converted(arr, self.dtype))

    def fill(self, val: Any) -> None:
        """Sets every element."""
        n, m = (*self.element_shape, 1, 1)[:2]
        self._fill(_native.components_to_fill(val, n, m, len(self.element_shape)))

    def copy_from(self, other: Ndarray) -> None:
        """Sets all elements from another array of the same shape."""
        if hasattr(other, "_aerogel_split_array"):
            return self.from_numpy(other.to_numpy())
        if not isinstance(other, Ndarray):
            raise TypeError(f"copy_from takes a ti.ndarray, not {type(other).__name__}; from_numpy takes others")
        with copying(other):
            if other.dtype is self.dtype and other._numpy_shape() == self._numpy_shape():
                self._copy_array(other)
            else:
                self.from_numpy(other.to_numpy())

    def to_torch(self, device: Any = None, copy: bool = True) -> Any:
        """The elements as a new PyTorch tensor, or with ``copy=False`` as one over the memory of the array."""
        if not copy:
            import torch

            return torch.from_dlpack(self) if device is None else torch.from_dlpack(self).to(device)
        out = _torch.empty(self._numpy_shape(), self.dtype)
        self._copy_to(out)
        return out.to(device or "cpu")

    def has_grad(self) -> bool:
        """Whether there is an array for the gradient, ``x.grad``, as in Quadrants."""
        return self.grad is not None

    def from_torch(self, arr: Any) -> None:
        """Sets all elements from a PyTorch tensor; under a tape that gets their gradient, if it requires one."""
        with copying(arr):
            arr, is_alike = _torch.converted(arr, self.dtype)
            if is_alike and alike(arr.shape, self._numpy_shape()):
                self._copy_from(arr)
            else:
                self.from_numpy(arr.detach())

    def __dlpack__(self, **kwargs: Any) -> Any:
        """The memory for other packages, without copying: ``torch.from_dlpack(x)``, ``numpy.from_dlpack(x)``.

        On a GPU it is device memory, where the array then stays; all kernels have ended. ``dl_device=(1, 0)`` requests
        host memory.

        Raises:
            BufferError: The array is read-only.
            RuntimeError: NumPy sees the memory of the host.
        """
        asked = kwargs.get("dl_device")
        if self.__dlpack_device__()[0] == 1 or (asked is not None and tuple(asked)[0] == 1):
            return self._view().__dlpack__(**kwargs)
        return self._dlpack()

    def __deepcopy__(self, memo: Any = None) -> Any:
        out = _make(type(self), self.dtype, self.shape, self.element_shape)
        out.copy_from(self)
        for kind in ("grad", "dual"):
            derivative = getattr(self, kind)
            if derivative is not None:
                setattr(out, kind, derivative.__deepcopy__(memo))
        return out

    def __copy__(self) -> Any:
        # Like a copied list, a copied array holds what the first one does.
        return self

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

    @property
    def n(self) -> int:
        """Rows of an element."""
        return self.element_shape[0]

    @property
    def m(self) -> int:
        """Columns of an element."""
        return self.element_shape[1]

    def __repr__(self) -> str:
        n, m = self.element_shape
        return f"<{n}x{m} Layout.AOS ti.Matrix.ndarray>"


class VectorNdarray(Ndarray):
    """An array of vectors."""

    @property
    def n(self) -> int:
        """Components of an element."""
        return self.element_shape[0]

    def __repr__(self) -> str:
        return f"<{self.element_shape[0]} Layout.AOS ti.Vector.ndarray>"


def _make(
    kind: Any,
    dtype: DataType,
    shape: Any,
    element: Any,
    needs_grad: bool = False,
    needs_dual: bool = False,
    over: Any = None,
) -> Any:
    out = kind(dtype._aerogel_dtype, list(shape), list(element), over)
    out.dtype = dtype
    if needs_grad or needs_dual:
        _check(dtype, True, "ndarray")
    if needs_grad:
        out.grad = _make(kind, dtype, shape, element, needs_dual=needs_dual)
    if needs_dual:
        out.dual = _make(kind, dtype, shape, element)
    return out


def _extents(shape: Any) -> tuple[int, ...]:
    try:
        return _shape(shape)
    except TypeError:
        raise AerogelRuntimeTypeError(f"{shape!r} is not a valid shape for ndarray") from None
    except ValueError as e:
        why = ": it has at most 12 axes" if "axes" in str(e) else ""
        raise AerogelRuntimeError(f"{shape} is not a valid shape for ndarray{why}") from None


def _scalar(dtype: Any) -> DataType:
    try:
        return dtype_of(dtype)
    except TypeError:
        raise AerogelRuntimeTypeError(f"{dtype!r} is not supported as ndarray element type") from None


if TYPE_CHECKING:

    @overload
    def ndarray(
        dtype: MatrixType | type[Matrix], shape: Grid, needs_grad: bool = False, needs_dual: bool = False
    ) -> SplitMatrixNdarray: ...
    @overload
    def ndarray(dtype: Any, shape: Grid, needs_grad: bool = False, needs_dual: bool = False) -> SplitNdarray: ...
    @overload
    def ndarray(
        dtype: MatrixType | type[Matrix], shape: Any, needs_grad: bool = False, needs_dual: bool = False
    ) -> MatrixNdarray: ...
    @overload
    def ndarray(dtype: Any, shape: Any, needs_grad: bool = False, needs_dual: bool = False) -> ScalarNdarray: ...


@outside_kernels
def ndarray(dtype: Any, shape: Any, needs_grad: bool = False, needs_dual: bool = False) -> Any:
    """Makes an array of zeros.

    Args:
        dtype: The type of an element: a scalar type, ``float``, ``int``, or a vector or matrix type.
        shape: The size of each axis, or a grid of ``ti.mpi.grid``: then each process has a box of the elements.
        needs_grad: Whether there is an array of the same type for the gradient, ``x.grad``.
        needs_dual: Whether there is one for the tangent of forward mode, ``x.dual``; with ``needs_grad`` also one for
            the tangent of the gradient, ``x.grad.dual``, which second derivatives need.
    """
    from aerogel.data.matrix_type import MatrixType

    if isinstance(dtype, MatrixType):
        return matrix_ndarray(dtype.n, dtype.m, dtype.ndim, dtype.dtype, shape, needs_grad, needs_dual)
    _native.check_initialized()
    if is_grid(shape):
        from aerogel.mpi import _arrays

        return _arrays.scalars(_scalar(dtype), shape, needs_grad, needs_dual)
    return _make(ScalarNdarray, _scalar(dtype), _extents(shape), (), needs_grad, needs_dual)


@outside_kernels
def matrix_ndarray(
    n: int, m: int, ndim: int, dtype: Any, shape: Any, needs_grad: bool = False, needs_dual: bool = False
) -> Any:
    """Makes an array of vectors (``ndim`` 1) or matrices."""
    _native.check_initialized()
    if is_grid(shape):
        from aerogel.mpi import _arrays

        return _arrays.matrices(n, m, ndim, _scalar(dtype), shape, needs_grad, needs_dual)
    kind = VectorNdarray if ndim == 1 else MatrixNdarray
    element = (int(n),) if ndim == 1 else (int(n), int(m))
    # As in Taichi, only arrays of vectors and matrices may be empty.
    given = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    extents = tuple(0 if s == 0 and not isinstance(s, float) else _extents(s)[0] for s in given)
    return _make(kind, _scalar(dtype), extents, element, needs_grad, needs_dual)


def from_dlpack(array: Any, element_dim: int = 0) -> Any:
    """An array over the memory of another package's, without copying; writes of one are visible to the other.

    Args:
        array: An array that supports DLPack: a NumPy array, a PyTorch tensor; on a GPU (``arch=ti.cuda``) also one
            with ``__cuda_array_interface__``.
        element_dim: How many of the last axes are those of an element: 1 makes vectors of it, 2 matrices.

    >>> import numpy as np
    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> there = np.zeros(3, np.float32)
    >>> here = ti.from_dlpack(there)
    >>> here[1] = 2
    >>> there.tolist()
    [0.0, 2.0, 0.0]
    """
    import numpy as np

    _native.check_initialized()
    if hasattr(array, "_aerogel_field"):
        raise TypeError("a field cannot be accessed without a copy: copy it, as in x.from_numpy(f.to_numpy())")
    if element_dim not in (0, 1, 2):
        raise ValueError(f"an element has 0, 1 or 2 axes, not {element_dim}")
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("an array over memory has no mask: take `array.filled(value)`, or `array.data`")
    if isinstance(array, np.generic):
        raise TypeError(
            "a NumPy scalar is a copy of an element, with no memory to share: take `x[i, ...]` instead of `x[i]`"
        )
    if isinstance(array, np.ndarray):
        return _over(array, _scalar(array.dtype), array.shape, element_dim)
    there = _native.foreign_array(array, True)
    if there is None:
        raise TypeError(f"from_dlpack takes an array that supports DLPack, not {type(array).__name__}")
    return _over(array, dtype_of(there[0]), there[1], element_dim)


def _over(array: Any, dtype: DataType, shape: tuple[int, ...], element_dim: int) -> Any:
    """An array over the memory of another one, whose last axes are those of an element."""
    at = len(shape) - element_dim
    if at < 0:
        raise ValueError(f"the elements have {element_dim} axes, the array only {len(shape)}")
    kind = (ScalarNdarray, VectorNdarray, MatrixNdarray)[element_dim]
    return _make(kind, dtype, shape[:at], shape[at:], over=array)


__all__ = ["MatrixNdarray", "Ndarray", "ScalarNdarray", "VectorNdarray", "from_dlpack", "ndarray"]
