"""The fields of a program, and what it calls them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any

#: Of a list or dictionary of more fields no names are made.
_MANY = 32


class Names:
    """Finds fields by the names that a program has for them.

    Looked at are the globals of the program and of modules beside it, the local variables of its functions that are
    running, and what lists and objects of its own classes hold.

    Args:
        folder: Where the program is: what is defined there is its own.
    """

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(os.path.realpath(folder), "")

    def _is_own(self, path: str | None) -> bool:
        return bool(path) and os.path.realpath(str(path)).startswith(self._folder)

    def _modules(self) -> list[ModuleType]:
        main = sys.modules["__main__"]
        others = [m for m in list(sys.modules.values()) if m is not main and self._is_own(getattr(m, "__file__", None))]
        return [main, *others]

    def find(self, frame: FrameType | None) -> dict[str, Any]:
        """Fields and arrays by their names, in the order in which the program has them; each once.

        Args:
            frame: The function that runs.
        """
        modules = self._modules()
        own = {m.__name__ for m in modules}
        found: dict[str, Any] = {}
        known: set[int] = set()

        def take(scope: dict[str, Any], prefix: str) -> None:
            for key, value in list(scope.items()):
                if key.startswith("__"):
                    continue
                for name, field in _fields(value, prefix + key, own):
                    if id(field) not in known:
                        known.add(id(field))
                        found.setdefault(name, field)

        for module in modules:
            take(vars(module), "" if module is modules[0] else f"{module.__name__}.")
        while frame is not None:
            if self._is_own(frame.f_code.co_filename) and frame.f_code.co_name != "<module>":
                take(frame.f_locals, "")
            frame = frame.f_back
        return found


def _is_field(value: Any) -> bool:
    from aerogel.data.ndarray import Ndarray

    return isinstance(value, Ndarray) or (hasattr(type(value), "to_numpy") and hasattr(type(value), "_array_shape"))


def _fields(value: Any, name: str, own: set[str], depth: int = 0) -> Iterator[tuple[str, Any]]:
    from aerogel.data.structs import StructField

    if isinstance(value, StructField):
        for key, member in value._members.items():
            yield from _fields(member, f"{name}.{key}", own, depth)
    elif _is_field(value):
        yield name, value
    elif depth < 3 and isinstance(value, (list, tuple)) and len(value) <= _MANY:
        for k, item in enumerate(value):
            yield from _fields(item, f"{name}[{k}]", own, depth + 1)
    elif depth < 3 and isinstance(value, dict) and len(value) <= _MANY:
        for key, item in value.items():
            yield from _fields(item, f"{name}[{key!r}]", own, depth + 1)
    elif depth < 2 and not isinstance(value, type) and type(value).__module__ in own:
        for key, item in vars(value).items() if hasattr(value, "__dict__") else ():
            yield from _fields(item, f"{name}.{key}", own, depth + 1)
