"""Values that programs store to elements of memory."""

from __future__ import annotations

from typing import Any

from aerogel.tensor import _types
from aerogel.tensor._tensor import Tensor, asarray, constant, inside, is_number


def kept(value: Any, dtype: Any) -> Tensor:
    """A value for elements of memory: one whose fraction these would lose is refused."""
    given = value if is_number(value) or isinstance(value, Tensor) else asarray(value)
    _types.kept(given.dtype if isinstance(given, Tensor) else given, dtype, "elements")
    return of_type(value, dtype)


def of_type(value: Any, dtype: Any) -> Tensor:
    """A value for elements of a type: numbers of Python's become that at once."""
    if is_number(value) and (dtype.is_float or not isinstance(value, float)):
        return constant(value, dtype)
    if isinstance(value, (list, tuple)) and dtype.is_float:
        return asarray(value, dtype)
    return (inside(value) if isinstance(value, Tensor) else asarray(value)).astype(dtype)
