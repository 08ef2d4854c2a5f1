"""``ti.GUI``: two-dimensional drawing into an image.

There is no window yet: a program draws as if there were one, and `show(file)` writes a picture. Coordinates go
from (0, 0) at the lower left to (1, 1) at the upper right.

Environment:
    AEROGEL_GUI_FRAMES: After so many shown frames the window counts as closed, so that programs end.
    AEROGEL_GUI_OUT: Where the last frame is written when the program ends.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from aerogel import _log, _native
from aerogel.tools.image import to_pixels


def rgb_to_hex(c: Any) -> Any:
    """The colour 0xRRGGBB for three components from 0 to 1."""
    r, g, b = (np.clip((np.asarray(x) * 255).astype(np.int64), 0, 255) for x in c)
    out = (r << 16) + (g << 8) + b
    return int(out) if np.ndim(out) == 0 else out


def hex_to_rgb(color: int) -> tuple[float, float, float]:
    """Three components from 0 to 1 for the colour 0xRRGGBB."""
    return tuple(((color >> s) & 255) / 255 for s in (16, 8, 0))  # type: ignore[return-value]


class GUI:
    """An image to draw into, shown frame by frame.

    Args:
        name: The title.
        res: The size in pixels: a number for a square, or width and height.
        background_color: 0xRRGGBB.
    """

    SHIFT, ALT, CTRL = "Shift", "Alt", "Control"
    ESCAPE, RETURN, TAB, BACKSPACE, SPACE = "Escape", "Return", "Tab", "BackSpace", " "
    UP, DOWN, LEFT, RIGHT, CAPSLOCK = "Up", "Down", "Left", "Right", "Caps_Lock"
    LMB, MMB, RMB = "LMB", "MMB", "RMB"
    EXIT, WHEEL, MOVE = "WMClose", "Wheel", "Motion"
    RELEASE, PRESS, MOTION = "Release", "Press", "Motion"

    _told = False

    class Event:
        """Something that the user did: ``type``, ``key``, ``pos``."""

        def __init__(self, type: str = "", key: str = "", pos: tuple[float, float] = (0.0, 0.0)) -> None:
            self.type, self.key, self.pos = type, key, pos
            self.modifier: list[str] = []
            self.delta = (0, 0)

    class WidgetValue:
        """What a slider holds."""

        def __init__(self, value: float) -> None:
            self.value = value

    def __init__(
        self,
        name: str = "Aerogel",
        res: Any = 512,
        background_color: int = 0x0,
        show_gui: bool = True,
        fullscreen: bool = False,
        fast_gui: bool = False,
    ) -> None:
        size = (res, res) if np.ndim(res) == 0 else tuple(res)
        self.name, self.res = name, (int(size[0]), int(size[1]))
        self.background_color = background_color
        self.fps_limit: int | None = 60
        self.frame = 0
        self.event: GUI.Event | None = None
        self.key_pressed: set[str] = set()
        self._running = True
        self._exit_told = False
        self._frames = int(os.environ.get("AEROGEL_GUI_FRAMES", "0"))
        self._canvas = _native.Canvas(*self.res)
        self._shown: Any = None
        self._started = time.monotonic()
        self.clear()
        out = os.environ.get("AEROGEL_GUI_OUT")
        if out:
            atexit.register(self._write_last, out)

    def __enter__(self) -> GUI:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the window."""
        self._running = False

    # Frames and events.

    @property
    def running(self) -> bool:
        """Whether the window is open."""
        return self._running

    @running.setter
    def running(self, value: bool) -> None:
        self._running = bool(value)

    def show(self, file: str | None = None) -> None:
        """Ends the frame; writes it to ``file`` if one is named, and starts the next with the background colour."""
        if self._frames and self.frame >= self._frames:
            # The program asks neither `running` nor for events.
            raise SystemExit(0)
        if file:
            self._canvas.save_png(str(file))
        elif not (GUI._told or self._frames):
            GUI._told = True
            _log.info(
                "there are no windows yet: AEROGEL_GUI_FRAMES=100 ends the program after 100 frames, "
                "AEROGEL_GUI_OUT=last.png keeps the last"
            )
        self._shown = self._canvas.copy()
        self.frame += 1
        if self.frame == self._frames:
            self._running = False
        self.clear()

    def _write_last(self, path: str) -> None:
        (self._shown or self._canvas).save_png(path)

    def get_image(self) -> np.ndarray:
        """The picture as floats of shape (width, height, 4)."""
        rows = np.frombuffer(self._canvas.pixels(), np.uint8).reshape(self.res[1], self.res[0], 4)
        return (rows.swapaxes(0, 1)[:, ::-1] / 255.0).astype(np.float32)

    def get_events(self, *e_filter: Any) -> Iterator[GUI.Event]:
        """The events since the last call that pass the filter."""
        while self.get_event(*e_filter):
            assert self.event is not None
            yield self.event

    def get_event(self, *e_filter: Any) -> bool:
        """Whether there is an event that passes the filter; it is then ``self.event``."""
        self.event = None
        if self._frames and self.frame >= self._frames and not self._exit_told:
            self._exit_told = True
            event = GUI.Event(GUI.PRESS, GUI.EXIT, self.get_cursor_pos())
            if not e_filter or any(_matches(f, event) for f in e_filter):
                self.event = event
                return True
        return False

    def get_key_event(self) -> GUI.Event:
        """The next event; an empty one if there is none."""
        self.get_event()
        return self.event or GUI.Event()

    def has_key_event(self) -> bool:
        """Whether there is an event."""
        return False

    def is_pressed(self, *keys: str) -> bool:
        """Whether one of the keys is down."""
        return any(k in self.key_pressed for k in keys)

    def get_cursor_pos(self) -> tuple[float, float]:
        """Where the mouse is."""
        return (0.0, 0.0)

    def slider(self, text: str, minimum: float, maximum: float, step: float = 1) -> GUI.WidgetValue:
        """A slider, which stays at its least value while there is no window."""
        return GUI.WidgetValue(minimum)

    def label(self, text: str) -> GUI.WidgetValue:
        """A text with a number, not drawn while there is no window."""
        return GUI.WidgetValue(0)

    def button(self, text: str, event_name: str | None = None) -> str:
        """The name of the event of a button, which nobody presses while there is no window."""
        return event_name or f"WidgetButton_{text}"

    # Drawing.

    def clear(self, color: int | None = None) -> None:
        """Fills the picture with a colour, by default the background colour."""
        self._canvas.clear(self.background_color if color is None else int(color))

    def set_image(self, img: Any) -> None:
        """Draws an image over the whole picture: a field, an array or a NumPy array of (width, height, channels)."""
        pixels = to_pixels(img)
        if pixels.shape[:2] != self.res:
            raise ValueError(
                f"the image is {pixels.shape[0]} by {pixels.shape[1]}, the GUI {self.res[0]} by {self.res[1]}"
            )
        self._canvas.set_image(np.ascontiguousarray(pixels))

    def contour(self, scalar_field: Any, normalize: bool = False) -> None:
        """Draws a scalar field in colours from dark to bright."""
        a = np.asarray(scalar_field.to_numpy() if hasattr(scalar_field, "to_numpy") else scalar_field, np.float64)
        if normalize and a.max() > a.min():
            a = (a - a.min()) / (a.max() - a.min())
        t = np.clip(a, 0, 1)[..., None]
        stops = np.array([[0.0, 0.03, 0.3], [0.5, 0.0, 0.5], [1.0, 0.5, 0.1], [1.0, 1.0, 0.6]])
        at = np.clip((t[..., 0] * 3).astype(int), 0, 2)
        f = t * 3 - at[..., None]
        image = stops[at] * (1 - f) + stops[at + 1] * f
        from aerogel.tools.image import imresize

        self.set_image(imresize(image, *self.res))

    def vector_field(self, vector_field: Any, arrow_spacing: int = 5, color: int = 0xFFFFFF) -> None:
        """Draws arrows on a grid for a field of two-dimensional vectors."""
        v = np.asarray(vector_field.to_numpy() if hasattr(vector_field, "to_numpy") else vector_field)
        nx, ny = v.shape[:2]
        x, y = np.meshgrid(np.arange(nx // arrow_spacing), np.arange(ny // arrow_spacing), indexing="ij")
        x, y = x * arrow_spacing + arrow_spacing // 2, y * arrow_spacing + arrow_spacing // 2
        pos = np.stack([x / nx, y / ny], -1).reshape(-1, 2)
        direction = v[x, y].reshape(-1, 2)
        largest = np.abs(direction).max() if direction.size else 0
        if largest > 0:
            self.arrows(pos, direction * (arrow_spacing / max(nx, ny) / largest), radius=1, color=color)

    def circles(
        self,
        pos: Any,
        radius: Any = 1,
        color: Any = 0xFFFFFF,
        palette: Any = None,
        palette_indices: Any = None,
    ) -> None:
        """Draws a disc at each of the positions.

        Args:
            pos: An array of shape (n, 2).
            radius: In pixels: a number, or one for each.
            color: 0xRRGGBB: a number, or one for each.
            palette: Colours to choose from.
            palette_indices: Which of them each disc has.
        """
        points = _points(pos)
        if palette is not None:
            if palette_indices is None:
                raise ValueError("palette needs palette_indices")
            indices = (
                palette_indices.to_numpy() if hasattr(palette_indices, "to_numpy") else np.asarray(palette_indices)
            )
            if indices.size and (indices.min() < 0 or indices.max() >= len(palette)):
                raise ValueError(f"palette_indices must lie between 0 and {len(palette) - 1}")
            color = np.asarray(palette, np.uint32)[indices.reshape(-1)]
        self._canvas.circles(self._pixels(points), _each(radius, np.float32), _each(color, np.uint32))

    def circle(self, pos: Any, color: int = 0xFFFFFF, radius: float = 1) -> None:
        """Draws a disc."""
        self.circles(np.asarray(pos, np.float64).reshape(1, 2), radius, color)

    def lines(self, begin: Any, end: Any, radius: Any = 1, color: Any = 0xFFFFFF) -> None:
        """Draws a line from each of the positions ``begin`` to the one in ``end``."""
        a, b = self._pixels(_points(begin)), self._pixels(_points(end))
        if len(a) != len(b):
            raise ValueError(f"{len(a)} beginnings and {len(b)} ends")
        self._canvas.lines(a, b, _each(radius, np.float32), _each(color, np.uint32))

    def line(self, begin: Any, end: Any, radius: float = 1, color: int = 0xFFFFFF) -> None:
        """Draws a line."""
        self.lines(np.asarray(begin).reshape(1, 2), np.asarray(end).reshape(1, 2), radius, color)

    def triangles(self, a: Any, b: Any, c: Any, color: Any = 0xFFFFFF) -> None:
        """Draws filled triangles."""
        p, q, r = (self._pixels(_points(x)) for x in (a, b, c))
        self._canvas.triangles(p, q, r, _each(color, np.uint32))

    def triangle(self, a: Any, b: Any, c: Any, color: int = 0xFFFFFF) -> None:
        """Draws a filled triangle."""
        p, q, r = (np.asarray(x).reshape(1, 2) for x in (a, b, c))
        self.triangles(p, q, r, color)

    def rect(self, topleft: Any, bottomright: Any, radius: float = 1, color: int = 0xFFFFFF) -> None:
        """Draws the outline of a rectangle."""
        (x0, y0), (x1, y1) = topleft, bottomright
        corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], np.float64)
        self.lines(corners, np.roll(corners, -1, axis=0), radius, color)

    def arrows(self, orig: Any, direction: Any, radius: Any = 1, color: Any = 0xFFFFFF, **kwargs: Any) -> None:
        """Draws an arrow from each position along each direction.

        Args:
            orig: Positions.
            direction: Vectors.
            radius: Half the thickness, in pixels.
            color: 0xRRGGBB: a number, or one for each.
            kwargs: ``tip_scale``: the length of a tip, a fraction of the arrow's (0.2).
        """
        a = _points(orig)
        d = np.broadcast_to(np.asarray(direction, np.float64).reshape(-1, 2), a.shape)
        b = a + d
        self.lines(a, b, radius, color)
        scale = kwargs.get("tip_scale", 0.2)
        for angle in (0.75 * np.pi, -0.75 * np.pi):
            c, s = np.cos(angle) * scale, np.sin(angle) * scale
            self.lines(b, b + np.stack([d[:, 0] * c - d[:, 1] * s, d[:, 0] * s + d[:, 1] * c], -1), radius, color)

    def arrow(self, orig: Any, direction: Any, radius: float = 1, color: int = 0xFFFFFF, **kwargs: Any) -> None:
        """Draws an arrow."""
        self.arrows(np.asarray(orig).reshape(1, 2), np.asarray(direction).reshape(1, 2), radius, color, **kwargs)

    def arrow_field(
        self, direction: Any, radius: float = 1, color: int = 0xFFFFFF, bound: float = 0.5, **kwargs: Any
    ) -> None:
        """Draws the arrows of a grid."""
        d = np.asarray(direction.to_numpy() if hasattr(direction, "to_numpy") else direction)
        self.arrows(_grid(d.shape[:2], bound), d.reshape(-1, 2), radius, color, **kwargs)

    def point_field(self, radius: Any, color: int = 0xFFFFFF, bound: float = 0.5) -> None:
        """Draws the discs of a grid."""
        r = np.asarray(radius.to_numpy() if hasattr(radius, "to_numpy") else radius)
        self.circles(_grid(r.shape[:2], bound), r.reshape(-1), color)

    def text(self, content: str, pos: Any, font_size: int = 15, color: int = 0xFFFFFF) -> None:
        """Draws a text; ``pos`` is its upper left corner."""
        x, y = self._pixels(np.asarray(pos, np.float64).reshape(1, 2))[0]
        self._canvas.text(str(content), float(x), float(y), float(font_size), int(color))

    def _pixels(self, points: np.ndarray) -> np.ndarray:
        """Pixel coordinates, the origin at the upper left."""
        out = np.empty((len(points), 2), np.float32)
        out[:, 0] = points[:, 0] * self.res[0]
        out[:, 1] = (1 - points[:, 1]) * self.res[1]
        return out


def _points(pos: Any) -> np.ndarray:
    array = np.asarray(pos.to_numpy() if hasattr(pos, "to_numpy") else pos)
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(f"positions have the shape (n, 2), not {array.shape}")
    return array


def _each(value: Any, dtype: Any) -> np.ndarray:
    array = value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)
    return np.ascontiguousarray(array.reshape(-1), dtype)


def _grid(shape: Any, bound: float) -> np.ndarray:
    nx, ny = shape
    x, y = np.meshgrid((np.arange(nx) + bound) / nx, (np.arange(ny) + bound) / ny, indexing="ij")
    return np.stack([x, y], -1).reshape(-1, 2)


def _matches(wanted: Any, event: GUI.Event) -> bool:
    if isinstance(wanted, (tuple, list)):
        return wanted[0] == event.type and event.key in wanted[1:]
    return wanted in (event.type, event.key)
