"""Panels of widgets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aerogel.ui import _arrays
from aerogel.ui.plots import Plot

if TYPE_CHECKING:
    from aerogel.ui.window import Window


class Gui:
    """Widgets over a window's picture. They are called again in every frame, each with its current value.

    A widget returns the user's input up to the last frame that was shown: its value is one frame late at
    most, whatever the order of the calls. Widgets of a panel with the same label are distinguished by their order.
    """

    def __init__(self, window: Window) -> None:
        self._window = window

    @property
    def _view(self) -> Any:
        return self._window._view

    @contextmanager
    def sub_window(self, name: str, x: float, y: float, width: float, height: float) -> Iterator[Gui]:
        """A panel, for ``with``: widgets of the block are in it.

        Args:
            name: Its title.
            x: Its left edge, as a fraction of the window's width.
            y: Its upper edge, from the top, as a fraction of the window's height.
            width: Its width, as a fraction of the window's.
            height: Its height, as a fraction of the window's.
        """
        self.begin(name, x, y, width, height)
        try:
            yield self
        finally:
            self.end()

    def begin(self, name: str, x: float, y: float, width: float, height: float) -> None:
        """Begins a panel: see :func:`sub_window`."""
        panel = (str(name), (float(x), float(y), float(width), float(height)))
        self._view.panel(*panel)
        self._window._panels.append(panel)

    def end(self) -> None:
        """Ends a panel: later widgets are in the enclosing one, if there is one."""
        panels = self._window._panels
        if panels:
            panels.pop()
        if panels:
            self._view.panel(*panels[-1])

    def text(self, text: str, color: Any = None) -> None:
        """Adds a line of text."""
        self._view.text(str(text), None if color is None else _arrays.color(color)[:3])

    def checkbox(self, text: str, old_value: bool) -> bool:
        """Adds a checkbox, and returns whether it is checked."""
        return self._view.checkbox(str(text), bool(old_value))

    def slider_int(self, text: str, old_value: int, minimum: int, maximum: int) -> int:
        """Adds a slider over integers, and returns its value.

        Raises:
            ValueError: ``minimum`` is greater than ``maximum``, or a number has more than 64 bits.
        """
        _check(text, minimum, maximum)
        numbers = {"old_value": int(old_value), "minimum": int(minimum), "maximum": int(maximum)}
        for name, n in numbers.items():
            if not -(2**63) <= n < 2**63:
                raise ValueError(f"{name} of the slider {text!r} must fit 64 bits, which {n} does not")
        return self._view.slider_int(str(text), *numbers.values())

    def slider_float(self, text: str, old_value: float, minimum: float, maximum: float) -> float:
        """Adds a slider over floats, and returns its value.

        Raises:
            ValueError: ``minimum`` is greater than ``maximum``.
        """
        _check(text, minimum, maximum)
        return self._view.slider_float(str(text), float(old_value), float(minimum), float(maximum))

    def color_edit_3(self, text: str, old_value: Any) -> tuple[float, float, float]:
        """Adds a colour picker, and returns the colour: three numbers from 0 to 1."""
        return tuple(self._view.color(str(text), _arrays.color(old_value)[:3]))  # type: ignore[return-value]

    @contextmanager
    def plot(
        self, label: str, x_label: str = "", y_label: str = "", *, width: float = 0.0, height: float = 200.0
    ) -> Iterator[Plot]:
        """A plot, for ``with``: series that are added inside are drawn in it. It is called again in every frame, as
        widgets are.

        Args:
            label: Its title.
            x_label: The label of the horizontal axis.
            y_label: The label of the vertical axis.
            width: Its width in points; that of the panel if zero.
            height: Its height in points.

        Raises:
            ValueError: If the width is below zero, or the height is not positive.
        """
        if not (width >= 0 and height > 0):
            raise ValueError(f"the plot {label!r} has no size: width={width}, height={height}")
        plot = Plot()
        yield plot
        self._view.plot(str(label), (str(x_label), str(y_label)), (float(width), float(height)), plot._series)

    def button(self, text: str) -> bool:
        """Adds a button, and returns whether it was pressed."""
        return self._view.button(str(text))


def _check(text: str, minimum: float, maximum: float) -> None:
    if not minimum <= maximum:
        raise ValueError(f"the slider {text!r} has the minimum {minimum} above its maximum {maximum}")
