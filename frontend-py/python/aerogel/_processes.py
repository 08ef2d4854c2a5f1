"""The settings of ``ti.init`` in processes that work for another one.

Every start method of ``multiprocessing`` copies the dictionary ``_config`` of the parent's process object to the child.
``ti.init`` stores its settings there as numbers and strings, so that a child needs no import of Aerogel to unpickle
them. Workers of other packages are given them with the first kernel or, by ``mpi4py.futures``, when they start.
"""

from __future__ import annotations

import contextlib
import functools
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
#: What a pickle brought along, for a process that has neither a program nor a parent with one.
_given: dict[str, Any] = {}


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
    _given.clear()
    _config_of(sys.modules.get(_MODULE)).pop(_KEY, None)


def begin(start: Callable[[dict[str, Any]], None]) -> None:
    """Starts a program with the settings that the parent had when it started this process, if this is the first use."""
    if _begun:
        return
    with _beginning:
        settings = _config_of(sys.modules.get(_MODULE)).get(_KEY, _given.get(_KEY))
        if settings is not None and not _begun:
            start(settings)


def settings() -> dict[str, Any]:
    """What another process needs to start as this one did; nothing if there is no program."""
    places = (_config_of(sys.modules.get(_MODULE)), _published, _given)
    return next((place[_KEY] for place in places if _KEY in place), {})


def inherit(settings: Mapping[str, Any]) -> None:
    """Keeps the settings of another process, in case that this one is used before it has its own."""
    if settings and not _begun:
        _given.setdefault(_KEY, dict(settings))


#: The arguments of `run.install_once`, if `import taichi` gives Aerogel in this process.
alias: dict[str, Any] = {}


class _Entries(list[str]):
    """Folders that a worker of ``mpi4py.futures`` searches for modules. Settings are unpickled with them."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _entries, (list(self), settings(), alias)


def _entries(entries: list[str], settings: Mapping[str, Any], alias: Mapping[str, Any]) -> list[str]:
    inherit(settings)
    if alias:
        from aerogel.run import install_once

        install_once(**alias)
    return entries


def _wrap_pool(module: Any) -> None:
    executor = module.MPIPoolExecutor
    begin = executor.__init__

    @functools.wraps(begin)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        # Folders of the caller's may be where a worker finds this package, so they must not need it to be unpickled.
        begin(self, *args, **{"path": _Entries(), **kwargs})

    executor.__init__ = __init__


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


# Workers of `mpi4py.futures` start as children of `multiprocessing` do.
at_import("mpi4py.futures.pool", _wrap_pool)
