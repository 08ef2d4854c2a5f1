"""Functions of the language that Python code may call with values of a kernel, while the kernel is compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from aerogel import _native

F = TypeVar("F", bound=Callable[..., Any])


def traced(f: F) -> F:
    """Makes a call with a value of a kernel among the arguments a part of that kernel; ``f`` gets other calls."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = _native.traced_call(call, args, kwargs)
        return f(*args, **kwargs) if made is NotImplemented else made

    return call  # type: ignore[return-value]
