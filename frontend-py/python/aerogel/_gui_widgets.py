"""Sliders, labels and buttons of ``ti.GUI``: painted over the picture, one below the other at its upper right."""

from __future__ import annotations

from typing import Any

import numpy as np

_WIDTH = 200
_PAPER, _EDGE, _INK, _KNOB = 0xCCCCCC, 0x000000, 0x222222, 0x3A6EA5


class WidgetValue:
    """The value of a slider or a label: read and set ``value``."""

    _height = 20

    def __init__(self, value: float, text: str = "") -> None:
        self.value = float(value)
        self._text = text

    def _paint(self, canvas: Any, left: float, top: float, width: float) -> None:
        canvas.text(f"{self._text}: {self.value:.3f}", left + 4, top + 3, 13.0, _INK)


class Slider(WidgetValue):
    """A value between two others."""

    _height = 40

    def __init__(self, text: str, minimum: float, maximum: float) -> None:
        super().__init__(minimum, text)
        self._low, self._high = float(minimum), float(maximum)

    def _paint(self, canvas: Any, left: float, top: float, width: float) -> None:
        super()._paint(canvas, left, top, width)
        begin, length, y = left + 10, max(width - 20, 1.0), top + 28
        part = (self.value - self._low) / (self._high - self._low) if self._high > self._low else 0.0
        at = begin + length * float(np.clip(np.nan_to_num(part), 0, 1))
        line = [np.array([[x, y]], np.float32) for x in (begin, begin + length)]
        canvas.lines(*line, np.array([1.5], np.float32), np.array([_INK], np.uint32))
        canvas.circles(np.array([[at, y]], np.float32), np.array([7], np.float32), np.array([_KNOB], np.uint32))

    def _drag(self, x: float, left: float, width: float) -> None:
        part = float(np.clip((x - left - 10) / max(width - 20, 1.0), 0, 1))
        self.value = self._low + part * (self._high - self._low)


class Button(WidgetValue):
    """Something to press: its key is reported as an event."""

    _height = 40

    def __init__(self, text: str, key: str) -> None:
        super().__init__(0, text)
        self.key = key

    def _paint(self, canvas: Any, left: float, top: float, width: float) -> None:
        canvas.text(self._text, left + 6, top + 9, 22.0, _INK)


class Widgets:
    """The widgets of a GUI, and what the mouse does to them."""

    def __init__(self, res: tuple[int, int]) -> None:
        self._res = res
        self._all: list[WidgetValue] = []
        self._dragged: Slider | None = None

    def add(self, widget: Any) -> Any:
        """Puts a widget below the others."""
        self._all.append(widget)
        return widget

    def _places(self) -> list[tuple[WidgetValue, float, float, float]]:
        """The widgets with left, top and width."""
        width, top, out = min(_WIDTH, self._res[0]), 0, []
        for widget in self._all:
            out.append((widget, float(self._res[0] - width), float(top), float(width)))
            top += widget._height
        return out

    def paint(self, canvas: Any) -> None:
        """Paints all over a picture."""
        for widget, left, top, width in self._places():
            for inset, color in ((0, _EDGE), (1, _PAPER)):
                x0, x1 = left + inset, left + width - inset
                y0, y1 = top + inset, top + widget._height - inset
                a, b, c, d = (np.array([p], np.float32) for p in ((x0, y0), (x1, y0), (x1, y1), (x0, y1)))
                for triangle in ((a, b, c), (a, c, d)):
                    canvas.triangles(*triangle, np.array([color], np.uint32))
            widget._paint(canvas, left, top, width)

    def press(self, x: float, y: float) -> str | None:
        """The mouse goes down at a pixel counted from the upper left; the key of the button there, if there is one."""
        for widget, left, top, width in self._places():
            if left <= x < left + width and top <= y < top + widget._height:
                if isinstance(widget, Slider):
                    self._dragged = widget
                    self.move(x)
                return widget.key if isinstance(widget, Button) else None
        return None

    def move(self, x: float) -> None:
        """The mouse goes somewhere; a slider that it holds goes with it."""
        for widget, left, _, width in self._places():
            if isinstance(widget, Slider) and widget is self._dragged:
                widget._drag(x, left, width)

    def release(self) -> None:
        """The mouse goes up."""
        self._dragged = None
