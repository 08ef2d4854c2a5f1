"""What a field holds, ready to be looked at: its kind, its numbers, and what of them are no numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

_SPARSE = ("pointer", "hash", "bitmasked", "dynamic")
#: Of a sparse field with more elements, active cells are looked at instead of an array.
_LARGE = 1 << 22


@dataclass
class Wrong:
    """Elements that are NaN or infinite: how many, and the indices of the first."""

    n_nan: int
    n_infinite: int
    first: tuple[int, ...]

    def __str__(self) -> str:
        parts = [f"{n} {what}" for n, what in ((self.n_nan, "NaN"), (self.n_infinite, "infinite")) if n]
        return f"{' and '.join(parts)}, first [{', '.join(map(str, self.first))}]"


@dataclass
class Values:
    """A field at one time.

    Attributes:
        kind: How it is drawn: "number", "plot", "image", "slices", "colours", "arrows", "points" or "text".
        numbers: Its elements, the axes of vectors last.
        cells: Of a sparse field the indices of its active elements, of shape (n, axes); ``numbers`` are theirs.
        shape: The size of each axis.
        block: For a sparse field the shape of the blocks that become active together.
        wrong: What is no number, if anything.
    """

    kind: str
    numbers: np.ndarray
    shape: tuple[int, ...]
    cells: np.ndarray | None = None
    block: tuple[int, ...] = field(default_factory=tuple)
    wrong: Wrong | None = None


def path_of(x: Any) -> list[Any]:
    """The nodes from the root to a field; none of arrays."""
    node = getattr(x, "_parent_node", None)
    return [] if node is None else node.path_from_root()


def is_there(x: Any) -> bool:
    """Whether a field has memory."""
    return not hasattr(x, "_is_placed") or bool(x._is_placed())


def is_sparse(x: Any) -> bool:
    """Whether elements of a field may be inactive."""
    return any(node._kind in _SPARSE for node in path_of(x))


def _block(x: Any) -> tuple[int, ...]:
    """The shape of a cell of the last node on the path that tracks activity."""
    nodes, axes = path_of(x), len(x.shape)
    last = max(k for k, node in enumerate(nodes) if node._kind in _SPARSE)
    outer = nodes[last].shape
    if len(outer) != axes:
        return ()
    return tuple(max(n // max(m, 1), 1) for n, m in zip(x.shape, outer))


def read(x: Any) -> Values:
    """What a field holds now.

    Raises:
        RuntimeError: It is gone.
    """
    shape = tuple(x.shape)
    if len(shape) and is_sparse(x):
        cells, numbers = x.active_cells()
        out = Values("", numbers, shape, cells, _block(x))
    else:
        out = Values("", x.to_numpy(), shape)
    out.wrong = find_wrong(out)
    out.kind = _kind(out)
    return out


def _kind(v: Values) -> str:
    axes = len(v.shape)
    if 0 in v.shape:
        return "text"
    inner = v.numbers.shape[(1 if v.cells is not None else axes) :]
    if axes == 0:
        return "number" if not inner else "text"
    vector = len(inner) == 1
    if axes == 1:
        if not inner:
            return "plot"
        return "points" if vector and inner[0] in (2, 3) else "text"
    if axes == 2:
        if not inner:
            return "image"
        if vector and inner[0] in (3, 4) and _are_colours(v.numbers):
            return "colours"
        return "arrows" if vector and inner[0] in (2, 3) else "image"
    if axes == 3:
        return "points" if v.cells is not None else "slices"
    return "text"


def _are_colours(numbers: np.ndarray) -> bool:
    """Whether vectors look like colours: from 0 to 1, and not all alike to zero."""
    if numbers.dtype.kind != "f":
        return numbers.dtype == np.uint8
    with np.errstate(invalid="ignore"):
        return bool(numbers.size and (numbers >= 0).all() and (numbers <= 1.001).all())


def length(numbers: np.ndarray, axes: int) -> np.ndarray:
    """Vectors and matrices as one number each: how long they are."""
    if numbers.ndim == axes:
        return numbers
    with np.errstate(all="ignore"):
        wide = numbers.astype(np.float64).reshape(*numbers.shape[:axes], -1)
        return np.sqrt((wide * wide).sum(-1))


def find_wrong(v: Values) -> Wrong | None:
    """What is NaN or infinite."""
    numbers = v.numbers
    if numbers.dtype.kind != "f" or not numbers.size:
        return None
    finite = np.isfinite(numbers)
    if finite.all():
        return None
    axes = 1 if v.cells is not None else len(v.shape)
    nan, fine = np.isnan(numbers), finite
    if numbers.ndim > axes:
        inner = tuple(range(axes, numbers.ndim))
        nan, fine = nan.any(inner), finite.all(inner)
    at = int(np.argmin(fine)) if fine.ndim else 0
    first = np.unravel_index(at, fine.shape) if fine.ndim else ()
    place = v.cells[at] if v.cells is not None else first
    n_nan = int(nan.sum())
    return Wrong(n_nan, int((~fine).sum()) - n_nan, tuple(int(k) for k in place))
