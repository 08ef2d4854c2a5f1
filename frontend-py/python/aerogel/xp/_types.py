"""The types of numbers: kinds, limits and promotion."""

from __future__ import annotations

from typing import Any

from aerogel import _limits
from aerogel._dtypes import FLOATS, DataType, dtype_of
from aerogel._limits import FloatInfo, IntInfo
from aerogel.tensor import _types
from aerogel.tensor._complex import complex_type, of_part
from aerogel.tensor._tensor import Tensor, is_number

_KINDS = {
    "bool": ["u1"],
    "signed integer": ["i8", "i16", "i32", "i64"],
    "unsigned integer": ["u8", "u16", "u32", "u64"],
    "integral": ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"],
    "real floating": list(FLOATS),
    "complex floating": [],
    "numeric": ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", *FLOATS],
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a type is another one, of a kind, or of one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"there is no dtype kind {kind!r}; use one of {', '.join(_KINDS)}")
        found = complex_type(dtype)
        if found is not None:
            return kind in ("complex floating", "numeric")
        return dtype_of(dtype)._aerogel_dtype in _KINDS[kind]
    found, wanted = complex_type(dtype), complex_type(kind)
    if found is not None or wanted is not None:
        return found is wanted
    return dtype_of(dtype) is dtype_of(kind)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The type that operands meet at."""
    kinds = [complex_type(getattr(v, "dtype", complex if isinstance(v, complex) else v)) for v in arrays_and_dtypes]
    if any(k is not None for k in kinds):
        given = zip(arrays_and_dtypes, kinds)
        # A complex number of Python's takes the width of what is beside it.
        parts = [
            v if k is None else k.part for v, k in given if not (isinstance(v, complex) and not hasattr(v, "dtype"))
        ]
        part = result_type(*parts) if parts else _types.default_float()
        return of_part(part if part.is_float else _types.default_float())
    known: DataType | None = None
    for value in arrays_and_dtypes:
        if is_number(value):
            continue
        dtype = dtype_of(getattr(value, "dtype", value))
        known = dtype if known is None else _types.promote(known, dtype)
    for value in arrays_and_dtypes:
        if is_number(value):
            known = _types.of_number(value, known)
    if known is None:
        raise ValueError("`result_type` takes at least one operand")
    return known


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether every number of a type is one of another, by the rules of promotion."""
    wanted = complex_type(to)
    if wanted is not None:
        own = complex_type(getattr(from_, "dtype", from_))
        return can_cast(own.part if own is not None else from_, wanted.part)
    if complex_type(getattr(from_, "dtype", from_)) is not None:
        return False
    source = from_.dtype if isinstance(from_, Tensor) else dtype_of(from_)
    target = dtype_of(to)
    if _types.kind(source) != _types.kind(target) and {_types.kind(source), _types.kind(target)} != {"i", "u"}:
        return False
    try:
        return _types.promote(source, target) is target
    except TypeError:
        return False


def finfo(type: Any, /) -> FloatInfo:  # noqa: A002
    """The limits of a float dtype."""
    type = getattr(type, "dtype", type)
    found = complex_type(type)
    dtype = dtype_of(type) if found is None else found.part
    if not dtype.is_float:
        raise TypeError(f"`finfo` takes a float dtype, not `{dtype}`")
    return _limits.of_floats(dtype)


def iinfo(type: Any, /) -> IntInfo:  # noqa: A002
    """The limits of an integer dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else dtype_of(type)
    if _types.kind(dtype) not in "iu":
        raise TypeError(f"`iinfo` takes an integer dtype, not `{dtype}`")
    return _limits.of_integers(dtype)
