"""Choosing, finding, sorting, and elements at computed indices."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

from aerogel._dtypes import u1
from aerogel._limits import of_integers
from aerogel.tensor import _complex, _types
from aerogel.tensor._cells import refuse_order
from aerogel.tensor._tensor import Tensor, asarray, constant, is_number, operands, tracing
from aerogel.tensor._unknown import at_least, differ, outside_of_programs


def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    """The elements of ``x1`` where ``condition`` is true, else those of ``x2``; without both ``nonzero``."""
    condition = asarray(condition)
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise TypeError("`where` takes two values, or none")
    if _complex.is_complex(x1) or _complex.is_complex(x2):
        first, second = (_complex.joined(*_complex._planes(x)) for x in (x1, x2))
        return _complex.joined(where(condition, first.real, second.real), where(condition, first.imag, second.imag))
    if condition.dtype is not u1:
        condition = condition != 0
    a, b = operands(x1, x2)
    return Tensor(condition._native.select(a._native, b._native))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002
    """The elements clipped to the range from ``min`` to ``max``; NaN stays NaN."""
    x = asarray(x)
    if _complex.is_complex(x) and not (min is None and max is None):
        raise TypeError(f"`clip` takes real numbers, not `{x.dtype}`")
    x = x.copy()
    for bound, is_outside, whole in ((min, operator.lt, math.ceil), (max, operator.gt, math.floor)):
        if bound is None:
            continue
        is_known = is_number(bound) and bound == bound
        if is_number(bound):
            bound = _bound(bound, x.dtype, whole)
            bound = None if bound is None else constant(bound, x.dtype)
        elif not x.dtype.is_float and asarray(bound).dtype.is_float:
            raise TypeError(f"`clip` of {x.dtype} by {asarray(bound).dtype}: convert one of them")
        else:
            bound = asarray(bound).astype(x.dtype)
        if bound is not None:
            # Not a maximum or minimum, whose gradient at the bound is one half.
            chosen = is_outside(x, bound)
            x = where(chosen if is_known or not x.dtype.is_float else chosen | (bound != bound), bound, x)
    return x


def _bound(value: Any, dtype: Any, whole: Any) -> Any:
    """A number as a bound of a type's numbers; none if it is beyond all of them."""
    if dtype.is_float:
        return value
    limits = of_integers(dtype)
    least, most = limits.min, limits.max
    if value != value:
        raise ValueError("`clip` of integers by NaN")
    if whole is math.ceil:
        return None if value < least else (most if value > most else whole(value))
    return None if value > most else (least if value < least else whole(value))


def sort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """A copy sorted along an axis; NaN comes last, in descending order too, as in NumPy 2.5."""
    x = asarray(x)
    refuse_order(x, axis, "sort")
    return Tensor(x._native.sort(axis, descending)[0])


def argsort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort the tensor along an axis; the sort is stable, and NaN comes last in both orders."""
    x = asarray(x)
    refuse_order(x, axis, "argsort")
    return Tensor(x._native.sort(axis, descending)[1])


class TopK(NamedTuple):
    """The largest elements, and their indices."""

    values: Tensor
    indices: Tensor


def topk(x: Any, k: Any, /, axis: int = -1, largest: bool = True) -> TopK:
    """The ``k`` largest (or smallest) elements along an axis in order, and their indices; NaN comes last.

    In a program, ``k`` may be computed from shapes.
    """
    x = asarray(x)
    _types.axis(axis, x.ndim, "topk")
    refuse_order(x, axis, "topk")
    n = x.shape[axis]
    if isinstance(k, Tensor) and tracing.program is not None:
        # `k` is computed from shapes.
        at_least(k, 0, "`topk`: {} elements are requested")
        at_least(n - k, 0, f"`topk`: {{}} elements more than are requested along axis {axis}")
        first = tuple(slice(k) if at == axis % x.ndim else slice(None) for at in range(x.ndim))
        return TopK(*(Tensor(t)[first] for t in x._native.sort(axis, largest)))
    k = operator.index(k)
    _types.counts(k, "topk", "k")
    if not isinstance(n, int):
        at_least(n, k, f"`topk`: axis {axis} has {{}} elements, {k} are requested")
    elif k > n:
        raise ValueError(f"`topk`: axis {axis} has {n} elements, {k} are requested")
    return TopK(*(Tensor(t) for t in x._native.sort(axis, largest, k)))


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements, one tensor for each axis; evaluated at once."""
    x = asarray(x)
    x = x != 0 if _complex.is_complex(x) else x
    outside_of_programs("nonzero", "its shape would depend on values; count them, or choose by `where`")
    count, *indices = x._native.nonzero()
    n = int(count.item())
    return tuple(Tensor(i.get(slice(n), "error", False)) for i in indices)


def argwhere(x: Any, /) -> Tensor:
    """The indices of the nonzero elements, one row for each."""
    from aerogel.tensor._shapes import stack

    return stack(nonzero(x), axis=1)


@_complex.by_planes
def take(x: Any, indices: Any, /, axis: int | None = None) -> Tensor:
    """The slices of a tensor at these indices along an axis."""
    x, indices = asarray(x), asarray(indices)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"`take`: name an axis: the shape is {x.shape}")
        axis = 0
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"`take`: there is no axis {axis}: the tensor has {x.ndim}")
    out = x._native.gather(axis % x.ndim, [indices._native], x._outside, True, "take")
    return Tensor(out, x._outside)


@_complex.by_planes
def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Tensor:
    """Gathers elements along an axis: each element of ``indices`` selects the element of its position."""
    x, indices = asarray(x), asarray(indices)
    return Tensor(x._native.take_along_axis(indices._native, axis, x._outside), x._outside)


def gather(x: Any, /, *indices: Any) -> Tensor:
    """The elements with these indices along the first axes; those outside as ``x.outside(...)`` says."""
    x = asarray(x)
    index = [asarray(i)._native for i in indices]
    return Tensor(x._native.gather(0, index, x._outside, False, "gather"), x._outside)


def scatter(x: Any, indices: Any, values: Any, /, *, how: str = "set") -> Tensor:
    """A tensor with values at computed indices along its first axes.

    Args:
        x: The tensor.
        indices: A tensor of integers for each axis, or one for the first.
        values: The values to store, broadcast to the shape of the indices and the other axes.
        how: ``set``, ``add``, ``mul``, ``min``, ``max``, ``and``, ``or`` or ``xor``.
    """
    x = asarray(x)
    if not isinstance(indices, tuple):
        indices = (indices,)
    if is_number(values):
        _types.kept(values, x.dtype, "elements")
        values = constant(values, x.dtype)
    values = asarray(values)
    _types.kept(values.dtype, x.dtype, "elements")
    index = [asarray(i)._native for i in indices]
    return Tensor(x._native.scatter(index, values.astype(x.dtype)._native, how, x._outside), x._outside)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Where each number of ``x2`` belongs among the sorted ones of ``x1``: before or (``right``) behind equal ones."""
    if side not in ("left", "right"):
        raise ValueError(f"the side is 'left' or 'right', not {side!r}")
    a, v = operands(x1, x2)
    if a.ndim != 1:
        raise ValueError(f"`searchsorted` takes one axis of sorted numbers, the shape is {a.shape}")
    if sorter is not None:
        a = take(a, sorter)
    found = Tensor(a._native.search_sorted(v._native, side == "right"))
    return found.astype(_types.index_type())


def interp(x: Any, xp: Any, fp: Any, /, left: Any = None, right: Any = None, *, period: Any = None) -> Any:
    """Piecewise linear interpolation, as ``numpy.interp``.

    Args:
        x: Where the values are wanted; any shape.
        xp: Where they are given; one axis, rising.
        fp: The values at these points; as many, real or complex.
        left: The value below ``xp[0]``, ``fp[0]`` if not given.
        right: The value above ``xp[-1]``, ``fp[-1]`` if not given.
        period: The period of ``x``, after which values repeat; ``xp`` need not rise then.
    """
    from aerogel.tensor._shapes import concat

    if _complex.is_complex(fp) or _complex.is_complex(left) or _complex.is_complex(right):
        planes = zip(*(_complex._planes(v) if v is not None else (None, None) for v in (fp, left, right)))
        parts = [interp(x, xp, values, low, high, period=period) for values, low, high in planes]
        return _complex.joined(*parts)
    x, xp, fp = operands(x, xp, fp)
    if not x.dtype.is_float:
        x, xp, fp = (t.astype(_types.default_float()) for t in (x, xp, fp))
    if xp.ndim != 1 or fp.ndim != 1 or differ(xp.shape[0], fp.shape[0]):
        raise ValueError(f"`interp` takes as many values as sample points, on one axis: {fp.shape} for {xp.shape}")
    n = xp.shape[0]
    if not isinstance(n, int):
        at_least(n, 1, "`interp` between {} sample points")
    elif n == 0:
        raise ValueError("`interp` takes at least one sample point")
    if period is not None:
        if period == 0:
            raise ValueError("`interp`: the period must not be zero")
        x, xp, left, right, period = x % abs(period), xp % abs(period), None, None, abs(period)
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        xp, fp = concat([xp[-1:] - period, xp, xp[:1] + period]), concat([fp[-1:], fp, fp[:1]])
    at = searchsorted(xp, x, side="right") - 1
    (x0, y0), (x1, y1) = ([gather(t.outside("clamp"), at + k) for t in (xp, fp)] for k in (0, 1))
    between = where((x1 > x0) & (x != x0), (x - x0) * ((y1 - y0) / where(x1 > x0, x1 - x0, 1)) + y0, y0)
    out = where(
        x < xp[0], fp[0] if left is None else left, where(x > xp[-1], fp[-1] if right is None else right, between)
    )
    return where(x == x, out, x)


class UniqueAll(NamedTuple):
    """The distinct values, the first index of each, the inverse indices, and the counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The distinct values, and their counts."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The distinct values, and for each element the index of its value."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, /) -> UniqueAll:
    """The different numbers in order, with all that is known of them. They are computed at once.

    Complex numbers are in the order of their real parts, and those of equal ones in that of their imaginary parts;
    numbers with NaN in them are behind all.
    """
    from aerogel.tensor._creation import zeros
    from aerogel.tensor._reductions import prefix_sum

    x = asarray(x)
    outside_of_programs("unique", "its shape would depend on values")
    flat = x.reshape(-1)
    n = flat.shape[0]
    index = _types.index_type()
    if n == 0:
        none = zeros((0,), dtype=index)
        return UniqueAll(flat, none, none.reshape(x.shape), none)
    if _complex.is_complex(flat):
        places = _order(flat)
        values = take(flat, places)
    else:
        values, places = (Tensor(t) for t in flat._native.sort(0, False))
    new, starts, counts = _different(values)
    inverse = scatter(zeros((n,), dtype=index), places, prefix_sum(new.astype(index)) - 1)
    return UniqueAll(take(values, starts), take(places, starts), inverse.reshape(x.shape), counts)


def _different(values: Any) -> tuple[Any, Any, Any]:
    """Of sorted numbers, at least one, whether each is another one than that before it, where those are, and how often
    each of them stands there."""
    from aerogel.tensor._shapes import concat

    # NaN is another number than any, itself too.
    new = concat([constant(True, u1).reshape(1), values[1:] != values[:-1]])
    (starts,) = nonzero(new)
    ends = concat([starts[1:], constant(values.shape[0], starts.dtype).reshape(1)])
    return new, starts, (ends - starts).astype(_types.index_type())


def _order(z: Any) -> Tensor:
    """Where each of the complex numbers in order is, as NumPy has it."""
    from aerogel.tensor._elementwise import isnan

    # By the last key first; zeros of both signs are equal.
    places = None
    for key in (z.imag, z.real, isnan(z.imag).astype("i32") + isnan(z.real).astype("i32") * 2):
        key = where(key == 0, 0, key)
        places = argsort(key) if places is None else take(places, argsort(take(key, places)))
    return places


def unique_values(x: Any, /) -> Tensor:
    """The distinct values in ascending order."""
    return unique_counts(x).values


def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct values in ascending order, and their counts."""
    x = asarray(x)
    outside_of_programs("unique", "its shape would depend on values")
    if _complex.is_complex(x) or 0 in x.shape:
        out = unique_all(x)
        return UniqueCounts(out.values, out.counts)
    values = sort(x.reshape(-1))
    _, starts, counts = _different(values)
    return UniqueCounts(take(values, starts), counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct values in ascending order, and for each element the index of its value."""
    out = unique_all(x)
    return UniqueInverse(out.values, out.inverse_indices)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of ``x1`` occurs in ``x2``."""
    a, b = operands(x1, x2)
    from aerogel.tensor._elementwise import equal

    found = equal(a.unsqueeze(-1), b.reshape(-1)).any(axis=-1)
    return ~found if invert else found


__all__ = [
    "TopK", "UniqueAll", "UniqueCounts", "UniqueInverse", "argsort", "argwhere", "clip", "gather", "interp", "isin",
    "nonzero", "scatter", "searchsorted", "sort", "take", "take_along_axis", "topk", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "where",
]  # fmt: skip
