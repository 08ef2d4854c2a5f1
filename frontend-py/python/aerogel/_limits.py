"""The numbers that each type holds."""

from __future__ import annotations

from typing import NamedTuple

from aerogel._dtypes import DataType, dtype_of, numpy_dtype


class FloatInfo(NamedTuple):
    """The properties of a float dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DataType


class IntInfo(NamedTuple):
    """The properties of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DataType


def of_floats(dtype: DataType) -> FloatInfo:
    """The properties of a float dtype."""
    import numpy as np

    if dtype._aerogel_dtype == "bf16":
        # As those of `f32`, whose high half they are, with 16 bits less.
        single = of_floats(dtype_of("f32"))
        largest = 2.0**128 - 2.0**120
        return FloatInfo(16, single.eps * 2.0**16, largest, -largest, single.smallest_normal, dtype)
    info = np.finfo(numpy_dtype(dtype))
    return FloatInfo(info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), dtype)


def of_integers(dtype: DataType) -> IntInfo:
    """The properties of an integer dtype."""
    name = dtype._aerogel_dtype
    bits = int(name[1:])
    signed = name[0] == "i"
    return IntInfo(bits, (1 << (bits - signed)) - 1, -(1 << (bits - 1)) if signed else 0, dtype)
