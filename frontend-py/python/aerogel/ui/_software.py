"""What stands for `aerogel_viz.Window` where there is no Vulkan: an image that pictures, lines, triangles and balls are
painted into. It has no panels, which then keep their values, and no meshes."""

from __future__ import annotations

from typing import Any

import numpy as np

from aerogel import _native
from aerogel.ui import _blend

_DTYPES = {0: np.float32, 1: np.uint8, 2: np.uint16, 3: np.uint32}


class Picture:
    """A picture with the calls of `aerogel_viz.Window`."""

    visible = False
    #: It has no memory of a device that large images are written into.
    most_pixels = 0
    closed = False
    cursor = (0.0, 0.0)

    def __init__(self, width: int, height: int, why: str) -> None:
        self.size, self._why = (width, height), why
        self._canvas = _native.Canvas(width, height)
        self._background, self._is_shown, self._is_read = 0, False, False
        self._world: tuple[np.ndarray, np.ndarray, np.ndarray, list[Any]] | None = None
        self._canvas.clear(0)

    def close(self) -> None:
        """Nothing happens."""

    def show(self) -> None:
        """Ends the frame."""
        if self._is_shown:
            self._open()
        self._is_shown = True

    def events(self) -> list[Any]:
        """Nothing: nobody can do anything."""
        return []

    def _open(self) -> Any:
        if self._is_shown or self._is_read:
            self._is_shown, self._is_read, self._world = False, False, None
            self._canvas.clear(self._background)
        return self._canvas

    def background(self, color: Any) -> None:
        """Sets the colour behind everything, which what was drawn before in this frame vanishes behind."""
        self._background = int(_hex(np.array([color]))[0])
        self._open().clear(self._background)

    def image(self, numbers: bytes, width: int, height: int, channels: int, kind: int) -> None:
        """Draws an image over the whole picture."""
        values = np.frombuffer(numbers, _DTYPES[kind]).reshape(width, height, channels)
        if values.dtype.kind != "f":
            values = values / np.float32(256.0**values.dtype.itemsize - 1)
        # Infinity is white also between numbers.
        values = np.clip(np.nan_to_num(values.astype(np.float32)), -1e9, 1e9)
        pixels = (np.clip(_blend.stretched(values, self.size), 0, 1) * 255 + 0.5).astype(np.uint8)
        self._open().set_image(np.ascontiguousarray(pixels))

    def world(self, view: Any, projection: Any, eye: Any, ambient: Any, lights: list[Any]) -> None:
        """Begins a scene."""
        self._open()
        self._world = (np.array(view), np.array(projection), np.array(ambient), lights)

    def draw(self, kind: str, positions: bytes, **how: Any) -> None:
        """Draws things of a kind.

        Raises:
            RuntimeError: A mesh.
        """
        if kind == "mesh":
            raise RuntimeError(f"meshes need Vulkan, and {self._why}")
        canvas = self._open()
        points = np.frombuffer(positions, np.float32).reshape(-1, 3 if kind in ("particles", "space_lines") else 2)
        chosen = _chosen(len(points), how)
        colors, sizes = _colors(len(points), how)[chosen], _sizes(len(points), how)[chosen]
        points = points[chosen].astype(np.float64)
        if kind == "particles":
            points, colors, sizes = self._balls(points, colors[:, :3], sizes)
        elif kind == "space_lines":
            points, _ = self._seen(points)
            sizes = sizes / self.size[1]
        # What is too far away to be said is nowhere.
        with np.errstate(over="ignore"):
            at = (points * self.size).astype(np.float32)
        at[:, 1] = self.size[1] - at[:, 1]
        radii = (sizes * self.size[1]).astype(np.float32)
        if kind != "particles" and _is_mixed(kind, colors):
            self._blend(kind, at, radii, colors)
            return
        color = _hex(colors)
        if kind in ("circles", "particles"):
            # The painter covers a pixel by how far its lower left corner is inside; a window by how far its centre is,
            # with half a pixel of soft edge.
            canvas.circles(at + np.array([-0.5, 0.5], np.float32), radii + np.float32(0.5), color)
        elif kind == "triangles":
            canvas.triangles(*_each(3, at), _each(3, color)[0])
        else:
            # Half the width to each side.
            canvas.lines(*_each(2, at), _each(2, radii)[0] / 2, _each(2, color)[0])

    def _blend(self, kind: str, at: np.ndarray, radii: np.ndarray, colors: np.ndarray) -> None:
        """Draws what is not of one opaque colour."""
        width, height = self.size
        rows = np.frombuffer(self._canvas.pixels(), np.uint8).reshape(height, width, 4)[..., :3].astype(np.float32)
        if kind == "circles":
            _blend.discs(rows, at, radii, colors)
        elif kind == "triangles":
            _blend.triangles(rows, _grouped(3, at), _grouped(3, colors))
        else:
            _blend.lines(rows, _grouped(2, at), _grouped(2, radii)[:, 0], _grouped(2, colors))
        pixels = (rows + 0.5).astype(np.uint8)
        self._canvas.set_image(np.ascontiguousarray(pixels[::-1].swapaxes(0, 1)))

    def _seen(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where points are in the picture, not a number behind the eye, and how far away."""
        assert self._world is not None
        view, projection = self._world[:2]
        with np.errstate(invalid="ignore", over="ignore"):
            seen = np.c_[points, np.ones(len(points))] @ view.T
            clip = seen @ projection.T
            w = np.where(clip[:, 3:] > 0, clip[:, 3:], np.nan)
            return (clip[:, :2] / w + 1) / 2, -seen[:, 2]

    def _balls(
        self, points: np.ndarray, colors: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Discs from the farthest to the nearest, lit as the side of a ball that looks at the eye."""
        assert self._world is not None
        view, projection, ambient, lights = self._world
        at, far = self._seen(points)
        light = np.tile(ambient.astype(np.float64), (len(points), 1))
        towards = view[2, :3]
        for position, color in lights:
            way = np.asarray(position) - points
            facing = (way @ towards) / np.maximum(np.linalg.norm(way, axis=1), 1e-20)
            light += np.clip(facing, 0, None)[:, None] * color
        w = far if projection[3, 2] != 0 else np.ones_like(far)
        with np.errstate(divide="ignore", invalid="ignore"):
            shown = sizes * projection[1, 1] / w / 2
        order = np.argsort(-far)
        order = order[np.isfinite(at[order]).all(1) & (shown[order] > 0)]
        return at[order], (colors * light)[order], shown[order]

    def panel(self, name: str, place: Any) -> None:
        """Nothing is shown."""

    def text(self, text: str, color: Any = None) -> None:
        """Nothing is shown."""

    def plot(self, label: str, axes: Any, size: Any, series: list[Any]) -> None:
        """Nothing is shown."""

    def button(self, label: str) -> bool:
        """Nobody presses it."""
        return False

    def checkbox(self, label: str, value: bool) -> bool:
        """It stays as it is."""
        return value

    def slider_int(self, label: str, value: int, low: int, high: int) -> int:
        """It stays where it is."""
        return value

    def slider_float(self, label: str, value: float, low: float, high: float) -> float:
        """It stays where it is."""
        return value

    def color(self, label: str, value: Any) -> Any:
        """It stays as it is."""
        return value

    def pixels(self) -> bytes:
        """The frame: RGBA bytes, row by row from the top. Later drawing begins a new frame."""
        self._is_read = True
        return self._canvas.pixels()

    def floats(self) -> np.ndarray:
        """The frame as f32 from 0 to 1, as `pixels` gives it."""
        return np.frombuffer(self.pixels(), np.uint8) / np.float32(255)

    def depths(self) -> bytes:
        """Painting knows no depths.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(f"depths need Vulkan, and {self._why}")


def _chosen(n: int, how: dict[str, Any]) -> np.ndarray:
    """The numbers of the vertices that are drawn, in order."""
    indices, first, number = how.get("indices"), how.get("first", 0), how.get("number")
    part = slice(first, None if number is None else first + number)
    if indices is None:
        return np.arange(n)[part]
    return np.frombuffer(indices, np.uint32).astype(np.int64)[part] + how.get("base", 0)


def _colors(n: int, how: dict[str, Any]) -> np.ndarray:
    if how.get("colors") is None:
        color = np.asarray(how["color"], np.float64)
        return np.tile(color if len(color) == 4 else np.r_[color, 1.0], (n, 1))
    given = np.frombuffer(how["colors"], np.float32).reshape(-1, how["n_color"])[:n]
    out = np.ones((n, 4))
    out[:, : given.shape[1]] = given
    return out


def _is_mixed(kind: str, colors: np.ndarray) -> bool:
    """Whether something is not opaque, or has corners of several colours."""
    if (colors[:, 3] < 1).any():
        return True
    n = {"triangles": 3, "circles": 1}.get(kind, 2)
    corners = _grouped(n, colors)
    return bool((corners != corners[:, :1]).any())


def _sizes(n: int, how: dict[str, Any]) -> np.ndarray:
    if how.get("extra") is None:
        return np.full(n, how.get("size", 0.0))
    given = np.frombuffer(how["extra"], np.float32)
    return given[:n].astype(np.float64)


def _each(n: int, rows: np.ndarray) -> list[np.ndarray]:
    """The first of each ``n`` rows, the second, and so on."""
    whole = len(rows) - len(rows) % n
    return [np.ascontiguousarray(rows[k:whole:n]) for k in range(n)]


def _grouped(n: int, rows: np.ndarray) -> np.ndarray:
    """Each ``n`` rows together."""
    return rows[: len(rows) - len(rows) % n].reshape(-1, n, *rows.shape[1:])


def _hex(colors: np.ndarray) -> np.ndarray:
    r, g, b = (np.clip(np.nan_to_num(colors[:, k]) * 255 + 0.5, 0, 255).astype(np.uint32) for k in range(3))
    return (r << 16) + (g << 8) + b
