"""Where Taichi's programs look for ``ti.lang.impl`` and the like: the same objects under their older names."""

import sys
from typing import Any

# `import taichi.lang.matrix` wants a package.
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    """A name of the package itself: Taichi has most of them here too."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(sys.modules["aerogel"], name)
