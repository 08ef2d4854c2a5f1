"""Images as NumPy arrays whose first axis points right and whose second points up, as in ``ti.GUI``."""

from __future__ import annotations

from typing import Any

import numpy as np

from aerogel import _colormaps, _native
from aerogel.tools._pixels import check_path, imwrite, pillow, to_pixels

__all__ = ["check_path", "imread", "imresize", "imshow", "imwrite", "to_pixels"]


def _read_by_pillow(path: str) -> np.ndarray:
    """The bytes of any file that Pillow reads, of shape (height, width, channels)."""
    with pillow("reading", path).open(path) as image:
        if image.mode in ("I", "F") or image.mode.startswith("I;16"):
            values = np.asarray(image)
            if image.mode == "F" or values.min() < 0 or values.max() > 0xFFFF:
                raise ValueError(f"{path} has values of mode {image.mode}, whose range is not an image's; use Pillow")
            return (values >> 8).astype(np.uint8)[..., None]
        if image.mode == "1":
            mode = "L"
        elif image.mode in ("L", "LA", "RGB", "RGBA"):
            mode = image.mode
        else:
            mode = "RGBA" if "transparency" in image.info or image.mode in ("PA", "RGBa") else "RGB"
        rows = np.asarray(image.convert(mode))
        return rows[..., None] if rows.ndim == 2 else rows


def _with_channels(rows: np.ndarray, channels: int) -> np.ndarray:
    """The image with so many channels: grey, grey and opacity, colour, colour and opacity."""
    color, opacity = (rows, None) if rows.shape[2] in (1, 3) else (rows[..., :-1], rows[..., -1:])
    if channels >= 3 and color.shape[2] == 1:
        color = np.repeat(color, 3, axis=2)
    elif channels < 3 and color.shape[2] == 3:
        # Brightness as ITU-R 601 weighs it.
        weighed = color.astype(np.uint32) @ np.array([299, 587, 114], np.uint32)
        color = ((weighed + 500) // 1000).astype(np.uint8)[..., None]
    if channels % 2 == 1:
        return color
    if opacity is None:
        opacity = np.full((*rows.shape[:2], 1), 255, np.uint8)
    return np.concatenate([color, opacity], axis=2)


def imread(filename: str, channels: int = 0) -> np.ndarray:
    """Reads an image: PNG, or with Pillow installed any that Pillow reads.

    Palettes become colours; 16 bits become 8.

    Args:
        filename: The file.
        channels: How many channels are wanted, 1 to 4; 0 for those of the file.

    Returns:
        Bytes of shape (width, height, channels).

    Raises:
        OSError: The file does not exist, or is not an image.
        ValueError: ``channels`` is not 0 to 4, or the file's values have no range that is an image's.
    """
    path = str(filename)
    if channels not in range(5):
        raise ValueError(f"channels must be 0 to 4, not {channels!r}")
    if path.lower().endswith(".png"):
        width, height, found, data = _native.read_png(path)
        rows = np.frombuffer(data, np.uint8).reshape(height, width, found)
    else:
        rows = _read_by_pillow(path)
    if channels and channels != rows.shape[2]:
        rows = _with_channels(rows, channels)
    return np.ascontiguousarray(rows.swapaxes(0, 1)[:, ::-1])


def imresize(img: Any, w: int, h: int | None = None) -> np.ndarray:
    """An image of another size, each pixel the nearest of the given image.

    Args:
        img: An image.
        w: The new width.
        h: The new height; as the width if left out.

    Returns:
        A NumPy array of the image's type; the image itself if it has the size.

    Raises:
        ValueError: A size is not a positive integer, or the image has less than two axes.
    """
    array = img.to_numpy() if hasattr(img, "to_numpy") else np.asarray(img)
    height = w if h is None else h
    if array.ndim < 2 or not array.size:
        raise ValueError(f"an image has two axes or more; this shape is {array.shape}")
    if not all(isinstance(n, (int, np.integer)) and n > 0 for n in (w, height)):
        raise ValueError(f"the new size must be positive integers, not {w!r} by {height!r}")
    if array.shape[:2] == (w, height):
        return array
    x = np.arange(w) * array.shape[0] // w
    y = np.arange(height) * array.shape[1] // height
    return array[x[:, None], y[None, :]]


def imshow(img: Any, title: str = "imshow", cmap: str | None = None, vmin: Any = None, vmax: Any = None) -> None:
    """Shows an image in a :class:`aerogel.GUI`; in a notebook, below the cell. ``cmap`` is as in ``imwrite``."""
    from aerogel.gui import GUI

    pixels = to_pixels(_colormaps.maybe(img, cmap, vmin, vmax, "imshow"))
    gui = GUI(title, pixels.shape[:2])
    gui.set_image(pixels)
    gui.show()
