"""NumPy's names for functions of each element, and those of its functions that the Array API standard leaves out."""

from __future__ import annotations

import math
from typing import Any

from aerogel._dtypes import dtype_of, f64
from aerogel._limits import of_floats
from aerogel.tensor import _elementwise as e
from aerogel.tensor import _types
from aerogel.tensor._complex import by_planes, is_complex
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor, asarray, is_number, operands, tracing

absolute = e.abs
arccos, arccosh, arcsin, arcsinh = e.acos, e.acosh, e.asin, e.asinh
arctan, arctan2, arctanh = e.atan, e.atan2, e.atanh
bitwise_not = invert = e.bitwise_invert
left_shift, right_shift = e.bitwise_left_shift, e.bitwise_right_shift
degrees = rad2deg = e.degrees
radians = deg2rad = e.radians
bitwise_count = e.popcnt
fix = e.trunc
fmod = e.fmod
mod = e.remainder
power = e.pow
rint = e.round
true_divide = e.divide


def fabs(x: Any, /) -> Tensor:
    """The absolute value of each element, a float."""
    return e.abs(operands(x, to_float=True)[0])


def float_power(x1: Any, x2: Any, /) -> Any:
    """Elements to the power of others, in ``f64``."""
    if is_complex(x1) or is_complex(x2):
        return e.pow(asarray(x1).astype("complex128"), asarray(x2).astype("complex128"))
    return e.pow(asarray(x1).astype(f64), asarray(x2).astype(f64))


def divmod(x1: Any, x2: Any, /) -> tuple[Tensor, Tensor]:  # noqa: A001
    """The quotient of elements rounded down, and the remainder, with the divisor's sign."""
    a, b = operands(x1, x2)
    return e.floor_divide(a, b), e.remainder(a, b)


def modf(x: Any, /) -> tuple[Tensor, Tensor]:
    """The fraction and the whole part of each element, both with its sign.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.modf([1.5, -0.25])
    (tensor([ 0.5 , -0.25], dtype=f32), tensor([ 1., -0.], dtype=f32))
    """
    (x,) = operands(x, to_float=True)
    whole = e.trunc(x)
    is_zero = (x == whole) | e.isinf(x)
    return where(is_zero, e.copysign(0.0, x), x - whole), whole


def fmax(x1: Any, x2: Any, /) -> Tensor:
    """The larger of elements; the other one where one is NaN."""
    a, b = operands(x1, x2)
    return where(e.isnan(a), b, where(e.isnan(b), a, e.maximum(a, b)))


def fmin(x1: Any, x2: Any, /) -> Tensor:
    """The smaller of elements; the other one where one is NaN."""
    a, b = operands(x1, x2)
    return where(e.isnan(a), b, where(e.isnan(b), a, e.minimum(a, b)))


def heaviside(x1: Any, x2: Any, /) -> Tensor:
    """0 where an element is negative, 1 where it is positive, the second one where it is zero."""
    a, b = operands(x1, x2, to_float=True)
    return where(e.isnan(a), a, where(a == 0, b, where(a < 0, 0.0, 1.0)))


def logaddexp2(x1: Any, x2: Any, /) -> Tensor:
    """``log2(2**x1 + 2**x2)``, without overflow."""
    a, b = operands(x1, x2, to_float=True)
    high, low = e.maximum(a, b), e.minimum(a, b)
    # Of equal infinities, the difference is NaN.
    off = where(high == low, 0.0, low - high)
    return high + e.log1p(e.exp2(off)) * (1.0 / math.log(2.0))


@by_planes
def nan_to_num(x: Any, /, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """The elements with numbers for NaN and infinities: those of the largest size of the dtype, if none are given.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.nan_to_num([1.0, xp.nan, xp.inf], posinf=9.0)
    tensor([1., 0., 9.], dtype=f32)
    """
    x = asarray(x)
    if not x.dtype.is_float:
        return x
    limits = of_floats(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    nan, high, low = (v if is_number(v) else asarray(v).astype(x.dtype) for v in (nan, high, low))
    return where(e.isnan(x), nan, where(x == math.inf, high, where(x == -math.inf, low, x)))


def isposinf(x: Any, /) -> Tensor:
    """Whether each element is positive infinity."""
    x = asarray(x)
    return x == math.inf if x.dtype.is_float else e.isinf(x)


def isneginf(x: Any, /) -> Tensor:
    """Whether each element is negative infinity."""
    x = asarray(x)
    return x == -math.inf if x.dtype.is_float else e.isinf(x)


def around(x: Any, /, decimals: int = 0) -> Any:
    """Each element rounded to ``decimals`` decimals, halves to the even one."""
    return e.round(x) if decimals == 0 else asarray(x).round(decimals)


def iscomplexobj(x: Any, /) -> bool:
    """Whether this is a complex number or a tensor of such."""
    return is_complex(asarray(x))


def isrealobj(x: Any, /) -> bool:
    """Whether this is neither a complex number nor a tensor of such."""
    return not iscomplexobj(x)


def ndim(x: Any, /) -> int:
    """The number of axes."""
    return asarray(x).ndim


def shape(x: Any, /) -> tuple[Any, ...]:
    """The size of each axis."""
    return asarray(x).shape


def size(x: Any, /, axis: int | None = None) -> Any:
    """The number of elements, or of those along an axis."""
    x = asarray(x)
    return x.size if axis is None else x.shape[_types.axis(axis, x.ndim, "size")]


def array_equal(x1: Any, x2: Any, /, equal_nan: bool = False) -> bool:
    """Whether two tensors have one shape and equal elements; computed at once."""
    a, b = asarray(x1), asarray(x2)
    return a.shape == b.shape and _equal(a, b, equal_nan)


def array_equiv(x1: Any, x2: Any, /) -> bool:
    """Whether two tensors have equal elements when they are broadcast to one shape; computed at once."""
    from aerogel.tensor._shapes import broadcast_shapes

    a, b = asarray(x1), asarray(x2)
    try:
        broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return _equal(a, b, False)


def _equal(a: Any, b: Any, equal_nan: bool) -> bool:
    same = a == b
    if equal_nan:
        same = same | (e.isnan(a) & e.isnan(b))
    return bool(same.all())


def logspace(
    start: Any, stop: Any, /, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None
) -> Tensor:
    """``base`` to the power of ``num`` equally spaced numbers from ``start`` to ``stop``."""
    from aerogel.tensor._creation import linspace

    powers = linspace(start, stop, num, dtype=f64, endpoint=endpoint)
    return e.pow(asarray(base).astype(f64), powers).astype(_float_or(dtype))


def _float_or(dtype: Any) -> Any:
    return dtype_of(dtype) if dtype is not None else _types.default_float()


def geomspace(start: Any, stop: Any, /, num: Any = 50, endpoint: bool = True, dtype: Any = None) -> Tensor:
    """So many numbers from ``start`` to ``stop``, each by one factor from the one before.

    Raises:
        ValueError: If an end is zero, or their signs differ.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.geomspace(1, 1000, 4)
    tensor([   1.,   10.,  100., 1000.], dtype=f32)
    """
    from aerogel.tensor._creation import _double, linspace

    first, last = _double(start), _double(stop)
    if tracing.program is None:
        if float(first) == 0 or float(last) == 0:
            raise ValueError("`geomspace`: the endpoints must not be zero")
        if (float(first) < 0) != (float(last) < 0):
            raise ValueError(f"`geomspace`: the endpoints need the same sign, not {float(first):g} and {float(last):g}")

    def logarithm(v: Any) -> Any:
        return e.log10(e.abs(v)) if isinstance(v, Tensor) else math.log10(abs(v))

    powers = linspace(logarithm(first), logarithm(last), num, dtype=f64, endpoint=endpoint)
    out = e.pow(asarray(10.0).astype(f64), powers) * e.sign(asarray(first, f64))
    n = powers.shape[0]
    from aerogel.tensor._creation import iota

    k = iota((n,), 0)
    out = where(k == 0, first, out)
    if endpoint:
        out = where((k == n - 1) & (k > 0), last, out)
    return out.astype(_float_or(dtype))


def tri(n: Any, m: Any = None, /, k: Any = 0, dtype: Any = None) -> Tensor:
    """Ones on a diagonal and below it, zeros above."""
    from aerogel.tensor._creation import ones, tril

    return tril(ones((n, n if m is None else m), dtype=_float_or(dtype)), k=k)


def ediff1d(x: Any, /, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """The differences of neighbours among all elements row by row, with values before and behind them."""
    from aerogel.tensor._reductions import diff
    from aerogel.tensor._shapes import concat

    out = diff(asarray(x).reshape((-1,)))
    parts = [asarray(p).astype(out.dtype).reshape((-1,)) if p is not None else None for p in (to_begin, to_end)]
    before, behind = parts
    joined = [p for p in (before, out, behind) if p is not None]
    return concat(joined) if len(joined) > 1 else out
