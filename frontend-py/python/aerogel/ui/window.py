"""Windows: ``ti.ui.Window``."""

from __future__ import annotations

import numbers
import threading
import time
from typing import Any

import numpy as np

from aerogel import _gui_last, _notebook
from aerogel.tools.image import imwrite
from aerogel.ui import _backend
from aerogel.ui._keys import PRESS, RELEASE, name_of
from aerogel.ui.canvas import Canvas
from aerogel.ui.scene import Scene
from aerogel.ui.widgets import Gui

#: Input is polled again after this many seconds, so that queries of many keys do not poll the system each time.
_RECENT = 0.002


class Event:
    """A key or button that was pressed or released: its name ``key``, its ``type`` (PRESS, RELEASE), and the cursor."""

    def __init__(self, type: str, key: str, pos: tuple[float, float]) -> None:
        self.type, self.key, self.pos = type, key, pos

    def __repr__(self) -> str:
        return f"<{self.type} {self.key!r} at {self.pos}>"


class Window:
    """A window that shows frames: the drawing between two calls of :func:`show`.

    Args:
        name: The title.
        res: Width and height in pixels, or one number for both. The user may change them.
        vsync: Whether frames wait for the screen.
        show_window: Whether the window is shown. If not, or without a display, frames are pictures only.
        fps_limit: The maximal number of frames a second.
        pos: The position of its upper left corner on the desktop, in pixels.

    Raises:
        RuntimeError: It would be shown, and this is not the main thread.
        ValueError: It has no pixels, or too many; ``fps_limit`` or ``pos`` is invalid.
    """

    def __init__(
        self,
        name: str,
        res: Any,
        vsync: bool = False,
        show_window: bool = True,
        fps_limit: float = 1000,
        pos: tuple[int, int] = (100, 100),
    ) -> None:
        if not (isinstance(fps_limit, numbers.Real) and fps_limit > 0):
            raise ValueError(f"fps_limit must be a positive number, not {fps_limit!r}")
        self.name, self.fps_limit = name, fps_limit
        self.event: Event | None = None
        self._frames, self._shown = _gui_last.frames(), 0
        self._thread = threading.get_ident()
        self._backend = _backend.open(str(name), res, show_window, vsync, _place(pos))
        # The panels of widgets that were begun in this frame and not ended.
        self._panels: list[tuple[str, tuple[float, float, float, float]]] = []
        self._events: list[Event] = []
        self._pressed: set[str] = set()
        self._is_running = True
        self._due = self._polled = 0.0
        self._handle: Any = None
        _gui_last.keep(self, self._write_last)

    @property
    def _view(self) -> Any:
        if self._backend is None:
            raise RuntimeError(f"the window {self.name!r} is destroyed")
        if threading.get_ident() != self._thread:
            raise RuntimeError(f"the window {self.name!r} must be used from the thread that made it")
        return self._backend

    @property
    def running(self) -> bool:
        """Whether it is open; may be set."""
        self._poll()
        return self._is_running

    @running.setter
    def running(self, value: bool) -> None:
        self._is_running = bool(value)

    @property
    def GUI(self) -> Gui:
        """Its widgets."""
        return Gui(self)

    def get_gui(self) -> Gui:
        """Its widgets."""
        return Gui(self)

    def get_canvas(self) -> Canvas:
        """The canvas for two-dimensional drawing."""
        return Canvas(self)

    def get_scene(self) -> Scene:
        """An empty scene."""
        return Scene()

    def get_window_shape(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return tuple(self._view.size)  # type: ignore[return-value]

    def show(self) -> None:
        """Ends the frame and shows it.

        Raises:
            RuntimeError: The display or the device was lost. Fields keep their values.
            SystemExit: The frames of AEROGEL_GUI_FRAMES were all shown, and the program does not check ``running``.
        """
        if self._frames and self._shown >= self._frames:
            raise SystemExit(0)
        view = self._view
        view.show()
        self._panels.clear()
        self._shown += 1
        if self._frames and self._shown >= self._frames:
            self._is_running = False
        if _notebook.is_running() and not view.visible:
            self._handle = _notebook.show(self._rows()[..., :3], self._handle)
        self._poll()
        self._wait()

    def _wait(self) -> None:
        """Waits to keep the limit of frames per second; without a desktop it does not wait."""
        now = time.perf_counter()
        if self._view.visible and now < self._due:
            time.sleep(self._due - now)
        self._due = max(now, self._due) + 1 / self.fps_limit

    def _poll(self, age: float = 0.0) -> None:
        """Hears what the user did, unless that was done ``age`` seconds ago or less."""
        if self._backend is None or (age and time.perf_counter() - self._polled < age):
            return
        _backend.close_dropped()
        try:
            told = self._view.events()
        finally:
            self._is_running = self._is_running and not self._view.closed
        for kind, key, x, y in told:
            if kind in (PRESS, RELEASE):
                key = name_of(key)
                self._events.append(Event(kind, key, (x, y)))
                (self._pressed.add if kind == PRESS else self._pressed.discard)(key)
            elif kind == "Blur":
                self._pressed.clear()
        # A program that never reads events has no use for old ones.
        del self._events[:-1000]
        self._polled = time.perf_counter()

    def get_events(self, tag: str | None = None) -> list[Event]:
        """The events since the last call.

        Args:
            tag: PRESS or RELEASE, to get only these events; the others are returned by the next call.
        """
        self._poll()
        told = [e for e in self._events if tag in (None, e.type)]
        self._events = [e for e in self._events if tag not in (None, e.type)]
        return told

    def get_event(self, tag: str | None = None) -> bool:
        """Whether there is an event that was not returned yet; it is then ``self.event``."""
        self._poll()
        for k, event in enumerate(self._events):
            if tag in (None, event.type):
                self.event = self._events.pop(k)
                return True
        return False

    def is_pressed(self, *keys: str) -> bool:
        """Whether one of the keys or buttons is down."""
        self._poll(_RECENT)
        return any(key in self._pressed for key in keys)

    def get_cursor_pos(self) -> tuple[float, float]:
        """The position of the mouse: (0, 0) is the lower left corner, (1, 1) the upper right one."""
        self._poll(_RECENT)
        return tuple(self._view.cursor)  # type: ignore[return-value]

    def _rows(self) -> np.ndarray:
        """The frame as bytes of shape (height, width, 4)."""
        view = self._view
        width, height = view.size
        return np.frombuffer(view.pixels(), np.uint8).reshape(height, width, 4)

    def save_image(self, filename: str) -> None:
        """Writes the frame to a file; the current drawing, or the last shown frame. Later drawing begins a new frame.

        Raises:
            OSError: The file cannot be written; then there is none.
        """
        imwrite(_columns(self._rows()[..., :3]), str(filename))

    def get_image_buffer_as_numpy(self) -> np.ndarray:
        """The frame as f32 of shape (width, height, 4), the second axis upwards."""
        view = self._view
        width, height = view.size
        return _columns(np.frombuffer(view.floats(), np.float32).reshape(height, width, 4))

    def get_depth_buffer_as_numpy(self) -> np.ndarray:
        """The depth of each pixel, f32 of shape (width, height): 1 at the near plane, 0 where there is nothing."""
        view = self._view
        width, height = view.size
        return np.ascontiguousarray(_columns(np.frombuffer(view.depths(), np.float32).reshape(height, width)))

    def get_depth_buffer(self, depth: Any) -> None:
        """Writes the depths of :func:`get_depth_buffer_as_numpy` into a field or array."""
        depth.from_numpy(self.get_depth_buffer_as_numpy())

    def destroy(self) -> None:
        """Closes the window for good. Other windows stay open.

        Raises:
            RuntimeError: Another thread made it.
        """
        if self._backend is not None and threading.get_ident() != self._thread:
            raise RuntimeError(f"the window {self.name!r} must be used from the thread that made it")
        self._is_running = False
        if self._backend is not None:
            view = self._view
            _gui_last.let_go(self)
            view.close()
            self._backend = None

    def __del__(self) -> None:
        # The garbage collector runs in any thread.
        view = self.__dict__.get("_backend")
        if view is not None:
            _backend.drop(self._thread, view)

    def _repr_png_(self) -> bytes:
        return _notebook.encoded(self._rows()[..., :3])

    def _write_last(self, path: str) -> None:
        if self._backend is not None and threading.get_ident() == self._thread:
            imwrite(_columns(self._rows()[..., :3]), path)


def _place(pos: Any) -> tuple[int, int]:
    """Where a window's corner shall be."""
    place = tuple(pos) if np.ndim(pos) == 1 else ()
    if len(place) != 2 or any(not isinstance(n, (int, np.integer)) or abs(int(n)) >= 2**31 for n in place):
        raise ValueError(f"pos must be two 32-bit pixel coordinates, not {pos!r}")
    return int(place[0]), int(place[1])


def _columns(rows: np.ndarray) -> np.ndarray:
    """A picture row by row from the top as one with the first axis to the right and the second upwards."""
    return rows[::-1].swapaxes(0, 1)


def check_ggui_availability() -> None:
    """Nothing happens: without Vulkan, windows draw in software what they can."""
