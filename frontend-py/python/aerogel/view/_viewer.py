"""A program's fields in a window, while it runs."""

from __future__ import annotations

import math
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from aerogel import profiler
from aerogel._log import warn
from aerogel.gui import GUI
from aerogel.tools.image import imwrite
from aerogel.ui import _backend
from aerogel.view import _values
from aerogel.view._health import Health
from aerogel.view._names import Names
from aerogel.view._page import DIM, INK, WARNING, Page
from aerogel.view._tiles import Tile

_COLUMN = 200
_MOST_TILES = 16
#: Frames a second at most, and the part of the time that drawing them may take.
_FPS, _SHARE = 25, 0.35


@dataclass
class Options:
    """The options of the command line.

    Attributes:
        only: The names of the fields to show; none for all.
        ranges: Fixed ranges of colours by name.
        size: Width and height of the window.
        frames: After so many frames the program ends; 0 for never.
        out: The picture to write: the last frame, or with a ``%d`` in the name every one.
        every: A frame after so many launches instead of by time.
        stops: Whether the program stops at the first NaN or infinity.
        is_paused: Whether it begins paused.
        cmap: The colours of numbers.
    """

    only: list[str] = field(default_factory=list)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    size: tuple[int, int] = (1080, 680)
    frames: int = 0
    out: str = ""
    every: int = 0
    stops: bool = True
    is_paused: bool = False
    cmap: str = "plasma"


class Ended(SystemExit):
    """The viewer ends the program."""


class Viewer:
    """Watches launches, and draws in between.

    Args:
        options: How.
        folder: Where the program is.
    """

    def __init__(self, options: Options, folder: str) -> None:
        self._options, self._names, self._health = options, Names(folder), Health()
        self._gui: GUI | None = None
        self._tiles: dict[str, Tile] = {}
        self._fields: dict[str, Any] = {}
        # The names of all fields that existed, requested or not.
        self._known: dict[str, None] = {}
        self._had_window = self._is_over = False
        self._launches: dict[str, int] = {}
        self._n_launches = self._n_frames = 0
        self._is_paused, self._steps = options.is_paused, 0
        self._due = 0.0
        self._said, self._said_in = "", WARNING
        self._focus = ""
        self._keys: dict[str, str] = {}
        # The tile that the mouse holds, where it took it, and where it was last.
        self._held: tuple[str, tuple[float, float]] | None = None
        self._last = (0.0, 0.0)

    # Launches.

    def before(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A kernel is about to run: what Python wrote before is not its work."""
        if not self._is_mine():
            return
        if kernel.__name__ not in self._launches or not self._fields:
            self._look()
        if self._options.stops:
            for name, wrong in self._health.before():
                self._stop(f"{name}: {wrong}, written by Python before `{kernel.__name__}`")

    def after(self, kernel: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A kernel ran."""
        if not self._is_mine():
            return
        self._launches[name] = self._launches.get(name, 0) + 1
        self._n_launches += 1
        if self._options.stops:
            for what, wrong in self._health.after(kernel, args, kwargs):
                self._stop(f"{what}: {wrong}, written by `{name}`, its launch {self._launches[name]}")
        if self._is_paused or self._is_due():
            self._show()
        if self._is_paused and not self._had_window:
            sys.stderr.write("[view] without a window nobody could resume: --paused does nothing\n")
            self._is_paused = False
        while self._is_paused and not self._steps:
            self._show()
            time.sleep(0.01)
        self._steps = max(self._steps - 1, 0)

    def wrote(self, field: Any) -> None:
        """Python writes into a field."""
        self._health.wrote(field)

    def _is_mine(self) -> bool:
        return threading.current_thread() is threading.main_thread()

    def _is_due(self) -> bool:
        if self._options.every:
            return self._n_launches % self._options.every == 0
        return time.perf_counter() >= self._due

    def _stop(self, why: str) -> None:
        """Something is no number: a person may look at it, and otherwise the program ends."""
        if self._said_in == WARNING and self._said:
            return
        self._said, self._said_in = why, WARNING
        sys.stderr.write(f"[view] {why}\n")
        self._show()
        if not self._is_seen():
            raise Ended(1)
        self._is_paused = True

    def _is_seen(self) -> bool:
        return self._gui is not None and self._gui._view is not None

    def _look(self) -> None:
        """Finds the fields that there are now."""
        found = self._names.find(sys._getframe(1))
        self._known.update(dict.fromkeys(found))
        if self._options.only:
            found = {name: x for name, x in found.items() if name in self._options.only}
        fields = {name: x for name, x in found.items() if _values.is_there(x)}
        if self._is_over:
            # The functions that had them have returned.
            ids = {id(x) for x in fields.values()}
            was = {name: x for name, x in self._fields.items() if id(x) not in ids and _is_alive(x)}
            fields = {**was, **fields}
        self._fields = fields
        self._health.know(self._fields)

    # Frames.

    def _show(self) -> None:
        begin = time.perf_counter()
        if self._gui is None:
            self._gui = self._open()
        self._look()
        page = Page(*self._options.size)
        self._lay_out()
        for name, tile in self._placed().items():
            tile.draw(page, self._read(name, tile))
        self._column(page)
        page.put(self._gui)
        self._n_frames += 1
        out = self._options.out
        self._gui.show(out % self._n_frames if "%" in out else None)
        self._hear()
        now = time.perf_counter()
        self._due = now + max(1 / _FPS - (now - begin), (now - begin) * (1 / _SHARE - 1), 0)
        if self._options.frames and self._n_frames >= self._options.frames:
            raise Ended(0)

    def _open(self) -> GUI:
        gui = GUI("aerogel view", self._options.size, show_gui=_backend.has_display())
        gui.fps_limit = None
        self._keys = {gui.button("Pause"): "space", gui.button("Step"): "n"}
        self._had_window = gui._is_wanted = gui._view is not None
        if not self._had_window:
            self._options.out = self._options.out or "view.png"
        return gui

    def _read(self, name: str, tile: Tile) -> Any:
        try:
            values = _values.read(self._fields[name])
        except (RuntimeError, MemoryError, ValueError) as e:
            return str(e).splitlines()[0]
        if values.kind == "number":
            tile.history.append(float(values.numbers[()]))
            del tile.history[:-500]
        return values

    def _lay_out(self) -> None:
        """Gives each field a place."""
        for name in self._fields:
            if name not in self._tiles:
                low, high = self._options.ranges.get(name, (None, None))
                self._tiles[name] = Tile(name, low, high, self._options.cmap)
        names = [self._focus] if self._focus in self._fields else list(self._fields)[:_MOST_TILES]
        width, height = self._options.size[0] - _COLUMN, self._options.size[1]
        n = max(len(names), 1)
        across = max(math.ceil(math.sqrt(n * width / height)), 1)
        across = min(across, n)
        down = math.ceil(n / across)
        for tile in self._tiles.values():
            tile.place = (0, 0, 0, 0)
        for k, name in enumerate(names):
            x, y = k % across, k // across
            left, top = x * width // across, y * height // down
            right, bottom = (x + 1) * width // across, (y + 1) * height // down
            self._tiles[name].place = (left + 3, top + 3, right - left - 6, bottom - top - 6)

    def _placed(self) -> dict[str, Tile]:
        return {name: tile for name, tile in self._tiles.items() if tile.place[2] and name in self._fields}

    def _column(self, page: Page) -> None:
        """What ran, and how long it took."""
        left, top = page.size[0] - _COLUMN + 8, 92
        is_stopped = self._said_in == WARNING and bool(self._said)
        state = "stopped" if is_stopped else "ended" if self._is_over else "paused" if self._is_paused else "running"
        page.text(left, top, f"{state}, {self._n_launches} launches")
        top += 26
        page.text(left, top, "ms each   times  kernel", DIM, 12)
        for name, (n, total, _, _) in profiler._launches()[: (page.size[1] - top - 140) // 16]:
            top += 16
            page.text(left, top, f"{1e3 * total / n:7.3f} {n:7}  {name}"[:29], INK, 12)
        hidden = len(self._fields) - len(self._placed())
        if hidden:
            page.text(left, top + 24, f"{hidden} more fields", DIM, 12)
        words = self._said or (self._missing() if not self._fields else "space pause  n step  click: one field")
        color = self._said_in if self._said else DIM
        for k in range(0, min(len(words), 28 * 7), 28):
            page.text(left, page.size[1] - 112 + k // 28 * 15, words[k : k + 28], color, 12)

    # What the user does.

    def _tile_at(self, pos: tuple[float, float]) -> str:
        x, y = pos[0] * self._options.size[0], (1 - pos[1]) * self._options.size[1]
        for name, tile in self._placed().items():
            left, top, width, height = tile.place
            if left <= x < left + width and top <= y < top + height:
                return name
        return ""

    def _hear(self) -> None:
        gui = self._gui
        assert gui is not None
        for e in gui.get_events():
            key = self._keys.get(e.key, e.key)
            if e.type == gui.PRESS:
                self._press(key, e.pos)
            elif e.type == gui.RELEASE and key == gui.LMB and self._held:
                name, begin = self._held
                self._held = None
                if max(abs(e.pos[0] - begin[0]), abs(e.pos[1] - begin[1])) < 0.004:
                    self._focus = "" if self._focus else name
            elif e.type == gui.MOTION and key == gui.WHEEL:
                if name := self._tile_at(e.pos):
                    self._tiles[name].wheel(e.delta[1] / 120)
            elif e.type == gui.MOTION and self._held:
                self._drag(e.pos)
        if not gui.running:
            raise Ended(0)

    def _drag(self, pos: tuple[float, float]) -> None:
        assert self._held is not None
        last = self._last
        width, height = self._options.size
        self._tiles[self._held[0]].drag((pos[0] - last[0]) * width, (last[1] - pos[1]) * height)
        self._last = pos

    def _press(self, key: str, pos: tuple[float, float]) -> None:
        if key in ("space", " "):
            self._is_paused = not self._is_paused
            self._said = ""
        elif key in ("n", "Right"):
            self._is_paused, self._steps = True, 1
            self._said = ""
        elif key == GUI.LMB:
            if name := self._tile_at(pos):
                self._held, self._last = (name, pos), pos

    # The end.

    def finish(self, is_over: bool) -> None:
        """The program ended: its fields stay in the window until that is closed, and in the picture.

        Args:
            is_over: Whether it came to its own end.
        """
        if is_over:
            self._options.frames, self._is_over = 0, True
            self._look_after_the_end()
        if missing := self._missing():
            sys.stderr.write(f"[view] {missing}\n")
        if self._gui is not None and self._options.out and "%" not in self._options.out:
            try:
                imwrite(self._last_picture(), self._options.out)
            except OSError as e:
                warn(f"{self._options.out}: {e}")

    def _missing(self) -> str:
        """What is said of names on the command line that no field has."""
        asked = {"--only": self._options.only, "--range": list(self._options.ranges)}
        wrong = [f"{option} {name}" for option, names in asked.items() for name in names if name not in self._known]
        if not wrong:
            return ""
        return f"no field has the name of {', '.join(wrong)}; there are {', '.join(self._known) or 'none'}"

    def _last_picture(self) -> Any:
        from aerogel import _gui_arrays

        gui = self._gui
        assert gui is not None
        return _gui_arrays.picture(gui._shown or gui._canvas, gui.res)[..., :3]

    def _look_after_the_end(self) -> None:
        self._said, self._said_in = self._said or "the program ended", self._said_in if self._said else DIM
        try:
            self._show()
            while self._is_seen():
                self._show()
                time.sleep(0.03)
        except Ended:
            pass


def _is_alive(x: Any) -> bool:
    """Whether a field can still be read."""
    try:
        _values.read(x)
    except (RuntimeError, MemoryError, ValueError):
        return False
    return True
