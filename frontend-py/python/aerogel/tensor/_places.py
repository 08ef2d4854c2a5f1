"""Where in the user's functions a program's tensors are made, and which of them Python still has."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aerogel.tensor._tensor import Tensor


#: Whose functions are no functions of the user's.
_OURS = ("aerogel", "contextlib")


def _of_user(frame: Any) -> Any:
    """The innermost function of the user's."""
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame = frame.f_back
    return frame


def here() -> str:
    """Where in the user's program something is made."""
    frame = _of_user(sys._getframe(2))
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Places:
    """The tensors of one trace by where they are made."""

    def __init__(self) -> None:
        #: How many tensors each place has made.
        self._n_made: dict[Any, int] = {}
        self._made: list[weakref.ref[Tensor]] = []

    def add(self, tensor: Tensor) -> Any:
        """What is the same of a tensor in each trace that finds the same in caches of Python's.

        It is the place that makes it, and how many that has made before.
        """
        self._made.append(weakref.ref(tensor))
        frame = _of_user(sys._getframe(1))
        place = (frame.f_code, frame.f_lasti)
        n = self._n_made[place] = self._n_made.get(place, 0) + 1
        return (*place, n)

    def kept(self, scope: Any = None) -> list[Tensor]:
        """The tensors of the trace that Python still has: those that were made in a block, or all."""
        self._made = [ref for ref in self._made if ref() is not None]
        tensors = (ref() for ref in self._made)
        theirs = (t for t in tensors if t is not None and t._made is not None)
        return [t for t in theirs if scope is None or scope in t._made.scopes]
