"""The class of tensors of ``aerogel.fl``: the methods of its document's tensors over those of `aerogel.tensor`."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import DataType, dtype_of
from aerogel.backends import _registry
from aerogel.fl import _memory
from aerogel.fl._index import Shape, key_of
from aerogel.tensor._tensor import Tensor as Values
from aerogel.tensor._tensor import asarray

if TYPE_CHECKING:
    from collections.abc import Callable


class Location(enum.Enum):
    """Where a tensor's memory is."""

    Host = "host"
    Device = "device"


class Stream:
    """The order in which a back end computes. Statements of one stream are computed in their order."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def sync(self) -> None:
        """Waits for all that the back end has begun."""
        entry = _registry.entry(self.backend)
        if entry.backend is None:
            _native.sync()
        else:
            entry.backend.sync(self)

    def relativeSync(self, other: Stream) -> None:
        """Has what is computed next on this stream wait for what was begun on another.

        Streams of one back end are in order already; another back end is waited for.
        """
        if other.backend != self.backend:
            other.sync()

    def __repr__(self) -> str:
        return f"Stream({self.backend!r})"


class Tensor:
    """A tensor, row by row.

    Args:
        value: Numbers, lists of numbers, an array or a tensor; a `Shape` makes one of zeros.
        type: The dtype.

    >>> from aerogel import fl
    >>> x = fl.Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape(), x.type(), (x + x).scalar(), x.index([fl.span, 1])
    (Shape([2, 2]), f32, 2.0, tensor([2., 4.], dtype=f32))
    """

    __slots__ = ("_context", "_device", "_values")
    __array_priority__ = 2000

    def __init__(self, value: Any, type: Any = None) -> None:
        from aerogel.tensor import zeros

        if isinstance(value, Shape):
            self._values: Values = zeros(tuple(value), dtype=type)
        else:
            value = value._values if isinstance(value, Tensor) else value
            self._values = asarray(value, dtype=None if type is None else dtype_of(type))
        self._context: Any = None
        #: Keeps the memory of `device` where it is.
        self._device: Any = None

    # What it is.

    def shape(self) -> Shape:
        """The size of each axis."""
        return Shape(self._values.shape)

    def ndim(self) -> int:
        """How many axes there are."""
        return self._values.ndim

    def elements(self) -> int:
        """How many elements there are."""
        return self._values.size

    def dim(self, axis: int) -> int:
        """The size of an axis."""
        return self.shape().dim(axis)

    def type(self) -> DataType:
        """The dtype."""
        return self._values.dtype

    def backendType(self) -> str:
        """The name of the back end."""
        return self._values.backend

    def backend(self) -> Any:
        """The back end: its object, or the name of a part of Aerogel."""
        return _registry.entry(self._values.backend).backend or self._values.backend

    def isSparse(self) -> bool:
        """Whether most elements are left out: never outside of programs over fields."""
        return False

    def isContiguous(self) -> bool:
        """Whether the elements are side by side, row by row: always, as indices make copies."""
        return True

    def strides(self) -> Shape:
        """How many elements apart neighbours along each axis are."""
        shape, step, out = self._values.shape, 1, []
        for n in reversed(shape):
            out.append(step)
            step *= n
        return Shape(reversed(out))

    def toString(self) -> str:
        """The values as text."""
        return repr(self._values)

    __repr__ = toString

    def setContext(self, context: Any) -> None:
        """Attaches an object to the tensor."""
        self._context = context

    def getContext(self) -> Any:
        """The object that was attached."""
        return self._context

    # Values and memory.

    def clone(self) -> Tensor:
        """A copy in other memory."""
        return self.copy()

    def copy(self) -> Tensor:
        """A copy in other memory."""
        return Tensor(asarray(self._values, copy=True))

    def shallowCopy(self) -> Tensor:
        """A tensor with the same memory, of which each is changed by itself."""
        return Tensor(self._values._as_it_is())

    def scalar(self) -> Any:
        """The first element, as a number of Python."""
        return self._values.reshape(-1)[0].item()

    def host(self) -> Any:
        """The values as a NumPy array of its own; all that they wait for is computed."""
        _memory.note("host")
        return self._values.numpy()

    def location(self) -> Location:
        """Where the memory is that `device` returns the address of."""
        entry = _registry.entry(self._values.backend)
        return Location.Host if entry.backend is None else Location.Device

    def device(self) -> int:
        """The address of the values in memory of the back end. It stays valid until `unlock`.

        The values may still be computed: wait by ``stream().sync()``.

        Raises:
            TypeError: The back end has no memory with addresses.
        """
        _memory.note("device")
        entry = _registry.entry(self._values.backend)
        if entry.backend is None:
            self._values.realize()
            self._device = self._values._view()
            return self._device.__array_interface__["data"][0]
        storage = _registry.storage(self._values)
        address = entry.backend.device_pointer(storage)
        self._device = storage
        return address

    def unlock(self) -> None:
        """Says that the address of `device` is used no more."""
        entry = _registry.entry(self._values.backend)
        if entry.backend is not None and self._device is not None:
            entry.backend.unlock(self._device)
        self._device = None

    def isLocked(self) -> bool:
        """Whether an address was returned by `device` and not given back."""
        return self._device is not None

    def stream(self) -> Stream:
        """The stream on which the values are computed."""
        return Stream(self._values.backend)

    def asContiguousTensor(self) -> Tensor:
        """The tensor itself, which is contiguous."""
        return self

    # Other tensors.

    def astype(self, type: Any) -> Tensor:
        """The elements converted."""
        return Tensor(self._values.astype(type))

    def to(self, backend: str) -> Tensor:
        """The same values with another back end."""
        return Tensor(self._values.to(backend))

    def index(self, indices: Any) -> Tensor:
        """The elements at indices, one for each of the first axes: numbers, `fl.range`, `fl.span`, tensors."""
        return Tensor(self._values[key_of(indices)])

    def __call__(self, *indices: Any) -> Tensor:
        return self.index(list(indices))

    def __getitem__(self, key: Any) -> Tensor:
        return self.index(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[key_of(key)] = _inner(value)

    def flatten(self) -> Tensor:
        """The elements row by row along one axis."""
        return Tensor(self._values.flatten())

    def flat(self, index: Any) -> Tensor:
        """Elements by their number, row by row."""
        return self.flatten().index(index)

    # Changes in place.

    def assign(self, value: Any) -> Tensor:
        """Gives all elements other values."""
        self._values[...] = _inner(value)
        return self

    def inPlaceAdd(self, value: Any) -> Tensor:
        """Adds to each element."""
        return self.assign(self._values + _inner(value))

    def inPlaceSubtract(self, value: Any) -> Tensor:
        """Subtracts from each element."""
        return self.assign(self._values - _inner(value))

    def inPlaceMultiply(self, value: Any) -> Tensor:
        """Multiplies each element."""
        return self.assign(self._values * _inner(value))

    def inPlaceDivide(self, value: Any) -> Tensor:
        """Divides each element.

        Raises:
            TypeError: The elements are integers, which a quotient is not.
        """
        if not self.type().is_float:
            raise TypeError(f"the quotient of {self.type()} is a float: take `fl.div(x, y).astype(...)`")
        return self.assign(self._values / _inner(value))

    __iadd__, __isub__, __imul__, __itruediv__ = inPlaceAdd, inPlaceSubtract, inPlaceMultiply, inPlaceDivide

    def __len__(self) -> int:
        return len(self._values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._values.__array__(dtype, copy)

    def __bool__(self) -> bool:
        return bool(self._values)

    __hash__ = object.__hash__


def _inner(value: Any) -> Any:
    return value._values if isinstance(value, Tensor) else value


def _operator(name: str) -> Callable[..., Any]:
    def operate(self: Tensor, *others: Any) -> Any:
        made = getattr(self._values, name)(*[_inner(other) for other in others])
        return made if made is NotImplemented else Tensor(made)

    operate.__name__ = name
    return operate


for _name in ("add", "sub", "mul", "truediv", "mod", "and", "or", "xor", "lshift", "rshift"):
    setattr(Tensor, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Tensor, f"__r{_name}__", _operator(f"__r{_name}__"))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "invert"):
    setattr(Tensor, f"__{_name}__", _operator(f"__{_name}__"))
