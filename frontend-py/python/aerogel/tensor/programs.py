"""Programs of tensors: a function is traced, with loops, branches and memory, and compiled for inputs of any shape.

>>> import aerogel as ti
>>> from aerogel.tensor import programs
>>> ti.init(arch=ti.cpu, log_level="error")
>>> @programs.program
... def distances():
...     a = programs.input([-1, 3], ti.f32)
...     return ti.tensor.norm(a, axis=1)
>>> distances(ti.tensor.asarray([[3.0, 0.0, 4.0]])).tolist()
[5.0]
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import ALL, dtype_of
from aerogel.data.matrix import Matrix
from aerogel.tensor import _types
from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._tensor import Tensor, asarray, constant, is_number, operands, tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Extent(Tensor):
    """An extent that is known when the program runs, as a number of the program."""

    __slots__ = ("_dim",)

    def __init__(self, dim: Any) -> None:
        super().__init__(tracing.trace.number_of_dim(dim))
        self._dim = dim


class _Made:
    """How a tensor of a program came about."""

    __slots__ = ("depth", "element", "is_memory", "number")

    def __init__(self, number: int, depth: int, is_memory: bool) -> None:
        self.number = number
        self.depth = depth
        self.is_memory = is_memory
        #: Of what it is the elements, and at which indices, if it is.
        self.element: Any = None


class _Scope:
    """A block: what is true at the points that are in it."""

    def __init__(self, is_loop: bool = False, is_map: bool = False) -> None:
        self.is_loop = is_loop
        #: In a function of one of many, which knows nothing of what is around it.
        self.is_map = is_map
        #: Conditions that are other at each point.
        self.conditions: list[Any] = []
        #: In a loop that points leave one by one: where it goes on.
        self.alive: Any = None
        #: In a loop some turns of which points leave one by one: where this turn goes on.
        self.going: Any = None
        self.number = -1


class Trace:
    """A program while it is traced.

    What is set or stored to in a block has to be memory before the block begins, of a shape that is known only where it
    is set. So a function is traced again with what the first time taught, until nothing new comes.
    """

    def __init__(self, facts: dict[Any, Any], divides_integers: bool) -> None:
        self.native = _native.NativeTrace()
        self.divides_integers = divides_integers
        self.facts = facts
        self.learned: dict[Any, Any] = {}
        self.inputs: list[Any] = []
        self.input_shapes: dict[Any, tuple[int, int]] = {}
        self.scopes: list[_Scope] = []
        #: The extents and the points of the kernel at hand.
        self.kernel: Any = None
        #: Which results are complex.
        self.is_complex: list[bool] = []
        #: Whether an exception left a block.
        self.is_broken = False
        self._count = 0
        self._n_loops = 0

    # Tensors as they are made.

    def made(self, tensor: Tensor) -> None:
        """Notes a tensor; it becomes memory if it is known to change in a block."""
        number, self._count = self._count, self._count + 1
        tensor._made = _Made(number, len(self.scopes), number in self.facts)
        if number in self.facts:
            self._to_memory(tensor, [self._known(extent) for extent in self.facts[number]])

    def _to_memory(self, tensor: Tensor, shape: list[Any]) -> None:
        memory = self.native.memory(tensor._native.dtype, shape)
        self.native.set(memory, self.native.dense(tensor._native))
        tensor._native = memory
        tensor._made.is_memory = True

    def _known(self, extent: Any) -> Any:
        if isinstance(extent, int):
            return extent
        n, axis = extent
        return self.inputs[n].shape[axis]

    def _named(self, extent: Any) -> Any:
        """An extent in words that another trace understands."""
        if isinstance(extent, int):
            return extent
        for n, given in enumerate(self.inputs):
            if extent in given.shape:
                return (n, given.shape.index(extent))
        raise ValueError("memory that is set in a block has extents that are numbers or those of inputs")

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
                out.append(self.native.dim_of_number(extent._native))
            else:
                out.append(extent.__index__())
        return out

    # Where statements are.

    def mask(self) -> Any:
        """Where the statement at hand is done, if not everywhere."""
        parts: list[Any] = []
        for scope in self._in_function():
            parts += [memory for memory in (scope.alive, scope.going) if memory is not None]
            parts += scope.conditions
        if not parts:
            return None
        out = parts[0]
        for part in parts[1:]:
            out = out.binary("logical_and", part)
        return out

    def _in_function(self) -> list[_Scope]:
        """The blocks of the innermost function that `vmap` calls, or all."""
        first = max((k for k, scope in enumerate(self.scopes) if scope.is_map), default=0)
        return self.scopes[first:]

    def _own(self, target: Tensor) -> None:
        """Refuses memory that was made outside of a function that `vmap` calls."""
        if any(scope.is_map for scope in self.scopes[target._made.depth :]):
            raise ValueError("`vmap`: the function stores to memory that was made outside of it")

    def begin_vmap(self) -> tuple[Any, int]:
        """Begins what a function says of one of many: what ends it takes this."""
        self.scopes.append(_Scope(is_map=True))
        return self.native, self.native.begin_vmap()

    def drop_vmap(self) -> None:
        """Drops what a function has said that raised an error."""
        self.scopes.pop()
        self.native.drop_block()

    def set(self, target: Tensor, value: Any) -> None:
        """Gives a tensor another value, at the points at hand."""
        self._own(target)
        new = _of_type(value, target.dtype)._native
        mask = self.mask()
        shape = self._stretched([target._native, new, *([] if mask is None else [mask])])
        made = target._made
        if not made.is_memory or shape != target._native.shape:
            if made.depth < len(self.scopes):
                self.learned[made.number] = [self._named(extent) for extent in shape]
            elif mask is None:
                # Another value at the same place of the program.
                target._native = self.native.read(new) if made.is_memory else new
                return
            self._to_memory(target, list(shape))
        self.native.set(target._native, new, mask)

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
            if made.depth < len(self.scopes):
                self.learned[made.number] = [self._named(extent) for extent in target._native.shape]
            self._to_memory(target, list(target._native.shape))

    def store(self, target: Tensor, key: Any, value: Any, how: str = "set") -> None:
        """Stores to memory at computed indices, at the points at hand."""
        keys = key if isinstance(key, tuple) else (key,)
        if isinstance(target, _native.NativeField):
            self.store_field(target, key, value, how)
            return
        # Below zero they count from the end, where that is known.
        ends = target._native.shape if len(keys) == target.ndim else []
        keys = tuple(
            k + n if isinstance(k, int) and isinstance(n, int) and -n <= k < 0 else k
            for k, n in itertools.zip_longest(keys, ends)
        )
        index = [self.index(k)._native for k in keys]
        value = _of_type(value, target.dtype)
        self._let_change(target)
        mode = target._outside if target._outside != "error" or not self.divides_integers else "clamp"
        if not index or len(index) != target.ndim:
            raise IndexError(f"{len(index)} indices for memory with {target.ndim} axes")
        self.native.store(target._native, index, value._native, how, mode, self.mask())

    def index(self, key: Any) -> Tensor:
        """An index as a tensor of integers."""
        out = key if isinstance(key, Tensor) else constant(key, ALL["i32"])
        return out.astype("i32") if out.dtype.is_float else out

    def is_gather(self, key: Any) -> bool:
        """Whether a key is of computed indices alone."""
        keys = key if isinstance(key, tuple) else (key,)
        return any(isinstance(k, Tensor) for k in keys) and not any(
            isinstance(k, slice) or k is None or k is Ellipsis for k in keys
        )

    def gather(self, x: Tensor, key: Any) -> Tensor:
        """The elements at computed indices."""
        keys = key if isinstance(key, tuple) else (key,)
        mode = x._outside if x._outside != "error" or not self.divides_integers else "clamp"
        index = [self.index(k)._native for k in keys]
        out = Tensor(self.native.dense(x._native).gather(0, index, mode, False), x._outside)
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
        native = self.native.field(field)
        return Tensor(self.native.load_field(native, self.field_index(field, key)))

    def store_field(self, field: Any, key: Any, value: Any, how: str = "set") -> None:
        """Stores to a field at computed indices, at the points at hand; outside nothing is stored."""
        if any(scope.is_map for scope in self.scopes):
            raise ValueError("`vmap`: the function stores to a field")
        native = self.native.field(field)
        value = _of_type(value, dtype_of(native.dtype))
        index = self.field_index(field, key)
        self.native.store(native, index, value._native, how, "zero", self.mask())

    def all_of(self, field: Any) -> Tensor:
        """All elements of a field, zeros where no cell is active."""
        return Tensor(self.native.read(self.native.field(field)))

    # What else is done while a program is traced.

    def launch(self, kernel: Any, args: Any, kwargs: Any) -> Any:
        """A kernel is called: a statement of the program, with tensors as its arrays and numbers."""
        called = f"kernel `{kernel.__name__}`"
        if any(scope.is_map for scope in self.scopes):
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
            if not isinstance(value, Tensor) or not self.native.owns(value._native):
                if kind == "value":
                    # As it is now.
                    place[key] = value.to_list() if isinstance(value, Matrix) else copy.deepcopy(value)
                continue
            place[key] = self._stand_in(called, name, kind, value)
            at.append((key, kind == "array"))
            tensors.append(value)
            stand_ins.append(place[key])
        call = {"kernel": kernel, "args": tuple(args), "kwargs": kwargs}
        writes = self.native.kernel_writes(call, stand_ins)
        for tensor, written in zip(tensors, writes):
            if written:
                self._let_change(tensor)
        natives = [self.native.dense(tensor._native) for tensor in tensors]
        results = [Tensor(native) for native in self.native.run_kernel(call, at, natives, writes)]
        return results if len(results) > 1 else results[0] if results else None

    def _stand_in(self, called: str, name: str, kind: str, value: Tensor) -> Any:
        """What a kernel is compiled for, in place of a tensor whose numbers are not known yet."""
        native = value._native
        if kind == "array":
            # Elements may be vectors and matrices, whose extents are known.
            last = len(native.shape) - 2
            shape = [n if isinstance(n, int) and k >= last and n <= 32 else 1 for k, n in enumerate(native.shape)]
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
        lo, hi = (x.astype("i32") if x.dtype.is_float else x for x in operands(begin, end))
        if not isinstance(step, int) or step == 0:
            raise ValueError(f"a loop's step is a whole number other than zero, not {step!r}")
        scope = _Scope(is_loop=True)
        scope.number, self._n_loops = self._n_loops, self._n_loops + 1
        scope.alive = self._truths(("loop", scope.number))
        first, last = lo._native, hi._native
        per_point = lo.ndim > 0 or hi.ndim > 0
        if per_point:
            count = (hi - lo + (step - (1 if step > 0 else -1))) // step
            first, last = constant(0, ALL["i32"])._native, count.max()._native
        var, counter = self.native.begin_loop()
        scope.going = self._truths(("turn", scope.number))
        self.scopes.append(scope)
        at = Tensor(counter)
        if per_point:
            at = lo + at * step
            scope.conditions.append(((at < hi) if step > 0 else (at > hi))._native)
        with self._whole(scope):
            yield at
        self._leave_if_done(scope)
        self.scopes.pop()
        self.native.end_loop(var, first, last, 1 if per_point else step)

    def _truths(self, key: Any) -> Any:
        """Memory in which all is true, if points are known to leave a loop or a turn of it."""
        fact = self.facts.get(key)
        if fact is None:
            return None
        memory = self.native.memory("u1", [self._known(extent) for extent in fact])
        self.native.set(memory, constant(True, ALL["u1"])._native)
        return memory

    def _leave_if_done(self, scope: _Scope) -> None:
        """Ends a loop that every point has left."""
        if scope.alive is None:
            return
        none = scope.alive.reduce("any", None, False).unary("logical_not")
        self.native.begin_block()
        self.native.break_()
        self.native.end_if(none)

    @contextlib.contextmanager
    def branch(self, condition: Tensor) -> Iterator[None]:
        """A branch: of the host if the condition is one number, else at the points where it is true."""
        if condition.dtype is not ALL["u1"]:
            condition = condition.astype("u1")
        # Memory that the block changes decides no more.
        held = self.native.read(condition._native) if condition._made.is_memory else condition._native
        scope = _Scope()
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
    def _whole(self, scope: _Scope) -> Iterator[None]:
        """A block whose statements are all known: not those of one that an exception leaves."""
        try:
            yield
        except BaseException:
            del self.scopes[self.scopes.index(scope) :]
            self.is_broken = True
            raise

    def leave_loop(self, turn_only: bool = False) -> None:
        """Leaves the innermost loop, or this turn of it, at the points at hand."""
        around = len(self.scopes) - len(self._in_function())
        at = next((k for k in reversed(range(around, len(self.scopes))) if self.scopes[k].is_loop), None)
        if at is None:
            raise SyntaxError("there is no loop to leave")
        loop = self.scopes[at]
        inside = [c for scope in self.scopes[at:] for c in scope.conditions]
        if not inside and self.mask() is None:
            self.native.continue_() if turn_only else self.native.break_()
            return
        mask = self.mask()
        if mask is None:
            mask = constant(True, ALL["u1"])._native
        memory = loop.going if turn_only else loop.alive
        shape = mask.shape if memory is None else self._stretched([mask, memory])
        key = ("turn" if turn_only else "loop", loop.number)
        named = [self._named(extent) for extent in shape]
        if self.facts.get(key) != named:
            self.learned[key] = named
            return
        self.native.set(memory, constant(False, ALL["u1"])._native, mask)


def _of_type(value: Any, dtype: Any) -> Tensor:
    """A value for elements of a type: numbers of Python's become that at once."""
    if is_number(value) and (dtype.is_float or not isinstance(value, float)):
        return constant(value, dtype)
    if isinstance(value, (list, tuple)) and dtype.is_float:
        return asarray(value, dtype)
    return (value if isinstance(value, Tensor) else asarray(value)).astype(dtype)


def _trace() -> Trace:
    if tracing.program is None:
        raise RuntimeError("this is for functions under `program`, while they are traced")
    return tracing.program


class Program:
    """A traced function, ready to run."""

    def __init__(self, function: Callable[[], Any], divides_integers: bool = False) -> None:
        self._function = function
        self._divides_integers = divides_integers
        self._made: Any = None
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", "program")

    def _traced(self) -> Any:
        if tracing.program is not None:
            raise RuntimeError("a program is not traced inside another one: call the function")
        facts: dict[Any, Any] = {}
        while True:
            trace = Trace(facts, self._divides_integers)
            tracing.trace, tracing.program = trace.native, trace
            outer = _native.set_recorder(trace)
            try:
                results = self._function()
                many = isinstance(results, (tuple, list))
                given = list(results) if many else [] if results is None else [results]
                given = [r if isinstance(r, Tensor) else asarray(r) for r in given]
                # A complex tensor is two.
                trace.is_complex = [isinstance(r, ComplexTensor) for r in given]
                planes = [p for r in given for p in ((r.real, r.imag) if isinstance(r, ComplexTensor) else (r,))]
                natives = [trace.native.read(trace.native.dense(p._native)) for p in planes]
            finally:
                _native.set_recorder(outer)
                tracing.trace = tracing.program = None
            if trace.is_broken:
                raise RuntimeError(
                    "an exception left a block of the program (a loop, a branch) and was caught outside of it: what "
                    "the block does is not known then. Catch it inside"
                )
            new = {k: v for k, v in trace.learned.items() if facts.get(k) != v}
            if not new:
                return trace, trace.native.finish(natives), many, results is None
            facts.update(new)

    def compile(self) -> Program:
        """Traces and compiles it, which the first call does else."""
        # What a kernel writes to may be otherwise after `ti.init`.
        if self._made is None or not self._made[1].is_current:
            self._made = self._traced()
        return self

    @property
    def text(self) -> str:
        """The statements."""
        return self.compile()._made[1].text

    def explain(self) -> str:
        """What became of the statements: which share a kernel, which temporaries are kept in memory, and why."""
        return self.compile()._made[1].explained

    def _result(self, native: Any) -> Tensor:
        return Tensor(native)

    def __call__(self, *inputs: Any) -> Any:
        """Runs it: tensors and arrays for its inputs, in the order in which they were made."""
        trace, native, many, none = self.compile()._made
        if len(inputs) != len(trace.inputs):
            raise TypeError(f"`{self.__name__}` takes {len(trace.inputs)} tensors, {len(inputs)} were given")
        given = []
        for n, (value, wanted) in enumerate(zip(inputs, trace.inputs)):
            tensor = asarray(value)
            if tensor.dtype._aerogel_dtype != wanted.dtype:
                raise TypeError(
                    f"input {n} of `{self.__name__}` has elements of `{wanted.dtype}`, not `{tensor.dtype}`"
                )
            if tensor.ndim != len(wanted.shape):
                raise ValueError(f"input {n} of `{self.__name__}` has {len(wanted.shape)} axes, not {tensor.ndim}")
            for axis, (extent, known) in enumerate(zip(tensor.shape, wanted.shape)):
                if isinstance(known, int) and known != extent:
                    raise ValueError(f"input {n} of `{self.__name__}`: axis {axis} has {known} elements, not {extent}")
            given.append(tensor._native)
        planes = iter([self._result(r) for r in native.run(given)])
        results = [ComplexTensor(next(planes), next(planes)) if both else next(planes) for both in trace.is_complex]
        if none:
            return None
        return tuple(results) if many else results[0]


def program(function: Callable[[], Any]) -> Program:
    """A program of a function without parameters, whose inputs are made inside by ``input``."""
    return Program(function)


def input(shape: Any, dtype: Any = None) -> Tensor:  # noqa: A001
    """What comes from outside: the next argument of the program.

    Args:
        shape: The extents: numbers, -1 for what is known when the program runs, or those of other inputs.
        dtype: The type of the elements.
    """
    trace = _trace()
    kind = dtype_of(dtype) if dtype is not None else _types.default_float()
    given = [shape] if isinstance(shape, Tensor) or hasattr(shape, "__index__") else list(shape)
    wanted = [None if isinstance(n, int) and n == -1 else trace.extents([n])[0] for n in given]
    native = trace.native.input(f"input {len(trace.inputs)}", kind._aerogel_dtype, wanted)
    trace.inputs.append(native)
    return Tensor(native)


def assert_tensor(tensor: Tensor, shape: Any, dtype: Any = None) -> Tensor:
    """The tensor, which has this shape and type: else an error, when the program is traced or when it runs."""
    trace = _trace()
    if dtype is not None and tensor.dtype is not dtype_of(dtype):
        raise TypeError(f"a tensor of `{dtype_of(dtype)}` is asked for, not of `{tensor.dtype}`")
    given = [shape] if isinstance(shape, Tensor) or hasattr(shape, "__index__") else list(shape)
    wanted = [None if isinstance(n, int) and n == -1 else trace.extents([n])[0] for n in given]
    message = "a tensor has an extent of {}, asserted is {}"
    if not trace.native.assert_shape(tensor._native, wanted, message):
        raise ValueError(
            f"a tensor of {len(wanted)} axes with other extents is asserted; it has {tensor._native.shape}"
        )
    return tensor


def indices(shape: Any) -> Any:
    """The index along each axis, at every point of a shape, or at every active cell of a field.

    What is made of the indices of a field's cells point by point has values at these cells alone; sums and other
    reductions go over them. A store that makes other cells active ends their use: take the indices anew.
    """
    trace = _trace()
    if isinstance(shape, _native.NativeField):
        return tuple(Tensor(native) for native in trace.native.cell_indices(trace.native.field(shape)))
    extents = trace.extents(shape)
    natives = [_native.NativeTensor.iota(extents, k, "i32", tracing.trace) for k in range(len(extents))]
    return tuple(Tensor(native) for native in natives)


def dense(x: Any) -> Tensor:
    """A tensor with the values that one has at the active cells of a field, and zeros elsewhere."""
    x = x if isinstance(x, Tensor) else asarray(x)
    return Tensor(_trace().native.dense(x._native), x._outside)


def buffer(shape: Any, dtype: Any = None) -> Tensor:
    """Memory of the program's own, zeros at first."""
    trace = _trace()
    kind = dtype_of(dtype) if dtype is not None else _types.default_float()
    native = _native.NativeTensor.full(trace.extents(shape), kind._aerogel_dtype, 0, tracing.trace)
    out = Tensor(native)
    if not out._made.is_memory:
        trace._to_memory(out, list(native.shape))
    return out


def const(value: Any, dtype: Any = None) -> Tensor:
    """A value that may be set."""
    kind = dtype_of(dtype) if dtype is not None else _types.of_number(value, None)
    return constant(value, kind)


@contextlib.contextmanager
def loop(begin: Any, end: Any = None, step: int = 1) -> Iterator[Tensor]:
    """Does a block for each number from ``begin`` (0 if one is given) to before ``end``."""
    with _trace().loop(0 if end is None else begin, begin if end is None else end, step) as k:
        yield k


@contextlib.contextmanager
def if_cond(condition: Any) -> Iterator[None]:
    """Does a block where a condition is true."""
    with _trace().branch(condition if isinstance(condition, Tensor) else asarray(condition)):
        yield


def break_loop() -> None:
    """Leaves the innermost loop, at the points at hand."""
    _trace().leave_loop()


def continue_loop() -> None:
    """Goes on with the next turn of the innermost loop, at the points at hand."""
    _trace().leave_loop(turn_only=True)


@contextlib.contextmanager
def kernel(shape: Any) -> Iterator[Any]:
    """Does a block at every point of a shape, or at every active cell of a field: its indices."""
    at = indices(shape)
    yield _One(at[0]) if len(at) == 1 else at


class _One(Tensor):
    """The index of a kernel over one axis: it, or a tuple of it."""

    __slots__ = ()

    def __init__(self, index: Tensor) -> None:
        super().__init__(index._native)

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self,))


def scatter_add(target: Tensor, key: Any, value: Any) -> None:
    """Adds values to memory at computed indices."""
    _trace().store(target, key, value, "add")


def scatter_min(target: Tensor, key: Any, value: Any) -> None:
    """Keeps the smaller of memory and values at computed indices."""
    _trace().store(target, key, value, "min")


def scatter_max(target: Tensor, key: Any, value: Any) -> None:
    """Keeps the larger of memory and values at computed indices."""
    _trace().store(target, key, value, "max")
