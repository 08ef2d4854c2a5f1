"""Kernels and programs in pickles: by their names, or by their source where another process has no such name.

A pickle brings the settings of ``ti.init`` along: a process that has none of its own starts with them.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping
from typing import Any

from aerogel import _processes
from aerogel._at_import import at_import

#: Packages that pickle functions of ``__main__``, and those defined inside others, by value: Dask's,
#: joblib's and Ray's.
_BY_VALUE = ("cloudpickle.cloudpickle", "joblib.externals.cloudpickle.cloudpickle", "ray.cloudpickle.cloudpickle")

# How they pickle objects of our classes.
_known: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
_tables: list[Any] = []


def global_name(what: str, value: Any, location: str) -> str:
    """The name of a kernel or a program in its module, by which other processes find it.

    Raises:
        pickle.PicklingError: It has none, since it is defined inside a function.
    """
    outer, _, name = value.__qualname__.rpartition(".")
    if "<locals>" in outer:
        raise pickle.PicklingError(
            f"{what} `{value.__name__}` ({location}) cannot be pickled: pickle goes by name, and this one is defined "
            "inside a function; define it, or its class, at the top level of a module"
        )
    if outer and name.startswith("__") and not name.endswith("__"):
        # A private name of a class, as Python stores it.
        name = f"_{outer.rpartition('.')[2].lstrip('_')}{name}"
    return f"{outer}.{name}" if outer else name


def by_name(value: Any, name: str) -> tuple[Any, ...]:
    """What ``__reduce__`` returns for something that stands under a name of its module.

    Raises:
        pickle.PicklingError: Something else stands there, or nothing.
    """
    there = f"{value.__module__}.{name}"
    try:
        found = _look_up(value.__module__, name)
    except (ImportError, AttributeError):
        raise pickle.PicklingError(f"can't pickle {value!r}: it's not found as {there}") from None
    if found is not value:
        raise pickle.PicklingError(f"can't pickle {value!r}: it's not the same object as {there}")
    return _found, (value.__module__, name, _processes.settings())


def by_value(kind: type, make: Callable[..., Any], parts: Callable[[Any], tuple[Any, ...]]) -> None:
    """Lets packages that pickle functions by value do so with objects of a class, where others have no such name.

    Args:
        kind: The class. Its objects' ``__reduce__`` goes by name.
        make: Makes an object of its parts, in another process.
        parts: The arguments of ``make``.
    """

    def reduce(value: Any) -> tuple[Any, ...]:
        # The `__main__` of another process is another program.
        if value.__module__ != "__main__":
            try:
                return value.__reduce__()
            except pickle.PicklingError:
                pass
        return _made, (make, _processes.settings(), *parts(value))

    if not _known:
        for name in _BY_VALUE:
            at_import(name, _tell)
    _known[kind] = reduce
    for table in _tables:
        table[kind] = reduce


def _tell(package: Any) -> None:
    table = package.CloudPickler.dispatch_table
    _tables.append(table)
    table.update(_known)


def _look_up(module: str, name: str) -> Any:
    if module not in sys.modules:
        __import__(module)
    value: Any = sys.modules[module]
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _found(module: str, name: str, settings: Mapping[str, Any]) -> Any:
    _processes.inherit(settings)
    return _look_up(module, name)


def _made(make: Callable[..., Any], settings: Mapping[str, Any], *parts: Any) -> Any:
    _processes.inherit(settings)
    return make(*parts)
