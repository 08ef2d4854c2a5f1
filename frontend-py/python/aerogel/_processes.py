"""The settings of ``ti.init`` in child processes of ``multiprocessing``.

Every start method copies the dictionary ``_config`` of the parent's process object to the child. ``ti.init`` stores its
settings there as numbers and strings, so that a child needs no import of Aerogel to unpickle them.
"""

from __future__ import annotations

import contextlib
import operator
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from aerogel._at_import import at_import

_KEY = "aerogel"
_MODULE = "multiprocessing.process"

#: Whether this process has had a program, or has its parent's by a fork.
_begun = False
_beginning = threading.Lock()
#: What processes that are started from now on inherit.
_published: dict[str, Any] = {}


def publish(settings: Mapping[str, Any]) -> None:
    """Lets processes that are started from now on inherit settings, except those that are neither numbers nor text."""
    global _begun
    _begun = True
    plain = {key: _plain(value) for key, value in settings.items()}
    _published[_KEY] = {key: value for key, value in plain.items() if value is not None}
    # Most programs need not wait for the import of that module.
    at_import(_MODULE, lambda process: _config_of(process).update(_published))


def withdraw() -> None:
    """Lets processes that are started from now on inherit nothing."""
    global _begun
    _begun = True
    _published.clear()
    _config_of(sys.modules.get(_MODULE)).pop(_KEY, None)


def begin(start: Callable[[dict[str, Any]], None]) -> None:
    """Starts a program with the settings that the parent had when it started this process, if this is the first use."""
    if _begun:
        return
    with _beginning:
        settings = _config_of(sys.modules.get(_MODULE)).get(_KEY)
        if settings is not None and not _begun:
            start(settings)


def _config_of(process: Any) -> dict[str, Any]:
    """The dictionary that children of this process inherit; without ``multiprocessing`` there are no children."""
    # It may be in the midst of being imported.
    current = getattr(process, "current_process", None)
    return {} if current is None else getattr(current(), "_config", {})


def _plain(value: Any) -> bool | int | float | str | None:
    """A setting as one of Python's own types."""
    with contextlib.suppress(Exception):
        if hasattr(value, "item"):
            # A scalar of NumPy.
            value = value.item()
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        for kind in (bool, int, float, str):
            if isinstance(value, kind):
                return kind(value)
        return operator.index(value)
    return None
