"""Linear maps and tables of vectors."""

from __future__ import annotations

from typing import Any

from aerogel.nn import _checks
from aerogel.nn._parameter import data_of
from aerogel.tensor import random
from aerogel.tensor._searching import take, where
from aerogel.tensor._tensor import Tensor, tracing


def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    """``x @ weight.T + bias``.

    Args:
        x: Shape (..., inputs).
        weight: Shape (outputs, inputs).
        bias: Shape (outputs,), or ``None``.

    Returns:
        Shape (..., outputs).

    Raises:
        ValueError: If the last axis of ``x`` is not as long as that of ``weight``.
    """
    x, weight = _checks.floats(x, "`linear`"), _checks.tensor(weight, "`linear`")
    if x.ndim == 0:
        raise ValueError("`linear` takes at least one axis, the input is a scalar")
    _checks.size(x, -1, weight.shape[-1], "`linear`", "weight", weight._native.shape)
    out = x @ weight.T
    return out if bias is None else out + bias


def bilinear(x1: Any, x2: Any, weight: Any, bias: Any = None) -> Tensor:
    """``x1 @ weight[o] @ x2 + bias[o]`` for each output ``o``.

    Args:
        x1: Shape (..., inputs 1).
        x2: Shape (..., inputs 2).
        weight: Shape (outputs, inputs 1, inputs 2).
        bias: Shape (outputs,), or ``None``.

    Returns:
        Shape (..., outputs).

    Raises:
        ValueError: If the last axes of the inputs are not as long as those of ``weight``.
    """
    x1, x2, weight = (_checks.floats(x, "`bilinear`") for x in (x1, x2, weight))
    for k, x in enumerate((x1, x2)):
        _checks.size(x, -1, weight.shape[k + 1], "`bilinear`", "weight", weight._native.shape)
    n_out, n_in, _ = weight.shape
    # (..., in 1) by (in 1, out * in 2), and then by the second input.
    both = x1 @ weight.permute(1, 0, 2).reshape(n_in, -1)
    out = (both.reshape(*x1.shape[:-1], n_out, -1) * x2.unsqueeze(-2)).sum(axis=-1)
    return out if bias is None else out + bias


def embedding(x: Any, weight: Any, padding_idx: int | None = None) -> Tensor:
    """The rows of a table with given indices.

    Args:
        x: Integers of any shape.
        weight: Shape (rows, columns).
        padding_idx: The index of a row that gets no gradient.

    Returns:
        The shape of ``x`` and one axis of columns.

    Raises:
        IndexError: If an index is not of the table; when the values are computed.
    """
    x, weight = _checks.indices(x, "`embedding`"), _checks.tensor(weight, "`embedding`")
    out = take(weight, x, axis=0)
    if padding_idx is None:
        return out
    return where((x == padding_idx).unsqueeze(-1), data_of(weight)[padding_idx], out)


def dropout(x: Any, p: float = 0.5, training: bool = True, *, key: Any = None) -> Tensor:
    """Elements replaced by zero with probability ``p``, others divided by ``1 - p``.

    Args:
        x: Floats of any shape.
        p: The probability.
        training: If false, ``x`` is returned as it is.
        key: The key of the random numbers; without one the next of ``ti.tensor.random``, in programs another at each
            call.

    Raises:
        ValueError: If ``p`` is not from 0 to 1.
    """
    x = _checks.floats(x, "`dropout`")
    return _dropped(x, p, training, key, x.shape, "`dropout`")


def dropout_channels(x: Any, p: float = 0.5, training: bool = True, *, key: Any = None) -> Tensor:
    """``dropout`` of whole channels: of all elements that share their indices along the first two axes.

    Raises:
        ValueError: If ``p`` is not from 0 to 1, or ``x`` has fewer than two axes.
    """
    x = _checks.floats(x, "`dropout_channels`")
    if x.ndim < 2:
        raise ValueError(f"`dropout_channels` takes at least two axes, the shape is {x._native.shape_text()}")
    return _dropped(x, p, training, key, (*x.shape[:2], *[1] * (x.ndim - 2)), "`dropout_channels`")


def _dropped(x: Tensor, p: float, training: bool, key: Any, shape: Any, called: str) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{called}: the probability is from 0 to 1, not {p}")
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return x * 0.0
    if key is None:
        key = random.default.call_key()
    kept = random.uniform(key, list(shape) if tracing.program is not None else shape, dtype="f32") >= p
    return where(kept, x * (1.0 / (1.0 - p)), 0.0)
