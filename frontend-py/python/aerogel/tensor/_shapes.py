"""The same elements in another shape or order, beside each other, or with a margin."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

from aerogel._dtypes import u1
from aerogel.tensor import _types, _unknown
from aerogel.tensor._cells import are_at, stacked
from aerogel.tensor._complex import by_planes, is_complex, joined, of_lists
from aerogel.tensor._tensor import Tensor, asarray, constant, operands, tracing


def _list(axis: Any, what: str = "axis") -> list[int]:
    return _types.whole_numbers(axis, what)


@by_planes
def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The elements, in row-major order, in another shape; one size may be -1."""
    x = asarray(x)
    if tracing.program is not None:
        shape = list(shape) if isinstance(shape, (list, tuple)) else [shape]
        is_open = [isinstance(n, int) and n == -1 for n in shape]
        if not all(isinstance(n, int) for n in [*x.shape, *shape]):
            if sum(is_open) == 1:
                rest = math.prod(n for n, free in zip(shape, is_open) if not free)
                if isinstance(rest, int) and rest == 0:
                    raise ValueError(f"`reshape`: {x._native.shape} cannot become {tuple(shape)}")
                shape = [x.size // rest if free else n for n, free in zip(shape, is_open)]
            return Tensor(x._native.reshape(tracing.program.extents(shape)), x._outside)
    else:
        shape = _list(shape, "reshape")
    if any(isinstance(n, int) and n < -1 for n in shape):
        raise ValueError(f"`reshape`: {tuple(shape)} is not a shape")
    if -1 in [n for n in shape if isinstance(n, int)]:
        known = 1
        for n in shape:
            known *= n if n != -1 else 1
        size = x.size
        if shape.count(-1) > 1 or known == 0 or size % known:
            raise ValueError(f"`reshape`: {x.shape} with {size} elements cannot become {tuple(shape)}")
        shape = [size // known if n == -1 else n for n in shape]
    return Tensor(x._native.reshape(list(shape)), x._outside)


@by_planes
def permute_dims(x: Any, /, axes: Any) -> Tensor:
    """The axes in another order: axis ``k`` of the result is axis ``axes[k]``."""
    return asarray(x).permute(tuple(axes))


@by_planes
def matrix_transpose(x: Any, /) -> Tensor:
    """The last two axes exchanged."""
    return asarray(x).mT


@by_planes
def transpose(x: Any, /, axes: Any = None) -> Tensor:
    """The axes in another order; without one in the opposite order."""
    x = asarray(x)
    return x.T if axes is None else x.permute(tuple(axes))


@by_planes
def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """Moves some axes to other positions; the rest stay in order."""
    x = asarray(x)
    rank = x.ndim
    given, wanted = _list(source), _list(destination)
    if len(given) != len(wanted):
        raise ValueError(f"`moveaxis`: {len(given)} axes for {len(wanted)} positions")
    for axis in given + wanted:
        if not -rank <= axis < rank:
            raise IndexError(f"`moveaxis`: there is no axis {axis}: the tensor has {rank}")
    places = {place % rank: axis % rank for axis, place in zip(given, wanted)}
    if len(places) != len(given) or len(set(places.values())) != len(given):
        raise ValueError(f"`moveaxis`: an axis or a position is named twice in {given} and {wanted}")
    rest = iter([axis for axis in range(rank) if axis not in places.values()])
    return x.permute(tuple(places[place] if place in places else next(rest) for place in range(rank)))


@by_planes
def expand_dims(x: Any, /, axis: Any = 0) -> Tensor:
    """With new axes of size 1 at these positions of the result."""
    x = asarray(x)
    return Tensor(x._native.unsqueeze(_list(axis)), x._outside)


@by_planes
def unsqueeze(x: Any, /, axis: int = -1) -> Tensor:
    """With a new axis of size 1."""
    return asarray(x).unsqueeze(axis)


@by_planes
def squeeze(x: Any, /, axis: Any = None) -> Tensor:
    """Without these axes of size 1; without an ``axis``, all of them are removed."""
    x = asarray(x)
    if axis is None:
        axis = [k for k, n in enumerate(x.shape) if n == 1]
    return x.squeeze(_list(axis))


@by_planes
def flip(x: Any, /, axis: Any = None) -> Tensor:
    """The elements in the opposite order along some axes, or all."""
    x = asarray(x)
    return Tensor(x._native.flip(list(range(x.ndim)) if axis is None else _list(axis)), x._outside)


@by_planes
def roll(x: Any, /, shift: Any, axis: Any = None) -> Tensor:
    """The elements moved along some axes, those that leave at one end at the other; without an axis row by row."""
    x = asarray(x)
    if type(shift) is int and type(axis) is int and abs(shift) < 2**31:
        return Tensor(x._native.roll([shift], [axis]), x._outside)
    if axis is None:
        if isinstance(x.size, int) and x.size == 0:
            return x
        return reshape(roll(x.reshape(-1), shift, 0), x.shape)
    if isinstance(shift, Tensor) or isinstance(shift, (list, tuple)) and any(isinstance(n, Tensor) for n in shift):
        return _rolled(x, shift, axis)
    axes, shifts = _list(axis), _list(shift, "shift")
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"`roll`: {len(shifts)} shifts for {len(axes)} axes")
    return Tensor(x._native.roll(shifts, axes), x._outside)


def _rolled(x: Tensor, shift: Any, axis: Any) -> Tensor:
    """The elements moved as far as numbers say that are computed."""
    from aerogel.tensor._creation import arange
    from aerogel.tensor._searching import take

    axes = _list(axis)
    shifts = list(shift) if isinstance(shift, (list, tuple)) else [shift] * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"`roll`: {len(shifts)} shifts for {len(axes)} axes")
    for by, at in zip(shifts, axes):
        n = x.shape[at]
        x = take(x, (arange(n) - by) % n, axis=at)
    return x


@by_planes
def tile(x: Any, repetitions: Any, /) -> Tensor:
    """The tensor repeated along each axis; in a program, numbers of repetitions may be computed from shapes."""
    x, times = asarray(x), list(repetitions) if isinstance(repetitions, (list, tuple)) else [repetitions]
    _types.whole_numbers([n for n in times if not isinstance(n, Tensor)], "repetitions")
    _types.counts(repetitions, "tile", "repetitions")
    if tracing.program is None or not any(isinstance(n, Tensor) for n in times):
        return Tensor(x._native.tile(_list(repetitions)))
    for _ in range(len(times) - x.ndim):
        x = x.unsqueeze(0)
    first = x.ndim - len(times)
    for axis, n in enumerate(times, first):
        if isinstance(n, Tensor):
            own = x.shape[axis]
            x = _times("tile", x, axis, n, lambda at, own=own: at % own)
    return Tensor(x._native.tile([1] * first + [1 if isinstance(n, Tensor) else n for n in times]))


def _times(word: str, x: Tensor, axis: int, n: Tensor, where: Any) -> Tensor:
    """A number of times as many elements along an axis, each from ``where`` says."""
    from aerogel.tensor._creation import arange
    from aerogel.tensor._searching import take

    _unknown.at_least(n, 0, f"`{word}`: an element cannot be repeated {{}} times")
    return take(x, where(arange(x.shape[axis] * n)), axis=axis)


@by_planes
def repeat(x: Any, repeats: Any, /, axis: int | None = None) -> Tensor:
    """Each element repeated a number of times along an axis, or row by row; a number for each element may be given."""
    x = asarray(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _types.axis(axis, x.ndim, "repeat")
    if hasattr(repeats, "__index__") and getattr(repeats, "ndim", 0) == 0 and not isinstance(repeats, Tensor):
        _types.counts(repeats, "repeat", "repeats")
        if repeats == 0:
            shape = list(x.shape)
            shape[axis] = 0
            return x[tuple(slice(0) if k == axis % x.ndim else slice(None) for k in range(x.ndim))]
        return Tensor(x._native.repeat(int(repeats), axis))
    if tracing.program is not None and isinstance(repeats, Tensor) and repeats.ndim == 0:
        return _times("repeat", x, axis, repeats, lambda at: at // repeats)
    import numpy as np

    # In a program, tensors have no numbers, and lists have.
    counts = np.asarray(repeats) if isinstance(repeats, (list, tuple, np.ndarray)) else asarray(repeats).numpy()
    if counts.dtype.kind not in "iu":
        raise TypeError(f"`repeat` takes integers, not {repeats!r}")
    if counts.size and counts.min() < 0:
        raise ValueError(f"`repeat`: `repeats` contains {counts.min()}, below zero")
    if counts.size == 1:
        return repeat(x, int(counts.reshape(())), axis)
    n = x.shape[axis]
    if counts.ndim != 1 or _unknown.differ(counts.size, n):
        raise ValueError(f"`repeat`: {counts.size} counts for {n} elements along axis {axis}")
    if not isinstance(n, int):
        _unknown.demand(x, axis, counts.size)
    from aerogel.tensor._searching import take

    return take(x, asarray(np.repeat(np.arange(counts.size, dtype=np.int32), counts)), axis=axis)


@by_planes
def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """The tensor broadcast to a shape."""
    _types.counts(shape, "broadcast_to", "shape")
    extents = _list(shape, "broadcast_to") if tracing.program is None else tracing.program.extents(shape)
    return Tensor(asarray(x)._native.broadcast_to(extents))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that several shapes broadcast to."""
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for k, n in enumerate(reversed(shape)):
            if n != 1:
                if out[-1 - k] not in (1, n):
                    raise ValueError(f"the shapes {', '.join(map(str, shapes))} differ in axis {-1 - k}")
                out[-1 - k] = n
    return tuple(out)


def broadcast_arrays(*arrays: Any) -> tuple[Any, ...]:
    """Tensors broadcast to one shape."""
    made = [asarray(a) for a in arrays]
    planes = [a.real if is_complex(a) else a for a in made]
    shape = (
        broadcast_shapes(*(a.shape for a in made)) if all(_unknown.all_known(a._native.shape) for a in planes) else None
    )

    def stretched(x: Tensor) -> Tensor:
        if shape is not None:
            return broadcast_to(x, shape)
        # `where` broadcasts both sides.
        yes = constant(True, u1)._native
        return Tensor(functools.reduce(yes.select, (b._native.cast(x._native.dtype) for b in (x, *planes))))

    return tuple(joined(stretched(a.real), stretched(a.imag)) if is_complex(a) else stretched(a) for a in made)


def _expect_one_list(axis: Any, called: str) -> None:
    if axis is not None and not hasattr(axis, "__index__") or isinstance(axis, Tensor):
        raise TypeError(f"`{called}` takes its tensors in one list, as in `{called}([a, b])`, and then an axis")


@of_lists
def concat(arrays: Any, /, axis: int | None = 0) -> Tensor:
    """Tensors one after the other along an axis; without one row by row."""
    _expect_one_list(axis, "concat")
    given = list(arrays)
    if not given:
        raise ValueError("`concat` takes at least one tensor")
    made = operands(*given)
    if axis is None:
        made, axis = [m.reshape(-1) for m in made], 0
    first, *rest = made
    return Tensor(first._native.concat([r._native for r in rest], axis))


concatenate = concat


@of_lists
def stack(arrays: Any, /, axis: int = 0) -> Tensor:
    """Stacks tensors of the same shape along a new axis."""
    _expect_one_list(axis, "stack")
    given = [asarray(a) for a in arrays]
    if not given:
        raise ValueError("`stack` takes at least one tensor")
    axis = _types.axis(axis, given[0].ndim + 1, "stack")
    for k, a in enumerate(given):
        own, first = a._native.shape, given[0]._native.shape
        # Sizes that are known only at run time are checked then.
        differ = [n != m for n, m in zip(own, first) if isinstance(n, int) and isinstance(m, int)]
        if len(own) != len(first) or any(differ):
            raise ValueError(f"`stack`: operand {k} has the shape {a.shape}, the first one {given[0].shape}")
    if any(are_at(a) for a in given):
        at_cells = stacked(given, axis)
        if isinstance(at_cells, Tensor):
            return at_cells
        given = at_cells
    return concat([a.unsqueeze(axis) for a in given], axis=axis)


def nested(obj: Any, dtype: Any) -> Tensor:
    """A tensor of what lists hold in a program: tensors of one shape, and numbers beside them.

    Without a type it has the one at which these meet.
    """
    parts = [nested(x, dtype) if isinstance(x, (list, tuple)) else x for x in obj]
    if dtype is not None:
        return stack([asarray(x, dtype) for x in parts])
    return stack(parts if any(map(is_complex, parts)) else operands(*parts))


def unstack(x: Any, /, axis: int = 0) -> tuple[Tensor, ...]:
    """The tensors along an axis."""
    x = moveaxis(x, axis, 0)
    if not isinstance(x.shape[0], int):
        raise ValueError(
            "`unstack` returns one tensor for each element of the axis, whose size is known only at run time"
        )
    return tuple(x[k] for k in range(x.shape[0]))


def split(x: Any, sections: Any, /, axis: int = 0) -> list[Tensor]:
    """Splits the tensor into equal parts along an axis, or before given indices."""
    x = asarray(x)
    axis = _types.axis(axis, x.ndim, "split")
    n = x.shape[axis]
    if hasattr(sections, "__index__"):
        sections = operator.index(sections)
        if sections <= 0:
            raise ValueError(f"`split`: `sections` must be at least 1, not {sections}")
        if isinstance(n, int) and n % sections:
            raise ValueError(
                f"`split`: {n} elements along axis {axis} do not divide into {sections} equal parts: write "
                f"`ti.xp.array_split(x, {sections})` for parts that differ by one element"
            )
        if not isinstance(n, int):
            _unknown.demand(x, axis, n // sections * sections)
        ends = [n // sections * k for k in range(sections + 1)]
    else:
        ends = [0, *_types.several(sections, "split", "sections"), n]
    out = []
    for a, b in zip(ends, ends[1:]):
        key: list[Any] = [slice(None)] * x.ndim
        key[axis] = slice(a, b)
        out.append(x[tuple(key)])
    return out


def pad(x: Any, widths: Any, /, mode: str = "constant", *, value: Any = 0) -> Tensor:
    """The tensor with a margin.

    Args:
        x: The tensor.
        widths: How many elements before and after along each axis: pairs, one pair for all, or one number; in a
            program they may be computed from shapes.
        mode: ``constant``, ``edge`` (the nearest element), ``wrap`` (from the other end), ``reflect`` (mirrored at the
            outermost elements) or ``symmetric`` (mirrored at the ends, so that these occur twice).
        value: The value of a constant margin.
    """
    x = asarray(x)
    if is_complex(x):
        real, imag = (pad(plane, widths, mode, value=of) for plane, of in ((x.real, value.real), (x.imag, value.imag)))
        return joined(real, imag)  # type: ignore[return-value]
    given = [widths] * 2 if _is_number(widths) else [w if _is_number(w) else tuple(w) for w in widths]
    if len(given) == 2 and all(_is_number(w) for w in given):
        given = [tuple(given)] * x.ndim
    if len(given) != x.ndim or any(_is_number(pair) or len(pair) != 2 for pair in given):
        raise ValueError(f"`pad` takes two numbers for each of {x.ndim} axes")
    pairs = [_margins(pair) for pair in given]
    for axis, (n, pair) in enumerate(zip(x.shape, given)):
        if mode != "constant" and any(pairs[axis]) and not _unknown.all_known([n, *pairs[axis]]):
            # One more where there is no margin.
            needed = n + 1 - _unknown.least(sum(pair), 1)
            _unknown.at_least(needed, 1, f"`pad`: this mode copies elements of axis {axis}, which has {{}}")
    if isinstance(value, Tensor) and mode == "constant":
        from aerogel.tensor._creation import ones_like
        from aerogel.tensor._searching import where

        _types.kept(value.dtype, x.dtype, "a margin of elements")
        is_inside = Tensor(ones_like(x, dtype=u1)._native.pad(pairs, mode, False))
        out = Tensor(x._native.pad(pairs, mode, 0), x._outside)
        return Tensor(where(is_inside, out, value.reshape(()).astype(x.dtype))._native, x._outside)
    _types.kept(value, x.dtype, "a margin of elements")
    value = _types.checked(value, x.dtype)
    return Tensor(x._native.pad(pairs, mode, value), x._outside)


def _is_number(width: Any) -> bool:
    """Whether it is one number, not some in a row."""
    return not getattr(width, "ndim", hasattr(width, "__len__"))


def _margins(pair: tuple[Any, ...]) -> tuple[Any, Any]:
    """The widths before and after an axis, as sizes."""
    if tracing.program is not None and any(isinstance(w, Tensor) for w in pair):
        for width in pair:
            if isinstance(width, Tensor):
                _unknown.at_least(width, 0, "`pad`: a margin of {} elements")
        before, behind = tracing.program.extents(pair)
        return before, behind
    before, behind = (operator.index(w) for w in pair)
    _types.counts([before, behind], "pad", "widths")
    return before, behind


@by_planes
def diagonal(x: Any, /, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """The elements whose indices along two axes are equal, as the last axis."""
    x = asarray(x)
    if _unknown.all_known(x._native.shape):
        return Tensor(x._native.diagonal(offset, (axis1, axis2)))
    from aerogel.tensor._creation import arange
    from aerogel.tensor._searching import gather

    rows, columns = _types.axis(axis1, x.ndim, "diagonal"), _types.axis(axis2, x.ndim, "diagonal")
    x = moveaxis(x, [rows, columns], [0, 1])
    down, right = max(-offset, 0), max(offset, 0)
    at = arange(_unknown.least(x.shape[0] - down, x.shape[1] - right))
    return moveaxis(gather(x, at + down, at + right), 0, -1)


__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "concatenate", "diagonal", "expand_dims", "flip",
    "matrix_transpose", "moveaxis", "pad", "permute_dims", "repeat", "reshape", "roll", "split", "squeeze",
    "stack", "tile", "transpose", "unsqueeze", "unstack",
]  # fmt: skip
