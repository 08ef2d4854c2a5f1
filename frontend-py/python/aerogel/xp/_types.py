"""The types of numbers: what they are, and where they meet."""

from __future__ import annotations

from typing import Any, NamedTuple

from aerogel._dtypes import ALL, DataType, dtype_of, numpy_dtype
from aerogel.tensor import _types
from aerogel.tensor._tensor import Tensor

_KINDS = {
    "bool": ["u1"],
    "signed integer": ["i8", "i16", "i32", "i64"],
    "unsigned integer": ["u8", "u16", "u32", "u64"],
    "integral": ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"],
    "real floating": ["f16", "f32", "f64"],
    "complex floating": [],
    "numeric": ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"],
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a type is another one, of a kind, or of one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"there is no kind {kind!r} of types; use one of {', '.join(_KINDS)}")
        return dtype._aerogel_dtype in _KINDS[kind]
    return dtype is kind


def result_type(*arrays_and_dtypes: Any) -> DataType:
    """The type that operands meet at."""
    known: DataType | None = None
    for value in arrays_and_dtypes:
        if isinstance(value, (bool, int, float)):
            continue
        dtype = value.dtype if isinstance(value, Tensor) else dtype_of(value)
        known = dtype if known is None else _types.promote(known, dtype)
    for value in arrays_and_dtypes:
        if isinstance(value, (bool, int, float)):
            known = _types.of_number(value, known)
    if known is None:
        raise ValueError("`result_type` takes at least one operand")
    return known


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether every number of a type is one of another, by the rules of promotion."""
    source = from_.dtype if isinstance(from_, Tensor) else dtype_of(from_)
    target = dtype_of(to)
    if _types.kind(source) != _types.kind(target) and {_types.kind(source), _types.kind(target)} != {"i", "u"}:
        return False
    try:
        return _types.promote(source, target) is target
    except TypeError:
        return False


class FloatInfo(NamedTuple):
    """What a type of floats holds."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DataType


class IntInfo(NamedTuple):
    """What a type of integers holds."""

    bits: int
    max: int
    min: int
    dtype: DataType


def finfo(type: Any, /) -> FloatInfo:  # noqa: A002
    """What a type of floats holds."""
    import numpy as np

    dtype = type.dtype if isinstance(type, Tensor) else dtype_of(type)
    if not dtype.is_float:
        raise TypeError(f"`finfo` takes a type of floats, not `{dtype}`")
    info = np.finfo(numpy_dtype(dtype))
    return FloatInfo(info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), dtype)


def iinfo(type: Any, /) -> IntInfo:  # noqa: A002
    """What a type of integers holds."""
    dtype = type.dtype if isinstance(type, Tensor) else dtype_of(type)
    name = dtype._aerogel_dtype
    if _types.kind(dtype) not in "iu":
        raise TypeError(f"`iinfo` takes a type of integers, not `{dtype}`")
    bits = int(name[1:])
    signed = name[0] == "i"
    return IntInfo(bits, (1 << (bits - signed)) - 1, -(1 << (bits - 1)) if signed else 0, ALL[name])
