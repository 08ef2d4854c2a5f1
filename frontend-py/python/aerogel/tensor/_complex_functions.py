"""Elementary functions of complex numbers, also at infinity and at NaN, as annex G of C has them."""

from __future__ import annotations

import math
from typing import Any

from aerogel._dtypes import f64
from aerogel.tensor import _elementwise as e
from aerogel.tensor._complex import ComplexTensor, joined
from aerogel.tensor._complex_arithmetic import _divisor, _size, angle
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import constant


def _times(size: Any, wave: Any, none: Any = None, endless: Any = None) -> Any:
    """A size times a sine or a cosine, as annex G of C has it.

    Nothing times anything is nothing: where the sine is that, and where the size is (``none``), not only too small for
    a number. The sine of infinity is NaN, and what is infinite (``endless``) may stay so.
    """
    product, still = size * wave, wave == 0
    nothing = where(still, where(size < 0, -wave, wave), size)
    product = where((product != product) & (still if none is None else none | still), nothing, product)
    return product if endless is None else where(endless & (wave != wave), size, product)


def _finite(factor: Any) -> Any:
    """A factor that leaves what is infinite or NaN already, and nothing, as it is."""
    return where(e.isfinite(factor), factor, 1.0)


def exp(z: ComplexTensor) -> ComplexTensor:
    """e to the power of each element."""
    # In two factors: the exponential may be too large for a number where a part is not.
    half = e.exp(z.real * 0.5)
    none, endless, by = z.real == -math.inf, z.real == math.inf, _finite(half)
    return joined(_times(half, e.cos(z.imag), none, endless) * by, _times(half, e.sin(z.imag), none) * by)


def _hyperbolic(x: Any) -> tuple[Any, Any, Any]:
    """The hyperbolic cosine and sine, and by what both, which may be too large, are still to be multiplied."""
    is_far = e.abs(x) > (700.0 if x.dtype is f64 else 80.0)
    root = e.exp(where(is_far, e.abs(x) * 0.5, 0.0))
    half, near = root * 0.5, where(is_far, 0.0, x)
    cosh, sinh = where(is_far, half, e.cosh(near)), where(is_far, e.copysign(half, x), e.sinh(near))
    return cosh, sinh, _finite(root)


def _in_range(z: ComplexTensor) -> tuple[Any, Any, Any, Any]:
    """Both parts by a power of four, so that their squares are neither too large nor too small: it, and its root."""
    x, y = z.real, z.imag
    large, small = (1e300, 1e-290) if x.dtype is f64 else (1e37, 1e-30)
    most = e.maximum(e.abs(x), e.abs(y))
    one = constant(1.0, x.dtype)
    by = where(most > large, 0.25, where(most < small, 2.0**64, one))
    root = where(most > large, 0.5, where(most < small, 2.0**32, one))
    return x * by, y * by, by, root


def log(z: ComplexTensor) -> ComplexTensor:
    """The natural logarithm whose imaginary part is from -pi to pi."""
    x, y, by, _ = _in_range(z)
    return joined(e.log(e.hypot(x, y)) - e.log(by), angle(z))


def sqrt(z: ComplexTensor) -> ComplexTensor:
    """The square root whose real part is not negative."""
    x, y, _, root = _in_range(z)
    half = e.sqrt((e.hypot(x, y) + e.abs(x)) * 0.5) / root
    other = where(half == 0, half, e.abs(z.imag) / (half * 2))
    right = z.real >= 0
    real, imag = where(right, half, other), e.copysign(where(right, other, half), z.imag)
    endless = e.isinf(z.imag)
    return joined(where(endless, math.inf, real), where(endless, z.imag, imag))


def sin(z: ComplexTensor) -> ComplexTensor:
    """The sine of each element."""
    cosh, sinh, by = _hyperbolic(z.imag)
    real = _times(cosh, e.sin(z.real))
    imag = _times(sinh, e.cos(z.real), z.imag == 0, e.isinf(z.imag))
    return joined(real * by, imag * by)


def cos(z: ComplexTensor) -> ComplexTensor:
    """The cosine of each element."""
    cosh, sinh, by = _hyperbolic(z.imag)
    real = _times(cosh, e.cos(z.real), None, e.isinf(z.imag))
    imag = -_times(sinh, e.sin(z.real), z.imag == 0)
    return joined(real * by, imag * by)


def sinh(z: ComplexTensor) -> ComplexTensor:
    """The hyperbolic sine of each element."""
    cosh, sinh, by = _hyperbolic(z.real)
    real = _times(sinh, e.cos(z.imag), z.real == 0, e.isinf(z.real))
    imag = _times(cosh, e.sin(z.imag))
    return joined(real * by, imag * by)


def cosh(z: ComplexTensor) -> ComplexTensor:
    """The hyperbolic cosine of each element."""
    cosh, sinh, by = _hyperbolic(z.real)
    real = _times(cosh, e.cos(z.imag), None, e.isinf(z.real))
    imag = _times(sinh, e.sin(z.imag), z.real == 0)
    return joined(real * by, imag * by)


def tanh(z: ComplexTensor) -> ComplexTensor:
    """The hyperbolic tangent of each element: of large ones too, whose sines and cosines are too large for a number."""
    t, c, s = e.tanh(z.real), e.cos(z.imag), e.sin(z.imag)
    small = 1.0 / e.cosh(z.real)
    small = small * small
    endless = e.isinf(z.real)
    by = where(endless, 1.0, t * t + small * c * c)
    # Zero at infinity has the sign that the Array API says, of the other part; C says that of the sine of twice that.
    zero = e.copysign(small, z.imag)
    imag = where(endless, zero, where(z.imag == 0, z.imag, small * s * c / by))
    return joined(where(t == 0, t, t / by), imag)


def tan(z: ComplexTensor) -> ComplexTensor:
    """The tangent of each element."""
    turned = tanh(joined(-z.imag, z.real))
    return joined(turned.imag, -turned.real)


def expm1(z: ComplexTensor) -> ComplexTensor:
    """``exp(x) - 1`` of each element, accurate near zero."""
    half = e.sin(z.imag * 0.5)
    none, endless = z.real == -math.inf, z.real == math.inf
    # Zeros of both signs become one without.
    near = where(z.real == 0, 0.0, e.expm1(z.real))
    real = _times(near, e.cos(z.imag), z.real == 0, endless) - 2.0 * half * half
    real = where(none, -1.0, where(endless & (real != real), z.real, real))
    return joined(real, _times(e.exp(z.real), e.sin(z.imag), none))


def log1p(z: ComplexTensor) -> ComplexTensor:
    """``log(1 + x)`` of each element, accurate near zero."""
    x, y, far = z.real, z.imag, log(ComplexTensor(z.real + 1.0, z.imag))
    is_near = _size(z) < 0.5
    near = 0.5 * e.log1p(where(is_near, x * (x + 2.0) + y * y, 0.0))
    return joined(where(is_near, near, far.real), far.imag)


def sign(z: ComplexTensor) -> ComplexTensor:
    """Each element divided by its absolute value; zero for zero, and the direction of infinite elements."""
    endless = e.isinf(z.real) | e.isinf(z.imag)
    x, y, _, _ = _in_range(z)
    x, y = (where(endless, e.copysign(e.isinf(p).astype(p.dtype), p), p) for p in (x, y))
    size = e.hypot(x, y)
    return joined(*(where(size == 0, 0.0, p / size) for p in (x, y)))


def reciprocal(z: ComplexTensor) -> ComplexTensor:
    """1 by each element: the conjugate's direction, also where a part is zero."""
    part, scale, by_real = _divisor(z)
    one = constant(1.0, z.dtype.part)
    re, im = where(by_real, one, part), where(by_real, -part, -one)
    return joined(re / scale, im / scale)
