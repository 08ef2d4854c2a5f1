"""What a field holds of derivatives."""

from __future__ import annotations

import enum
from typing import Any


class SNodeGradType(enum.IntEnum):
    """The kind of values in a field: primal values, or derivatives."""

    PRIMAL = 0
    ADJOINT = 1
    DUAL = 2
    ADJOINT_CHECKBIT = 3


def is_there(gradient: Any) -> bool:
    """Whether a gradient can be used: of a field, whether it is placed."""
    is_placed = getattr(gradient, "_is_placed", None)
    return is_placed is None or is_placed()


def derivative_of(target: Any, kind: str) -> Any:
    """The gradient (``"grad"``) or tangent (``"dual"``) of something, if it has one that is placed."""
    found = getattr(target, kind, None)
    return found if found is not None and is_there(found) else None
