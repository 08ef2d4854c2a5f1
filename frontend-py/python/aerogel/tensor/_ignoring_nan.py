"""Reductions of the elements that are not NaN, as NumPy has them.

NaN is replaced before the reduction, so that its derivative is zero there and a number elsewhere.
"""

from __future__ import annotations

import math
from typing import Any

from aerogel.tensor import _reductions, _types
from aerogel.tensor._complex import is_complex
from aerogel.tensor._elementwise import isnan, sqrt
from aerogel.tensor._reductions import _axes, count_nonzero
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor, asarray
from aerogel.tensor._unknown import expect


def _without(x: Any, value: Any) -> tuple[Any, Any]:
    """A tensor with a number for NaN, and where that stood; ``None`` if its dtype has no NaN."""
    x = asarray(x)
    if not is_complex(x) and not x.dtype.is_float:
        return x, None
    gone = isnan(x)
    return where(gone, value, x), gone


def nansum(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements that are not NaN, 0 of none.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.nansum([[1.0, xp.nan], [2.0, 3.0]], axis=0)
    tensor([3., 3.], dtype=f32)
    """
    return _reductions.sum(_without(x, 0)[0], axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product of the elements that are not NaN, 1 of none."""
    return _reductions.prod(_without(x, 1)[0], axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The sum up to each element along an axis, or row by row, with 0 for NaN."""
    return _reductions.cumsum(_without(x, 0)[0], axis, dtype)


def nancumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The product up to each element along an axis, or row by row, with 1 for NaN."""
    return _reductions.cumprod(_without(x, 1)[0], axis, dtype)


def nanmean(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements that are not NaN; NaN of none."""
    x = asarray(x) if dtype is None else asarray(x).astype(dtype)
    filled, gone = _without(x, 0)
    if gone is None:
        return _reductions.mean(x, axis, keepdims=keepdims)
    if _is_half(x):
        return nanmean(x.astype("f32"), axis, keepdims=keepdims).astype(x.dtype)
    n = count_nonzero(~gone, _axes(axis), keepdims=keepdims)
    part = x.real.dtype if is_complex(x) else x.dtype
    return _reductions.sum(filled, axis, keepdims=keepdims) / n.astype(part)


def _is_half(x: Any) -> bool:
    return not is_complex(x) and x.dtype.is_float and _types._width(x.dtype) == 16


def nanvar(
    x: Any, /, axis: Any = None, *, dtype: Any = None, ddof: Any = 0, correction: Any = None, keepdims: bool = False
) -> Tensor:
    """The variance of the elements that are not NaN; NaN for at most ``ddof`` elements.

    Args:
        x: The tensor.
        axis: An axis, or several; ``None`` for all.
        dtype: The dtype in which it is computed.
        ddof: The sum of squares is divided by the count less this.
        correction: The same, as the Array API standard calls it.
        keepdims: Whether reduced axes stay, with size 1.
    """
    return _variance("nanvar", x, axis, dtype, ddof if correction is None else correction, keepdims)


def nanstd(
    x: Any, /, axis: Any = None, *, dtype: Any = None, ddof: Any = 0, correction: Any = None, keepdims: bool = False
) -> Tensor:
    """The root of ``nanvar``."""
    return _variance("nanstd", x, axis, dtype, ddof if correction is None else correction, keepdims)


def _variance(name: str, x: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool) -> Tensor:
    x = asarray(x) if dtype is None else asarray(x).astype(dtype)
    if is_complex(x):
        raise TypeError(f"`{name}` takes real numbers, not `{x.dtype}`")
    if not x.dtype.is_float:
        return _reductions._variance(x, axis, ddof, keepdims, name[3:])
    own = x.dtype
    x = x.astype("f32") if _is_half(x) else x
    gone = isnan(x)
    off = where(gone, 0.0, x - nanmean(x, axis, keepdims=True))
    n = count_nonzero(~gone, _axes(axis), keepdims=keepdims).astype(x.dtype) - ddof
    out = _reductions.sum(off * off, axis, keepdims=keepdims) / where(n > 0, n, math.nan)
    return (sqrt(out) if name == "nanstd" else out).astype(own)


def nanmax(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The largest of the elements that are not NaN; NaN of none."""
    return _extreme("max", x, axis, keepdims)


def nanmin(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The smallest of the elements that are not NaN; NaN of none."""
    return _extreme("min", x, axis, keepdims)


def _extreme(name: str, x: Any, axis: Any, keepdims: bool) -> Tensor:
    reduce = getattr(_reductions, name)
    x, gone = _without(x, -math.inf if name == "max" else math.inf)
    out = reduce(x, axis, keepdims=keepdims)
    return out if gone is None else where(_reductions.all(gone, axis, keepdims=keepdims), math.nan, out)


def nanargmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Where the first of the largest elements that are not NaN is, along an axis or among all.

    Raises:
        ValueError: If all elements of a slice are NaN. Outside of programs the tensor is evaluated to check it.
    """
    return _where_extreme("argmax", x, axis, keepdims)


def nanargmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Where the first of the smallest elements that are not NaN is, along an axis or among all.

    Raises:
        ValueError: If all elements of a slice are NaN. Outside of programs the tensor is evaluated to check it.
    """
    return _where_extreme("argmin", x, axis, keepdims)


def _where_extreme(name: str, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    x, gone = _without(x, -math.inf if name == "argmax" else math.inf)
    if gone is None:
        return getattr(_reductions, name)(x, axis, keepdims=keepdims)
    expect(~_reductions.any(_reductions.all(gone, axis)), f"`nan{name}`: all elements of a slice are NaN")
    return getattr(_reductions, name)(x, axis, keepdims=keepdims)
