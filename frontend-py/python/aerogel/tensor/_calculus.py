"""Differences and integrals of sampled functions, as NumPy has them."""

from __future__ import annotations

import math
from typing import Any

from aerogel.tensor import _types
from aerogel.tensor._complex import is_complex
from aerogel.tensor._reductions import sum
from aerogel.tensor._searching import where
from aerogel.tensor._shapes import concat, reshape
from aerogel.tensor._tensor import Tensor, asarray, is_number
from aerogel.tensor._unknown import at_least, demand, differ


def _part(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    key: list[Any] = [slice(None)] * x.ndim
    key[axis] = slice(start, stop)
    return x[tuple(key)]


def _along(x: Any, axis: int, rank: int) -> Any:
    """A vector along one of several axes."""
    shape: list[Any] = [1] * rank
    shape[axis] = -1
    return reshape(x, shape)


def gradient(f: Any, /, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives along axes, by central differences inside and one-sided ones at the ends.

    Args:
        f: Samples; integers become the default float.
        varargs: The distance of samples (1 without it), or their coordinates: one for all axes, or one for each.
        axis: An axis, or several; ``None`` for all.
        edge_order: 1 or 2, the order of accuracy at the ends.

    Returns:
        The derivative along an axis; a tuple of them for several axes.

    Raises:
        ValueError: For fewer than ``edge_order + 1`` samples along an axis, or coordinates of another number.
        TypeError: For other numbers of distances than of axes.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.gradient([1.0, 2.0, 4.0, 7.0])
    tensor([1. , 1.5, 2.5, 3. ], dtype=f32)
    """
    f = asarray(f)
    f = f if is_complex(f) or f.dtype.is_float else f.astype(_types.default_float())
    axes = _types.axes(None if axis is None else _types.whole_numbers(axis, "axis"), f.ndim, "gradient")
    axes = list(range(f.ndim)) if axes is None else axes
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"`gradient`: {len(varargs)} distances for {len(axes)} axes")
    if edge_order not in (1, 2):
        raise ValueError(f"`gradient`: `edge_order` is 1 or 2, not {edge_order!r}")
    spacings = list(varargs) * (len(axes) if len(varargs) == 1 else 1) or [1.0] * len(axes)
    out = []
    for k, spacing in zip(axes, spacings):
        n = f.shape[k]
        if not isinstance(n, int):
            at_least(n, edge_order + 1, "`gradient` along an axis with {} samples")
        elif n < edge_order + 1:
            raise ValueError(f"`gradient`: axis {k} has {n} samples, and at least {edge_order + 1} are needed")
        h = spacing if is_number(spacing) else asarray(spacing)
        if is_number(h) or h.ndim == 0:
            out.append(_even(f, k, h, edge_order))
        else:
            out.append(_uneven(f, k, h, edge_order))
    return out[0] if len(out) == 1 else tuple(out)


def _even(f: Any, axis: int, h: Any, order: int) -> Any:
    def at(start: int | None, stop: int | None) -> Any:
        return _part(f, axis, start, stop)

    inner = (at(2, None) - at(None, -2)) / (2.0 * h)
    if order == 1:
        first, last = (at(1, 2) - at(0, 1)) / h, (at(-1, None) - at(-2, -1)) / h
    else:
        first = at(0, 1) * (-1.5 / h) + at(1, 2) * (2.0 / h) + at(2, 3) * (-0.5 / h)
        last = at(-3, -2) * (0.5 / h) + at(-2, -1) * (-2.0 / h) + at(-1, None) * (1.5 / h)
    return concat([first, inner, last], axis=axis)


def _uneven(f: Any, axis: int, x: Any, order: int) -> Any:
    if x.ndim != 1 or differ(x.shape[0], f.shape[axis]):
        raise ValueError(f"`gradient`: coordinates of shape {x.shape} for {f.shape[axis]} samples along axis {axis}")
    part = f.real.dtype if is_complex(f) else f.dtype
    d = (x[1:] - x[:-1]).astype(part)
    # Two differences around each sample; that before and that behind.
    a, b = (_along(t, axis, f.ndim) for t in (d[:-1], d[1:]))

    def at(start: int | None, stop: int | None) -> Any:
        return _part(f, axis, start, stop)

    inner = at(None, -2) * (-b / (a * (a + b))) + at(1, -1) * ((b - a) / (a * b)) + at(2, None) * (a / (b * (a + b)))
    if order == 1:
        first, last = (at(1, 2) - at(0, 1)) / d[0], (at(-1, None) - at(-2, -1)) / d[-1]
    else:
        p, q = d[0], d[1]
        first = at(0, 1) * (-(2.0 * p + q) / (p * (p + q))) + at(1, 2) * ((p + q) / (p * q))
        first = first + at(2, 3) * (-p / (q * (p + q)))
        p, q = d[-2], d[-1]
        last = at(-3, -2) * (q / (p * (p + q))) + at(-2, -1) * (-(q + p) / (p * q))
        last = last + at(-1, None) * ((2.0 * q + p) / (q * (p + q)))
    return concat([first, inner, last], axis=axis)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples along an axis, by the trapezoidal rule; 0 of fewer than two.

    Args:
        y: The samples; integers become the default float.
        x: Where they are: one axis, or the shape of ``y``.
        dx: The distance between them without ``x``.
        axis: The axis.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.trapezoid([1, 2, 3]).item()
    4.0
    """
    y = asarray(y)
    y = y if is_complex(y) or y.dtype.is_float else y.astype(_types.default_float())
    axis = _types.axis(axis, y.ndim, "trapezoid")
    if x is None:
        d = dx
    else:
        x = asarray(x)
        at = axis if x.ndim == y.ndim else 0
        if x.ndim not in (1, y.ndim) or differ(x.shape[at], y.shape[axis]):
            raise ValueError(f"`trapezoid`: coordinates of shape {x.shape} for samples of shape {y.shape}")
        if not isinstance(y.shape[axis], int) and not is_complex(x):
            demand(x, at, y.shape[axis])
        d = _part(x, at, 1, None) - _part(x, at, None, -1)
        d = d if is_complex(d) or d.dtype.is_float else d.astype(y.real.dtype if is_complex(y) else y.dtype)
        d = _along(d, axis, y.ndim) if x.ndim == 1 and y.ndim > 1 else d
    return sum(d * (_part(y, axis, 1, None) + _part(y, axis, None, -1)) / 2.0, axis)


def unwrap(p: Any, /, discont: Any = None, axis: int = -1, *, period: Any = 2.0 * math.pi) -> Tensor:
    """Angles along an axis without jumps: each is moved by whole periods to less than half a period from its neighbour.

    Args:
        p: The angles; integers become the default float.
        discont: Steps below this stay as they are; half a period without it.
        axis: The axis.
        period: The period.
    """
    from aerogel.tensor._elementwise import abs
    from aerogel.tensor._reductions import cumulative_sum, diff

    p = asarray(p)
    p = p if p.dtype.is_float else p.astype(_types.default_float())
    axis = _types.axis(axis, p.ndim, "unwrap")
    half = period / 2.0
    step = diff(p, axis=axis)
    short = (step + half) % period - half
    short = where((short == -half) & (step > 0), half, short)
    change = where(abs(step) < (half if discont is None else discont), 0.0, short - step)
    moved = _part(p, axis, 1, None) + cumulative_sum(change, axis=axis)
    return concat([_part(p, axis, 0, 1), moved], axis=axis)
