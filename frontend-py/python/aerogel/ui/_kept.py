"""Arrays that have not changed since they were drawn last: the same bytes again, and what is known of them.

What draws compares bytes only if they are other objects, so a mesh that stays as it is costs one comparison a frame.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

_T = TypeVar("_T")

#: Shorter arrays are turned sooner than they are looked up.
_FEW = 1 << 16
#: How many arrays are cached: those drawn last.
_MOST = 32


class _Entry:
    """The bytes of an array, for as long as what it was made of lives."""

    def __init__(self, source: weakref.ref[Any], made: bytes) -> None:
        self.source = source
        self.made = made
        self.known: dict[str, tuple[tuple[Any, ...], Any]] = {}


#: By the identity of the source and what it is used as; the one used last stands last.
_entries: dict[tuple[int, str], _Entry] = {}
#: The same by the identity of the bytes.
_by_bytes: dict[int, _Entry] = {}


def _drop(key: tuple[int, str]) -> None:
    entry = _entries.pop(key, None)
    if entry is not None:
        _by_bytes.pop(id(entry.made), None)


def bytes_of(source: Any, values: np.ndarray, use: str) -> bytes:
    """The bytes of an array; those that the source had last time if they are equal.

    Args:
        source: What the values come from.
        values: Contiguous numbers.
        use: What they are taken as, since one source may be used in several ways.
    """
    if values.nbytes < _FEW:
        return values.tobytes()
    key = id(source), use
    entry = _entries.get(key)
    if entry is not None and entry.source() is source and _are_equal(values, entry.made):
        _entries[key] = _entries.pop(key)
        return entry.made
    _drop(key)
    made = values.tobytes()
    try:
        ref = weakref.ref(source, lambda _: _drop(key))
    except TypeError:
        return made
    while len(_entries) >= _MOST:
        _drop(next(iter(_entries)))
    _entries[key] = _by_bytes[id(made)] = _Entry(ref, made)
    return made


def _are_equal(values: np.ndarray, made: bytes) -> bool:
    if values.nbytes != len(made):
        return False
    # As integers: a NaN is equal to itself here, and zeros differ by their sign.
    kind = np.uint64 if len(made) % 8 == 0 else np.uint8
    left, right = values.reshape(-1).view(kind), np.frombuffer(made, kind)
    # What changes mostly does so at the beginning.
    return bool((left[:512] == right[:512]).all() and (left == right).all())


def known(made: bytes, what: str, by: tuple[Any, ...], find: Callable[[], _T]) -> _T:
    """What is to be known of bytes: found once for as long as they stay.

    Args:
        made: What `bytes_of` returned, or any bytes.
        what: A name for it.
        by: What it depends on besides, compared by identity or as numbers.
        find: Finds it.
    """
    entry = _by_bytes.get(id(made))
    if entry is None or entry.made is not made:
        return find()
    there = entry.known.get(what)
    if there is not None and len(there[0]) == len(by) and all(_is_same(*both) for both in zip(there[0], by)):
        result: _T = there[1]
        return result
    found = find()
    entry.known[what] = by, found
    return found


def _is_same(left: Any, right: Any) -> bool:
    return left is right or (isinstance(left, int) and isinstance(right, int) and left == right)
