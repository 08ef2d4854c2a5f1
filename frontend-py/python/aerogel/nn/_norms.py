"""Normalisation: tensors with mean 0 and variance 1 along some axes."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import bf16, f16, f32
from aerogel.backends import _layers
from aerogel.nn import _checks
from aerogel.tensor import _types
from aerogel.tensor._elementwise import rsqrt
from aerogel.tensor._gradients import no_grad
from aerogel.tensor._reductions import mean, var
from aerogel.tensor._tensor import Tensor


def _wide(x: Any, called: str) -> tuple[Tensor, Any]:
    """The input in a dtype in which statistics lose nothing, and its own dtype."""
    x = _checks.floats(x, called)
    return (x.astype(f32) if x.dtype in (f16, bf16) else x), x.dtype


def _scaled(x: Tensor, weight: Any, bias: Any, shape: Any, dtype: Any) -> Tensor:
    for value, add in ((weight, False), (bias, True)):
        if value is not None:
            value = _checks.tensor(value, "a norm").reshape(shape)
            x = x + value if add else x * value
    return x.astype(dtype)


def _normal(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    """The tensor with mean 0 and variance 1 along some axes."""
    return (x - mean(x, axes, keepdims=True)) * rsqrt(var(x, axes, keepdims=True) + eps)


def layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias``, over the last axes.

    Args:
        x: Its last axes have the shape ``normalized_shape``.
        normalized_shape: The sizes of these axes; one number for one axis.
        weight: Of that shape, or ``None``.
        bias: Of that shape, or ``None``.
        eps: A small number that is added to the variance.

    Raises:
        ValueError: If the last axes have another shape.
    """
    shape = _shape(normalized_shape, "layer_norm")
    x, dtype = _wide(x, "`layer_norm`")
    _last_axes(x, shape, "`layer_norm`")
    axes = tuple(range(-len(shape), 0))
    out = _normal(x, axes, eps)
    return _scaled(out, weight, bias, shape, dtype)


def _shape(given: Any, called: str) -> tuple[Any, ...]:
    return (given,) if hasattr(given, "__index__") else tuple(_types.several(given, called, "normalized_shape"))


def _last_axes(x: Tensor, shape: Any, called: str) -> None:
    if x.ndim < len(shape):
        raise ValueError(f"{called} over axes of shape {tuple(shape)}, the input has {x._native.shape_text()}")
    for k, n in enumerate(reversed(shape), 1):
        _checks.size(x, -k, n, called, "normalized_shape", shape)


def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    """``x / sqrt(mean(x²) + eps) * weight``, over the last axes; ``eps`` is that of the dtype if not given.

    Raises:
        ValueError: If the last axes have another shape.
    """
    shape = _shape(normalized_shape, "rms_norm")
    x, dtype = _wide(x, "`rms_norm`")
    _last_axes(x, shape, "`rms_norm`")
    if eps is None:
        eps = {"f64": 2.0**-52, "f32": 2.0**-23, "bf16": 2.0**-7, "f16": 2.0**-10}[dtype._aerogel_dtype]
    axes = tuple(range(-len(shape), 0))
    out = x * rsqrt(mean(x * x, axes, keepdims=True) + eps)
    return _scaled(out, weight, None, shape, dtype)


def group_norm(x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Each group of channels normalised by itself.

    Args:
        x: Shape (batch, channels, ...).
        num_groups: How many groups there are.
        weight: Shape (channels,), or ``None``.
        bias: Shape (channels,), or ``None``.
        eps: A small number that is added to the variance.

    Raises:
        ValueError: If channels are not groups of equal size.
    """
    x, dtype = _wide(x, "`group_norm`")
    if x.ndim < 2:
        raise ValueError(f"`group_norm` takes at least two axes, the shape is {x._native.shape_text()}")
    n = x.shape[1]
    if num_groups < 1 or isinstance(n, int) and n % num_groups:
        raise ValueError(f"`group_norm`: {n} channels are not {num_groups} groups of equal size")
    parts = x.reshape(x.shape[0], num_groups, -1)
    out = _normal(parts, (-1,), eps)
    return _scaled(out.reshape(x.shape), weight, bias, (-1, *[1] * (x.ndim - 2)), dtype)


def instance_norm(x: Any, *, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Each channel of each element of the batch normalised by itself: shape (batch, channels, ...)."""
    x, dtype = _wide(x, "`instance_norm`")
    if x.ndim < 3:
        raise ValueError(f"`instance_norm` takes at least three axes, the shape is {x._native.shape_text()}")
    axes = tuple(range(2, x.ndim))
    out = _normal(x, axes, eps)
    return _scaled(out, weight, bias, (-1, *[1] * (x.ndim - 2)), dtype)


def batch_statistics(x: Any, called: str = "`batch_norm`") -> tuple[Tensor, Tensor]:
    """The mean and the variance of each channel over the batch."""
    x, _ = _wide(x, called)
    if x.ndim < 2:
        raise ValueError(f"{called} takes at least two axes, the shape is {x._native.shape_text()}")
    if isinstance(x.size, int) and x.shape[1] and x.size // x.shape[1] == 1:
        raise ValueError(
            f"{called}: training needs more than one element for each channel, the shape is {x._native.shape_text()}"
        )
    axes = (0, *range(2, x.ndim))
    return mean(x, axes), var(x, axes)


def by_statistics(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Tensor:
    """Each channel normalised by a mean and a variance."""
    x, dtype = _wide(x, "`batch_norm`")
    if x.ndim < 2:
        raise ValueError(f"`batch_norm` takes at least two axes, the shape is {x._native.shape_text()}")
    centre, spread = _checks.tensor(mean, "`batch_norm`"), _checks.tensor(variance, "`batch_norm`")
    _checks.size(x, 1, centre.shape[0], "`batch_norm`", "running_mean", centre._native.shape)
    if weight is not None and bias is not None:
        own = _layers.layer(
            "batchnorm", (x, *(_checks.tensor(t, "a norm") for t in (weight, bias, centre, spread))), eps
        )
        if own is not None:
            return own.astype(dtype)
    shape = (-1, *[1] * (x.ndim - 2))
    out = (x - centre.reshape(shape)) * rsqrt(spread.reshape(shape) + eps)
    return _scaled(out, weight, bias, shape, dtype)


def followed(x: Tensor, running: tuple[Any, Any], batch: tuple[Any, Any], part: Any) -> tuple[Tensor, Tensor]:
    """Running statistics, moved by a part of the way to the mean and the variance of a batch ``x``."""
    kind = running[0].dtype
    count = x.size // x.shape[1]
    count = count.astype(batch[1].dtype) if isinstance(count, Tensor) else float(count)
    mean, variance = batch[0], batch[1] * (count / (count - 1.0))
    first = running[0] * (1.0 - part) + (mean * part).astype(kind)
    return first, running[1] * (1.0 - part) + (variance * part).astype(kind)


def batch_norm(
    x: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel normalised by a mean and a variance, with PyTorch's arguments in PyTorch's order.

    Args:
        x: Shape (batch, channels, ...).
        running_mean: Shape (channels,): the means, or ``None`` in training. In training it is moved towards those of
            the batch, in place.
        running_var: Shape (channels,), likewise for the variances.
        weight: Shape (channels,), or ``None``.
        bias: Shape (channels,), or ``None``.
        training: Whether the mean and the variance are those of the batch.
        momentum: By which part the running statistics move.
        eps: A small number that is added to the variance.

    Raises:
        TypeError: If running statistics that training changes are no tensors.
        ValueError: If there are other channels, or no statistics outside of training, or in training one element for
            each channel.
    """
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("`batch_norm` needs `running_mean` and `running_var` outside of training")
        return by_statistics(x, running_mean, running_var, weight, bias, eps)
    batch = batch_statistics(x)
    if running_mean is not None or running_var is not None:
        if not (isinstance(running_mean, Tensor) and isinstance(running_var, Tensor)):
            raise TypeError("`batch_norm` modifies `running_mean` and `running_var` in training: they must be tensors")
        with no_grad():
            known = _checks.tensor(x, "`batch_norm`")
            first, second = followed(
                known, (running_mean, running_var), (batch[0].detach(), batch[1].detach()), momentum
            )
            running_mean[...] = first
            running_var[...] = second
    return by_statistics(x, *batch, weight, bias, eps)
