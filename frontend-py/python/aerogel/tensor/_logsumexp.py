"""Logarithms of sums of exponentials, and softmax functions, as SciPy and JAX have them.

The largest element is subtracted before exponentials are taken, so that none overflows. Results don't depend on what
is subtracted, so that no gradient goes through it.
"""

from __future__ import annotations

import math
from typing import Any

from aerogel._dtypes import bf16, f16, f32
from aerogel.tensor import _reductions, _types
from aerogel.tensor._complex import is_complex
from aerogel.tensor._elementwise import abs, exp, isfinite, log, sign
from aerogel.tensor._reductions import log_softmax, softmax
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor, asarray, operands

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "softmax"]


def _shift(x: Tensor, axes: list[int] | None) -> Any:
    """The largest elements along some axes, which stay as axes of size 1, and 0 where they aren't finite."""
    named = range(x.ndim) if axes is None else axes
    if any(isinstance(x.shape[k], int) and x.shape[k] == 0 for k in named):
        return 0.0
    largest = _reductions.max(x, axes, keepdims=True).detach()
    return where(isfinite(largest), largest, 0.0)


def logsumexp(a: Any, /, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """``log(sum(b * exp(a)))`` along some axes, or of all elements.

    Args:
        a: The exponents; integers become the default float.
        axis: An axis, or several; ``None`` for all.
        b: Factors, broadcast with ``a``. Where one is 0, ``a`` may be infinite.
        keepdims: Whether reduced axes stay, with size 1.
        return_sign: Whether to return the sign of the sum as well. Without it, the logarithm of a negative sum is NaN.

    Returns:
        The logarithm, -inf for a sum without terms. With ``return_sign`` a pair: the logarithm of the absolute value,
        and the sign.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.special.logsumexp([[0.0, 0.0], [-1000.0, -1000.0]], axis=1)
    tensor([ 6.931472e-01, -9.993068e+02], dtype=f32)
    """
    if is_complex(a) or is_complex(b):
        raise TypeError("`logsumexp` takes real numbers")
    x, *factors = operands(a, *([] if b is None else [b]), to_float=True)
    dtype = x.dtype
    if dtype in (f16, bf16):
        x, *factors = (t.astype(f32) for t in (x, *factors))
    if factors:
        x = where(factors[0] == 0, -math.inf, x)
    axes = _types.axes(_reductions._axes(axis), x.ndim, "logsumexp")
    shift = _shift(x, axes)
    terms = exp(x - shift)
    if factors:
        terms = where(factors[0] == 0, 0.0, terms * factors[0])
    total = _reductions.sum(terms, axes, keepdims=True)
    size = abs(total) if return_sign else total
    # A sum without terms has no derivative: as a logarithm of zero, it would have an infinite one.
    out = where(size == 0, -math.inf, log(where(size == 0, 1.0, size))) + shift
    results = [out, sign(total)] if return_sign else [out]
    if not keepdims:
        gone = list(range(x.ndim)) if axes is None else axes
        results = [r.squeeze(gone) for r in results]
    results = [r.astype(dtype) for r in results]
    return tuple(results) if return_sign else results[0]


def logmeanexp(a: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    """``log(mean(exp(a)))`` along some axes, or of all elements."""
    x = asarray(a)
    axes = _types.axes(_reductions._axes(axis), x.ndim, "logmeanexp")
    n: Any = 1
    for k in range(x.ndim) if axes is None else axes:
        n = n * x.shape[k]
    count = math.log(n) if isinstance(n, int) and n > 0 else log(asarray(n))
    return logsumexp(x, axis, keepdims=keepdims) - count
