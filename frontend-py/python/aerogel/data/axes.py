"""Axes of layouts, and the numbers that describe them."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any

from aerogel.errors import AerogelExtentError


class Axis:
    """An index axis: ``ti.i`` is the first."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Axis({self.value})"


def is_grid(shape: Any) -> bool:
    """Whether something given as a shape is a grid of ``ti.mpi.grid``."""
    return "aerogel.mpi" in sys.modules and isinstance(shape, sys.modules["aerogel.mpi"].Grid)


_AXES = [Axis(k) for k in range(12)]


def axes(*x: int) -> list[Axis]:
    """The index axes with these numbers.

    Raises:
        AerogelExtentError: There is no such axis.
    """
    for k in x:
        if not 0 <= k < len(_AXES):
            raise AerogelExtentError(f"there is no axis {k}: a field has at most {len(_AXES)} axes, numbered from 0")
    return [_AXES[k] for k in x]


i, j, k, l = ([_AXES[n]] for n in range(4))
ij, ik, il, jk, jl, kl = axes(0, 1), axes(0, 2), axes(0, 3), axes(1, 2), axes(1, 3), axes(2, 3)
ijk, ijl, ikl, jkl = axes(0, 1, 2), axes(0, 1, 3), axes(0, 2, 3), axes(1, 2, 3)
ijkl = axes(0, 1, 2, 3)


class Layout:
    """The layout of the components of a matrix field in memory."""

    class _Kind:
        def __init__(self, name: str, value: int) -> None:
            self.name, self.value = name, value

        def __repr__(self) -> str:
            return f"Layout.{self.name}"

    AOS = _Kind("AOS", 0)  #: The components of an element side by side.
    SOA = _Kind("SOA", 1)  #: All first components, then all second ones.
    NULL = _Kind("NULL", 2)


def offsets(offset: int | Sequence[int] | None) -> list[int] | None:
    """The offset of each axis."""
    if offset is None:
        return None
    return [int(offset)] if is_int(offset) else [int(o) for o in offset]  # type: ignore[union-attr,arg-type]


def is_int(x: Any) -> bool:
    """Whether this counts as an integer."""
    try:
        operator.index(x)
    except TypeError:
        return False
    return True


def extent(d: Any, what: str = "an extent") -> int:
    """The size of an axis of a node.

    Raises:
        TypeError: It is no integer.
        AerogelExtentError: It is less than one.
        ValueError: It is 2^32 or more.
    """
    try:
        n = operator.index(d)
    except TypeError:
        raise TypeError(f"{what} must be an integer, not {d!r}") from None
    if n <= 0:
        raise AerogelExtentError(f"{what} must be at least 1, not {n}")
    if n >= 1 << 32:
        raise ValueError(f"{what} must be less than 2^32, not {n}")
    return n
