"""Element-wise functions; operands are broadcast to one shape."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import f64, u1
from aerogel.tensor import _complex
from aerogel.tensor._tensor import Tensor, asarray, binary, expect_no_truth, is_number, operands, unary


def _documented(function: Any, name: str, text: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def _unary(name: str, text: str, recorded: str | None = None, to_float: bool = True) -> Any:
    return _documented(unary(recorded or name, to_float), name, text)


def _binary(name: str, text: str, recorded: str | None = None, to_float: bool = False) -> Any:
    return _documented(binary(recorded or name, to_float), name, text)


sin = _unary("sin", "The sine of each element.")
cos = _unary("cos", "The cosine of each element.")
tan = _unary("tan", "The tangent of each element.")
asin = _unary("asin", "The arc sine of each element.")
acos = _unary("acos", "The arc cosine of each element.")
atan = _unary("atan", "The arc tangent of each element.")
sinh = _unary("sinh", "The hyperbolic sine of each element.")
cosh = _unary("cosh", "The hyperbolic cosine of each element.")
tanh = _unary("tanh", "The hyperbolic tangent of each element.")
asinh = _unary("asinh", "The inverse of the hyperbolic sine of each element.")
acosh = _unary("acosh", "The inverse of the hyperbolic cosine of each element.")
atanh = _unary("atanh", "The inverse of the hyperbolic tangent of each element.")
exp = _unary("exp", "e to the power of each element.")
exp2 = _unary("exp2", "2 to the power of each element.")
expm1 = _unary("expm1", "exp(x) - 1 of each element, accurate for small elements.")
log = _unary("log", "The natural logarithm of each element.")
log2 = _unary("log2", "The logarithm to base 2 of each element.")
log10 = _unary("log10", "The logarithm to base 10 of each element.")
log1p = _unary("log1p", "log(1 + x) of each element, accurate for small elements.")
sqrt = _unary("sqrt", "The square root of each element.")
rsqrt = _unary("rsqrt", "The reciprocal of the square root of each element.")
cbrt = _unary("cbrt", "The cube root of each element.")
reciprocal = _unary("reciprocal", "The reciprocal of each element.")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)) of each element.")
erf = _unary("erf", "The error function of each element.")
fract = _unary("fract", "The fractional part of each element: x - floor(x).")
degrees = _unary("degrees", "Converts each angle from radians to degrees.")
radians = _unary("radians", "Converts each angle from degrees to radians.")
negative = _unary("negative", "The negative of each element.", "neg", to_float=False)


def positive(x: Any, /) -> Tensor:
    """Each element; of numbers, not booleans."""
    x = asarray(x)
    expect_no_truth("positive", x)
    return x.copy()


abs = _unary("abs", "The absolute value of each element.", to_float=False)  # noqa: A001
sign = _unary("sign", "The sign of each element: -1, 0 or 1; NaN for NaN.", to_float=False)
square = _unary("square", "The square of each element.", to_float=False)
floor = _unary("floor", "Each element rounded down.", to_float=False)
ceil = _unary("ceil", "Each element rounded up.", to_float=False)
trunc = _unary("trunc", "Each element rounded towards zero.", to_float=False)
round = _unary("round", "Each element rounded to the nearest, ties to even.", "rint", to_float=False)  # noqa: A001
relu = _unary("relu", "Each element, or 0 where it is negative.", to_float=False)
isnan = _unary("isnan", "Whether each element is NaN.", to_float=False)
isinf = _unary("isinf", "Whether each element is infinite.", to_float=False)
isfinite = _unary("isfinite", "Whether each element is a finite number.", to_float=False)
signbit = _unary("signbit", "Whether the sign bit of each element is set, also of zeros.", to_float=False)
logical_not = _unary("logical_not", "Whether each element is zero.", to_float=False)
bitwise_invert = _unary("bitwise_invert", "The bitwise complement of each element.", "not", to_float=False)
popcnt = _unary("popcnt", "The number of bits that are set in each element.", to_float=False)
clz = _unary("clz", "The number of leading zero bits of each element.", to_float=False)

add = _binary("add", "The sum of elements.")
subtract = _binary("subtract", "The difference of elements.", "sub")
multiply = _binary("multiply", "The product of elements.", "mul")
divide = _binary("divide", "The quotient of elements, a float.", "div", to_float=True)
floor_divide = _binary("floor_divide", "The quotient of elements rounded down.")
remainder = _binary("remainder", "The remainder of elements, with the divisor's sign.")
fmod = _binary("fmod", "The remainder of elements, with the dividend's sign.", "rem")
pow = _binary("pow", "x1 to the power of x2, element by element.", "power")  # noqa: A001
atan2 = _binary("atan2", "The angle of the points (x2, x1).", to_float=True)
minimum = _binary("minimum", "The smaller of two elements; NaN if either is NaN.")
maximum = _binary("maximum", "The larger of two elements; NaN if either is NaN.")
hypot = _binary("hypot", "The length of the vectors (x1, x2).", to_float=True)
logaddexp = _binary("logaddexp", "log(exp(x1) + exp(x2)), without overflow.", to_float=True)
copysign = _binary("copysign", "The absolute value of x1 with the sign of x2.", to_float=True)
nextafter = _binary("nextafter", "The next floating-point number after x1 towards x2.", to_float=True)
equal = _binary("equal", "Whether elements are equal.", "eq")
not_equal = _binary("not_equal", "Whether elements differ.", "ne")
less = _binary("less", "Whether x1 < x2, element by element.", "lt")
less_equal = _binary("less_equal", "Whether x1 <= x2, element by element.", "le")
greater = _binary("greater", "Whether x1 > x2, element by element.", "gt")
greater_equal = _binary("greater_equal", "Whether x1 >= x2, element by element.", "ge")
logical_and = _binary("logical_and", "Whether both elements are nonzero.")
logical_or = _binary("logical_or", "Whether either element is nonzero.")
logical_xor = _binary("logical_xor", "Whether exactly one element is nonzero.")
bitwise_and = _binary("bitwise_and", "The bitwise and of elements.", "and")
bitwise_or = _binary("bitwise_or", "The bitwise or of elements.", "or")
bitwise_xor = _binary("bitwise_xor", "The bitwise exclusive or of elements.", "xor")
bitwise_left_shift = _binary("bitwise_left_shift", "x1 shifted left by x2 bits.", "left_shift")
bitwise_right_shift = _binary(
    "bitwise_right_shift", "x1 shifted right by x2 bits, filled with the sign bit.", "right_shift"
)
step = _binary("step", "The step function: 0 where x2 < x1, else 1.")


def smoothstep(edge0: Any, edge1: Any, x: Any, /) -> Tensor:
    """0 below the first edge, 1 above the second, and a smooth cubic between them."""
    edge0, edge1, x = operands(edge0, edge1, x, to_float=True)
    t = maximum(minimum((x - edge0) / (edge1 - edge0), 1.0), 0.0)
    return t * t * (3.0 - 2.0 * t)


def mix(x: Any, y: Any, a: Any, /) -> Tensor:
    """``x`` where ``a`` is 0, ``y`` where it is 1, and between."""
    x, y, a = operands(x, y, a, to_float=True)
    return x * (1.0 - a) + y * a


def lerp(x: Any, y: Any, a: Any, /) -> Tensor:
    """``mix`` by another name."""
    return mix(x, y, a)


def fma(x: Any, y: Any, z: Any, /) -> Tensor:
    """``x * y + z``."""
    return asarray(x) * y + z


def ldexp(x1: Any, x2: Any, /) -> Tensor:
    """``x1 * 2**x2``, rounded once, although ``2**x2`` may be no floating-point number.

    The result has the shape of both broadcast together, and the dtype of ``x1``: integers become the default float.

    Raises:
        TypeError: If ``x2`` has no integers.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.tensor.ldexp([0.75, -1.0], [2, -1])
    tensor([ 3. , -0.5], dtype=f32)
    """
    (x,), n = operands(x1, to_float=True), asarray(x2)
    if _complex.is_complex(n) or n.dtype.is_float:
        raise TypeError(f"`ldexp` takes exponents of integers, not `{n.dtype}`: write `x1 * ti.tensor.exp2(x2)`")
    # All results are 0 or infinite beyond these, and `i64` holds those of `u64` then.
    n = maximum(minimum(n.astype(f64), 2200.0), -2200.0).astype("i64")
    product = x.astype(f64)
    # A factor of `f64` is not enough for its own range; elements of the others have a single one.
    for _ in range(2 if x.dtype is f64 else 0):
        # Down to 2**-969 only, so that a product that is rounded below the normal numbers is zero after the next one.
        factor = minimum(n, 1023) + (n < -1022).astype("i64") * (-969 - n)
        product, n = product * _power_of_two(factor), n - factor
    return (product * _power_of_two(maximum(minimum(n, 1023), -1022))).astype(x.dtype)


def _power_of_two(n: Tensor) -> Tensor:
    """2 to the power of -1022 to 1023, in ``f64``."""
    return bitwise_left_shift(n + 1023, 52).bitcast(f64)


def isclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether elements differ by at most ``atol`` plus ``rtol`` times the second one."""
    if _complex.is_complex(x1) or _complex.is_complex(x2):
        a, b = asarray(x1), asarray(x2)
        close = (a == b) | (isfinite(b) & (abs(a - b) <= abs(b) * rtol + atol))
        return close | (isnan(a) & isnan(b)) if equal_nan else close
    given = [n for n in (rtol, atol) if not is_number(n)]
    a, b, *given = operands(x1, x2, *given, to_float=True)
    bounds = [n if is_number(n) else given.pop(0)._native for n in (rtol, atol)]
    return Tensor(a._native.is_close(b._native, *bounds, bool(equal_nan)))


def allclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close."""
    return bool(isclose(x1, x2, rtol, atol, equal_nan).all())


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The elements converted: floats to integers towards zero, to ``u1`` by being other than zero."""
    if device not in (None, "cpu"):
        raise ValueError(f"there is no device {device!r}; tensors are on 'cpu'")
    return asarray(x).astype(dtype)


def truth(x: Any, /) -> Tensor:
    """Whether each element is nonzero."""
    return asarray(x).astype(u1)


__all__ = [
    "abs", "acos", "acosh", "add", "allclose", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "cbrt", "ceil", "clz",
    "copysign", "cos", "cosh", "degrees", "divide", "equal", "erf", "exp", "exp2", "expm1", "floor", "floor_divide",
    "fma", "fmod", "fract", "greater", "greater_equal", "hypot", "isclose", "isfinite", "isinf", "isnan", "ldexp",
    "lerp", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "minimum", "mix", "multiply", "negative", "nextafter", "not_equal",
    "popcnt", "positive", "pow", "radians", "reciprocal", "relu", "remainder", "round", "rsqrt", "sigmoid", "sign",
    "signbit", "sin", "sinh", "smoothstep", "sqrt", "square", "step", "subtract", "tan", "tanh", "trunc", "truth",
]  # fmt: skip
