"""Whether a variable refers to the target of a store, or it is a temporary."""

from __future__ import annotations

import sys
from typing import Any


class _Probe:
    """Counts the references to what is stored to, as ``Tensor.__setitem__`` finds them."""

    n = 0

    def __setitem__(self, key: int, value: None) -> None:
        type(self).n = _references(self)


def _references(x: Any) -> int:
    return sys.getrefcount(x)


def _of_temporary() -> int:
    _Probe()[0] = None
    return _Probe.n


def _of_named() -> int:
    named = _Probe()
    named[0] = None
    return _Probe.n


#: The number of references of a temporary; below zero for a Python whose instructions borrow references, where a
#: temporary has no more than a variable's value.
_TEMPORARY = _of_temporary() if _of_temporary() < _of_named() else -1


def expect_held(target: Any) -> None:
    """Refuses a store to a tensor that is gone behind the statement; called by ``__setitem__``.

    Raises:
        ValueError: As for ``x[0][1] = v``, whose ``x[0]`` is a tensor of its own.
    """
    # Not by a function: each call holds it once more.
    if sys.getrefcount(target) > _TEMPORARY:
        return
    import opcode

    # Who calls `__setitem__` by name holds the tensor once less.
    frame = sys._getframe(2)
    if opcode.opname[frame.f_code.co_code[frame.f_lasti]] in ("STORE_SUBSCR", "STORE_SLICE"):
        raise ValueError(
            "this assignment modifies a temporary copy: slices, transposes, reshapes, conversions and `outside` are "
            "copies, not views. Assign to the tensor itself, as `x[0, 1] = value` instead of `x[0][1] = value`, or "
            "store the copy in a variable first"
        )
