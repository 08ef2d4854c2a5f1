"""A program while it is traced: what becomes of tensors, stores and calls."""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import ALL, u1
from aerogel.data.field import MatrixField
from aerogel.data.matrix import Matrix
from aerogel.tensor import _cells, _unknown
from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._stored import kept, of_type
from aerogel.tensor._tensor import Tensor, constant, inside, tracing

if TYPE_CHECKING:
    from collections.abc import Callable


class OutsideProgram(RuntimeError):
    """What only traced functions may do was done elsewhere."""

    def __init__(self, what: str) -> None:
        super().__init__(f"`{what}` is for functions under `program`, while they are traced")
        self.what = what


class Extent(Tensor):
    """A size that is known when the program runs, as a value of the program."""

    __slots__ = ("_dim",)

    def __init__(self, dim: Any) -> None:
        super().__init__(tracing.trace.number_of_dim(dim))
        self._dim = dim


class Trace:
    """A program while it is traced: each operation is a step, which ``aerogel._native.NativeTrace`` keeps."""

    def __init__(self, divides_integers: bool) -> None:
        self.native = _native.NativeTrace()
        self.divides_integers = divides_integers
        self.inputs: list[Any] = []
        #: What each input of the recording is given: a tensor from outside, a function that makes it at each call, or
        #: nothing yet.
        self.given: list[Any] = []
        self._constants: dict[int, Any] = {}
        #: The fields that are read, by what they are.
        self.fields_read: dict[int, Any] = {}
        #: The shape and the points of the current kernel.
        self.kernel: Any = None
        #: The results of calls whose gradient a rule gives: the node, the variable and the value of each.
        self.node_results: list[Any] = []
        #: Blocks that have begun and not ended, outermost first.
        self.open: list[Any] = []
        #: Blocks that the function names and has not begun yet, as errors say it.
        self.not_begun: dict[Any, str] = {}
        #: Programs without parameters that are called by the one that is traced.
        self.called: list[str] = []
        #: Whether an exception left a block.
        self.is_broken = False
        #: The tensors that the function has stored to, by their ids.
        self.stored: dict[int, Tensor] = {}

    # Tensors as they are made.

    def made(self, tensor: Tensor) -> None:
        """Gives a tensor of the program a value of its own."""
        if not tensor._native.is_outside:
            tensor._native = self.native.made(tensor._native)

    def input(self, name: str, dtype: str, shape: list[Any]) -> Any:
        """What the program is given: the next of its inputs."""
        native = self.native.input(name, dtype, shape)
        self.inputs.append(native)
        self.given.append(None)
        return native

    def constant(self, tensor: Tensor) -> Tensor:
        """A tensor from outside as a constant of the program, with its current values."""
        own = tensor._native
        if id(own) not in self._constants:
            # Held, so that no other one gets its number.
            self.given.append(own)
            name = f"constant {len(self._constants)}"
            self._constants[id(own)] = self.native.input(name, own.dtype, list(own.shape), True)
        # Not one that the function makes: nothing sets it.
        out = Tensor.__new__(Tensor)
        out._native, out._outside, out._made = self._constants[id(own)], tensor._outside, None
        return out

    def each_call(self, make: Callable[[], Any], dtype: str, shape: list[int]) -> Tensor:
        """A tensor whose values ``make`` computes at each call of the program."""
        self.given.append(make)
        out = Tensor.__new__(Tensor)
        out._native = self.native.input(f"drawn {len(self.given)}", dtype, shape, True)
        out._outside, out._made = "error", None
        return out

    def shape(self, tensor: Tensor) -> tuple[Any, ...]:
        """The shape of a tensor in the program."""
        self.native.expect_shape(tensor._native)
        return self.numbers(tensor._native.shape)

    def numbers(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Sizes as values of the program."""
        return tuple(n if isinstance(n, int) else Extent(n) for n in shape)

    def extents(self, shape: Any) -> list[Any]:
        """Integers and values of the program as sizes."""
        if isinstance(shape, Tensor) or hasattr(shape, "__index__"):
            shape = [shape]
        out: list[Any] = []
        for extent in shape:
            if isinstance(extent, Extent):
                out.append(extent._dim)
            elif isinstance(extent, Tensor):
                if extent.ndim:
                    raise ValueError("a size is a scalar; for the shape of a tensor write `x.shape`")
                out.append(self.native.dim_of_number(extent._native))
            elif not hasattr(extent, "__index__"):
                raise TypeError(f"a size is an integer, or a size of another tensor, not {extent!r}")
            else:
                n = extent.__index__()
                if n < 0:
                    raise ValueError(f"the size of an axis is {n}, below zero")
                out.append(n)
        return out

    def expect_whole(self) -> None:
        """Refuses a function whose blocks have not all begun and ended.

        Raises:
            RuntimeError: If one has not.
        """
        for what in self.not_begun.values():
            raise RuntimeError(what)
        if self.is_broken:
            raise RuntimeError(
                "an exception left a block of the program (a loop, a branch) and was caught outside of it, so the "
                "block is incomplete. Catch it inside"
            )
        self.expect_ended(0)

    def expect_ended(self, n: int) -> None:
        """Refuses blocks that are open besides the first ``n``.

        Raises:
            RuntimeError: If there is one.
        """
        if len(self.open) > n:
            raise RuntimeError(
                f"{self.open[n].called} opens a block that is never closed in its function: use `with`, and exhaust "
                "generators that contain one"
            )

    # Where statements are.

    @property
    def is_in_vmap(self) -> bool:
        """Whether a function under ``vmap`` is being traced."""
        return self.native.is_in_vmap

    @property
    def is_in_block(self) -> bool:
        """Whether a loop, a branch or a function under ``vmap`` is open."""
        return self.native.is_in_block

    def counters(self) -> list[Tensor]:
        """What the loops around the statement at hand count, outermost first."""
        return [Tensor(native) for native in self.native.counters()]

    # What gives tensors other numbers.

    def set(self, target: Tensor, value: Any) -> None:
        """Gives a tensor another value, at the points at hand."""
        self._expect_own(target)
        self.native.set(target._native, kept(value, target.dtype)._native)

    def _expect_own(self, target: Tensor) -> None:
        self.stored[id(target)] = target
        if not self.native.owns(target._native):
            raise ValueError(
                "a tensor from outside is a constant of the program: copy it there, as by `x = outside + 0`, make it "
                "an `input`, or pass the module that it belongs to as an argument"
            )

    def store(self, target: Tensor, key: Any, value: Any, how: str = "set") -> None:
        """Stores to memory at computed indices, at the points at hand."""
        keys = key if isinstance(key, tuple) else (key,)
        if isinstance(target, _native.NativeField):
            self.store_field(target, key, value, how)
            return
        self._expect_own(target)
        # Which elements a key names depends on the shape.
        self.native.expect_shape(target._native)
        value = kept(value, target.dtype)
        if len(keys) == 1 and isinstance(keys[0], Tensor) and keys[0].dtype is u1:
            self._store_where(target, keys[0], value, how)
            return
        if not target.ndim and how == "set" and all(k is Ellipsis for k in keys):
            self.set(target, value)
            return
        # TensorFrost has no rows at computed indices, and the nearest ones in place of those outside.
        self.native.store(target._native, key, value._native, how, self._mode(target), self.divides_integers)

    def _mode(self, target: Tensor) -> str:
        """What indices outside mean."""
        return target._outside if target._outside != "error" or not self.divides_integers else "clamp"

    def _store_where(self, target: Tensor, condition: Tensor, value: Tensor, how: str) -> None:
        """Stores one number to all elements at which a condition holds."""
        if value.ndim or how != "set":
            raise ValueError(
                "under a mask a program stores one value: the number of elements is known only at run time. Choose "
                "by `where`, or store in `if_cond`"
            )
        from aerogel.tensor._searching import where

        if condition.ndim > target.ndim:
            raise IndexError(f"a mask with {condition.ndim} axes for memory with {target.ndim}")
        for axis in range(condition.ndim):
            _unknown.demand(condition, axis, target.shape[axis])
        condition = Tensor(condition._native.unsqueeze(list(range(condition.ndim, target.ndim))))
        every = self.extents(target.shape)
        index = tuple(Tensor(_native.NativeTensor.iota(every, k, "i32", self.native)) for k in range(target.ndim))
        self.store(target, index, where(condition, value, target))

    def store_with_previous(self, target: Tensor, key: Any, value: Any, how: str) -> Tensor:
        """Puts values to what is there, one point after the other: what was there before each."""
        if isinstance(target, _native.NativeField):
            raise TypeError("the old value is available for memory of the program, not for a field")
        self._expect_own(target)
        value = kept(value, target.dtype)._native
        native, mode = self.native, self._mode(target)
        return Tensor(native.store_with_previous(target._native, key, value, how, mode, self.divides_integers))

    def index(self, key: Any) -> Tensor:
        """An index as a tensor of integers."""
        out = inside(key) if isinstance(key, Tensor) else constant(key, ALL["i32"])
        return out.astype("i32") if out.dtype.is_float else out

    def gather(self, x: Tensor, key: Any) -> Tensor:
        """The elements at computed indices."""
        return inside(x)[key]

    # Fields.

    def cell_indices(self, field: Any) -> list[Any]:
        """The index of each active cell of a field along each of its axes."""
        return self.native.cell_indices(field)

    def field_index(self, key: Any) -> list[Any]:
        """The indices that a key of a field is."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) == 1 and keys[0] is None:
            return []
        for k in keys:
            if not isinstance(k, Tensor) and not hasattr(k, "__index__"):
                raise IndexError(f"an index of a field is an integer or a tensor of integers, not {type(k).__name__}")
        return [self.index(k)._native for k in keys]

    def load_field(self, field: Any, key: Any) -> Tensor:
        """What is in a field at computed indices: zero where no cell is active, and outside."""
        index = self.field_index(key)
        self.fields_read[id(field)] = field
        return Tensor(self.native.load_field(field, index, _last(field)))

    def all_of(self, field: Any) -> Tensor:
        """All elements of a field, zeros where no cell is active."""
        self.fields_read[id(field)] = field
        return Tensor(self.native.all_of_field(field, _last(field)))

    def store_field(self, field: Any, key: Any, value: Any, how: str = "set") -> None:
        """Stores to a field at computed indices, at the points at hand; outside nothing is stored."""
        if self.is_in_vmap:
            raise ValueError("`vmap`: the function stores to a field")
        parts = _components(field, value) if isinstance(field, MatrixField) else [value]
        # What is stored may be made of what is there.
        dtype = ALL[self.native.field_dtype(field)]
        natives = [of_type(part, dtype)._native for part in parts]
        self.native.store_field(field, self.field_index(key), natives, how)

    # What else is done while a program is traced.

    def watch(
        self, function: Callable[..., None], name: str, value: Tensor, least: tuple[int, str] | None = None
    ) -> None:
        """Calls a function with a value, and with where it is at hand, when the program gets there.

        If it only checks that a number is no less than another one, ``least`` is that one and the message.
        """
        if self.is_in_vmap:
            raise ValueError(f"`vmap`: the function calls `{name}`, which has no batching rule")
        self.native.watch(function, name, value._native, least)

    def launch(self, kernel: Any, args: Any, kwargs: Any) -> Any:
        """A kernel is called: a statement of the program, with tensors as its arrays and numbers."""
        called = f"kernel `{kernel.__name__}`"
        args, kwargs, parameters = list(args), dict(kwargs or {}), kernel._parameters()
        keys: list[tuple[Any, str, str]] = [(k, *p) for k, p in enumerate(parameters[: len(args)])]
        keys += [(name, name, kind) for name, kind in parameters if name in kwargs]
        at: list[tuple[Any, bool]] = []
        natives: list[Any] = []
        stand_ins: list[Any] = []
        for key, name, kind in keys:
            place: Any = args if isinstance(key, int) else kwargs
            value = place[key]
            if isinstance(value, ComplexTensor):
                raise TypeError(f"argument `{name}` of {called} takes real numbers, not {value.dtype}")
            if isinstance(value, Tensor):
                value = inside(value)
            if not isinstance(value, Tensor) or not self.native.owns(value._native):
                if kind == "value":
                    # As it is now.
                    place[key] = value.to_list() if isinstance(value, Matrix) else copy.deepcopy(value)
                continue
            place[key] = self._stand_in(kernel, name, kind, value)
            at.append((key, kind == "array"))
            natives.append(value._native)
            stand_ins.append(place[key])
        call = {"kernel": kernel, "args": tuple(args), "kwargs": kwargs}
        writes = self.native.kernel_writes(call, stand_ins)
        results = [Tensor(native) for native in self.native.run_kernel(call, at, natives, writes)]
        return results if len(results) > 1 else results[0] if results else None

    def _stand_in(self, kernel: Any, name: str, kind: str, value: Tensor) -> Any:
        """What a kernel is compiled for, in place of a tensor whose numbers are not known yet."""
        native, called = value._native, f"kernel `{kernel.__name__}`"
        if kind == "array":
            # Elements may be vectors and matrices, whose shapes are known.
            last = len(native.shape) - 2
            shape = [n if isinstance(n, int) and k >= last and n <= 32 else 1 for k, n in enumerate(native.shape)]
            element = kernel._element_of(name)
            if element and len(element) <= len(shape):
                first = len(shape) - len(element)
                what = f"argument `{name}` of {called} has elements of shape {tuple(element)}"
                wanted = [None] * first + element
                if not self.native.assert_shape(native, wanted, what + ": a last axis of the tensor has {}, not {}"):
                    raise ValueError(f"{what}, not the last axes of {value._native.shape}")
                shape[first:] = element
            out = Tensor.__new__(Tensor)
            out._native, out._outside, out._made = native.zeros_outside(shape), "error", None
            return out
        if kind != "value":
            raise TypeError(
                f"argument `{name}` of {called} must be known when the kernel is compiled, and a tensor of a program "
                "is not"
            )
        if native.shape:
            raise TypeError(f"argument `{name}` of {called} is one number, not a tensor with {value.ndim} axes")
        return 0.0 if value.dtype.is_float else 0

    def write(self, target: Any, key: Any, component: Any) -> None:
        """Python is about to write to a field or an array."""
        raise RuntimeError(
            "a field or an array is modified while a program is traced, when nothing is computed: store to elements "
            "of a field, as in `x[i, j] = value`, or modify it before the program runs"
        )

    def deactivate(self, node: Any) -> None:
        """Python is about to make cells inactive."""
        raise RuntimeError("cells are deactivated while a program is traced, when nothing is computed")


def _last(field: Any) -> list[int]:
    """The shape of a field's vectors or matrices; empty for a scalar field."""
    if not isinstance(field, MatrixField):
        return []
    return [field.n] if field.ndim == 1 else [field.n, field.m]


def _components(field: MatrixField, value: Any) -> list[Any]:
    """The part of a value for each component of a field: of the last axes of a tensor, or of nested lists."""
    own = tuple(_last(field))
    value = value.to_list() if isinstance(value, Matrix) else value
    if isinstance(value, Tensor) and value.ndim:
        _cells.expect_elements(value, list(own))
        return [value[(..., *at)] for at in itertools.product(*map(range, own))]
    if isinstance(value, (list, tuple)):
        rows = value if len(own) == 2 else [[x] for x in value]
        if len(rows) != field.n or any(not isinstance(r, (list, tuple)) or len(r) != field.m for r in rows):
            raise ValueError(f"elements of shape {own} are stored, not {value!r}")
        return [x for row in rows for x in row]
    return [value] * (field.n * field.m)
