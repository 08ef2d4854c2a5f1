"""``taichi._lib`` and ``taichi._lib.utils``: the part of Taichi's core that programs use."""

from __future__ import annotations

import sys

from aerogel._taichi import core as ti_python_core

# `import taichi._lib.core` wants a package.
__path__: list[str] = []

__all__ = ["get_os_name", "ti_python_core"]


def get_os_name() -> str:
    """``linux``, ``osx`` or ``win``, as Taichi calls them."""
    names = {"darwin": "osx", "win32": "win"}
    return names.get(sys.platform, "linux")
