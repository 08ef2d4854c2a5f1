"""Where Taichi's programs look for ``ti.lang.impl`` and the like: the same objects under their older names."""

import sys
from typing import Any

#: Which module of Aerogel has what a module of ``taichi.lang`` has.
OLD_NAMES = {
    "_ndarray": "data.ndarray",
    "_ndrange": "ops",
    "_texture": "_taichi.texture",
    "any_array": "_taichi.expressions",
    "argpack": "data.argpack",
    "common_ops": "_taichi.expressions",
    "enums": "data.axes",
    "exception": "errors",
    "expr": "_taichi.expressions",
    "field": "data.field",
    "impl": "_taichi.impl",
    "kernel_impl": "kernel",
    "matrix": "data.matrix",
    "matrix_ops": "_taichi.matrix_ops",
    "mesh": "mesh",
    "misc": "_config",
    "ops": "ops",
    "runtime_ops": "_config",
    "simt": "_taichi.simt",
    "snode": "data.snode",
    "struct": "data.structs",
    "util": "_taichi.util",
}

# `import taichi.lang.matrix` wants a package.
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    """A name of the package itself: Taichi has most of them here too."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(sys.modules["aerogel"], name)
