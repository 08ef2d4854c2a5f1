"""Stores of programs: of whole arrays where indices are axes, reductions, products of matrices, and scatters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel._dtypes import ALL

if TYPE_CHECKING:
    from aerogel.backends._execute import Execution, Value

i32 = ALL["i32"]


class Store(NamedTuple):
    """``target[index] = value`` at each point of the domain; with ``accum``, combined with what is there."""

    target: int
    index: tuple[int, ...]
    value: int
    accum: str | None
    init: bool
    outside: str
    site: Any


def store(run: Execution, s: Store) -> None:
    """Does a store at all points."""
    axes = _axes(run, s)
    if axes is None:
        _scatter(run, s)
    elif s.accum is None:
        _assign(run, s, axes)
    else:
        _accumulate(run, s, axes)


def _axes(run: Execution, s: Store) -> list[int | None] | None:
    """The axis that each index is, or ``None`` for the only element of an axis, if points cover the whole target."""
    out: list[int | None] = []
    for e, n in zip(s.index, run.program.buffers[s.target].shape, strict=True):
        affine = run.program.affine(e)
        if affine == ({}, 0) and n == 1:
            out.append(None)
        elif affine is not None and list(affine[0].values()) == [1] and affine[1] == 0:
            axis = next(iter(affine[0]))
            if axis in out or run.domain[axis] != n:
                return None
            out.append(axis)
        else:
            return None
    return out


def _laid_out(run: Execution, s: Store, storage: Any, axes: list[int | None]) -> Any:
    """A storage over the axes of the target, in the order of the domain, in the shape of the target."""
    named = [axis for axis in axes if axis is not None]
    order = [sorted(named).index(axis) for axis in named]
    if order != sorted(order):
        storage = run.b.permute(storage, order)
    shape = run.program.buffers[s.target].shape
    return run.b.reshape(storage, shape) if len(named) < len(shape) else storage


def _assign(run: Execution, s: Store, axes: list[int | None]) -> None:
    value, mask = run.value(s.value), run.mask()
    own = tuple(sorted(axis for axis in axes if axis is not None))
    others = {*value.axes, *(mask.axes if mask else ())} - {*own}
    if others:
        # Several points store to one element: the last one counts.
        _scatter(run, s)
        return
    storage = _laid_out(run, s, run.lifted(value, own), axes)
    if mask is not None:
        kept = _laid_out(run, s, run.lifted(mask, own), axes)
        storage = run.b.select(kept, storage, run.memory_of(s.target))
    run.set_memory(s.target, storage)


def _accumulate(run: Execution, s: Store, axes: list[int | None]) -> None:
    assert s.accum is not None
    own = tuple(sorted(axis for axis in axes if axis is not None))
    reduced = tuple(axis for axis in range(len(run.domain)) if axis not in own)
    mask = run.mask()
    storage = _product(run, s, own, reduced) if mask is None and s.accum == "add" else None
    if storage is None:
        whole = tuple(range(len(run.domain)))
        storage = run.lifted(run.value(s.value), whole)
        if mask is not None:
            from aerogel.backends._execute import neutral

            dtype = run.program.buffers[s.target].dtype
            nothing = run.b.full(run.domain, neutral(s.accum, dtype), dtype)
            storage = run.b.select(run.lifted(mask, whole), storage, nothing)
        if reduced:
            storage = run.b.reduce(s.accum, storage, reduced)
    storage = _laid_out(run, s, storage, axes)
    is_first = s.init
    run.set_memory(s.target, storage if is_first else run.b.binary(s.accum, run.memory_of(s.target), storage))


def _product(run: Execution, s: Store, own: tuple[int, ...], reduced: tuple[int, ...]) -> Any:
    """The sum of a product of two values by a product of matrices, if it is one; over the axes of the target."""
    kind, *rest = run.program.exprs[s.value]
    if kind != "binary" or rest[0] != "mul" or not reduced or run.program.dtypes[s.value] is ALL["u1"]:
        return None
    a, b = run.value(rest[1]), run.value(rest[2])
    inner = [axis for axis in reduced if axis in a.axes and axis in b.axes]
    if not inner or any(axis not in a.axes and axis not in b.axes for axis in (*own, *reduced)):
        return None
    a, b = (
        _summed(run, a, [axis for axis in reduced if axis not in b.axes]),
        _summed(run, b, [axis for axis in reduced if axis not in a.axes]),
    )
    batch = [axis for axis in own if axis in a.axes and axis in b.axes]
    rows = [axis for axis in own if axis not in b.axes]
    columns = [axis for axis in own if axis not in a.axes]
    made = run.b.matmul(_matrix(run, a, batch, rows, inner), _matrix(run, b, batch, inner, columns))
    order = [*batch, *rows, *columns]
    made = run.b.reshape(made, [run.domain[axis] for axis in order])
    back = [order.index(axis) for axis in own]
    return made if back == sorted(back) else run.b.permute(made, back)


def _summed(run: Execution, value: Value, axes: list[int]) -> Value:
    """The sum of a value along axes."""
    if not axes:
        return value
    places = tuple(value.axes.index(axis) for axis in axes)
    left = tuple(axis for axis in value.axes if axis not in axes)
    return type(value)(run.b.reduce("add", value.storage, places), left)


def _matrix(run: Execution, value: Value, batch: list[int], rows: list[int], columns: list[int]) -> Any:
    """A value as matrices, side by side along one axis."""
    order = [value.axes.index(axis) for axis in (*batch, *rows, *columns)]
    storage = value.storage if order == sorted(order) else run.b.permute(value.storage, order)
    return run.b.reshape(storage, [math.prod(run.domain[axis] for axis in axes) for axes in (batch, rows, columns)])


def _scatter(run: Execution, s: Store) -> None:
    shape = run.program.buffers[s.target].shape
    indices = [run.value(e) for e in s.index]
    value, mask = run.value(s.value), run.mask()
    run.expect_inside(indices, shape, s.outside, s.site, None)
    if 0 in shape:
        return
    axes = tuple(range(len(run.domain)))
    storages, values, x = [run.lifted(i, axes) for i in indices], run.lifted(value, axes), run.memory_of(s.target)
    outside = "clamp" if s.outside in ("never", "error") else s.outside
    if not storages:
        # A single element, as an axis of its own.
        x, storages = run.b.reshape(x, (1,)), [run.b.full(run.domain, 0, i32)]
        shape = (1,)
    if mask is not None:
        storages = [_inside(run, i, n, outside) for i, n in zip(storages, shape, strict=True)]
        nowhere = run.b.full(run.domain, -1, i32)
        storages[0] = run.b.select(run.lifted(mask, axes), storages[0], nowhere)
        outside = "zero"
    if not axes:
        storages, values = [run.b.reshape(i, (1,)) for i in storages], run.b.reshape(values, (1,))
    made = run.b.scatter(x, storages, values, s.accum, outside)
    run.set_memory(s.target, made if s.index else run.b.reshape(made, ()))


def _inside(run: Execution, index: Any, n: int, outside: str) -> Any:
    """Indices as those inside that they mean."""
    size = run.b.describe(index)[1]
    if outside == "clamp":
        index = run.b.binary("max", index, run.b.full(size, 0, i32))
        return run.b.binary("min", index, run.b.full(size, n - 1, i32))
    if outside == "wrap":
        return run.b.binary("mod", index, run.b.full(size, n, i32))
    return index
