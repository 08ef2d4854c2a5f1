"""Widgets and curves over the frame of `window`.

They are called again for each frame, before `window.render_frame`. Widgets return the user's input up to the last
frame; without `aerogel_viz` they keep their values.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from aerogel.tensor.frost.window import _shown, opened

#: The largest number of 32 bits: the bounds of a curve that follow from its values.
_FLT_MAX = 3.4028234663852886e38
_scale = 1.0


def _panel() -> Any:
    """The widgets of the panel that has begun; if none has, those of a panel of their own."""
    window = opened()
    if not _shown.is_panel_open:
        begin("Debug")
    return window.get_gui()


def begin(name: str) -> None:
    """Begins a panel. Panels stand beside each other; in a window of the desktop the user may move them."""
    if _shown.is_panel_open:
        end()
    column, row = _shown.n_panels % 3, _shown.n_panels // 3 % 3
    side = min(0.31 * _scale, 0.96)
    opened().get_gui().begin(str(name), 0.02 + 0.33 * column, 0.02 + 0.33 * row, side, side)
    _shown.n_panels += 1
    _shown.is_panel_open = True


def end() -> None:
    """Ends a panel."""
    opened().get_gui().end()
    _shown.is_panel_open = False


def text(text: str) -> None:
    """Adds a line of text."""
    _panel().text(str(text))


def button(label: str) -> bool:
    """Adds a button; whether it was pressed."""
    return _panel().button(str(label))


def checkbox(label: str, value: bool) -> bool:
    """Adds a box to tick; whether it is ticked."""
    return _panel().checkbox(str(label), bool(value))


def slider(label: str, value: Any, minimum: Any, maximum: Any) -> Any:
    """Adds a slider, over integers if all three numbers are; where it is.

    Raises:
        ValueError: ``minimum`` is greater than ``maximum``.
    """
    if all(isinstance(n, (int, np.integer)) for n in (value, minimum, maximum)):
        return _panel().slider_int(str(label), value, minimum, maximum)
    return _panel().slider_float(str(label), value, minimum, maximum)


def color_picker3(text: str, color: Any) -> np.ndarray:
    """Adds a chooser of a colour: three numbers from 0 to 1."""
    return np.array(_panel().color_edit_3(str(text), tuple(map(float, color))), np.float32)


def color_picker4(text: str, color: Any) -> np.ndarray:
    """Adds a chooser of a colour and a slider of its opacity: four numbers from 0 to 1."""
    *color, opacity = map(float, color)
    chosen = color_picker3(text, color)
    return np.array([*chosen, slider(f"{text}: opacity", opacity, 0.0, 1.0)], np.float32)


def plot(label: str, x_label: str = "", y_label: str = "", *, width: float = 0.0, height: float = 200.0) -> Any:
    """A plot in the panel, for ``with``, as :func:`aerogel.ui.Gui.plot`.

    Raises:
        ValueError: If the width is below zero, or the height is not positive.
    """
    return _panel().plot(label, x_label, y_label, width=width, height=height)


def scale_all_sizes(factor: float) -> None:
    """Makes panels larger by a factor, from here on.

    Raises:
        ValueError: The factor is not positive.
    """
    global _scale
    if not factor > 0:
        raise ValueError(f"a factor of sizes is positive, not {factor}")
    _scale *= float(factor)


def add_background_text(text: str, pos: Any, color: Any) -> None:
    """Draws a text on the frame, at a place in pixels from the upper left corner.

    Args:
        text: The text.
        pos: The place of its upper left corner.
        color: Three or four numbers from 0 to 1; opacity is left out.
    """
    opened()
    x, y = map(float, pos)
    _shown.overlays.append(lambda canvas, _: canvas.text(str(text), x, y, 15.0 * _scale, _hex(color)))


def plotlines(
    label: str,
    values: Any,
    values_offset: int = 0,
    overlay_text: str = "",
    scale_min: float = _FLT_MAX,
    scale_max: float = _FLT_MAX,
    graph_size: Any = (0.0, 0.0),
    stride: int = 4,
) -> None:
    """Draws a curve on the frame, at its right edge, below those before.

    Args:
        label: What stands below it.
        values: Numbers along one axis.
        values_offset: Which of them is the first, after whose last one the others follow.
        overlay_text: What stands above it.
        scale_min: The value at its lower edge; the smallest if not given.
        scale_max: The value at its upper edge; the largest if not given.
        graph_size: Width and height in pixels; 0 for a quarter of the window's width, and 60 pixels.
        stride: The bytes from one value to the next, 4 for each number.

    Raises:
        ValueError: The values have more than one axis, or a stride is not a multiple of 4 bytes.
    """
    opened()
    numbers = np.asarray(values.numpy if hasattr(values, "_aerogel_tensor") else values, np.float32)
    if numbers.ndim != 1 or stride < 4 or stride % 4:
        raise ValueError(
            "`plotlines` takes values along one axis, and a stride that is a multiple of 4 bytes, not values of shape "
            f"{numbers.shape} and {stride} bytes"
        )
    numbers = np.roll(numbers[:: stride // 4], -int(values_offset))
    bounds = [n if abs(n) < sys.float_info.max and abs(n) < _FLT_MAX else None for n in (scale_min, scale_max)]
    n_before = sum(getattr(draw, "is_curve", False) for draw in _shown.overlays)
    _shown.overlays.append(_Curve(numbers, bounds, (str(label), str(overlay_text)), tuple(graph_size), n_before))


class _Curve:
    """A curve in a frame."""

    is_curve = True

    def __init__(self, values: np.ndarray, bounds: list[Any], texts: tuple[str, str], size: Any, n_before: int) -> None:
        self._values, self._bounds, self._texts, self._size, self._n = values, bounds, texts, size, n_before

    def __call__(self, canvas: Any, window: tuple[int, int]) -> None:
        """Draws it."""
        width = float(self._size[0]) or window[0] / 4
        height = float(self._size[1]) or 60.0
        right, top = window[0] - 8.0, 8.0 + self._n * (height + 24)
        left, bottom = right - width, top + height
        corners = np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float32)
        _lines(canvas, corners, np.roll(corners, -1, 0), 0x888888)
        there = self._values[np.isfinite(self._values)]
        ends = (float(there.min()), float(there.max())) if there.size else (0.0, 1.0)
        low, high = (end if bound is None else bound for bound, end in zip(self._bounds, ends))
        if len(self._values) > 1:
            x = np.linspace(left, right, len(self._values))
            part = (self._values - low) / (high - low) if high > low else np.full(len(x), 0.5)
            points = np.stack([x, bottom - np.clip(part, 0, 1) * height], -1).astype(np.float32)
            known = np.isfinite(self._values)
            each = np.flatnonzero(known[:-1] & known[1:])
            _lines(canvas, points[each], points[each + 1], 0x66CCFF)
        canvas.text(self._texts[1], left + 4, top + 2, 13.0, 0xFFFFFF)
        canvas.text(self._texts[0], left, bottom + 3, 13.0, 0xFFFFFF)


def _lines(canvas: Any, begin: np.ndarray, end: np.ndarray, color: int) -> None:
    n = len(begin)
    if n:
        ends = (np.ascontiguousarray(begin), np.ascontiguousarray(end))
        canvas.lines(*ends, np.full(n, 1.0, np.float32), np.full(n, color, np.uint32))


def _hex(color: Any) -> int:
    red, green, blue = (int(np.clip(float(c), 0, 1) * 255 + 0.5) for c in tuple(color)[:3])
    return red << 16 | green << 8 | blue
