"""``x[key]`` and ``x[key] = value``."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import i32, u1
from aerogel.tensor import _complex, _types
from aerogel.tensor._tensor import Tensor, asarray, constant, inside, is_number, operands, tracing
from aerogel.tensor._unknown import outside_of_programs

#: From, by, how many, and whether the axis goes.
Part = tuple[int, int, int, bool]


def _is_array(key: Any) -> bool:
    return isinstance(key, (Tensor, list)) or (hasattr(key, "__array__") and getattr(key, "ndim", 0) >= 0)


def _of_list(key: list[Any]) -> Any:
    """A list as an array of NumPy's, whose numbers are there to be looked at; an empty one is of indices."""
    import numpy as np

    from aerogel.tensor._tensor import _without_tensors

    array = np.asarray(_without_tensors(key))
    return array if array.size else array.astype(np.int32)


def listed(x: Any, k: Any, axis: int) -> Any:
    """In a program: a list or an array of indices along an axis as a tensor, those below zero counted from the start.

    Raises:
        IndexError: If they are no integers, or known to be outside.
    """
    if isinstance(k, Tensor) or not isinstance(k, list) and not getattr(k, "ndim", 0):
        return k
    array = _of_list(k) if isinstance(k, list) else k
    if array.dtype.kind not in "iu":
        hint = ": a mask is a tensor, as in `x[asarray(mask)] = 0`" if array.dtype.kind == "b" else ""
        raise IndexError(f"an index is an integer, not `{array.dtype}`{hint}")
    if x._outside != "error" or axis >= x.ndim or not array.size:
        return asarray(array)
    n = x.shape[axis]
    if isinstance(n, int):
        _looked_at(array, axis, n)
        return asarray((array + n * (array < 0)).astype("int32"))
    return asarray(array) + n * asarray(array < 0).astype(i32)


def _looked_at(k: Any, axis: int, n: int) -> None:
    """Refuses known indices outside where they are written."""
    if hasattr(k, "__array_interface__") and k.dtype.kind in "iu" and k.size:
        for i in (k.min(), k.max()):
            if not -n <= i < n:
                raise IndexError(f"index {i} is outside axis {axis} with {n} elements")


def _expanded(x: Tensor, key: Any) -> list[Any]:
    """The key with an item for each axis, and ``None`` for each new one."""
    keys = list(key) if isinstance(key, tuple) else [key]
    keys = [_of_list(k) if isinstance(k, list) else k for k in keys]
    used = 0
    for k in keys:
        if _is_array(k) and not isinstance(k, list) and asarray(k).dtype is u1:
            used += asarray(k).ndim
        elif k is not None and k is not Ellipsis:
            used += 1
    if used > x.ndim:
        raise IndexError(f"{used} indices for a tensor with {x.ndim} axes")
    rest = [slice(None)] * (x.ndim - used)
    dots = [n for n, k in enumerate(keys) if k is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has one `...` at most")
    at = dots[0] if dots else len(keys)
    return keys[:at] + rest + keys[at + len(dots) :]


def _whole(k: Any, axis: int, n: int) -> Part:
    i = k.__index__()
    if not -n <= i < n:
        raise IndexError(f"index {i} is outside axis {axis} with {n} elements")
    return (i + n if i < 0 else i, 1, 1, True)


def _range(k: slice, n: int) -> Part:
    start, stop, step = k.indices(n)
    return (start, step, len(range(start, stop, step)), False)


def _split(x: Tensor, keys: list[Any]) -> tuple[list[Part], list[int | None], dict[int, Any]]:
    """Parts of axes that are known, where axes are in the result (``None``: new ones), and computed indices by axis."""
    parts: list[Part] = []
    layout: list[int | None] = []
    computed: dict[int, Any] = {}
    shape = x.shape
    for k in keys:
        axis = len(parts)
        if k is None:
            layout.append(None)
        elif isinstance(k, slice):
            parts.append(_range(k, shape[axis]) if _is_known(shape[axis], k) else _unknown_range(x, axis, k))
            layout.append(axis)
        elif _is_array(k):
            index = asarray(k)
            if index.dtype is u1:
                for values in _places(x, index, axis):
                    computed[len(parts)] = values
                    layout.append(len(parts))
                    parts.append(_all_of(x, len(parts)))
                continue
            if index.dtype.is_float:
                raise IndexError(f"an index is an integer, not `{index.dtype}`")
            if x._outside == "error" and isinstance(shape[axis], int) and not isinstance(k, Tensor):
                _looked_at(k, axis, shape[axis])
            computed[axis] = index
            parts.append(_all_of(x, axis))
            layout.append(axis)
        elif hasattr(k, "__index__"):
            if not isinstance(shape[axis], int) and tracing.program.is_in_block:
                # A block may not be entered, so that the index is looked at in it.
                computed[axis] = constant(k.__index__(), i32)
                parts.append(_all_of(x, axis))
                continue
            parts.append(_whole(k, axis, shape[axis]) if isinstance(shape[axis], int) else _unknown(x, axis, k))
        else:
            raise IndexError(f"an index is an integer, a part, or a tensor of integers, not {type(k).__name__}")
    return parts, layout, computed


def _is_known(extent: Any, k: slice) -> bool:
    if tracing.program is None:
        # The numbers of a tensor are there to be asked for.
        return True
    return isinstance(extent, int) and not any(isinstance(bound, Tensor) for bound in (k.start, k.stop, k.step))


def _unknown_range(x: Tensor, axis: int, k: slice) -> Any:
    """A part of an axis whose extent, or whose ends, are known when the program runs."""
    from aerogel._native import NativePart

    def bound(value: Any) -> Any:
        return value._native if isinstance(value, Tensor) else None if value is None else value.__index__()

    if isinstance(k.step, Tensor):
        raise TypeError("the step of a part is a number that is known when the program is traced")
    step = 1 if k.step is None else k.step.__index__()
    return NativePart.of_range(tracing.trace, x._native, axis, (bound(k.start), bound(k.stop), step))


def _unknown(x: Tensor, axis: int, k: Any) -> Any:
    """One index along an axis whose extent is known when the program runs, and looked at then."""
    from aerogel._native import NativePart

    return NativePart.of_index(tracing.trace, x._native, axis, k.__index__())


def _all_of(x: Tensor, axis: int) -> Any:
    extent = x._native.shape[axis]
    return (0, 1, extent, False) if isinstance(extent, int) else _unknown_range(x, axis, slice(None))


def _sliced(x: Tensor, parts: list[Any]) -> Any:
    if all(isinstance(part, tuple) for part in parts):
        return x._native.slice(parts)
    from aerogel._native import NativePart

    return NativePart.slice(tracing.trace, x._native, _unknown_parts(x, parts))


def _unknown_parts(x: Tensor, parts: list[Any]) -> list[Any]:
    """All parts as those of a program."""
    out = []
    for axis, part in enumerate(parts):
        if isinstance(part, tuple):
            start, step, n, drops = part
            stop = start + step * n
            # Where nothing is taken, it may begin before the first element.
            named = slice(start, None if stop < 0 else stop, step) if n else slice(0, 0)
            part = _unknown(x, axis, start) if drops else _unknown_range(x, axis, named)
        out.append(part)
    return out


def _drops(part: Any) -> bool:
    return part[3] if isinstance(part, tuple) else part.drops


def _from_start(x: Tensor, keys: list[Any]) -> list[Any]:
    """Indices below zero counted from the start: in lists, and single ones along axes whose extents the run knows."""
    out: list[Any] = []
    axis = 0
    for k in keys:
        k = listed(x, k, axis) if _is_array(k) else k
        if hasattr(k, "__index__") and not _is_array(k) and not isinstance(x.shape[axis], int):
            i = k.__index__()
            k = constant(i, i32) if i >= 0 else x.shape[axis] + i
        out.append(k)
        axis += k is not None
    return out


def places(x: Tensor, keys: tuple[Any, ...]) -> tuple[list[Any], list[Any], int]:
    """In a program: an index for each axis of what a key with parts names, and the shape of that.

    The last result is how many of its axes stand behind those of computed indices.
    """
    parts, layout, computed = _split(x, _from_start(x, _expanded(x, keys)))
    points = max((i.ndim for i in computed.values()), default=0)
    kept = [axis for axis, part in enumerate(parts) if axis not in computed and not _drops(part)]
    axes = sorted(computed)
    together = not axes or _are_together(keys)
    order = _order(layout, computed, together)
    rank = len(order) + (points - 1 if "points" in order else 0)
    index: list[Any] = []
    for axis, part in enumerate(_unknown_parts(x, parts)):
        native = computed[axis]._native if axis in computed else part.index(tracing.trace)
        where = order.index("points") + points if axis in computed else 0
        if axis in kept:
            at = order.index(axis)
            where = at + 1 + (points - 1 if "points" in order[:at] else 0)
        behind = rank - where if native.shape else 0
        native = native.unsqueeze(list(range(len(native.shape), len(native.shape) + behind))) if behind else native
        index.append(native)
    shape = tracing.trace.broadcast("x[key] = value", index)
    behind = rank - order.index("points") - points if "points" in order else 0
    return index, [1] * (rank - len(shape)) + list(shape), behind


def _places(x: Tensor, mask: Tensor, axis: int) -> list[Tensor]:
    """The indices where a mask is true: known when they have been computed."""
    outside_of_programs("x[mask]", "how many elements it has is its shape; choose by `where`")
    _expect_mask(mask, x.shape[axis : axis + mask.ndim], "axes")
    from aerogel.tensor._searching import nonzero

    return list(nonzero(mask))


def _expect_mask(mask: Tensor, shape: tuple[Any, ...], of: str) -> None:
    """Refuses a mask of another shape. One without elements names none; its other axes have to agree."""
    fits = len(mask.shape) == len(shape) and all(m in (0, n) for m, n in zip(mask.shape, shape))
    if not fits:
        raise IndexError(f"a mask of shape {mask.shape} for {of} of shape {shape}")


def get(x: Tensor, key: Any) -> Tensor:
    """The part of a tensor that a key names."""
    x = inside(x)
    if has_truths(key):
        return _by_truth(x, key)
    keys, together = _expanded(x, key), _are_together(key)
    parts, layout, computed = _split(x, keys)
    if not computed:
        return Tensor(_with_new(_sliced(x, parts), layout), x._outside)
    # Axes that are dropped beside computed indices are computed too, as NumPy has it.
    for axis, part in enumerate(parts):
        if _drops(part):
            dtype = asarray(next(iter(computed.values()))).dtype
            known = isinstance(part, tuple)
            computed[axis] = constant(part[0], dtype) if known else Tensor(part.index(tracing.trace)).astype(dtype)
            parts[axis] = _all_of(x, axis)
    native = _sliced(x, [part if n not in computed else _all_of(x, n) for n, part in enumerate(parts)])
    axes = sorted(computed)
    index = [computed[axis]._native for axis in axes]
    if together:
        first = axes[0]
    else:
        order = axes + [n for n in range(x.ndim) if n not in computed]
        native, first = native.permute(order), 0
    out = Tensor(native.gather(first, index, x._outside, True), x._outside)
    new = [k for k in keys if k is None]
    return _place_new(out, keys, computed, first, together) if new else out


def _are_together(key: Any) -> bool:
    """Whether computed indices and numbers stand side by side in a key, as NumPy has it: even ``...`` for no axis parts
    them."""
    keys = key if isinstance(key, tuple) else (key,)
    at = [n for n, k in enumerate(keys) if not _is_apart(k)]
    return not at or not any(_is_apart(k) for k in keys[at[0] : at[-1]])


def _is_apart(k: Any) -> bool:
    return k is None or k is Ellipsis or isinstance(k, slice)


def _order(layout: list[int | None], computed: dict[int, Any], together: bool) -> list[Any]:
    """The axes of a part, in order: those of computed indices as one, and ``None`` for new ones."""
    order: list[Any] = []
    for axis in layout:
        if axis not in computed:
            order.append(axis)
        elif "points" not in order:
            order.insert(len(order) if together else 0, "points")
    return order


def _place_new(out: Tensor, keys: list[Any], computed: dict[int, Any], first: int, together: bool) -> Tensor:
    points = max(i.ndim for i in computed.values())
    at, place, seen = (0 if together else points), [], False
    for k in keys:
        if k is None:
            place.append(at)
            at += 1
        elif isinstance(k, slice):
            at += 1
        elif together and not seen:
            at, seen = at + points, True
    return Tensor(out._native.unsqueeze(place), out._outside)


def _with_new(native: Any, layout: list[int | None]) -> Any:
    new = [n for n, axis in enumerate(layout) if axis is None]
    return native.unsqueeze(new) if new else native


def _is_truth(k: Any) -> bool:
    """Whether a key is a truth value: Python's, NumPy's, or a tensor without axes."""
    if isinstance(k, bool):
        return True
    if isinstance(k, Tensor):
        return k.dtype is u1 and k.ndim == 0
    return getattr(k, "ndim", None) == 0 and getattr(getattr(k, "dtype", None), "kind", "") == "b"


def has_truths(key: Any) -> bool:
    """Whether a key takes all or nothing by a truth value."""
    if isinstance(key, tuple):
        return any(map(_is_truth, key))
    return _is_truth(key)


def takes_by_truth(key: Any, value: Any) -> bool:
    """Whether a store takes all or nothing; a tensor alone is a mask where one number is stored."""
    if isinstance(key, (int, slice)) and not isinstance(key, bool):
        return False
    if isinstance(key, Tensor) and (is_number(value) or not getattr(value, "ndim", 1)):
        return False
    return has_truths(key)


def _without_truths(key: Any) -> tuple[list[Any], tuple[Any, ...], int | None]:
    """The booleans of a key, and the key of the elements they select.

    The last result is the axis that the selection adds: ``None`` if the booleans share that of computed indices.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    truths = [k for k in keys if _is_truth(k)]
    together = _are_together(key)
    if any(_is_array(k) and not _is_truth(k) for k in keys):
        rest = [k for k in keys if not _is_truth(k)]
        if not together and _are_together(tuple(rest)):
            raise IndexError("a truth value stands beside the computed indices: `x[:, True, i]`, not `x[True, :, i]`")
        return truths, tuple(rest), None
    first = next(n for n, k in enumerate(keys) if not _is_apart(k)) if together else 0
    before = [k for k in keys[:first] if not _is_truth(k)]
    return truths, (*before, None, *(k for k in keys[first:] if not _is_truth(k))), len(before)


def _by_truth(x: Tensor, key: Any) -> Tensor:
    """``x[True]`` has an axis of one more, ``x[False]`` has one of none."""
    truths, rest, at = _without_truths(key)
    out = get(x, rest)
    if all(bool(asarray(k)) for k in truths):
        return out
    if at is None:
        raise IndexError("`False` takes nothing, and the indices beside it something")
    return out[(slice(None),) * _axis_of(x, rest, at) + (slice(0, 0),)]


def _axis_of(x: Tensor, rest: tuple[Any, ...], at: int) -> int:
    """Which axis of the result an item of a key is."""
    n_dots = x.ndim - sum(k is not None and k is not Ellipsis for k in rest)
    return sum(n_dots if k is Ellipsis else isinstance(k, slice) or k is None for k in rest[:at])


def set_by_truth(x: Tensor, key: Any, value: Any) -> None:
    """``x[True, ...] = value`` stores as without the truth value, ``x[False, ...] = value`` nothing."""
    truths, rest, at = _without_truths(key)
    unknown = [k for k in truths if isinstance(k, Tensor)]
    is_true = all(bool(k) for k in truths if not isinstance(k, Tensor))
    if unknown and is_true:
        from aerogel.tensor._searching import where

        condition = unknown[0]
        for k in unknown[1:]:
            condition = condition & k
        if not is_number(value) and _is_empty(asarray(value)) and not _is_empty(x[rest]):
            # The values that a false condition takes: none.
            if tracing.program is None and bool(condition):
                _expect_fitting(value, x[rest].shape)
            return
        x[rest] = where(condition, value, x[rest])
    elif is_true:
        x[rest] = value
    elif not is_number(value) and at is not None:
        shape = list(x[rest].shape)
        shape[_axis_of(x, rest, at)] = 0
        _expect_fitting(value, tuple(shape))


def _is_empty(x: Any) -> bool:
    return any(type(n) is int and n == 0 for n in x.shape)


def _expect_fitting(value: Any, shape: tuple[Any, ...]) -> None:
    """Refuses values that nothing could be stored of."""
    given = asarray(value).shape
    fits = all(n == 1 or n == m for n, m in zip(reversed(given), reversed(shape)) if {type(n), type(m)} == {int})
    if not fits or any(n != 1 for n in given[: max(len(given) - len(shape), 0)]):
        raise ValueError(f"values of shape {given} for a part of shape {shape}")


def set_(x: Tensor, key: Any, value: Any) -> None:
    """Gives a tensor other numbers in a part of it; whoever else has the old numbers keeps them."""
    if not isinstance(value, Tensor) and not is_number(value):
        value = asarray(value)
    if isinstance(value, _complex.ComplexTensor):
        raise TypeError(f"elements of {x.dtype} are no complex numbers: take `x.real` or `abs(x)`")
    if is_number(value):
        _types.kept(value, x.dtype, "elements")
    (values,) = operands(value) if isinstance(value, Tensor) else (constant(value, x.dtype),)
    if values.dtype is not x.dtype:
        _types.kept(values.dtype, x.dtype, "elements")
        values = values.astype(x.dtype)
    if _is_array(key) and not isinstance(key, list) and asarray(key).dtype is u1 and values.ndim == 0:
        mask = asarray(key)
        _expect_mask(mask, x.shape[: mask.ndim], "axes")
        if 0 in mask.shape:
            return
        mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
        x._native = mask._native.select(values._native, x._native)
        return
    together = _are_together(key)
    parts, layout, computed = _split(x, _expanded(x, key))
    if not computed:
        values = _without_new(values, layout)
        shape = [n for _, _, n, drops in parts if not drops]
        values = _fitting(values, shape)
        x._native = x._native.with_part(parts, values._native)
        return
    points = max(i.ndim for i in computed.values())
    order = [n for axis in _order(layout, computed, together) for n in ([0] * points if axis == "points" else [axis])]
    values = _without_new(values, order)
    if x._outside == "error" and _is_outside(x, computed):
        # To a copy it fails where it is written, and nothing is changed.
        copy = x._as_it_is()
        _set_computed(copy, list(parts), dict(computed), values, together)
        if not copy._native.is_one_of_many():
            copy.realize()
    _set_computed(x, parts, computed, values, together)


def _is_outside(x: Tensor, computed: dict[int, Any]) -> bool:
    """Whether an index whose numbers are there is outside; others are looked at when they have been computed."""
    for axis, i in computed.items():
        if i._native.is_realised() and i.size:
            numbers, n = i.numpy(), x.shape[axis]
            if not -n <= numbers.min() <= numbers.max() < n:
                return True
    return False


def _without_new(values: Tensor, layout: list[int | None]) -> Tensor:
    """Values without the axes of extent 1 that a key has by ``None``."""
    new = [n - len(layout) for n, axis in enumerate(layout) if axis is None]
    return values.squeeze([n for n in new if values.ndim >= -n])


def _fitting(values: Tensor, shape: list[int]) -> Tensor:
    """Values without leading axes of extent 1 that the part does not have."""
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values.squeeze(0)
    return values


def _set_computed(x: Tensor, parts: list[Part], computed: dict[int, Any], values: Tensor, together: bool) -> None:
    from aerogel.tensor._creation import arange

    # Axes that are dropped beside computed indices are computed too, as where they are read.
    for axis, (start, _, _, drops) in enumerate(parts):
        if drops:
            computed[axis] = constant(start, next(iter(computed.values())).dtype)
            parts[axis] = (0, 1, x.shape[axis], False)
    last = max(computed)
    dtype = next(iter(computed.values())).dtype
    free = [axis for axis in range(last + 1) if axis not in computed and not parts[axis][3]]
    after = parts[last + 1 :]
    whole = all(
        (start, step, n) == (0, 1, x.shape[last + 1 + k]) and not drops
        for k, (start, step, n, drops) in enumerate(after)
    )
    if not whole:
        free += [axis for axis in range(last + 1, x.ndim) if not parts[axis][3]]
        last = x.ndim - 1
    points = max(i.ndim for i in computed.values())
    axes = sorted(computed)
    # Axes that parts are taken of stand behind the computed ones, unless these are together.
    before = [axis for axis in free if together and axis < axes[0]]
    behind = [axis for axis in free if axis not in before]
    rank = len(before) + points + len(behind)
    index = []
    for axis in range(last + 1):
        start, step, n, drops = parts[axis]
        if axis in computed:
            i = computed[axis]
            index.append(i.reshape(i.shape + (1,) * len(behind)))
        elif drops:
            index.append(constant(start, dtype))
        else:
            shape = [1] * rank
            shape[before.index(axis) if axis in before else len(before) + points + behind.index(axis)] = n
            index.append((arange(n, dtype=dtype) * step + start).reshape(shape))
    mode = x._outside
    x._native = x._native.scatter([i._native for i in index], values._native, "set", mode, True)


def refuse_masks(keys: tuple[Any, ...]) -> None:
    """Refuses masks among other indices.

    Raises:
        IndexError: If there is one.
    """
    if any(isinstance(k, Tensor) and k.dtype is u1 for k in keys):
        raise IndexError("a mask is the only index of a store, as in `x[mask] = 0`; choose by `where` elsewhere")


def is_part(key: Any) -> bool:
    """Whether a key is no index: a slice, an ellipsis or a new axis."""
    return key is None or key is Ellipsis or isinstance(key, slice)
