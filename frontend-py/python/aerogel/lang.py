"""Where Taichi's programs look for ``ti.lang.impl`` and the like: the same objects under their older names."""

import importlib
import sys
from typing import Any

#: Which module of Aerogel has what a module of ``taichi.lang`` has.
OLD_NAMES = {
    "exception": "errors",
    "field": "field",
    "impl": "_impl",
    "kernel_impl": "kernel",
    "matrix": "matrix",
    "mesh": "mesh",
    "misc": "_config",
    "ops": "ops",
    "snode": "snode",
    "struct": "structs",
}

# `import taichi.lang.matrix` wants a package.
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    """A name of the package itself: Taichi has most of them here too."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name in OLD_NAMES:
        return importlib.import_module(f"aerogel.{OLD_NAMES[name]}")
    return getattr(sys.modules["aerogel"], name)
