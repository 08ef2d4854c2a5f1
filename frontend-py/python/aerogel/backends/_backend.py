"""The class of back ends: what each has to be able to do, and what follows from that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import ALL, DataType, numpy_dtype
from aerogel.backends import _checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aerogel.backends._program import Program

i32 = ALL["i32"]

#: The methods that each back end has, with their arguments.
REQUIRED = {
    "supports": "(dtype)",
    "from_host": "(array, dtype)",
    "to_host": "(x)",
    "full": "(shape, value, dtype)",
    "iota": "(n, dtype)",
    "unary": "(op, x)",
    "binary": "(op, a, b)",
    "compare": "(op, a, b)",
    "select": "(cond, a, b)",
    "cast": "(x, dtype)",
    "gather": "(x, indices, outside)",
    "scatter": "(x, indices, values, accum, outside)",
    "reduce": "(accum, x, axes)",
}
#: The methods with a default, and how it works.
DEFAULTS = {
    "describe": "dtype and shape from `x.dtype` and `x.shape`",
    "copy": "through the host",
    "device_pointer": "an error: there is no device memory",
    "unlock": "nothing",
    "eval": "nothing: all is computed at once",
    "sync": "nothing: all is computed at once",
    "memory_info": "no counts",
    "bitcast": "through the host",
    "reshape": "`gather`",
    "permute": "`gather`",
    "expand": "`gather`",
    "slice": "`gather`",
    "scan": "`slice`, `binary` and `scatter`, in log2(n) steps",
    "sort": "through the host",
    "matmul": "`expand`, `binary` and `reduce`",
    "run": "the statements one by one, by the other methods",
}


class Backend:
    """Evaluates recorded statements, by operations on whole arrays. Derive a class from it, and `register` an object.

    A *storage* is whatever the back end keeps an array in; only its own methods look into it. Operands of one call have
    equal shapes, and equal dtypes except for conditions and indices. No method changes a storage that it is given.

    Attributes:
        name: The name of the back end in ``ti.init(backend=...)`` and in errors.
    """

    name = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for method in _checks.LIKE:
            if method in cls.__dict__:
                setattr(cls, method, _checks.checked(method, cls.__dict__[method]))
        if "to_host" in cls.__dict__:
            cls.to_host = _checks.checked_to_host(cls.__dict__["to_host"])  # type: ignore[method-assign]

    # Required.

    def supports(self, dtype: DataType) -> bool:
        """Whether storages can have this dtype."""
        raise _missing(self, "supports")

    def from_host(self, array: Any, dtype: DataType) -> Any:
        """A storage with the elements of a NumPy array, which stay as they are while this runs only: copy them."""
        raise _missing(self, "from_host")

    def to_host(self, x: Any) -> Any:
        """The elements as a NumPy array of the same shape and dtype."""
        raise _missing(self, "to_host")

    def full(self, shape: Sequence[int], value: Any, dtype: DataType) -> Any:
        """A storage with one number everywhere."""
        raise _missing(self, "full")

    def iota(self, n: int, dtype: DataType) -> Any:
        """The numbers 0, 1, ..., ``n - 1`` along one axis."""
        raise _missing(self, "iota")

    def unary(self, op: str, x: Any) -> Any:
        """``op`` of each element: a name of `UNARY`."""
        raise _missing(self, "unary")

    def binary(self, op: str, a: Any, b: Any) -> Any:
        """``op`` of each two elements: a name of `BINARY`."""
        raise _missing(self, "binary")

    def compare(self, op: str, a: Any, b: Any) -> Any:
        """``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge`` of each two elements, as ``u1``."""
        raise _missing(self, "compare")

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        """The element of ``a`` where ``cond`` (``u1``) is true, and of ``b`` elsewhere."""
        raise _missing(self, "select")

    def cast(self, x: Any, dtype: DataType) -> Any:
        """The elements converted: floats to integers towards zero, to ``u1`` by being other than zero."""
        raise _missing(self, "cast")

    def gather(self, x: Any, indices: Sequence[Any], outside: str) -> Any:
        """``x[indices]``, with one storage of indices (``i32``) for each axis of ``x``, all of the result's shape.

        An index outside is the nearest one inside (``outside="clamp"``), the remainder by the size of the axis
        (``"wrap"``), or reads zero (``"zero"``).
        """
        raise _missing(self, "gather")

    def scatter(self, x: Any, indices: Sequence[Any], values: Any, accum: str | None, outside: str) -> Any:
        """``x`` with values stored at indices (as in `gather`, where ``"zero"`` stores nothing).

        Without ``accum`` the last of several values for one element is stored, counted row by row. Else all of them are
        combined with the element: ``add``, ``mul``, ``min``, ``max``, ``and``, ``or`` or ``xor``.
        """
        raise _missing(self, "scatter")

    def reduce(self, accum: str, x: Any, axes: Sequence[int]) -> Any:
        """All elements along some axes combined, as in `scatter`; there is at least one. The axes go."""
        raise _missing(self, "reduce")

    # With defaults.

    def describe(self, x: Any) -> tuple[DataType, tuple[int, ...]]:
        """The dtype and the shape of a storage."""
        return _checks.dtype_like(x.dtype), tuple(x.shape)

    def copy(self, x: Any) -> Any:
        """The same elements in other memory."""
        return self.from_host(self.to_host(x).copy(), self.describe(x)[0])

    def device_pointer(self, x: Any) -> int:
        """The address of the elements in memory of a device, which stays valid until `unlock`.

        Raises:
            TypeError: If the back end has no such memory.
        """
        raise TypeError(
            f"back end `{self.name}` has no method `device_pointer`, whose default is {DEFAULTS['device_pointer']}: "
            "take the values on the host, by `numpy()`"
        )

    def unlock(self, x: Any) -> None:
        """Says that the address of `device_pointer` is used no more."""

    def eval(self, storages: Sequence[Any]) -> None:
        """Begins to compute storages, if they are not computed."""

    def sync(self, stream: Any = None) -> None:
        """Waits for all that was begun, or for one stream."""

    def memory_info(self) -> dict[str, int]:
        """Counts of memory, such as ``allocated_bytes``, as far as the back end keeps them."""
        return {}

    def bitcast(self, x: Any, dtype: DataType) -> Any:
        """The same bits as another dtype of the same width."""
        import numpy as np

        array = self.to_host(x)
        # A row without gaps, which NumPy reads as another dtype.
        row = np.array(array).reshape(-1)
        return self.from_host(row.view(numpy_dtype(dtype)).reshape(array.shape), dtype)

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """The elements row by row in another shape of the same size."""
        _, old = self.describe(x)
        shape = tuple(shape)
        if not old:
            return self._gathered(self._row(x), [self.full(shape, 0, i32)], shape)
        flat = self._number(shape)
        return self._gathered(x, self._indices_of(flat, old, shape), shape)

    def permute(self, x: Any, axes: Sequence[int]) -> Any:
        """The axes in another order: axis ``k`` of the result is axis ``axes[k]``."""
        _, old = self.describe(x)
        if not old:
            return x
        shape = tuple(old[axis] for axis in axes)
        own = {axis: self._axis(shape, k) for k, axis in enumerate(axes)}
        return self._gathered(x, [own[axis] for axis in range(len(old))], shape)

    def expand(self, x: Any, shape: Sequence[int]) -> Any:
        """Axes of one element repeated to a shape with as many axes."""
        _, old = self.describe(x)
        shape = tuple(shape)
        if not old:
            return x
        zeros = self.full(shape, 0, i32)
        indices = [zeros if n == 1 else self._axis(shape, k) for k, n in enumerate(old)]
        return self._gathered(x, indices, shape)

    def slice(self, x: Any, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> Any:
        """``x[start:stop:step]`` along each axis. All are inside; a stop is -1 where a step below zero ends at 0."""
        parts = [range(*part) for part in zip(starts, stops, steps, strict=True)]
        if not parts:
            return x
        shape = tuple(len(part) for part in parts)
        indices = []
        for axis, part in enumerate(parts):
            index = self.binary("mul", self._axis(shape, axis), self.full(shape, part.step, i32))
            indices.append(self.binary("add", index, self.full(shape, part.start, i32)))
        return self._gathered(x, indices, shape)

    def scan(self, accum: str, x: Any) -> Any:
        """Along the last axis: each element combined with all before it, by ``add``, ``mul``, ``min`` or ``max``."""
        _, shape = self.describe(x)
        lead, n = [(0, m, 1) for m in shape[:-1]], shape[-1]
        step = 1
        while step < n:
            before = self.slice(x, *zip(*lead, (0, n - step, 1), strict=True))
            moved = (*shape[:-1], n - step)
            own = [self._axis(moved, axis) for axis in range(len(shape))]
            own[-1] = self.binary("add", own[-1], self.full(moved, step, i32))
            x = self.scatter(x, own, before, accum, "zero")
            step *= 2
        return x

    def sort(self, x: Any, descending: bool) -> tuple[Any, Any]:
        """The elements along the last axis in order, and where each was. Equal ones stay in order; NaN last."""
        import numpy as np

        dtype, _ = self.describe(x)
        array = self.to_host(x)
        if descending:
            # Backwards twice, so that equal elements stay in order.
            n = array.shape[-1]
            order = n - 1 - np.argsort(array[..., ::-1], axis=-1, kind="stable")[..., ::-1]
            if dtype.is_float:
                is_nan = np.isnan(np.take_along_axis(array, order, axis=-1))
                order = np.take_along_axis(order, np.argsort(is_nan, axis=-1, kind="stable"), axis=-1)
        else:
            order = np.argsort(array, axis=-1, kind="stable")
        values = np.take_along_axis(array, order, axis=-1)
        return self.from_host(values, dtype), self.from_host(order.astype(np.int32), i32)

    def matmul(self, a: Any, b: Any) -> Any:
        """Products of matrices: ``a[..., n, k]`` and ``b[..., k, m]``, with equal axes before those."""
        (_, left), (_, right) = self.describe(a), self.describe(b)
        *batch, n, k = left
        m = right[-1]
        whole = (*batch, n, k, m)
        rows = self.expand(self.reshape(a, (*batch, n, k, 1)), whole)
        columns = self.expand(self.reshape(b, (*batch, 1, k, m)), whole)
        return self.reduce("add", self.binary("mul", rows, columns), (len(batch) + 1,))

    def run(self, program: Program, inputs: list[Any]) -> list[Any]:
        """The results of a program whose inputs are these storages."""
        from aerogel.backends._execute import execute

        return execute(self, program, inputs)

    # Indices for the defaults.

    def _row(self, x: Any) -> Any:
        """A single number as an axis of one element."""
        dtype, _ = self.describe(x)
        return self.from_host(self.to_host(x).reshape(1), dtype)

    def _number(self, shape: Sequence[int]) -> Any:
        """The number of each element, counted row by row."""
        return self._spread(self.iota(math.prod(shape), i32), shape)

    def _spread(self, row: Any, shape: Sequence[int]) -> Any:
        """Elements of a row in a shape."""
        dtype, _ = self.describe(row)
        return self.from_host(self.to_host(row).reshape(tuple(shape)), dtype)

    def _axis(self, shape: Sequence[int], axis: int) -> Any:
        """The index of each element along an axis."""
        index = self._number(shape)
        after = self.full(shape, max(math.prod(shape[axis + 1 :]), 1), i32)
        index = self.binary("div", index, after)
        return self.binary("rem", index, self.full(shape, max(shape[axis], 1), i32))

    def _indices_of(self, number: Any, old: Sequence[int], shape: Sequence[int]) -> list[Any]:
        """The indices along the axes of a shape of the elements with these numbers."""
        out = []
        for axis, n in enumerate(old):
            after = self.full(shape, max(math.prod(old[axis + 1 :]), 1), i32)
            index = self.binary("div", number, after)
            out.append(self.binary("rem", index, self.full(shape, max(n, 1), i32)))
        return out

    def _gathered(self, x: Any, indices: list[Any], shape: Sequence[int]) -> Any:
        dtype, old = self.describe(x)
        if 0 in (*old, *shape):
            return self.full(shape, 0, dtype)
        return self.gather(x, indices, "clamp")


for _method in _checks.LIKE:
    setattr(Backend, _method, _checks.checked(_method, Backend.__dict__[_method]))


def _missing(backend: Backend, method: str) -> TypeError:
    return TypeError(
        f"back end `{backend.name}` lacks the method `{method}{REQUIRED[method]}`, which is required and has no default"
    )


def expect_complete(backend: Any) -> None:
    """That an object is a back end with all that is required of one.

    Raises:
        TypeError: If it is not; the message names each missing method.
    """
    if not isinstance(backend, Backend):
        raise TypeError(f"a back end is an object of a class derived from `ti.backends.Backend`, not {backend!r}")
    if not isinstance(backend.name, str) or not backend.name.isidentifier():
        raise TypeError(f"the `name` of a back end is an identifier, as `numpy` is, not {backend.name!r}")
    missing = [m for m in REQUIRED if getattr(type(backend), m) is getattr(Backend, m)]
    if missing:
        names = ", ".join(f"`{m}{REQUIRED[m]}`" for m in missing)
        raise TypeError(
            f"back end `{backend.name}` lacks {names}: each is required and has no default. Those with a default are "
            f"{', '.join(DEFAULTS)}"
        )
