"""The mark of functions that no kernel may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def outside_kernels(function: F) -> F:
    """Marks what changes the program: the compiler refuses a kernel that calls it, and would else call it once."""
    function.__aerogel_outside_kernels__ = True  # type: ignore[attr-defined]
    return function
