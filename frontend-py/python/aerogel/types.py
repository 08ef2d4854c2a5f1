"""``ti.types``: annotations of the parameters and results of kernels and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel._dtypes import DataType, dtype_of
from aerogel._taichi.old_modules import offer
from aerogel.data._quant import QuantType, quant
from aerogel.data.argpack import ArgPackType, argpack
from aerogel.data.matrix_type import MatrixType
from aerogel.data.structs import StructType, struct
from aerogel.data.texture import rw_texture, texture

if TYPE_CHECKING:
    from aerogel._annotations import (
        bf16,
        bfloat16,
        f16,
        f32,
        f64,
        float16,
        float32,
        float64,
        i8,
        i16,
        i32,
        i64,
        int8,
        int16,
        int32,
        int64,
        u1,
        u8,
        u16,
        u32,
        u64,
        uint1,
        uint8,
        uint16,
        uint32,
        uint64,
    )
else:
    from aerogel._dtypes import (
        bf16,
        bfloat16,
        f16,
        f32,
        f64,
        float16,
        float32,
        float64,
        i8,
        i16,
        i32,
        i64,
        int8,
        int16,
        int32,
        int64,
        u1,
        u8,
        u16,
        u32,
        u64,
        uint1,
        uint8,
        uint16,
        uint32,
        uint64,
    )

# `import taichi.types.annotations` wants a package.
__path__: list[str] = []
offer(__name__)


class Template:
    """The annotation of a parameter that is passed at compile time, or by reference to a ``ti.func``."""

    _aerogel_annotation = "template"
    __slots__ = ()

    def __repr__(self) -> str:
        return "ti.template()"


def template() -> Any:
    """Annotates a parameter of which the kernel is specialised for each value: a field, a number, a class.

    >>> template()
    ti.template()
    """
    return _TEMPLATE


template._aerogel_annotation = "template"  # type: ignore[attr-defined]
_TEMPLATE = Template()


class AnyMatrixType:
    """The type of vectors or matrices of any size: for parameters of ``ti.func`` and elements of arrays."""

    def __init__(self, ndim: int, dtype: Any) -> None:
        self.ndim, self.dtype = ndim, None if dtype is None else dtype_of(dtype)

    def __repr__(self) -> str:
        return f"ti.types.{'vector' if self.ndim == 1 else 'matrix'}({self.dtype or ''})"


class VectorType(MatrixType):
    """The type of vectors of ``n`` components."""

    def __init__(self, n: int, dtype: Any) -> None:
        super().__init__(n, 1, 1, dtype)


def vector(n: int | None = None, dtype: Any = None) -> Any:
    """The type of vectors of ``n`` components; of any number if it is left out.

    >>> vector(3, f32)(1, 2, 3).to_list()
    [1.0, 2.0, 3.0]
    """
    return AnyMatrixType(1, dtype) if n is None else VectorType(n, dtype)


def matrix(n: int | None = None, m: int | None = None, dtype: Any = None) -> Any:
    """The type of ``n`` by ``m`` matrices; of any size if both are left out."""
    if n is None and m is None:
        return AnyMatrixType(2, dtype)
    if n is None or m is None:
        raise TypeError("ti.types.matrix takes both sizes, or none")
    return MatrixType(n, m, 2, dtype)


class NdarrayType:
    """The annotation of a kernel parameter that takes a NumPy array or a ``ti.ndarray`` without copying.

    Args:
        dtype: The type of an element: a scalar type, or a vector or matrix type; any if left out.
        ndim: The number of index axes; any if left out.
        element_dim: The number of an element's axes: 0 for numbers, 1 for vectors, 2 for matrices.
        element_shape: The shape of an element.
        needs_grad: Whether the array must have a gradient.
        boundary: The handling of indices outside: ``"clamp"`` takes the element at the edge, ``"unsafe"`` is not
            checked but in debug mode.
    """

    _aerogel_annotation = "ndarray"

    def __init__(
        self,
        dtype: Any = None,
        ndim: int | None = None,
        element_dim: int | None = None,
        element_shape: tuple[int, ...] | None = None,
        field_dim: int | None = None,
        needs_grad: bool | None = None,
        boundary: str = "unsafe",
    ) -> None:
        if boundary not in ("unsafe", "clamp"):
            raise ValueError(f"Invalid boundary argument: {boundary}; it is 'unsafe' or 'clamp'")
        if field_dim is not None:
            raise ValueError("The field_dim argument for ndarray type is already deprecated. Please use ndim instead.")
        if ndim is not None and (not isinstance(ndim, int) or not 0 <= ndim <= 12):
            raise ValueError(f"ndim is a number of axes, from 0 to 12, not {ndim!r}")
        given = element_dim is not None or element_shape is not None
        if isinstance(dtype, MatrixType):
            if given:
                raise TypeError(f'Cannot specify matrix dtype "{dtype!r}" and element shape or dim at the same time.')
            element_shape = dtype.get_shape()
        elif isinstance(dtype, AnyMatrixType):
            if given:
                raise TypeError(f'Cannot specify matrix dtype "{dtype!r}" and element shape or dim at the same time.')
            element_dim, dtype = dtype.ndim, dtype.dtype
        elif dtype is not None and dtype not in (float, int, bool):
            dtype = dtype_of(dtype)
        if element_shape is not None:
            element_shape = tuple(element_shape)
            if element_dim is not None and element_dim != len(element_shape):
                raise ValueError(
                    "Both element_shape and element_dim are specified, but shape doesn't match specified dim: "
                    f"{len(element_shape)}!={element_dim}"
                )
            element_dim = len(element_shape)
        if element_dim is not None and element_dim not in (0, 1, 2):
            raise ValueError(f"an element has 0, 1 or 2 axes, not {element_dim}")
        self.dtype = dtype
        self.ndim = ndim
        self.element_dim = element_dim
        self.element_shape = element_shape
        self.needs_grad = needs_grad
        self.boundary = boundary

    def __repr__(self) -> str:
        return f"ti.types.ndarray(dtype={self.dtype}, ndim={self.ndim})"

    def __class_getitem__(cls, item: Any) -> NdarrayType:
        return cls(*item) if isinstance(item, tuple) else cls(item)


ndarray = NdarrayType
NDArray = NdarrayType


class RefType:
    """The annotation of a real function's parameter that refers to a variable or an element of a field."""

    def __init__(self, dtype: Any) -> None:
        if isinstance(dtype, (MatrixType, StructType)):
            raise ValueError(f"ti.ref takes a scalar type such as ti.f32, not {dtype!r}")
        self._spec = dtype

    @property
    def dtype(self) -> DataType:
        """The scalar type that it refers to."""
        return dtype_of(self._spec)

    def __repr__(self) -> str:
        return f"ti.ref({self.dtype})"


def ref(dtype: Any) -> Any:
    """Annotates a parameter of a ``ti.real_func`` through which it changes the caller's variable or element.

    >>> ref(f32)
    ti.ref(f32)
    """
    return RefType(dtype)


def sparse_matrix_builder() -> Any:
    """Annotates a kernel's parameter that takes a ``ti.linalg.SparseMatrixBuilder``: ``A[i, j] += v`` adds an entry."""
    from aerogel.linalg._builder import SparseMatrixBuilderType

    return SparseMatrixBuilderType()


def is_real(dtype: Any) -> bool:
    """Whether a scalar type is a floating-point type."""
    return dtype_of(dtype).is_float


def is_integral(dtype: Any) -> bool:
    """Whether a scalar type is an integer type."""
    return not dtype_of(dtype).is_float


def is_signed(dtype: Any) -> bool:
    """Whether a scalar type is a signed integer type."""
    return dtype_of(dtype).is_signed_int


def is_tensor(dtype: Any) -> bool:
    """Whether a type is a matrix or vector type."""
    return isinstance(dtype, MatrixType)


__all__ = [
    "ArgPackType",
    "DataType",
    "MatrixType",
    "NDArray",
    "NdarrayType",
    "RefType",
    "QuantType",
    "StructType",
    "Template",
    "VectorType",
    "argpack",
    "bf16",
    "bfloat16",
    "f16",
    "f32",
    "f64",
    "float16",
    "float32",
    "float64",
    "i8",
    "i16",
    "i32",
    "i64",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_integral",
    "is_real",
    "is_signed",
    "is_tensor",
    "matrix",
    "ndarray",
    "quant",
    "ref",
    "rw_texture",
    "sparse_matrix_builder",
    "struct",
    "template",
    "texture",
    "u1",
    "u8",
    "u16",
    "u32",
    "u64",
    "uint1",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "vector",
]
