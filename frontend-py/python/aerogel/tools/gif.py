"""Animated GIFs. Their pixels are numbers of at most 256 colours, which each frame chooses for itself.

Pillow writes GIFs as well, but is no dependency of Aerogel. The compression is by the crate weezl.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from aerogel import _colormaps, _native
from aerogel.tools._files import write_whole
from aerogel.tools._pixels import to_pixels


def write_gif(
    filename: str | os.PathLike[str],
    frames: Iterable[Any],
    framerate: float = 24,
    *,
    cmap: str | None = None,
    vmin: Any = None,
    vmax: Any = None,
) -> None:
    """Writes images as an animated GIF that repeats for ever.

    >>> write_gif("waves.gif", [frame * 0.1 for frame in images], framerate=20)  # doctest: +SKIP

    Args:
        filename: The file.
        frames: Images of one size, as ``imwrite`` takes them; opacity does not count. Colours beyond 256 of a frame
            become the nearest of 256 that are chosen for it.
        framerate: Frames a second, at most 50: the times of GIFs are hundredths of a second, two at least.
        cmap: The colours of numbers, as in ``imwrite``; so are ``vmin`` and ``vmax``, which should be given, since
            otherwise each frame has a range of its own.
        vmin: The number of the first colour.
        vmax: The number of the last colour.

    Raises:
        ValueError: There are no frames, they have different sizes, or the rate is not from 1/600 to 50.
        TypeError: As ``imwrite``.
        OSError: The file cannot be written; then there is none.
    """
    images = (_colormaps.maybe(frame, cmap, vmin, vmax, "write_gif") for frame in frames)
    write_whole(filename, encoded((to_pixels(image, "write_gif") for image in images), framerate))


def encoded(frames: Iterable[np.ndarray], framerate: float) -> bytes:
    """Bytes of shape (width, height, channels), the second axis upwards, as a GIF."""
    # The time of a frame has 16 bits.
    if not 1 / 600 <= framerate <= 50:
        raise ValueError(f"a GIF has from 1/600 to 50 frames a second, not {framerate!r}")
    parts: list[bytes] = []
    size: tuple[int, ...] = ()
    for k, pixels in enumerate(frames):
        if size and pixels.shape[:2] != size:
            raise ValueError(f"the frames of a GIF have one size, {size}; frame {k} is {pixels.shape[:2]}")
        size = pixels.shape[:2]
        if max(size) > 0xFFFF:
            raise ValueError(f"a GIF has at most 65535 pixels each way, not {size}")
        # The sum of the times does not drift.
        delay = round(100 * (k + 1) / framerate) - round(100 * k / framerate)
        parts += _frame(_rgb(pixels), delay)
    if not size:
        raise ValueError("there are no frames to make a GIF of")
    head = b"GIF89a" + struct.pack("<HHBBB", *size, 0x70, 0, 0)
    repeats = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
    return b"".join([head, repeats, *parts, b"\x3b"])


def _rgb(pixels: np.ndarray) -> np.ndarray:
    """The colours, row by row from the top."""
    rows = np.ascontiguousarray(pixels[:, ::-1].swapaxes(0, 1))
    if rows.shape[2] == 1:
        return np.repeat(rows, 3, axis=2)
    if rows.shape[2] == 2:
        return np.concatenate([rows, np.zeros_like(rows[..., :1])], axis=2)
    return rows[..., :3]


def _frame(rows: np.ndarray, delay: int) -> Iterator[bytes]:
    colors, numbers = _palette(rows.reshape(-1, 3))
    yield b"\x21\xf9\x04\x04" + struct.pack("<H", delay) + b"\x00\x00"
    # A table of 256 colours of its own.
    yield b"\x2c" + struct.pack("<HHHHB", 0, 0, rows.shape[1], rows.shape[0], 0x87)
    yield colors.tobytes()
    yield b"\x08"
    data = _native.lzw(numbers.tobytes())
    for at in range(0, len(data), 255):
        block = data[at : at + 255]
        yield bytes([len(block)]) + block
    yield b"\x00"


def _palette(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """256 colours, and the number of its colour for each pixel."""
    words = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    own, numbers = np.unique(words, return_inverse=True)
    out = np.zeros((256, 3), np.uint8)
    if len(own) <= 256:
        out[: len(own)] = own[:, None] >> np.array([16, 8, 0], np.uint32) & 255
        return out, numbers.astype(np.uint8)
    # Colours that agree in five bits of each component are one.
    coarse = (pixels >> 3).astype(np.int64) @ np.array([1 << 10, 1 << 5, 1])
    bins, of_bin, counts = np.unique(coarse, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(of_bin, pixels[:, c]) for c in range(3)], -1) / counts[:, None]
    box_of = _boxes(means, counts)
    weights = np.bincount(box_of, counts)
    for c in range(3):
        sums = np.bincount(box_of, means[:, c] * counts)
        out[: len(weights), c] = (sums / weights + 0.5).astype(np.uint8)
    return out, box_of[of_bin].astype(np.uint8)


def _boxes(colors: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Splits colours into at most 256 boxes, always the box with the largest squared error: the box of each colour."""

    def errors(of: np.ndarray) -> np.ndarray:
        """The squared error of a box by component."""
        mean = np.average(colors[of], axis=0, weights=counts[of])
        return ((colors[of] - mean) ** 2 * counts[of, None]).sum(0)

    boxes = [np.arange(len(colors))]
    found = [errors(boxes[0])]
    while len(boxes) < 256:
        worst = max(range(len(boxes)), key=lambda k: found[k].max())
        box, component = boxes[worst], int(found[worst].argmax())
        values = colors[box, component]
        below = values <= np.average(values, weights=counts[box])
        if below.all() or not below.any():
            break
        boxes[worst], found[worst] = box[below], errors(box[below])
        boxes.append(box[~below])
        found.append(errors(box[~below]))
    out = np.empty(len(colors), np.int64)
    for k, box in enumerate(boxes):
        out[box] = k
    return out
