"""``ti.GUI``: two-dimensional drawing into an image.

There is no window yet: a program draws as if there were one, and `show(file)` writes a picture; in a notebook
`show()` shows it below the cell. Coordinates go
from (0, 0) at the lower left to (1, 1) at the upper right; what lies outside is not drawn. Colours are 0xRRGGBB, radii
and sizes in pixels. Positions, radii, colours and fields of them may be fields, arrays, NumPy arrays or lists.

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

from aerogel import _log, _native, _notebook
from aerogel.tools.image import imwrite, to_pixels

#: The colours of `GUI.contour` from 0 to 1: matplotlib's map "plasma", which is in the public domain.
_PLASMA = (
    0x0D0887, 0x310596, 0x4C02A1, 0x6600A7, 0x7E03A8, 0x9511A2, 0xA92396, 0xBB3587, 0xCB4778,
    0xD9596A, 0xE66C5C, 0xF07F4F, 0xF89441, 0xFDAB33, 0xFDC328, 0xF9DD25, 0xF0F921,
)  # fmt: skip


def rgb_to_hex(c: Any) -> Any:
    """The colour 0xRRGGBB for three components from 0 to 1."""
    r, g, b = (np.clip((np.asarray(x) * 255).astype(np.int64), 0, 255) for x in c)
    out = (r << 16) + (g << 8) + b
    return int(out) if np.ndim(out) == 0 else out


def hex_to_rgb(color: int) -> tuple[float, float, float]:
    """Three components from 0 to 1 for the colour 0xRRGGBB."""
    return tuple(((color >> s) & 255) / 255 for s in (16, 8, 0))  # type: ignore[return-value]


def _scalars(field: Any) -> np.ndarray:
    a = _array(field).astype(np.float64)
    if a.ndim != 2 or not a.size:
        raise ValueError(f"contour draws fields with two axes; the shape is {a.shape}")
    return a


def contour_colors(scalars: Any, colors: str = "plasma", normalize: bool = False) -> np.ndarray:
    """Colours for numbers from 0 to 1, or with ``normalize`` from the smallest to the largest: f32 of shape (n, m, 3).

    Args:
        scalars: Numbers of shape (n, m).
        colors: The name of a map: "plasma", or one of matplotlib's where that is installed.
        normalize: Whether the colours go from the smallest number to the largest.

    Raises:
        ValueError: There is no such map.
    """
    t = np.nan_to_num(_scalars(scalars))
    if normalize:
        extent = t.max() - t.min()
        t = (t - t.min()) / (extent if extent > 0 else 1)
    t = np.clip(t, 0, 1)
    if colors == "plasma":
        stops = np.array([hex_to_rgb(c) for c in _PLASMA])
        at = np.linspace(0, 1, len(stops))
        return np.stack([np.interp(t, at, stops[:, k]) for k in range(3)], -1).astype(np.float32)
    try:
        from matplotlib import colormaps

        found = colormaps[colors]
    except ImportError:
        raise ValueError(f"the colours {colors!r} are matplotlib's, which is not installed; plasma is there") from None
    except KeyError:
        raise ValueError(f"matplotlib has no colours {colors!r}") from None
    return found(t)[..., :3].astype(np.float32)


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

    class EventFilter:
        """Events of the given types, keys, (type, key, ...) tuples, or those for which a function says yes."""

        def __init__(self, *e_filter: Any) -> None:
            self.filter = e_filter

        def match(self, e: GUI.Event) -> bool:
            """Whether an event passes: every one does if nothing is named."""
            return not self.filter or any(_matches(wanted, e) for wanted in self.filter)

    class WidgetValue:
        """What a slider or a label shows: read and set ``value``."""

        def __init__(self, value: float) -> None:
            self.value = float(value)

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
        if len(size) != 2 or any(not isinstance(n, (int, np.integer)) or n < 1 for n in size):
            raise ValueError(f"res must be a number of pixels or two of them, not {res!r}")
        self.name, self.res = name, (int(size[0]), int(size[1]))
        self.background_color = int(_colors(background_color, 1)[0])
        self._fps_limit: float | None = 60
        self.frame = 0
        self.event: GUI.Event | None = None
        self.key_pressed: set[str] = set()
        self._running = True
        self._exit_told = False
        self._frames = int(os.environ.get("AEROGEL_GUI_FRAMES", "0"))
        self._canvas = _native.Canvas(*self.res)
        self._shown: Any = None
        # Where a notebook shows the picture.
        self._handle: Any = None
        self._img: np.ndarray | None = None
        self._drawn: Any = None
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

    @property
    def fps_limit(self) -> float | None:
        """How many frames a second there shall be at most, or None. Without a window nothing is held back."""
        return self._fps_limit

    @fps_limit.setter
    def fps_limit(self, value: float | None) -> None:
        if value is not None and not value > 0:
            raise ValueError(f"fps_limit must be positive or None, not {value!r}")
        self._fps_limit = value

    def show(self, file: str | None = None) -> None:
        """Ends the frame; writes it to ``file`` if one is named, and starts the next with the background colour.

        Args:
            file: Where to: PNG, or with Pillow installed what its suffix says, as ``.gif`` or ``.jpg``.

        Raises:
            OSError: The file cannot be written; then there is none.
        """
        if self._frames and self.frame >= self._frames:
            # The program asks neither `running` nor for events.
            raise SystemExit(0)
        if file:
            imwrite(_picture(self._canvas, self.res)[..., :3], str(file))
        elif _notebook.is_running():
            self._handle = _notebook.show(_picture(self._canvas, self.res)[..., :3], self._handle)
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
        imwrite(_picture(self._shown or self._canvas, self.res), path)

    def _repr_png_(self) -> bytes:
        return _notebook.encoded(_picture(self._shown or self._canvas, self.res)[..., :3])

    def get_image(self) -> np.ndarray:
        """The picture as floats of shape (width, height, 4)."""
        return _picture(self._canvas, self.res) / np.float32(255)

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
            if GUI.EventFilter(*e_filter).match(event):
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
        """A slider, which nobody moves while there is no window: it stays at the least value unless set.

        Args:
            text: What stands beside it.
            minimum: The least value.
            maximum: The largest value.
            step: The distance between two values.
        """
        if not minimum <= maximum:
            raise ValueError(f"the slider {text!r} would go from {minimum} to {maximum}")
        return GUI.WidgetValue(minimum)

    def label(self, text: str) -> GUI.WidgetValue:
        """A text with a number, 0 until set; not drawn while there is no window."""
        return GUI.WidgetValue(0)

    def button(self, text: str, event_name: str | None = None) -> str:
        """The key of the event of a button, which nobody presses while there is no window."""
        return event_name or f"WidgetButton_{text}"

    # Drawing.

    def clear(self, color: int | None = None) -> None:
        """Fills the picture with a colour, by default the background colour."""
        self._canvas.clear(self.background_color if color is None else int(_colors(color, 1)[0]))

    def cook_image(self, img: Any) -> np.ndarray:
        """An image as `set_image` takes it, as floats of shape (width, height, 4)."""
        pixels = to_pixels(img).astype(np.float32) / 255
        out = np.zeros((*pixels.shape[:2], 4), np.float32)
        channels = pixels.shape[2]
        out[..., : max(channels, 3)] = pixels[..., :1] if channels == 1 else 0
        out[..., :channels] = pixels
        if channels != 4:
            out[..., 3] = 1
        return out

    def set_image(self, img: Any) -> None:
        """Draws an image over the whole picture.

        Args:
            img: A field or array of shape (width, height), (width, height, channels), or of vectors: 1 channel is grey,
                2 are red and green, 3 and 4 colours; opacity is not looked at. Floats go from 0 to 1, unsigned
                integers over all their range.

        Raises:
            TypeError: Signed integers, whose range is not an image's.
            ValueError: The shape is not that of an image, or its size not that of the GUI.
        """
        pixels = to_pixels(img, "GUI.set_image")
        if pixels.shape[:2] != self.res:
            raise ValueError(
                f"the image is {pixels.shape[0]} by {pixels.shape[1]}, the GUI {self.res[0]} by {self.res[1]}"
            )
        self._canvas.set_image(np.ascontiguousarray(pixels))
        self._drawn = img
        if self._img is not None:
            self._keep(img)

    @property
    def img(self) -> np.ndarray:
        """The image set last, as floats of shape (width, height, 4); what is written into it is drawn by
        ``gui.set_image(gui.img)``."""
        if self._img is None:
            self._img = np.zeros((*self.res, 4), np.float32)
            if self._drawn is not None:
                self._keep(self._drawn)
        return self._img

    @img.setter
    def img(self, value: Any) -> None:
        self.set_image(value)

    def _keep(self, img: Any) -> None:
        """Writes an image into ``img``, as Taichi does: opacity only where the image has it."""
        assert self._img is not None
        if img is self._img:
            return
        values = _array(img)
        if values.dtype.kind != "f":
            values = to_pixels(values) / np.float32(255)
        values = values[..., None] if values.ndim == 2 else values
        self._img[..., : values.shape[2] if values.shape[2] > 1 else 4] = values

    def contour(self, scalar_field: Any, normalize: bool = False) -> None:
        """Draws a scalar field in colours from dark blue (0) to yellow (1).

        Args:
            scalar_field: A field or array of shape (n, m), which is stretched over the whole picture.
            normalize: Whether the colours go from the smallest value to the largest instead.
        """
        a = _stretched(np.nan_to_num(_scalars(scalar_field)), *self.res)
        self.set_image(contour_colors(a, "plasma", normalize))

    def vector_field(self, vector_field: Any, arrow_spacing: int = 5, color: int = 0xFFFFFF) -> None:
        """Draws arrows on a grid; the longest vector becomes a tenth of the picture.

        Args:
            vector_field: A field of vectors of two components, or an array of shape (n, m, 2).
            arrow_spacing: Elements from one arrow to the next.
            color: 0xRRGGBB.
        """
        v = _array(vector_field).astype(np.float64)
        if v.ndim != 3 or v.shape[2] != 2:
            raise ValueError(f"vector_field draws grids of vectors of two components; the shape is {v.shape}")
        if arrow_spacing < 1:
            raise ValueError(f"arrow_spacing must be 1 or more, not {arrow_spacing}")
        x, y = np.meshgrid(*(np.arange(0, n, arrow_spacing) for n in v.shape[:2]), indexing="ij")
        pos = np.stack([x / v.shape[0], y / v.shape[1]], -1).reshape(-1, 2)
        longest = np.sqrt((v * v).sum(-1)).max(initial=0)
        if longest > 0:
            self.arrows(pos, v[x, y].reshape(-1, 2) * (0.1 / longest), radius=1, color=color)

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
            pos: Positions, of shape (n, 2).
            radius: In pixels: a number, or one for each.
            color: 0xRRGGBB: a number, or one for each.
            palette: Colours to choose from.
            palette_indices: Which of them each disc has, of shape (n,).

        Raises:
            ValueError: A shape is not as said, or an index is outside the palette.
        """
        points = _points(pos)
        if palette is not None:
            if palette_indices is None:
                raise ValueError("palette needs palette_indices")
            indices = _array(palette_indices)
            if indices.shape != (len(points),) or indices.dtype.kind not in "iu":
                raise ValueError(f"palette_indices are {len(points)} whole numbers, one for each position")
            if indices.size and (indices.min() < 0 or indices.max() >= len(palette)):
                raise ValueError(f"palette_indices must lie between 0 and {len(palette) - 1}")
            color = _colors(palette, len(palette))[indices]
        n = len(points)
        self._canvas.circles(self._pixels(points), _each(radius, n, np.float32), _colors(color, n))

    def circle(self, pos: Any, color: int = 0xFFFFFF, radius: float = 1) -> None:
        """Draws a disc."""
        self.circles(_point(pos), radius, color)

    def lines(self, begin: Any, end: Any, radius: Any = 1, color: Any = 0xFFFFFF) -> None:
        """Draws a line from each of the positions ``begin`` to the one in ``end``."""
        a, b = self._pixels(_points(begin)), self._pixels(_points(end))
        if len(a) != len(b):
            raise ValueError(f"{len(a)} beginnings and {len(b)} ends")
        self._canvas.lines(a, b, _each(radius, len(a), np.float32), _colors(color, len(a)))

    def line(self, begin: Any, end: Any, radius: float = 1, color: int = 0xFFFFFF) -> None:
        """Draws a line."""
        self.lines(_point(begin), _point(end), radius, color)

    def triangles(self, a: Any, b: Any, c: Any, color: Any = 0xFFFFFF) -> None:
        """Draws filled triangles."""
        p, q, r = (self._pixels(_points(x)) for x in (a, b, c))
        if not len(p) == len(q) == len(r):
            raise ValueError(f"{len(p)}, {len(q)} and {len(r)} corners")
        self._canvas.triangles(p, q, r, _colors(color, len(p)))

    def triangle(self, a: Any, b: Any, c: Any, color: int = 0xFFFFFF) -> None:
        """Draws a filled triangle."""
        self.triangles(_point(a), _point(b), _point(c), color)

    def rect(self, topleft: Any, bottomright: Any, radius: float = 1, color: int = 0xFFFFFF) -> None:
        """Draws the outline of a rectangle."""
        (x0, y0), (x1, y1) = _point(topleft)[0], _point(bottomright)[0]
        corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], np.float64)
        self.lines(corners, np.roll(corners, -1, axis=0), radius, color)

    def arrows(self, orig: Any, direction: Any, radius: Any = 1, color: Any = 0xFFFFFF, **kwargs: Any) -> None:
        """Draws an arrow from each position along each direction.

        Args:
            orig: Positions.
            direction: Vectors.
            radius: Half the thickness, in pixels.
            color: 0xRRGGBB: a number, or one for each.
            kwargs: ``tip_scale``: the length of a tip, a fraction of the arrow's (0.2); ``angle``: how far it stands
                off, in degrees (45).
        """
        tip_scale, angle = _arrow_options(**kwargs)
        a, d = _points(orig), _points(direction)
        if len(d) not in (1, len(a)):
            raise ValueError(f"{len(a)} positions and {len(d)} directions")
        d = np.broadcast_to(d.astype(np.float64), a.shape)
        b = a + d
        self.lines(a, b, radius, color)
        for turn in (np.pi - np.deg2rad(angle), np.deg2rad(angle) - np.pi):
            c, s = np.cos(turn) * tip_scale, np.sin(turn) * tip_scale
            self.lines(b, b + np.stack([d[:, 0] * c - d[:, 1] * s, d[:, 0] * s + d[:, 1] * c], -1), radius, color)

    def arrow(self, orig: Any, direction: Any, radius: float = 1, color: int = 0xFFFFFF, **kwargs: Any) -> None:
        """Draws an arrow; see `arrows`."""
        self.arrows(_point(orig), _point(direction), radius, color, **kwargs)

    def arrow_field(
        self, direction: Any, radius: float = 1, color: int = 0xFFFFFF, bound: float = 0.5, **kwargs: Any
    ) -> None:
        """Draws the arrows of a grid.

        Args:
            direction: A field of vectors of two components, or an array of shape (n, m, 2).
            radius: Half the thickness, in pixels.
            color: 0xRRGGBB.
            bound: How far the outermost arrows are from the edge, in cells of the grid.
            kwargs: As for `arrows`.
        """
        d = _array(direction)
        if d.ndim != 3 or d.shape[2] != 2:
            raise ValueError(f"arrow_field draws grids of vectors of two components; the shape is {d.shape}")
        self.arrows(_grid(d.shape[:2], bound), d.reshape(-1, 2), radius, color, **kwargs)

    def point_field(self, radius: Any, color: int = 0xFFFFFF, bound: float = 0.5) -> None:
        """Draws the discs of a grid.

        Args:
            radius: A field or array of shape (n, m), in pixels.
            color: 0xRRGGBB.
            bound: How far the outermost discs are from the edge, in cells of the grid.
        """
        r = _array(radius)
        if r.ndim != 2:
            raise ValueError(f"point_field draws grids of radii; the shape is {r.shape}")
        self.circles(_grid(r.shape, bound), r.reshape(-1), color)

    def text(self, content: str, pos: Any, font_size: int = 15, color: int = 0xFFFFFF) -> None:
        """Draws a text; ``pos`` is its upper left corner."""
        x, y = self._pixels(_point(pos))[0]
        self._canvas.text(str(content), float(x), float(y), float(font_size), int(_colors(color, 1)[0]))

    def _pixels(self, points: np.ndarray) -> np.ndarray:
        """Pixel coordinates, the origin at the upper left."""
        out = np.empty((len(points), 2), np.float32)
        out[:, 0] = points[:, 0] * self.res[0]
        out[:, 1] = (1 - points[:, 1]) * self.res[1]
        return out


def _array(x: Any) -> np.ndarray:
    """A field, array, NumPy array or list as a NumPy array."""
    return x.to_numpy() if hasattr(x, "to_numpy") else np.asarray(x)


def _points(pos: Any) -> np.ndarray:
    array = _array(pos)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "fiu":
        raise ValueError(f"positions have the shape (n, 2), not {array.shape}")
    return array


def _point(pos: Any) -> np.ndarray:
    """One position, as an array of one."""
    array = _array(pos)
    if array.shape != (2,) or array.dtype.kind not in "fiu":
        raise ValueError(f"a position has two coordinates; this is {pos!r}")
    return array.reshape(1, 2)


def _each(value: Any, n: int, dtype: Any) -> np.ndarray:
    """One value, or one for each of ``n`` shapes."""
    array = _array(value)
    if array.shape not in ((), (1,), (n,)):
        raise ValueError(f"a number, or one for each of {n} shapes, is needed, not numbers of shape {array.shape}")
    return np.ascontiguousarray(array.reshape(-1).astype(dtype))


def _colors(value: Any, n: int) -> np.ndarray:
    """Colours 0xRRGGBB: one, or one for each of ``n`` shapes."""
    array = _array(value)
    is_whole = array.dtype.kind in "iu" or array.dtype.kind == "f" and bool((array == np.floor(array)).all())
    if is_whole and array.shape in ((), (1,), (n,)) and not (isinstance(value, (tuple, list)) and n == 1 < len(value)):
        return np.ascontiguousarray(array.reshape(-1).astype(np.int64).astype(np.uint32))
    remedy = ""
    if array.shape == (3,) and array.dtype.kind in "fiu":
        parts = array / 255 if array.max() > 1 else array
        remedy = f"; this one is {rgb_to_hex(parts):#08x}, as ti.rgb_to_hex gives it for three numbers from 0 to 1"
    elif isinstance(value, str):
        remedy = "; red is 0xff0000, white 0xffffff"
    what = f"an array of shape {array.shape}" if isinstance(value, np.ndarray) else repr(value)
    raise ValueError(f"a colour is a number 0xRRGGBB, or one for each of {n} shapes, not {what}{remedy}")


def _grid(shape: Any, bound: float) -> np.ndarray:
    x, y = np.meshgrid(*(np.linspace(bound / n, 1 - bound / n, n) for n in shape), indexing="ij")
    return np.stack([x, y], -1).reshape(-1, 2)


def _stretched(a: np.ndarray, width: int, height: int) -> np.ndarray:
    """An array of another size: the corners stay the corners, between elements is interpolated."""
    x, y = np.linspace(0, a.shape[0] - 1, width), np.linspace(0, a.shape[1] - 1, height)
    i, j = x.astype(int), y.astype(int)
    i1, j1 = np.minimum(i + 1, a.shape[0] - 1), np.minimum(j + 1, a.shape[1] - 1)
    u, v = (x - i)[:, None], (y - j)[None, :]
    low = a[i][:, j] * (1 - v) + a[i][:, j1] * v
    high = a[i1][:, j] * (1 - v) + a[i1][:, j1] * v
    return low * (1 - u) + high * u


def _arrow_options(tip_scale: float = 0.2, angle: float = 45) -> tuple[float, float]:
    return tip_scale, angle


def _picture(canvas: Any, res: tuple[int, int]) -> np.ndarray:
    """The bytes of a canvas, of shape (width, height, 4), the second axis upwards."""
    rows = np.frombuffer(canvas.pixels(), np.uint8).reshape(res[1], res[0], 4)
    return rows.swapaxes(0, 1)[:, ::-1]


def _matches(wanted: Any, event: GUI.Event) -> bool:
    if callable(wanted):
        return bool(wanted(event))
    if isinstance(wanted, (tuple, list)):
        return wanted[0] == event.type and event.key in wanted[1:]
    return wanted in (event.type, event.key)
