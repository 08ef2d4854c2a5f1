"""Values at the active cells of a field, in programs: which reductions go over them, and what has no order there."""

from __future__ import annotations

from aerogel.tensor._tensor import Tensor, tracing


def are_at(x: Tensor) -> bool:
    """Whether numbers are those at the active cells of a field."""
    return tracing.program is not None and tracing.program.native.are_at_cells_of(x._native, x._native)


def _rank(x: Tensor) -> int:
    """How many of the first axes are those of the cells."""
    program = tracing.program
    of = (len(first.shape) for first, _ in program.cells if program.native.are_at_cells_of(x._native, first))
    return next(of, x.ndim)


_INACTIVE = "in `dense(v)` inactive cells are zeros and count as such."
_BEHIND = "`sort(where(dense(ones_like(v)) != 0, dense(v), inf).reshape(-1))`"
_ORDERED = f"{_INACTIVE} {_BEHIND} has those of inactive cells behind all"
_MIDDLE = f"{_INACTIVE} {_BEHIND} has those of active ones first, and the middle ones of these are the median"


def refuse_order(x: Tensor, axis: int | None, name: str) -> None:
    """Refuses values at the active cells of a field to what counts elements along an axis of the cells, or all.

    Raises:
        ValueError: With what to write instead.
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
    raise ValueError(f"`{name}` of a value `v` at the active cells of a field, which are in no row: {hint}")
