"""A field on a page: as an image with the scale of its colours, as arrows, points, a curve or a number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aerogel._colormaps import NAN, colored
from aerogel.view._page import DIM, GOOD, INK, LINE, WARNING, Page
from aerogel.view._values import Values, length

#: Infinity, and what is not active.
_INFINITE, _NOTHING = (0, 230, 255), (38, 44, 52)
_MOST_POINTS, _MOST_BLOCKS = 100_000, 4000


@dataclass
class Tile:
    """How a field is looked at.

    Attributes:
        name: What the program calls it.
        low, high: The fixed range of its numbers, if it is fixed.
        cmap: The name of the colours.
        history: Of a single number the last ones.
        turn, tilt, zoom: Where points in space are looked at from.
        slice: Which slice of three axes, as a part of the last axis.
        place: Left, top, width and height on the page.
    """

    name: str
    low: float | None = None
    high: float | None = None
    cmap: str = "plasma"
    history: list[float] = field(default_factory=list)
    turn: float = 0.6
    tilt: float = 0.4
    zoom: float = 1.0
    slice: float = 0.5
    place: tuple[int, int, int, int] = (0, 0, 0, 0)

    def range_of(self, numbers: np.ndarray) -> tuple[float, float]:
        """From where to where the numbers go."""
        finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        return (low if self.low is None else self.low), (high if self.high is None else self.high)

    def drag(self, dx: float, dy: float) -> None:
        """The mouse goes so many pixels while it holds the tile."""
        self.turn += dx * 0.01
        self.tilt = min(max(self.tilt + dy * 0.01, -1.5), 1.5)

    def wheel(self, notches: float) -> None:
        """The wheel turns over the tile."""
        self.zoom = min(max(self.zoom * 1.15**notches, 0.05), 50.0)
        self.slice = min(max(self.slice + 0.02 * notches, 0.0), 1.0)

    def draw(self, page: Page, v: Values | str) -> None:
        """Draws what the field holds; a text stands for what cannot be read."""
        left, top, width, height = self.place
        page.frame(left, top, width, height)
        inside = (left + 6, top + 22, max(width - 12, 8), max(height - 28, 8))
        if isinstance(v, str):
            _title(page, self, v, True)
            return
        what = "x".join(map(str, v.shape)) or "one"
        if v.cells is not None:
            what += f", {len(v.cells)} active"
        _title(page, self, str(v.wrong) if v.wrong else what, v.wrong is not None)
        _DRAW[v.kind](page, self, v, inside)


def _title(page: Page, tile: Tile, words: str, is_wrong: bool) -> None:
    left, top, width, _ = tile.place
    letters = max((width - 12) // 7, 4)
    page.text(left + 6, top + 4, tile.name[:letters])
    rest = letters - len(tile.name) - 2
    if rest >= 4:
        page.text(left + 6 + 7.1 * (len(tile.name) + 2), top + 4, words[:rest], WARNING if is_wrong else DIM)
    if is_wrong:
        page.frame(left, top, tile.place[2], tile.place[3], WARNING)


def colours_of(tile: Tile, numbers: np.ndarray, low: float, high: float) -> np.ndarray:
    """Colours of shape (n, m, 3) for numbers from low to high; NaN is magenta, infinity cyan."""
    out = colored(numbers, tile.cmap, low, high)
    if numbers.dtype.kind == "f":
        out[np.isinf(numbers)] = _INFINITE
    return out


def _fit(place: tuple[int, int, int, int], shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The largest rectangle of an image's proportions, in the middle of a place."""
    left, top, width, height = place
    scale = min(width / shape[0], height / shape[1])
    w, h = max(int(shape[0] * scale), 1), max(int(shape[1] * scale), 1)
    return left + (width - w) // 2, top + (height - h) // 2, w, h


def _scale(
    page: Page, tile: Tile, place: tuple[int, int, int, int], low: float, high: float
) -> tuple[int, int, int, int]:
    """Draws the scale of colours at the right of a place; what remains of it."""
    left, top, width, height = place
    if width < 120 or height < 50:
        return place
    at = left + width - 58
    page.picture(at, top, 10, height, colours_of(tile, np.linspace(0, 1, 64)[None, :], 0, 1))
    for y, value in ((top, high), (top + height // 2 - 6, (low + high) / 2), (top + height - 14, low)):
        page.text(at + 14, y, _short(value, high - low), DIM, 12)
    return left, top, width - 66, height


def _short(value: float, extent: float) -> str:
    """A number in six letters or so; what is little beside the range of all is zero."""
    if abs(value) <= 1e-3 * extent:
        return "0"
    text = f"{value:.3g}"
    return text if len(text) <= 7 else f"{value:.1e}"


def _image(page: Page, tile: Tile, v: Values, place: tuple[int, int, int, int]) -> None:
    if v.cells is not None:
        _cells(page, tile, v, place)
        return
    _grid(page, tile, length(v.numbers, 2), place)


def _grid(page: Page, tile: Tile, numbers: np.ndarray, place: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    low, high = tile.range_of(numbers)
    box = _fit(_scale(page, tile, place, low, high), numbers.shape)
    step = max(math.ceil(numbers.shape[0] / box[2]), math.ceil(numbers.shape[1] / box[3]))
    colours = colours_of(tile, numbers[::step, ::step], low, high)
    if numbers.dtype.kind == "f" and step > 1 and not np.isfinite(numbers).all():
        # What is left out may be what matters.
        for test, colour in ((np.isinf, _INFINITE), (np.isnan, NAN)):
            at = np.argwhere(test(numbers)) // step
            colours[at[:, 0], at[:, 1]] = colour
    page.picture(*box, colours)
    page.frame(box[0] - 1, box[1] - 1, box[2] + 2, box[3] + 2)
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        first = np.argwhere(~np.isfinite(numbers))[0]
        x = box[0] + (first[0] + 0.5) * box[2] / numbers.shape[0]
        y = box[1] + box[3] - (first[1] + 0.5) * box[3] / numbers.shape[1]
        page.frame(x - 6, y - 6, 12, 12, WARNING)
    return box


def _cells(page: Page, tile: Tile, v: Values, place: tuple[int, int, int, int]) -> None:
    """A sparse field: its active cells, and the outlines of the blocks that they are in."""
    assert v.cells is not None
    numbers = length(v.numbers, 1)
    low, high = tile.range_of(numbers)
    box = _fit(_scale(page, tile, place, low, high), v.shape)
    size = (min(v.shape[0], box[2]), min(v.shape[1], box[3]))
    colours = np.empty((*size, 3), np.uint8)
    colours[:] = _NOTHING
    if len(v.cells):
        at = (v.cells * size // v.shape).astype(int)
        order = np.argsort(~np.isfinite(numbers), kind="stable") if numbers.dtype.kind == "f" else slice(None)
        colours[at[order, 0], at[order, 1]] = colours_of(tile, numbers[None, order], low, high)[0]
    page.picture(*box, colours)
    page.frame(box[0] - 1, box[1] - 1, box[2] + 2, box[3] + 2)
    if len(v.block) == 2 and max(v.block) > 1 and len(v.cells):
        blocks = np.unique(v.cells // v.block, axis=0)[:_MOST_BLOCKS]
        scale = np.array([box[2] / v.shape[0], box[3] / v.shape[1]])
        low_corner = blocks * v.block * scale
        high_corner = np.minimum((blocks + 1) * v.block, v.shape) * scale
        corners = []
        for x, y in ((0, 0), (1, 0), (1, 1), (0, 1)):
            px = np.where(x, high_corner[:, 0], low_corner[:, 0]) + box[0]
            py = box[1] + box[3] - np.where(y, high_corner[:, 1], low_corner[:, 1])
            corners.append(np.stack([px, py], 1))
        for k in range(4):
            page.lines(corners[k], corners[(k + 1) % 4], GOOD, 0.6)


def _slices(page: Page, tile: Tile, v: Values, place: tuple[int, int, int, int]) -> None:
    k = min(int(tile.slice * v.shape[2]), v.shape[2] - 1)
    _grid(page, tile, length(v.numbers, 3)[:, :, k], place)
    page.text(place[0] + 4, place[1] + place[3] - 14, f"[:, :, {k}]", INK, 12)


def _colours(page: Page, tile: Tile, v: Values, place: tuple[int, int, int, int]) -> None:
    if v.cells is not None:
        _cells(page, tile, v, place)
        return
    numbers = v.numbers[..., :3]
    scale = 1 if numbers.dtype == np.uint8 else 255
    page.picture(*_fit(place, v.shape), np.clip(numbers * scale, 0, 255).astype(np.uint8))


def _arrows(page: Page, tile: Tile, v: Values, place: tuple[int, int, int, int]) -> None:
    if v.cells is not None:
        _cells(page, tile, v, place)
        return
    box = _grid(page, tile, length(v.numbers, 2), place)
    n, m = v.shape
    step = max(math.ceil(n * 14 / box[2]), math.ceil(m * 14 / box[3]), 1)
    x, y = np.meshgrid(np.arange(step // 2, n, step), np.arange(step // 2, m, step), indexing="ij")
    ways = np.nan_to_num(v.numbers[x, y][..., :2].astype(np.float64), posinf=0, neginf=0).reshape(-1, 2)
    longest = float(np.sqrt((ways**2).sum(-1)).max(initial=0))
    if longest > 0:
        at = np.stack([box[0] + (x + 0.5) * box[2] / n, box[1] + box[3] - (y + 0.5) * box[3] / m], -1).reshape(-1, 2)
        way = ways * (1, -1) * (13 / longest)
        tip = at + way
        side = np.stack([-way[:, 1], way[:, 0]], 1)
        page.lines(at, tip)
        for s in (0.2, -0.2):
            page.lines(tip, tip - 0.35 * way + s * side)


def _points(page: Page, tile: Tile, v: Values, place: tuple[int, int, int, int]) -> None:
    # Where cells lie along one axis, the points are what they hold.
    in_cells = v.cells is not None and len(v.shape) > 1
    points = (v.cells if in_cells and v.cells is not None else v.numbers).astype(np.float64)
    points = points[:: max(len(points) // _MOST_POINTS, 1)]
    points = points[np.isfinite(points).all(1)]
    if not len(points):
        return
    low, high = points.min(0), points.max(0)
    middle, extent = (low + high) / 2, float((high - low).max()) or 1.0
    left, top, width, height = place
    height -= 14
    if points.shape[1] == 3:
        shown, box = _seen(tile, (points - middle) / extent), _box(tile, (high - low) / extent)
        scale = 0.62 * min(width, height) * tile.zoom
    else:
        shown, box = (points - middle) / extent, None
        scale = 0.95 * min(width, height) * tile.zoom
    centre = np.array([left + width / 2, top + height / 2])

    def put(p: np.ndarray) -> np.ndarray:
        return centre + p * (scale, -scale)

    at = put(shown)
    inside = ((at >= (left, top)) & (at < (left + width, top + height))).all(1)
    page.discs(at[inside], 1.0 if len(points) > 2000 else 2.0, GOOD)
    if box is not None:
        page.lines(put(box[0]), put(box[1]), LINE)
    page.text(left, top + height + 2, " ".join(f"{a:.3g}..{b:.3g}" for a, b in zip(low, high)), DIM, 11)


def _seen(tile: Tile, points: np.ndarray) -> np.ndarray:
    """Where points in space are in the plane, looked at from the tile's side."""
    (c, s), (d, t) = ((math.cos(a), math.sin(a)) for a in (tile.turn, tile.tilt))
    x, y, z = points[:, 0], points[:, 1], points[:, 2]
    across, away = c * x + s * z, c * z - s * x
    return np.stack([across, d * y - t * away], 1)


def _box(tile: Tile, extent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * extent
    seen = _seen(tile, corners)
    ends = [(a, b) for a in range(8) for b in range(a + 1, 8) if bin(a ^ b).count("1") == 1]
    return seen[[a for a, _ in ends]], seen[[b for _, b in ends]]


def _curve(page: Page, tile: Tile, numbers: np.ndarray, place: tuple[int, int, int, int]) -> None:
    numbers = numbers.astype(np.float64)
    low, high = tile.range_of(numbers)
    left, top, width, height = place
    y = top + height - (np.clip(numbers, low, high) - low) / (high - low if high > low else 1) * (height - 1)
    x = left + np.arange(len(numbers)) * (width - 1) / max(len(numbers) - 1, 1)
    at = np.stack([x, y], 1)[:: max(len(numbers) // (4 * width), 1)]
    finite = np.asarray(np.isfinite(at).all(1))
    both = finite[1:] & finite[:-1]
    page.lines(at[:-1][both], at[1:][both], GOOD)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        foot = np.stack([x[wrong], np.full(len(wrong), top + height)], 1)
        page.lines(foot, foot - (0, height), WARNING)
    for at_y, value in ((top, high), (top + height - 12, low)):
        page.text(left + 2, at_y, f"{value:.4g}", DIM, 11)


def _plot(page: Page, tile: Tile, v: Values, place: tuple[int, int, int, int]) -> None:
    if v.cells is None:
        _curve(page, tile, v.numbers, place)
        return
    whole = np.full(v.shape[0], 0.0)
    whole[v.cells[:, 0]] = v.numbers
    _curve(page, tile, whole, place)


def _number(page: Page, tile: Tile, v: Values, place: tuple[int, int, int, int]) -> None:
    left, top, width, height = place
    page.text(left, top, f"{v.numbers[()]:.7g}", INK, 22)
    if len(tile.history) > 1:
        _curve(page, tile, np.array(tile.history), (left, top + 28, width, max(height - 30, 8)))


def _text(page: Page, tile: Tile, v: Values, place: tuple[int, int, int, int]) -> None:
    if v.shape and v.numbers.size:
        low, high = tile.range_of(v.numbers)
        page.text(place[0], place[1], f"{low:.6g} .. {high:.6g}")
        return
    for k, line in enumerate(str(v.numbers).splitlines()[: max(place[3] // 16, 1)]):
        page.text(place[0], place[1] + 16 * k, line)


_DRAW: dict[str, Any] = {
    "image": _image, "slices": _slices, "colours": _colours, "arrows": _arrows, "points": _points, "plot": _plot,
    "number": _number, "text": _text,
}  # fmt: skip
