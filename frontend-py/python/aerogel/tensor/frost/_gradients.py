"""Gradients of `aerogel.tensor.frost`: `grad`, and results that pass a gradient to their operand."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from aerogel.tensor import _gradients
from aerogel.tensor._creation import ones_like
from aerogel.tensor._elementwise import isfinite
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor, asarray, tracing

if TYPE_CHECKING:
    from collections.abc import Callable


def grad(value: Any, by: Any, seed: Any = None) -> Any:
    """The gradient of a tensor by another, or by several.

    Args:
        value: A tensor of floats, of any shape.
        by: The tensor, or the list of tensors, of floats by which the gradient is taken. It is 0 for those on which the
            value does not depend.
        seed: The weight of the gradient of each element, of the value's shape. It is 1 by default: the gradient of
            several elements is that of their sum.

    Raises:
        TypeError: If a tensor is not of floats.
        ValueError: If the value depends on a tensor by an operation that has no gradient.
    """
    value = asarray(value)
    if seed is None and _gradients.is_differentiable(value):
        seed = ones_like(value)
    return _gradients._by_tensors(value, by, seed)


class _Operand:
    """The operand of the function that made a tensor."""

    def __init__(self, operand: Tensor) -> None:
        self._operand = operand

    def passing_gradient(self, result: Tensor) -> Tensor:
        """The result, whose gradient passes to the operand as if the function were the identity: for `pass_grad`."""
        x, trace = self._operand, tracing.program
        if trace is None or id(x) in trace.stored:
            raise RuntimeError("`pass_grad`: the operand was modified in between: call it on the result immediately")
        # Zero, with the derivative of the operand; infinities have no difference.
        step = where(isfinite(x), x.detach() - x, 0)
        return result.detach() - step.astype(result.dtype)


def passing(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function, whose results in programs know their first operand, to which `pass_grad` passes a gradient."""

    @functools.wraps(function)
    def called(x: Any, *others: Any) -> Tensor:
        out = function(x, *others)
        if tracing.program is not None and isinstance(x, Tensor):
            # The operand as it is now, if it is one whose value is set.
            out._made = _Operand(x.copy() if id(x) in tracing.program.stored else x)
        return out

    return called


__all__ = ["grad"]
