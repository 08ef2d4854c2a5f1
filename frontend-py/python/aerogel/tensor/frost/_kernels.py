"""The kernels of `aerogel.tensor.frost`: points in groups, and memory of each point or group."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import f32
from aerogel.tensor._tensor import Tensor, tracing
from aerogel.tensor.programs import indices
from aerogel.tensor.programs._blocks import trace_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class _Points(Tensor):
    """The index of the points of a kernel, which lie in groups if it says so."""

    __slots__ = ("_groups", "_indices")

    def __init__(self, indices: tuple[Tensor, ...], groups: list[int]) -> None:
        super().__init__(indices[0]._native)
        self._indices = indices
        self._groups = groups

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._indices)

    def __getitem__(self, key: Any) -> Tensor:
        return self._indices[key] if isinstance(key, int) else super().__getitem__(key)

    def block_index(self, axis: int) -> Tensor:
        """The number of a point's group along an axis."""
        return self._indices[axis] // self._groups[axis]

    def block_thread_index(self, axis: int) -> Tensor:
        """The index of a point in its group along an axis."""
        return self._indices[axis] % self._groups[axis]


@contextlib.contextmanager
def kernel(shape: Any, group_size: Sequence[int] = ()) -> Iterator[Any]:
    """Does a block at every point of a shape, each statement at all points before the next; they may lie in groups."""
    at = indices(shape)
    groups = list(group_size) + [1] * (len(at) - len(group_size)) if group_size else []
    points = _Points(at, groups)
    trace = trace_of("kernel")
    around = trace.kernel
    trace.kernel = (trace.extents(shape), points)
    try:
        yield points if len(at) == 1 else at if not groups else points
    finally:
        trace.kernel = around


class _OwnMemory:
    """Memory of each point of a kernel, or of each group of points."""

    def __init__(self, memory: Tensor, place: list[Tensor]) -> None:
        self._memory = memory
        self._place = place

    def _key(self, key: Any) -> tuple[Any, ...]:
        return (*self._place, *(key if isinstance(key, tuple) else (key,)))

    def __getitem__(self, key: Any) -> Tensor:
        return trace_of("local_buffer").gather(self._memory, self._key(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        trace_of("local_buffer").store(self._memory, self._key(key), value)


def _around(what: str) -> tuple[list[Any], _Points]:
    found = trace_of("kernel").kernel
    if found is None:
        raise RuntimeError(f"`{what}` is for the points of a `kernel`")
    return found


def local_buffer(size: int, type: Any = None) -> _OwnMemory:
    """Memory of so many numbers for each point of a kernel."""
    extents, points = _around("local_buffer")
    return _OwnMemory(_memory([*extents, size], type), list(points._indices))


def group_buffer(size: int, type: Any = None) -> _OwnMemory:
    """Memory of so many numbers for each group of points of a kernel."""
    extents, points = _around("group_buffer")
    if not points._groups:
        raise RuntimeError("`group_buffer` is for a kernel with a `group_size`")
    # As many as there are points, of which each group takes the first ones.
    place = [points.block_index(axis) for axis in range(len(extents))]
    return _OwnMemory(_memory([*extents, size], type), place)


def _memory(extents: list[Any], dtype: Any) -> Tensor:
    kind = f32 if dtype is None else dtype
    trace = trace_of("buffer")
    out = Tensor(_native.NativeTensor.full(extents, kind._aerogel_dtype, 0, tracing.trace))
    trace.native.keep(out._native)
    return out


def group_barrier() -> None:
    """Every statement is done at all points before the next one."""


__all__ = ["group_barrier", "group_buffer", "kernel", "local_buffer"]
