"""Values at the active cells of a field, in programs: which reductions go over them, and what has no order there."""

from __future__ import annotations

import itertools

from aerogel.tensor._tensor import Tensor, operands, tracing


def are_at(x: Tensor) -> bool:
    """Whether numbers are those at the active cells of a field."""
    return tracing.program is not None and tracing.program.native.are_at_cells_of(x._native, x._native)


def _rank(x: Tensor) -> int:
    """How many of the first axes are those of the cells."""
    of_cells = tracing.program.native.cell_axes(x._native)
    return x.ndim if of_cells is None else of_cells


def stacked(given: list[Tensor], axis: int) -> list[Tensor] | Tensor:
    """Stacks values on active cells along a new axis; if all cells are active, as tensors of all elements.

    Raises:
        ValueError: If the axis is not behind those of the cells.
    """
    from aerogel.tensor._searching import where

    native = tracing.program.native
    first = next(x for x in given if are_at(x))
    rank = _rank(first)
    if axis < rank:
        axes = "first axis is that" if rank == 1 else f"first {rank} axes are those"
        raise ValueError(
            f"`stack` of values on the active cells of a field, whose {axes} of the cells: the components are "
            "the last axis, `stack([...], axis=-1)`; or take `dense` of each"
        )
    if not native.is_sparse(first._native):
        return [Tensor(native.dense(x._native), x._outside) for x in given]
    behind = axis - rank
    last = [*first.shape[rank : rank + behind], len(given), *first.shape[rank + behind :]]
    # What is at all points is taken at the cells.
    here = Tensor(first._native.binary("eq", first._native))
    made = [x if are_at(x) else where(here, x, x) for x in operands(*given)]
    parts = []
    for at in itertools.product(*map(range, last)):
        own = at[:behind] + at[behind + 1 :]
        parts.append(made[at[behind]][(..., *own)]._native)
    return Tensor(native.at_cells(parts, last))


def expect_elements(value: Tensor, own: list[int]) -> None:
    """Checks that the last axes have the shape of a field's vectors or matrices.

    Raises:
        ValueError: The message names the replacement.
    """
    if list(value._native.shape[-len(own) :]) != own:
        axes = "axis" if len(own) == 1 else "axes"
        raise ValueError(
            f"elements have the shape {tuple(own)}, not that of the last axes of {value._native.shape_text()}: the "
            f"components are the last {axes}, as of `stack([...], axis=-1)`"
        )


_INACTIVE = "in `dense(v)` inactive cells are zeros and count as zeros."
_BEHIND = "`sort(where(dense(ones_like(v)) != 0, dense(v), inf).reshape(-1))`"
_ORDERED = f"{_INACTIVE} {_BEHIND} puts inactive cells last"
_MIDDLE = f"{_INACTIVE} {_BEHIND} puts active cells first, and the middle ones of these are the median"


def refuse_order(x: Tensor, axis: int | None, name: str) -> None:
    """Refuses values at the active cells of a field to what counts elements along an axis of the cells, or all.

    Raises:
        ValueError: The message names the replacement.
    """
    if not are_at(x) or (axis is not None and not -x.ndim <= axis < x.ndim):
        return
    if axis is not None and axis % x.ndim >= _rank(x):
        return
    if name in ("argmin", "argmax"):
        best = name[3:]
        hint = (
            f"{_INACTIVE} Give each cell a number `k`, as `i * n + j` of its indices: "
            f"`min(where(v == {best}(v), k, most))` is the first at which the {best}imum is"
        )
    else:
        hint = _MIDDLE if name == "median" else _ORDERED
    raise ValueError(f"`{name}` of a value `v` on the active cells of a field, which have no order: {hint}")
