"""Conversions and elementwise functions of `aerogel.tensor.frost`, and its hashes."""

# ruff: noqa: A001
from __future__ import annotations

from typing import Any

from aerogel._dtypes import f32 as float32
from aerogel._dtypes import i32 as int32
from aerogel._dtypes import u1 as bool1
from aerogel._dtypes import u32 as uint32
from aerogel.tensor import _elementwise, _searching
from aerogel.tensor._tensor import Tensor, asarray, constant
from aerogel.tensor.frost._gradients import passing
from aerogel.tensor.frost._indices import element_index


def float(x: Any) -> Tensor:
    """As ``float32``."""
    return asarray(x).astype(float32)


def int(x: Any) -> Tensor:
    """As ``int32``, towards zero."""
    return asarray(x).astype(int32)


def uint(x: Any) -> Tensor:
    """As ``uint32``."""
    return asarray(x).astype(uint32)


def bool(x: Any) -> Tensor:
    """As a boolean."""
    return asarray(x).astype(bool1)


def asfloat(x: Any) -> Tensor:
    """The bits as ``float32``."""
    return asarray(x).bitcast(float32)


def asint(x: Any) -> Tensor:
    """The bits as ``int32``."""
    return asarray(x).bitcast(int32)


def asuint(x: Any) -> Tensor:
    """The bits as ``uint32``."""
    return asarray(x).bitcast(uint32)


# Elementwise functions. Of one operand, they let `pass_grad` name it.

abs, sign, ceil, floor, trunc = (passing(getattr(_elementwise, n)) for n in ("abs", "sign", "ceil", "floor", "trunc"))
sin, cos, tan, asin, acos, atan = (
    passing(getattr(_elementwise, n)) for n in ("sin", "cos", "tan", "asin", "acos", "atan")
)
sinh, cosh, tanh, exp, exp2, log, log2 = (
    passing(getattr(_elementwise, n)) for n in ("sinh", "cosh", "tanh", "exp", "exp2", "log", "log2")
)
sqrt, rsqrt, rcp, frac, sqr = (
    passing(getattr(_elementwise, n)) for n in ("sqrt", "rsqrt", "reciprocal", "fract", "square")
)
round = passing(_elementwise.round)
pow, atan2, smoothstep, lerp, fma, step = (
    getattr(_elementwise, n) for n in ("pow", "atan2", "smoothstep", "lerp", "fma", "step")
)
modf = _elementwise.fmod


@passing
def clamp(x: Any, low: Any, high: Any) -> Tensor:
    """The number, but no less than ``low`` and no more than ``high``."""
    return _elementwise.minimum(_elementwise.maximum(x, low), high)


def select(condition: Any, a: Any, b: Any) -> Tensor:
    """One of two values."""
    return _searching.where(condition, a, b)


def pcg(x: Any) -> Tensor:
    """A hash of 32 bits (PCG, O'Neill)."""
    x = asarray(x).astype(uint32)
    state = x * _word(747796405) + _word(2891336453)
    word = ((state >> ((state >> _word(28)) + _word(4))) ^ state) * _word(277803737)
    return (word >> _word(22)) ^ word


def pcgf(x: Any) -> Tensor:
    """A hash as a number from 0 to 1."""
    return float(pcg(x)) * (1.0 / 4294967296.0)


def hash(shape: Any, seed: Any) -> Tensor:
    """A hash of each element's number and a seed."""
    return pcg(uint(element_index(shape)) + pcg(seed))


def random_value(shape: Any, seed: Any) -> Tensor:
    """A number from 0 to 1 for each element and a seed."""
    return float(hash(shape, seed)) * (1.0 / 4294967296.0)


def _word(n: Any) -> Tensor:
    return constant(n, uint32)


def reversebits(x: Any) -> Tensor:
    """The bits of 32 in the opposite order."""
    x = asarray(x).astype(uint32)
    for bits, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        x = ((x >> _word(bits)) & _word(mask)) | ((x & _word(mask)) << _word(bits))
    return x


__all__ = [
    "abs", "acos", "asfloat", "asin", "asint", "asuint", "atan", "atan2", "bool", "ceil", "clamp", "cos", "cosh",
    "exp", "exp2", "float", "floor", "fma", "frac", "hash", "int", "lerp", "log", "log2", "modf", "pcg", "pcgf",
    "pow", "random_value", "rcp", "reversebits", "round", "rsqrt", "select", "sign", "sin", "sinh", "smoothstep",
    "sqr", "sqrt", "step", "tan", "tanh", "trunc", "uint",
]  # fmt: skip
