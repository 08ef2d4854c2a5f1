"""Tensors put together and taken apart, as NumPy has it, and sizes of axes that functions agree on."""

from __future__ import annotations

import operator
from typing import Any

from aerogel.tensor import _types
from aerogel.tensor._shapes import concat, expand_dims, reshape, split, stack
from aerogel.tensor._tensor import Tensor, asarray


def _each(function: Any, arrays: tuple[Any, ...]) -> Any:
    """The result of one array, and a tuple of those of several."""
    made = tuple(function(asarray(a)) for a in arrays)
    return made[0] if len(made) == 1 else made


def atleast_1d(*arrays: Any) -> Any:
    """Tensors with at least one axis; for several arrays a tuple."""
    return _each(lambda x: x if x.ndim else reshape(x, (1,)), arrays)


def atleast_2d(*arrays: Any) -> Any:
    """Tensors with at least two axes, new ones before the others; for several arrays a tuple."""
    return _each(lambda x: expand_dims(x, list(range(max(2 - x.ndim, 0)))), arrays)


def atleast_3d(*arrays: Any) -> Any:
    """Tensors with at least three axes: a vector becomes the middle one, a matrix the first two."""
    new = {0: [0, 1, 2], 1: [0, 2], 2: [2]}
    return _each(lambda x: expand_dims(x, new.get(x.ndim, [])), arrays)


def _list_of(arrays: Any, name: str) -> list[Any]:
    if isinstance(arrays, Tensor) and arrays.ndim:
        return list(arrays)
    if not isinstance(arrays, (list, tuple)) and not getattr(arrays, "ndim", 0):
        raise TypeError(f"`{name}` takes its tensors in one list, as in `{name}([a, b])`")
    made = list(arrays)
    if not made:
        raise ValueError(f"`{name}` takes at least one tensor")
    return made


def hstack(arrays: Any, /, *, dtype: Any = None) -> Tensor:
    """Tensors one after the other along the second axis; vectors along their only one.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.hstack([[1, 2], [3]]).tolist(), xp.vstack([[1, 2], [3, 4]]).tolist()
    ([1, 2, 3], [[1, 2], [3, 4]])
    """
    made = [atleast_1d(a) for a in _list_of(arrays, "hstack")]
    return _of_type(concat(made, axis=0 if made[0].ndim == 1 else 1), dtype)


def vstack(arrays: Any, /, *, dtype: Any = None) -> Tensor:
    """Tensors one after the other along the first axis, vectors as rows."""
    return _of_type(concat([atleast_2d(a) for a in _list_of(arrays, "vstack")], axis=0), dtype)


def dstack(arrays: Any, /, *, dtype: Any = None) -> Tensor:
    """Tensors one after the other along the third axis, which vectors and matrices get."""
    return _of_type(concat([atleast_3d(a) for a in _list_of(arrays, "dstack")], axis=2), dtype)


def column_stack(arrays: Any, /) -> Tensor:
    """Vectors as the columns of a matrix; matrices beside each other."""
    made = [asarray(a) for a in _list_of(arrays, "column_stack")]
    return concat([reshape(a, (-1, 1)) if a.ndim < 2 else a for a in made], axis=1)


def _of_type(x: Any, dtype: Any) -> Any:
    return x if dtype is None else x.astype(dtype)


def block(arrays: Any, /) -> Tensor:
    """A tensor of nested lists of blocks: the innermost lists along the last axis, those around along the one before.

    Raises:
        ValueError: For an empty list, or lists of different depths.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.block([[xp.ones((1, 1)), xp.zeros((1, 2))], [xp.ones((1, 3))]]).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    depth = _depth(arrays)
    rank = max(depth, *(x.ndim for x in _leaves(arrays)))
    return _blocks(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        if isinstance(arrays, tuple):
            raise TypeError("`block` takes lists, not tuples")
        return 0
    if not arrays:
        raise ValueError("`block`: a list is empty")
    depths = {_depth(a) for a in arrays}
    if len(depths) > 1:
        raise ValueError("`block`: all blocks must be nested equally deep")
    return depths.pop() + 1


def _leaves(arrays: Any) -> list[Any]:
    return [x for a in arrays for x in _leaves(a)] if isinstance(arrays, list) else [asarray(arrays)]


def _blocks(arrays: Any, depth: int, rank: int) -> Any:
    if not isinstance(arrays, list):
        x = asarray(arrays)
        return expand_dims(x, list(range(rank - x.ndim))) if x.ndim < rank else x
    return concat([_blocks(a, depth - 1, rank) for a in arrays], axis=rank - depth)


def append(x: Any, values: Any, /, axis: int | None = None) -> Tensor:
    """A tensor with values behind it along an axis; without one all elements row by row."""
    return concat([asarray(x), asarray(values)], axis=axis)


def array_split(x: Any, sections: Any, /, axis: int = 0) -> list[Tensor]:
    """Splits the tensor into a number of nearly equal parts along an axis, or before given indices.

    Raises:
        ValueError: For no parts; in a program, if the number of elements is known only when it runs.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> [part.tolist() for part in xp.array_split([1, 2, 3], 2)]
    [[1, 2], [3]]
    """
    x = asarray(x)
    if not hasattr(sections, "__index__") or getattr(sections, "ndim", 0):
        return _split(x, sections, axis, "array_split")
    axis = _types.axis(axis, x.ndim, "array_split")
    n, parts = x.shape[axis], operator.index(sections)
    if parts <= 0:
        raise ValueError(f"`array_split`: `sections` must be at least 1, not {parts}")
    # The first ones have one element more.
    size, more = n // parts, n % parts
    ends: list[Any] = []
    for k in range(1, parts):
        ends.append(k * size + (min(k, more) if isinstance(more, int) else _least(k, more)))
    return split(x, ends, axis=axis) if ends else [x]


def _least(k: int, n: Any) -> Any:
    from aerogel.tensor._elementwise import minimum

    return minimum(n, k)


def _split(x: Any, sections: Any, axis: int, name: str) -> list[Tensor]:
    x = asarray(x)
    axis = _types.axis(axis, x.ndim, name)
    if getattr(sections, "ndim", 0):
        sections = [int(k) for k in asarray(sections).numpy()]
    return split(x, sections, axis=axis)


def hsplit(x: Any, sections: Any, /) -> list[Tensor]:
    """``split`` along the second axis; of a vector along its only one."""
    x = asarray(x)
    return _split(x, sections, min(1, x.ndim - 1), "hsplit")


def vsplit(x: Any, sections: Any, /) -> list[Tensor]:
    """``split`` along the first of two axes or more."""
    x = asarray(x)
    if x.ndim < 2:
        raise ValueError(f"`vsplit` takes at least two axes, the shape is {x.shape}")
    return _split(x, sections, 0, "vsplit")


def dsplit(x: Any, sections: Any, /) -> list[Tensor]:
    """``split`` along the third of three axes or more."""
    x = asarray(x)
    if x.ndim < 3:
        raise ValueError(f"`dsplit` takes at least three axes, the shape is {x.shape}")
    return _split(x, sections, 2, "dsplit")


__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "column_stack", "dsplit", "dstack",
    "hsplit", "hstack", "stack", "vsplit", "vstack",
]  # fmt: skip
