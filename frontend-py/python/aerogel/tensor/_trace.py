"""A program while it is traced: what becomes of tensors, stores, blocks and calls."""

from __future__ import annotations

import contextlib
import copy
import itertools
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import ALL, dtype_of, u1
from aerogel.data.field import MatrixField
from aerogel.data.matrix import Matrix
from aerogel.tensor import _cells, _items, _shapes, _unknown
from aerogel.tensor._blocks import Begun, Left, Made, Named, Scope
from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._loops import Turns
from aerogel.tensor._places import Places
from aerogel.tensor._stored import kept, of_type
from aerogel.tensor._tensor import Tensor, constant, inside, tracing
from aerogel.tensor._written import Together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Extent(Tensor):
    """An extent that is known when the program runs, as a number of the program."""

    __slots__ = ("_dim",)

    def __init__(self, dim: Any) -> None:
        super().__init__(tracing.trace.number_of_dim(dim))
        self._dim = dim


#: In place of a field: memory has elements at all places, not at the cells of a field alone.
_EVERYWHERE = "everywhere"

_CONSTANT = "is a constant of the program: copy it there, as by `x = outside + 0`, or make it an `input`"


class Trace:
    """A program while it is traced.

    What is set or stored to in a block has to be memory before the block begins, of a shape that is known only where it
    is set. So a function is traced again with what the first time taught, until nothing new comes.
    """

    def __init__(self, facts: dict[Any, Any], divides_integers: bool) -> None:
        self.native = _native.NativeTrace()
        self.divides_integers = divides_integers
        self.facts = facts
        #: The first index of cells, and the field whose they are.
        self.cells: list[tuple[Any, Any]] = []
        self.learned: dict[Any, Any] = {}
        #: How often cells had become active when what is learned to be memory was made.
        self._set_at: dict[Any, Any] = {}
        self.inputs: list[Any] = []
        #: What each input of the recording is given: a tensor from outside, or nothing yet.
        self.given: list[Any] = []
        self._constants: dict[int, Any] = {}
        self.input_shapes: dict[Any, tuple[int, int]] = {}
        #: The fields that are read, by what they are.
        self.fields_read: dict[int, Any] = {}
        self.scopes: list[Scope] = []
        #: The extents and the points of the kernel at hand.
        self.kernel: Any = None
        #: Which results are complex.
        self.is_complex: list[bool] = []
        #: Whether an exception left a block, and whether this was one that no other trace is without.
        self.is_broken = self.is_refused = False
        self.together = Together()
        #: Blocks that the function names and has not begun yet, as errors say it.
        self.not_begun: dict[Any, str] = {}
        self.begun = Begun()
        self._places = Places()
        self._let_go: set[Any] = set()
        self._n_loops = 0

    # Tensors as they are made.

    def made(self, tensor: Tensor) -> None:
        """Notes a tensor; it becomes memory if it is known to change in a block.

        Operations that change nothing give what they were given: of memory the tensor is its value, which stays.
        """
        tensor._native = self.native.value(tensor._native)
        key = self._places.add(tensor)
        tensor._made = Made(key, tuple(self.scopes), self.native.activations())
        if key in self.facts:
            extents, field = self.learned[key] = self.facts[key]
            self._set_at[key] = tensor._made.activations
            field = None if field is _EVERYWHERE else field
            self._to_memory(tensor, [self._known(extent) for extent in extents], field)
        self.native.note()

    def let_go(self, scope: Scope | None = None) -> set[Any]:
        """Makes tensors of no program of what Python keeps of a trace, or of a block, if it is of known numbers alone.

        So a cache of tensors that the program fills is of use to the next trace, and outside. The keys of what it was.
        """
        if kept := self._places.kept(scope):
            sources = [own for own in self.given if own is not None]
            natives = self.native.let_go([t._native for t in kept], list(self._constants.values()), sources)
            for tensor, native in zip(kept, natives):
                if native is not None:
                    self._let_go.add(tensor._made.key)
                    tensor._native, tensor._made = native, None
        return self._let_go

    def _to_memory(self, tensor: Tensor, shape: list[Any], field: Any = None) -> None:
        """Makes memory of a tensor: at the active cells of a field, if it is set there alone."""
        memory = self.native.memory(tensor._native.dtype, shape, None if field is None else self._scalar(field))
        self.native.set(memory, self.native.dense(tensor._native) if field is None else tensor._native)
        tensor._native = memory
        tensor._made.is_memory = True
        self.native.note()

    def constant(self, tensor: Tensor) -> Tensor:
        """A tensor from outside as one of the program: its numbers are those that it has now."""
        own = tensor._native
        if id(own) not in self._constants:
            # Held, so that no other one gets its number.
            self.given.append(own)
            name = f"constant {len(self._constants)}"
            self._constants[id(own)] = self.native.input(name, own.dtype, list(own.shape))
        # Not one that the function makes: it has no key, and nothing sets it.
        out = Tensor.__new__(Tensor)
        out._native, out._outside, out._made = self._constants[id(own)], tensor._outside, None
        return out

    def _known(self, extent: Any) -> Any:
        return extent if isinstance(extent, int) else extent.of(self.native)

    def _named(self, extent: Any) -> Any:
        """An extent that another trace understands."""
        return extent if isinstance(extent, int) else Named(self.native, extent)

    def shape(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Extents for the program that is traced."""
        return tuple(n if isinstance(n, int) else Extent(n) for n in shape)

    def extents(self, shape: Any) -> list[Any]:
        """Numbers, extents and numbers of the program as extents."""
        if isinstance(shape, Tensor) or hasattr(shape, "__index__"):
            shape = [shape]
        out: list[Any] = []
        for extent in shape:
            if isinstance(extent, Extent):
                out.append(extent._dim)
            elif isinstance(extent, Tensor):
                if extent.ndim:
                    raise ValueError("an extent is a single number, and a tensor's own are `x.shape`: write that")
                out.append(self.native.dim_of_number(extent._native))
            elif not hasattr(extent, "__index__"):
                raise TypeError(f"an extent is a whole number, or that of another tensor, not {extent!r}")
            else:
                n = extent.__index__()
                if n < 0:
                    raise ValueError(f"an extent is {n}, below zero")
                out.append(n)
        return out

    # Where statements are.

    @property
    def is_of_many(self) -> bool:
        """Whether a function of one of many is traced."""
        return any(scope.is_map for scope in self.scopes)

    def mask(self) -> Any:
        """Where the statement at hand is done, if not everywhere."""
        parts: list[Any] = []
        for scope in self._in_function():
            parts += [left.others() for left in (scope.left, scope.skipped) if left is not None]
            parts += scope.conditions
        if not parts:
            return None
        out = parts[0]
        for part in parts[1:]:
            out = out.binary("logical_and", part)
        return out

    def turns(self) -> list[Tensor]:
        """What the loops around the statement at hand count, outermost first."""
        return [scope.turn for scope in self.scopes if scope.turn is not None]

    def _in_function(self) -> list[Scope]:
        """The blocks of the innermost function that `vmap` calls, or all."""
        first = max((k for k, scope in enumerate(self.scopes) if scope.is_map), default=0)
        return self.scopes[first:]

    def _own(self, target: Tensor) -> None:
        """Refuses what is not the program's, and memory that was made outside of a function that `vmap` calls."""
        if target._made is None or not self.native.owns(target._native):
            raise ValueError(f"a tensor from outside {_CONSTANT}")
        if any(scope.is_map and scope not in target._made.scopes for scope in self.scopes):
            raise ValueError("`vmap`: the function stores to memory that was made outside of it")

    def begin_vmap(self) -> tuple[Any, int]:
        """Begins what a function says of one of many: what ends it takes this."""
        self.scopes.append(Scope(is_map=True))
        return self.native, self.native.begin_vmap()

    def drop_vmap(self, n_before: int) -> None:
        """Drops what a function has said that raised an error, but for what Python keeps of it."""
        self.let_go(self.scopes.pop())
        self.native.drop_block(n_before)

    def set(self, target: Tensor, value: Any) -> None:
        """Gives a tensor another value, at the points at hand."""
        self._own(target)
        new = self.native.value(kept(value, target.dtype)._native)
        mask = self.mask()
        if mask is not None and self._field_of(mask) is not None:
            rank = len(mask.shape)
            whole = max(target._native.shape, new.shape, key=len)
            if len(whole) > rank and whole[:rank] == mask.shape:
                # What is asked of a cell is asked of all its numbers.
                mask = mask.unsqueeze(list(range(rank, len(whole))))
        shape = self._stretched([target._native, new, *([] if mask is None else [mask])])
        made = target._made
        if not made.is_memory or shape != target._native.shape:
            field = None
            if self._is_elsewhere(made):
                field = self._learn(target, shape, None if mask is None else self._field_of(mask), self._field_of(new))
            elif mask is None and (field := self._only_field_of(target._native, new)) is None:
                # Another value at the same place of the program; one that fits a larger tensor stands everywhere in it.
                smaller = new.shape != shape and _unknown.stretches(new.shape, shape)
                target._native = new.broadcast_to(list(shape), True) if smaller else new
                return
            self._to_memory(target, list(shape), field)
        self.native.set(target._native, new, mask)
        self.native.note()

    def _only_field_of(self, native: Any, new: Any) -> Any:
        """The field at whose active cells a value is, if a new one is at none."""
        return self._field_of(native) if self._field_of(new) is None else None

    def _is_elsewhere(self, made: Made) -> bool:
        """Whether a block is open that was not when a tensor was made: it may run not at all, or several times."""
        return any(scope not in made.scopes for scope in self.scopes)

    def _learn(self, target: Tensor, shape: tuple[Any, ...], *fields: Any) -> Any:
        """Notes that a tensor is memory from the first on: at the cells where it is set, if it is stretched to them.

        The field whose cells these are, or nothing.
        """
        key, native = target._made.key, target._native
        own = self._field_of(native)
        fields = (own,) if own is not None else fields if len(native.shape) < len(shape) else ()
        field = next((f for f in fields if f is not None), None)
        if key in self.facts and self.facts[key][1] not in (None, field):
            field = _EVERYWHERE
        self.learned[key] = ([self._named(extent) for extent in shape], field)
        self._set_at[key] = target._made.activations
        return None if field is _EVERYWHERE else field

    def lessons(self) -> dict[Any, Any]:
        """What the next time a function is traced has to know besides what is known."""
        for key, activations in self._set_at.items():
            extents, field = self.learned[key]
            if field is None or field is _EVERYWHERE:
                continue
            first = [first for first, own in self.cells if own is field][:1]
            sparse = all(map(self.native.is_sparse, first))
            # Once a store makes cells active, they are not those that there were at first.
            if not sparse or self.native.has_activated(self._scalar(field), activations):
                self.learned[key] = (extents, _EVERYWHERE)
        return {k: v for k, v in self.learned.items() if self.facts.get(k) != v}

    def _stretched(self, natives: list[Any]) -> tuple[Any, ...]:
        out: list[Any] = []
        rank = max(len(n.shape) for n in natives)
        for axis in range(-rank, 0):
            extents = [n.shape[axis] for n in natives if len(n.shape) >= -axis]
            out.append(next((e for e in extents if e != 1), 1))
        return tuple(out)

    def _let_change(self, target: Tensor) -> None:
        """Makes memory of a tensor that is written to in place."""
        self._own(target)
        made = target._made
        if not made.is_memory:
            if self._is_elsewhere(made):
                self._learn(target, target._native.shape)
            self._to_memory(target, list(target._native.shape))
        elif self._field_of(target._native) is not None:
            # It is stored to at other indices than those of cells.
            self.learned[made.key] = ([self._named(extent) for extent in target._native.shape], _EVERYWHERE)
            self._set_at.pop(made.key, None)
            self._to_memory(target, list(target._native.shape))

    def store(self, target: Tensor, key: Any, value: Any, how: str = "set") -> None:
        """Stores to memory at computed indices, at the points at hand."""
        keys = key if isinstance(key, tuple) else (key,)
        if isinstance(target, _native.NativeField):
            self.store_field(target, key, value, how)
            return
        value = kept(value, target.dtype)
        if len(keys) == 1 and isinstance(keys[0], Tensor) and keys[0].dtype is u1:
            self._store_where(target, keys[0], value, how)
            return
        _items.refuse_masks(keys)
        if not target.ndim and how == "set" and all(k is Ellipsis for k in keys):
            self.set(target, value)
            return
        # TensorFrost has no rows at computed indices.
        has_rows = not (self.divides_integers and any(isinstance(k, Tensor) for k in keys))
        is_row = has_rows and len(keys) < target.ndim
        if is_row or any(_items.is_part(k) for k in keys):
            index, shape, behind = _items.places(target, keys)
            value = Tensor(value._native.broadcast_to(shape, True))
        else:
            index, behind = [self.index(k)._native for k in self._from_start(target, keys)], 0
        self._let_change(target)
        mode = target._outside if target._outside != "error" or not self.divides_integers else "clamp"
        if not index or len(index) != target.ndim:
            raise IndexError(f"{len(index)} indices for memory with {target.ndim} axes")
        mask = self.mask()
        if behind and mask is not None and mask.shape:
            # What is asked of each computed index is asked of its whole row.
            rank = len(mask.shape)
            mask = mask.unsqueeze(list(range(rank, rank + behind)))
        self.native.store(target._native, index, value._native, how, mode, mask)
        self.native.note()

    def _store_where(self, target: Tensor, condition: Tensor, value: Tensor, how: str) -> None:
        """Stores one number to all elements at which a condition holds."""
        if value.ndim or how != "set":
            raise ValueError(
                "where a condition holds a program stores one number: how many there are is known when it runs. Choose "
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

    def _from_start(self, target: Tensor, keys: tuple[Any, ...]) -> list[Any]:
        """Indices, of which known ones below zero are counted from the start; not where the nearest ones are meant."""
        out: list[Any] = []
        for axis, k in enumerate(keys):
            k = _items.listed(target, k, axis)
            if isinstance(k, int) and k < 0 and axis < target.ndim and not self.divides_integers:
                n = target.shape[axis]
                k = k + n if not isinstance(n, int) or -n <= k else k
            out.append(k)
        return out

    def index(self, key: Any) -> Tensor:
        """An index as a tensor of integers."""
        out = inside(key) if isinstance(key, Tensor) else constant(key, ALL["i32"])
        return out.astype("i32") if out.dtype.is_float else out

    def is_gather(self, key: Any) -> bool:
        """Whether a key is of computed indices alone."""
        keys = key if isinstance(key, tuple) else (key,)
        # Where indices outside are the nearest ones, known ones are as others.
        return not any(_items.is_part(k) or isinstance(k, Tensor) and k.dtype is u1 for k in keys) and (
            any(isinstance(k, Tensor) for k in keys)
            or (self.divides_integers and all(isinstance(k, int) for k in keys))
        )

    def gather(self, x: Tensor, key: Any) -> Tensor:
        """The elements at computed indices."""
        x, keys = inside(x), key if isinstance(key, tuple) else (key,)
        mode = x._outside if x._outside != "error" or not self.divides_integers else "clamp"
        index = [self.index(k)._native for k in self._from_start(x, keys)]
        parts = self.native.parts(x._native)
        if parts and len(index) == len(parts[0].shape):
            # Each number apart, in memory for active cells alone.
            taken = [self.native.dense(part).gather(0, index, mode, False, mask=self.mask()) for part in parts]
            out = self._joined(taken, list(x._native.shape[len(index) :]))
            out._outside = x._outside
        else:
            out = Tensor(self.native.dense(x._native).gather(0, index, mode, False, mask=self.mask()), x._outside)
        out._made.element = (x, key)
        return out

    # Fields.

    def field_index(self, field: Any, key: Any) -> list[Any]:
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
        index = self.field_index(field, key)
        self.fields_read[id(field)] = field
        if isinstance(field, MatrixField):
            return self._joined([self.native.load_field(c, index) for c in self._components(field)], _last(field))
        return Tensor(self.native.load_field(self.native.field(field), index))

    def _components(self, field: MatrixField) -> list[Any]:
        return [self.native.field(field.get_scalar_field(k)) for k in range(field.n * field.m)]

    def _joined(self, parts: list[Any], last: list[int]) -> Tensor:
        """The numbers of vectors or matrices, row by row, as the last axes of one tensor."""
        if self.native.is_sparse(parts[0]):
            return Tensor(self.native.at_cells(parts, last))
        out = [Tensor(self.native.dense(part)) for part in parts]
        for axis, n in enumerate(reversed(last), 1):
            out = [_shapes.stack(out[k : k + n], axis=-axis) for k in range(0, len(out), n)]
        return out[0]

    def _store_components(self, field: MatrixField, key: Any, value: Any, how: str) -> None:
        """Stores to each component its part of a value: of the last axes of a tensor, or of nested lists."""
        own = tuple(_last(field))
        value = value.to_list() if isinstance(value, Matrix) else value
        if isinstance(value, Tensor) and value.ndim:
            _cells.expect_elements(value, list(own))
            parts = [value[(..., *at)] for at in itertools.product(*map(range, own))]
        elif isinstance(value, (list, tuple)):
            rows = value if len(own) == 2 else [[x] for x in value]
            if len(rows) != field.n or any(not isinstance(r, (list, tuple)) or len(r) != field.m for r in rows):
                raise ValueError(f"elements of shape {own} are stored, not {value!r}")
            parts = [x for row in rows for x in row]
        else:
            parts = [value] * (field.n * field.m)
        # What is stored may be made of what is there.
        natives = [of_type(part, field.dtype)._native for part in parts]
        index = self.field_index(field, key)
        self.native.store_fields(self._components(field), index, natives, how, self.mask())
        self.native.note()

    def store_field(self, field: Any, key: Any, value: Any, how: str = "set") -> None:
        """Stores to a field at computed indices, at the points at hand; outside nothing is stored."""
        if any(scope.is_map for scope in self.scopes):
            raise ValueError("`vmap`: the function stores to a field")
        if isinstance(field, MatrixField):
            self._store_components(field, key, value, how)
            return
        native = self.native.field(field)
        value = of_type(value, dtype_of(native.dtype))
        index = self.field_index(field, key)
        self.native.store(native, index, value._native, how, "zero", self.mask())
        self.native.note()

    def all_of(self, field: Any) -> Tensor:
        """All elements of a field, zeros where no cell is active."""
        self.fields_read[id(field)] = field
        if isinstance(field, MatrixField):
            return self._joined([self.native.read(c) for c in self._components(field)], _last(field))
        return Tensor(self.native.read(self.native.field(field)))

    # What else is done while a program is traced.

    def watch(self, function: Callable[..., None], name: str, value: Tensor) -> None:
        """Calls a function with a value, and with where it is at hand, when the program gets there."""
        if self.is_of_many:
            raise ValueError(f"`vmap`: the function calls `{name}`, which has no rule for many")
        mask = self.mask()
        natives = [value._native, *([] if mask is None else [mask])]
        self.native.watch(function, name, [self.native.dense(native) for native in natives])

    def store_with_previous(self, target: Tensor, key: Any, value: Any, how: str) -> Tensor:
        """Puts values to what is there, one point after the other: what was there before each."""
        if isinstance(target, _native.NativeField):
            raise TypeError("what was there before is known of memory of the program, not of a field")
        keys = key if isinstance(key, tuple) else (key,)
        value = kept(value, target.dtype)
        _items.refuse_masks(keys)
        index = [self.index(k)._native for k in self._from_start(target, keys)]
        self._let_change(target)
        mode = target._outside if target._outside != "error" or not self.divides_integers else "clamp"
        return Tensor(self.native.store_with_previous(target._native, index, value._native, how, mode, self.mask()))

    def launch(self, kernel: Any, args: Any, kwargs: Any) -> Any:
        """A kernel is called: a statement of the program, with tensors as its arrays and numbers."""
        called = f"kernel `{kernel.__name__}`"
        if self.is_of_many:
            raise ValueError(f"`vmap`: the function calls {called}")
        if self.mask() is not None:
            raise RuntimeError(
                f"{called} is called where something is done at some points only: call it outside of `if_cond` with a "
                "condition for each point, and of loops that points leave one by one"
            )
        args, kwargs, parameters = list(args), dict(kwargs or {}), kernel._parameters()
        keys: list[tuple[Any, str, str]] = [(k, *p) for k, p in enumerate(parameters[: len(args)])]
        keys += [(name, name, kind) for name, kind in parameters if name in kwargs]
        at: list[tuple[Any, bool]] = []
        tensors: list[Tensor] = []
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
            tensors.append(value)
            stand_ins.append(place[key])
        call = {"kernel": kernel, "args": tuple(args), "kwargs": kwargs}
        writes = self.native.kernel_writes(call, stand_ins)
        for tensor, written in zip(tensors, writes):
            if written:
                if any(tensor._native is constant for constant in self._constants.values()):
                    raise ValueError(f"{called} writes to a tensor from outside, which {_CONSTANT}")
                self._let_change(tensor)
        natives = [self.native.dense(tensor._native) for tensor in tensors]
        results = [Tensor(native) for native in self.native.run_kernel(call, at, natives, writes)]
        return results if len(results) > 1 else results[0] if results else None

    def _stand_in(self, kernel: Any, name: str, kind: str, value: Tensor) -> Any:
        """What a kernel is compiled for, in place of a tensor whose numbers are not known yet."""
        native, called = value._native, f"kernel `{kernel.__name__}`"
        if kind == "array":
            # Elements may be vectors and matrices, whose extents are known.
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
                f"argument `{name}` of {called} has to be known when the kernel is compiled, and a tensor of a program "
                "is not"
            )
        if native.shape:
            raise TypeError(f"argument `{name}` of {called} is one number, not a tensor with {value.ndim} axes")
        return 0.0 if value.dtype.is_float else 0

    def write(self, target: Any, key: Any, component: Any) -> None:
        """Python is about to write to a field or an array."""
        raise RuntimeError(
            "a field or an array is changed while a program is traced, when nothing is computed: store to elements of "
            "a field, as in `x[i, j] = value`, or change it before the program runs"
        )

    def deactivate(self, node: Any) -> None:
        """Python is about to make cells inactive."""
        raise RuntimeError("cells are made inactive while a program is traced, when nothing is computed")

    # Blocks.

    @contextlib.contextmanager
    def loop(self, begin: Any, end: Any, step: int) -> Iterator[Tensor]:
        """A loop; its counter is one number, or one for each point if the bounds are."""
        turns = Turns(self, begin, end, step)
        scope = Scope(is_loop=True)
        scope.is_sure = turns.is_sure
        scope.number, self._n_loops = self._n_loops, self._n_loops + 1
        scope.left = self._nobody(("loop", scope.number))
        var, counter = self.native.begin_loop()
        scope.skipped = self._nobody(("turn", scope.number))
        self.scopes.append(scope)
        scope.turn = Tensor(counter)
        at, is_there = turns.seen(scope.turn)
        if is_there is not None:
            scope.conditions.append(is_there._native)
        with self._whole(scope):
            yield at
        self._leave_if_done(scope)
        self.scopes.pop()
        self.native.end_loop(var, turns.first._native, turns.last._native, turns.step)

    def _nobody(self, key: Any) -> Left | None:
        """That no point has left, if points are known to leave a loop or a turn of it."""
        fact = self.facts.get(key)
        if fact is None:
            return None
        extents, field = fact
        memory, cells = self.native.memory("u1", [self._known(extent) for extent in extents]), None
        if field is not None:
            first = self.cell_indices(field)[0]
            behind = list(range(len(first.shape), len(extents)))
            cells = first.binary("eq", first)
            cells = cells.unsqueeze(behind) if behind else cells
        self.native.set(memory, constant(False, ALL["u1"])._native)
        return Left(memory, cells)

    def _leave_if_done(self, scope: Scope) -> None:
        """Ends a loop that every point has left."""
        if scope.left is None:
            return
        none = scope.left.others().reduce("any", None, False).unary("logical_not")
        self.native.begin_block()
        self.native.break_()
        self.native.end_if(none)

    @contextlib.contextmanager
    def branch(self, condition: Tensor) -> Iterator[None]:
        """A branch: of the host if the condition is one number, else at the points where it is true."""
        if condition.dtype is not ALL["u1"]:
            condition = condition.astype("u1")
        # Memory that the block changes decides no more.
        held = self.native.value(condition._native)
        scope = Scope()
        if condition.ndim == 0 and self.mask() is None:
            self.native.begin_block()
            self.scopes.append(scope)
            with self._whole(scope):
                yield
            self.scopes.pop()
            self.native.end_if(held)
            return
        scope.conditions.append(held)
        self.scopes.append(scope)
        with self._whole(scope):
            yield
        self.scopes.pop()

    @contextlib.contextmanager
    def _whole(self, scope: Scope) -> Iterator[None]:
        """A block whose statements are all known: not those of one that an exception leaves."""
        try:
            yield
        except BaseException:
            if scope in self.scopes:
                del self.scopes[self.scopes.index(scope) :]
            self.is_broken = True
            raise

    def leave_loop(self, turn_only: bool = False) -> None:
        """Leaves the innermost loop, or this turn of it, at the points at hand."""
        around = len(self.scopes) - len(self._in_function())
        at = next((k for k in reversed(range(around, len(self.scopes))) if self.scopes[k].is_loop), None)
        if at is None:
            what = "continue_loop" if turn_only else "break_loop"
            raise RuntimeError(
                f"`{what}` is outside of a loop: it stands inside `with loop(...)`, in the same function"
            )
        loop = self.scopes[at]
        loop.is_sure = False
        inside = [c for scope in self.scopes[at:] for c in scope.conditions]
        if not inside and self.mask() is None:
            self.native.continue_() if turn_only else self.native.break_()
            return
        mask = self.mask()
        if mask is None:
            mask = constant(True, ALL["u1"])._native
        left = loop.skipped if turn_only else loop.left
        shape = mask.shape if left is None else self._stretched([mask, left.memory])
        key = ("turn" if turn_only else "loop", loop.number)
        fact = ([self._named(extent) for extent in shape], self._field_of(mask))
        if left is None or self.facts.get(key) != fact:
            self.learned[key] = fact
            return
        self.native.set(left.memory, constant(True, ALL["u1"])._native, mask)

    def cell_indices(self, field: Any) -> list[Any]:
        """The index of each active cell of a field along each of its axes."""
        natives = self.native.cell_indices(self._scalar(field))
        self.cells.append((natives[0], field))
        return natives

    def _scalar(self, field: Any) -> Any:
        """A field of one number for each cell of a field's."""
        return self.native.field(field.get_scalar_field(0) if isinstance(field, MatrixField) else field)

    def _field_of(self, native: Any) -> Any:
        """The field of Python's at whose active cells a value is, if it is at some."""
        return next((field for first, field in self.cells if self.native.are_at_cells_of(native, first)), None)


def _last(field: MatrixField) -> list[int]:
    """The extents of a field's vectors or matrices."""
    return [field.n] if field.ndim == 1 else [field.n, field.m]
