"""Images as NumPy arrays whose first axis goes right and whose second goes up, as in ``ti.GUI``."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from aerogel import _native
from aerogel.tools._files import write_whole


def to_pixels(img: Any, wanted_by: str = "an image") -> np.ndarray:
    """A field, array or NumPy array as bytes of shape (width, height, channels).

    Floats go from 0 to 1, unsigned integers over all their range; what is not a number is 0.

    Raises:
        TypeError: Signed integers: nothing says which of them is white.
        ValueError: The shape is not an image's.

    >>> to_pixels(np.array([[0.0, 1.0]]))[..., 0]
    array([[  0, 255]], dtype=uint8)
    """
    array = img.to_numpy() if hasattr(img, "to_numpy") else np.asarray(img)
    # A field of matrices has four axes as an array.
    if array.ndim not in (2, 3) or not array.size or (array.ndim == 3 and array.shape[2] > 4):
        raise ValueError(f"{wanted_by} has 2 axes, or 3 with 1 to 4 channels last; this shape is {array.shape}")
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * 255
    elif array.dtype.kind == "f":
        array = (np.clip(np.nan_to_num(array), 0, 1) * 255 + 0.5).astype(np.uint8)
    elif array.dtype.kind == "u":
        if array.dtype != np.uint8:
            largest = np.iinfo(array.dtype).max
            array = (array.astype(np.float64) * (255.0 / largest) + 0.5).astype(np.uint8)
    else:
        raise TypeError(
            f"{wanted_by} takes floats from 0 to 1 or unsigned integers, not {array.dtype}; convert to u8 for bytes"
        )
    return array[..., None] if array.ndim == 2 else array


def _pillow(what: str, path: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(f"{what} {path} needs Pillow (`pip install pillow`); PNG needs nothing") from None
    return Image


def _format(path: str) -> str:
    """Pillow's name of the format that a suffix stands for."""
    suffix = os.path.splitext(path)[1].lower()
    known = _pillow("writing", path).registered_extensions()
    if suffix not in known:
        raise ValueError(f"{path} has the suffix {suffix!r}, which is of no image format that Pillow knows")
    return known[suffix]


def check_path(path: str) -> None:
    """Whether `imwrite` could write a file of this name.

    Raises:
        ImportError: It needs Pillow.
        ValueError: The suffix is of no format that is known.
    """
    if not path.lower().endswith(".png"):
        _format(path)


def _read_by_pillow(path: str) -> np.ndarray:
    """The bytes of any file that Pillow reads, of shape (height, width, channels)."""
    with _pillow("reading", path).open(path) as image:
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
        channels: How many channels are wanted, 1 to 4; 0 for as many as the file has.

    Returns:
        Bytes of shape (width, height, channels).

    Raises:
        OSError: The file is not there, or is no image.
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


def imwrite(img: Any, filename: str) -> None:
    """Writes an image as PNG, or with Pillow installed as what the suffix says.

    Args:
        img: A field or array of shape (width, height) or (width, height, channels), or of vectors: 1 channel is grey,
            2 are red and green, 3 colours, 4 colours and opacity. Floats go from 0 to 1, unsigned integers over all
            their range.
        filename: The file.

    Raises:
        TypeError: Signed integers, whose range is not an image's.
        ValueError: The shape is not an image's, or the suffix is of no format that is known.
        OSError: The file cannot be written; then there is none.
    """
    pixels = to_pixels(_wide_as_taichi(img), "imwrite")
    path = str(filename)
    rows = np.ascontiguousarray(pixels[:, ::-1].swapaxes(0, 1))
    if rows.shape[2] == 2:
        rows = np.concatenate([rows, np.zeros_like(rows[..., :1])], axis=2)
    if path.lower().endswith(".png"):
        write_whole(path, _native.encode_png(rows))
        return
    image = _pillow("writing", path).fromarray(rows[..., 0] if rows.shape[2] == 1 else rows)
    if image.mode == "RGBA" and path.lower().endswith((".jpg", ".jpeg", ".bmp", ".gif")):
        image = image.convert("RGB")
    # Pillow does not tell when a disk is full.
    whole = io.BytesIO()
    image.save(whole, format=_format(path))
    write_whole(path, whole.getvalue())


def _wide_as_taichi(img: Any) -> Any:
    """An image of u16, u32 or u64 as the bytes that Taichi writes for it, but that white stays white."""
    array = img.to_numpy() if hasattr(img, "to_numpy") else np.asarray(img)
    if array.dtype.kind != "u" or array.dtype == np.uint8:
        return array
    return np.minimum(array // (np.iinfo(array.dtype).max // 256), 255).astype(np.uint8)


def imresize(img: Any, w: int, h: int | None = None) -> np.ndarray:
    """An image of another size, each pixel the nearest of the given image.

    Args:
        img: An image.
        w: The new width.
        h: The new height; as the width if left out.

    Returns:
        A NumPy array of the image's type; the image itself if it has the size.

    Raises:
        ValueError: A size is not a positive whole number, or the image has less than two axes.
    """
    array = img.to_numpy() if hasattr(img, "to_numpy") else np.asarray(img)
    height = w if h is None else h
    if array.ndim < 2 or not array.size:
        raise ValueError(f"an image has two axes or more; this shape is {array.shape}")
    if not all(isinstance(n, (int, np.integer)) and n > 0 for n in (w, height)):
        raise ValueError(f"the new size must be positive whole numbers, not {w!r} by {height!r}")
    if array.shape[:2] == (w, height):
        return array
    x = np.arange(w) * array.shape[0] // w
    y = np.arange(height) * array.shape[1] // height
    return array[x[:, None], y[None, :]]


def imshow(img: Any, title: str = "imshow") -> None:
    """Shows an image in a :class:`aerogel.GUI`; in a notebook, below the cell."""
    from aerogel.gui import GUI

    pixels = to_pixels(img)
    gui = GUI(title, pixels.shape[:2])
    gui.set_image(pixels)
    gui.show()
