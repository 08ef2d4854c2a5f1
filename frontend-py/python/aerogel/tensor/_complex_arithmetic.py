"""What is computed of complex tensors beyond sums and products of their parts: operators, functions and methods."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

from aerogel.tensor._complex import BINARY, UNARY, ComplexTensor, _part, _planes, is_complex, joined
from aerogel.tensor._methods import Methods

if TYPE_CHECKING:
    from collections.abc import Callable

    from aerogel.tensor._tensor import Tensor


def _power(z: ComplexTensor, exponent: Any) -> ComplexTensor:
    """A power by the logarithm; of zero, which has none, 0 where there is a power. To the power of zero all are 1."""
    from aerogel.tensor._complex_functions import exp, log
    from aerogel.tensor._searching import where
    from aerogel.tensor._tensor import asarray

    out, is_zero = exp(log(z) * exponent), z == 0
    re, im = (asarray(part) for part in _planes(exponent))
    is_one = (re == 0) & (im == 0)
    of_zero = where(re > 0, 0.0, math.nan).astype(out._real.dtype)
    real, imag = (where(is_zero, of_zero, part) for part in (out._real, out._imag))
    return ComplexTensor(where(is_one, 1.0, real), where(is_one, 0.0, imag))


def _one_like(z: ComplexTensor, re: Any, im: Any) -> ComplexTensor:
    """Numbers in the types of a complex tensor's parts."""
    from aerogel.tensor._tensor import constant, is_number

    part = z.dtype.part
    return joined(*(constant(float(v), part) if is_number(v) else v for v in (re, im)))


def _size(z: ComplexTensor) -> Tensor:
    from aerogel.tensor._elementwise import hypot

    return hypot(z.real, z.imag)


def _divisor(z: ComplexTensor) -> tuple[Tensor, Tensor, Tensor]:
    """The smaller part by the larger one, the size of both by the larger one, and whether that is the real part."""
    from aerogel.tensor._elementwise import abs as size
    from aerogel.tensor._searching import where

    by_real = size(z.real) >= size(z.imag)
    large, small = where(by_real, z.real, z.imag), where(by_real, z.imag, z.real)
    part = where(large == 0, small, small / large)
    return part, large + small * part, by_real


def _quotient(a: ComplexTensor, b: ComplexTensor) -> ComplexTensor:
    """By the larger part of the divisor, so that nothing overflows (Smith, 1962)."""
    from aerogel.tensor._searching import where

    part, scale, by_real = _divisor(b)
    re = where(by_real, a.real + a.imag * part, a.real * part + a.imag)
    im = where(by_real, a.imag - a.real * part, a.imag * part - a.real)
    # Of infinity by zero, neither part is NaN for the other's sake.
    by_zero = scale == 0
    re, im = where(by_zero, a.real, re), where(by_zero, a.imag, im)
    return joined(re / scale, im / scale)


def _whole_power(z: ComplexTensor, n: int) -> ComplexTensor:
    if n < 0:
        return 1 / _whole_power(z, -n)
    from aerogel.tensor._creation import ones_like, zeros_like

    if n == 0:
        return ComplexTensor(ones_like(z.real), zeros_like(z.imag))
    out, square = None, z
    while n:
        if n & 1:
            out = square if out is None else out * square
        n >>= 1
        square = square * square if n else square
    return out  # type: ignore[return-value]


def angle(z: Any, /) -> Tensor:
    """The angle of complex numbers, from -pi to pi; of real ones 0 or pi, by their sign."""
    from aerogel.tensor._elementwise import atan2
    from aerogel.tensor._tensor import asarray

    z = asarray(z)
    return atan2(z.imag, z.real) if isinstance(z, ComplexTensor) else atan2(0.0, _part(z))


def matmul(a: Any, b: Any) -> ComplexTensor:
    """The product of matrices, one or both of complex numbers."""
    from aerogel.tensor._products import matmul as product

    (p, q), (r, s) = (_planes(x) for x in (a, b))
    if isinstance(q, float):
        return joined(product(p, r), product(p, s))
    if isinstance(s, float):
        return joined(product(p, r), product(q, r))
    return joined(product(p, r) - product(q, s), product(p, s) + product(q, r))


def _either(name: str) -> Any:
    def question(z: ComplexTensor) -> Tensor:
        from aerogel.tensor import _elementwise

        function = getattr(_elementwise, name)
        first, second = function(z.real), function(z.imag)
        return first & second if name == "isfinite" else first | second

    return question


def _of(module: str, name: str) -> Any:
    def function(z: ComplexTensor) -> ComplexTensor:
        return getattr(importlib.import_module(f"aerogel.tensor.{module}"), name)(z)

    return function


def _scaled(base: float) -> Any:
    return lambda z: UNARY["log"](z) * (1.0 / math.log(base))


UNARY.update({
    "abs": _size, "neg": ComplexTensor.__neg__,
    "square": lambda z: z * z, "log2": _scaled(2.0), "log10": _scaled(10.0),
    "exp2": lambda z: UNARY["exp"](z * 0.6931471805599453),
    "isnan": _either("isnan"), "isinf": _either("isinf"), "isfinite": _either("isfinite"),
    "logical_not": lambda z: z == 0, "rint": lambda z: z.round(),
    **{
        name: _of("_complex_functions", name)
        for name in (
            "exp", "log", "sqrt", "sin", "cos", "sinh", "cosh", "sign", "tan", "tanh", "expm1", "log1p", "reciprocal",
        )
    },
    **{name: _of("_complex_inverses", name) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
})  # fmt: skip

BINARY.update({
    "add": lambda a, b: b + a if not isinstance(a, ComplexTensor) else a + b,
    "sub": lambda a, b: b.__rsub__(a) if not isinstance(a, ComplexTensor) else a - b,
    "mul": lambda a, b: b * a if not isinstance(a, ComplexTensor) else a * b,
    "div": lambda a, b: b.__rtruediv__(a) if not isinstance(a, ComplexTensor) else a / b,
    "power": lambda a, b: b.__rpow__(a) if not isinstance(a, ComplexTensor) else a**b,
    "eq": lambda a, b: b == a if not isinstance(a, ComplexTensor) else a == b,
    "ne": lambda a, b: b != a if not isinstance(a, ComplexTensor) else a != b,
})  # fmt: skip


def _divide(self: ComplexTensor, other: Any) -> ComplexTensor:
    re, im = _planes(other)
    if not is_complex(other):
        return joined(self._real / re, self._imag / re)
    return _quotient(self, joined(re, im) if not isinstance(re, (int, float)) else _one_like(self, re, im))


def _divide_into(self: ComplexTensor, other: Any) -> ComplexTensor:
    return _quotient(_one_like(self, *_planes(other)), self)


def _raise(self: ComplexTensor, other: Any) -> ComplexTensor:
    if isinstance(other, (int, float)) and not hasattr(other, "dtype") and other % 1 == 0 and abs(other) <= 64:
        return _whole_power(self, int(other))
    return _power(self, other)


def _raise_to(self: ComplexTensor, other: Any) -> ComplexTensor:
    return _power(_one_like(self, *_planes(other)), self)


def _method(name: str) -> Callable[..., Any]:
    def method(self: ComplexTensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module("aerogel.tensor"), name)(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"``ti.tensor.{name}`` of it."
    return method


for _name in ("diagonal", "dot", "norm", "repeat", "take", "trace"):
    setattr(ComplexTensor, _name, _method(_name))
for _name in ("at", "sum", "prod", "mean", "cumsum", "cumprod"):
    setattr(ComplexTensor, _name, getattr(Methods, _name))
for _name, _operator in {
    "__abs__": _size,
    "__truediv__": _divide,
    "__itruediv__": _divide,
    "__rtruediv__": _divide_into,
    "__pow__": _raise,
    "__rpow__": _raise_to,
    "__matmul__": matmul,
    "__rmatmul__": lambda self, other: matmul(other, self),
}.items():
    setattr(ComplexTensor, _name, _operator)
