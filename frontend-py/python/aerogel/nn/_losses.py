"""Losses: how far predictions are from targets, as one number or one for each element."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import bf16, f16, f32
from aerogel.nn import _checks
from aerogel.tensor import _unknown
from aerogel.tensor._elementwise import abs, exp, log, log1p, maximum, sqrt
from aerogel.tensor._reductions import log_softmax
from aerogel.tensor._searching import take, take_along_axis, where
from aerogel.tensor._shapes import moveaxis
from aerogel.tensor._special import softplus
from aerogel.tensor._tensor import Tensor, asarray, operands


def _reduced(loss: Tensor, reduction: str, called: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{called}: the reduction is 'mean', 'sum' or 'none', not {reduction!r}")


def _both(x: Any, target: Any, called: str) -> tuple[Tensor, Tensor]:
    """Predictions and targets of one shape."""
    x, target = _checks.floats(x, called), _checks.tensor(target, called)
    if x.ndim != target.ndim or any(map(_unknown.differ, x.shape, target.shape)):
        raise ValueError(
            f"{called}: the input has the shape {x._native.shape_text()}, the target {target._native.shape_text()}; "
            "they must be the same"
        )
    return tuple(operands(x, target))  # type: ignore[return-value]


def mse_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """``(x - target)²``.

    Args:
        x: The predictions.
        target: Of the same shape.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: If the shapes differ.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.nn.functional.mse_loss([1.0, 2.0], [1.0, 4.0]).item()
    2.0
    """
    x, target = _both(x, target, "`mse_loss`")
    off = x - target
    return _reduced(off * off, reduction, "`mse_loss`")


def l1_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """``|x - target|``; arguments as for ``mse_loss``."""
    x, target = _both(x, target, "`l1_loss`")
    return _reduced(abs(x - target), reduction, "`l1_loss`")


def huber_loss(x: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """``(x - target)² / 2`` where the difference is at most ``delta``, else ``delta * (|x - target| - delta / 2)``.

    Raises:
        ValueError: If ``delta`` is not positive.
    """
    if not delta > 0:
        raise ValueError(f"`huber_loss`: `delta` is positive, not {delta}")
    x, target = _both(x, target, "`huber_loss`")
    size = abs(x - target)
    loss = where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))
    return _reduced(loss, reduction, "`huber_loss`")


def smooth_l1_loss(x: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """``(x - target)² / (2 beta)`` where the difference is less than ``beta``, else ``|x - target| - beta / 2``.

    Raises:
        ValueError: If ``beta`` is below zero.
    """
    if beta < 0:
        raise ValueError(f"`smooth_l1_loss`: `beta` is not below zero, {beta} is")
    if beta == 0:
        return l1_loss(x, target, reduction)
    x, target = _both(x, target, "`smooth_l1_loss`")
    size = abs(x - target)
    loss = where(size < beta, size * size * (0.5 / beta), size - 0.5 * beta)
    return _reduced(loss, reduction, "`smooth_l1_loss`")


def binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """``-(target log x + (1 - target) log(1 - x))`` of probabilities; logarithms are -100 at least.

    Args:
        x: Probabilities.
        target: Of the same shape, from 0 to 1.
        weight: A factor of each loss, or ``None``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: If the shapes differ.
    """
    x, target = _both(x, target, "`binary_cross_entropy`")
    yes, no = maximum(log(x), -100.0), maximum(log1p(-x), -100.0)
    loss = (target - 1.0) * no - target * yes
    return _reduced(loss if weight is None else loss * weight, reduction, "`binary_cross_entropy`")


def binary_cross_entropy_with_logits(
    x: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """``binary_cross_entropy`` of ``sigmoid(x)``, with all digits at large ``x``.

    Args:
        x: Logits.
        target: Of the same shape, from 0 to 1.
        weight: A factor of each loss, or ``None``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        pos_weight: A factor of the loss of positive targets, or ``None``.

    Raises:
        ValueError: If the shapes differ.
    """
    called = "`binary_cross_entropy_with_logits`"
    x, target = _both(x, target, called)
    tail = softplus(-x)
    positive = 1.0 if pos_weight is None else (asarray(pos_weight) - 1.0) * target + 1.0
    loss = (1.0 - target) * x + positive * tail
    return _reduced(loss if weight is None else loss * weight, reduction, called)


def hinge_loss(x: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """``max(0, margin - target x)``; targets are 1 and -1."""
    x, target = _both(x, target, "`hinge_loss`")
    return _reduced(maximum(margin - target * x, 0.0), reduction, "`hinge_loss`")


def kl_div(x: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """``target (log(target) - x)``: how far the distribution with the logarithms ``x`` is from ``target``.

    Args:
        x: Logarithms of probabilities.
        target: Probabilities of the same shape, or their logarithms.
        reduction: ``"batchmean"`` (the sum by the size of the first axis), ``"mean"``, ``"sum"`` or ``"none"``.
        log_target: Whether ``target`` has logarithms.

    Raises:
        ValueError: If the shapes differ.
    """
    x, target = _both(x, target, "`kl_div`")
    if log_target:
        loss = exp(target) * (target - x)
    else:
        positive = target > 0
        loss = where(positive, target * (log(where(positive, target, 1.0)) - x), 0.0)
    if reduction == "batchmean":
        return loss.sum() / x.shape[0]
    return _reduced(loss, reduction, "`kl_div`")


def cosine_similarity(x1: Any, x2: Any, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis; lengths are ``eps`` at least."""
    x1, x2 = _checks.floats(x1, "`cosine_similarity`"), _checks.floats(x2, "`cosine_similarity`")
    # The root is taken of what is positive, so that vectors of zeros have a derivative.
    lengths = [sqrt(maximum((x * x).sum(axis=axis), eps * eps)) for x in (x1, x2)]
    return (x1 * x2).sum(axis=axis) / (lengths[0] * lengths[1])


def nll_loss(
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    *,
    axis: int | None = None,
) -> Tensor:
    """Minus the logarithm of the probability of each target; arguments as for ``cross_entropy``, ``x`` logarithms."""
    x, target, axis = _classes(x, target, axis, "`nll_loss`")
    return _picked(moveaxis(x, axis, -1), target, weight, ignore_index, reduction, 0.0, "`nll_loss`")


def cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    axis: int | None = None,
) -> Tensor:
    """Minus the logarithm of the softmax of ``x`` at each target.

    Args:
        x: Logits: shape (batch, classes, ...), or (classes,).
        target: The index of a class for each place, shape (batch, ...); or floats of the shape of ``x``, the
            probability of each class.
        weight: A weight for each class, or ``None``. A mean is divided by the sum of the weights of the targets.
        ignore_index: Places with this target count as nothing.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        label_smoothing: Which part of each target is spread equally over all classes.
        axis: The axis of the classes, if it is not the second (of one axis, the first).

    Raises:
        ValueError: If shapes do not agree, or ``label_smoothing`` is not from 0 to 1.
        IndexError: If a target is no class; when the loss is computed.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.nn.functional.cross_entropy([[0.0, 0.0], [0.0, 0.0]], [0, 1]).item()
    0.6931471824645996
    """
    called = "`cross_entropy`"
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"{called}: `label_smoothing` is from 0 to 1, not {label_smoothing}")
    x, target, axis = _classes(x, target, axis, called)
    if x.dtype in (f16, bf16):
        loss = cross_entropy(x.astype(f32), target, weight, ignore_index, reduction, label_smoothing, axis=axis)
        return loss.astype(x.dtype)
    logs = moveaxis(log_softmax(x, axis), axis, -1)
    if not target.dtype.is_float:
        return _picked(logs, target, weight, ignore_index, reduction, label_smoothing, called)
    n = x.shape[axis]
    target = moveaxis(target, axis, -1)
    if label_smoothing:
        target = target * (1.0 - label_smoothing) + label_smoothing / n
    parts = logs * target
    return _reduced(-(parts if weight is None else parts * weight).sum(axis=-1), reduction, called)


def _classes(x: Any, target: Any, axis: int | None, called: str) -> tuple[Tensor, Tensor, int]:
    """Logits, targets that agree with them, and the axis of the classes."""
    x, target = _checks.floats(x, called), _checks.tensor(target, called)
    if x.ndim == 0:
        raise ValueError(f"{called} takes at least one axis of classes, the input is a scalar")
    at = min(1, x.ndim - 1) if axis is None else axis % x.ndim
    if target.dtype.is_float:
        wanted = x.shape
    else:
        wanted = (*x.shape[:at], *x.shape[at + 1 :])
        if target.dtype.kind not in "iu":
            raise TypeError(f"{called}: targets are integers, or floats for probabilities, not `{target.dtype}`")
    if len(wanted) != target.ndim or any(map(_unknown.differ, wanted, target.shape)):
        kind = "probabilities" if target.dtype.is_float else "indices of classes"
        raise ValueError(
            f"{called}: the input has the shape {x._native.shape_text()} with classes along axis {at}, targets that "
            f"are {kind} then have {tuple(wanted)}, not {target._native.shape_text()}"
        )
    return x, target, at


def _picked(
    logs: Tensor, target: Tensor, weight: Any, ignore: int, reduction: str, smoothing: float, called: str
) -> Tensor:
    """The loss of targets that are indices; classes are along the last axis of ``logs``."""
    if target.dtype.kind not in "iu":
        raise TypeError(f"{called}: targets are integers, not `{target.dtype}`")
    counts = target != ignore
    index = where(counts, target, 0)
    loss = -take_along_axis(logs, index.unsqueeze(-1), axis=-1).squeeze(-1)
    of_target = counts.astype(logs.dtype)
    if weight is not None:
        weight = _checks.tensor(weight, called).astype(logs.dtype)
        if weight.ndim != 1 or _unknown.differ(weight.shape[0], logs.shape[-1]):
            raise ValueError(
                f"{called}: `weight` has one number for each class, {logs.shape[-1]}, its shape is "
                f"{weight._native.shape_text()}"
            )
        of_target = of_target * take(weight, index, axis=0)
    loss = where(counts, loss * of_target, 0.0)
    if smoothing:
        spread = -(logs if weight is None else logs * weight).sum(axis=-1)
        loss = loss * (1.0 - smoothing) + where(counts, spread, 0.0) * (smoothing / logs.shape[-1])
    if reduction == "mean":
        return loss.sum() / of_target.sum()
    return _reduced(loss, reduction, called)
