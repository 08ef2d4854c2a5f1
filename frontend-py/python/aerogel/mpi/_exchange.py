"""What processes send each other around the loops of a kernel: cells of halos before, shares of sums after."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

from aerogel import _native
from aerogel.mpi import _comm
from aerogel.mpi._grid import Grid

# A place of a tree, by the tree's key; and how wide a halo is, for each axis below and above.
Place = tuple[int, int]
Widths = list[list[int]]


class Part:
    """The memory of the fields of one layout, split along a grid."""

    def __init__(self, key: int, grid: Grid) -> None:
        self.key, self.grid = key, grid
        #: Its number among all that were made, which is the same on every process.
        self.number = next(_numbers)
        self._memory: dict[int, Any] = {}
        # How much of each place's halo is as its owners have it.
        self._fresh: dict[int, Widths] = {}
        _parts[key] = self

    def memory(self, place: int) -> Any:
        """The numbers of a place as a NumPy array, halo included."""
        array = self._memory.get(place)
        if array is None:
            array = self._memory[place] = memory(self.key, place)
        return array

    def written(self, place: int) -> None:
        """Notes that own cells of a place have changed: the neighbours' halos are out of date."""
        self._fresh.pop(place, None)

    def stale(self, place: int, widths: Widths) -> Widths | None:
        """The widths to exchange so that a halo is up to date, if it is not."""
        fresh = self._fresh.get(place)
        if fresh is None:
            return widths
        pairs = [[max(a, b) for a, b in zip(*both)] for both in zip(fresh, widths)]
        return None if pairs == fresh else pairs

    def refreshed(self, place: int, widths: Widths) -> None:
        """Notes how much of a place's halo is up to date."""
        self._fresh[place] = widths


_numbers = itertools.count()
_parts: weakref.WeakValueDictionary[int, Part] = weakref.WeakValueDictionary()


def memory(key: int, place: int) -> Any:
    """The numbers of a place of a tree as a NumPy array over its memory."""
    import numpy as np

    from aerogel import _dtypes

    native = _native.place_memory(key, place)
    dtype = getattr(_dtypes, native.dtype_name)
    return np.asarray(native).view(_dtypes.numpy_dtype(dtype))


class Plan:
    """The exchanges of a kernel, in the order of its loops."""

    def __init__(self, kernel: str, rows: Sequence[tuple[Any, Any, Any]]) -> None:
        self._rows = [_Row(f"loop {k + 1} of kernel `{kernel}`", *row) for k, row in enumerate(rows)]

    def begin(self) -> _Launch:
        """Called before a launch."""
        return _Launch(self._rows)


class _Launch:
    """The exchanges of a launch. Native code calls it around the loops."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows
        self._next = 0
        #: The sums of the loop that runs, with the numbers that their places had before.
        self._saved: list[tuple[_Sum, Any]] = []

    def before(self, number: int) -> None:
        """Called before a loop. Loops of which this process has no iteration may have been left out before it."""
        self._leave_out(number)
        self._saved = self._rows[number].before()

    def after(self, number: int) -> None:
        """Called after a loop."""
        self._rows[number].after(self._saved)
        self._saved = []
        self._next = number + 1

    def end(self) -> None:
        """Called after a launch."""
        self._leave_out(len(self._rows))

    def failed(self) -> None:
        """Called in place of `end` if the launch has failed: sums are what they were before the loop."""
        for target, saved in self._saved:
            target.restore(saved)
        self._saved = []

    def _leave_out(self, end: int) -> None:
        for number in range(self._next, end):
            self._saved = self._rows[number].before()
            self.after(number)


class _Row:
    """What happens around one loop."""

    def __init__(self, name: str, reads: Any, writes: Any, sums: Any) -> None:
        self._name = name
        self._reads = [(_parts[key], place, widths) for (key, places), widths in reads for place in places]
        self._writes = [(_parts[key], place) for key, places in writes for place in places]
        self._sums = [_Sum(key, place, op) for (key, places), op in sums for place in places]

    def before(self) -> list[tuple[_Sum, Any]]:
        """Brings halos up to date; returns the sums with the numbers that their places had."""
        stale = [(part, place, part.stale(place, widths)) for part, place, widths in self._reads]
        needed = [(part, place, widths) for part, place, widths in stale if widths is not None]
        if needed:
            # Ranks that think that other halos are out of date would take each other's cells for them.
            cells = ", ".join(f"field {part.number}.{place} {widths}" for part, place, widths in needed)
            _comm.agree(f"the exchange before {self._name} (of {cells})")
            exchange(needed)
        # Before the loop, which may fail halfway.
        for part, place in self._writes:
            part.written(place)
        return [(target, target.begin()) for target in self._sums] if _comm.size() > 1 else []

    def after(self, saved: list[tuple[_Sum, Any]]) -> None:
        """Combines sums."""
        if saved:
            _comm.agree(f"the sums of {self._name}")
            for target, before in saved:
                target.end(before)


def exchange(needed: Sequence[tuple[Part, int, Widths]]) -> None:
    """Brings halos up to date: one axis after the other, so that corners come along."""
    grids = dict.fromkeys(part.grid for part, _, _ in needed)
    for grid in grids:
        of_grid = [each for each in needed if each[0].grid is grid]
        for axis in range(len(grid.shape)):
            _exchange_axis(axis, of_grid)
    for part, place, widths in needed:
        part.refreshed(place, widths)


def _exchange_axis(axis: int, needed: Sequence[tuple[Part, int, Widths]]) -> None:
    import numpy as np

    grid = needed[0][0].grid
    comm = _comm.world()
    here = _comm.rank()
    waiting = []
    # What lies above this box fills halos that this box's lower neighbours have above them, and so on.
    received = []
    for side, step in ((0, 1), (1, -1)):
        # Cells for the halo on that side of the neighbour, and where those for the own halo come from.
        to, source = grid.neighbour(axis, step), grid.neighbour(axis, -step)
        faces = [(part, place, widths[axis][side]) for part, place, widths in needed if widths[axis][side]]
        if not faces:
            continue
        if to is not None:
            sent = np.concatenate([_own(part, place, axis, side, width) for part, place, width in faces])
            if to == here:
                received.append((sent, faces, side))
                continue
            waiting.append(comm.Isend([sent, _comm.mpi().BYTE], dest=to, tag=side))
        if source is not None:
            sizes = [_halo(part, place, axis, side, width).nbytes for part, place, width in faces]
            got = np.empty(sum(sizes), np.uint8)
            waiting.append(comm.Irecv([got, _comm.mpi().BYTE], source=source, tag=side))
            received.append((got, faces, side))
    if waiting:
        _comm.mpi().Request.Waitall(waiting)
    for got, faces, side in received:
        at = 0
        for part, place, width in faces:
            halo = _halo(part, place, axis, side, width)
            numbers = got[at : at + halo.nbytes].view(halo.dtype)
            halo[...] = numbers.reshape(halo.shape)
            at += halo.nbytes


def _own(part: Part, place: int, axis: int, side: int, width: int) -> Any:
    """The bytes of own cells for the halo that a neighbour has on a side."""
    import numpy as np

    own = part.grid.own[axis]
    cells = slice(own.stop - width, own.stop) if side == 0 else slice(own.start, own.start + width)
    face = np.ascontiguousarray(part.memory(place)[_along(axis, cells)])
    return face.reshape(-1).view(np.uint8)


def _halo(part: Part, place: int, axis: int, side: int, width: int) -> Any:
    """The cells of the own halo on a side."""
    own = part.grid.own[axis]
    cells = slice(own.start - width, own.start) if side == 0 else slice(own.stop, own.stop + width)
    return part.memory(place)[_along(axis, cells)]


def _along(axis: int, cells: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, cells)


#: So many bytes of all processes' shares are combined at once.
_AT_ONCE = 1 << 20


class _Sum:
    """A place that every process has, and to which all add."""

    def __init__(self, key: int, place: int, op: str) -> None:
        self._key, self._place, self._op = key, place, op

    def begin(self) -> Any:
        """Sets the place to the identity, so that a loop leaves this process' share; returns what was there."""
        import numpy as np

        # Not cached: the memory belongs to a field that a program may drop.
        target = memory(self._key, self._place)
        saved = target.copy()
        info = np.iinfo(target.dtype) if target.dtype.kind in "iu" else None
        lowest, highest = (info.min, info.max) if info else (-np.inf, np.inf)
        target[...] = {"atomic_add": 0, "atomic_min": highest, "atomic_max": lowest}[self._op]
        return saved

    def restore(self, saved: Any) -> None:
        """Sets the place to what was there."""
        memory(self._key, self._place)[...] = saved

    def end(self, saved: Any) -> None:
        """Combines the shares in the order of the processes, on each of them in the same way."""
        import numpy as np

        # As in kernels, minima and maxima take no notice of NaN.
        combine = {"atomic_add": np.add, "atomic_min": np.fmin, "atomic_max": np.fmax}[self._op]
        target = memory(self._key, self._place)
        share = np.ascontiguousarray(target).reshape(-1)
        comm, total = _comm.world(), saved.reshape(-1)
        step = max(1, _AT_ONCE // (share.itemsize * comm.size))
        for at in range(0, share.size, step):
            own = share[at : at + step]
            everyone = np.empty((comm.size, own.size), own.dtype)
            comm.Allgather(own, everyone)
            combined = everyone[0]
            for other in everyone[1:]:
                combined = combine(combined, other)
            total[at : at + step] = combine(total[at : at + step], combined)
        target[...] = total.reshape(target.shape)
