"""Convolutions in any number of dimensions, as sums over named axes."""

from __future__ import annotations

import math
import operator
from typing import Any

from aerogel.backends import _layers
from aerogel.nn import _checks
from aerogel.tensor._accum import accum
from aerogel.tensor._shapes import flip, pad
from aerogel.tensor._tensor import Tensor


def sizes(value: Any, n: int, called: str, name: str, least: int = 0) -> tuple[int, ...]:
    """An integer for each spatial axis, or one for all.

    Raises:
        TypeError: If a value is not an integer.
        ValueError: If there are not ``n`` values, or one is too small.
    """
    try:
        given = tuple(map(operator.index, value)) if isinstance(value, (tuple, list)) else (operator.index(value),) * n
    except TypeError:
        raise TypeError(f"{called}: `{name}` is an integer or {n} integers, not {value!r}") from None
    if len(given) != n:
        raise ValueError(f"{called}: `{name}` has {len(given)} numbers for {n} axes")
    if min(given, default=least) < least:
        raise ValueError(f"{called}: `{name}` is at least {least}, not {value!r}")
    return given


def window(factor: int, name: str, step: int, tap: str) -> str:
    """An index along an axis as `accum` writes it: ``2*y0+3*k0``."""
    return f"{f'{factor}*' if factor != 1 else ''}{name}+{f'{step}*' if step != 1 else ''}{tap}"


def convolve(
    x: Any, weight: Any, bias: Any, n: int, stride: Any, padding: Any, dilation: Any, groups: int, called: str
) -> Tensor:
    """A convolution along the last ``n`` axes; see ``conv2d``."""
    x, weight = _checks.floats(x, called), _checks.floats(weight, called)
    _checks.axes(weight, f"{called}, `weight`,", n + 2)
    if x.ndim == n + 1:
        out = convolve(x.unsqueeze(0), weight, bias, n, stride, padding, dilation, groups, called)
        return out.squeeze(0)
    _checks.axes(x, called, n + 1, n + 2, what="batch, channels and space")
    stride, dilation = sizes(stride, n, called, "stride", 1), sizes(dilation, n, called, "dilation", 1)
    kernel = _kernel(weight, called)
    margins = _margins(padding, kernel, stride, dilation, called)
    n_out, per_group = weight.shape[:2]
    if groups < 1 or isinstance(n_out, int) and n_out % groups:
        raise ValueError(f"{called}: {n_out} output channels are not {groups} groups of equal size")
    _checks.size(x, 1, per_group * groups, called, "weight", weight._native.shape)
    for axis, (k, d, (before, behind)) in enumerate(zip(kernel, dilation, margins)):
        size, reach = x.shape[2 + axis], d * (k - 1) + 1
        if isinstance(size, int) and size + before + behind < reach:
            raise ValueError(
                f"{called}: the kernel spans {reach} elements, axis {2 + axis} has {size + before + behind} "
                "with its padding"
            )
    if n == 2:
        own = _layers.layer("conv2d", (x, weight), bias, stride, margins, dilation, groups)
        if own is not None:
            return own
    if any(map(any, margins)):
        x = pad(x, [(0, 0), (0, 0), *margins])
    if groups == 1 and all(k == 1 for k in kernel):
        out = _products(x, weight, stride)
        return out if bias is None else out + _of_channels(bias, n)
    windows = ", ".join(window(s, f"y{a}", d, f"k{a}") for a, (s, d) in enumerate(zip(stride, dilation)))
    taps, places = (", ".join(f"{letter}{a}" for a in range(n)) for letter in "ky")
    if groups == 1:
        out = accum(f"b, c, {windows}; o, c, {taps} => b, o, {places}", x, weight)
    elif per_group == 1 and n_out == groups:
        out = accum(f"b, g, {windows}; g, {taps} => b, g, {places}", x, weight.squeeze(1))
    else:
        x = x.reshape(x.shape[0], groups, per_group, *x.shape[2:])
        weight = weight.reshape(groups, n_out // groups, *weight.shape[1:])
        out = accum(f"b, g, c, {windows}; g, o, c, {taps} => b, g, o, {places}", x, weight)
        out = out.reshape(out.shape[0], n_out, *out.shape[3:])
    return out if bias is None else out + _of_channels(bias, n)


def _products(x: Tensor, weight: Tensor, stride: Any) -> Tensor:
    """A convolution with a kernel of one element: a product of matrices."""
    if any(s != 1 for s in stride):
        x = x[(slice(None), slice(None), *(slice(None, None, s) for s in stride))]
    space = x.shape[2:]
    out = weight.reshape(weight.shape[0], -1) @ x.reshape(*x.shape[:2], math.prod(space))
    return out.reshape(x.shape[0], weight.shape[0], *space)


def _kernel(weight: Tensor, called: str) -> tuple[int, ...]:
    """The size of a kernel, which is known when a program is traced."""
    kernel = weight.shape[2:]
    if not all(isinstance(k, int) for k in kernel):
        raise ValueError(
            f"{called}: the size of the kernel has to be known when a program is traced: take the weight from a module "
            "that is an argument, or state its shape by `assert_tensor`"
        )
    return kernel


def _of_channels(bias: Any, n: int) -> Tensor:
    return _checks.tensor(bias, "`bias`").reshape(-1, *[1] * n)


def _margins(padding: Any, kernel: Any, stride: Any, dilation: Any, called: str) -> list[tuple[int, int]]:
    """How many zeros are before and behind each axis."""
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        if any(s != 1 for s in stride):
            raise ValueError(f"{called}: with padding='same' the stride is 1, not {stride}")
        total = [d * (k - 1) for k, d in zip(kernel, dilation)]
        return [(t // 2, t - t // 2) for t in total]
    return [(p, p) for p in sizes(padding, len(kernel), called, "padding")]


def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """A convolution along one axis; see ``conv2d``. Shapes (batch, channels, length) and (out, in / groups, kernel)."""
    return convolve(x, weight, bias, 1, stride, padding, dilation, groups, "`conv1d`")


def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """A convolution (cross-correlation) along two axes.

    Args:
        x: Shape (batch, inputs, height, width), or without the batch.
        weight: Shape (outputs, inputs / groups, kernel height, kernel width).
        bias: Shape (outputs,), or ``None``.
        stride: How far apart windows begin; one number or one for each axis.
        padding: How many zeros are on both sides of each axis; ``"valid"`` for none, ``"same"`` for a result of the
            same size, with a stride of 1.
        dilation: How far apart the elements of a window are.
        groups: How many groups of channels are convolved by themselves.

    Returns:
        Shape (batch, outputs, height, width), where height and width count the windows inside.

    Raises:
        ValueError: If channels, groups or the size of the kernel do not agree with the input.
    """
    return convolve(x, weight, bias, 2, stride, padding, dilation, groups, "`conv2d`")


def conv3d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """A convolution along three axes; see ``conv2d``."""
    return convolve(x, weight, bias, 3, stride, padding, dilation, groups, "`conv3d`")


def transposed(
    x: Any,
    weight: Any,
    bias: Any,
    n: int,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
    called: str,
) -> Tensor:
    """A transposed convolution along the last ``n`` axes; see ``conv_transpose2d``."""
    x, weight = _checks.floats(x, called), _checks.floats(weight, called)
    _checks.axes(weight, f"{called}, `weight`,", n + 2)
    if x.ndim == n + 1:
        args = (bias, n, stride, padding, output_padding, groups, dilation, called)
        return transposed(x.unsqueeze(0), weight, *args).squeeze(0)
    _checks.axes(x, called, n + 1, n + 2, what="batch, channels and space")
    stride, dilation = sizes(stride, n, called, "stride", 1), sizes(dilation, n, called, "dilation", 1)
    padding, more = sizes(padding, n, called, "padding"), sizes(output_padding, n, called, "output_padding")
    for m, s, d in zip(more, stride, dilation):
        if m >= max(s, d):
            raise ValueError(f"{called}: `output_padding` is less than the stride or the dilation, not {m}")
    kernel = _kernel(weight, called)
    n_in, per_group = weight.shape[:2]
    if groups < 1 or isinstance(n_in, int) and n_in % groups:
        raise ValueError(f"{called}: {n_in} input channels are not {groups} groups of equal size")
    _checks.size(x, 1, n_in, called, "weight", weight._native.shape)
    # An element of the result is one of `stride` phases along each axis: all elements of a phase are a convolution with
    # every `stride`-th element of the kernel. The phases are channels first, and then neighbours.
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    for axis, (s, d) in enumerate(zip(stride, dilation), 2):
        if s > 1 and d > 1:
            weight = _spread(weight, axis, d)
    dilation = tuple(1 if s > 1 else d for s, d in zip(stride, dilation))
    taps = [-(-r // s) if s > 1 else k for r, s, k in zip(reach, stride, kernel)]
    weight = pad(weight, [(0, 0), (0, 0), *((0, t * s - n) for t, s, n in zip(taps, stride, weight.shape[2:]))])
    weight = weight.reshape(groups, n_in // groups, per_group, *(m for t, s in zip(taps, stride) for m in (t, s)))
    weight = flip(weight, axis=[3 + 2 * a for a in range(n)])
    weight = weight.permute(0, 2, *(4 + 2 * a for a in range(n)), 1, *(3 + 2 * a for a in range(n)))
    weight = weight.reshape(groups * per_group * math.prod(stride), n_in // groups, *taps)
    wide = [d * (t - 1) for t, d in zip(taps, dilation)]
    out = convolve(x, weight, None, n, 1, wide, dilation, groups, called)
    lengths = out.shape[2:]
    out = out.reshape(out.shape[0], groups * per_group, *stride, *lengths)
    out = out.permute(0, 1, *(m for a in range(n) for m in (2 + n + a, 2 + a)))
    out = out.reshape(out.shape[0], groups * per_group, *(size * s for size, s in zip(lengths, stride)))
    # Padding cuts from both sides, and `output_padding` adds behind.
    extra = [max(m - p - (t * s - r if s > 1 else 0), 0) for m, p, t, s, r in zip(more, padding, taps, stride, reach)]
    if any(extra):
        out = pad(out, [(0, 0), (0, 0), *((0, e) for e in extra)])
    ends = [(size - 1) * s - p + r + m for size, s, p, r, m in zip(x.shape[2:], stride, padding, reach, more)]
    out = out[(slice(None), slice(None), *(slice(p, end) for p, end in zip(padding, ends)))]
    return out if bias is None else out + _of_channels(bias, n)


def _spread(x: Tensor, axis: int, s: int) -> Tensor:
    """A tensor with ``s - 1`` zeros between its elements along an axis."""
    shape, length = x.shape, (x.shape[axis] - 1) * s + 1
    x = pad(x.unsqueeze(axis + 1), [(0, s - 1) if a == axis + 1 else (0, 0) for a in range(x.ndim + 1)])
    x = x.reshape(*shape[:axis], shape[axis] * s, *shape[axis + 1 :])
    return x[tuple(slice(length) if a == axis else slice(None) for a in range(x.ndim))]


def conv_transpose1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """A transposed convolution along one axis; see ``conv_transpose2d``."""
    return transposed(x, weight, bias, 1, stride, padding, output_padding, groups, dilation, "`conv_transpose1d`")


def conv_transpose2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The derivative of a convolution by its input: it makes images larger.

    Args:
        x: Shape (batch, inputs, height, width), or without the batch.
        weight: Shape (inputs, outputs / groups, kernel height, kernel width).
        bias: Shape (outputs,), or ``None``.
        stride: The stride of the convolution.
        padding: Its padding, by which the result is smaller on both sides.
        output_padding: By how much the result is larger behind each axis.
        groups: How many groups of channels there are.
        dilation: The dilation of the convolution.

    Returns:
        Shape (batch, outputs, height, width), with ``(n - 1) * stride - 2 * padding + dilation * (kernel - 1) +
        output_padding + 1`` elements along an axis.

    Raises:
        ValueError: If channels or groups do not agree with the input.
    """
    return transposed(x, weight, bias, 2, stride, padding, output_padding, groups, dilation, "`conv_transpose2d`")
