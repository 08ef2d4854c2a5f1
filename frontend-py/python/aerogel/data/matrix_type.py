"""The type of matrices and vectors of a fixed shape."""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel._dtypes import DataType, dtype_of
from aerogel._outside import outside_kernels
from aerogel.data.matrix import Matrix, Vector, _plain


class MatrixType:
    """The type of matrices or vectors of a fixed shape: an annotation, and a maker of values and fields."""

    def __init__(self, n: int, m: int, ndim: int, dtype: Any) -> None:
        for extent in (n, m):
            if not hasattr(extent, "__index__") or extent < 1:
                raise ValueError(f"the size of a vector or matrix is a positive integer, not {extent!r}")
        self.n, self.m, self.ndim, self._spec = n, m, ndim, dtype

    @property
    def dtype(self) -> DataType:
        """The scalar type of the components; ``float`` and ``int`` follow ``ti.init``."""
        return dtype_of(self._spec if self._spec is not None else float)

    @property
    def _aerogel_tensor_type(self) -> tuple[int, int | None, str]:
        return (self.n, self.m if self.ndim == 2 else None, self.dtype._aerogel_dtype)

    def __repr__(self) -> str:
        shape = f"{self.n}" if self.ndim == 1 else f"{self.n}, {self.m}"
        return f"ti.types.{'vector' if self.ndim == 1 else 'matrix'}({shape}, {self.dtype})"

    def get_shape(self) -> tuple[int, ...]:
        """The shape of a value."""
        return (self.n,) if self.ndim == 1 else (self.n, self.m)

    def __call__(self, *args: Any) -> Matrix:
        """A value: one number for all components, or numbers, vectors and lists for each."""
        made = _native.traced_call(self, args, {})
        if made is not NotImplemented:
            return made
        flat: list[Any] = []
        for a in args:
            _flatten(a, flat)
        for number in flat:
            if not isinstance(number, (int, float)):
                raise TypeError(f"{self!r} takes numbers, not {number!r}")
        size = self.n * self.m
        if len(flat) == 1:
            flat = flat * size
        if len(flat) != size:
            raise ValueError(f"{self!r} takes {size} numbers, got {len(flat)}")
        if self.ndim == 1:
            return Vector(flat, self.dtype)
        return Matrix([flat[i * self.m : (i + 1) * self.m] for i in range(self.n)], self.dtype)

    @outside_kernels
    def field(self, shape: Any = None, **kwargs: Any) -> Any:
        """A field of such values."""
        from aerogel.data.field import matrix_field

        kwargs.pop("dtype", None)
        return matrix_field(self.n, self.m, self.ndim, self.dtype, shape, **kwargs)

    @outside_kernels
    def ndarray(self, shape: Any, **kwargs: Any) -> Any:
        """An array of such values."""
        from aerogel.data.ndarray import matrix_ndarray

        return matrix_ndarray(self.n, self.m, self.ndim, self.dtype, shape, **kwargs)


def _flatten(value: Any, out: list[Any]) -> None:
    if isinstance(value, (list, tuple, Matrix)):
        for v in value:
            _flatten(v, out)
    elif hasattr(value, "tolist"):
        _flatten_item(value.tolist(), out)
    else:
        out.append(_plain(value))


def _flatten_item(value: Any, out: list[Any]) -> None:
    if isinstance(value, list):
        for v in value:
            _flatten_item(v, out)
    else:
        out.append(value)
