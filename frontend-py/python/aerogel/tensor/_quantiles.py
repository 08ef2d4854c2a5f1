"""Order statistics: quantiles by all of NumPy's methods, with and without NaN.

The methods are those of R. J. Hyndman and Y. Fan, "Sample Quantiles in Statistical Packages", The American Statistician
50 (1996), and five variations of the seventh.
"""

from __future__ import annotations

import math
from typing import Any

from aerogel._dtypes import bf16, f16, f32, f64
from aerogel.tensor import _types
from aerogel.tensor._cells import refuse_order
from aerogel.tensor._elementwise import ceil, floor, isnan, maximum, minimum, round
from aerogel.tensor._reductions import _axes, _floats, any, count_nonzero
from aerogel.tensor._searching import take, take_along_axis, where
from aerogel.tensor._shapes import moveaxis
from aerogel.tensor._tensor import Tensor, asarray
from aerogel.tensor._unknown import at_least

#: Where a quantile lies among sorted elements: by the count and the probability, and what becomes of the fraction.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", *_CONTINUOUS, "linear", "lower", "higher",
    "midpoint", "nearest",
)  # fmt: skip


def _position(n: Any, q: Any, method: str) -> tuple[Any, Any]:
    """The index of the element below, as a float, and the weight of the one above it."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        at = n * q + (alpha + q * (1.0 - alpha - beta)) - 1.0
        return floor(at), at - floor(at)
    if method in ("inverted_cdf", "averaged_inverted_cdf"):
        at = n * q - 1.0
        below = floor(at)
        return below, where(at == below, 0.0 if method == "inverted_cdf" else 0.5, 1.0)
    if method == "closest_observation":
        at = n * q - 1.5
        below = floor(at)
        return below, where((at == below) & (below % 2.0 == 1.0), 0.0, 1.0)
    at = (n - 1.0) * q
    below = floor(at)
    if method == "lower":
        return below, 0.0 * below
    if method == "higher":
        return ceil(at), 0.0 * below
    if method == "nearest":
        return round(at), 0.0 * below
    fraction = at - below
    return below, where(fraction == 0, 0.0, 0.5) if method == "midpoint" else fraction


def _between(a: Tensor, b: Tensor, weight: Any) -> Tensor:
    """The element ``a``, ``b``, or between, which is monotonic in the weight and infinite only where an element is."""
    step = where((a == b) | (weight == 0), 0.0, b - a)
    return where(weight >= 0.5, where(a == b, a, b - step * (1.0 - weight)), a + step * weight)


def _flat(x: Any, axis: Any, name: str) -> tuple[Tensor, list[int], Any]:
    """A tensor of floats with the reduced axes as one, the last; which axes these are, and the shape of the rest."""
    x = _floats(x, name)
    rank = x.ndim
    axes = _types.axes(_axes(axis), rank, name)
    axes = list(range(rank)) if axes is None else axes
    for k in axes:
        refuse_order(x, k, name)
    rest = [k for k in range(rank) if k not in axes]
    shape = [x.shape[k] for k in rest]
    size: Any = 1
    for k in axes:
        size = size * x.shape[k]
    if not isinstance(size, int):
        at_least(size, 1, f"`{name}` of {{}} elements")
    elif size == 0:
        raise ValueError(f"`{name}` of no elements: the shape is {x.shape}")
    if len(axes) != 1 or axes[0] != rank - 1:
        x = x.permute(tuple(rest + axes))
    return (x if len(axes) == 1 else x.reshape((*shape, size))), axes, shape


def _probabilities(q: Any, scale: float, name: str) -> Tensor:
    """Probabilities in ``f64``.

    Raises:
        ValueError: If one is known to be outside of 0 to 1.
    """
    if not isinstance(q, Tensor):
        import numpy as np

        known = np.asarray(q, dtype=float)
        if not np.all((known >= 0) & (known <= scale) | np.isnan(known)):
            raise ValueError(f"`{name}`: a probability is from 0 to {scale:g}, not {q!r}")
    out = asarray(q, f64)
    return out / scale if scale != 1 else out


def _quantile(
    name: str, x: Any, q: Any, axis: Any, method: str, keepdims: bool, skips: bool = False, scale: float = 1.0
) -> Tensor:
    if method not in METHODS:
        raise ValueError(f"`{name}`: there is no method {method!r}; use one of {', '.join(METHODS)}")
    probabilities = _probabilities(q, scale, name)
    x, axes, shape = _flat(x, axis, name)
    dtype = x.dtype
    x = x.astype(f32) if dtype in (f16, bf16) else x
    ordered = Tensor(x._native.sort(x.ndim - 1, False)[0])
    flat = probabilities.reshape((-1,))
    has_nan = isnan(x)
    if skips:
        # NaN is behind all others, so that the first ones are those that count.
        n = count_nonzero(~has_nan, axis=-1, keepdims=True).astype(f64)
    else:
        size = x.shape[-1]
        n = float(size) if isinstance(size, int) else size.astype(f64)
    below, weight = _position(n, flat, method)
    last = maximum(n - 1.0, 0.0)
    outside = (below < 0) | (below >= last)
    # Of a slice without elements, and for a NaN probability, the first element stands for the result, which is NaN.
    first, second = (_index(b, last) for b in (below, below + 1.0))
    weight = where(outside, 0.0, weight).astype(x.dtype)
    second = where(outside, first, second)
    pick = take_along_axis if skips else take
    out = _between(pick(ordered, first, axis=-1), pick(ordered, second, axis=-1), weight)
    out = where(isnan(flat) | (flat < 0) | (flat > 1), math.nan, out)
    is_nan = (n == 0) if skips else any(has_nan, axis=-1, keepdims=True)
    out = where(is_nan, math.nan, out).astype(dtype)
    # The axis of the probabilities comes first, in their shape.
    out = moveaxis(out, -1, 0)
    if keepdims:
        kept = [1] * (len(shape) + len(axes))
        rest = [k for k in range(len(kept)) if k not in axes]
        for k, size in zip(rest, shape):
            kept[k] = size
        shape = kept
    return out.reshape((*probabilities.shape, *shape))


def _index(at: Any, last: Any) -> Tensor:
    """A position as an index from the first to the last element."""
    at = minimum(maximum(at, 0.0), last)
    return where(isnan(at), 0.0, at).astype("i32")


def quantile(x: Any, q: Any, /, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Quantiles along some axes, or of all elements; NaN where there is one.

    Args:
        x: The tensor; integers become the default float.
        q: Probabilities from 0 to 1, of any shape, whose axes come first in the result. Those of a tensor are not
            checked: the quantile of one outside is NaN.
        axis: An axis, or several; ``None`` for all.
        method: One of the methods of ``numpy.quantile``.
        keepdims: Whether reduced axes stay, with size 1.

    Raises:
        ValueError: For a probability outside of 0 to 1, another method, or no elements.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.quantile([3.0, 1.0, 2.0, 10.0], [0.5, 1.0])
    tensor([ 2.5, 10. ], dtype=f32)
    """
    return _quantile("quantile", x, q, axis, method, keepdims)


def percentile(x: Any, q: Any, /, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Like ``quantile``, with probabilities from 0 to 100."""
    return _quantile("percentile", x, q, axis, method, keepdims, scale=100.0)


def nanquantile(x: Any, q: Any, /, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Like ``quantile``, of the elements that are not NaN; NaN where there is none."""
    return _quantile("nanquantile", x, q, axis, method, keepdims, skips=True)


def nanpercentile(x: Any, q: Any, /, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Like ``percentile``, of the elements that are not NaN; NaN where there is none."""
    return _quantile("nanpercentile", x, q, axis, method, keepdims, skips=True, scale=100.0)


def nanmedian(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The median of the elements that are not NaN; NaN where there is none."""
    return _quantile("nanmedian", x, 0.5, axis, "linear", keepdims, skips=True)


def median(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The element in the middle of the sorted ones, or the mean of both; NaN where there is one.

    Raises:
        ValueError: If there are no elements.
    """
    from aerogel.tensor import _reductions

    if axis is None or hasattr(axis, "__index__"):
        return _reductions.median(x, axis, keepdims=keepdims)
    return _quantile("median", x, 0.5, axis, "linear", keepdims)


def ptp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The largest element less the smallest along some axes, or of all."""
    from aerogel.tensor import _reductions

    largest, smallest = (f(x, axis, keepdims=keepdims) for f in (_reductions.max, _reductions.min))
    return largest - smallest
