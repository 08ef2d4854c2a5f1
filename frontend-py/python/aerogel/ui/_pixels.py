"""Large images as the pixels that windows show: by all cores, straight into memory of the device."""

from __future__ import annotations

from typing import Any

import numpy as np

import aerogel as ti
from aerogel import _native
from aerogel.data.field import MatrixField, ScalarField
from aerogel.data.ndarray import Ndarray

#: Fewer pixels are drawn sooner than a kernel is compiled.
_FEW = 40_000
#: A square of so many pixels is turned at once: in both orders few lines of the cache.
_TILE = 16
_KINDS = {ti.f32: 0, ti.u8: 1, ti.u16: 2, ti.u32: 3}


@ti.func
def _byte(x: ti.template(), kind: ti.template()) -> Any:
    byte = ti.u32(0)
    if ti.static(kind == 0):
        part = ti.min(ti.max(x, ti.f32(0)), ti.f32(1))
        byte = ti.cast(ti.cast(part * ti.f32(255) + ti.f32(0.5), ti.i32), ti.u32)
    elif ti.static(kind == 1):
        byte = ti.cast(x, ti.u32)
    elif ti.static(kind == 2):
        byte = (ti.cast(x, ti.u32) * ti.u32(255) + ti.u32(32767)) // ti.u32(65535)
    else:
        # The quotient by 2**32 - 1 of what is below 2**40, without a division.
        wide = ti.cast(x, ti.u64) * ti.u64(255) + ti.u64(1 << 31)
        byte = ti.cast((wide + ti.bit_shr(wide, ti.u64(32)) + ti.u64(1)) >> ti.u64(32), ti.u32)
    return byte


@ti.func
def _word(
    image: ti.template(), i: ti.i32, j: ti.i32, channels: ti.template(), kind: ti.template(), swapped: ti.template()
) -> Any:
    """A pixel; ``channels`` is 0 for numbers, n for vectors of n, -n for n numbers along a third axis. Red is the first
    byte, or blue where both are swapped."""
    word = ti.u32(0xFF000000)
    for k in ti.static(range(3)):
        at = ti.static(16 - 8 * k if swapped else 8 * k)
        if ti.static(channels == 0):
            word |= _byte(image[i, j], kind) << at
        elif ti.static(abs(channels) == 2 and k == 2):
            pass
        elif ti.static(channels > 0):
            word |= _byte(image[i, j][0 if ti.static(channels == 1) else k], kind) << at
        else:
            word |= _byte(image[i, j, 0 if ti.static(channels == -1) else k], kind) << at
    return word


@ti.kernel
def _of_field(
    image: ti.template(),
    words: ti.types.ndarray(ti.u32, 2),
    channels: ti.template(),
    kind: ti.template(),
    swapped: ti.template(),
):
    width, height = image.shape[0], image.shape[1]
    for a, b in ti.ndrange((width + _TILE - 1) // _TILE, (height + _TILE - 1) // _TILE):
        for j in range(b * _TILE, ti.min(b * _TILE + _TILE, height)):
            for i in range(a * _TILE, ti.min(a * _TILE + _TILE, width)):
                words[height - 1 - j, i] = _word(image, i, j, channels, kind, swapped)


@ti.kernel
def _of_array(
    image: ti.types.ndarray(),
    words: ti.types.ndarray(ti.u32, 2),
    channels: ti.template(),
    kind: ti.template(),
    swapped: ti.template(),
):
    width, height = image.shape[0], image.shape[1]
    for a, b in ti.ndrange((width + _TILE - 1) // _TILE, (height + _TILE - 1) // _TILE):
        for j in range(b * _TILE, ti.min(b * _TILE + _TILE, height)):
            for i in range(a * _TILE, ti.min(a * _TILE + _TILE, width)):
                words[height - 1 - j, i] = _word(image, i, j, channels, kind, swapped)


def _form(image: Any) -> tuple[int, int] | None:
    """The channels and the kind of number of what a kernel reads; nothing of what it does not read."""
    shape = tuple(image.shape)
    if isinstance(image, np.ndarray):
        is_plain = image.dtype.isnative and image.flags.c_contiguous
        kind = {"f4": 0, "u1": 1, "u2": 2, "u4": 3}.get(image.dtype.str[1:]) if is_plain else None
        channels = -shape[2] if len(shape) == 3 else 0
    else:
        kind = None if any(image._offset) else _KINDS.get(image.dtype)
        if isinstance(image, ScalarField):
            channels = -shape[2] if len(shape) == 3 else 0
        else:
            channels = image.n if image.ndim == 1 else 5
    if kind is None or abs(channels) > 4 or len(shape) != (3 if channels < 0 else 2):
        return None
    return channels, kind


def may_run() -> bool:
    """Whether a kernel of windows may run now."""
    if ti.cfg.arch == ti.interp or _native.recorder() is not None:
        return False
    try:
        _native.check_initialized()
    except ti.AerogelRuntimeError:
        return False
    return True


def _is_drawn(image: Any) -> tuple[int, int] | None:
    """The form of an image that a kernel draws; nothing of small ones, others, or where no kernel may run."""
    if not isinstance(image, (ScalarField, MatrixField, np.ndarray)) or len(image.shape) < 2:
        return None
    width, height = image.shape[:2]
    return _form(image) if width * height >= _FEW and may_run() else None


def _write(image: Any, words: np.ndarray, form: tuple[int, int], swapped: bool) -> None:
    kernel: Any = _of_array if isinstance(image, np.ndarray) else _of_field
    # Not as a launch of the program's, which others may watch, and which takes a seed from those that follow.
    _native.NativeKernel._launch(kernel, (image, words, *form, swapped), {}, None, 0)


def draw(view: Any, image: Any) -> bool:
    """Draws a large image; whether it did: not small ones, what has another shape or type, or where no kernel may run.

    Args:
        view: What draws the window's frames.
        image: A field of numbers or vectors, or a NumPy array.
    """
    form = _is_drawn(image)
    if form is None or max(image.shape[:2]) > view.most_pixels:
        return False
    words = np.asarray(view.room(*image.shape[:2]))
    _write(image, words, form, view.swapped)
    # The memory goes back to the device, which nothing here may have then.
    del words
    view.fill()
    return True


def rows(image: Any, words: np.ndarray | None) -> np.ndarray | None:
    """The pixels of a large image as words of RGBA bytes, row by row from the top; nothing of what `draw` does not do.

    Args:
        image: A field of numbers or vectors, a ``ti.ndarray``, or a NumPy array.
        words: What was returned before, to be written again if its size is the same.
    """
    if isinstance(image, Ndarray):
        image = image._view()
    form = _is_drawn(image)
    if form is None:
        return None
    width, height = image.shape[:2]
    if words is None or words.shape != (height, width):
        words = np.empty((height, width), np.uint32)
    _write(image, words, form, False)
    return words
