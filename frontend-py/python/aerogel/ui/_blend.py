"""What the painter of pictures does not know: opacity, and colours that change over a triangle.

Shapes are taken apart into the pixels that they cover, as a window's are: triangles and lines where the middle of a
pixel is inside, discs with half a pixel of soft edge. Pixels that several shapes cover are blended in their order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

#: So many pixels of shapes are looked at together at most, but for one shape.
_TOGETHER = 1 << 20
#: Corners are rounded to this part of a pixel, so that what is beside an edge is decided exactly; and no further away.
_PARTS, _FAR = 256, 1 << 28


def discs(picture: np.ndarray, at: np.ndarray, radii: np.ndarray, colors: np.ndarray) -> None:
    """Blends discs into a picture.

    Args:
        picture: Numbers from 0 to 255 of shape (height, width, 3), row by row from the top.
        at: The middles in pixels, from the upper left.
        radii: In pixels.
        colors: Red, green, blue and opacity from 0 to 1.
    """
    fine = np.isfinite(at).all(1) & np.isfinite(radii) & (radii > 0)
    at, radii, colors = at[fine].astype(np.float64), radii[fine].astype(np.float64), colors[fine]
    reach = radii[:, None] + 0.5
    for k, x, y in _pixels(picture, at - reach, at + reach):
        away = np.hypot(x + 0.5 - at[k, 0], y + 0.5 - at[k, 1])
        cover = np.clip(radii[k] + 0.5 - away, 0, 1)
        inside = cover > 0
        k = k[inside]
        _blend(picture, x[inside], y[inside], colors[k, :3], colors[k, 3] * cover[inside])


def triangles(picture: np.ndarray, corners: np.ndarray, colors: np.ndarray) -> None:
    """Blends triangles into a picture.

    Args:
        picture: As for `discs`.
        corners: In pixels, of shape (n, 3, 2).
        colors: Of each corner, of shape (n, 3, 4).
    """
    fine = np.isfinite(corners).all((1, 2))
    corners, colors = corners[fine].astype(np.float64), colors[fine]
    at = np.clip(np.rint(corners * _PARTS), -_FAR, _FAR).astype(np.int64)
    turned = _beside(at[:, 0], at[:, 1], at[:, 2]) < 0
    at[turned], colors[turned] = at[turned][:, ::-1], colors[turned][:, ::-1]
    areas = _beside(at[:, 0], at[:, 1], at[:, 2])
    at, colors, areas = at[areas > 0], colors[areas > 0], areas[areas > 0]
    for k, x, y in _pixels(picture, at.min(1) / _PARTS, at.max(1) / _PARTS):
        middle = np.stack([x, y], 1) * _PARTS + _PARTS // 2
        inside = np.ones(len(k), bool)
        parts = np.empty((len(k), 3))
        for corner in range(3):
            a, b = at[k, (corner + 1) % 3], at[k, (corner + 2) % 3]
            beside, way = _beside(a, b, middle), b - a
            # What lies on an edge belongs to one of the triangles beside it.
            owns = (way[:, 1] < 0) | ((way[:, 1] == 0) & (way[:, 0] > 0))
            inside &= (beside > 0) | ((beside == 0) & owns)
            parts[:, corner] = beside / areas[k]
        mixed = np.einsum("nc,ncr->nr", parts[inside], colors[k[inside]])
        _blend(picture, x[inside], y[inside], mixed[:, :3], mixed[:, 3])


def lines(picture: np.ndarray, ends: np.ndarray, widths: np.ndarray, colors: np.ndarray) -> None:
    """Blends lines into a picture.

    Args:
        picture: As for `discs`.
        ends: In pixels, of shape (n, 2, 2).
        widths: In pixels.
        colors: Of each end, of shape (n, 2, 4).
    """
    way = (ends[:, 1] - ends[:, 0]).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        side = np.stack([-way[:, 1], way[:, 0]], 1) * (widths / np.maximum(np.hypot(*way.T), 1e-20) / 2)[:, None]
    a, b = ends[:, 0], ends[:, 1]
    corners = np.stack([a - side, a + side, b + side, a - side, b + side, b - side], 1).reshape(-1, 3, 2)
    triangles(picture, corners, colors[:, [0, 0, 1, 0, 1, 1]].reshape(-1, 3, 4))


def _beside(a: np.ndarray, b: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Twice the area of the triangles that points make with edges."""
    return (b[..., 0] - a[..., 0]) * (p[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (p[..., 0] - a[..., 0])


def _pixels(
    picture: np.ndarray, low: np.ndarray, high: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The pixels of rectangles: the number of the rectangle, x and y, in their order and some at a time."""
    extents = np.array(picture.shape[1::-1])
    first = np.clip(np.floor(low), 0, extents).astype(np.int64)
    sizes = np.maximum(np.clip(np.ceil(high), 0, extents).astype(np.int64) - first, 0)
    counts = sizes.prod(1)
    at = 0
    while at < len(counts):
        ends = np.cumsum(counts[at : at + _TOGETHER])
        n = max(int(np.searchsorted(ends, _TOGETHER, side="right")), 1)
        k = np.repeat(np.arange(at, at + n), counts[at : at + n])
        number = np.arange(len(k)) - np.repeat(ends[:n] - counts[at : at + n], counts[at : at + n])
        width = np.maximum(sizes[k, 0], 1)
        yield k, first[k, 0] + number % width, first[k, 1] + number // width
        at += n


def _blend(picture: np.ndarray, x: np.ndarray, y: np.ndarray, colors: np.ndarray, opacity: np.ndarray) -> None:
    """Blends colours into pixels, one after the other where a pixel is named more than once."""
    place = y * picture.shape[1] + x
    order = np.argsort(place, kind="stable")
    run = place[order]
    begins = np.flatnonzero(np.r_[True, run[1:] != run[:-1]]) if len(run) else np.empty(0, np.int64)
    turn = np.arange(len(run)) - np.repeat(begins, np.diff(np.r_[begins, len(run)]))
    order = order[np.argsort(turn, kind="stable")]
    at = 0
    for n in np.bincount(turn):
        some = order[at : at + n]
        at += n
        rows, columns, part = y[some], x[some], np.clip(opacity[some], 0, 1)[:, None]
        picture[rows, columns] += (np.clip(colors[some], 0, 1) * 255 - picture[rows, columns]) * part


def stretched(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """An image of shape (n, m, channels) with numbers from 0 to 1 for another size, linear between them."""
    out = values.astype(np.float32)
    for axis in range(2):
        n = out.shape[axis]
        if n == size[axis]:
            continue
        at = (np.arange(size[axis]) + 0.5) * n / size[axis] - 0.5
        low = np.floor(at).astype(np.int64)
        part = (at - low).astype(np.float32).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        first, second = (np.take(out, np.clip(k, 0, n - 1), axis) for k in (low, low + 1))
        out = first + (second - first) * part
    return out
