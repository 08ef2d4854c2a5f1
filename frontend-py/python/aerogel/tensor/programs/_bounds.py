"""The bounds of a loop in a program."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import ALL
from aerogel.tensor._elementwise import minimum
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor, asarray, constant, is_number

if TYPE_CHECKING:
    from aerogel.tensor.programs._trace import Trace

_I32, _I64, _U64 = ALL["i32"], ALL["i64"], ALL["u64"]
_WIDE = (_I64, ALL["u32"], _U64)
_MOST = 2**31 - 1


class Bounds:
    """The counter of a loop on the host (``i32``), and the counter that the program gets.

    They are the same for scalar bounds of type ``i32``. For other bounds, such as those with axes, the host counts from
    0.

    Raises:
        TypeError: If a bound is not an integer.
        ValueError: If the step is zero or not an integer.
        OverflowError: If there are more than 2^31 - 1 iterations; raised by the call if it is known only then.
    """

    def __init__(self, trace: Trace, begin: Any, end: Any, step: int) -> None:
        lo, hi = (_bound(trace, bound) for bound in (begin, end))
        if trace.divides_integers:
            lo, hi = (x.astype(_I32) if x.dtype.is_float else x for x in (lo, hi))
        elif lo.dtype.is_float or hi.dtype.is_float:
            wrong = lo if lo.dtype.is_float else hi
            raise TypeError(f"the bounds of a loop are integers, not {wrong.dtype}: round them by `astype`")
        try:
            step = operator.index(step)
        except TypeError:
            step = 0
        if step == 0:
            raise ValueError("a loop's step is an integer other than zero, known when the program is traced")
        n_known = max(-((begin - end) // step), 0) if is_number(begin) and is_number(end) else 0
        if n_known > _MOST:
            raise OverflowError(f"a loop up to {end}: its {n_known} iterations do not fit an `i32` counter")
        self._from: Tensor | None = None
        self._count: Tensor | None = None
        self.first, self.last, self.step = lo, hi, step
        per_point = lo.ndim > 0 or hi.ndim > 0
        if not per_point and lo.dtype is hi.dtype is _I32 and abs(step) <= _MOST:
            return
        is_wide = lo.dtype is not _I32 or hi.dtype is not _I32
        self._dtype, self._by = _I64 if is_wide or abs(step) > _MOST else _I32, step
        # The block may set its own bounds; the loop uses their first values.
        lo, hi = (Tensor(trace.native.snapshot(x.astype(_I64)._native)) for x in (lo, hi))
        self._from = lo.astype(self._dtype)
        self.first, self.step = constant(0, _I32), 1
        self.last = self.first
        low, high = (lo, hi) if step > 0 else (hi, lo)
        # The distance may exceed `i64`.
        far = (high - low).astype(_U64) if is_wide else high - low
        count = where(low < high, (far - 1) // abs(step) + 1, 0)
        # A maximum over no points does not exist.
        if 0 not in count._native.shape:
            most = Tensor(count._native.reduce("max", None, False))
            # Under `vmap` the host counts the iterations of the whole batch.
            if not trace.is_in_vmap:
                trace.watch(_look, "loop", most)
            self.last = minimum(most, _MOST).astype(_I32)
        if per_point:
            self._count = minimum(count, _MOST).astype(_I32)

    def seen(self, counter: Tensor) -> tuple[Tensor, Tensor | None]:
        """The counter for the program, and the mask of points that have such an iteration (``None``: all)."""
        if self._from is None:
            return counter, None
        # Points without further iterations get some number.
        at = self._from + counter.astype(self._dtype) * constant(self._by, self._dtype)
        return at, None if self._count is None else counter < self._count


def _look(count: Tensor, where: Any = None) -> None:
    if count.item() > _MOST and (where is None or where.numpy().any()):
        raise OverflowError(f"a loop of {count.item()} iterations: they do not fit an `i32` counter")


def _look_wide(bound: Tensor, where: Any = None) -> None:
    if bound.item() >= 2**63 and (where is None or where.numpy().any()):
        raise OverflowError(f"a loop up to {bound.item()}: bounds are of `i64`")


def _bound(trace: Trace, value: Any) -> Tensor:
    """A bound of a loop, in ``i32`` or, if its type has other numbers, in ``i64``."""
    if isinstance(value, int) and not hasattr(value, "dtype"):
        if not -(2**63) <= value < 2**63:
            raise OverflowError(f"a loop up to {value}: bounds are of `i64`")
        return constant(value, _I32 if -(2**31) <= value <= _MOST else _I64)
    value = asarray(value)
    if value.dtype.is_float:
        return value
    if value.dtype is _U64:
        if trace.is_in_vmap:
            # Nobody could look whether `i64` has them.
            raise TypeError(
                "`vmap`: the bounds of a loop are of `i64` at most, not of `u64`: make them `i64` by `astype`"
            )
        if 0 not in value._native.shape:
            trace.watch(_look_wide, "loop", Tensor(value._native.reduce("max", None, False)))
        value = minimum(value, 2**63 - 1)
    return value.astype(_I64 if value.dtype in _WIDE else _I32)
