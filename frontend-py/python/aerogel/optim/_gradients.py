"""Gradients made smaller, and losses that keep parameters small."""

from __future__ import annotations

import functools
import math
from typing import Any

from aerogel.nn._module import Module
from aerogel.nn._parameter import data_of
from aerogel.optim._optimizer import Numbers
from aerogel.tensor._backward import no_grad
from aerogel.tensor._elementwise import abs, maximum, minimum
from aerogel.tensor._tensor import Tensor, asarray


def _listed(params: Any, called: str) -> list[Any]:
    if isinstance(params, Module):
        return list(params.parameters())
    given = [params] if isinstance(params, Tensor) else list(params)
    for k, p in enumerate(given):
        if not isinstance(p, Tensor):
            raise TypeError(f"`{called}`: parameter {k} is {type(p).__name__}, not a tensor")
    return given


def clip_grad_value_(params: Any, clip_value: float) -> None:
    """Limits each element of the gradients to ``-clip_value`` and ``clip_value``.

    Args:
        params: A module, a parameter, or a list of them. Those without gradients are left out.
        clip_value: The limit.

    Raises:
        ValueError: If the limit is below zero.
    """
    if not clip_value >= 0:
        raise ValueError(f"`clip_grad_value_`: the limit must be at least 0, not {clip_value}")
    with no_grad():
        for p in _listed(params, "clip_grad_value_"):
            if (g := p.grad) is not None:
                limit = Numbers(g.dtype)
                p.grad = maximum(minimum(data_of(g), limit(clip_value)), limit(-clip_value))


def clip_grad_norm_(params: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """Makes all gradients smaller by one factor, if their norm together is larger than ``max_norm``.

    Args:
        params: A module, a parameter, or a list of them. Those without gradients are left out.
        max_norm: The largest norm.
        norm_type: Which norm: 2, 1, ``math.inf``, or another positive number.
        error_if_nonfinite: Whether a norm that is infinite or NaN is an error; it is computed at once then.

    Returns:
        The norm before.

    Raises:
        ValueError: If ``max_norm`` is below zero, or ``norm_type`` not positive.
        RuntimeError: If the norm is not finite.
    """
    if not max_norm >= 0 or not norm_type > 0:
        raise ValueError(f"`clip_grad_norm_`: the norm of order {norm_type} must be at least 0, not {max_norm}")
    with no_grad():
        own = [p for p in _listed(params, "clip_grad_norm_") if p.grad is not None]
        if not own:
            return asarray(0.0)
        sizes = [abs(data_of(p.grad)) for p in own]
        if norm_type == math.inf:
            total = functools.reduce(maximum, [s.max() for s in sizes])
        else:
            total = functools.reduce(lambda a, b: a + b, [(s**norm_type).sum() for s in sizes]) ** (1.0 / norm_type)
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise RuntimeError(f"`clip_grad_norm_`: the norm of the gradients is {total.item()}")
        factor = minimum(Numbers(total.dtype)(max_norm) / (total + 1e-6), 1.0)
        for p in own:
            p.grad = data_of(p.grad) * factor.astype(p.grad.dtype)
        return total


def l1(params: Any, weight: float = 1.0) -> Tensor:
    """``weight`` times the sum of the sizes of all elements: a term of a loss that makes many of them zero.

    Args:
        params: A module, a parameter, or a list of them.
        weight: The factor of the sum.
    """
    return _summed([abs(p).sum() for p in _listed(params, "l1")], weight)


def l2(params: Any, weight: float = 1.0) -> Tensor:
    """``weight`` times the sum of the squares of all elements: a term of a loss that keeps them small."""
    return _summed([(p * p).sum() for p in _listed(params, "l2")], weight)


def _summed(parts: list[Tensor], weight: float) -> Tensor:
    if not parts:
        return asarray(0.0)
    total = functools.reduce(lambda a, b: a + b, parts)
    return total * Numbers(total.dtype)(weight)
