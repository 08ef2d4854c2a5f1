"""Where Taichi's programs look for ``ti.lang.impl`` and the like: the same objects under their older names."""

import sys
from typing import Any

from aerogel._old_modules import offer

#: Which module of Aerogel has what a module of ``taichi.lang`` has.
OLD_NAMES = {
    "_ndarray": "ndarray",
    "_ndrange": "ops",
    "_texture": "texture",
    "any_array": "_expressions",
    "argpack": "argpack",
    "common_ops": "_expressions",
    "enums": "snode",
    "exception": "errors",
    "expr": "_expressions",
    "field": "field",
    "impl": "_impl",
    "kernel_impl": "kernel",
    "matrix": "matrix",
    "matrix_ops": "_matrix_ops",
    "mesh": "mesh",
    "misc": "_config",
    "ops": "ops",
    "runtime_ops": "_config",
    "simt": "simt",
    "snode": "snode",
    "struct": "structs",
    "util": "_util",
}

# `import taichi.lang.matrix` wants a package.
__path__: list[str] = []

offer(__name__, OLD_NAMES)


def __getattr__(name: str) -> Any:
    """A name of the package itself: Taichi has most of them here too."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(sys.modules["aerogel"], name)
