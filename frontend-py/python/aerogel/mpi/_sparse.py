"""Sparse trees on a grid, ``ti.root.pointer(ti.ij, grid)``: each process has its own cells, and copies of others.

On every process the tree has the shape of the whole grid, so indices mean the same everywhere. A process stores nothing
in cells that are neither its own nor in its halo.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from aerogel import _dtypes, _native
from aerogel.data import snode
from aerogel.data._quant import QuantType
from aerogel.data.axes import Axis
from aerogel.data.field import MatrixField, ScalarField
from aerogel.errors import AerogelNotSupportedError, AerogelSyntaxError
from aerogel.mpi import _comm, _exchange, _fields
from aerogel.mpi._exchange import Widths
from aerogel.mpi._grid import Grid

_OUTERMOST = ("pointer", "hash", "bitmasked", "dense")


def outermost(root: snode.SNode, kind: str, axes: Any, grid: Grid) -> snode.SNode:
    """Adds the outermost node of a tree on a grid: a grid's cell is a cell of it.

    Under ``ti.root`` the tree is one of its own; a ``ti.FieldsBuilder`` has no other nodes.
    """
    if root._parent is not None:
        raise AerogelSyntaxError(
            "a grid is the shape of an outermost node, ti.root.pointer(ti.ij, grid): nodes below it have numbers"
        )
    _check_axes(axes, grid)
    if kind not in _OUTERMOST:
        raise AerogelNotSupportedError(f"a {kind} node cannot be divided among ranks: use {', '.join(_OUTERMOST)}")
    tree = root._tree
    if tree is snode.root._builder:
        tree = snode.FieldsBuilder()
    elif root._children or root._fields:
        raise AerogelSyntaxError("a layout with a grid has no other outermost node: use another ti.FieldsBuilder()")
    node = tree.root._add(kind, axes, grid.shape)
    tree._part = SparsePart(grid)
    return node


def _check_axes(axes: Any, grid: Grid) -> None:
    numbers = [axis.value for axis in ([axes] if isinstance(axes, Axis) else axes)]
    if numbers != list(range(len(grid.shape))):
        raise AerogelSyntaxError(f"a grid of shape {grid.shape} needs its {len(grid.shape)} axes in order, ti.i first")


def check_below(node: snode.SNode, kind: str, axes: Sequence[Axis]) -> None:
    """Raises an error if a node cannot be added to a tree on a grid."""
    if node._parent is None:
        raise AerogelSyntaxError("a layout with a grid has no other outermost node: use another ti.FieldsBuilder()")
    if kind not in _OUTERMOST:
        raise AerogelNotSupportedError(f"there are no {kind} nodes below a grid: use {', '.join(_OUTERMOST)}")
    if any(axis.value not in node._extents() for axis in axes):
        raise AerogelSyntaxError("the nodes below a grid have the axes of the grid")


class SparsePart:
    """The memory of a sparse tree on a grid, as one process has it."""

    is_sparse = True

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        #: Its number among all that were made, which is the same on every process.
        self.number = next(_exchange.numbers)
        self.key = 0
        # Whether the halo's cells are active where their owners' are, and how much of each place's halo is up to date.
        self._are_cells_fresh = False
        self._fresh: dict[int, Widths] = {}

    def adopt(self, node: snode.SNode, field: Any, offset: Any) -> None:
        """Makes a field that is placed in the tree one that processes share."""
        if node._parent is None:
            raise AerogelSyntaxError("a field on a grid is placed in a node: ti.root.pointer(ti.ij, grid).place(x)")
        if isinstance(field.dtype, QuantType):
            raise AerogelNotSupportedError("split fields have no quantised types")
        if offset is not None:
            raise AerogelSyntaxError("a field on a grid has no offset: its indices begin at 0")
        if field._needed or field._derivative_kind:
            raise AerogelNotSupportedError(
                "fields of sparse trees on a grid have no gradients; those whose shape is a grid have: "
                "ti.field(ti.f32, shape=grid, needs_grad=True)"
            )
        out: Any = field
        is_matrix = isinstance(field, MatrixField)
        out.__class__ = SparseMatrixField if is_matrix else SparseField
        out._part = self

    def laid_out(self, native: Any) -> None:
        """Called when the tree has been laid out."""
        self.key = native.key()
        if not _native.split_cells(self.key).sparse_nodes():
            raise AerogelNotSupportedError(
                "a layout on a grid without sparse nodes: use a field whose shape is the grid, "
                "ti.field(ti.f32, shape=grid)"
            )
        if self.grid.is_whole:
            return
        axes = zip(self.grid.shape, self.grid.box, self.grid.ranks, self.grid.periodic)
        width = self.grid.width
        described = [(n, lo, hi, width if m > 1 else 0, wraps) for n, (lo, hi), m, wraps in axes]
        native.split(described, self.grid.is_trusted, True)
        _exchange.register(self)

    def written(self, place: int) -> None:
        """Notes that own elements of a place have changed, but not which are active."""
        self._fresh.pop(place, None)

    def forget(self) -> None:
        """Notes that any cells may have changed."""
        self._are_cells_fresh = False
        self._fresh.clear()

    def is_own(self, coordinates: Any, shape: Sequence[int]) -> Any:
        """Which rows of indices are of own cells."""
        import numpy as np

        own = np.ones(len(coordinates), bool)
        for axis, ((lo, hi), n, whole) in enumerate(zip(self.grid.box, self.grid.shape, shape)):
            per_cell = whole // n
            own &= (coordinates[:, axis] >= lo * per_cell) & (coordinates[:, axis] < hi * per_cell)
        return own

    def refresh(self, name: str, reads: dict[int, Widths]) -> None:
        """Makes the halo as its owners have it: which cells are active, and some places of it."""
        import numpy as np

        cells = _native.split_cells(self.key)
        if not self._are_cells_fresh:
            _comm.agree(f"the exchange of active cells before {name} (of layout {self.number})")
            nodes = cells.sparse_nodes()
            sent = {
                rank: [bytes(cells.cells(node, self._shared(here, rank, shape))) for node, shape in nodes]
                for here, rank in self._neighbours()
            }
            for rank, lists in _swap(sent):
                for (node, shape), wanted in zip(nodes, lists):
                    found = bytes(cells.cells(node, self._shared(rank, _comm.rank(), shape)))
                    want, have = (np.frombuffer(rows, np.int32).reshape(-1, len(shape)) for rows in (wanted, found))
                    numbers = [np.ravel_multi_index(tuple(rows.T), tuple(shape)) for rows in (want, have)]
                    cells.deactivate(node, have[~np.isin(numbers[1], numbers[0])].tobytes())
                    cells.activate(node, want[~np.isin(numbers[0], numbers[1])].tobytes())
            self._are_cells_fresh = True
            self._fresh.clear()
        stale = {place: _exchange.stale(self._fresh.get(place), widths) for place, widths in reads.items()}
        needed = {place: widths for place, widths in stale.items() if widths is not None}
        if not needed:
            return
        _comm.agree(f"the exchange before {name} (of layout {self.number}, {needed})")

        def values(owner: int, reader: int) -> Iterator[tuple[int, bytes]]:
            for place, widths in needed.items():
                yield place, bytes(cells.cells(place, self._shared(owner, reader, cells.describe(place)[0], widths)))

        sent = {
            rank: [bytes(cells.read(place, rows)) for place, rows in values(here, rank)]
            for here, rank in self._neighbours()
        }
        # Both processes visit the same active elements in the same order.
        for rank, lists in _swap(sent):
            for (place, rows), received in zip(values(rank, _comm.rank()), lists):
                cells.write(place, rows, received)
        self._fresh.update(needed)

    def clear(self, places: Sequence[int]) -> None:
        """Sets places of the halo to zero: a loop leaves there what it adds to the cells."""
        cells = _native.split_cells(self.key)
        for place in places:
            shape, dtype = cells.describe(place)
            for here, rank in self._neighbours():
                rows = bytes(cells.cells(place, self._shared(rank, here, shape)))
                n = len(rows) // (4 * len(shape))
                cells.write(place, rows, bytes(n * _item(dtype)))

    def bring_back(self, name: str, places: Sequence[int]) -> None:
        """Adds what a loop has added to places of the halo to the elements of their owners, which become active."""
        import numpy as np

        _comm.agree(f"what {name} has added beyond the own cells (of layout {self.number}, {places})")
        cells = _native.split_cells(self.key)
        sent: dict[int, list[tuple[bytes, bytes]]] = {}
        for here, rank in self._neighbours():
            rows = [bytes(cells.cells(p, self._shared(rank, here, cells.describe(p)[0]))) for p in places]
            sent[rank] = [(each, bytes(cells.read(place, each))) for place, each in zip(places, rows)]
        for _, lists in _swap(sent):
            for place, (rows, added) in zip(places, lists):
                dtype = _dtypes.numpy_dtype(getattr(_dtypes, cells.describe(place)[1]))
                before = np.frombuffer(cells.read(place, rows), dtype)
                cells.write(place, rows, (before + np.frombuffer(added, dtype)).tobytes())
        self.forget()

    def _neighbours(self) -> Iterator[tuple[int, int]]:
        """This process and each of those with cells beside its own, in the order of their numbers."""
        here, ranks = _comm.rank(), set()
        for steps in itertools.product((-1, 0, 1), repeat=len(self.grid.ranks)):
            ranks.add(self.grid.beside(steps))
        return ((here, rank) for rank in sorted(rank for rank in ranks if rank not in (None, here)))

    def _shared(
        self, owner: int, reader: int, shape: Sequence[int], widths: Widths | None = None
    ) -> list[list[tuple[int, int]]]:
        """Boxes of the owner's cells that the reader has in its halo.

        Args:
            owner: A process.
            reader: Another one.
            shape: That of the node whose cells they are.
            widths: The width of the halo in cells of the node, for each axis below and above; all of it if left out.
        """
        along = []
        for axis, (n, m, wraps) in enumerate(zip(self.grid.shape, self.grid.ranks, self.grid.periodic)):
            per_cell = shape[axis] // n
            (first, end), (lo, hi) = (
                [at * per_cell for at in self.grid.box_of(rank)[axis]] for rank in (owner, reader)
            )
            below, above = widths[axis] if widths else [self.grid.width * per_cell] * 2
            shifts = (-shape[axis], 0, shape[axis]) if wraps and m > 1 else (0,)
            parts = [(max(first, lo - below + by), min(end, hi + above + by)) for by in shifts]
            along.append(_union([part for part in parts if part[0] < part[1]]))
        return [list(box) for box in itertools.product(*along)]


def _union(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges that do not overlap, with the same numbers."""
    out: list[tuple[int, int]] = []
    for lo, hi in sorted(parts):
        if out and lo <= out[-1][1]:
            out[-1] = (out[-1][0], max(hi, out[-1][1]))
        else:
            out.append((lo, hi))
    return out


def _item(dtype: str) -> int:
    import numpy as np

    return np.dtype(_dtypes.numpy_dtype(getattr(_dtypes, dtype))).itemsize


def _swap(sent: dict[int, Any]) -> list[tuple[int, Any]]:
    """Sends something to each of some processes, and receives as much from each, in the order of their numbers."""
    comm = _comm.world()
    waiting = [comm.isend(what, dest=rank) for rank, what in sent.items()]
    received = [(rank, comm.recv(source=rank)) for rank in sorted(sent)]
    for request in waiting:
        request.wait()
    return received


class _Sparse(_fields._Split):
    """What fields of sparse trees on a grid have."""

    _part: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis of the whole field."""
        return super(_fields._Split, self).shape

    def _owner(self, index: Sequence[int]) -> int:
        sizes = zip(index, self.shape, self.grid.shape)
        return self.grid.owner([i // (whole // n) for i, whole, n in sizes])

    def _written(self) -> None:
        self._part.forget()

    def local(self) -> Any:
        """Raises an error: there is no array of the own cells."""
        raise AerogelNotSupportedError("the own cells of a sparse field are no array: use active_cells or a kernel")

    def active_cells(self) -> tuple[Any, Any]:
        """Indices and values of all active elements, those of rank 0 first. All processes must call it."""
        import numpy as np

        _comm.agree(self._what("active_cells()"))
        comm = _comm.world()
        parts = [self._own_cells()] if comm is None else comm.allgather(self._own_cells())
        indices, values = zip(*parts)
        return np.concatenate(indices), np.concatenate(values)

    def _own_cells(self) -> tuple[Any, Any]:
        indices, values = super(_fields._Split, self).active_cells()
        own = self._part.is_own(indices, self.shape)
        return indices[own], values[own]

    def gather(self, root: int = 0) -> Any:
        """All elements as a new NumPy array on the process ``root``; nothing on others. All processes must call it."""
        _comm.agree(self._what(f"gather({root})"))
        comm = _comm.world()
        parts = [self._own_cells()] if comm is None else comm.gather(self._own_cells(), root=root)
        return None if parts is None else self._joined(parts)

    def _copy_to(self, array: Any) -> None:
        comm = _comm.world()
        parts = [self._own_cells()] if comm is None else comm.allgather(self._own_cells())
        array[...] = self._joined(parts)

    def _joined(self, boxes: Sequence[Any]) -> Any:
        import numpy as np

        out = np.zeros(self._array_shape(), _dtypes.numpy_dtype(self.dtype))  # type: ignore[arg-type]
        for indices, values in boxes:
            out[tuple(indices.T)] = values
        return out

    def from_numpy(self, arr: Any) -> None:
        """Sets all active elements from a NumPy array of the whole field, the same on every process."""
        self._expect_no_recorder()
        super(_fields._Split, self).from_numpy(arr)
        self._written()

    def copy_from(self, other: Any) -> None:
        """Raises an error: all elements would become active."""
        self._refused()


class SparseField(_Sparse, _fields.SplitField):
    """A field of numbers in a sparse tree that processes share."""


class SparseMatrixField(_Sparse, _fields.SplitMatrixField):
    """A field of vectors or matrices in a sparse tree that processes share."""

    def get_scalar_field(self, *indices: int) -> ScalarField:
        """The field of one component, sharing its memory."""
        component: Any = MatrixField.get_scalar_field(self, *indices)
        component.__class__, component._part = SparseField, self._part
        return component
