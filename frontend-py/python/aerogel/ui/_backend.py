"""What draws a window's frames: `aerogel_viz.Window`, or `_software.Picture` with the same calls."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from aerogel import _gui_arrays, _log

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


@contextlib.contextmanager
def _without_asking_the_display() -> Iterator[None]:
    """When devices are listed, Mesa queries the display for its device, and waits forever if no display responds.

    Who says which device it shall be wants that done.
    """
    chosen = ("NODEVICE_SELECT", "MESA_VK_DEVICE_SELECT", "DRI_PRIME")
    is_ours = sys.platform == "linux" and not any(name in os.environ for name in chosen)
    if is_ours:
        os.environ["NODEVICE_SELECT"] = "1"
    try:
        yield
    finally:
        if is_ours:
            os.environ.pop("NODEVICE_SELECT", None)


def _viz() -> tuple[Any, str]:
    """The package that draws; None, and what to do about it, if it cannot."""
    _set_runtime_folder()
    import aerogel

    try:
        import aerogel_viz
    except ImportError:
        return None, "the package aerogel_viz is missing: `make viz-wheel` in Aerogel's sources builds it"
    have = getattr(aerogel_viz, "VERSION", "an older one")
    if have != aerogel.version:
        return (
            None,
            f"the package aerogel_viz is {have}, and aerogel {aerogel.version}: build both from the same sources",
        )
    try:
        with _without_asking_the_display():
            aerogel_viz.adapter()
    except RuntimeError as e:
        return None, str(e)
    return aerogel_viz, ""


#: Windows of the desktop that another thread dropped, with the thread that they belong to, which alone may close them.
_dropped: list[tuple[int, Any]] = []


def drop(thread: int, view: Any) -> None:
    """Drops a window: its own thread closes a desktop window at the next call of a window function."""
    if thread != threading.get_ident() and view.visible:
        _dropped.append((thread, view))


def close_dropped() -> None:
    """Closes windows of this thread that another dropped."""
    for entry in _dropped[:]:
        if entry[0] == threading.get_ident():
            _dropped.remove(entry)
            entry[1].close()


def _check_thread() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("windows belong to the main thread: open them there, or with show_window=False")


def _no_desk(why: str) -> None:
    _tell(f"{why}: windows draw into pictures (AEROGEL_GUI_OUT=last.png keeps the last)")


def open(title: str, res: Any, visible: bool, vsync: bool, place: tuple[int, ...]) -> Any:  # noqa: A001
    """Opens a window; only a picture where there is no display.

    Raises:
        RuntimeError: It would be on the desktop, and this is not the main thread.
        ValueError: It has no pixels, or too many.
    """
    close_dropped()
    aerogel_viz, why = _viz()
    if aerogel_viz is None:
        return _software(_gui_arrays.size(res), why)
    size = _gui_arrays.size(res, aerogel_viz.most_pixels())
    if visible and not has_display():
        visible = False
        _no_desk("there is no display")
    if visible:
        _check_thread()
        try:
            return aerogel_viz.Window(title, *size, visible=True, vsync=vsync, place=(int(place[0]), int(place[1])))
        except RuntimeError as e:
            _no_desk(str(e))
    return aerogel_viz.Window(title, *size, visible=False)


def open_desk(title: str, size: tuple[int, int], fullscreen: bool) -> Any:
    """Opens a window of the desktop for pictures that are painted elsewhere; None where there is none.

    Raises:
        RuntimeError: There is a desktop, and this is not the main thread.
    """
    close_dropped()
    if not has_display():
        return None
    aerogel_viz, why = _viz()
    if aerogel_viz is None:
        _no_desk(why)
        return None
    _check_thread()
    try:
        return aerogel_viz.Window(title, *size, visible=True, fullscreen=fullscreen)
    except RuntimeError as e:
        _no_desk(str(e))
        return None


def _software(size: tuple[int, int], why: str) -> Any:
    from aerogel.ui._software import Picture

    _tell(f"{why}; pictures are drawn in software, without meshes, widgets and windows")
    return Picture(*size, why)
