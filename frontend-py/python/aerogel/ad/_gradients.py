"""Where gradients lie: finding them, clearing them, setting them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

from aerogel import _native
from aerogel.ad import _recorder
from aerogel.data import snode
from aerogel.data._derivatives import SNodeGradType, derivative_of, is_there
from aerogel.data._field import Field
from aerogel.data.field import NumericField
from aerogel.data.ndarray import Ndarray
from aerogel.errors import AerogelRuntimeError, AerogelRuntimeTypeError


def _fields_below(node: Any) -> Iterator[Any]:
    for reference in node._fields:
        field = reference()
        if field is not None:
            yield field
    for child in node._children:
        yield from _fields_below(child)


def all_fields() -> list[Any]:
    """The fields of all layouts in use."""
    snode._materialize()
    found: dict[int, Any] = {}
    for builder in list(snode._finished.values()):
        for field in _fields_below(builder.root):
            found[id(field)] = field
    return list(found.values())


def fields_with_gradients(kind: str = "grad") -> list[Any]:
    """The fields of all layouts that have gradients (``"grad"``) or tangents (``"dual"``)."""
    return [field for field in all_fields() if derivative_of(field, kind) is not None]


def gradients(kind: str = "grad") -> list[Any]:
    """The fields that hold gradients (``"grad"``) or tangents (``"dual"``) and are placed."""
    found = [getattr(field, kind) for field in all_fields()]
    return [gradient for gradient in found if gradient is not None and is_there(gradient)]


def clear_all_gradients(gradient_type: SNodeGradType | str = SNodeGradType.ADJOINT) -> None:
    """Sets the gradients of all fields to zero; those of arrays are cleared by ``x.grad.fill(0)``.

    Args:
        gradient_type: ``SNodeGradType.ADJOINT`` for gradients, ``SNodeGradType.DUAL`` for tangents.
    """
    kinds = {SNodeGradType.ADJOINT: "grad", SNodeGradType.DUAL: "dual", "grad": "grad", "dual": "dual"}
    if gradient_type not in kinds:
        raise AerogelRuntimeError(f"gradients are SNodeGradType.ADJOINT or SNodeGradType.DUAL, not {gradient_type!r}")
    with _recorder.unrecorded():
        _native.clear_derivatives(gradients(kinds[gradient_type]), kinds[gradient_type] == "dual")


def listed(given: Any) -> tuple[list[Any], bool]:
    """One thing or several, as a list, and whether there were several."""
    return (list(given), True) if isinstance(given, (list, tuple)) else ([given], False)


def clear(gradient: Any, key: Any, component: int | None) -> None:
    """Sets a gradient to zero: an element, or one of its components, or all of it if there is no key."""
    if key is None:
        gradient.fill(0)
    elif component is not None:
        gradient._set_component(key, component, 0)
    else:
        of_field = isinstance(gradient, NumericField)
        for k in range(gradient._n_components if of_field else math.prod(gradient.element_shape)):
            gradient._set_component(key, k, 0)


def name_of(target: Any) -> str:
    """How messages call a field or an array."""
    name = getattr(target, "_name", "")
    if name:
        return f"`{name}`"
    return "a field without a name" if isinstance(target, Field) else "an array"


def is_tensor(target: Any) -> bool:
    """Whether something is a tensor of PyTorch."""
    return hasattr(target, "requires_grad") and not hasattr(target, "_aerogel_tensor")


def shape_of(target: Any) -> tuple[int, ...]:
    """The shape of all numbers of a field, an array or a tensor, those inside of elements included."""
    if isinstance(target, NumericField):
        return target._array_shape()
    if isinstance(target, Ndarray):
        return (*target.shape, *target.element_shape)
    return tuple(target.shape)


def expect_differentiable(target: Any, kind: str, what: str) -> None:
    """Checks that an object is a field or an array of floats that has gradients.

    Args:
        target: What shall have them.
        kind: ``"grad"`` or ``"dual"``.
        what: How messages begin, as in "the loss of a tape".
    """
    needed = "needs_grad" if kind == "grad" else "needs_dual"
    if is_tensor(target) and kind == "grad":
        if not target.requires_grad:
            raise AerogelRuntimeError(f"{what} has no gradient: the tensor needs requires_grad=True")
        return
    if not isinstance(target, (NumericField, Ndarray)):
        raise AerogelRuntimeTypeError(f"{what} is a field or an array of floats, not {type(target).__name__}")
    if not getattr(target.dtype, "is_float", False):
        raise AerogelRuntimeError(f"{what}, {name_of(target)}, holds {target.dtype}: only floats have derivatives")
    found = getattr(target, kind, None)
    if found is None or not is_there(found):
        raise AerogelRuntimeError(
            f"{what}, {name_of(target)}, has no {'gradient' if kind == 'grad' else 'tangent'}: make it with "
            f"{needed}=True"
        )


def expect_constant(target: Any, what: str) -> None:
    """Checks that a tensor of a field or an array loses no derivative that a tape or forward mode computes.

    Args:
        target: The field or array.
        what: How messages begin, as in "a tensor of".
    """
    recorder = _recorder.current()
    if not isinstance(recorder, _recorder.Recorder) or recorder.constant or recorder.replaced_within:
        return
    kind = "grad" if derivative_of(target, "grad") is not None else "dual"
    if derivative_of(target, kind) is None:
        return
    raise AerogelRuntimeError(
        f"{what} {name_of(target)} is a constant, and {recorder.called} would lose the "
        f"{'gradient' if kind == 'grad' else 'tangent'}: compute with its elements in a kernel, or, where no "
        "derivative should pass, make the tensor before it begins, or from `to_numpy()`"
    )


def gradient_of(target: Any, kind: str = "grad") -> Any:
    """The gradient of a field or an array; of a tensor, made if it is not there."""
    if not is_tensor(target):
        return getattr(target, kind)
    found = grad_of_tensor(target)
    if found is None:
        import torch

        target.grad = found = torch.zeros_like(target, requires_grad=False)
    return found


def grad_of_tensor(tensor: Any) -> Any:
    """The ``grad`` of a tensor, if it is set; without PyTorch's warning that those of computed ones rarely are."""
    if tensor.is_leaf or tensor.retains_grad:
        return tensor.grad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensor.grad


def has_gradient(target: Any) -> bool:
    """Whether what is computed from a field, an array or a tensor counts for a gradient."""
    return bool(target.requires_grad) if is_tensor(target) else derivative_of(target, "grad") is not None


def numbers_of(target: Any) -> Any:
    """All numbers of a field, an array or a tensor as a new NumPy array."""
    if is_tensor(target):
        target = target.detach().cpu()
        # NumPy has no `bfloat16`.
        return (target.float() if str(target.dtype) == "torch.bfloat16" else target).numpy().copy()
    return target.to_numpy()


def set_numbers(target: Any, numbers: Any) -> None:
    """Sets all numbers of a field, an array or a tensor."""
    import numpy as np

    if is_tensor(target):
        import torch

        with torch.no_grad():
            target.detach().copy_(torch.as_tensor(np.asarray(numbers)))
    else:
        target.from_numpy(np.asarray(numbers))


def seed(target: Any, kind: str, given: Any, what: str) -> Any:
    """The seed of a field or an array, as a NumPy array of its shape.

    Args:
        target: The field or array.
        kind: ``"grad"`` or ``"dual"``.
        given: What the user gave: numbers in that shape, or nothing where there is one number.
        what: How messages begin.
    """
    import numpy as np

    shape = shape_of(target)
    size = int(np.prod(shape, dtype=np.int64))
    if given is None:
        if size != 1:
            raise AerogelRuntimeError(
                f"{what}, {name_of(target)}, has {size} elements, of shape {shape}: pass a `seed` of that shape"
            )
        return np.ones(shape)
    if hasattr(given, "to_numpy"):
        given = given.to_numpy()
    elif is_tensor(given):
        given = given.detach().cpu().numpy()
    try:
        out = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise AerogelRuntimeTypeError(f"the seed of {what} is made of numbers, not {given!r}") from None
    if out.size != size or (out.shape != shape and out.ndim != 1 and size != 1):
        raise AerogelRuntimeError(f"the seed of {what}, {name_of(target)}, has shape {out.shape}, not {shape}")
    return out.reshape(shape)


__all__ = ["SNodeGradType", "all_fields", "clear_all_gradients", "gradients"]
