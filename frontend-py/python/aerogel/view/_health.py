"""The first NaN: which launch of which kernel wrote it."""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel.view import _values


class Health:
    """Knows of each field of floats whether it is all numbers.

    After a launch the fields are looked at that it may have written, and before it those that Python has written since.
    """

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._dirty: set[int] = set()
        self._sick: set[int] = set()

    def know(self, fields: dict[str, Any]) -> None:
        """Says which fields there are."""
        old = {id(x) for x in self._fields.values()}
        self._fields = {name: x for name, x in fields.items() if _values.is_there(x) and _is_float(x)}
        self._dirty |= {id(x) for x in self._fields.values()} - old

    def wrote(self, field: Any) -> None:
        """Python writes into a field."""
        self._dirty.add(id(field))

    def _new(self, names: list[str]) -> list[tuple[str, _values.Wrong]]:
        out = []
        for name in names:
            x = self._fields[name]
            try:
                wrong = _values.read(x).wrong
            except (RuntimeError, MemoryError):
                continue
            if wrong is None:
                self._sick.discard(id(x))
            elif id(x) not in self._sick:
                self._sick.add(id(x))
                out.append((name, wrong))
        return out

    def before(self) -> list[tuple[str, _values.Wrong]]:
        """What Python made of fields that were numbers: their names, and what is wrong."""
        names = [name for name, x in self._fields.items() if id(x) in self._dirty]
        self._dirty.clear()
        return self._new(names)

    def after(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, _values.Wrong]]:
        """What a launch made of fields that were numbers."""
        names = list(self._fields)
        try:
            targets = list(self._fields.values())
            written = {k for k, _ in _native.NativeRecording.writes(kernel, args, kwargs, targets)}
            names = [name for k, name in enumerate(names) if k in written]
        except Exception:  # noqa: BLE001  What it writes is not known: all are looked at.
            pass
        return self._new(names)


def _is_float(x: Any) -> bool:
    return bool(getattr(x.dtype, "is_float", False))
