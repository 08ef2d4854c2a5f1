"""What the environment says about windows: after how many frames they count as closed, and where the last picture goes.

It is that of the window which was made last; where it is closed before the program ends, what it showed until then.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable

from aerogel import _log


def frames() -> int:
    """AEROGEL_GUI_FRAMES; 0 for never.

    Raises:
        ValueError: It is no such number.
    """
    text = os.environ.get("AEROGEL_GUI_FRAMES", "").strip()
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError(f"AEROGEL_GUI_FRAMES is a number of frames, not {text!r}")
    return int(text or 0)


class _Last:
    """Whose picture is the last."""

    def __init__(self) -> None:
        self.owner: object = None
        self._write: Callable[[str], None] | None = None
        self._path = ""

    def keep(self, owner: object, write: Callable[[str], None]) -> None:
        path = os.environ.get("AEROGEL_GUI_OUT", "")
        if path:
            if not self._path:
                atexit.register(self.write)
            self.owner, self._write, self._path = owner, write, path

    def write(self) -> None:
        write, self.owner, self._write = self._write, None, None
        if write is not None:
            try:
                write(self._path)
            except Exception as e:  # noqa: BLE001  The program ends, and fails at nothing else.
                _log.warn(f"AEROGEL_GUI_OUT: {e}")


_last = _Last()


def keep(owner: object, write: Callable[[str], None]) -> None:
    """A window was made: ``write`` writes its picture to a file, when it is closed or the program ends."""
    _last.keep(owner, write)


def let_go(owner: object) -> None:
    """A window is closed: if its picture is the last, it is written now."""
    if _last.owner is owner:
        _last.write()
