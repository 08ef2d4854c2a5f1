"""What is done when a module is imported that most programs do without."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any


class _AtImport:
    """A finder of modules that calls a function with one module after its import."""

    def __init__(self, name: str, then: Callable[[Any], None]) -> None:
        self.name = name
        self.then = then

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)
        # Not at the top: with what it imports it takes as long as a tenth of Aerogel.
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                self.then(module)

            # Of this import's loader only.
            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def at_import(name: str, then: Callable[[Any], None]) -> None:
    """Calls a function with a module, now or when it is imported; for each module once."""
    module = sys.modules.get(name)
    if module is not None:
        then(module)
    elif not any(isinstance(finder, _AtImport) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, _AtImport(name, then))
