"""``ti.GUI``: two-dimensional drawing into an image.

The image is shown in a window of the desktop where there is one and ``aerogel_viz`` is installed
(``make viz-wheel``); otherwise a program draws as if there were a window. ``show(file)`` writes the
image; in a notebook `show()` shows it below the cell. Coordinates go from (0, 0) at the lower left to (1, 1) at the
upper right; shapes outside are not drawn. Colours are 0xRRGGBB, radii and sizes in pixels. Positions, radii, colours
and fields of them may be fields, arrays, NumPy arrays or lists.

Environment:
    AEROGEL_GUI_FRAMES: The number of shown frames after which the window counts as closed, so that programs end.
    AEROGEL_GUI_OUT: Where the last frame is written when the program ends.
    AEROGEL_GUI_SHOW: 0: no windows.
    AEROGEL_GUI_FULLSCREEN: 1: windows over all the screen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aerogel import _colormaps, _gui_last, _native, _notebook
from aerogel import _gui_arrays as _arrays
from aerogel._gui_arrays import contour_colors, hex_to_rgb, rgb_to_hex
from aerogel._gui_desk import Desk
from aerogel.tools._pixels import imwrite, to_pixels

__all__ = ["GUI", "contour_colors", "hex_to_rgb", "rgb_to_hex"]


class GUI(Desk):
    """An image to draw into, shown frame by frame.

    Args:
        name: The title.
        res: The size in pixels: a number for a square, or width and height.
        background_color: 0xRRGGBB.
        show_gui: Whether it is shown in a window, where there is a desktop.
        fullscreen: Whether the window fills the screen; the image is scaled to it.
        fast_gui: ``img`` and ``get_image()`` return the pixels as words, ``0xRRGGBB``, on one axis that begins with the
            top row. All calls draw, and as fast.

    Raises:
        RuntimeError: It would be shown in a window, and this is not the main thread.
        ValueError: It has no pixels, or too many.
        MemoryError: There is no memory for it.
    """

    def __init__(
        self,
        name: str = "Aerogel",
        res: Any = 512,
        background_color: int = 0x0,
        show_gui: bool = True,
        fullscreen: bool = False,
        fast_gui: bool = False,
    ) -> None:
        self.background_color = int(_arrays.colors(background_color, 1)[0])
        self._canvas = _native.Canvas(*_arrays.size(res))
        super().__init__(name, res, show_gui, fullscreen)
        self._shown: Any = None
        # Where a notebook shows the picture.
        self._handle: Any = None
        self._img: np.ndarray | None = None
        self._is_packed = fast_gui
        self._drawn: Any = None
        # Memory for the pixels of large images.
        self._words: np.ndarray | None = None
        self.clear()
        _gui_last.keep(self, self._write_last)

    def __enter__(self) -> GUI:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the window."""
        _gui_last.let_go(self)
        super().close()

    def show(self, file: str | None = None) -> None:
        """Ends the frame; writes it to ``file`` if one is named, and starts the next with the background colour.

        Args:
            file: Where to: PNG, or with Pillow installed another format by its suffix, such as ``.gif`` or ``.jpg``.

        Raises:
            OSError: The file cannot be written; then there is none.
            RuntimeError: The display has disappeared. Fields keep their values.
            SystemExit: The frames of AEROGEL_GUI_FRAMES were all shown, or the window was closed, and the program does
                not check whether it is running.
        """
        if self._frames and self.frame >= self._frames:
            raise SystemExit(0)
        self._widgets.paint(self._canvas)
        if file:
            imwrite(_arrays.picture(self._canvas, self.res)[..., :3], str(file))
        elif _notebook.is_running() and self._view is None:
            self._handle = _notebook.show(_arrays.picture(self._canvas, self.res)[..., :3], self._handle)
        else:
            self._tell()
        self._shown = self._canvas.copy()
        self.frame += 1
        self.clear()
        self._show(self._shown)
        if self.frame == self._frames:
            self._running = False
            self._tell_event(self.PRESS, self.EXIT, self._cursor)

    def _write_last(self, path: str) -> None:
        imwrite(_arrays.picture(self._shown or self._canvas, self.res), path)

    def _repr_png_(self) -> bytes:
        return _notebook.encoded(_arrays.picture(self._shown or self._canvas, self.res)[..., :3])

    def get_image(self) -> np.ndarray:
        """The picture as floats of shape (width, height, 4); with ``fast_gui`` as words, as ``img`` has them."""
        picture = _arrays.picture(self._canvas, self.res)
        return _arrays.packed(picture) if self._is_packed else picture / np.float32(255)

    # Drawing.

    def clear(self, color: int | None = None) -> None:
        """Fills the picture with a colour, by default the background colour."""
        self._canvas.clear(self.background_color if color is None else int(_arrays.colors(color, 1)[0]))

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

    def set_image(self, img: Any, cmap: str | None = None, vmin: Any = None, vmax: Any = None) -> None:
        """Draws an image over the whole picture.

        Args:
            img: A field or array of shape (width, height), (width, height, channels), or of vectors: 1 channel is grey,
                2 are red and green, 3 and 4 colours; opacity is not looked at. Floats go from 0 to 1, unsigned
                integers over all their range.
            cmap: The colours of numbers, such as "viridis", as in `ti.tools.imwrite`.
            vmin, vmax: The numbers of the first and the last colour of ``cmap``.

        Raises:
            TypeError: Signed integers, whose range is not an image's.
            ValueError: The shape is not that of an image, or its size not that of the GUI.
        """
        img = _colormaps.maybe(img, cmap, vmin, vmax, "set_image")
        if tuple(getattr(img, "shape", ())[:2]) == self.res:
            from aerogel.ui import _pixels

            words = _pixels.rows(img, self._words)
            if words is not None:
                self._words = words
                self._canvas.set_rows(words)
                self._set(img)
                return
        pixels = _arrays.unpacked(img, self.res) if self._is_packed and img is self._img else None
        pixels = to_pixels(img, "GUI.set_image") if pixels is None else pixels
        if pixels.shape[:2] != self.res:
            raise ValueError(
                f"the image is {pixels.shape[0]} by {pixels.shape[1]}, the GUI {self.res[0]} by {self.res[1]}"
            )
        self._canvas.set_image(np.ascontiguousarray(pixels))
        self._set(img)

    def _set(self, img: Any) -> None:
        """An image was drawn."""
        self._drawn = img
        if self._img is not None:
            self._keep(img)

    @property
    def img(self) -> np.ndarray:
        """The image set last, as floats of shape (width, height, 4), or with ``fast_gui`` as words.

        Values written to it are drawn by ``gui.set_image(gui.img)``.
        """
        if self._img is None:
            width, height = self.res
            self._img = np.zeros(width * height, np.uint32) if self._is_packed else np.zeros((*self.res, 4), np.float32)
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
        values = _arrays.array(img)
        if values.dtype.kind != "f":
            values = to_pixels(values) / np.float32(255)
        values = values[..., None] if values.ndim == 2 else values
        if self._is_packed:
            # Cut off as Taichi does it, where pictures that are shown are rounded.
            self._img[:] = _arrays.packed((np.clip(values, 0, 1) * 255).astype(np.uint8))
            return
        self._img[..., : values.shape[2] if values.shape[2] > 1 else 4] = values

    def contour(self, scalar_field: Any, normalize: bool = False) -> None:
        """Draws a scalar field in colours from dark blue (0) to yellow (1).

        Args:
            scalar_field: A field or array of shape (n, m), which is scaled to the whole picture.
            normalize: Whether the colours go from the smallest value to the largest instead.
        """
        a = _arrays.stretched(np.nan_to_num(_arrays.scalars(scalar_field)), *self.res)
        self.set_image(_arrays.contour_colors(a, "plasma", normalize))

    def vector_field(self, vector_field: Any, arrow_spacing: int = 5, color: int = 0xFFFFFF) -> None:
        """Draws arrows on a grid; the longest vector becomes a tenth of the picture.

        Args:
            vector_field: A field of vectors of two components, or an array of shape (n, m, 2).
            arrow_spacing: Elements from one arrow to the next.
            color: 0xRRGGBB.
        """
        v = _arrays.array(vector_field).astype(np.float64)
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
        points = _arrays.points(pos)
        if palette is not None:
            if palette_indices is None:
                raise ValueError("palette needs palette_indices")
            indices = _arrays.array(palette_indices)
            if indices.shape != (len(points),) or indices.dtype.kind not in "iu":
                raise ValueError(f"palette_indices are {len(points)} integers, one for each position")
            if indices.size and (indices.min() < 0 or indices.max() >= len(palette)):
                raise ValueError(f"palette_indices must lie between 0 and {len(palette) - 1}")
            color = _arrays.colors(palette, len(palette))[indices]
        n = len(points)
        self._canvas.circles(self._pixels(points), _arrays.each(radius, n, np.float32), _arrays.colors(color, n))

    def circle(self, pos: Any, color: int = 0xFFFFFF, radius: float = 1) -> None:
        """Draws a disc."""
        self.circles(_arrays.point(pos), radius, color)

    def lines(self, begin: Any, end: Any, radius: Any = 1, color: Any = 0xFFFFFF) -> None:
        """Draws a line from each of the positions ``begin`` to the one in ``end``."""
        a, b = self._pixels(_arrays.points(begin)), self._pixels(_arrays.points(end))
        if len(a) != len(b):
            raise ValueError(f"{len(a)} beginnings and {len(b)} ends")
        self._canvas.lines(a, b, _arrays.each(radius, len(a), np.float32), _arrays.colors(color, len(a)))

    def line(self, begin: Any, end: Any, radius: float = 1, color: int = 0xFFFFFF) -> None:
        """Draws a line."""
        self.lines(_arrays.point(begin), _arrays.point(end), radius, color)

    def triangles(self, a: Any, b: Any, c: Any, color: Any = 0xFFFFFF) -> None:
        """Draws filled triangles."""
        p, q, r = (self._pixels(_arrays.points(x)) for x in (a, b, c))
        if not len(p) == len(q) == len(r):
            raise ValueError(f"{len(p)}, {len(q)} and {len(r)} corners")
        self._canvas.triangles(p, q, r, _arrays.colors(color, len(p)))

    def triangle(self, a: Any, b: Any, c: Any, color: int = 0xFFFFFF) -> None:
        """Draws a filled triangle."""
        self.triangles(_arrays.point(a), _arrays.point(b), _arrays.point(c), color)

    def rect(self, topleft: Any, bottomright: Any, radius: float = 1, color: int = 0xFFFFFF) -> None:
        """Draws the outline of a rectangle."""
        (x0, y0), (x1, y1) = _arrays.point(topleft)[0], _arrays.point(bottomright)[0]
        corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], np.float64)
        self.lines(corners, np.roll(corners, -1, axis=0), radius, color)

    def arrows(self, orig: Any, direction: Any, radius: Any = 1, color: Any = 0xFFFFFF, **kwargs: Any) -> None:
        """Draws an arrow from each position along each direction.

        Args:
            orig: Positions.
            direction: Vectors.
            radius: Half the thickness, in pixels.
            color: 0xRRGGBB: a number, or one for each.
            kwargs: ``tip_scale``: the length of a tip, a fraction of the arrow's (0.2); ``angle``: its angle to the
                shaft, in degrees (45).
        """
        tip_scale, angle = _arrays.arrow_options(**kwargs)
        a, d = _arrays.points(orig), _arrays.points(direction)
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
        self.arrows(_arrays.point(orig), _arrays.point(direction), radius, color, **kwargs)

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
        d = _arrays.array(direction)
        if d.ndim != 3 or d.shape[2] != 2:
            raise ValueError(f"arrow_field draws grids of vectors of two components; the shape is {d.shape}")
        self.arrows(_arrays.grid(d.shape[:2], bound), d.reshape(-1, 2), radius, color, **kwargs)

    def point_field(self, radius: Any, color: int = 0xFFFFFF, bound: float = 0.5) -> None:
        """Draws the discs of a grid.

        Args:
            radius: A field or array of shape (n, m), in pixels.
            color: 0xRRGGBB.
            bound: How far the outermost discs are from the edge, in cells of the grid.
        """
        r = _arrays.array(radius)
        if r.ndim != 2:
            raise ValueError(f"point_field draws grids of radii; the shape is {r.shape}")
        self.circles(_arrays.grid(r.shape, bound), r.reshape(-1), color)

    def text(self, content: str, pos: Any, font_size: int = 15, color: int = 0xFFFFFF) -> None:
        """Draws a text; ``pos`` is its upper left corner."""
        x, y = self._pixels(_arrays.point(pos))[0]
        self._canvas.text(str(content), float(x), float(y), float(font_size), int(_arrays.colors(color, 1)[0]))

    def _pixels(self, points: np.ndarray) -> np.ndarray:
        """Pixel coordinates, the origin at the upper left."""
        out = np.empty((len(points), 2), np.float32)
        out[:, 0] = points[:, 0] * self.res[0]
        out[:, 1] = (1 - points[:, 1]) * self.res[1]
        return out
