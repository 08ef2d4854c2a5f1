"""Indices and shapes of `aerogel.tensor.frost`, and advice to its compiler, which needs none here."""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel.profiler import _region_name
from aerogel.tensor._tensor import Tensor, asarray
from aerogel.tensor.programs import indices


def index(axis: int, shape: Any) -> Tensor:
    """The index along an axis, at every point of a shape."""
    return indices(shape)[axis]


def region_begin(name: str) -> None:
    """Begins a region: the profiler and the text of programs show what follows under its name."""
    _native.enter_region(_region_name(name))


def region_end(name: str) -> None:
    """Ends the region that was begun last.

    Raises:
        RuntimeError: If none is open.
        ValueError: If the one that was begun last has another name.
    """
    if (last := _native.current_region()) not in (None, name):
        raise ValueError(f"region_end({name!r}): the region that was begun last is {last!r}")
    _native.leave_region()


def stop_fusion(x: Tensor) -> Tensor:
    """The tensor: what is fused needs no advice."""
    return x


def element_index(shape: Any) -> Tensor:
    """The number of each element, row by row."""
    return flat_index(indices(shape), shape)


def flat_index(index: Any, shape: Any) -> Tensor:
    """The number, row by row, of the element that has these indices."""
    out, *others = (asarray(i) for i in index)
    for i, n in zip(others, shape[1:]):
        out = out * n + i
    return out


def indices_from_flat_index(index: Any, shape: Any) -> tuple[Tensor, ...]:
    """The indices of the element that has a number, row by row."""
    rest, out = asarray(index), []
    for n in reversed(shape[1:]):
        out.append(rest % n)
        rest = rest // n
    return (rest, *reversed(out))


def index_grid(begin: Any, end: Any, step: Any = None) -> tuple[Tensor, ...]:
    """The indices from one corner to before another, at every point between them."""
    steps = [1] * len(begin) if step is None else step
    counts = [(e - b + s - 1) // s for b, e, s in zip(begin, end, steps)]
    return tuple(k * s + b for k, b, s in zip(indices(counts), begin, steps))


__all__ = [
    "element_index", "flat_index", "index", "index_grid", "indices_from_flat_index", "region_begin", "region_end",
    "stop_fusion",
]  # fmt: skip
