"""Checks of the inputs of layers; their errors name the layer and its parameter."""

from __future__ import annotations

from typing import Any

from aerogel.nn._parameter import is_lazy
from aerogel.tensor import _unknown
from aerogel.tensor._tensor import Tensor, asarray


def tensor(x: Any, called: str) -> Tensor:
    """The input as a tensor of real numbers."""
    x = asarray(x)
    if not isinstance(x, Tensor):
        raise TypeError(f"{called} takes real numbers, not `{x.dtype}`")
    return x


def floats(x: Any, called: str) -> Tensor:
    """The input as a tensor of floats.

    Raises:
        TypeError: If it has other elements.
    """
    x = tensor(x, called)
    if not x.dtype.is_float:
        raise TypeError(f"{called} takes floats, not `{x.dtype}`: convert the input, as by `x.astype(ti.f32)`")
    return x


def indices(x: Any, called: str) -> Tensor:
    """The input as a tensor of integers.

    Raises:
        TypeError: If it has other elements.
    """
    x = tensor(x, called)
    if x.dtype.kind not in "iu":
        raise TypeError(f"{called} takes integers, not `{x.dtype}`")
    return x


def axes(x: Tensor, called: str, *ranks: int, what: str = "") -> Tensor:
    """The input, which has one of these numbers of axes.

    Raises:
        ValueError: If it has not.
    """
    if x.ndim not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise ValueError(
            f"{called} takes {wanted} axes{f' ({what})' if what else ''}, the shape of the input is "
            f"{x._native.shape_text()}"
        )
    return x


def size(x: Tensor, axis: int, wanted: Any, called: str, parameter: str, shape: Any = None) -> None:
    """Checks that an axis of the input has the size of a parameter's axis; in programs, possibly when they run.

    Raises:
        ValueError: If it has not.
    """
    n = x.shape[axis]
    if _unknown.differ(n, wanted):
        of = f" of shape {tuple(shape)}" if shape is not None else ""
        raise ValueError(
            f"{called}: axis {axis % x.ndim} of the input has {n} elements, and `{parameter}`{of} takes {wanted}; the "
            f"shape of the input is {x._native.shape_text()}"
        )


def infer(module: Any, name: str, *shape: Any) -> Tensor:
    """A parameter of a module, whose open sizes follow from the input.

    Raises:
        ValueError: If it has another shape; the error names both.
    """
    parameter = getattr(module, name)
    if not is_lazy(parameter):
        return parameter
    try:
        return parameter.infer(*shape)
    except ValueError as e:
        raise ValueError(f"{module._label()}, `{name}`: {e}") from None
