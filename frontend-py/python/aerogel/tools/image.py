"""Images as NumPy arrays whose first axis goes right and whose second goes up, as in ``ti.GUI``."""

from __future__ import annotations

from typing import Any

import numpy as np

from aerogel import _native


def to_pixels(img: Any) -> np.ndarray:
    """A field, array or NumPy array as bytes of shape (width, height, channels); floats go from 0 to 1.

    >>> to_pixels(np.array([[0.0, 1.0]]))[..., 0]
    array([[  0, 255]], dtype=uint8)
    """
    array = img.to_numpy() if hasattr(img, "to_numpy") else np.asarray(img)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] > 4):
        raise ValueError(f"an image has 2 axes, or 3 with 1 to 4 channels last; this shape is {array.shape}")
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * 255
    elif array.dtype.kind == "f":
        array = (np.clip(np.nan_to_num(array), 0, 1) * 255 + 0.5).astype(np.uint8)
    elif array.dtype != np.uint8:
        bits = array.dtype.itemsize * 8 - (array.dtype.kind == "i")
        array = (array.astype(np.float64) * (255.0 / (2.0**bits - 1)) + 0.5).clip(0, 255).astype(np.uint8)
    return array[..., None] if array.ndim == 2 else array


def imread(filename: str, channels: int = 0) -> np.ndarray:
    """Reads a PNG (or, with Pillow or OpenCV installed, any image) as bytes of shape (width, height, channels).

    Args:
        filename: The file.
        channels: How many channels are wanted; 0 for as many as the file has.
    """
    if str(filename).lower().endswith(".png"):
        width, height, found, data = _native.read_png(str(filename))
        rows = np.frombuffer(data, np.uint8).reshape(height, width, found)
    else:
        try:
            from PIL import Image
        except ImportError:
            raise ImportError(f"reading {filename} needs Pillow (`pip install pillow`); PNG needs nothing") from None
        rows = np.asarray(Image.open(filename).convert("RGB"))
    if channels and channels != rows.shape[2]:
        if channels > rows.shape[2]:
            fill = np.full((*rows.shape[:2], channels - rows.shape[2]), 255, np.uint8)
            rows = np.repeat(rows, channels, axis=2) if rows.shape[2] == 1 else np.concatenate([rows, fill], axis=2)
        else:
            rows = rows[..., :channels]
    return np.ascontiguousarray(rows.swapaxes(0, 1)[:, ::-1])


def imwrite(img: Any, filename: str) -> None:
    """Writes an image as PNG (or, with Pillow installed, as any format)."""
    pixels = to_pixels(img)
    rows = np.ascontiguousarray(pixels[:, ::-1].swapaxes(0, 1))
    if rows.shape[2] == 2:
        rows = np.concatenate([rows, np.zeros_like(rows[..., :1])], axis=2)
    if str(filename).lower().endswith(".png"):
        _native.write_png(str(filename), rows)
        return
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(f"writing {filename} needs Pillow (`pip install pillow`); PNG needs nothing") from None
    Image.fromarray(rows[..., 0] if rows.shape[2] == 1 else rows).save(filename)


def imresize(img: Any, w: int, h: int | None = None) -> np.ndarray:
    """An image of another size, each pixel the nearest of the given image.

    Args:
        img: An image.
        w: The new width.
        h: The new height; as the width if left out.
    """
    array = img.to_numpy() if hasattr(img, "to_numpy") else np.asarray(img)
    height = w if h is None else h
    x = np.arange(w) * array.shape[0] // w
    y = np.arange(height) * array.shape[1] // height
    return array[x[:, None], y[None, :]]


def imshow(img: Any, title: str = "imshow") -> None:
    """Shows an image in a :class:`aerogel.GUI`."""
    from aerogel.gui import GUI

    pixels = to_pixels(img)
    gui = GUI(title, pixels.shape[:2])
    gui.set_image(pixels)
    gui.show()
