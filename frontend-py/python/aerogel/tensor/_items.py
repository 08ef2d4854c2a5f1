"""``x[key]`` and ``x[key] = value``."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import u1
from aerogel.tensor import _types
from aerogel.tensor._tensor import Tensor, asarray, constant, is_number, operands

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
    # A truth value takes all or nothing, and is no number of an element.
    keys = [constant(k, u1) if isinstance(k, bool) else k for k in keys]
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
            if not isinstance(shape[axis], int):
                raise IndexError(f"a part of axis {axis} is known only when the program runs: use `gather`")
            parts.append(_range(k, shape[axis]))
            layout.append(axis)
        elif _is_array(k):
            index = asarray(k)
            if index.dtype is u1:
                for values in _places(x, index, axis):
                    computed[len(parts)] = values
                    layout.append(len(parts))
                    parts.append((0, 1, shape[len(parts)], False))
                continue
            if index.dtype.is_float:
                raise IndexError(f"an index is an integer, not `{index.dtype}`")
            if x._outside == "error" and isinstance(shape[axis], int) and not isinstance(k, Tensor):
                _looked_at(k, axis, shape[axis])
            computed[axis] = index
            parts.append((0, 1, shape[axis], False))
            layout.append(axis)
        elif hasattr(k, "__index__"):
            parts.append(_whole(k, axis, shape[axis]))
        else:
            raise IndexError(f"an index is an integer, a part, or a tensor of integers, not {type(k).__name__}")
    return parts, layout, computed


def _places(x: Tensor, mask: Tensor, axis: int) -> list[Tensor]:
    """The indices where a mask is true: known when they have been computed."""
    if mask.shape != x.shape[axis : axis + mask.ndim]:
        raise IndexError(f"a mask of shape {mask.shape} for axes of shape {x.shape[axis : axis + mask.ndim]}")
    from aerogel.tensor._searching import nonzero

    return list(nonzero(mask))


def get(x: Tensor, key: Any) -> Tensor:
    """The part of a tensor that a key names."""
    keys = _expanded(x, key)
    if any(_is_array(k) and asarray(k).ndim == 0 and asarray(k).dtype is u1 for k in keys):
        return _by_truth(x, keys)
    parts, layout, computed = _split(x, keys)
    if not computed:
        out = x._native.slice(parts)
        return Tensor(_with_new(out, layout), x._outside)
    # Axes that are dropped beside computed indices are computed too, as NumPy has it.
    for axis, (start, _, _, drops) in enumerate(parts):
        if drops:
            computed[axis] = constant(start, asarray(next(iter(computed.values()))).dtype)
            parts[axis] = (0, 1, x.shape[axis], False)
    native = x._native.slice([p if n not in computed else (0, 1, x.shape[n], False) for n, p in enumerate(parts)])
    axes = sorted(computed)
    together = axes == list(range(axes[0], axes[-1] + 1)) and not _split_by_new(keys)
    index = [computed[axis]._native for axis in axes]
    if together:
        first = axes[0]
    else:
        order = axes + [n for n in range(x.ndim) if n not in computed]
        native, first = native.permute(order), 0
    out = Tensor(native.gather(first, index, x._outside, True), x._outside)
    new = [k for k in keys if k is None]
    return _place_new(out, keys, computed, first, together) if new else out


def _split_by_new(keys: list[Any]) -> bool:
    at = [n for n, k in enumerate(keys) if _is_array(k) or (hasattr(k, "__index__") and not isinstance(k, slice))]
    return any(keys[n] is None for n in range(at[0], at[-1])) if at else False


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


def _by_truth(x: Tensor, keys: list[Any]) -> Tensor:
    """``x[true]`` has an axis of one more, ``x[false]`` has one of none."""
    truths = [k for k in keys if _is_array(k)]
    rest = tuple(k for k in keys if not _is_array(k))
    n = int(all(bool(asarray(k)) for k in truths))
    out = get(x, (None, *rest))
    return out[:n]


def set_(x: Tensor, key: Any, value: Any) -> None:
    """Gives a tensor other numbers in a part of it; whoever else has the old numbers keeps them."""
    if not isinstance(value, Tensor) and not is_number(value):
        value = asarray(value)
    (values,) = operands(value) if isinstance(value, Tensor) else (constant(value, x.dtype),)
    if values.dtype is not x.dtype:
        _types.kept(values.dtype, x.dtype, "elements")
        values = values.astype(x.dtype)
    if _is_array(key) and not isinstance(key, list) and asarray(key).dtype is u1 and values.ndim == 0:
        mask = asarray(key)
        if mask.shape != x.shape[: mask.ndim]:
            raise IndexError(f"a mask of shape {mask.shape} for a tensor of shape {x.shape}")
        mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
        x._native = mask._native.select(values._native, x._native)
        return
    keys = _expanded(x, key)
    parts, layout, computed = _split(x, keys)
    if not computed:
        values = _without_new(values, layout)
        shape = [n for _, _, n, drops in parts if not drops]
        values = _fitting(values, shape)
        x._native = x._native.with_part(parts, values._native)
        return
    _set_computed(x, parts, computed, values)


def _without_new(values: Tensor, layout: list[int | None]) -> Tensor:
    """Values without the axes of extent 1 that a key has by ``None``."""
    new = [n - len(layout) for n, axis in enumerate(layout) if axis is None]
    return values.squeeze([n for n in new if values.ndim >= -n])


def _fitting(values: Tensor, shape: list[int]) -> Tensor:
    """Values without leading axes of extent 1 that the part does not have."""
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values.squeeze(0)
    return values


def _set_computed(x: Tensor, parts: list[Part], computed: dict[int, Any], values: Tensor) -> None:
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
    together = axes == list(range(axes[0], axes[-1] + 1))
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
    x._native = x._native.scatter([i._native for i in index], values._native, "set", mode)
