"""``ti.ui``: in Taichi, windows and scenes in three dimensions. Aerogel has ``ti.GUI``, which draws in two."""

from __future__ import annotations

from typing import Any

from aerogel._taichi.absent import Absent
from aerogel.gui import GUI, hex_to_rgb, rgb_to_hex

_NAMES = frozenset(
    """
    Camera Canvas Gui Scene Window check_ggui_availability make_camera
    ALT BACKSPACE CAPSLOCK CTRL DOWN ESCAPE LEFT LMB MMB PRESS RELEASE RETURN RIGHT RMB SHIFT SPACE TAB UP
    """.split()
)
_INSTEAD = "ti.GUI draws in two dimensions, and ti.tools writes videos"

__all__ = ["GUI", "hex_to_rgb", "rgb_to_hex"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return Absent(f"ti.ui.{name}", _INSTEAD)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
