"""Particles that belong to the process in whose box of a grid they lie, and move to another one with their position."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import DataType, dtype_of, i32, i64, numpy_dtype
from aerogel._outside import outside_kernels
from aerogel.data.field import converted, field, numbers
from aerogel.data.matrix_type import MatrixType
from aerogel.errors import AerogelExtentError, AerogelNotSupportedError, AerogelRuntimeError
from aerogel.mpi import _comm
from aerogel.mpi._grid import Grid

# The attributes that all particles have besides those of the program.
_OWN = ("alive", "id")


class Particles:
    """Particles in the boxes of a grid: each process has room for some, and those that lie in its box.

    An attribute ``x`` is the field ``particles.x``, with a slot for each particle that any process has room for.
    ``for p in particles.x`` runs over the slots of the own process; a slot ``p`` has a particle if
    ``particles.alive[p]`` is 1. In such a loop, kernels store to attributes of the particle ``p``, and read cells
    around it or add to them. These are cells of grids that were made with ``halo=n``, within ``n`` cells of the own
    box.

    >>> import numpy as np
    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> grid = ti.mpi.grid((16, 16), halo=1)
    >>> particles = ti.mpi.Particles(grid, 100, x=ti.math.vec2, mass=ti.f32)
    >>> particles.add(x=np.random.default_rng(0).random((50, 2)) * 16, mass=np.ones(50))
    >>> count = ti.field(ti.f32, shape=grid)
    >>> @ti.kernel
    ... def move_and_count():
    ...     for p in particles.x:
    ...         if particles.alive[p]:
    ...             particles.x[p] = ti.math.min(particles.x[p] + 0.5, 15.9)
    ...     for p in particles.x:
    ...         if particles.alive[p]:
    ...             count[ti.floor(particles.x[p], ti.i32)] += particles.mass[p]
    >>> n_moved = particles.migrate()
    >>> move_and_count()
    >>> float(count.to_numpy().sum()), particles.count()
    (50.0, 50)
    """

    #: Whether a slot has a particle, 0 or 1.
    alive: Any
    #: The number of each particle: the first that was added has 0.
    id: Any

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @outside_kernels
    def __init__(
        self,
        grid: Grid,
        capacity: int,
        *,
        position: str = "x",
        origin: float | Sequence[float] = 0.0,
        spacing: float | Sequence[float] = 1.0,
        **attributes: Any,
    ) -> None:
        """Makes room for particles; all processes must call it.

        Args:
            grid: The boxes of the processes.
            capacity: How many particles each process has room for.
            position: The attribute that says where a particle lies: a float for each axis of the grid.
            origin: The position of the corner of cell 0, for all axes or for each.
            spacing: The size of a cell. The cell of a position is ``floor((x - origin) / spacing)``, computed in the
                type of the position. A kernel that computes it by another formula, such as ``x * inv_dx``, may reach
                the cell beside it: give the grid a halo that is one cell wider.
            attributes: The dtype of each attribute: a scalar, vector or matrix type.

        Raises:
            AerogelExtentError: There is no room, or there are more slots than indices.
            TypeError: The position is no vector of floats with a component for each axis.
            ValueError: A name is taken, or the spacing is not above 0.
        """
        self.grid, self.capacity = grid, operator.index(capacity)
        if self.capacity < 1 or self.capacity * _comm.size() > 2**31 - 1:
            raise AerogelExtentError(
                f"{self.capacity} particles for each of {_comm.size()} ranks: there is room for at least 1 on each, "
                "and at most 2147483647 on all"
            )
        n_axes = len(grid.shape)
        given = attributes.get(position)
        is_position = isinstance(given, MatrixType) and given.ndim == 1 and given.n == n_axes and given.dtype.is_float
        if not is_position and not (n_axes == 1 and isinstance(given, DataType) and given.is_float):
            raise TypeError(
                f"the position `{position}` is a vector of {n_axes} floats, such as ti.types.vector({n_axes}, ti.f32), "
                f"not {given!r}"
            )
        self._origin, self._spacing = _for_axes(origin, n_axes), _for_axes(spacing, n_axes)
        if not all(step > 0 for step in self._spacing):
            raise ValueError(f"the spacing of cells is above 0, not {spacing}")
        self._position = position
        # Split wherever the cells are, so that a loop over both is one of a process.
        self._slots = Grid((self.capacity * _comm.size(),), 0, (False,), is_divided=not grid.is_whole)
        self._slots.is_trusted = False
        self._attributes: dict[str, Any] = {}
        self._next = 0
        self._number = next(_numbers)
        _comm.agree(f"ti.mpi.Particles({grid.shape}, {self.capacity}, {_described(attributes)})")
        for name, dtype in {**attributes, "alive": i32, "id": i64}.items():
            if name in attributes and (name in _OWN or hasattr(self, name) or name.startswith("_")):
                raise ValueError(f"`{name}` cannot be the name of an attribute of particles")
            made = field(dtype, self._slots, name=name)
            self._attributes[name] = made
            setattr(self, name, made)

    def add(self, **values: Any) -> None:
        """Adds particles: each process takes those that lie in its box.

        All processes must call it with the same particles.

        Args:
            values: NumPy arrays, the first axis of which counts particles: one for each attribute. Attributes without
                one are zero.

        Raises:
            AerogelRuntimeError: A process has no room for those in its box.
            ValueError: There are no positions; the arrays have other shapes, or are of no attribute.
        """
        import numpy as np

        expect_no_recorder()
        own = [name for name in self._attributes if name not in _OWN]
        for name in values:
            if name not in own:
                raise ValueError(f"the particles have no attribute `{name}`; there are {', '.join(own)}")
        if self._position not in values:
            raise ValueError(f"the positions are missing: `{self._position}`")
        n = len(values[self._position])
        arrays = {}
        for name, given in values.items():
            target = self._attributes[name]
            array = np.asarray(converted(numbers(given, target.dtype), target.dtype), numpy_dtype(target.dtype))
            shape = (n, *target._array_shape()[1:])
            if array.shape != shape:
                raise ValueError(f"`{name}` of {n} particles has the shape {shape}, not {array.shape}")
            arrays[name] = array
        _comm.agree(f"{self._what()}.add of {n} particles")
        mine = np.flatnonzero(self._owners(arrays[self._position]) == _comm.rank())
        free = np.flatnonzero(self.alive.local() == 0)
        self._expect_room(len(mine) - len(free))
        free = free[: len(mine)]
        arrays["id"] = np.arange(self._next, self._next + n)
        for name, target in self._attributes.items():
            target.local()[free] = 1 if name == "alive" else arrays[name][mine] if name in arrays else 0
        self._next += n
        self._written()

    def migrate(self) -> int:
        """Sends each particle to the process in whose box it lies; call it after positions have changed.

        Beyond the edge of the grid the nearest cell counts, or along a periodic axis the cell on the other side; the
        position stays as it is. All processes must call it.

        Returns:
            How many particles went to other processes, in all.

        Raises:
            AerogelRuntimeError: A process has no room for those that come: nothing is moved then.
        """
        import numpy as np

        expect_no_recorder()
        comm = _comm.world()
        if comm is None:
            return 0
        _comm.agree(f"{self._what()}.migrate()")
        slots = np.flatnonzero(self.alive.local())
        owners = self._owners(self._attributes[self._position].local()[slots])
        leaves = owners != comm.rank
        leaving, to = slots[leaves], owners[leaves]
        # By process, and those for one process by number: they arrive in an order that does not depend on slots.
        leaving = leaving[np.lexsort((self.id.local()[leaving], to))]
        sent = np.bincount(to, minlength=comm.size)
        received = np.empty_like(sent)
        comm.Alltoall(sent, received)
        free = np.flatnonzero(self.alive.local() == 0)
        n = int(received.sum())
        n_moved = self._expect_room(n - len(leaving) - len(free), len(leaving))
        if n_moved == 0:
            return 0
        views = [target.local() for target in self._attributes.values()]
        sizes = [view.dtype.itemsize * view[0].size for view in views]
        # A row for each particle: all attributes, one behind the other.
        rows = np.empty((len(leaving), sum(sizes)), np.uint8)
        for view, size, end in zip(views, sizes, itertools.accumulate(sizes)):
            rows[:, end - size : end] = np.ascontiguousarray(view[leaving]).view(np.uint8).reshape(len(leaving), size)
        arrived = np.empty((n, sum(sizes)), np.uint8)
        record = _comm.mpi().BYTE.Create_contiguous(sum(sizes)).Commit()
        try:
            comm.Alltoallv([rows, (sent, _starts(sent)), record], [arrived, (received, _starts(received)), record])
        finally:
            record.Free()
        self.alive.local()[leaving] = 0
        slots = np.concatenate([leaving, free])[:n]
        for view, size, end in zip(views, sizes, itertools.accumulate(sizes)):
            column = np.ascontiguousarray(arrived[:, end - size : end]).view(view.dtype)
            view[slots] = column.reshape(n, *view.shape[1:])
        self._written()
        return n_moved

    def count(self) -> int:
        """How many particles there are, on all processes. All processes must call it."""
        return self._sum(int((self.alive.local() != 0).sum()), f"{self._what()}.count()")

    def to_numpy(self, name: str) -> Any:
        """An attribute of all particles in the order of their numbers, the same on every process.

        All processes must call it.

        Raises:
            ValueError: There is no such attribute.
        """
        import numpy as np

        if name not in self._attributes:
            raise ValueError(f"the particles have no attribute `{name}`; there are {', '.join(self._attributes)}")
        _comm.agree(f"{self._what()}.to_numpy({name!r})")
        slots = np.flatnonzero(self.alive.local())
        own = (self.id.local()[slots], np.ascontiguousarray(self._attributes[name].local()[slots]))
        comm = _comm.world()
        parts = [own] if comm is None else comm.allgather(own)
        ids, values = (np.concatenate([part[k] for part in parts]) for k in range(2))
        return values[np.argsort(ids, kind="stable")]

    def _owners(self, positions: Any) -> Any:
        """The process that has the cell of each position."""
        import numpy as np

        # In the type of the positions, as a kernel computes it.
        positions = positions.reshape(len(positions), len(self.grid.shape))
        of_type = positions.dtype.type
        number = np.zeros(len(positions), np.int64)
        grid = self.grid
        for axis, (n, m, wraps) in enumerate(zip(grid.shape, grid.ranks, grid.periodic)):
            cell = np.floor((positions[:, axis] - of_type(self._origin[axis])) / of_type(self._spacing[axis]))
            # A position that is no number stays somewhere.
            cell = np.nan_to_num(cell.astype(np.float64), nan=0.0)
            cell = (np.mod(cell, n) if wraps else np.clip(cell, 0, n - 1)).astype(np.int64)
            number = number * m + ((cell + 1) * m - 1) // n
        return number

    def _expect_room(self, excess: int, moved: int = 0) -> int:
        """Checks that no process lacks room; returns the sum of ``moved`` over all."""
        import numpy as np

        comm = _comm.world()
        most, n_moved = excess, moved
        if comm is not None:
            both = np.empty((comm.size, 2), np.int64)
            comm.Allgather(np.array([excess, moved], np.int64), both)
            most, n_moved = int(both[:, 0].max()), int(both[:, 1].sum())
        if most > 0:
            raise AerogelRuntimeError(
                f"{self._what()} lack room: a rank has room for {self.capacity} and needs {self.capacity + most}; make "
                "them with a larger capacity"
            )
        return n_moved

    def _sum(self, own: int, what: str) -> int:
        comm = _comm.world()
        if comm is None:
            return own
        _comm.agree(what)
        return comm.allreduce(own)

    def _written(self) -> None:
        for target in self._attributes.values():
            target._written()

    def _what(self) -> str:
        return f"particles {self._number}"

    def __repr__(self) -> str:
        own = ", ".join(name for name in self._attributes if name not in _OWN)
        return f"<ti.mpi.Particles with {own} on {_comm.size()} ranks, {self.capacity} on each>"


_numbers = itertools.count()


def expect_no_recorder() -> None:
    """Refuses what a tape cannot record."""
    if _native.recorder() is not None:
        raise AerogelNotSupportedError("particles cannot be added or sent to other ranks inside of a tape")


def _for_axes(given: Any, n: int) -> tuple[float, ...]:
    values = tuple(float(x) for x in (given if hasattr(given, "__len__") else (given,) * n))
    if len(values) != n:
        raise ValueError(f"there are {len(values)} numbers for {n} axes")
    return values


def _starts(counts: Any) -> Any:
    """Where the rows of each process begin."""
    return [0, *itertools.accumulate(int(k) for k in counts[:-1])]


def _described(attributes: dict[str, Any]) -> str:
    types = {name: dtype if isinstance(dtype, MatrixType) else dtype_of(dtype) for name, dtype in attributes.items()}
    return ", ".join(f"{name}={dtype}" for name, dtype in types.items())
