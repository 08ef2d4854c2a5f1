"""``ti.plot``: curves as a picture, in a terminal, in a notebook or in a window."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

#: The colours of curves: Okabe and Ito's, which colour-blind people can distinguish.
_COLORS = (0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0x000000)
_INK, _GRID, _PAPER = 0x333333, 0xDDDDDD, 0xFFFFFF


def plot(
    values: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    x: Any = None,
    title: str = "",
    log: bool = False,
    gui: Any = None,
    size: tuple[int, int] = (800, 500),
) -> Chart:
    """Draws curves: to a file, into a window, below the cell of a notebook, or as text in a terminal.

    >>> import aerogel as ti
    >>> losses = [2.0**-k for k in range(20)]
    >>> chart = ti.plot({"loss": losses}, "losses.png", title="training")  # doctest: +SKIP
    >>> chart.update({"loss": losses + [0.0]})  # doctest: +SKIP

    Args:
        values: The values of a curve: a list, an array or a tensor with one axis; or curves by name. Values that are
            not finite leave gaps.
        path: A file to write, PNG, or with Pillow installed another format, by its suffix.
        x: Where the values are along the other axis; 0, 1, 2 ... if not given.
        title: The title above the plot.
        log: Whether values are shown by their logarithms; those that are not positive leave gaps.
        gui: A ``ti.GUI``, whose current frame is drawn over; show it by ``gui.show()``.
        size: Width and height of a picture in pixels.

    Returns:
        The chart, whose ``update`` draws other values in the same place: a live curve.

    Raises:
        ValueError: If there is no curve, one has other than one axis, or ``x`` another number of values.
        OSError: If the file cannot be written.
    """
    chart = Chart(path, x=x, title=title, log=log, gui=gui, size=size)
    chart.update(values)
    return chart


class Chart:
    """Curves that are drawn in one place; ``ti.plot`` makes it."""

    def __init__(self, path: Any, *, x: Any, title: str, log: bool, gui: Any, size: tuple[int, int]) -> None:
        self._path, self._x, self._title, self._log, self._gui = path, x, str(title), bool(log), gui
        self._size = (int(size[0]), int(size[1]))
        if min(self._size) < 100:
            raise ValueError(f"`plot`: a picture has at least 100 pixels in both directions, not {size}")
        self._curves: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._handle: Any = None
        self._lines = 0

    def update(self, values: Any) -> None:
        """Draws other values in the same place."""
        from aerogel import _notebook

        self._curves = _curves(values, self._x)
        if self._path is not None:
            from aerogel.tools.image import imwrite

            imwrite(self.pixels()[..., :3], os.fspath(self._path))
        elif self._gui is not None:
            self._draw(self._gui._canvas, self._gui.res)
        elif _notebook.is_running():
            self._handle = _notebook.show(self.pixels()[..., :3], self._handle)
        else:
            text = self.text()
            # On a terminal a chart takes the place of the one before.
            up = f"\x1b[{self._lines}A\x1b[J" if self._lines and sys.stdout.isatty() else ""
            print(up + text, flush=True)
            self._lines = text.count("\n") + 1

    def pixels(self) -> np.ndarray:
        """The picture: bytes of shape (width, height, 4), the second axis upwards."""
        from aerogel import _native
        from aerogel._gui_arrays import picture

        canvas = _native.Canvas(*self._size)
        self._draw(canvas, self._size)
        return picture(canvas, self._size)

    def text(self, width: int = 0, height: int = 10) -> str:
        """The chart as lines of text, each character of which has two by four dots.

        Args:
            width: How many characters a line has; 0 for the width of the terminal.
            height: How many lines the curves take.
        """
        import shutil

        width = width or min(shutil.get_terminal_size().columns, 100)
        low, high = self._range()
        labels = [_number(_exp(v, self._log)) for v in (high, low)]
        margin = max(map(len, labels))
        columns = max(width - margin - 1, 10)
        left, right = self._ends()
        cells = [[0] * columns for _ in range(height)]
        for xs, ys in self._curves.values():
            for (x0, y0), (x1, y1) in self._segments(xs, ys):
                a = ((x0 - left) / (right - left) * (2 * columns - 1), (high - y0) / (high - low) * (4 * height - 1))
                b = ((x1 - left) / (right - left) * (2 * columns - 1), (high - y1) / (high - low) * (4 * height - 1))
                steps = max(math.ceil(max(abs(a[0] - b[0]), abs(a[1] - b[1]))), 1)
                for k in range(steps + 1):
                    px, py = (round(p + (q - p) * k / steps) for p, q in zip(a, b))
                    cells[py // 4][px // 2] |= _DOTS[py % 4][px % 2]
        rows = []
        for k, row in enumerate(cells):
            label = labels[0] if k == 0 else labels[1] if k == height - 1 else ""
            rows.append((label.rjust(margin) + " " + "".join(chr(0x2800 + c) for c in row)).rstrip("\u2800 "))
        names = ", ".join(name for name in self._curves if name)
        head = self._title + (": " if self._title and names else "") + names
        return "\n".join(([head] if head else []) + rows)

    # Where values are.

    def _range(self) -> tuple[float, float]:
        """The smallest and the largest value that is shown, as logarithms if ``log``."""
        import numpy as np

        all_ = np.concatenate([_shown(ys, self._log) for _, ys in self._curves.values()])
        finite = all_[np.isfinite(all_)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if not high > low:
            # A number of one is a whole axis, a number of zero as well.
            room = max(abs(low), 1.0) * 0.5
            low, high = low - room, high + room
        return low, high

    def _ends(self) -> tuple[float, float]:
        left = min((float(xs.min()) for xs, _ in self._curves.values() if xs.size), default=0.0)
        right = max((float(xs.max()) for xs, _ in self._curves.values() if xs.size), default=1.0)
        return (left, right) if right > left else (left - 0.5, right + 0.5)

    def _segments(self, xs: np.ndarray, ys: np.ndarray) -> Any:
        """Pairs of neighbouring points that both have values; a lone point is a pair with itself."""
        import numpy as np

        ys = _shown(ys, self._log)
        there = np.isfinite(ys) & np.isfinite(xs)
        for k in np.flatnonzero(there):
            after = k + 1 < len(xs) and there[k + 1]
            before = k > 0 and there[k - 1]
            if after or not before:
                end = k + 1 if after else k
                yield (xs[k], ys[k]), (xs[end], ys[end])

    # As a picture.

    def _draw(self, canvas: Any, res: tuple[int, int]) -> None:
        import numpy as np

        width, height = res
        canvas.clear(_PAPER)
        low, high = self._range()
        left, right = self._ends()
        room = (high - low) * 0.04
        low, high = low - room, high + room
        x0, y0, x1, y1 = 72.0, 40.0 if self._title else 16.0, width - 16.0, height - 36.0

        def at(x: Any, y: Any) -> tuple[Any, Any]:
            return x0 + (x - left) / (right - left) * (x1 - x0), y1 - (y - low) / (high - low) * (y1 - y0)

        def lines(pairs: list[Any], color: int, radius: float) -> None:
            if pairs:
                ends = np.array(pairs, np.float32)
                each = np.full(len(pairs), radius, np.float32)
                colors = np.full(len(pairs), color, np.uint32)
                canvas.lines(np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1]), each, colors)

        grid = []
        for value in _ticks(low, high, max(int((y1 - y0) / 60), 2), self._log):
            y = at(left, value)[1]
            grid.append(((x0, y), (x1, y)))
            label = _number(_exp(value, self._log))
            canvas.text(label, x0 - 8 - 7.5 * len(label), y - 8, 15.0, _INK)
        for value in _ticks(left, right, max(int((x1 - x0) / 100), 2), False):
            x = at(value, low)[0]
            grid.append(((x, y0), (x, y1)))
            label = _number(value)
            canvas.text(label, x - 3.75 * len(label), y1 + 8, 15.0, _INK)
        lines(grid, _GRID, 0.5)
        corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
        lines(list(zip(corners, corners[1:] + corners[:1])), _INK, 0.7)
        for k, (name, (xs, ys)) in enumerate(self._curves.items()):
            color = _COLORS[k % len(_COLORS)]
            lines([(at(*a), at(*b)) for a, b in self._segments(xs, ys)], color, 1.2)
            if name:
                y = y0 + 12 + 20 * k
                begin = x1 - 44 - 8 * len(name)
                lines([((begin, y + 8), (begin + 22, y + 8))], color, 1.6)
                canvas.text(name, begin + 30, y, 15.0, _INK)
        if self._title:
            canvas.text(self._title, max((width - 9.0 * len(self._title)) / 2, 4.0), 10.0, 18.0, _INK)


#: Which bit of a braille character each dot is, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def _curves(values: Any, x: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The curves by name, as floats."""
    import numpy as np

    named = values if isinstance(values, dict) else {"": values}
    if not named:
        raise ValueError("`plot` takes at least one curve")
    out = {}
    for name, own in named.items():
        ys = _floats(own)
        of = f" `{name}`" if name else ""
        if ys.ndim != 1 or not ys.size:
            raise ValueError(f"`plot`: the curve{of} has values along one axis, its shape is {ys.shape}")
        xs = np.arange(len(ys), dtype=np.float64) if x is None else _floats(x)
        if xs.shape != ys.shape:
            raise ValueError(f"`plot`: the curve{of} has {len(ys)} values, `x` has the shape {xs.shape}")
        out[str(name)] = (xs, ys)
    return out


def _floats(values: Any) -> np.ndarray:
    """Numbers, tensors, or a list of these, as floats."""
    import numpy as np

    if isinstance(values, (list, tuple)):
        values = [v.item() if hasattr(v, "item") else v for v in values]
    # Tensors by which gradients are taken have arrays once they are detached, those of PyTorch too.
    values = values.detach() if hasattr(values, "detach") else values
    return np.asarray(values, dtype=np.float64)


def _shown(ys: np.ndarray, log: bool) -> np.ndarray:
    import numpy as np

    if not log:
        return ys
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ys > 0, np.log10(ys), np.nan)


def _exp(value: float, log: bool) -> float:
    return 10.0**value if log else value


def _ticks(low: float, high: float, count: int, log: bool) -> list[float]:
    """Round numbers from one end to the other, about so many; of logarithms whole ones, if there are several."""
    rough = (high - low) / count
    step = 10.0 ** math.floor(math.log10(rough))
    step *= next(k for k in (1.0, 2.0, 5.0, 10.0) if k * step >= rough * 0.999)
    if log and high - low >= 2.0:
        step = max(math.ceil(step), 1.0)
    first = math.ceil(low / step - 1e-9)
    ticks = [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
    return [0.0 if abs(t) < step * 1e-9 else t for t in ticks]


def _number(value: float) -> str:
    return f"{value:.4g}"
