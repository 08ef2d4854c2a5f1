"""A page to paint on: pictures first, then shapes and text over them, in pixels from the upper left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PAPER = (18, 22, 28)
INK, DIM, LINE, WARNING = 0xE8ECF0, 0x8C98A4, 0x3A4550, 0xFF4FA0
GOOD = 0x57B8FF


class Page:
    """What a frame consists of."""

    def __init__(self, width: int, height: int) -> None:
        self.size = (width, height)
        self._pixels = np.empty((height, width, 3), np.uint8)
        self._pixels[:] = PAPER
        self._over: list[Callable[[Any], None]] = []

    def picture(self, left: int, top: int, width: int, height: int, colors: np.ndarray) -> None:
        """Puts a picture of shape (n, m, 3), the second axis upwards, into a rectangle; elements stay sharp."""
        n, m = colors.shape[:2]
        x = np.minimum((np.arange(width) + 0.5) * n / width, n - 1).astype(int)
        y = np.minimum((height - np.arange(height) - 0.5) * m / height, m - 1).astype(int)
        self._pixels[top : top + height, left : left + width] = colors[np.ix_(x, y)].swapaxes(0, 1)

    def _at(self, points: np.ndarray) -> np.ndarray:
        return np.asarray(points, np.float64) / self.size * (1, -1) + (0, 1)

    def text(self, left: float, top: float, words: str, color: int = INK, size: int = 13) -> None:
        """Puts a line of text."""
        at = self._at(np.array([left, top]))
        self._over.append(lambda gui: gui.text(words, at, font_size=size, color=color))

    def lines(self, begin: np.ndarray, end: np.ndarray, color: Any = INK, radius: float = 0.8) -> None:
        """Draws lines between pixels."""
        a, b = self._at(begin), self._at(end)
        self._over.append(lambda gui: gui.lines(a, b, radius=radius, color=color))

    def frame(self, left: float, top: float, width: float, height: float, color: int = LINE) -> None:
        """Draws the outline of a rectangle."""
        corners = np.array([[left, top], [left + width, top], [left + width, top + height], [left, top + height]])
        self.lines(corners, np.roll(corners, -1, 0), color)

    def discs(self, points: np.ndarray, radius: float, color: Any) -> None:
        """Draws discs."""
        at = self._at(points)
        self._over.append(lambda gui: gui.circles(at, radius=radius, color=color))

    def put(self, gui: Any) -> None:
        """Draws all on a GUI."""
        gui.set_image(np.ascontiguousarray(self._pixels[::-1].swapaxes(0, 1)))
        for shape in self._over:
            shape(gui)
