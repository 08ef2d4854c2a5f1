"""Special functions of each element, composed of differentiable operations.

Every function takes real tensors of any shape. Integers become the default float; ``f16`` and ``bf16`` are computed in
``f32`` and rounded. A branch that is not selected is given a harmless argument (``where`` before and after), so that no
gradient becomes NaN because of it. The polynomials are made by ``scripts/derive_special.py``.

In ``f64``, errors relative to the result are below 1e-14 (``erfc``, ``ndtr`` and ``erfcx``, in the tails as well), and
below 1e-13 (the others). Next to the zeros of ``gammaln`` and ``digamma`` at negative arguments this holds for the
absolute error.
"""

from __future__ import annotations

import math
from typing import Any

from aerogel import _native
from aerogel._dtypes import bf16, f16, f32, f64
from aerogel._limits import of_floats
from aerogel.tensor import _special_tables as tables
from aerogel.tensor._complex import is_complex
from aerogel.tensor._elementwise import (
    abs,
    atanh,
    copysign,
    erf,
    exp,
    expm1,
    floor,
    isinf,
    isnan,
    log,
    log1p,
    minimum,
    round,
    sin,
    sqrt,
    tan,
)
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor, asarray, constant, is_number, operands, tracing

_INF, _NAN = math.inf, math.nan


def _computed(name: str, *values: Any) -> tuple[list[Tensor], Any]:
    """Operands in ``f32`` or ``f64``, and the dtype of the result.

    Raises:
        TypeError: For complex numbers.
    """
    given = [x if is_number(x) else asarray(x) for x in values]
    for x in given:
        if is_complex(x):
            raise TypeError(f"`{name}` takes real numbers, not `{x.dtype}`")
    given = operands(*given, to_float=True)
    dtype = given[0].dtype
    return [x.astype(f32) if dtype in (f16, bf16) else x for x in given], dtype


def _polynomial(name: str, t: Tensor) -> Tensor:
    """A polynomial of the tables, by Horner's rule."""
    coefficients = getattr(tables, name if t.dtype is f64 else name + "_SINGLE")
    out, *rest = (_literal(c, t) for c in reversed(coefficients))
    for c in rest:
        out = out * t + c
    return out


def _literal(value: float, like: Tensor) -> Tensor:
    """A number that is part of the program. As an operand, it would be an input of the kernel."""
    return Tensor(_native.NativeTensor.full([], like.dtype._aerogel_dtype, value, tracing.trace))


def _mirrored(x: Tensor) -> Tensor:
    """The absolute value. Its slope at zero is 1, where that of ``abs`` is 0."""
    return where(x < 0, -x, x)


def _square_exp(a: Tensor, factor: float) -> Tensor:
    """``exp(factor * a * a)`` for ``a`` from 0 to 64, without the error of the rounded square, which the exponential
    would enlarge: the square of the leading bits is exact."""
    leading = floor(a * 64) / 64
    return exp(leading * leading * factor) * exp((a - leading) * (a + leading) * factor)


def _scaled_tail(a: Tensor) -> Tensor:
    """``exp(a^2) erfc(a)`` for ``a >= 0``."""
    t = 1.0 - 7.5 / (a + 3.75)
    return _polynomial("ERFCX", t) / (1.0 + 2.0 * a)


def erfc(x: Any, /) -> Tensor:
    """The complementary error function, ``1 - erf(x)``, with all digits in its tail.

    The method is that of M. M. Shepherd and J. G. Laframboise, Mathematics of Computation 36 (1981).

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.special.erfc(ti.tensor.asarray([0.0, 10.0], dtype=ti.f64)).tolist()
    [1.0, 2.0884875837625443e-45]
    """
    (x,), dtype = _computed("erfc", x)
    # Above, the result is zero.
    a = minimum(_mirrored(x), 30.0)
    tail = _square_exp(a, -1.0) * _scaled_tail(a)
    # The result is exactly 1 at zero.
    near = a < 0.5
    return where(near, 1.0 - erf(where(near, x, 0.0)), where(x < 0, 2.0 - tail, tail)).astype(dtype)


def erfcx(x: Any, /) -> Tensor:
    """``exp(x^2) erfc(x)``, which neither overflows nor underflows for positive ``x``."""
    (x,), dtype = _computed("erfcx", x)
    a = _mirrored(x)
    tail = _scaled_tail(a)
    # Below, the result overflows: products of an infinity and of the rest of a square would be NaN.
    overflows = x < -math.sqrt(math.log(of_floats(x.dtype).max / 2))
    both = 2.0 * _square_exp(where((x < 0) & ~overflows, a, 0.0), 1.0) - tail
    return where(overflows, where(overflows, x, -1.0) * -_INF, where(x < 0, both, tail)).astype(dtype)


def _normal_tail(a: Tensor) -> Tensor:
    """The probability above ``a >= 0`` of the standard normal distribution."""
    a = minimum(a, 40.0)
    return _square_exp(a, -0.5) * _scaled_tail(a * math.sqrt(0.5)) * 0.5


def ndtr(x: Any, /) -> Tensor:
    """The cumulative distribution function of the standard normal distribution."""
    (x,), dtype = _computed("ndtr", x)
    tail = _normal_tail(_mirrored(x))
    near = abs(x) < 0.5
    centre = 0.5 + 0.5 * erf(where(near, x, 0.0) * math.sqrt(0.5))
    return where(near, centre, where(x < 0, tail, 1.0 - tail)).astype(dtype)


def log_ndtr(x: Any, /) -> Tensor:
    """The logarithm of ``ndtr``, also where that underflows."""
    (x,), dtype = _computed("log_ndtr", x)
    low = where(x < 0, x, -1.0)
    high = where(x < 0, 1.0, x)
    below = log(_scaled_tail(low * -math.sqrt(0.5)) * 0.5) - low * low * 0.5
    return where(x < 0, below, log1p(-_normal_tail(high))).astype(dtype)


def _erfinv_near(x: Tensor) -> Tensor:
    """The inverse error function of numbers up to 0.8."""
    return x * _polynomial("ERFINV_NEAR", x * x / 0.32 - 1.0)


def _erfcinv_far(r: Tensor) -> Tensor:
    """The inverse of ``erfc`` for results above 0.9: of numbers up to 0.2, but not of zero."""
    low, high = tables.FAR
    square = -log(r)
    t = (log(square) - (low + high)) * (1.0 / (high - low))
    return sqrt(square) + _polynomial("ERFINV_FAR", t)


def _inverse(centre: Tensor, rest: Tensor) -> Tensor:
    """The number whose ``erf`` is ``centre`` and whose ``erfc``, without the sign, is ``rest``, as far as each is
    exact."""
    near = abs(centre) <= 0.8
    usual = (rest > 0) & ~near
    # The logarithm is infinite at zero, as its derivative is, and NaN below.
    far = where(usual, _erfcinv_far(where(usual, rest, 0.1)), -log(where(usual, 1.0, rest)))
    return where(near, _erfinv_near(where(near, centre, 0.0)), where(centre < 0, -far, far))


def erfinv(x: Any, /) -> Tensor:
    """The inverse of the error function: infinite at -1 and 1, NaN outside.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.special.erfinv([-1.0, 0.0, 0.5])
    tensor([      -inf, 0.        , 0.47693628], dtype=f32)
    """
    (x,), dtype = _computed("erfinv", x)
    return _inverse(x, 1.0 - _mirrored(x)).astype(dtype)


def erfcinv(x: Any, /) -> Tensor:
    """The inverse of ``erfc``: infinite at 0 and 2, NaN outside."""
    (x,), dtype = _computed("erfcinv", x)
    return _inverse(1.0 - x, where(x > 1, 2.0 - x, x)).astype(dtype)


def ndtri(p: Any, /) -> Tensor:
    """The inverse of ``ndtr``, the quantiles of the standard normal distribution."""
    (p,), dtype = _computed("ndtri", p)
    q = p * 2.0
    return (_inverse(1.0 - q, where(q > 1, 2.0 - q, q)) * -math.sqrt(2.0)).astype(dtype)


def _gammaln_near(x: Tensor) -> Tensor:
    """``gammaln`` for ``-0.5 <= x < 7.5``: brought to 1.5 up to 2.5, around the zero at 2, by the recurrence."""
    q, above = x, constant(1.0, x.dtype)
    for _ in range(5):
        steps = q >= 2.5
        q = where(steps, q - 1.0, q)
        above = above * where(steps, q, 1.0)
    # One step up, or two: these factors divide.
    below = where(x < 0.5, abs(x * (x + 1.0)), x)
    p = where(x < 0.5, x, where(x < 1.5, x - 1.0, q - 2.0))
    factor = log(where(x < 1.5, below, above))
    return p * _polynomial("GAMMALN_NEAR", p * 2.0) + where(x < 1.5, -factor, factor)


def _gammaln_far(x: Tensor) -> Tensor:
    """``gammaln`` for ``x >= 7.5``, by Stirling's formula; only an infinite result overflows."""
    t = 2.0 * (7.5 / x) * (7.5 / x) - 1.0
    rest = 0.5 * math.log(2 * math.pi) - 0.5 + _polynomial("GAMMALN_FAR", t) / x
    return (x - 0.5) * (log(x) - 1.0) + rest


def gammaln(x: Any, /) -> Tensor:
    """The logarithm of the absolute value of the gamma function; infinite at its poles.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.special.gammaln([1.0, 5.0, -1.0])
    tensor([0.       , 3.1780539,       inf], dtype=f32)
    """
    (x,), dtype = _computed("gammaln", x)
    reflects = x < -0.5
    z = where(reflects, -x, x)
    near = z < 7.5
    out = where(near, _gammaln_near(where(near, z, 2.0)), _gammaln_far(where(near, 8.0, z)))
    # Reflection: gamma(x) gamma(-x) = -pi / (x sin(pi x)).
    fraction = x - round(x)
    usual = reflects & (fraction != 0)
    sine = log(abs(where(usual, x, 1.0) * sin(where(usual, fraction, 0.5) * math.pi)))
    reflected = where(usual & ~isinf(x), math.log(math.pi) - sine - out, _INF)
    return where(reflects, reflected, out).astype(dtype)


def gammasgn(x: Any, /) -> Tensor:
    """The sign of the gamma function: that of zero at zero, NaN at negative integers."""
    (x,), dtype = _computed("gammasgn", x)
    odd = floor(x) % 2 != 0
    out = where(x >= 0, 1.0, where(odd, -1.0, 1.0))
    out = where(x == 0, copysign(1.0, x), out)
    return where(isnan(x) | (x < 0) & (x == floor(x)), _NAN, out).astype(dtype)


def digamma(x: Any, /) -> Tensor:
    """The derivative of ``gammaln``; NaN at negative integers, infinite at zero.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.special.digamma([1.0, 0.0])
    tensor([-0.5772157,       -inf], dtype=f32)
    """
    (x,), dtype = _computed("digamma", x)
    reflects = x < 0
    z = where(reflects, 1.0 - x, x)
    # From 1 to 2, with the zero there split off in three parts.
    near = z < 2.0
    b = where(near, z, 1.5)
    below = b < 1.0
    up = where(below, b + 1.0, b)
    first, second, third = tables.DIGAMMA_ROOT
    low = (((up - first) - second) - third) * _polynomial("DIGAMMA_NEAR", up * 2.0 - 3.0)
    low = where(below, low - 1.0 / where(below, b, 1.0), low)
    # Above, the asymptotic series from 6 on.
    v = where(near, 8.0, z)
    short = v < 6.0
    w = where(short, v, 2.0)
    terms = (1.0 / w + 1.0 / (w + 1.0)) + (1.0 / (w + 2.0) + 1.0 / (w + 3.0))
    v = where(short, v + 4.0, v)
    inverse = 1.0 / v
    t = 72.0 * inverse * inverse - 1.0
    high = log(v) - 0.5 * inverse + _polynomial("DIGAMMA_FAR", t) * inverse * inverse
    out = where(near, low, where(short, high - terms, high))
    # Reflection: digamma(1 - x) - digamma(x) = pi / tan(pi x).
    fraction = x - round(x)
    usual = reflects & (fraction != 0)
    cotangent = math.pi / tan(where(usual, fraction, 0.25) * math.pi)
    return where(reflects, where(usual, out - cotangent, _NAN), out).astype(dtype)


def xlogy(x: Any, y: Any, /) -> Tensor:
    """``x * log(y)``, and 0 where ``x`` is 0, unless ``y`` is NaN.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.special.xlogy([0.0, 2.0], [0.0, 1.0])
    tensor([0., 0.], dtype=f32)
    """
    (x, y), dtype = _computed("xlogy", x, y)
    # Elsewhere `0 * log(y)` is 0 by itself, and its derivative by `x` is `log(y)`.
    unusual = (x == 0) & ((y <= 0) | (y == _INF))
    return (x * log(where(unusual, 1.0, y))).astype(dtype)


def xlog1py(x: Any, y: Any, /) -> Tensor:
    """``x * log1p(y)``, and 0 where ``x`` is 0, unless ``y`` is NaN."""
    (x, y), dtype = _computed("xlog1py", x, y)
    unusual = (x == 0) & ((y <= -1) | (y == _INF))
    return (x * log1p(where(unusual, 0.0, y))).astype(dtype)


def entr(x: Any, /) -> Tensor:
    """``-x * log(x)``, 0 at 0 and -inf below: the terms of an entropy.

    Its slope at 0 is infinite; the gradient there is 0, as that of ``sqrt`` is. The same holds for ``rel_entr`` and
    ``kl_div``, by ``x``.
    """
    (x,), dtype = _computed("entr", x)
    positive = x > 0
    safe = where(positive, x, 1.0)
    out = where(positive, -safe * log(safe), where(x == 0, 0.0, -_INF))
    return where(isnan(x), x, out).astype(dtype)


def rel_entr(x: Any, y: Any, /) -> Tensor:
    """``x * log(x / y)`` for positive numbers, 0 for ``x == 0`` and ``y >= 0``, else infinite."""
    (x, y), dtype = _computed("rel_entr", x, y)
    usual = (x > 0) & (y > 0)
    a, b = where(usual, x, 1.0), where(usual, y, 1.0)
    out = where(usual, a * _log_ratio(a, b), where((x == 0) & (y >= 0), 0.0, _INF))
    return where(isnan(x) | isnan(y), _NAN, out).astype(dtype)


def _log_ratio(a: Tensor, b: Tensor) -> Tensor:
    """``log(a / b)`` of positive numbers, with all digits where they are nearly equal."""
    close = (a < 2.0 * b) & (b < 2.0 * a)
    return where(close, log1p((where(close, a, 1.0) - where(close, b, 1.0)) / b), log(a) - log(b))


def kl_div(x: Any, y: Any, /) -> Tensor:
    """``x * log(x / y) - x + y``, ``y`` for ``x == 0`` and ``y >= 0``, else infinite."""
    (x, y), dtype = _computed("kl_div", x, y)
    usual = (x > 0) & (y > 0)
    a, b = where(usual, x, 1.0), where(usual, y, 1.0)
    out = where(usual, a * _log_ratio(a, b) - a + b, where((x == 0) & (y >= 0), y, _INF))
    return where(isnan(x) | isnan(y), _NAN, out).astype(dtype)


def expit(x: Any, /) -> Tensor:
    """``1 / (1 + exp(-x))``, the logistic function. Neither it nor its derivative overflows."""
    (x,), dtype = _computed("expit", x)
    e = exp(where(x < 0, x, -x))
    return (where(x < 0, e, 1.0) / (1.0 + e)).astype(dtype)


def log_expit(x: Any, /) -> Tensor:
    """The logarithm of ``expit``."""
    (x,), dtype = _computed("log_expit", x)
    return (-_softplus(-x)).astype(dtype)


def softplus(x: Any, /) -> Tensor:
    """``log(1 + exp(x))``, without overflow."""
    (x,), dtype = _computed("softplus", x)
    return _softplus(x).astype(dtype)


def _softplus(x: Tensor) -> Tensor:
    return where(x < 0, 0.0, x) + log1p(exp(where(x < 0, x, -x)))


def logit(p: Any, /) -> Tensor:
    """``log(p / (1 - p))``, the inverse of ``expit``: infinite at 0 and 1, NaN outside.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.special.logit([0.0, 0.5, 0.75])
    tensor([     -inf, 0.       , 1.0986123], dtype=f32)
    """
    (p,), dtype = _computed("logit", p)
    # Near 1/2, where the logarithms cancel, by a function that is zero there.
    near = abs(p - 0.5) <= 0.25
    middle = 2.0 * atanh(2.0 * where(near, p, 0.5) - 1.0)
    outer = where(near, 0.1, p)
    return where(near, middle, log(outer) - log1p(-outer)).astype(dtype)


def exprel(x: Any, /) -> Tensor:
    """``(exp(x) - 1) / x``, and 1 at 0."""
    (x,), dtype = _computed("exprel", x)
    near = abs(x) < 0.5
    safe = where(near, 1.0, x)
    out = where(x == _INF, _INF, expm1(safe) / safe)
    return where(near, _series([math.factorial(k + 1) for k in range(16)], where(near, x, 0.0)), out).astype(dtype)


def _series(divisors: list[int], t: Tensor) -> Tensor:
    """The sum of the powers of ``t``, divided by numbers. Unlike that of a quotient of two functions that are zero at
    zero, its derivative has all digits there."""
    out, *rest = (_literal(1 / c, t) for c in reversed(divisors))
    for c in rest:
        out = out * t + c
    return out


def exp10(x: Any, /) -> Tensor:
    """10 to the power of each element."""
    (x,), dtype = _computed("exp10", x)
    return (10.0**x).astype(dtype)


def sinc(x: Any, /) -> Tensor:
    """``sin(pi x) / (pi x)``, and 1 at 0, as NumPy has it."""
    (x,), dtype = _computed("sinc", x)
    near = abs(x) < 0.25
    y, z = where(near, 1.0, x) * math.pi, where(near, x, 0.0) * math.pi
    powers = [(-1) ** k * math.factorial(2 * k + 1) for k in range(9)]
    return where(near, _series(powers, z * z), sin(y) / y).astype(dtype)
