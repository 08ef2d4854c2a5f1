"""Images of floats as words of four bytes, by all cores: what windows are given of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import aerogel as ti
from aerogel import _native
from aerogel.data.field import MatrixField, ScalarField


@ti.func
def _byte(x: Any) -> Any:
    part = ti.min(ti.max(x, ti.f32(0)), ti.f32(1))
    return ti.cast(ti.cast(part * ti.f32(255) + ti.f32(0.5), ti.i32), ti.u32)


@ti.kernel
def _pack(x: ti.template(), words: ti.types.ndarray(ti.u32, 2), channels: ti.template()):
    for i, j in words:
        word = ti.u32(0xFF000000)
        for k in ti.static(range(3)):
            if ti.static(channels == 0):
                word |= _byte(x[i, j]) << (8 * k)
            elif ti.static(channels != 2 or k < 2):
                word |= _byte(x[i, j][0 if ti.static(channels == 1) else k]) << (8 * k)
        words[i, j] = word


def packed(image: Any) -> np.ndarray | None:
    """The pixels of a large field of f32 with two axes; nothing for others, or where no kernel may run."""
    if not isinstance(image, (ScalarField, MatrixField)) or image.dtype != ti.f32 or len(image.shape) != 2:
        return None
    if image.shape[0] * image.shape[1] < 40_000:
        return None
    channels = 0 if isinstance(image, ScalarField) else image.n if image.ndim == 1 else 5
    if channels > 4 or any(image._offset) or ti.cfg.arch == ti.interp or _native.recorder() is not None:
        return None
    words: Any = np.empty(image.shape, np.uint32)
    # Not as a launch of the program's, which others may watch, and which takes a seed from those that follow.
    _native.NativeKernel._launch(_pack, (image, words, channels), {}, None, 0)
    return words
