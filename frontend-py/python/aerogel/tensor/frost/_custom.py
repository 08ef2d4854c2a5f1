"""Operations that users define, and their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel.tensor import _elementwise, _gradients
from aerogel.tensor._creation import ones_like
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor, asarray
from aerogel.tensor.programs import assert_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class _Operation(NamedTuple):
    function: Callable[..., Any]
    vjp: Callable[..., Any] | None


#: By name.
_OPERATIONS: dict[str, _Operation] = {}


def register_custom_operation(
    name: str, overloads: Sequence[str], impl: Callable[..., Any], vjp: Callable[..., Any] | None = None
) -> None:
    """Gives a function a name, by which `custom` calls it.

    Args:
        name: The name.
        overloads: The dtypes of operands and results; they follow from the function here.
        impl: Called with the list of operands, the first operand, and an empty list; it returns the list of results.
        vjp: The derivative: called with the list of operands, the gradient of the result and the result, it returns the
            list of gradients by the operands. Without it, gradients go through the operations of ``impl``.
    """
    _OPERATIONS[name] = _Operation(impl, vjp)


def custom(name: str, inputs: Sequence[Any], shape: Any = None) -> Any:
    """The result of an operation that `register_custom_operation` has named, or the list of its results.

    Raises:
        ValueError: If no operation has this name, or one with a ``vjp`` has several results.
    """
    if name not in _OPERATIONS:
        raise ValueError(f"no operation is registered as {name!r}")
    operation = _OPERATIONS[name]
    given = [asarray(x) for x in inputs]
    own = given if operation.vjp is None else [x.detach() for x in given]
    results = operation.function(own, own[0], [])
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    if operation.vjp is None:
        return results[0] if len(results) == 1 else results
    if len(results) != 1:
        raise ValueError(f"the operation {name!r} has a `vjp` and must have one result, not {len(results)}")
    return _with_gradient(name, given, own, asarray(results[0]))


def _with_gradient(name: str, given: list[Tensor], own: list[Tensor], value: Tensor) -> Tensor:
    """The value, whose gradient by ``given`` is what the operation's ``vjp`` returns.

    ``vjp`` is linear in the gradient that it is given. Its own gradient by that, weighted by changes of the operands,
    is the change of the result: zero here, and transposed back to ``vjp`` where a gradient is taken.
    """
    seeds = _gradients._Variables("custom")
    with _gradients.enable_grad():
        seed = seeds.of(ones_like(value), "the result")
        # Zeros that change as the operands do; infinities have no difference.
        steps = [where(_elementwise.isfinite(fixed), x - fixed, 0) for x, fixed in zip(given, own)]
        gradients = _gradients_of(name, own, seed, value.detach())
        pairs = [(g, step) for g, step in zip(gradients, steps) if g is not None]
        if not pairs:
            return value.detach()
        (change,) = seeds.gradients(pairs)
    # Where a derivative is infinite the value is not, and the gradient is that of a root at zero.
    is_finite = _elementwise.isfinite(change)
    total = steps[0].sum()
    for step in steps[1:]:
        total = total + step.sum()
    steep = _elementwise.sqrt(where(is_finite, 1.0, total))
    return value.detach() + where(is_finite, change, steep)


def _gradients_of(name: str, operands: list[Tensor], seed: Tensor, value: Tensor) -> list[Any]:
    """The gradients by the operands, for a gradient of the result; ``None`` for those that have none."""
    vjp: Any = _OPERATIONS[name].vjp
    made = vjp(operands, seed, value)
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    if len(made) != len(operands):
        raise ValueError(f"the `vjp` of {name!r} returns {len(made)} gradients for {len(operands)} operands")
    made = [g if _gradients.is_differentiable(x) else None for g, x in zip(made, operands)]
    for g, x in zip(made, operands):
        if g is not None and g._native.shape_text() != x._native.shape_text():
            assert_tensor(g, x.shape)
    return made


__all__ = ["custom", "register_custom_operation"]
