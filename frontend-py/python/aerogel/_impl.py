"""``ti.lang.impl``: the package's names, and the configuration as Taichi's own modules ask for it."""

from __future__ import annotations

from typing import Any

import aerogel


def current_cfg() -> Any:
    """The configuration in use, which is ``ti.cfg``."""
    return aerogel.cfg


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(aerogel, name)
