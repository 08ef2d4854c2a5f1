"""The window of a ``ti.GUI``: frames, events, widgets."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

from aerogel import _gui_arrays as _arrays
from aerogel import _gui_last, _log
from aerogel._config import environment
from aerogel._gui_events import KEYS, STEP, Event, EventFilter, is_down, modifiers
from aerogel._gui_widgets import Button, Slider, Widgets, WidgetValue

#: How many frames a program may show after its window was closed without checking whether it is open.
_DEAF_FRAMES = 5


class Desk:
    """The window of a GUI: a desktop window where there is a display, otherwise an object with the same interface."""

    SHIFT, ALT, CTRL = "Shift", "Alt", "Control"
    ESCAPE, RETURN, TAB, BACKSPACE, SPACE = "Escape", "Return", "Tab", "BackSpace", " "
    UP, DOWN, LEFT, RIGHT, CAPSLOCK = "Up", "Down", "Left", "Right", "Caps_Lock"
    LMB, MMB, RMB = "LMB", "MMB", "RMB"
    EXIT, WHEEL, MOVE = "WMClose", "Wheel", "Motion"
    RELEASE, PRESS, MOTION = "Release", "Press", "Motion"

    Event, EventFilter, WidgetValue = Event, EventFilter, WidgetValue

    _told = False

    def __init__(self, name: str, res: Any, show_gui: bool, fullscreen: bool) -> None:
        self.name, self.res = str(name), _arrays.size(res)
        self.frame = 0
        self.event: Event | None = None
        self.key_pressed: set[str] = set()
        self._fps_limit: float | None = 60
        self._running, self._is_asked, self._deaf_frames = True, False, 0
        self._due = self._polled = 0.0
        self._cursor = (0.0, 0.0)
        self._queue: list[Event] = []
        self._widgets = Widgets(self.res)
        self._frames = _gui_last.frames()
        self._is_wanted = bool(show_gui) and environment("gui_show") != "0"
        self._thread = threading.get_ident()
        self._view: Any = None
        if self._is_wanted:
            from aerogel.ui import _backend

            self._backend = _backend
            is_full = bool(fullscreen) or environment("gui_fullscreen") == "1"
            self._view = _backend.open_desk(self.name, self.res, is_full)

    def close(self) -> None:
        """Closes the window.

        Raises:
            RuntimeError: It is on the desktop, and another thread made it.
        """
        if self._view is not None:
            self._check_thread()
        self._running = False
        view, self._view = self._view, None
        if view is not None:
            view.close()

    def __del__(self) -> None:
        view = self.__dict__.get("_view")
        if view is not None:
            # The garbage collector runs in any thread.
            self._backend.drop(self._thread, view)

    # Frames.

    @property
    def running(self) -> bool:
        """Whether the window is open."""
        self._is_asked = True
        self._poll()
        return self._running

    @running.setter
    def running(self, value: bool) -> None:
        self._running = bool(value)

    @property
    def fps_limit(self) -> float | None:
        """The highest number of frames per second, or None. Without a window there is no limit."""
        return self._fps_limit

    @fps_limit.setter
    def fps_limit(self, value: float | None) -> None:
        if value is not None and not value > 0:
            raise ValueError(f"fps_limit must be positive or None, not {value!r}")
        self._fps_limit = value

    def _show(self, canvas: Any) -> None:
        """Shows a picture in the window."""
        if self._deaf_frames and not self._is_asked:
            self._deaf_frames += 1
            if self._deaf_frames > _DEAF_FRAMES:
                raise SystemExit(0)
        if self._view is None:
            return
        self._check_thread()
        self._view.rows(canvas.pixels(), *self.res)
        try:
            self._view.show()
        finally:
            self._notice_closing()
        self._poll()
        self._wait()

    def _tell(self) -> None:
        """Says once what to do about a program that shows frames to nobody."""
        if self._is_wanted and self._view is None and self._running and not (Desk._told or self._frames):
            Desk._told = True
            _log.info(
                "there is no window: AEROGEL_GUI_FRAMES=100 ends the program after 100 frames, "
                "AEROGEL_GUI_OUT=last.png keeps the last"
            )

    def _wait(self) -> None:
        now = time.perf_counter()
        if self._fps_limit is None or self._view is None:
            return
        if now < self._due:
            time.sleep(self._due - now)
        self._due = max(now, self._due) + 1 / self._fps_limit

    # Events.

    def _check_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError(f"the window {self.name!r} must be used from the thread that made it")

    def _poll(self, age: float = 0.0) -> None:
        """Hears what the user did, unless that was done ``age`` seconds ago or less."""
        if self._view is None or (age and time.perf_counter() - self._polled < age):
            return
        self._check_thread()
        self._backend.close_dropped()
        try:
            told = self._view.events()
            self._cursor = tuple(self._view.cursor)
        finally:
            self._notice_closing()
        for kind, key, x, y in told:
            self._hear(kind, str(KEYS.get(key, key)), x, y)
        # A program that never reads events has no use for old ones.
        del self._queue[:-1000]
        self._polled = time.perf_counter()

    def _notice_closing(self) -> None:
        if self._view is not None and self._view.closed:
            self._deaf_frames = 1
            self.close()
            # Here and not where events are heard: a window may be gone before it has told of it.
            self._tell_event(self.PRESS, self.EXIT, self._cursor)

    def _hear(self, kind: str, key: str, x: float, y: float) -> None:
        if kind == "Blur":
            self.key_pressed.clear()
            self._widgets.release()
            return
        if kind == self.WHEEL:
            self._tell_event(self.MOTION, self.WHEEL, self._cursor, (round(x * STEP), round(y * STEP)))
            return
        if key == self.EXIT:
            return
        self._tell_event(kind, key, (x, y))
        if kind == self.PRESS:
            self.key_pressed.add(key)
        self.key_pressed.difference_update([key] if kind == self.RELEASE else [])
        across, down = x * self.res[0], (1 - y) * self.res[1]
        if kind == self.MOTION:
            self._widgets.move(across)
        elif (kind, key) == (self.PRESS, self.LMB):
            pressed = self._widgets.press(across, down)
            if pressed is not None:
                self._tell_event(self.PRESS, pressed, (x, y))
        elif (kind, key) == (self.RELEASE, self.LMB):
            self._widgets.release()

    def _tell_event(self, kind: str, key: str, pos: tuple[float, float], delta: tuple[int, int] = (0, 0)) -> None:
        event = Event(kind, key, pos)
        event.modifier, event.delta = modifiers(self.key_pressed), delta
        self._queue.append(event)

    def get_events(self, *e_filter: Any) -> Iterator[Event]:
        """The events since the last call that pass the filter; the others are forgotten."""
        while self.get_event(*e_filter):
            assert self.event is not None
            yield self.event

    def get_event(self, *e_filter: Any) -> bool:
        """Whether there is an event that passes the filter; it is then ``self.event``. Others before it are lost."""
        self.event = None
        self._poll()
        passes = EventFilter(*e_filter)
        while self._queue:
            event = self._queue.pop(0)
            if passes.match(event):
                self.event = event
                return True
        return False

    def get_key_event(self) -> Event:
        """The next event, which is waited for; an empty one where there is no window."""
        while not self.get_event() and self._view is not None:
            time.sleep(0.002)
        return self.event or Event()

    def has_key_event(self) -> bool:
        """Whether there is an event."""
        self._poll()
        return bool(self._queue)

    def is_pressed(self, *keys: str) -> bool:
        """Whether one of the keys or buttons is down."""
        self._poll(0.002)
        return any(is_down(key, self.key_pressed) for key in keys)

    def get_cursor_pos(self) -> tuple[float, float]:
        """Where the mouse is: (0, 0) is the lower left corner, (1, 1) the upper right one."""
        self._poll(0.002)
        return self._cursor

    # Widgets.

    def slider(self, text: str, minimum: float, maximum: float, step: float = 1) -> WidgetValue:
        """A slider; it begins at the least value, and its ``value`` may be set.

        Args:
            text: What stands beside it.
            minimum: The least value.
            maximum: The largest value.
            step: Not looked at, as in Taichi: sliders take every value between.
        """
        if not minimum <= maximum:
            raise ValueError(f"the slider {text!r} has the minimum {minimum} above its maximum {maximum}")
        return self._widgets.add(Slider(str(text), minimum, maximum))

    def label(self, text: str) -> WidgetValue:
        """A text with a number, 0 until set."""
        return self._widgets.add(WidgetValue(0, str(text)))

    def button(self, text: str, event_name: str | None = None) -> str:
        """A button; the key of the event of type PRESS that tells that it was pressed."""
        return self._widgets.add(Button(str(text), event_name or f"WidgetButton_{text}")).key
