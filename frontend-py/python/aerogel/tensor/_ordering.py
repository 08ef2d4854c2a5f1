"""Orders by several keys, partitions, and the distinct elements or slices of a tensor, as NumPy has them."""

from __future__ import annotations

from typing import Any

from aerogel.tensor import _types
from aerogel.tensor._complex import is_complex
from aerogel.tensor._searching import argsort, nonzero, scatter, sort, take, take_along_axis, unique_all
from aerogel.tensor._shapes import concat, moveaxis, reshape
from aerogel.tensor._tensor import Tensor, asarray, constant
from aerogel.tensor._unknown import outside_of_programs


def lexsort(keys: Any, /, axis: int = -1) -> Tensor:
    """The indices that sort by several keys, of which the last one counts first; equal ones stay in their order.

    Raises:
        ValueError: For no keys, or keys without axes.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.lexsort(([3, 1, 2], [0, 1, 0])).tolist()
    [2, 0, 1]
    """
    given = list(keys) if isinstance(keys, (list, tuple)) else list(asarray(keys))
    if not given:
        raise ValueError("`lexsort` takes at least one key")
    made = [asarray(k) for k in given]
    if made[0].ndim == 0:
        raise ValueError("`lexsort` takes keys with at least one axis")
    axis = _types.axis(axis, made[0].ndim, "lexsort")
    order: Tensor | None = None
    for key in made:
        if order is None:
            order = argsort(key, axis=axis)
        else:
            order = take_along_axis(order, argsort(take_along_axis(key, order, axis=axis), axis=axis), axis=axis)
    assert order is not None
    return order


def _expect_kth(x: Tensor, kth: Any, axis: int, name: str) -> None:
    n = x.shape[axis]
    for k in _types.whole_numbers(kth, name):
        if isinstance(n, int) and not -n <= k < n:
            raise ValueError(f"`{name}`: `kth` is {k}, and axis {axis} has {n} elements")


def partition(x: Any, kth: Any, /, axis: int | None = -1) -> Tensor:
    """The elements with the ``kth`` one where sorting puts it, none larger before it and none smaller behind.

    All of them are sorted, which is one such order.

    Raises:
        ValueError: If there is no ``kth`` element.
    """
    x = asarray(x)
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, axis)
    axis = _types.axis(axis, x.ndim, "partition")
    _expect_kth(x, kth, axis, "partition")
    return sort(x, axis=axis)


def argpartition(x: Any, kth: Any, /, axis: int | None = -1) -> Tensor:
    """The indices by which ``partition`` orders the elements."""
    x = asarray(x)
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, axis)
    axis = _types.axis(axis, x.ndim, "argpartition")
    _expect_kth(x, kth, axis, "argpartition")
    return argsort(x, axis=axis)


def unique(
    x: Any,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """The distinct elements in order, or the distinct slices along an axis; computed at once.

    Args:
        x: The tensor.
        return_index: Whether to return the index of the first of each as well.
        return_inverse: Whether to return which one each element is as well.
        return_counts: Whether to return the number of occurrences of each as well.
        axis: The axis of the slices; all elements count by themselves without it.
        equal_nan: Whether all NaN are one element.

    Raises:
        ValueError: In programs, where no shape may depend on values.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> values, counts = xp.unique([3, 1, 3], return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([1, 3], [1, 2])
    """
    x = asarray(x)
    outside_of_programs("unique", "its shape would depend on values")
    if axis is None:
        values, index, inverse, counts = unique_all(x)
        if equal_nan:
            values, index, inverse, counts = _joined_nan(values, index, inverse, counts)
    else:
        values, index, inverse, counts = _slices(x, _types.axis(axis, x.ndim, "unique"))
    chosen = [index] * bool(return_index) + [inverse] * bool(return_inverse) + [counts] * bool(return_counts)
    return (values, *chosen) if chosen else values


def _joined_nan(values: Any, index: Any, inverse: Any, counts: Any) -> tuple[Any, ...]:
    """The same with all NaN, which are the last values, as one."""
    from aerogel.tensor._elementwise import isnan, minimum

    if not (is_complex(values) or values.dtype.is_float) or values.shape[0] == 0:
        return values, index, inverse, counts
    nans = int(isnan(values).sum().item())
    if nans < 2:
        return values, index, inverse, counts
    n = values.shape[0] - nans + 1
    # The index of the first NaN is the smallest.
    first = index[n - 1 :].min().reshape((1,))
    total = counts[n - 1 :].sum(dtype=counts.dtype).reshape((1,))
    return values[:n], concat([index[: n - 1], first]), minimum(inverse, n - 1), concat([counts[: n - 1], total])


def _slices(x: Any, axis: int) -> tuple[Any, ...]:
    """Distinct slices along an axis in the order of their elements, row by row."""
    from aerogel.tensor._creation import arange
    from aerogel.tensor._reductions import any, prefix_sum

    if is_complex(x):
        raise TypeError("`unique` along an axis takes real numbers")
    moved = moveaxis(x, axis, 0)
    n = moved.shape[0]
    rows = moved.reshape((n, moved.size // n if n else 0))
    kind = _types.index_type()
    if n == 0 or rows.shape[1] == 0:
        some = min(n, 1)
        at = arange(some, dtype=kind)
        return moveaxis(moved[:some], 0, axis), at, arange(n, dtype=kind) * 0, at * 0 + n
    order = lexsort([rows[:, k] for k in reversed(range(rows.shape[1]))])
    ordered = take(rows, order, axis=0)
    differs = any(ordered[1:] != ordered[:-1], axis=1)
    new = concat([constant(True, differs.dtype).reshape(1), differs])
    (starts,) = nonzero(new)
    ends = concat([starts[1:], constant(n, starts.dtype).reshape(1)])
    inverse = scatter(arange(n, dtype=kind) * 0, order, prefix_sum(new.astype(kind)) - 1)
    index = take(order, starts)
    return moveaxis(take(moved, index, axis=0), 0, axis), index, inverse, (ends - starts).astype(kind)
