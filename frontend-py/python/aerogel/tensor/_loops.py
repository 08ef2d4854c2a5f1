"""The turns of a program's loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel._dtypes import ALL
from aerogel.tensor._tensor import Tensor, asarray, constant

if TYPE_CHECKING:
    from aerogel.tensor._trace import Trace

_I32 = ALL["i32"]
_WIDE = (ALL["i64"], ALL["u32"], ALL["u64"])
_MOST = 2**31 - 1


class Turns:
    """The turns from ``begin`` to before ``end``: as the host counts them, by ``i32``, and as the program sees them.

    Bounds of one number in ``i32`` are the host's own. Others, as those that differ at each point, are counted from 0.

    Raises:
        TypeError: If a bound is no integer.
        ValueError: If the step is none, or zero.
        OverflowError: If there are more turns than ``i32`` counts, when the program runs if that is unknown before.
    """

    def __init__(self, trace: Trace, begin: Any, end: Any, step: int) -> None:
        lo, hi = _bound(begin), _bound(end)
        if trace.divides_integers:
            lo, hi = (x.astype(_I32) if x.dtype.is_float else x for x in (lo, hi))
        elif lo.dtype.is_float or hi.dtype.is_float:
            wrong = lo if lo.dtype.is_float else hi
            raise TypeError(f"the bounds of a loop are integers, not {wrong.dtype}: round them by `astype`")
        if not isinstance(step, int) or step == 0:
            raise ValueError(f"a loop's step is a whole number other than zero, not {step!r}")
        self._from: Tensor | None = None
        self._to: Tensor | None = None
        self._by = step
        self.first, self.last, self.step = lo, hi, step
        per_point = lo.ndim > 0 or hi.ndim > 0
        is_wide = lo.dtype is not _I32 or hi.dtype is not _I32
        if not per_point and not is_wide:
            return
        # A block that sets its bounds goes on by those it began with.
        lo, hi = (Tensor(trace.native.value(x._native)) for x in (lo, hi))
        self._from, self._to = lo, hi if per_point else None
        self.first, self.step = constant(0, _I32), 1
        self.last = self.first
        count = (hi - lo + (step - (1 if step > 0 else -1))) // step
        # Where there are no points there are no turns.
        if 0 not in count._native.shape:
            self.last = Tensor(count._native.reduce("max", None, False))
        if is_wide:
            trace.watch(_look, "loop", self.last)
            self.last = self.last.astype(_I32)

    def seen(self, counter: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the program sees as the counter, and at which points the turn is one, if not at all."""
        if self._from is None:
            return counter, None
        at = self._from + counter * self._by
        if self._to is None:
            return at, None
        return at, at < self._to if self._by > 0 else at > self._to


def _look(turns: Tensor, where: Any = None) -> None:
    if turns.item() > _MOST and (where is None or where.numpy().any()):
        raise OverflowError(f"a loop of {turns.item()} turns: they are counted by `i32`")


def _bound(value: Any) -> Tensor:
    """A bound of a loop, in ``i32`` or, if its type has other numbers, in ``i64``."""
    if isinstance(value, int) and not hasattr(value, "dtype"):
        if not -(2**31) <= value <= _MOST:
            raise OverflowError(f"a loop up to {value}: its turns are counted by `i32`")
        return constant(value, _I32)
    value = asarray(value)
    if value.dtype.is_float:
        return value
    return value.astype(ALL["i64"] if value.dtype in _WIDE else _I32)
