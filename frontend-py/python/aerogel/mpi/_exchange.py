"""What processes send each other around the loops of a kernel.

Before a loop these are cells of halos, after it shares of sums, and what the loop has added to halos.
"""

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

    is_sparse = False

    def __init__(self, key: int, grid: Grid) -> None:
        self.key, self.grid = key, grid
        #: Its number among all that were made, which is the same on every process.
        self.number = next(numbers)
        self._memory: dict[int, Any] = {}
        # How much of each place's halo is as its owners have it.
        self._fresh: dict[int, Widths] = {}
        register(self)

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
        return stale(self._fresh.get(place), widths)

    def refreshed(self, place: int, widths: Widths) -> None:
        """Notes how much of a place's halo is up to date."""
        self._fresh[place] = widths

    def forget(self) -> None:
        """Notes that any cells may have changed."""
        self._fresh.clear()


def stale(fresh: Widths | None, widths: Widths) -> Widths | None:
    """The widths to exchange so that a halo is up to date, if it is not."""
    if fresh is None:
        return widths
    wider = _wider(fresh, widths)
    return None if wider == fresh else wider


def _wider(one: Widths, other: Widths) -> Widths:
    """The larger width on each side of each axis."""
    return [[max(a, b) for a, b in zip(*both)] for both in zip(one, other)]


#: Numbers of parts.
numbers = itertools.count()
_parts: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def register(part: Any) -> None:
    """Notes a part by its tree's key: a :class:`Part`, or a sparse one."""
    _parts[part.key] = part


def forget() -> None:
    """Called after memory has been put back behind the fields' backs, on all processes: no halo is up to date."""
    for part in list(_parts.values()):
        part.forget()


def memory(key: int, place: int) -> Any:
    """The numbers of a place of a tree as a NumPy array over its memory."""
    import numpy as np

    from aerogel import _dtypes

    native = _native.place_memory(key, place)
    dtype = getattr(_dtypes, native.dtype_name)
    return np.asarray(native).view(_dtypes.numpy_dtype(dtype))


class Plan:
    """The exchanges of a kernel, in the order of its loops."""

    def __init__(self, kernel: str, is_derivative: bool, rows: Sequence[tuple[Any, Any, Any, Any, Any]]) -> None:
        of = f"{'the derivative of ' if is_derivative else ''}kernel `{kernel}`"
        self._rows = [_Row(f"loop {k + 1} of {of}", *row) for k, row in enumerate(rows)]

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

    def __init__(self, name: str, reads: Any, adds: Any, writes: Any, sums: Any, trees: Any) -> None:
        self._name = name
        all_reads, all_adds = _reached(reads), _reached(adds)
        self._reads = [each for each in all_reads if not each[0].is_sparse]
        self._adds = [each for each in all_adds if not each[0].is_sparse]
        self._trees = [_Tree(_parts[key], how, all_reads, all_adds) for key, *how in trees]
        self._writes = [(_parts[key], place) for key, places in writes for place in places]
        self._sums = [_Sum(key, place, op) for (key, places), op in sums for place in places]
        # By the places that are out of date, and how much of their halos.
        self._brought: dict[Any, _Messages] = {}
        self._returned: _Messages | None = None

    def before(self) -> list[tuple[_Sum, Any]]:
        """Brings halos up to date; returns the sums with the numbers that their places had."""
        stale = [(part, place, part.stale(place, widths)) for part, place, widths in self._reads]
        needed = [(part, place, widths) for part, place, widths in stale if widths is not None]
        if needed:
            key = tuple((part.number, place, str(widths)) for part, place, widths in needed)
            messages = self._brought.get(key)
            if messages is None:
                messages = self._brought[key] = _Messages(needed, returns=False)
            # Ranks that think that other halos are out of date would take each other's cells for them.
            _comm.begin_to_agree(f"the exchange before {self._name} (of {messages.cells})")
            messages.run()
            for part, place, widths in needed:
                part.refreshed(place, widths)
        for part, place, _ in self._adds:
            # The loop leaves there what it adds to the cells, and nothing else.
            _clear_halo(part, place)
        for tree in self._trees:
            tree.before(self._name)
        # Before the loop, which may fail halfway.
        for part, place in self._writes:
            part.written(place)
        return [(target, target.begin()) for target in self._sums] if _comm.size() > 1 else []

    def after(self, saved: list[tuple[_Sum, Any]]) -> None:
        """Combines sums, and sends what has been added to halos to the processes that have the cells."""
        if self._adds:
            messages = self._returned = self._returned or _Messages(self._adds, returns=True)
            _comm.begin_to_agree(f"what {self._name} has added beyond the own cells (of {messages.cells})")
            messages.run()
        for tree in self._trees:
            tree.after(self._name)
        if saved:
            _comm.agree(f"the sums of {self._name}")
            for target, before in saved:
                target.end(before)


class _Tree:
    """What happens to a sparse tree around one loop."""

    def __init__(self, part: Any, how: Sequence[bool], reads: Any, adds: Any) -> None:
        self._part = part
        self._reads_cells, self._changes = how
        self._reads = {place: widths for of, place, widths in reads if of is part}
        self._adds = [place for of, place, _ in adds if of is part]

    def before(self, name: str) -> None:
        """Brings the halo up to date."""
        if self._reads_cells:
            self._part.refresh(name, self._reads)
        if self._adds:
            self._part.clear(self._adds)
        if self._changes:
            self._part.forget()

    def after(self, name: str) -> None:
        """Sends what has been added to the halo to the processes that have the cells."""
        if self._adds:
            self._part.bring_back(name, self._adds)


# A place of the memory of fields, and the widths of its halo that are exchanged. A part may be a sparse one.
_Reached = tuple[Any, int, Widths]


def _reached(rows: Any) -> list[_Reached]:
    """Rows with the keys of parts as places: each once, since several fields may have it."""
    widest: dict[tuple[int, int], Widths] = {}
    for (key, places), widths in rows:
        for place in places:
            widest[key, place] = _wider(widest.setdefault((key, place), widths), widths)
    return [(_parts[key], place, widths) for (key, place), widths in widest.items()]


def _by_grid(rows: Sequence[_Reached]) -> list[list[_Reached]]:
    grids = dict.fromkeys(part.grid for part, _, _ in rows)
    return [[each for each in rows if each[0].grid is grid] for grid in grids]


class _Messages:
    """What an exchange sends and receives: buffers that are made once, and the cells that they hold."""

    def __init__(self, rows: Sequence[_Reached], returns: bool) -> None:
        """Those of some places.

        Args:
            rows: The places, each with the widths of its halo that are exchanged.
            returns: Whether what halos hold is added to the cells that they are of: the adjoint of the other exchange,
                which brings halos up to date.
        """
        #: What the check that all processes do the same is told.
        self.cells = ", ".join(f"field {part.number}.{place} {widths}" for part, place, widths in rows)
        self._returns = returns
        self._steps: list[_Step] = []
        for of_grid in _by_grid(rows):
            # One axis after the other, so that corners come along; the adjoint goes backwards.
            axes = range(len(of_grid[0][0].grid.shape))
            for axis in reversed(axes) if returns else axes:
                self._steps.append(_Step(axis, of_grid, returns))

    def run(self) -> None:
        """Exchanges them."""
        for step in self._steps:
            step.run(self._returns)


class _Step:
    """The messages along one axis of a grid, both ways."""

    def __init__(self, axis: int, rows: Sequence[_Reached], returns: bool) -> None:
        grid, here = rows[0][0].grid, _comm.rank()
        give, take = (_halo, _own) if returns else (_own, _halo)
        #: Cells and the part of a buffer that they are copied to before, or from after.
        self.takes: list[tuple[Any, Any]] = []
        self.puts: list[tuple[Any, Any]] = []
        # Buffers with the process and the side.
        self._sent: list[tuple[Any, int, int]] = []
        self._received: list[tuple[Any, int, int]] = []
        for side in (0, 1):
            # The cells of a halo on this side are those of the neighbour there.
            faces = [(part, place, widths[axis][side]) for part, place, widths in rows if widths[axis][side]]
            there, back = grid.neighbour(axis, 2 * side - 1), grid.neighbour(axis, 1 - 2 * side)
            to, source = (there, back) if returns else (back, there)
            if not faces:
                continue
            if to is not None:
                buffer, both = _buffer([give(part, place, axis, side, width) for part, place, width in faces])
                self.takes += both
                if to == here:
                    cells = _joined([take(part, place, axis, side, width) for part, place, width in faces])
                    self.puts += [(face, numbers) for face, (_, numbers) in zip(cells, both)]
                    continue
                self._sent.append((buffer, to, side))
            if source is not None:
                buffer, both = _buffer([take(part, place, axis, side, width) for part, place, width in faces])
                self.puts += both
                self._received.append((buffer, source, side))

    def run(self, adds: bool) -> None:
        """Exchanges the cells along the axis: sets them, or adds to them."""
        comm, kind = _comm.world(), None
        waiting = []
        if self._received or self._sent:
            kind = _comm.mpi().BYTE
            waiting = [comm.Irecv([buffer, kind], source=source, tag=side) for buffer, source, side in self._received]
        for cells, numbers in self.takes:
            numbers[...] = cells
        waiting += [comm.Isend([buffer, kind], dest=to, tag=side) for buffer, to, side in self._sent]
        if waiting:
            _comm.wait(waiting)
        for cells, numbers in self.puts:
            if adds:
                cells += numbers
            else:
                cells[...] = numbers


def _joined(faces: Sequence[Any]) -> list[Any]:
    """The same cells in fewer arrays: components of a vector, side by side in memory, become an axis of one array."""
    import numpy as np

    def start(face: Any) -> int:
        return face.__array_interface__["data"][0]

    def is_alike(face: Any, other: Any) -> bool:
        return (face.dtype, face.shape, face.strides) == (other.dtype, other.shape, other.strides)

    out, at = [], 0
    while at < len(faces):
        first, end, step = faces[at], at + 1, 0
        while end < len(faces) and is_alike(first, faces[end]):
            apart = start(faces[end]) - start(faces[end - 1])
            if step not in (0, apart):
                break
            step, end = apart, end + 1
        n = end - at
        strided = np.lib.stride_tricks.as_strided
        out.append(strided(first, (*first.shape, n), (*first.strides, step)) if n > 1 else first)
        at = end
    return out


def _buffer(faces: Sequence[Any]) -> tuple[Any, list[tuple[Any, Any]]]:
    """A buffer for some cells, and these with the part of the buffer for each, which is contiguous."""
    import numpy as np

    buffer, at, both = np.empty(sum(face.nbytes for face in faces), np.uint8), 0, []
    for face in _joined(faces):
        both.append((face, buffer[at : at + face.nbytes].view(face.dtype).reshape(face.shape)))
        at += face.nbytes
    return buffer, both


def _clear_halo(part: Part, place: int) -> None:
    """Sets all cells that are not the own ones to zero."""
    numbers = part.memory(place)
    for axis, own in enumerate(part.grid.own):
        numbers[_along(axis, slice(0, own.start))] = 0
        numbers[_along(axis, slice(own.stop, None))] = 0


def _own(part: Part, place: int, axis: int, side: int, width: int) -> Any:
    """The own cells that a neighbour has in its halo on a side."""
    own = part.grid.own[axis]
    cells = slice(own.stop - width, own.stop) if side == 0 else slice(own.start, own.start + width)
    return part.memory(place)[_along(axis, cells)]


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
