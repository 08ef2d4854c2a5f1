"""Gradients that stay: those by what kernels overwrite, which is zero when a tape is through."""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel.ad._gradients import all_fields, expect_differentiable, gradient_of, listed
from aerogel.ad._put_back import put_back
from aerogel.data._derivatives import derivative_of
from aerogel.data.field import NumericField
from aerogel.data.ndarray import Ndarray


class Retained:
    """The fields and arrays whose gradients are retained, and what has been gathered of them.

    An element's gradient is complete when the backward pass reaches the element's last write. It is noted there, before
    that consumes it, and put back at the end.
    """

    def __init__(self, given: Any = None) -> None:
        self._given = given
        self.targets: list[Any] = []
        self._found = _native.NativePresent()

    def __bool__(self) -> bool:
        return bool(self.targets)

    def begin(self) -> None:
        """Forgets what has been gathered."""
        self._found = _native.NativePresent()
        if self._given is None or self._given is False:
            return
        if self._given is True:
            self.targets = [field for field in all_fields() if derivative_of(field, "grad") is not None]
        else:
            self.targets = listed(self._given)[0]
            for target in self.targets:
                expect_differentiable(target, "grad", "a field of retain_grad")

    def box_of(self, target: Any, key: Any) -> list[tuple[int, Any]]:
        """What a write of Python's writes."""
        found = [k for k, one in enumerate(self.targets) if one is target]
        if key is None or not isinstance(target, (NumericField, Ndarray)):
            return [(k, None) for k in found]
        at = [] if key == () or key is None else list(key) if isinstance(key, tuple) else [key]
        first = getattr(target, "offset", None) or [0] * len(at)
        return [(k, [(int(i) - int(o), int(i) - int(o) + 1) for i, o in zip(at, first)]) for k in found]

    def before(self, entry: Any) -> None:
        """Notes what an entry is about to consume."""
        for k, box in getattr(entry, "written", ()):
            self._found.note_elements(gradient_of(self.targets[k]), box)

    def end(self) -> None:
        """Puts what has been noted where gradients are."""
        self._found.restore()
        put_back()


__all__ = ["Retained"]
