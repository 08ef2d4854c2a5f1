"""Fields split along a grid: what a program does with them outside of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from aerogel import _native
from aerogel._dtypes import numpy_dtype
from aerogel.data._quant import QuantType
from aerogel.data.field import MatrixField, NumericField, ScalarField, alike, converted, numbers
from aerogel.data.matrix import Matrix
from aerogel.errors import AerogelIndexError, AerogelNotSupportedError
from aerogel.mpi import _comm
from aerogel.mpi._exchange import Part
from aerogel.mpi._grid import Grid

if TYPE_CHECKING:
    _Base = NumericField
else:
    _Base = object


class _Split(_Base):
    """What split fields have besides those of one process."""

    _part: Part
    _is_split = True

    @property
    def grid(self) -> Grid:
        """The grid along which the field is split."""
        return self._part.grid

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis of the whole field."""
        return self.grid.shape

    def _what(self, does: str) -> str:
        number = f"field {self._part.number}.{self._places()[1][0]}"
        return f"{self._name or number}.{does}"

    def _written(self) -> None:
        for place in self._places()[1]:
            self._part.written(place)

    def local(self) -> Any:
        """The own cells of this process as a NumPy array over the field's memory.

        Its shape is that of the process' box, and behind it that of an element. After a write to it, call
        ``f.local_written()``, so that other processes are sent the new values.
        """
        import numpy as np

        own = [self._part.memory(place)[self.grid.own] for place in self._places()[1]]
        element = self._array_shape()[len(self.shape) :]
        if not element:
            return own[0]
        starts = [array.__array_interface__["data"][0] for array in own]
        steps = {b - a for a, b in zip(starts, starts[1:])} or {own[0].itemsize}
        step = steps.pop()
        if steps:
            raise AerogelNotSupportedError("the components of the field are not evenly spaced in memory")
        inner = [step]
        for n in reversed(element[1:]):
            inner.insert(0, inner[0] * n)
        return np.lib.stride_tricks.as_strided(own[0], own[0].shape + element, own[0].strides + tuple(inner))

    def local_written(self) -> None:
        """Notes a write through :meth:`local`. All processes must call it."""
        self._expect_no_recorder()
        self._written()

    def _expect_no_recorder(self) -> None:
        recorder = _native.recorder()
        if recorder is not None:
            raise AerogelNotSupportedError(
                f"{recorder.called} does not record writes from Python to elements of a split field: write them "
                "before it begins, or in a kernel"
            )

    def gather(self, root: int = 0) -> Any:
        """All elements as a new NumPy array on the process ``root``; nothing on others. All processes must call it."""
        _comm.agree(self._what(f"gather({root})"))
        comm = _comm.world()
        if comm is None:
            return self.local().copy()
        boxes = comm.gather(self._packed(), root=root)
        return None if boxes is None else self._joined(boxes)

    def to_numpy(self, *args: Any, **kwargs: Any) -> Any:
        """All elements as a new NumPy array, the same on every process. All processes must call it.

        It takes what ``to_numpy`` of other fields takes.
        """
        _comm.agree(self._what("to_numpy()"))
        return super().to_numpy(*args, **kwargs)

    def _copy_to(self, array: Any) -> None:
        comm = _comm.world()
        boxes = [self._packed()] if comm is None else comm.allgather(self._packed())
        array[...] = self._joined(boxes)

    def _packed(self) -> Any:
        import numpy as np

        return np.ascontiguousarray(self.local())

    def _joined(self, boxes: Sequence[Any]) -> Any:
        import numpy as np

        out = np.empty(self._array_shape(), numpy_dtype(self.dtype))
        for number, box in enumerate(boxes):
            out[tuple(slice(lo, hi) for lo, hi in self.grid.box_of(number))] = box
        return out

    def from_numpy(self, arr: Any) -> None:
        """Sets the own cells of each process from a NumPy array of the whole field, the same on every process."""
        self._expect_no_recorder()
        arr, shape = numbers(arr, self.dtype), self._array_shape()
        if not alike(arr.shape, shape):
            raise ValueError(f"ti.field shape {shape} does not match the numpy array shape {tuple(arr.shape)}")
        box = tuple(slice(lo, hi) for lo, hi in self.grid.box)
        self.local()[...] = converted(arr, self.dtype).reshape(shape)[box]
        self._written()

    def to_torch(self, device: Any = None, copy: bool = True) -> Any:
        """All elements as a new PyTorch tensor. All processes must call it."""
        if not copy:
            raise AerogelNotSupportedError("each rank has a part of a split field: to_torch() copies, local() does not")
        import torch  # type: ignore[import-not-found]

        return torch.from_numpy(self.to_numpy()).to(device or "cpu")

    def from_torch(self, arr: Any) -> None:
        """Sets the own cells of each process from a PyTorch tensor of the whole field's shape."""
        self.from_numpy(arr.detach().cpu().numpy())

    def copy_from(self, other: Any) -> None:
        """Sets all elements from another field of the same shape."""
        self._expect_no_recorder()
        if isinstance(other, _Split) and other.grid is self.grid:
            self.local()[...] = other.local()
            self._written()
        else:
            self.from_numpy(other.to_numpy())

    def _fill(self, values: list[Any]) -> None:
        super()._fill(values)
        self._written()

    def _index(self, key: Any) -> tuple[int, ...]:
        index = tuple(int(i) for i in (key if isinstance(key, (tuple, list)) else (key,)))
        if len(index) != len(self.shape) or not all(0 <= i < n for i, n in zip(index, self.shape)):
            raise AerogelIndexError(f"index {index} for a split field of shape {self.shape}")
        return index

    def _owner(self, index: Sequence[int]) -> int:
        return self.grid.owner(index)

    def __getitem__(self, key: Any) -> Any:
        """An element, the same on every process: all of them must access it."""
        index = self._index(key)
        comm, owner = _comm.world(), self._owner(index)
        if comm is None:
            return super().__getitem__(index)
        _comm.agree(self._what(f"[{', '.join(map(str, index))}]"))
        is_own = owner == comm.rank
        value = super().__getitem__(index) if is_own else None
        sent = value.to_list() if isinstance(value, Matrix) else value
        sent = comm.bcast(sent, root=owner)
        if not isinstance(sent, list):
            return sent
        # A write to a component of it is one to the field, which only its owner sees.
        self._written()
        return value if is_own else Matrix(sent)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Sets an element, on the process that has it: all of them must do so."""
        self._expect_no_recorder()
        index = self._index(key)
        if self._owner(index) == _comm.rank():
            super().__setitem__(index, value)
        self._written()

    def _set_component(self, key: Any, at: int, value: Any) -> None:
        self._expect_no_recorder()
        super()._set_component(key, at, value)
        self._written()

    def _refused(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AerogelNotSupportedError(
            "this is not supported for split fields: use to_numpy, from_numpy, local or a kernel"
        )

    active_cells = set_cells = occupancy = show_sparsity = _refused  # type: ignore[assignment]

    def __str__(self) -> str:
        return f"<ti.field of shape {self.shape} on {_comm.size()} ranks: f.to_numpy() shows it>"


class SplitField(_Split, ScalarField):
    """A field of numbers that processes share."""


class SplitMatrixField(_Split, MatrixField):
    """A field of vectors or matrices that processes share."""

    def get_scalar_field(self, *indices: int) -> ScalarField:
        """The field of one component, sharing its memory."""
        return _adopt(super().get_scalar_field(*indices), self._part)


def place(fields: Sequence[Any], grid: Grid, lay_out: Any) -> None:
    """Places fields in a layout of the own box of this process and its halo.

    Args:
        fields: Scalar and matrix fields.
        grid: Their shape.
        lay_out: What places them, given the size of each axis and the first index; it returns the native layout.
    """
    for out in fields:
        if isinstance(out.dtype, QuantType):
            raise AerogelNotSupportedError("split fields have no quantised types")
    memory = grid.memory
    native: _native.TreeBuilder = lay_out([hi - lo for lo, hi in memory], [lo for lo, _ in memory])
    part = Part(native.key() if grid.is_whole else native.split(grid._axes(), grid.is_trusted, False), grid)
    for out in fields:
        _adopt(out, part)
        for kind in ("grad", "dual"):
            derivative = out.__dict__.get(kind)
            if derivative is not None:
                _adopt(derivative, part)
            if kind == "grad" and derivative is not None and "dual" in derivative.__dict__:
                _adopt(derivative.__dict__["dual"], part)


def _adopt(field: Any, part: Part) -> Any:
    out: Any = field
    is_matrix = isinstance(field, MatrixField)
    out.__class__ = SplitMatrixField if is_matrix else SplitField
    out._part = part
    return out
