"""What `ti.GUI` draws as arrays: positions, colours, sizes, pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from aerogel import _colormaps


def rgb_to_hex(c: Any) -> Any:
    """The colour 0xRRGGBB for three components from 0 to 1."""
    r, g, b = (np.clip((np.asarray(x) * 255).astype(np.int64), 0, 255) for x in c)
    out = (r << 16) + (g << 8) + b
    return int(out) if np.ndim(out) == 0 else out


def hex_to_rgb(color: int) -> tuple[float, float, float]:
    """Three components from 0 to 1 for the colour 0xRRGGBB."""
    return tuple(((color >> s) & 255) / 255 for s in (16, 8, 0))  # type: ignore[return-value]


def scalars(field: Any) -> np.ndarray:
    """Numbers of shape (n, m)."""
    a = array(field).astype(np.float64)
    if a.ndim != 2 or not a.size:
        raise ValueError(f"contour draws fields with two axes; the shape is {a.shape}")
    return a


def contour_colors(field: Any, colors: str = "plasma", normalize: bool = False) -> np.ndarray:
    """Colours for numbers from 0 to 1, or with ``normalize`` from the smallest to the largest: f32 of shape (n, m, 3).

    NaN is black; infinities have the colours of the ends.

    Args:
        field: Numbers of shape (n, m).
        colors: The name of a map, such as "viridis"; where matplotlib is installed, any of its maps.
        normalize: Whether the colours go from the smallest finite number to the largest.

    Raises:
        ValueError: There is no such map.
    """
    t = scalars(field)
    is_nan = np.isnan(t)
    finite = t[np.isfinite(t)]
    if normalize and finite.size:
        # In halves, so that no difference overflows.
        low, width = finite.min() / 2, finite.max() / 2 - finite.min() / 2
        t = (t / 2 - low) / (width if width > 0 else 1)
    t = np.clip(np.where(is_nan, 0, t), 0, 1)
    out = _colormaps.table(colors)[np.minimum(t * 256, 255).astype(np.uint8)] / np.float32(255)
    out[is_nan] = 0
    return out


def array(x: Any) -> np.ndarray:
    """A field, array, NumPy array or list as a NumPy array."""
    return x.to_numpy() if hasattr(x, "to_numpy") else np.asarray(x)


def points(pos: Any) -> np.ndarray:
    """Positions, an array of shape (n, 2)."""
    values = array(pos)
    if values.ndim != 2 or values.shape[1] != 2 or values.dtype.kind not in "fiu":
        raise ValueError(f"positions have the shape (n, 2), not {values.shape}")
    return values


def point(pos: Any) -> np.ndarray:
    """One position, as an array of one."""
    values = array(pos)
    if values.shape != (2,) or values.dtype.kind not in "fiu":
        raise ValueError(f"a position has two coordinates; this is {pos!r}")
    return values.reshape(1, 2)


def each(value: Any, n: int, dtype: Any) -> np.ndarray:
    """One value, or one for each of ``n`` shapes."""
    values = array(value)
    if values.shape not in ((), (1,), (n,)):
        raise ValueError(f"a number, or one for each of {n} shapes, is needed, not numbers of shape {values.shape}")
    return np.ascontiguousarray(values.reshape(-1).astype(dtype))


def colors(value: Any, n: int) -> np.ndarray:
    """Colours 0xRRGGBB: one, or one for each of ``n`` shapes."""
    values = array(value)
    is_whole = values.dtype.kind in "iu" or values.dtype.kind == "f" and bool((values == np.floor(values)).all())
    if is_whole and values.shape in ((), (1,), (n,)) and not (isinstance(value, (tuple, list)) and n == 1 < len(value)):
        return np.ascontiguousarray(values.reshape(-1).astype(np.int64).astype(np.uint32))
    remedy = ""
    if values.shape == (3,) and values.dtype.kind in "fiu":
        parts = values / 255 if values.max() > 1 else values
        remedy = f"; this one is {rgb_to_hex(parts):#08x}, as ti.rgb_to_hex returns it for three numbers from 0 to 1"
    elif isinstance(value, str):
        remedy = "; red is 0xff0000, white 0xffffff"
    what = f"an array of shape {values.shape}" if isinstance(value, np.ndarray) else repr(value)
    raise ValueError(f"a colour is a number 0xRRGGBB, or one for each of {n} shapes, not {what}{remedy}")


def grid(shape: Any, bound: float) -> np.ndarray:
    """The positions of a grid's elements."""
    x, y = np.meshgrid(*(np.linspace(bound / n, 1 - bound / n, n) for n in shape), indexing="ij")
    return np.stack([x, y], -1).reshape(-1, 2)


def stretched(a: np.ndarray, width: int, height: int) -> np.ndarray:
    """An array of another size: the corners stay the corners, between elements is interpolated."""
    x, y = np.linspace(0, a.shape[0] - 1, width), np.linspace(0, a.shape[1] - 1, height)
    i, j = x.astype(int), y.astype(int)
    i1, j1 = np.minimum(i + 1, a.shape[0] - 1), np.minimum(j + 1, a.shape[1] - 1)
    u, v = (x - i)[:, None], (y - j)[None, :]
    low = a[i][:, j] * (1 - v) + a[i][:, j1] * v
    high = a[i1][:, j] * (1 - v) + a[i1][:, j1] * v
    return low * (1 - u) + high * u


def arrow_options(tip_scale: float = 0.2, angle: float = 45) -> tuple[float, float]:
    """How an arrow's head looks."""
    return tip_scale, angle


def picture(canvas: Any, res: tuple[int, int]) -> np.ndarray:
    """The bytes of a canvas, of shape (width, height, 4), the second axis upwards."""
    rows = np.frombuffer(canvas.pixels(), np.uint8).reshape(res[1], res[0], 4)
    return rows.swapaxes(0, 1)[:, ::-1]


def size(res: Any, most: int = 2**31 - 1) -> tuple[int, int]:
    """Width and height of a picture, of one number or two.

    Raises:
        ValueError: They are no numbers of pixels, or more than ``most``.
    """
    sides = (res, res) if np.ndim(res) == 0 else tuple(res)
    if len(sides) != 2 or any(not isinstance(n, (int, np.integer)) or n < 1 for n in sides):
        raise ValueError(f"res must be a number of pixels or two of them, not {res!r}")
    if max(sides) > most:
        raise ValueError(f"res is {res!r}, but a picture has at most {most} pixels along each axis here")
    return int(sides[0]), int(sides[1])


def packed(pixels: np.ndarray) -> np.ndarray:
    """Pixels of shape (width, height, channels) as words ``0xRRGGBB`` on one axis, the top row first."""
    rgb = np.zeros((*pixels.shape[:2], 3), np.uint32)
    channels = min(pixels.shape[2], 3)
    rgb[..., : channels if channels > 1 else 3] = pixels[..., :channels]
    words = rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2]
    return words[:, ::-1].T.ravel()


def unpacked(words: np.ndarray, res: tuple[int, int]) -> np.ndarray:
    """Words as :func:`packed` makes them, as pixels of shape (width, height, 3)."""
    width, height = res
    columns = words.reshape(height, width).T[:, ::-1]
    return np.stack([columns >> shift & 0xFF for shift in (16, 8, 0)], axis=2).astype(np.uint8)
