"""Images as bytes, and as files."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from aerogel import _colormaps, _native
from aerogel.tools._files import write_whole


def to_pixels(img: Any, wanted_by: str = "an image") -> np.ndarray:
    """A field, array or NumPy array as bytes of shape (width, height, channels).

    Floats go from 0 to 1, unsigned integers over all their range; NaN is 0.

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


def pillow(what: str, path: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            f"{what} {path} needs Pillow (`pip install pillow`); PNG needs nothing, nor does writing a GIF"
        ) from None
    return Image


def _format(path: str) -> str:
    """Pillow's name of the format that a suffix stands for."""
    suffix = os.path.splitext(path)[1].lower()
    known = pillow("writing", path).registered_extensions()
    if suffix not in known:
        raise ValueError(f"{path} has the suffix {suffix!r}, which is of no image format that Pillow knows")
    return known[suffix]


def check_path(path: str) -> None:
    """Whether `imwrite` could write a file of this name.

    Raises:
        ImportError: It needs Pillow.
        ValueError: The suffix is of no format that is known.
    """
    if not path.lower().endswith((".png", ".gif")):
        _format(path)


def imwrite(img: Any, filename: str, cmap: str | None = None, vmin: Any = None, vmax: Any = None) -> None:
    """Writes an image as PNG or GIF, or with Pillow installed in the format of the suffix.

    Args:
        img: A field or array of shape (width, height) or (width, height, channels), or of vectors: 1 channel is grey,
            2 are red and green, 3 colours, 4 colours and opacity. Floats go from 0 to 1, unsigned integers over all
            their range.
        filename: The file.
        cmap: The colours of numbers along two axes: "viridis", "magma", "plasma", "inferno", "cividis", "turbo",
            "coolwarm", "RdBu", "Spectral", "twilight", "hsv", "jet", "hot", "bwr", "seismic", "gray", with ``_r`` from
            the last colour to the first, or another of matplotlib's if that is installed. NaN is magenta.
        vmin, vmax: The numbers of the first and the last colour of ``cmap``; the smallest and the largest number that
            is finite if left out.

    Raises:
        TypeError: Signed integers without ``cmap``, whose range is not an image's.
        ValueError: The shape is not an image's, or the suffix is of no format that is known.
        OSError: The file cannot be written; then there is none.
    """
    img = _colormaps.maybe(img, cmap, vmin, vmax, "imwrite")
    pixels = to_pixels(_wide_as_taichi(img), "imwrite")
    path = str(filename)
    rows = np.ascontiguousarray(pixels[:, ::-1].swapaxes(0, 1))
    if rows.shape[2] == 2:
        rows = np.concatenate([rows, np.zeros_like(rows[..., :1])], axis=2)
    if path.lower().endswith(".png"):
        write_whole(path, _native.encode_png(rows))
        return
    if path.lower().endswith(".gif"):
        from aerogel.tools import gif

        write_whole(path, gif.encoded([pixels], 24))
        return
    image = pillow("writing", path).fromarray(rows[..., 0] if rows.shape[2] == 1 else rows)
    if image.mode == "RGBA" and path.lower().endswith((".jpg", ".jpeg", ".bmp")):
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
