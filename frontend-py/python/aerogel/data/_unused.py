"""Fields made with a shape that no kernel has used yet: ``ti.root.lazy_grad()`` gives gradients to them as well."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

# Each with what places its gradient as it lies itself.
_fields: list[tuple[weakref.ref[Any], Callable[[Any], None]]] = []


def remember(field: Any, place: Callable[[Any], None]) -> None:
    """Notes a field that has just been placed."""
    _fields.append((weakref.ref(field), place))


def place_gradients(kind: str) -> None:
    """Gives all that may have it, and have none, a ``grad`` or ``dual``."""
    for reference, place in list(_fields):
        field = reference()
        if field is not None and getattr(field, kind) is None and field._may_have_gradient(kind):
            place(field._add_gradient(kind))


def forget() -> None:
    """A kernel may use all fields from now on, or they are gone."""
    _fields.clear()
