"""The namespace of the Array API standard (2025.12), and NumPy's names, over ``aerogel.tensor``.

>>> import aerogel as ti
>>> from aerogel import xp
>>> ti.init(arch=ti.cpu, log_level="error")
>>> xp.sum(xp.reshape(xp.arange(6), (2, 3)), axis=0).tolist()
[3, 5, 7]

Complex tensors hold their real and imaginary parts apart (``ComplexTensor``). Functions whose results have shapes that
depend on values (``nonzero``, ``unique``, ``bincount`` without a ``length``) compute at once. A function that both the
standard and NumPy have takes the arguments of the standard. ``docs/names.md`` lists the names of NumPy that are not
here.
"""

# ruff: noqa: A001, A004
from __future__ import annotations

import math
from typing import Any

from aerogel._dtypes import DataType
from aerogel._dtypes import f16 as float16
from aerogel._dtypes import f32 as float32
from aerogel._dtypes import f64 as float64
from aerogel._dtypes import i8 as int8
from aerogel._dtypes import i16 as int16
from aerogel._dtypes import i32 as int32
from aerogel._dtypes import i64 as int64
from aerogel._dtypes import u1 as bool
from aerogel._dtypes import u8 as uint8
from aerogel._dtypes import u16 as uint16
from aerogel._dtypes import u32 as uint32
from aerogel._dtypes import u64 as uint64
from aerogel.tensor import _arguments
from aerogel.tensor import _tensor as _make
from aerogel.tensor._complex import complex64, complex128, conj, imag, real
from aerogel.tensor._creation import (
    arange,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from aerogel.tensor._elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    astype,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
)
from aerogel.tensor._products import einsum, matmul, tensordot, vecdot
from aerogel.tensor._reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from aerogel.tensor._searching import (
    argsort,
    clip,
    isin,
    nonzero,
    searchsorted,
    sort,
    take,
    take_along_axis,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)
from aerogel.tensor._searching import (
    topk as top_k,
)
from aerogel.tensor._shapes import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from aerogel.tensor._tensor import asarray
from aerogel.xp import fft, linalg
from aerogel.xp._numpy import *
from aerogel.xp._types import can_cast, finfo, iinfo, isdtype, result_type

__array_api_version__ = "2025.12"
#: The versions of the standard that this is.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi


class _Info:
    """What there is."""

    def capabilities(self) -> dict[str, Any]:
        """The optional features of the standard, and which of them are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The default device."""
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes that Python numbers become."""
        from aerogel.tensor._complex import of_part
        from aerogel.tensor._types import default_float, default_int, index_type

        return {
            "real floating": default_float(),
            "complex floating": of_part(default_float()),
            "integral": default_int(),
            "indexing": index_type(),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The types of numbers."""
        names = [
            "bool",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float32",
            "float64",
            "complex64",
            "complex128",
        ]
        found = {name: globals()[name] for name in names}
        return {n: t for n, t in found.items() if kind is None or isdtype(t, kind)}

    def devices(self) -> tuple[str, ...]:
        """The available devices."""
        return ("cpu",)


def __array_namespace_info__() -> _Info:
    """What there is."""
    return _Info()


_arguments.guard(globals())
