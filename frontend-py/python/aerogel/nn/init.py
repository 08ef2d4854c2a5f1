"""Initial values of parameters.

Each function comes twice. Without an underscore it takes a shape and returns a tensor, and can be passed as
``nn.Parameter(shape=..., init=...)``; with one it sets the values of a parameter and returns it.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> ti.nn.init.eye((2, 3)).tolist()
[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
>>> layer = ti.nn.Linear(2, 2)
>>> ti.nn.init.constant_(layer.bias, 0.5)
Parameter([0.5, 0.5], dtype=f32)

Random values are drawn from ``ti.tensor.random``, whose ``seed`` makes them the same again, or from the ``key`` that is
given. The first axis of a shape counts outputs, the second inputs, and others are those of a kernel (``fans``).
"""

from __future__ import annotations

import functools
import math
from typing import Any

from aerogel._dtypes import dtype_of, f64
from aerogel.nn._parameter import draw_by, is_lazy, set_data
from aerogel.tensor import _creation, _types, linalg, random
from aerogel.tensor._elementwise import sqrt
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "eye",
    "eye_",
    "fans",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "trunc_normal",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros",
    "zeros_",
]


def _key(key: Any) -> Tensor:
    return random.default.key() if key is None else key


def uniform(shape: Any, low: float = 0.0, high: float = 1.0, *, dtype: Any = None, key: Any = None) -> Tensor:
    """Uniform random numbers from ``low`` to ``high``."""
    return random.uniform(_key(key), tuple(shape), dtype=dtype) * (high - low) + low


def normal(shape: Any, mean: float = 0.0, std: float = 1.0, *, dtype: Any = None, key: Any = None) -> Tensor:
    """Normally distributed random numbers."""
    return random.normal(_key(key), tuple(shape), dtype=dtype) * std + mean


def trunc_normal(
    shape: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    *,
    dtype: Any = None,
    key: Any = None,
) -> Tensor:
    """Normally distributed random numbers, of which only those from ``a`` to ``b`` are taken.

    Raises:
        ValueError: If ``a`` is not below ``b``.
    """
    if not a < b:
        raise ValueError(f"`trunc_normal` takes numbers from `a` to `b`, and {a} is not below {b}")
    kind = dtype_of(dtype) if dtype is not None else _types.default_float()
    lo, hi = (0.5 * (1 + math.erf((x - mean) / (std * math.sqrt(2)))) for x in (a, b))
    # By the inverse of the distribution function; in double precision, since its tails are steep.
    u = random.uniform(_key(key), tuple(shape), dtype=f64) * (hi - lo) + lo
    x = _normal_quantile(u) * std + mean
    return where(x < a, a, where(x > b, b, x)).astype(kind)


def _normal_quantile(p: Tensor) -> Tensor:
    """The number below which so much of the normal distribution is (P. Acklam's rational approximation, to 1e-9)."""
    from aerogel.tensor._elementwise import log

    a = (
        -39.69683028665376,
        220.9460984245205,
        -275.9285104469687,
        138.3577518672690,
        -30.66479806614716,
        2.506628277459239,
    )
    b = (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1.0)
    c = (
        -0.007784894002430293,
        -0.3223964580411365,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    )
    d = (0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1.0)

    def poly(coefficients: Any, x: Tensor) -> Any:
        return functools.reduce(lambda sum_, k: sum_ * x + k, coefficients[1:], coefficients[0])

    tail = where(p < 0.5, p, 1.0 - p)
    tail = where(tail < 1e-300, 1e-300, tail)
    q = sqrt(-2.0 * log(tail))
    outer = poly(c, q) / poly(d, q)
    r = (p - 0.5) * (p - 0.5)
    inner = (p - 0.5) * poly(a, r) / poly(b, r)
    return where(tail < 0.02425, where(p < 0.5, outer, -outer), inner)


def constant(shape: Any, value: float, *, dtype: Any = None) -> Tensor:
    """One number everywhere."""
    return _creation.full(tuple(shape), value, _types.default_float() if dtype is None else dtype)


def zeros(shape: Any, *, dtype: Any = None) -> Tensor:
    """Zeros."""
    return _creation.zeros(tuple(shape), dtype)


def ones(shape: Any, *, dtype: Any = None) -> Tensor:
    """Ones."""
    return _creation.ones(tuple(shape), dtype)


def eye(shape: Any, *, dtype: Any = None) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere.

    Raises:
        ValueError: If the shape has not two axes.
    """
    if len(shape) != 2:
        raise ValueError(f"`eye` returns a matrix, the shape is {tuple(shape)}")
    return _creation.eye(*shape, dtype=dtype)


def orthogonal(shape: Any, gain: float = 1.0, *, dtype: Any = None, key: Any = None) -> Tensor:
    """A random matrix whose rows or columns, whichever are fewer, are orthogonal vectors of length ``gain``.

    All axes but the first are taken as one.

    Raises:
        ValueError: If the shape has fewer than two axes.
    """
    if len(shape) < 2:
        raise ValueError(f"`orthogonal` returns a matrix, the shape is {tuple(shape)}")
    rows, columns = shape[0], math.prod(shape[1:])
    kind = dtype_of(dtype) if dtype is not None else _types.default_float()
    wide = kind if kind._aerogel_dtype in ("f32", "f64") else "f32"
    drawn = random.normal(_key(key), (max(rows, columns), min(rows, columns)), dtype=wide)
    q, r = linalg.qr(drawn)
    # Signs such that the matrix is distributed uniformly.
    q = q * where(r.diagonal() < 0, -1.0, 1.0)
    return ((q.T if rows < columns else q).reshape(tuple(shape)) * gain).astype(kind)


def fans(shape: Any) -> tuple[int, int]:
    """How many inputs an output depends on, and how many outputs depend on an input.

    Raises:
        ValueError: If the shape has fewer than two axes.
    """
    if len(shape) < 2:
        raise ValueError(f"a parameter with inputs and outputs has at least two axes, the shape is {tuple(shape)}")
    size = math.prod(shape[2:])
    return shape[1] * size, shape[0] * size


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By which factor the values of a layer grow, so that those behind the nonlinearity are as large as before.

    Raises:
        ValueError: If there is no such nonlinearity.
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    gains = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}
    name = "linear" if nonlinearity.startswith("conv") or nonlinearity == "identity" else nonlinearity
    if name not in gains:
        raise ValueError(f"the nonlinearity is one of {', '.join([*gains, 'leaky_relu'])}, not {nonlinearity!r}")
    return gains[name]


def xavier_uniform(shape: Any, gain: float = 1.0, *, dtype: Any = None, key: Any = None) -> Tensor:
    """Uniform random numbers whose variance is ``2 gain² / (inputs + outputs)`` (Glorot and Bengio)."""
    bound = gain * math.sqrt(6.0 / sum(fans(shape)))
    return uniform(shape, -bound, bound, dtype=dtype, key=key)


def xavier_normal(shape: Any, gain: float = 1.0, *, dtype: Any = None, key: Any = None) -> Tensor:
    """Normally distributed random numbers whose variance is ``2 gain² / (inputs + outputs)``."""
    return normal(shape, 0.0, gain * math.sqrt(2.0 / sum(fans(shape))), dtype=dtype, key=key)


def _kaiming_std(shape: Any, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"the mode is 'fan_in' or 'fan_out', not {mode!r}")
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fans(shape)[mode == "fan_out"], 1))


def kaiming_uniform(
    shape: Any,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    dtype: Any = None,
    key: Any = None,
) -> Tensor:
    """Uniform random numbers whose variance is ``gain² / inputs`` (He and others).

    Args:
        shape: The size of each axis.
        a: The slope of ``leaky_relu`` below zero.
        mode: Whether inputs (``fan_in``) or outputs (``fan_out``) are counted.
        nonlinearity: The activation after the layer.
        dtype: The dtype.
        key: The key of the random numbers.
    """
    bound = math.sqrt(3.0) * _kaiming_std(shape, a, mode, nonlinearity)
    return uniform(shape, -bound, bound, dtype=dtype, key=key)


def kaiming_normal(
    shape: Any,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    dtype: Any = None,
    key: Any = None,
) -> Tensor:
    """Normally distributed random numbers whose variance is ``gain² / inputs``; see ``kaiming_uniform``."""
    return normal(shape, 0.0, _kaiming_std(shape, a, mode, nonlinearity), dtype=dtype, key=key)


def _in_place(function: Any) -> Any:
    @functools.wraps(function)
    def changed(parameter: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(parameter, Tensor):
            raise TypeError(f"`{function.__name__}_` takes a parameter, not {type(parameter).__name__}")
        if is_lazy(parameter):
            draw_by(parameter, lambda shape, dtype: function(shape, *args, dtype=dtype, **kwargs))
            return parameter
        set_data(parameter, function(parameter.shape, *args, dtype=parameter.dtype, **kwargs))
        return parameter

    changed.__name__ = changed.__qualname__ = function.__name__ + "_"
    changed.__doc__ = f"Fills a parameter with values of `{function.__name__}`, and returns it."
    return changed


uniform_, normal_, trunc_normal_, constant_ = map(_in_place, (uniform, normal, trunc_normal, constant))
zeros_, ones_, eye_, orthogonal_ = map(_in_place, (zeros, ones, eye, orthogonal))
xavier_uniform_, xavier_normal_ = map(_in_place, (xavier_uniform, xavier_normal))
kaiming_uniform_, kaiming_normal_ = map(_in_place, (kaiming_uniform, kaiming_normal))
