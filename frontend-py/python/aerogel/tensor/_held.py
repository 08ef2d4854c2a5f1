"""Whether anybody holds what is stored to, and what one statement sets: where Python's own rules lose a value."""

from __future__ import annotations

import dis
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


#: So many references has what nobody holds; below zero for a Python that lends names to its instructions, where such
#: have no more.
_TEMPORARY = _of_temporary() if _of_temporary() < _of_named() else -1

#: What `x[key] = value` is compiled to; who calls `__setitem__` by name holds the tensor once less.
_STORES = frozenset(dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap)


def expect_held(target: Any) -> None:
    """Refuses a store to a tensor that is gone behind the statement; called by ``__setitem__``.

    Raises:
        ValueError: As for ``x[0][1] = v``, whose ``x[0]`` is a tensor of its own.
    """
    # Not by a function: each call holds it once more.
    if sys.getrefcount(target) > _TEMPORARY:
        return
    frame = sys._getframe(2)
    if frame.f_code.co_code[frame.f_lasti] in _STORES:
        raise ValueError(
            "this stores to a tensor that nobody holds, and nothing would see it: parts of a tensor, and the tensor "
            "turned, in another shape, of another type or by `outside`, are tensors of their own. Store to the tensor "
            "itself, as `x[0, 1] = value` in place of `x[0][1] = value`, or give that a name first"
        )


class Together:
    """What one statement of Python's has set by ``.val``: ``u.val, v.val = v, u`` takes ``u`` when it is another."""

    def __init__(self) -> None:
        self._at: Any = None
        self._last = -1
        #: Held, so that no other one gets its number.
        self._set: dict[int, Any] = {}

    def expect_unset(self, target: Any, value: Any, frame: Any) -> None:
        """Refuses to take the value of what the same statement has set.

        Raises:
            ValueError: If it has.
        """
        at = id(frame), frame.f_lineno
        # The same place again is another turn, or another call.
        if at != self._at or frame.f_lasti <= self._last:
            self._at, self._set = at, {}
        self._last = frame.f_lasti
        if value is not target and id(value) in self._set:
            raise ValueError(
                "a value is taken of what the same statement has set before, and which is another by now: copy it "
                "first, as in `old = u.copy()` and `u.val, v.val = v, old`"
            )
        self._set[id(target)] = target
