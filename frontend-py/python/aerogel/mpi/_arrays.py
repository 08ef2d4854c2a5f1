"""``ti.ndarray`` along a grid: arrays whose cells processes share. Their memory is that of a split field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import DataType
from aerogel.data.axes import Layout
from aerogel.data.field import field, matrix_field
from aerogel.errors import AerogelNotSupportedError
from aerogel.mpi import _fields
from aerogel.mpi._grid import Grid

if TYPE_CHECKING:
    _Base = _fields._Split
else:
    _Base = object


class _SplitArray(_Base):
    """What split arrays have as other arrays do, where fields do it in another way."""

    #: Kernels take it where a parameter is annotated ``ti.types.ndarray()``.
    _aerogel_split_array = True
    layout = Layout.AOS
    element_shape: tuple[int, ...] = ()

    @property
    def element_type(self) -> DataType:
        """The scalar type of the components."""
        assert isinstance(self.dtype, DataType)
        return self.dtype

    def has_grad(self) -> bool:
        """Whether there is an array for the gradient, ``x.grad``."""
        return self.grad is not None

    def get_type(self) -> tuple:
        """Scalar type, shape of an element and number of axes."""
        return (self.dtype, self.element_shape, len(self.shape))

    def to_torch(self, device: Any = None, copy: bool = True) -> Any:
        """All elements as a new PyTorch tensor. All processes must call it."""
        if not copy:
            raise AerogelNotSupportedError("each rank has a part of a split array: to_torch() copies, local() does not")
        return super().to_torch(device)

    def __deepcopy__(self, memo: Any = None) -> Any:
        kinds = {f"needs_{kind}": getattr(self, kind) is not None for kind in ("grad", "dual")}
        made: Any = self
        if isinstance(made, SplitMatrixNdarray):
            out: Any = matrices(made.n, made.m, made.ndim, self.dtype, self.grid, **kinds)
        else:
            out = scalars(self.dtype, self.grid, **kinds)
        for source, target in _with_derivatives(self, out):
            target.copy_from(source)
        return out

    def __copy__(self) -> Any:
        # Like a copied list, a copied array holds what the first one does.
        return self

    def __repr__(self) -> str:
        return f"<ti.ndarray of shape {self.shape} on {' x '.join(map(str, self.grid.ranks))} ranks>"

    __str__ = __repr__
    __hash__ = object.__hash__


class SplitNdarray(_SplitArray, _fields.SplitField):
    """An array of numbers that processes share."""


class SplitMatrixNdarray(_SplitArray, _fields.SplitMatrixField):
    """An array of vectors or matrices that processes share."""

    @property
    def element_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The axes of an element."""
        return (self.n,) if self.ndim == 1 else (self.n, self.m)

    def to_numpy(self, dtype: Any = None) -> Any:  # type: ignore[override]
        """All elements as a new NumPy array, the same on every process. All processes must call it."""
        return super().to_numpy(keep_dims=self.ndim == 2, dtype=dtype)


def _with_derivatives(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """Two arrays of a type, and their gradients and tangents."""
    yield one, other
    for kind in ("grad", "dual"):
        if kind in one.__dict__ and kind in other.__dict__:
            yield from _with_derivatives(one.__dict__[kind], other.__dict__[kind])


def scalars(dtype: Any, grid: Grid, needs_grad: bool, needs_dual: bool) -> SplitNdarray:
    """An array of zeros, each of which one process has."""
    return _as_array(field(dtype, grid, needs_grad=needs_grad, needs_dual=needs_dual))


def matrices(
    n: int, m: int, ndim: int, dtype: Any, grid: Grid, needs_grad: bool, needs_dual: bool
) -> SplitMatrixNdarray:
    """An array of vectors (``ndim`` 1) or matrices of zeros, each of which one process has."""
    return _as_array(matrix_field(n, m, ndim, dtype, grid, needs_grad=needs_grad, needs_dual=needs_dual))


def _as_array(made: Any) -> Any:
    out: Any = made
    out.__class__ = SplitMatrixNdarray if isinstance(made, _fields.SplitMatrixField) else SplitNdarray
    for kind in ("grad", "dual"):
        if kind in made.__dict__:
            _as_array(made.__dict__[kind])
    return out
