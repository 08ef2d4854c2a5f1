"""Indices of parts of matrices, of elements counted row by row, and choices among several tensors."""

from __future__ import annotations

import functools
import math
from typing import Any

from aerogel._dtypes import u1
from aerogel.tensor import _complex, _types
from aerogel.tensor._searching import clip, nonzero, where
from aerogel.tensor._shapes import reshape
from aerogel.tensor._tensor import Tensor, asarray, is_number, operands
from aerogel.tensor._unknown import differ, expect


def _triangle(name: str, n: Any, k: Any, m: Any) -> tuple[Tensor, Tensor]:
    """The indices of a triangle, computed from known integers."""
    import numpy as np

    sizes = _types.whole_numbers([n, n if m is None else m], name)
    _types.counts(sizes, name, "n")
    (k,) = _types.whole_numbers([k], name)
    rows, columns = np.nonzero(getattr(np, name)(np.ones(sizes, bool), k))
    return asarray(rows.astype(np.int32)), asarray(columns.astype(np.int32))


def tril_indices(n: int, /, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """The rows and the columns of the elements on and below a diagonal of an ``n`` by ``m`` matrix.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> [i.tolist() for i in xp.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _triangle("tril", n, k, m)


def triu_indices(n: int, /, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """The rows and the columns of the elements on and above a diagonal of an ``n`` by ``m`` matrix."""
    return _triangle("triu", n, k, m)


def _of_matrix(x: Any, name: str) -> tuple[Any, Any]:
    x = asarray(x)
    if x.ndim != 2:
        raise ValueError(f"`{name}` takes a matrix, the shape is {x.shape}")
    return x.shape


def tril_indices_from(x: Any, /, k: int = 0) -> tuple[Tensor, Tensor]:
    """``tril_indices`` for the shape of a matrix."""
    n, m = _of_matrix(x, "tril_indices_from")
    return tril_indices(n, k, m)


def triu_indices_from(x: Any, /, k: int = 0) -> tuple[Tensor, Tensor]:
    """``triu_indices`` for the shape of a matrix."""
    n, m = _of_matrix(x, "triu_indices_from")
    return triu_indices(n, k, m)


def diag_indices(n: Any, /, ndim: int = 2) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of a tensor with ``ndim`` axes of size ``n``."""
    from aerogel.tensor._creation import arange

    if not hasattr(n, "__index__"):
        raise TypeError(f"`diag_indices`: `n` takes an integer, not {n!r}")
    return (arange(n),) * ndim


def diag_indices_from(x: Any, /) -> tuple[Tensor, ...]:
    """``diag_indices`` for the shape of a tensor with equal axes, of which there are two at least."""
    x = asarray(x)
    if x.ndim < 2 or any(differ(n, x.shape[0]) for n in x.shape):
        raise ValueError(f"`diag_indices_from` takes at least two axes, all of one size: the shape is {x.shape}")
    return diag_indices(x.shape[0], x.ndim)


def indices(dimensions: Any, /, dtype: Any = None, sparse: bool = False) -> Any:
    """The index along each axis at every point of a shape, along a first axis; ``sparse``: a tuple, not broadcast."""
    from aerogel.tensor._creation import arange
    from aerogel.tensor._shapes import broadcast_to, stack

    shape = tuple(dimensions)
    kind = dtype if dtype is not None else _types.default_int()
    made = []
    for axis, n in enumerate(shape):
        own: list[Any] = [1] * len(shape)
        own[axis] = n
        made.append(reshape(arange(n, dtype=kind), own))
    if sparse:
        return tuple(made)
    if not made:
        raise ValueError("`indices` takes a shape with one axis at least")
    return stack([broadcast_to(i, shape) for i in made])


def flatnonzero(x: Any, /) -> Tensor:
    """The row-major indices of the nonzero elements; evaluated at once."""
    return nonzero(reshape(asarray(x), (-1,)))[0]


def select(condlist: Any, choicelist: Any, /, default: Any = 0) -> Any:
    """The elements of the choice whose condition is the first that holds, else the default.

    Raises:
        ValueError: For no conditions, or other numbers of choices than of conditions.
        TypeError: For a condition that is no boolean.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x = xp.arange(6)
    >>> xp.select([x < 2, x > 3], [x, x * 10], -1).tolist()
    [0, 1, -1, -1, 40, 50]
    """
    conditions, choices = [asarray(c) for c in condlist], list(choicelist)
    if len(conditions) != len(choices):
        raise ValueError(f"`select`: {len(conditions)} conditions for {len(choices)} choices")
    if not conditions:
        raise ValueError("`select` takes at least one condition")
    for c in conditions:
        if _complex.is_complex(c) or c.dtype is not u1:
            raise TypeError(f"`select`: a condition is boolean, not `{c.dtype}`")
    if not any(_complex.is_complex(x) for x in (*choices, default)):
        *choices, default = operands(*choices, default)
    out = default
    for condition, choice in reversed(list(zip(conditions, choices))):
        out = where(condition, choice, out)
    return out


def _sizes(shape: Any, name: str) -> list[Any]:
    sizes = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    _types.counts([n for n in sizes if not isinstance(n, Tensor)], name, "shape")
    return sizes


def _index(x: Any, name: str) -> Tensor:
    x = asarray(x)
    if _complex.is_complex(x) or _types.kind(x.dtype) not in "iu":
        raise TypeError(f"`{name}` takes indices, which are integers, not `{x.dtype}`")
    return x


def _product(sizes: list[Any]) -> Any:
    return functools.reduce(lambda a, b: a * b, sizes, 1)


def unravel_index(indices: Any, shape: Any, /) -> tuple[Tensor, ...]:
    """The index along each axis of a shape for elements counted row by row.

    Raises:
        ValueError: For an index outside. Outside of programs the indices are evaluated to check it, in programs it is
            checked when they run.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> [i.tolist() for i in xp.unravel_index([0, 5], (2, 3))]
    [[0, 1], [0, 2]]
    """
    sizes = _sizes(shape, "unravel_index")
    rest, total = _index(indices, "unravel_index"), _product(sizes)
    expect((rest >= 0) & (rest < total), f"`unravel_index`: an index is outside of the shape {tuple(shape)}")
    out: list[Tensor] = []
    for n in reversed(sizes[1:]):
        n = _divisor(n)
        out.append(rest % n)
        rest = rest // n
    return (rest, *reversed(out)) if sizes else ()


def _divisor(n: Any) -> Any:
    """A size as a divisor: at least 1."""
    if isinstance(n, int):
        return max(n, 1)
    from aerogel.tensor._elementwise import maximum

    return maximum(n, 1)


def ravel_multi_index(multi_index: Any, dims: Any, /, mode: Any = "raise", order: str = "C") -> Tensor:
    """The number of an element, counted row by row, for its index along each axis.

    Args:
        multi_index: A tensor of indices for each axis.
        dims: The shape.
        mode: The handling of indices outside, for all axes or for each: ``raise``, ``clip`` (the nearest) or ``wrap``.
        order: ``C``, the last axis first, or ``F``, the first axis first.

    Raises:
        ValueError: For an index outside, as by ``unravel_index``; for other numbers of indices than of axes.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.ravel_multi_index(([0, 1], [0, 2]), (2, 3)).tolist()
    [0, 5]
    """
    sizes = _sizes(dims, "ravel_multi_index")
    given = [_index(i, "ravel_multi_index") for i in multi_index]
    if len(given) != len(sizes):
        raise ValueError(f"`ravel_multi_index`: {len(given)} indices for {len(sizes)} axes")
    if order not in ("C", "F"):
        raise ValueError(f"`ravel_multi_index`: the order is 'C' or 'F', not {order!r}")
    modes = list(mode) if isinstance(mode, (list, tuple)) else [mode] * len(sizes)
    if len(modes) != len(sizes) or any(m not in ("raise", "clip", "wrap") for m in modes):
        raise ValueError(f"`ravel_multi_index`: the mode of an axis is 'raise', 'clip' or 'wrap', not {mode!r}")
    out: Any = 0
    pairs = list(zip(given, sizes, modes))
    for index, n, how in pairs if order == "C" else reversed(pairs):
        if how == "raise":
            expect((index >= 0) & (index < n), f"`ravel_multi_index`: an index is outside of the shape {tuple(dims)}")
        elif how == "clip":
            index = clip(index, 0, n - 1)
        else:
            index = index % _divisor(n)
        out = out * n + _wide(index, sizes)
    return asarray(out)


def _wide(index: Tensor, sizes: list[Any]) -> Tensor:
    """An index in a dtype that holds the number of all elements."""
    total = math.prod(n for n in sizes if isinstance(n, int))
    if is_number(total) and total > _types._limits(index.dtype._aerogel_dtype)[1]:
        return index.astype("i64" if total > _types._limits("i32")[1] else "i32")
    return index
