"""Maxima and means over windows."""

from __future__ import annotations

import math
from typing import Any

from aerogel.backends import _layers
from aerogel.nn import _checks
from aerogel.nn._convolutions import sizes, window
from aerogel.tensor._accum import accum
from aerogel.tensor._creation import ones
from aerogel.tensor._searching import take
from aerogel.tensor._shapes import pad
from aerogel.tensor._tensor import Tensor, asarray


def _by_extension(x: Any, kernel: Any, stride: Any, padding: Any, mode: str, called: str) -> Tensor | None:
    """Full windows along two axes, by an extension if there is one."""
    kernel = sizes(kernel, 2, called, "kernel_size", 1)
    stride = kernel if stride is None else sizes(stride, 2, called, "stride", 1)
    margins = [(p, p) for p in sizes(padding, 2, called, "padding")]
    return _layers.layer("pool2d", (_checks.floats(x, called),), kernel, stride, margins, mode)


def _windows(
    x: Any, n: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, how: str, called: str
) -> tuple[Tensor, Any]:
    """What ``how`` makes of each window, and a function that does so with another tensor's."""
    x = _checks.floats(x, called)
    _checks.axes(x, called, n + 1, n + 2, what="batch, channels and space")
    kernel = sizes(kernel, n, called, "kernel_size", 1)
    stride = kernel if stride is None else sizes(stride, n, called, "stride", 1)
    padding, dilation = sizes(padding, n, called, "padding"), sizes(dilation, n, called, "dilation", 1)
    first = x.ndim - n
    margins = []
    for axis, (k, s, p, d) in enumerate(zip(kernel, stride, padding, dilation)):
        if p > k // 2:
            raise ValueError(f"{called}: the padding is at most half of the kernel, {p} is more than half of {k}")
        size, reach = x.shape[first + axis], d * (k - 1) + 1
        extra = 0
        if isinstance(size, int):
            if size + 2 * p < reach:
                raise ValueError(
                    f"{called}: a window spans {reach} elements, axis {first + axis} has {size + 2 * p} with "
                    "its padding"
                )
            if ceil:
                count = -(-(size + 2 * p - reach) // s) + 1
                # The last window begins in the tensor or in the padding before it.
                count -= (count - 1) * s >= size + p
                extra = max((count - 1) * s + reach - size - 2 * p, 0)
        elif ceil:
            raise ValueError(f"{called}: with `ceil_mode` sizes must be known, and those of a program's input are not")
        margins.append((p, p, extra))
    lead = ", ".join(f"a{a}" for a in range(first))
    inner = ", ".join(window(s, f"y{a}", d, f"k{a}") for a, (s, d) in enumerate(zip(stride, dilation)))
    spec = f"{lead}, {inner} => {lead}, " + ", ".join(f"y{a}" for a in range(n))
    of_window = {f"k{a}": k for a, k in enumerate(kernel)}
    outside = -math.inf if how == "max" else 0.0

    def pooled(t: Tensor, inside: float = outside) -> Tensor:
        """Of a tensor; in the padding it is ``inside``."""
        wide = [(0, 0)] * (t.ndim - n)
        if any(before or behind for before, behind, _ in margins):
            t = pad(t, [*wide, *((before, behind) for before, behind, _ in margins)], value=inside)
        if any(extra for _, _, extra in margins):
            t = pad(t, [*wide, *((0, extra) for _, _, extra in margins)], value=outside)
        return accum(spec, t, how=how, sizes=of_window)

    return pooled(x), (x, pooled, kernel, any(extra for _, _, extra in margins))


def _max_pool(x: Any, n: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, called: str) -> Tensor:
    return _windows(x, n, kernel, stride, padding, dilation, ceil, "max", called)[0]


def max_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of each window along the last axis; see ``max_pool2d``."""
    return _max_pool(x, 1, kernel_size, stride, padding, dilation, ceil_mode, "`max_pool1d`")


def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of each window along the last two axes.

    Args:
        x: Shape (batch, channels, height, width), or without the batch.
        kernel_size: The size of a window; one number or one for each axis.
        stride: How far apart windows begin; without one, the size of a window.
        padding: How many elements of minus infinity are on both sides of each axis.
        dilation: How far apart the elements of a window are.
        ceil_mode: Whether a last window that is not full counts.

    Raises:
        ValueError: If a window is larger than the padded input, or the padding more than half a window.
    """
    out = None
    if not ceil_mode and dilation in (1, (1, 1)):
        out = _by_extension(x, kernel_size, stride, padding, "max", "`max_pool2d`")
    return _max_pool(x, 2, kernel_size, stride, padding, dilation, ceil_mode, "`max_pool2d`") if out is None else out


def _avg_pool(
    x: Any, n: int, kernel: Any, stride: Any, padding: Any, ceil: bool, include: bool, divisor: Any, called: str
) -> Tensor:
    total, (x, pooled, kernel, is_partial) = _windows(x, n, kernel, stride, padding, 1, ceil, "add", called)
    if divisor is not None:
        return total / float(divisor)
    padded = any(sizes(padding, n, called, "padding"))
    if not is_partial and (include or not padded):
        return total / float(math.prod(kernel))
    counts = pooled(ones((*[1] * (x.ndim - n), *x.shape[x.ndim - n :]), x.dtype), 1.0 if include else 0.0)
    return total / counts


def avg_pool1d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window along the last axis; see ``avg_pool2d``."""
    return _avg_pool(x, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, "`avg_pool1d`")


def avg_pool2d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window along the last two axes.

    Args:
        x: Shape (batch, channels, height, width), or without the batch.
        kernel_size: The size of a window; one number or one for each axis.
        stride: How far apart windows begin; without one, the size of a window.
        padding: How many zeros are on both sides of each axis.
        ceil_mode: Whether a last window that is not full counts.
        count_include_pad: Whether the padding counts as elements.
        divisor_override: The divisor of the sum of a window, instead of its size.

    Raises:
        ValueError: If a window is larger than the padded input, or the padding more than half a window.
    """
    how = (ceil_mode, count_include_pad, divisor_override)
    out = _by_extension(x, kernel_size, stride, padding, "mean", "`avg_pool2d`") if how == (False, True, None) else None
    return _avg_pool(x, 2, kernel_size, stride, padding, *how, "`avg_pool2d`") if out is None else out


def _bins(size: Any, count: int, called: str) -> list[tuple[int, int]]:
    """Where each of so many parts of an axis, which are as equal as can be, begins and ends."""
    if not isinstance(size, int):
        raise ValueError(
            f"{called}: sizes must be known, and those of a program's input are not, unless one element of each "
            "channel is wanted"
        )
    return [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]


def _adaptive(x: Any, output_size: Any, n: int, called: str, is_max: bool) -> Tensor:
    import numpy as np

    x = _checks.floats(x, called)
    _checks.axes(x, called, n + 1, n + 2, what="batch, channels and space")
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    first = x.ndim - n
    if all(size == 1 for size in given):
        axes = tuple(range(first, x.ndim))
        return x.max(axis=axes, keepdims=True) if is_max else x.mean(axis=axes, keepdims=True)
    if len(given) != n:
        raise ValueError(f"{called}: `output_size` has {len(given)} numbers for {n} axes")
    for axis, count in enumerate(given, first):
        size = x.shape[axis]
        if count is None or count == size:
            continue
        (count,) = sizes(count, 1, called, "output_size", 1)
        bins = _bins(size, count, called)
        if is_max:
            longest = max(end - begin for begin, end in bins)
            at = np.array([[min(b + k, e - 1) for k in range(longest)] for b, e in bins], np.int32)
            x = take(x, asarray(at), axis=axis).max(axis=axis + 1)
        else:
            shares = np.zeros((count, size))
            for k, (begin, end) in enumerate(bins):
                shares[k, begin:end] = 1.0 / (end - begin)
            lead, rest = ([f"a{a}" for a in range(*ends)] for ends in ((axis,), (axis + 1, x.ndim)))
            spec = ", ".join([*lead, "i", *rest]) + "; o, i => " + ", ".join([*lead, "o", *rest])
            x = accum(spec, x, asarray(shares, x.dtype))
    return x


def adaptive_avg_pool1d(x: Any, output_size: Any) -> Tensor:
    """The means of ``output_size`` parts of the last axis; see ``adaptive_avg_pool2d``."""
    return _adaptive(x, output_size, 1, "`adaptive_avg_pool1d`", False)


def adaptive_avg_pool2d(x: Any, output_size: Any) -> Tensor:
    """The means of windows along the last two axes, as many as give the result a given size.

    Args:
        x: Shape (batch, channels, height, width), or without the batch.
        output_size: The size of the result; one number or one for each axis, of which ``None`` keeps the size.
    """
    return _adaptive(x, output_size, 2, "`adaptive_avg_pool2d`", False)


def adaptive_max_pool1d(x: Any, output_size: Any) -> Tensor:
    """The largest elements of ``output_size`` parts of the last axis; see ``adaptive_avg_pool2d``."""
    return _adaptive(x, output_size, 1, "`adaptive_max_pool1d`", True)


def adaptive_max_pool2d(x: Any, output_size: Any) -> Tensor:
    """The largest elements of windows, for a result of a given size; see ``adaptive_avg_pool2d``."""
    return _adaptive(x, output_size, 2, "`adaptive_max_pool2d`", True)
