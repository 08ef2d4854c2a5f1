"""Shapes and indices: ``Shape``, ``range``, ``span``, ``end``, ``Index``."""

from __future__ import annotations

import builtins
import math
from typing import Any


class Shape(tuple):  # type: ignore[type-arg]
    """The size of each axis.

    >>> Shape([2, 5]).elements(), Shape([2, 5]).ndim(), Shape([2, 5])
    (10, 2, Shape([2, 5]))
    """

    __slots__ = ()

    def elements(self) -> int:
        """How many elements a tensor of this shape has."""
        return math.prod(self)

    def ndim(self) -> int:
        """How many axes there are."""
        return len(self)

    def dim(self, axis: int) -> int:
        """The size of an axis.

        Raises:
            IndexError: There is no such axis.
        """
        if not 0 <= axis < len(self):
            raise IndexError(f"a shape of {len(self)} axes has no axis {axis}")
        return self[axis]

    def get(self) -> list[int]:
        """The sizes as a list."""
        return list(self)

    def __repr__(self) -> str:
        return f"Shape({list(self)})"


class _End:
    """The end of an axis, in a `range`."""

    def __repr__(self) -> str:
        return "end"


end = _End()


class range:
    """Elements from ``start`` up to ``end`` (exclusive), by steps: ``range(end)``, ``range(start, end, stride=1)``.

    ``fl.end`` is the end of the axis.
    """

    __slots__ = ("key",)

    def __init__(self, start: Any, end_: Any = None, stride: int = 1) -> None:
        if end_ is None:
            start, end_ = 0, start
        for value in (start, end_, stride):
            if not isinstance(value, _End) and not hasattr(value, "__index__"):
                raise TypeError(f"`fl.range` takes integers, not {value!r}")
        if stride <= 0:
            raise ValueError(f"the stride of `fl.range` is above 0, not {stride}; `fl.flip` turns an axis")
        self.key = slice(start, None if isinstance(end_, _End) else end_, stride)

    def __repr__(self) -> str:
        return f"range({self.key.start}, {'end' if self.key.stop is None else self.key.stop}, {self.key.step})"


class _Span:
    """All of an axis."""

    def __repr__(self) -> str:
        return "span"


span = _Span()


class Index:
    """An index of one axis: a number, a `range`, `span`, or a tensor of numbers or conditions."""

    __slots__ = ("key",)

    def __init__(self, value: Any) -> None:
        self.key = _key(value)

    def __repr__(self) -> str:
        return f"Index({self.key!r})"


def _key(value: Any) -> Any:
    if isinstance(value, (range, Index)):
        return value.key
    if value is span:
        return slice(None)
    if isinstance(value, builtins.range):
        return slice(value.start, value.stop if value.stop >= 0 else None, value.step)
    inner = getattr(value, "_values", value)
    if hasattr(inner, "__index__") or hasattr(inner, "shape") or isinstance(inner, slice):
        return inner
    raise TypeError(f"an index is a number, `fl.range`, `fl.span` or a tensor, not {value!r}")


def key_of(indices: Any) -> Any:
    """Indices as Aerogel's own key."""
    indices = indices if isinstance(indices, (list, tuple)) else [indices]
    keys = tuple(_key(i) for i in indices)
    return keys[0] if len(keys) == 1 else keys
