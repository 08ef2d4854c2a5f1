"""Whether a rule for gradients reads storages of a back end: what is computed with them has no derivative."""

from __future__ import annotations

import threading
from typing import Any


class _State(threading.local):
    #: How many parts of rules run, one inside the other.
    n_rules = 0
    #: Whether the innermost one has read a storage.
    has_read = False


_state = _State()


class Rule:
    """Runs a part of a rule, and knows afterwards whether it has read a storage."""

    is_opaque = False

    def __enter__(self) -> Rule:
        self._around = _state.has_read
        _state.has_read = False
        _state.n_rules += 1
        return self

    def __exit__(self, *_: Any) -> None:
        self.is_opaque = _state.has_read
        _state.has_read = self._around
        _state.n_rules -= 1


def note_storage() -> bool:
    """Notes that a storage is read, and returns whether a rule does so."""
    _state.has_read = True
    return _state.n_rules > 0
