"""Inverse circular and hyperbolic functions of complex tensors.

The arc sine and cosine are those of Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine
functions using exception handling" (ACM TOMS 23, 1997): no difference of numbers of one size is taken but that of 1 and
a part, which is exact where it counts. The hyperbolic arc tangent is Kahan's, "Branch cuts for complex elementary
functions" (1987). Both are done in double precision for parts of either type, so that those of ``f32`` lose nothing.

Branch cuts, and the signs of zeros at them, are those of C (annex G), which NumPy has too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import f64
from aerogel.tensor import _elementwise as e
from aerogel.tensor._complex import ComplexTensor, joined
from aerogel.tensor._searching import where

if TYPE_CHECKING:
    from collections.abc import Callable

    from aerogel.tensor._tensor import Tensor

#: From here on 1 is nothing beside the square of a number.
_FAR = 1e10

#: Numbers so close to 1 are 1.
_CLOSE = 1e-100


def _in_doubles(function: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Callable[[ComplexTensor], Any]:
    """A function of two parts in ``f64``, for complex tensors of any type."""

    def of_complex(z: ComplexTensor) -> ComplexTensor:
        parts = function(z.real.astype(f64), z.imag.astype(f64))
        return joined(*(part.astype(z.dtype.part) for part in parts))

    of_complex.__doc__ = function.__doc__
    return of_complex


def _exchanged(function: Any) -> Any:
    """The function of the exchanged parts, with its own parts exchanged."""

    def other(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        second, first = function(y, x)
        return first, second

    return other


def _parts(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """What all four functions are made of, for the sizes ``x`` and ``y`` of both parts.

    Where ``a`` is half the sum of the number's distances from 1 and -1, they are ``sqrt(a**2 - x**2)``, to which ``x``
    is as the sine to the cosine, and ``acosh(a)``.
    """
    over, under = x + 1.0, x - 1.0
    r, s = e.hypot(over, y), e.hypot(under, y)
    a = (r + s) * 0.5
    inner = x < 1.0
    # What `r` and `s` are more than their first parts: by their squares' difference where those are not below zero.
    first, second = 1.0 / (r + over), 1.0 / (s + e.abs(under))
    more = y * (y * first)
    half = (first + second) * 0.5
    beside = (more + (s + e.abs(under))) * 0.5
    # `a - x` where `x` is less than 1, and `a - 1` where it is not, are `beside`; the other is `y * y * half`. Both are
    # at 1, but `half` is infinite there if `y` is zero.
    cosine = where(x <= 1.0, e.sqrt(beside) * e.sqrt(a + x), y * e.sqrt(half * (a + x)))
    height = e.log1p(
        where(inner, y * (y * half) + y * e.sqrt(half * (a + 1.0)), beside + e.sqrt(beside) * e.sqrt(a + 1.0))
    )
    far = (x > _FAR) | (y > _FAR)
    return where(far, y, cosine), where(far, e.log(e.hypot(x * 0.5, y * 0.5)) + 2 * math.log(2), height)


def _asin(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    size = e.abs(x)
    cosine, height = _parts(size, e.abs(y))
    # The angle of zero is zero whatever is beside it, NaN as well.
    angle = where(size == 0.0, size, e.atan2(size, cosine))
    return e.copysign(angle, x), e.copysign(height, y)


def _turned(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The arc cosine's real part, and the size of the other."""
    size = e.abs(x)
    cosine, height = _parts(size, e.abs(y))
    return where(size == 0.0, math.pi / 2, e.atan2(cosine, x)), height


def _acos(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    angle, height = _turned(x, y)
    return angle, where(e.signbit(y), height, -height)


def _acosh(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    angle, height = _turned(x, y)
    return height, e.copysign(angle, y)


def _atanh(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    a, b = e.abs(x), e.abs(y)
    s = e.hypot(a - 1.0, b)
    # The bound is never met. It keeps fast maths from dividing by the square of `s`, which may be too large a number.
    part = e.minimum(a / s, 1e200) / s
    height = where(s < _CLOSE, (math.log(2) - e.log(s)) * 0.5, e.log1p(part * 4.0) * 0.25)
    height = where((a == 0.0) | e.isinf(s), 0.0, height)
    angle = (e.atan2(b, 1.0 - a) + e.atan2(b, 1.0 + a)) * 0.5
    angle = where(e.isinf(b), math.pi / 2, angle)
    return e.copysign(height, x), e.copysign(angle, y)


asin, acos, acosh, atanh = (_in_doubles(f) for f in (_asin, _acos, _acosh, _atanh))
asinh, atan = (_in_doubles(_exchanged(f)) for f in (_asin, _atanh))
