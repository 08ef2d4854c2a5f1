"""Modules that Taichi has and Aerogel does not: each stands for one of ours, and is loaded when it is asked for."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from types import ModuleType
from typing import Any


class _OldModule(ModuleType):
    """A module whose names are those of another one, and else those of ``aerogel.types`` and the package."""

    def __init__(self, name: str, ours: str) -> None:
        super().__init__(name, f"What Taichi has here is in ``aerogel.{ours}``.")
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)
        self._ours = ours

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for place in (f"aerogel.{self._ours}", "aerogel.types"):
            module = importlib.import_module(place)
            if hasattr(module, name):
                return getattr(module, name)
        try:
            return getattr(sys.modules["aerogel"], name)
        except AttributeError:
            message = f"{self.__name__!r} has no {name!r} here: Aerogel has what programs use, not Taichi's inside"
            raise AttributeError(message) from None


def offer(parent: str, names: dict[str, str]) -> None:
    """Makes ``import parent.name`` and ``from parent import name`` find the module of Aerogel that has its names."""
    for name, ours in names.items():
        module = _OldModule(f"{parent}.{name}", ours)
        sys.modules[module.__name__] = module
        setattr(sys.modules[parent], name, module)
