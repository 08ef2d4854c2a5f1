"""What draws a window's frames: `aerogel_viz.Window`, or `_software.Picture` with the same calls."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from typing import Any

from aerogel import _log

_told: set[str] = set()


def _tell(message: str) -> None:
    if message not in _told:
        _told.add(message)
        _log.info(message)


def has_display() -> bool:
    """Whether there may be a desktop."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _set_runtime_folder() -> None:
    """Mesa's drivers complain, once for each window, where XDG_RUNTIME_DIR is missing, as in containers."""
    if sys.platform != "linux" or os.environ.get("XDG_RUNTIME_DIR"):
        return
    folder = os.path.join(tempfile.gettempdir(), f"aerogel-{os.getuid()}")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.stat(folder).st_uid == os.getuid():
            os.environ["XDG_RUNTIME_DIR"] = folder
    except OSError:
        pass  # The drivers complain, and draw.


def _viz() -> tuple[Any, str]:
    """The package that draws; None, and what to do about it, if it cannot."""
    _set_runtime_folder()
    try:
        import aerogel_viz
    except ImportError:
        return None, "the package aerogel_viz is missing: pip install aerogel[viz]"
    try:
        aerogel_viz.adapter()
    except RuntimeError as e:
        return None, str(e)
    return aerogel_viz, ""


def open(title: str, size: tuple[int, int], visible: bool, vsync: bool, place: tuple[int, ...]) -> Any:  # noqa: A001
    """Opens a window; only a picture where there is no display.

    Raises:
        RuntimeError: It would be on the desktop, and this is not the main thread.
    """
    aerogel_viz, why = _viz()
    if aerogel_viz is None:
        return _software(size, why)
    if visible and not has_display():
        visible = False
        _tell("there is no display: windows draw into pictures (AEROGEL_GUI_OUT=last.png keeps the last)")
    if visible:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("windows belong to the main thread: open them there, or with show_window=False")
        try:
            return aerogel_viz.Window(title, *size, visible=True, vsync=vsync, place=(int(place[0]), int(place[1])))
        except RuntimeError as e:
            _tell(f"{e}: windows draw into pictures (AEROGEL_GUI_OUT=last.png keeps the last)")
    return aerogel_viz.Window(title, *size, visible=False)


def _software(size: tuple[int, int], why: str) -> Any:
    from aerogel.ui._software import Picture

    _tell(f"{why}; pictures are drawn in software, without meshes, widgets and windows")
    return Picture(*size, why)
