"""``ti.ui``: windows with pictures, 3D scenes and widgets.

A window is one of the desktop; without a display, or with ``show_window=False``, the same calls draw into a picture
that can be saved. Both need the package ``aerogel_viz`` (``make viz-wheel``) and Vulkan, in software too; without
them, pictures, points and lines are drawn in software, and meshes are errors.

Environment:
    AEROGEL_GUI_FRAMES: The number of shown frames after which a window counts as closed, so that programs end.
    AEROGEL_GUI_OUT: Where the last frame is written when the program ends.
"""

from __future__ import annotations

from aerogel.gui import GUI, hex_to_rgb, rgb_to_hex
from aerogel.ui._keys import (
    ALT,
    BACKSPACE,
    CAPSLOCK,
    CTRL,
    DOWN,
    ESCAPE,
    LEFT,
    LMB,
    MMB,
    PRESS,
    RELEASE,
    RETURN,
    RIGHT,
    RMB,
    SHIFT,
    SPACE,
    TAB,
    UP,
)
from aerogel.ui.camera import Camera, ProjectionMode, make_camera
from aerogel.ui.canvas import Canvas
from aerogel.ui.plots import Plot
from aerogel.ui.scene import Scene
from aerogel.ui.widgets import Gui
from aerogel.ui.window import Window, check_ggui_availability

__all__ = [
    "ALT", "BACKSPACE", "CAPSLOCK", "CTRL", "DOWN", "ESCAPE", "LEFT", "LMB", "MMB", "PRESS", "RELEASE", "RETURN",
    "RIGHT", "RMB", "SHIFT", "SPACE", "TAB", "UP", "Camera", "Canvas", "GUI", "Gui", "Plot", "ProjectionMode", "Scene",
    "Window", "check_ggui_availability", "hex_to_rgb", "make_camera", "rgb_to_hex",
]  # fmt: skip
