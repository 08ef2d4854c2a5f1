"""Plots in panels of widgets: curves, points, bars, histograms and heat maps over axes with ticks."""

from __future__ import annotations

from typing import Any

import numpy as np


class Plot:
    """The series of one plot, made by :func:`Gui.plot`. Its axes cover all that is drawn.

    Numbers are arrays, tensors or lists. With a label, a series is in the legend.
    """

    def __init__(self) -> None:
        self._series: list[tuple[str, str, bytes, float]] = []

    def line(self, label: str, x: Any, y: Any = None) -> None:
        """Adds a curve through points. Numbers that are not finite interrupt it.

        Args:
            label: Its name.
            x: The places, ``[n]``; the values, if ``y`` is not given: places are 0, 1, 2 and so on then.
            y: The values, ``[n]``.

        Raises:
            ValueError: If both are not numbers along one axis, of the same length.
        """
        self._add("line", label, _pairs("line", x, y), 0.0)

    def scatter(self, label: str, x: Any, y: Any = None) -> None:
        """Adds points, as :func:`line` does; those that are not finite are left out.

        Raises:
            ValueError: As of ``line``.
        """
        self._add("scatter", label, _pairs("scatter", x, y), 0.0)

    def bars(self, label: str, x: Any, y: Any = None, width: float = 0.67) -> None:
        """Adds bars from zero to each value, as :func:`line` takes them, of a width in units of the axis.

        Raises:
            ValueError: As of ``line``, or if the width is not positive.
        """
        if not width > 0:
            raise ValueError(f"`bars` have a positive width, not {width}")
        self._add("bars", label, _pairs("bars", x, y), float(width))

    def histogram(self, label: str, values: Any, bins: int = 20, range: tuple[float, float] | None = None) -> None:  # noqa: A002
        """Adds bars that count values in bins of equal width; values that are not finite are left out.

        Args:
            label: Its name.
            values: Numbers of any shape.
            bins: How many bins there are.
            range: The ends of the first and of the last bin; the least and the greatest value, if not given.

        Raises:
            ValueError: If there is less than one bin, or the range is empty.
        """
        numbers = _numbers(values).reshape(-1)
        counts, edges = np.histogram(numbers[np.isfinite(numbers)], int(bins), range)
        self._add("bars", label, _pairs("histogram", (edges[1:] + edges[:-1]) / 2, counts), float(edges[1] - edges[0]))

    def heatmap(self, label: str, values: Any) -> None:
        """Adds a map of squares, dark for small numbers and bright for great ones; those that are not finite stay out.

        Args:
            label: Its name.
            values: Numbers of shape ``[rows, columns]``. Element ``[i, j]`` is the square from ``(j, i)`` to
                ``(j + 1, i + 1)``: the first row is the lowest.

        Raises:
            ValueError: If they have no two axes, or no elements.
        """
        numbers = _numbers(values)
        if numbers.ndim != 2 or not numbers.size:
            raise ValueError(f"`heatmap` takes numbers along two axes, not of shape {numbers.shape}")
        self._add("heatmap", label, numbers, float(numbers.shape[1]))

    def _add(self, kind: str, label: str, numbers: np.ndarray, extra: float) -> None:
        self._series.append((kind, str(label), np.ascontiguousarray(numbers, np.float64).tobytes(), extra))


def _numbers(values: Any) -> np.ndarray:
    """Real numbers as an array: of a tensor, of a field, or of anything that NumPy takes."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"a plot takes real numbers, not {array.dtype}")
    return array.astype(np.float64)


def _pairs(what: str, x: Any, y: Any) -> np.ndarray:
    """Places and values side by side, ``[n, 2]``."""
    values = _numbers(x if y is None else y)
    places = np.arange(len(values), dtype=np.float64) if y is None and values.ndim == 1 else _numbers(x)
    if values.ndim != 1 or places.shape != values.shape:
        raise ValueError(
            f"`{what}` takes numbers along one axis, as many positions as values, not of shapes {places.shape} and "
            f"{values.shape}"
        )
    return np.stack([places, values], -1)
