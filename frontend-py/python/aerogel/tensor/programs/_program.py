"""Programs: functions that are traced once for each kind of arguments, and compiled."""

from __future__ import annotations

import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel import _native
from aerogel._dtypes import ALL
from aerogel._source_lines import note
from aerogel.tensor import _types
from aerogel.tensor._complex import ComplexTensor, is_complex
from aerogel.tensor._tensor import GivenNumber, Tensor, asarray, expect_constant, inside, is_number, tracing
from aerogel.tensor.programs import _trees
from aerogel.tensor.programs._lint import look_at_function
from aerogel.tensor.programs._trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class _Leaf:
    """A result in the structure of all: one tensor, or the two parts of a complex one."""

    def __init__(self, is_complex: bool) -> None:
        self.is_complex = is_complex


class Lowered:
    """A program as it was traced for some kind of arguments, ready to run."""

    def __init__(self, trace: Trace, native: Any, results: Any, make: Callable[[Any], Tensor]) -> None:
        self._native = native
        self._results = results
        self._make = make
        self._fields = list(trace.fields_read.values())
        self._given = trace.given if any(own is not None for own in trace.given) else None
        self._is_one = isinstance(results, _Leaf) and not results.is_complex
        #: What ``input`` has made.
        self.inputs = trace.inputs

    @property
    def is_current(self) -> bool:
        """Whether ``ti.init`` has not been called since: types and arithmetic may be others then."""
        return self._native.is_current

    @property
    def text(self) -> str:
        """The statements."""
        return self._native.text

    def explain(self) -> str:
        """What became of the statements: which share a kernel, which temporaries are kept in memory, and why."""
        return self._native.explained

    def run(self, natives: list[Any]) -> Any:
        """Runs it."""
        if self._fields and _native.recorder() is not None:
            for field in self._fields:
                expect_constant(field)
        if self._given is not None:
            arguments = iter(natives)
            natives = [next(arguments) if own is None else own for own in self._given]
        made = self._native.run(natives)
        if self._is_one:
            return self._make(made[0])
        planes = iter([self._make(native) for native in made])

        def leaf(place: Any) -> Any:
            if not isinstance(place, _Leaf):
                return place
            return ComplexTensor(next(planes), next(planes)) if place.is_complex else next(planes)

        return _trees.mapped(self._results, leaf)


class Program:
    """A function of tensors, which is traced at its first call and compiled.

    Arguments are tensors, arrays, numbers, fields, and tuples, lists, dictionaries and dataclasses of them. The program
    that was made for some serves all others of the same types and numbers of axes; axes of one element are another
    kind of argument than longer ones, since they are stretched. Python's numbers are inputs too, but for those that are
    annotated ``int`` or named by ``static``: another value of these is traced anew.

    Args:
        function: What is traced.
        static: The names of parameters whose values are known when the function is traced.
        divides_integers: Whether integers are divided as in C, as TensorFrost does.

    Raises:
        TypeError: If ``static`` names no parameter.
    """

    def __init__(
        self, function: Callable[..., Any], static: Sequence[str] = (), *, divides_integers: bool = False
    ) -> None:
        self.__name__ = "program"
        functools.update_wrapper(self, function)
        self._function = function
        self._divides_integers = divides_integers
        self._signature = _signature(function)
        self._static = frozenset([static] if isinstance(static, str) else static)
        if unknown := sorted(self._static - self._signature.parameters.keys()):
            raise TypeError(f"`{self.__name__}` has no parameter `{unknown[0]}`, which `static` names")
        #: Programs by the kinds of their arguments.
        self._made: dict[Any, Lowered] = {}
        #: Those of tensors alone, which are looked up faster.
        self._of_tensors: dict[Any, Lowered] = {}
        self._last: Lowered | None = None
        #: How often the function has been traced.
        self.trace_count = 0
        kinds = [parameter.kind for parameter in self._signature.parameters.values()]
        #: How many tensors are a call of tensors alone.
        self._n_plain = len(kinds) if all(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds) else -1
        #: A function without parameters makes its inputs by ``input``.
        self._makes_inputs = not kinds or divides_integers

        #: One thread traces at a time: the others find what it has made.
        self._lock = threading.RLock()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else Method(self, instance)

    def of_many(self, many: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Program:
        """The program of another function that is made of this one's, as by ``vmap``.

        Raises:
            TypeError: If the function makes its inputs itself.
        """
        if self._makes_inputs:
            raise TypeError(
                f"`{self.__name__}` makes its inputs itself, by `input`, and cannot be mapped: give its function "
                "parameters"
            )
        return Program(many(self._function), sorted(self._static), divides_integers=self._divides_integers)

    # What it is made into.

    def compile(self) -> Program:
        """Traces and compiles a function without parameters, which the first call does else."""
        if not self._makes_inputs:
            raise TypeError(f"`{self.__name__}` has parameters: `{self.__name__}.lower(...)` takes what they are given")
        self._lowered(())
        return self

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The program for some arguments, without running it: its ``text`` and what it ``explain``s."""
        if self._makes_inputs:
            return self._lowered(())
        return self._bound(args, kwargs)[0]

    def _any(self) -> Lowered:
        if self._makes_inputs:
            return self._lowered(())
        if self._last is None:
            raise TypeError(f"`{self.__name__}` has not been called: `{self.__name__}.lower(...)` takes its arguments")
        return self._last

    @property
    def text(self) -> str:
        """The statements, as they were traced last."""
        return self._any().text

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """What became of the statements: which share a kernel, which temporaries are kept in memory, and why.

        Without arguments that of the last call.
        """
        return (self.lower(*args, **kwargs) if args or kwargs else self._any()).explain()

    def _result(self, native: Any) -> Tensor:
        return Tensor(native)

    # Calls.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs it, or in a program that is traced, is a part of that."""
        if tracing.program is not None:
            return self._inline(args, kwargs)
        if self._n_plain == len(args) and args and not kwargs:
            kinds, natives = [], []
            for value in args:
                if type(value) is not Tensor:
                    break
                native = value._native
                natives.append(native)
                kinds.append(native.kind)
                kinds.append(value._outside)
            else:
                lowered = self._of_tensors.get(tuple(kinds))
                if lowered is not None and lowered.is_current:
                    return lowered.run(natives)
        if self._makes_inputs:
            lowered = self._lowered(())
            return lowered.run(self._given(lowered, args, kwargs))
        lowered, natives = self._bound(args, kwargs)
        return lowered.run(natives)

    def _inline(self, args: Any, kwargs: Any) -> Any:
        if not self._makes_inputs:
            return self._function(*args, **kwargs)
        called = tracing.program.called
        called.append(self.__name__)
        try:
            if args or kwargs:
                raise RuntimeError(
                    f"`{self.__name__}` makes its inputs itself, by `input`, and is called by another program: give "
                    "its function parameters"
                )
            return self._function()
        finally:
            called.pop()

    def _bound(self, args: Any, kwargs: Any) -> tuple[Lowered, list[Any]]:
        """The program for some arguments, and its inputs."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"`{self.__name__}`: {e}") from None
        bound.apply_defaults()
        tensors: list[Tensor] = []
        kinds: list[Any] = []
        is_plain = True

        def leaf(value: Any, name: str, annotation: Any) -> Any:
            nonlocal is_plain
            is_plain = is_plain and type(value) is Tensor
            static = _is_static(value, annotation) or name.partition(".")[0].partition("[")[0] in self._static
            if static:
                try:
                    hash(value)
                except TypeError:
                    raise TypeError(
                        f"argument `{name}` of `{self.__name__}` is known when the program is traced, and so has a "
                        f"hash, which {type(value).__name__} has not"
                    ) from None
                if isinstance(value, (Tensor, ComplexTensor)):
                    raise TypeError(
                        f"argument `{name}` of `{self.__name__}` is known when the program is traced, and a tensor is "
                        "not: leave it out of `static`"
                    )
                kinds.append(_Static(value))
                return kinds[-1]
            if is_number(value):
                kinds.append(_GivenNumber.of(value))
                tensors.append(kinds[-1].wide(value))
                return kinds[-1]
            tensor = self._tensor(value, name)
            planes = [tensor.real, tensor.imag] if isinstance(tensor, ComplexTensor) else [tensor]
            tensors.extend(planes)
            is_one = tuple(n == 1 for n in tensor.shape)
            kinds.append((len(planes), planes[0]._native.dtype, is_one, planes[0]._outside))
            return kinds[-1]

        parts = []
        for name, parameter in self._signature.parameters.items():
            value = bound.arguments[name]
            parts.append(_trees.flatten(value, leaf, name, parameter.annotation))
        key = tuple(parts)
        natives = [tensor._native for tensor in tensors]
        lowered = self._lowered(key, bound, kinds)
        if is_plain and len(args) == self._n_plain:
            kinds_of = tuple(part for tensor in tensors for part in (tensor._native.kind, tensor._outside))
            if all(kinds_of):
                self._of_tensors[kinds_of] = lowered
        return lowered, natives

    def _tensor(self, value: Any, name: str) -> Any:
        try:
            tensor = asarray(value)
        except (TypeError, ValueError) as e:
            raise TypeError(f"argument `{name}` of `{self.__name__}` is no tensor: {e}") from None
        if isinstance(tensor, Tensor) and tensor._native.is_one_of_many():
            raise TypeError(
                f"`vmap`: the function calls the program `{self.__name__}`, which is compiled for tensors with "
                "numbers: call `vmap` in a program"
            )
        return tensor

    def _given(self, lowered: Lowered, values: Any, named: Any) -> list[Any]:
        """The inputs of a function that has made them by ``input``, in the order of these calls."""
        if named:
            names = ", ".join(f"`{name}`" for name in named)
            raise TypeError(
                f"`{self.__name__}` has no parameters, and {names} were given by name: `{self.__name__}(a, b)` takes "
                "inputs in the order of the calls of `input`"
            )
        if len(values) != len(lowered.inputs):
            raise TypeError(f"`{self.__name__}` takes {len(lowered.inputs)} tensors, {len(values)} were given")
        natives = []
        for n, (value, wanted) in enumerate(zip(values, lowered.inputs)):
            is_plain = is_number(value) or isinstance(value, (list, tuple))
            tensor = self._of_numbers(value, n, wanted) if is_plain else self._tensor(value, f"{n}")
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
            natives.append(tensor._native)
        return natives

    def _of_numbers(self, value: Any, n: int, wanted: Any) -> Any:
        """Numbers of Python's, which have no type of their own, as an input."""
        dtype = ALL[wanted.dtype]
        if not dtype.is_float and (given := asarray(value)).size:
            _types.kept(given.dtype, dtype, f"input {n} of `{self.__name__}`: elements")
        return _given(value, dtype) if is_number(value) else asarray(value, dtype)

    # Traces.

    def _lowered(self, key: Any, bound: Any = None, kinds: Sequence[Any] = ()) -> Lowered:
        with self._lock:
            lowered = self._made.get(key)
            # Types, arithmetic, and what a kernel writes to may be otherwise after `ti.init`.
            if lowered is None or not lowered.is_current:
                self._of_tensors.clear()
                lowered = self._made[key] = self._traced(bound, kinds)
            self._last = lowered
            return lowered

    def _traced(self, bound: Any, kinds: Sequence[Any]) -> Lowered:
        look_at_function(self._function)
        self.trace_count += 1
        trace = Trace(self._divides_integers)
        around = tracing.trace, tracing.program
        tracing.trace, tracing.program = trace.native, trace
        outer = _native.set_recorder(trace)
        try:
            if bound is None:
                results = self._function()
            else:
                self._make_inputs(trace, bound, kinds)
                results = self._function(*bound.args, **bound.kwargs)
            trace.expect_whole()
            planes: list[Any] = []
            tree = self._structure(results, planes)
            native = trace.native.finish(planes)
        finally:
            _native.set_recorder(outer)
            tracing.trace, tracing.program = around
        return Lowered(trace, native, tree, self._result)

    def _make_inputs(self, trace: Trace, bound: Any, kinds: Sequence[Any]) -> None:
        """Puts inputs of the program in place of the tensors among some arguments."""
        rest = iter(kinds)
        natives: list[list[Any]] = []

        def leaf(value: Any, name: str, _: Any) -> None:
            kind = next(rest)
            if isinstance(kind, _Static):
                natives.append([])
            elif isinstance(kind, _GivenNumber):
                natives.append([trace.input(name, kind.wide_dtype, [])])
            else:
                n, dtype, is_one, _ = kind
                shape = [1 if one else None for one in is_one]
                natives.append([trace.input(name, dtype, shape) for _ in range(n)])

        for name in self._signature.parameters:
            _trees.flatten(bound.arguments[name], leaf, name)
        # What blocks change may have the extents of any of them.
        inputs = iter(zip(kinds, natives))

        def given(value: Any) -> Any:
            kind, own = next(inputs)
            if isinstance(kind, _Static):
                return value
            if isinstance(kind, _GivenNumber):
                return GivenNumber(own[0], kind.sample, kind.dtype)
            made = [Tensor(native, kind[3]) for native in own]
            return ComplexTensor(*made) if len(made) == 2 else made[0]

        for name in self._signature.parameters:
            bound.arguments[name] = _trees.mapped(bound.arguments[name], given)

    def _structure(self, results: Any, planes: list[Any]) -> Any:
        """The structure of results; their tensors are appended to ``planes``."""

        def leaf(value: Any) -> Any:
            if value is None or isinstance(value, (set, str)) or callable(value):
                inside_one = " in one" if _trees.is_tree(results) else ""
                raise TypeError(
                    "a program returns tensors, or tuples, lists, dictionaries and dataclasses of them, not "
                    f"{type(value).__name__}{inside_one}"
                )
            tensor = value if isinstance(value, (Tensor, ComplexTensor)) else asarray(value)
            both = is_complex(tensor)
            own = [tensor.real, tensor.imag] if isinstance(tensor, ComplexTensor) else [tensor]
            planes.extend(inside(plane)._native for plane in own)
            return _Leaf(both)

        return None if results is None else _trees.mapped(results, leaf, _is_number_that_is_known)


class Method:
    """A program that is an attribute of a class, with the object whose it is."""

    def __init__(self, program: Program, instance: Any) -> None:
        self._program = program
        self._instance = instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs it."""
        return self._program(self._instance, *args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """As ``Program.lower``."""
        return self._program.lower(self._instance, *args, **kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """As ``Program.explain``."""
        return self._program.explain(self._instance, *args, **kwargs) if args or kwargs else self._program.explain()

    @property
    def trace_count(self) -> int:
        """How often the function has been traced, for all objects."""
        return self._program.trace_count


def _given(value: Any, dtype: Any) -> Tensor:
    """A number as an input: its value is there, so that nothing has to be computed for it."""
    return Tensor(_native.NativeTensor.of_number(dtype._aerogel_dtype, _types.checked(value, dtype)))


class _Static:
    """A value that is part of a kind of arguments; numbers of other types are others."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def _key(self) -> Any:
        # Zeros of other signs are other numbers, and a NaN is one number.
        return self.value.hex() if isinstance(self.value, float) else self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and type(other.value) is type(self.value) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash((type(self.value), self._key()))


class _GivenNumber(NamedTuple):
    """A number of Python's as a kind of argument: its type there, and the type that it has alone."""

    python: type
    dtype: Any

    @classmethod
    def of(cls, value: Any) -> _GivenNumber:
        """The kind of a number."""
        python = next(kind for kind in (bool, int, float) if isinstance(value, kind))
        return cls(python, _types.of_number(value, None))

    @property
    def sample(self) -> Any:
        """A number of this type."""
        return self.python(1)

    @property
    def wide_dtype(self) -> str:
        """The type in which programs are given it: all digits that Python has, or nearly so."""
        return {bool: "u1", int: "i64", float: "f64"}[self.python]

    def wide(self, value: Any) -> Tensor:
        """The number as an input."""
        return _given(value, ALL[self.wide_dtype])


def _is_static(value: Any, annotation: Any) -> bool:
    """Whether an argument is known when the function is traced: what is no number and no array, and an ``int`` that is
    annotated so."""
    if _is_number_that_is_known(value, annotation):
        return True
    if isinstance(value, _native.NativeField) or value is None or isinstance(value, (str, bytes)):
        return True
    is_array = isinstance(value, (Tensor, ComplexTensor, _native.NativeNdarray, bool, int, float, complex))
    return not (is_array or hasattr(value, "__array__") or hasattr(value, "__dlpack__") or hasattr(value, "to_list"))


def _is_number_that_is_known(value: Any, annotation: Any) -> bool:
    is_named = annotation in (int, "int") or annotation in (bool, "bool") and isinstance(value, bool)
    return is_named and isinstance(value, int) and not hasattr(value, "dtype")


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.Signature()


def program(function: Any = None, *, static: Sequence[str] = ()) -> Any:
    """A program of a function: it is traced at its first call, and compiled for arguments of any size.

    >>> import aerogel as ti
    >>> @ti.program
    ... def step(u, v, dt=0.1, *, n: int = 1):
    ...     for _ in range(n):
    ...         u, v = u + dt * v, v - dt * u
    ...     return u, v
    >>> u, v = step(ti.tensor.ones(3), ti.tensor.zeros(3), n=2)
    >>> u.tolist()
    [0.9900000095367432, 0.9900000095367432, 0.9900000095367432]
    >>> step(ti.tensor.ones(5), ti.tensor.zeros(5), 0.2, n=2)[0].shape, step.trace_count
    ((5,), 1)

    Args:
        function: What is traced, once for each kind of arguments (see ``Program``).
        static: The names of parameters whose values are known when it is traced, as by the annotation ``int``.

    Raises:
        TypeError: If ``static`` names no parameter, or this is no function.
    """
    if function is None:
        return functools.partial(program, static=static)
    if not callable(function):
        raise TypeError(f"`program` takes a function, not {type(function).__name__}")
    note(function)
    return Program(function, static)
