"""Averages, covariances, and counts of elements in bins, as NumPy has them."""

from __future__ import annotations

import math
import operator
from typing import Any

from aerogel._dtypes import f64, u1
from aerogel.tensor import _reductions, _types
from aerogel.tensor._complex import is_complex
from aerogel.tensor._elementwise import maximum, minimum, sqrt
from aerogel.tensor._reductions import _axes
from aerogel.tensor._searching import scatter, searchsorted, where
from aerogel.tensor._shapes import concat, diagonal, flip
from aerogel.tensor._tensor import Tensor, asarray, is_number, operands
from aerogel.tensor._unknown import expect


def _converted(x: Any) -> Any:
    """A tensor of floats, real or complex."""
    x = asarray(x)
    return x if is_complex(x) or x.dtype.is_float else x.astype(_types.default_float())


def average(x: Any, /, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The weighted mean along some axes, or of all elements.

    Args:
        x: The tensor; integers become the default float.
        axis: An axis, or several; ``None`` for all.
        weights: Weights in the shape of ``x``, or in that of its reduced axes. Where they sum to 0, the result is NaN
            or infinite, where NumPy raises an error.
        returned: Whether to return the sum of the weights, or the count, as well.
        keepdims: Whether reduced axes stay, with size 1.

    Raises:
        TypeError: If the weights have another shape than ``x``, and no axis is given.
        ValueError: If their shape is not that of the reduced axes.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.average([1.0, 4.0], weights=[3, 1]).item()
    1.75
    """
    from aerogel.tensor._creation import zeros_like

    x = _converted(x)
    axes = _types.axes(_axes(axis), x.ndim, "average")
    if weights is None:
        out = _reductions.mean(x, axes, keepdims=keepdims)
        n: Any = 1
        for k in range(x.ndim) if axes is None else axes:
            n = n * x.shape[k]
        return (out, zeros_like(out.real) + n) if returned else out
    w = _fitted(_converted(weights), x, axes)
    total = _reductions.sum(w, axes, keepdims=keepdims)
    out = _reductions.sum(x * w, axes, keepdims=keepdims) / total
    return (out, zeros_like(out.real) + total) if returned else out


def _fitted(w: Any, x: Any, axes: list[int] | None) -> Any:
    """Weights of the reduced axes, with axes of size 1 for the others."""
    shapes = w.shape, x.shape
    if w.ndim == x.ndim and all(not isinstance(n, int) or not isinstance(m, int) or n == m for n, m in zip(*shapes)):
        return w
    if axes is None:
        raise TypeError(f"`average`: name an axis: the weights have the shape {w.shape}, the elements {x.shape}")
    fits = w.ndim == len(axes) and all(
        not isinstance(n, int) or not isinstance(x.shape[k], int) or n == x.shape[k] for n, k in zip(w.shape, axes)
    )
    if not fits:
        raise ValueError(f"`average`: weights of shape {w.shape} for axes {tuple(axes)} of a tensor of shape {x.shape}")
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    shape: list[Any] = [1] * x.ndim
    for k in order:
        shape[axes[k]] = w.shape[k]
    from aerogel.tensor._shapes import permute_dims, reshape

    return reshape(permute_dims(w, tuple(order)), shape)


def cov(
    m: Any,
    y: Any = None,
    /,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    """The matrix of covariances of variables.

    Args:
        m: One variable, or several: the rows of a matrix, or its columns with ``rowvar=False``.
        y: More variables.
        rowvar: Whether variables are rows.
        bias: Whether to divide by the number of observations instead of one less.
        ddof: The number subtracted from the number of observations; over ``bias``.
        fweights: How often each observation was made.
        aweights: The weight of each observation.

    Returns:
        The matrix; of one variable its variance, without axes.

    Raises:
        ValueError: For more than two axes.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    x = _rows(m, rowvar)
    if y is not None:
        x = concat([x, _rows(y, rowvar)], axis=0)
    n = x.shape[1]
    ddof = (0 if bias else 1) if ddof is None else ddof
    own = None if fweights is None else _observations(fweights, "fweights")
    if aweights is not None:
        a = _observations(aweights, "aweights")
        own = a if own is None else own * a
    part = x.real.dtype if is_complex(x) else x.dtype
    if own is None:
        mean, factor = _reductions.mean(x, 1, keepdims=True), n - ddof
        factor = factor.astype(part) if isinstance(factor, Tensor) else float(factor)
        off = weighted = x - mean
    else:
        own = own.astype(part)
        total = own.sum()
        off = x - (x * own).sum(axis=1, keepdims=True) / total
        weighted = off * own
        if aweights is None:
            factor = total - ddof
        else:
            factor = total - ddof * (own * _observations(aweights, "aweights").astype(part)).sum() / total
    product = weighted @ (off.mT.conj() if is_complex(off) else off.mT)
    # NumPy divides by 0 for too few observations, too.
    factor = maximum(factor, 0.0) if isinstance(factor, Tensor) else max(factor, 0.0)
    out = product / asarray(factor, part)
    return out.reshape(()) if isinstance(x.shape[0], int) and x.shape[0] == 1 else out


def _rows(m: Any, rowvar: bool) -> Any:
    """Variables as the rows of a matrix of floats."""
    x = _converted(m)
    if x.ndim > 2:
        raise ValueError(f"`cov` takes one variable, or several in a matrix: the shape is {x.shape}")
    if x.ndim < 2:
        return x.reshape((1, -1))
    return x if rowvar else x.mT


def _observations(weights: Any, name: str) -> Tensor:
    w = asarray(weights)
    if w.ndim != 1:
        raise ValueError(f"`cov`: `{name}` has one axis, the observations: the shape is {w.shape}")
    if name == "fweights" and w.dtype.is_float:
        raise TypeError(f"`cov`: `fweights` are integers, not `{w.dtype}`")
    return w


def corrcoef(x: Any, y: Any = None, /, rowvar: bool = True) -> Any:
    """The matrix of correlation coefficients of variables, which are given as to ``cov``."""
    from aerogel.tensor._searching import clip

    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    variances = diagonal(c)
    scale = sqrt(variances.real if is_complex(variances) else variances)
    out = c / scale.unsqueeze(1) / scale.unsqueeze(0)
    if not is_complex(out):
        return clip(out, -1.0, 1.0)
    from aerogel.tensor._complex import joined

    return joined(clip(out.real, -1.0, 1.0), clip(out.imag, -1.0, 1.0))


def bincount(x: Any, /, weights: Any = None, minlength: int = 0, *, length: Any = None) -> Tensor:
    """How often each integer from 0 on occurs in ``x``, or the sum of its weights.

    Without a ``length`` the size of the result is the largest number plus one, so that it is computed at once, and not
    inside of programs.

    Args:
        x: A tensor of integers with one axis, none below zero.
        weights: A weight for each.
        minlength: The least size of the result.
        length: The size of the result, whatever the numbers are; those beyond are not counted.

    Raises:
        TypeError: For numbers that are no integers.
        ValueError: For a number below zero, more than one axis, or weights of another shape.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.bincount([0, 2, 2]).tolist(), xp.bincount([0, 2, 2], length=2).tolist()
    ([1, 0, 2], [1, 0])
    """
    from aerogel.tensor._creation import zeros
    from aerogel.tensor._unknown import differ, outside_of_programs

    given = asarray(x)
    if isinstance(x, (list, tuple)) and not x:
        given = given.astype(_types.default_int())
    if is_complex(given) or given.dtype.is_float:
        raise TypeError(f"`bincount` takes integers, not `{given.dtype}`")
    if given.ndim != 1:
        raise ValueError(f"`bincount` takes one axis, the shape is {given.shape}")
    x = given.astype(_types.default_int()) if given.dtype is u1 else given
    w: Any = asarray(1) if weights is None else _converted(weights)
    if weights is not None and (w.ndim != 1 or differ(w.shape[0], x.shape[0])):
        raise ValueError(f"`bincount`: weights of shape {w.shape} for values of shape {x.shape}")
    (minlength,) = _types.whole_numbers([minlength], "bincount")
    _types.counts(minlength, "bincount", "minlength")
    is_empty = x.shape[0] == 0 if isinstance(x.shape[0], int) else False
    if _types.kind(x.dtype) == "i":
        expect(x >= 0, "`bincount`: a value is negative")
    if length is None:
        outside_of_programs("bincount", "its shape would depend on values; pass a `length`")
        length = max(minlength, 0 if is_empty else int(_reductions.max(x).item()) + 1)
    dtype = _types.default_int() if weights is None else w.dtype
    counts = zeros((length,), dtype)
    if is_empty or isinstance(length, int) and length == 0:
        return counts
    inside = x < length
    index = where(inside, x, 0)
    return scatter(counts, index, where(inside, w, 0).astype(dtype), how="add")


def digitize(x: Any, bins: Any, /, right: bool = False) -> Tensor:
    """The number of the bin that each element is in.

    Args:
        x: The tensor.
        bins: Edges that rise, or fall; one axis.
        right: Whether bins include their right edges, instead of the left ones.

    Raises:
        ValueError: If edges that are given as a list or an array neither rise nor fall, or have several axes.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.digitize([0.5, 1.0, 7.0], [0.0, 1.0, 2.0]).tolist()
    [1, 2, 3]
    """
    edges = asarray(bins)
    if edges.ndim != 1:
        raise ValueError(f"`digitize` takes one axis of edges, the shape is {edges.shape}")
    n = edges.shape[0]
    if not isinstance(bins, Tensor):
        _monotonic(bins, "digitize", falls=True)
    x, edges = operands(x, edges)
    side = "left" if right else "right"
    rising = searchsorted(edges, x, side=side)
    if isinstance(n, int) and n < 2:
        return rising
    falling = n - searchsorted(flip(edges), x, side=side)
    out = where(edges[0] <= edges[-1], rising, falling)
    return out.astype(_types.index_type())


def _monotonic(edges: Any, name: str, falls: bool = False) -> None:
    import numpy as np

    steps: Any = np.diff(np.asarray(edges))
    if not (np.all(steps >= 0) or falls and np.all(steps <= 0)):
        raise ValueError(f"`{name}`: the edges of bins must increase{' or decrease' if falls else ''}: {edges}")


def histogram_bin_edges(x: Any, /, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:  # noqa: A002
    """The edges of bins, as ``histogram`` returns them."""
    if weights is not None:
        # They change no edges; of another kind they are a mistake all the same.
        asarray(weights)
    return _edges(asarray(x), bins, range)[1]


def _edges(x: Tensor, bins: Any, span: Any) -> tuple[Tensor, Tensor]:
    """The edges of bins with which elements are compared, and in the dtype of the result."""
    from aerogel.tensor._creation import iota

    if isinstance(bins, str):
        raise ValueError(f"`histogram`: the rule {bins!r} is not supported: pass a number of bins, or their edges")
    if not is_number(bins) and getattr(bins, "ndim", 1) > 0 and not hasattr(bins, "__index__"):
        edges = asarray(bins)
        if edges.ndim != 1:
            raise ValueError(f"`histogram` takes one axis of edges, the shape is {edges.shape}")
        if not isinstance(bins, Tensor):
            _monotonic(bins, "histogram")
        return edges, edges
    n = operator.index(bins)
    if n < 1:
        raise ValueError(f"`histogram`: `bins` must be at least 1, not {n}")
    wide = x if x.dtype.is_float else x.astype(f64)
    size = x.size
    if span is not None:
        low, high = span
        if is_number(low) and is_number(high):
            if not (math.isfinite(low) and math.isfinite(high)):
                raise ValueError(f"`histogram`: the range {low} to {high} is not finite")
            if low > high:
                raise ValueError(f"`histogram`: the range ends at {high}, below its start {low}")
        low, high = (asarray(v, wide.dtype) for v in (low, high))
    elif isinstance(size, int) and size == 0:
        low, high = asarray(0.0, wide.dtype), asarray(1.0, wide.dtype)
    else:
        low, high = _reductions.min(wide), _reductions.max(wide)
    flat = low == high
    low, high = where(flat, low - 0.5, low), where(flat, high + 0.5, high)
    k = iota((n + 1,), 0, f64)
    edges = (k * ((high - low).astype(f64) / n) + low.astype(f64)).astype(wide.dtype)
    edges = where(k == n, high, edges)
    return edges, edges if x.dtype.is_float else edges.astype(_types.default_float())


def histogram(
    x: Any,
    /,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    density: bool = False,
    weights: Any = None,
) -> tuple[Tensor, Tensor]:
    """How many elements are in each bin, and the edges of the bins, of which the last includes its right edge.

    Args:
        x: The tensor, of any shape.
        bins: A number of bins, or their edges.
        range: The first and the last edge for a number of bins; the smallest and the largest element without it.
        density: Whether to divide by the sum and the widths, so that the integral is 1.
        weights: A weight for each element.

    Raises:
        ValueError: For edges that do not rise, no bins, or a range that is not finite.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> counts, edges = xp.histogram([1.0, 2.0, 2.5, 4.0], 3)
    >>> counts.tolist(), edges.tolist()
    ([1, 2, 1], [1.0, 2.0, 3.0, 4.0])
    """
    from aerogel.tensor._creation import zeros
    from aerogel.tensor._reductions import diff

    x = asarray(x)
    if is_complex(x):
        raise TypeError(f"`histogram` takes real numbers, not `{x.dtype}`")
    x = x.astype(_types.default_int()) if x.dtype is u1 else x
    edges, result = _edges(x, bins, range)
    n = edges.shape[0] - 1
    values, bounds = operands(x.reshape((-1,)), edges)
    w: Any = asarray(1) if weights is None else asarray(weights).reshape((-1,))
    if is_complex(w):
        raise TypeError("`histogram` takes real weights")
    at = searchsorted(bounds, values, side="right") - 1
    last = bounds[-1]
    inside = (values >= bounds[0]) & (values <= last)
    at = minimum(where(inside, at, 0), n - 1)
    dtype = _types.default_int() if weights is None else _reductions._summed(w.dtype, None)
    counts = scatter(zeros((n,), dtype), at, where(inside, w, 0).astype(dtype), how="add")
    if not density:
        return counts, result
    counts = counts if counts.dtype.is_float else counts.astype(_types.default_float())
    widths = diff(result if result.dtype.is_float else result.astype(_types.default_float()))
    return counts / widths / counts.sum(), result
