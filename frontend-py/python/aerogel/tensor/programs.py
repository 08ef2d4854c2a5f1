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
import sys
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import ALL, dtype_of
from aerogel._source_lines import note
from aerogel.errors import AerogelAssertionError
from aerogel.tensor import _types
from aerogel.tensor._complex import ComplexTensor, complex_type, is_complex
from aerogel.tensor._names import Names
from aerogel.tensor._places import here
from aerogel.tensor._tensor import Tensor, asarray, constant, expect_constant, inside, is_number, tracing
from aerogel.tensor._trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _trace() -> Trace:
    if tracing.program is None:
        what = sys._getframe(1).f_code.co_name
        raise RuntimeError(f"`{what}` is for functions under `program`, while they are traced")
    return tracing.program


def _outside_of_others() -> None:
    if tracing.program is not None:
        raise RuntimeError(
            "a program calls no other program: make what both do a function without `program`, which takes tensors and "
            "returns them"
        )


#: So often a program is traced at most: each time teaches what a block sets, and blocks are in blocks.
_MOST_TRACES = 50


class Program:
    """A traced function, ready to run."""

    def __init__(self, function: Callable[[], Any], divides_integers: bool = False) -> None:
        self._function = function
        self._divides_integers = divides_integers
        self._made: Any = None
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", "program")

    def _traced(self) -> Any:
        _outside_of_others()
        facts: dict[Any, Any] = {}
        kept: set[Any] = set()
        for _ in range(_MOST_TRACES):
            trace = Trace(facts, self._divides_integers)
            tracing.trace, tracing.program = trace.native, trace
            outer = _native.set_recorder(trace)
            try:
                results = self._function()
                trace.begun.expect_ended()
                many = isinstance(results, (tuple, list))
                given = list(results) if many else [] if results is None else [results]
                for r in given:
                    if r is None or isinstance(r, (dict, set, str)):
                        what = type(r).__name__ + (" in one" if many else "")
                        raise TypeError(f"a program returns a tensor, or several in a tuple or a list, not {what}")
                given = [r if isinstance(r, Tensor) else asarray(r) for r in given]
                # A complex tensor is two.
                trace.is_complex = [isinstance(r, ComplexTensor) for r in given]
                parts = [(r.real, r.imag) if isinstance(r, ComplexTensor) else (r,) for r in given]
                planes = [inside(p) for part in parts for p in part]
                natives = [trace.native.read(trace.native.dense(p._native)) for p in planes]
                none = results is None
                # Python keeps them no longer than this.
                results = given = parts = planes = r = None
            except Exception:
                # What it means may depend on what it has taught.
                new = trace.lessons()
                if not new or trace.is_refused:
                    raise
                facts.update(new)
                continue
            finally:
                _native.set_recorder(outer)
                tracing.trace = tracing.program = None
                new_kept = trace.let_go() - kept
                kept |= new_kept
                if new_kept:
                    # What a cache of Python's was given, maybe in a block, the next trace finds there.
                    facts.clear()
            for what in trace.not_begun.values():
                raise RuntimeError(what)
            if trace.is_broken:
                raise RuntimeError(
                    "an exception left a block of the program (a loop, a branch) and was caught outside of it: what "
                    "the block does is not known then. Catch it inside"
                )
            new = trace.lessons()
            if new_kept:
                continue
            if not new:
                return trace, trace.native.finish(natives), many, none
            facts.update(new)
        raise ValueError(
            "a value that is set in a block has more axes, or other extents, each time that the program is traced, as "
            "by `x.val = x[None] + 1` in a loop: what is set in a block keeps its extents"
        )

    def compile(self) -> Program:
        """Traces and compiles it, which the first call does else."""
        # Types, arithmetic, and what a kernel writes to may be otherwise after `ti.init`.
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

    def _of_numbers(self, value: Any, n: int, wanted: Any) -> Any:
        """Numbers of Python's, which have no type of their own, as an input."""
        dtype = ALL[wanted.dtype]
        if not dtype.is_float and (given := asarray(value)).size:
            _types.kept(given.dtype, dtype, f"input {n} of `{self.__name__}`: elements")
        return asarray(value, dtype)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Runs it: tensors, arrays and numbers for its inputs, in the order in which they were made."""
        if named:
            names = ", ".join(f"`{name}`" for name in named)
            raise TypeError(
                f"inputs of a program have no names, and {names} were given so: `{self.__name__}(a, b)` takes them in "
                "the order of its calls of `input`"
            )
        _outside_of_others()
        trace, native, many, none = self.compile()._made
        if len(inputs) != len(trace.inputs):
            raise TypeError(f"`{self.__name__}` takes {len(trace.inputs)} tensors, {len(inputs)} were given")
        given = []
        for n, (value, wanted) in enumerate(zip(inputs, trace.inputs)):
            is_plain = is_number(value) or isinstance(value, (list, tuple))
            tensor = self._of_numbers(value, n, wanted) if is_plain else asarray(value)
            if isinstance(tensor, Tensor) and tensor._native.is_one_of_many():
                raise TypeError(
                    f"`vmap`: the function calls the program `{self.__name__}`, which cannot be mapped: call `vmap` in "
                    "the program, on a function of one"
                )
            if getattr(tensor.dtype, "_aerogel_dtype", None) != wanted.dtype:
                raise TypeError(
                    f"input {n} of `{self.__name__}` takes elements of `{wanted.dtype}`, not of `{tensor.dtype}`: "
                    f"convert it before, as by `ti.tensor.asarray(x, ti.{wanted.dtype})`"
                )
            if tensor.ndim != len(wanted.shape):
                raise ValueError(f"input {n} of `{self.__name__}` takes {len(wanted.shape)} axes, not {tensor.ndim}")
            for axis, (extent, known) in enumerate(zip(tensor.shape, wanted.shape)):
                if isinstance(known, int) and known != extent:
                    raise ValueError(
                        f"input {n} of `{self.__name__}`: axis {axis} takes {known} elements, not {extent}"
                    )
            given.append(tensor._native)
        if _native.recorder() is not None:
            for field in trace.fields_read.values():
                expect_constant(field)
        arguments = iter(given)
        every = [next(arguments) if own is None else own for own in trace.given]
        planes = iter([self._result(r) for r in native.run(every)])
        results = [ComplexTensor(next(planes), next(planes)) if both else next(planes) for both in trace.is_complex]
        if none:
            return None
        return tuple(results) if many else results[0]


def program(function: Callable[[], Any]) -> Program:
    """A program of a function without parameters, whose inputs are made inside by ``input``.

    Raises:
        TypeError: The function has parameters.
    """
    code = getattr(function, "__code__", None)
    given = len(getattr(function, "__defaults__", None) or ()) + (getattr(function, "__self__", None) is not None)
    if code is not None and code.co_argcount > given:
        name = code.co_varnames[0]
        raise TypeError(
            f"the function of a program has no parameters, and `{function.__name__}` has `{name}`: begin it by "
            f"`{name} = input(shape, dtype)`; a method makes its program inside"
        )
    note(function)
    return Program(function)


def _type_of(dtype: Any, word: str) -> Any:
    """The type of the elements of an input or memory."""
    if dtype is None:
        return _types.default_float()
    if isinstance(dtype, (int, list, tuple)):
        raise TypeError(f"`{word}` takes the shape first and then the type, as in `{word}([-1, 3], ti.f32)`")
    if complex_type(dtype) is not None:
        raise TypeError(
            f"`{word}` takes real types, not `{complex_type(dtype)}`: make one of the real parts, and one of the others"
        )
    return dtype_of(dtype)


def _wanted(trace: Trace, shape: Any, called: str) -> list[Any]:
    """Extents that are asked for: -1 for those that are as they are."""
    given = [shape] if isinstance(shape, Tensor) or hasattr(shape, "__index__") else list(shape)
    is_open = [isinstance(n, int) and n == -1 for n in given]
    _types.counts([n for n, free in zip(given, is_open) if not free], called, "shape")
    return [None if free else trace.extents([n])[0] for n, free in zip(given, is_open)]


def input(shape: Any, dtype: Any = None) -> Tensor:  # noqa: A001
    """What comes from outside: the next argument of the program.

    Args:
        shape: The extents: numbers, -1 for what is known when the program runs, or those of other inputs.
        dtype: The type of the elements.
    """
    trace = _trace()
    kind = _type_of(dtype, "input")
    wanted = _wanted(trace, shape, "input")
    native = trace.native.input(f"input {len(trace.inputs)}", kind._aerogel_dtype, wanted)
    trace.inputs.append(native)
    trace.given.append(None)
    return Tensor(native)


def assert_tensor(tensor: Tensor, shape: Any, dtype: Any = None) -> Tensor:
    """The tensor, which has this shape and type: else an error, when the program is traced or when it runs."""
    trace = _trace()
    if dtype is not None and tensor.dtype is not dtype_of(dtype):
        raise TypeError(f"a tensor of `{dtype_of(dtype)}` is asked for, not of `{tensor.dtype}`")
    wanted = _wanted(trace, shape, "assert_tensor")
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
    return _at(_trace(), shape, "indices")


def _at(trace: Trace, shape: Any, called: str) -> Any:
    if isinstance(shape, _native.NativeField):
        natives = trace.cell_indices(shape)
        return _One(natives[0]) if len(natives) == 1 else tuple(map(Tensor, natives))
    _types.counts(shape, called, "shape")
    extents = trace.extents(shape)
    natives = [_native.NativeTensor.iota(extents, k, "i32", tracing.trace) for k in range(len(extents))]
    return _One(natives[0]) if len(natives) == 1 else tuple(map(Tensor, natives))


def dense(x: Any) -> Tensor:
    """A tensor with the values that one has at the active cells of a field, and zeros elsewhere."""
    x = x if isinstance(x, Tensor) else asarray(x)
    return Tensor(_trace().native.dense(x._native), x._outside)


def buffer(shape: Any, dtype: Any = None) -> Tensor:
    """Memory of the program's own, zeros at first."""
    trace = _trace()
    kind = _type_of(dtype, "buffer")
    _types.counts(shape, "buffer", "shape")
    native = _native.NativeTensor.full(trace.extents(shape), kind._aerogel_dtype, 0, tracing.trace)
    out = Tensor(native)
    if not out._made.is_memory:
        trace._to_memory(out, list(native.shape))
    return out


def const(value: Any, dtype: Any = None) -> Tensor:
    """A value that may be set: of a number, a list, an array or another tensor."""
    if is_complex(value):
        raise TypeError("a value that may be set is real: make one of the real part, and one of the imaginary part")
    if not is_number(value):
        return asarray(value, dtype, copy=True)
    kind = dtype_of(dtype) if dtype is not None else _types.of_number(value, None)
    return constant(value, kind)


class _Block:
    """What begins a block of a program, by ``with``: one that is never begun is an error."""

    __slots__ = ("_block", "_names", "_place", "_trace", "_word")

    def __init__(self, word: str, begin: Callable[[Trace], Any]) -> None:
        trace = tracing.program
        if trace is None:
            raise RuntimeError(f"`{word}` is for functions under `program`, while they are traced")
        self._word, self._trace, self._place = word, trace, here()
        self._names: Names | None = None
        self._block = begin(trace)
        trace.not_begun[self] = f"`{word}` ({self._place}) begins no block: write `with {word}(...):`"

    def __enter__(self) -> Any:
        if self._trace.not_begun.pop(self, None) is None:
            raise RuntimeError(f"a block begins once: write `with {self._word}(...):` for each")
        value = self._block.__enter__()
        self._trace.begun.add(self, f"`{self._word}` ({self._place})")
        with self._or_leave():
            self._names = Names(_frames(), self._trace.scopes)
        return value

    def __iter__(self) -> Any:
        raise TypeError(f"a block begins by `with`: write `with {self._word}(...) as k:` in place of `for`")

    def __exit__(self, *error: Any) -> Any:
        names, self._names = self._names, None
        self._trace.begun.end(self, by_error=error[0] is not None)
        if names is not None:
            with self._or_leave():
                names.close() if error[0] is not None else names.end()
        return self._block.__exit__(*error)

    @contextlib.contextmanager
    def _or_leave(self) -> Iterator[None]:
        """Does something that leaves the block by the errors that it raises."""
        try:
            yield
        except BaseException:
            # What Python has been told once it would not be told by another trace.
            self._trace.is_refused = True
            self._trace.begun.end(self, by_error=True)
            self._block.__exit__(*sys.exc_info())
            raise


def _frames() -> list[Any]:
    """The user's functions from where a block begins to the program's."""
    frame, out = sys._getframe(2), []
    while frame is not None and frame.f_code is not Program._traced.__code__:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("aerogel", "contextlib"):
            out.append(frame)
        frame = frame.f_back
    return out


def loop(begin: Any = None, end: Any = None, step: int = 1) -> _Block:
    """Does a block for each number from ``begin`` (0 if one is given) to before ``end``: ``with loop(10) as k:``."""
    if begin is None:
        raise TypeError(
            "`loop` takes how often its block is done, as in `loop(10)`, `loop(n)` or `loop(begin, end, step)`; "
            "`break_loop()` leaves it earlier"
        )
    if isinstance(begin, (range, list, tuple)):
        raise TypeError(f"`loop` takes the numbers that `range` takes, as in `loop(0, 10, 2)`, not {begin!r}")
    first, last = (0, begin) if end is None else (begin, end)
    return _Block("loop", lambda trace: trace.loop(first, last, step))


def if_cond(condition: Any) -> _Block:
    """Does a block where a condition is true: ``with if_cond(x > 0):``."""
    return _Block(
        "if_cond", lambda trace: trace.branch(condition if isinstance(condition, Tensor) else asarray(condition))
    )


def break_loop() -> None:
    """Leaves the innermost loop, at the points at hand."""
    _trace().leave_loop()


def continue_loop() -> None:
    """Goes on with the next turn of the innermost loop, at the points at hand."""
    _trace().leave_loop(turn_only=True)


@contextlib.contextmanager
def kernel(shape: Any) -> Iterator[Any]:
    """Does a block at every point of a shape, or at every active cell of a field: its indices."""
    yield _at(_trace(), shape, "kernel")


class _One(Tensor):
    """The index along the only axis: it, or a tuple of it."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Tensor]:
        # One that is only the index, of which `[0]` is the first element.
        return iter((Tensor(self._native),))

    def __len__(self) -> int:
        return 1

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, slice)):
            return tuple(self)[key]
        return super().__getitem__(key)


def print_value(name: str, value: Any) -> None:
    """Prints a value, in each turn of a loop; where something is done at some points only, what it is there."""
    trace = _trace()
    value = value if isinstance(value, Tensor) else asarray(value)

    def show(numbers: Tensor, where: Any = None) -> None:
        import numpy as np

        array = numbers.numpy()
        if where is not None:
            both = np.broadcast_arrays(array, where.numpy())
            if not both[1].any():
                return
            array = both[0][both[1]]
        print(f"{name}: {array}")

    trace.watch(show, "print_value", value)


def assert_value(name: str, condition: Any) -> None:
    """Ends the program with an error of this name if a condition is false, at some point if there are several."""
    trace = _trace()
    condition = condition if isinstance(condition, Tensor) else asarray(condition)
    if condition.dtype is not ALL["u1"]:
        condition = condition.astype("u1")
    place = here()

    def look(holds: Tensor, where: Any = None) -> None:
        import numpy as np

        fails = ~holds.numpy()
        if where is not None:
            fails = fails & where.numpy()
        if fails.any():
            first = tuple(int(k) for k in np.argwhere(fails)[0])
            more = np.count_nonzero(fails) - 1
            others = f", as at {more} other point{'s' if more > 1 else ''}" if more else ""
            at = f" at {first}{others}" if fails.ndim else ""
            raise AerogelAssertionError(f"{name}: the condition is false{at} ({place})")

    trace.watch(look, "assert_value", condition)


def scatter_add(target: Tensor, key: Any, value: Any) -> None:
    """Adds values to memory at computed indices."""
    _trace().store(target, key, value, "add")


def scatter_min(target: Tensor, key: Any, value: Any) -> None:
    """Keeps the smaller of memory and values at computed indices."""
    _trace().store(target, key, value, "min")


def scatter_max(target: Tensor, key: Any, value: Any) -> None:
    """Keeps the larger of memory and values at computed indices."""
    _trace().store(target, key, value, "max")


def scatter_add_previous(target: Tensor, key: Any, value: Any) -> Tensor:
    """Adds values to memory at computed indices, one point after the other: what was there before each."""
    return _trace().store_with_previous(target, key, value, "add")
