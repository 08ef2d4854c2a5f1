"""Programs: functions that are traced once for each kind of arguments and compiled."""

from __future__ import annotations

import copy
import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, get_args

from aerogel import _native, _pickling
from aerogel._dtypes import ALL
from aerogel._source_lines import note
from aerogel.tensor import _types
from aerogel.tensor._complex import ComplexTensor, is_complex
from aerogel.tensor._tensor import GivenNumber, Tensor, asarray, inside, is_number, tracing
from aerogel.tensor.programs import _trees
from aerogel.tensor.programs._donated import Donated
from aerogel.tensor.programs._kinds import Leaf, NumberKind, SharedKind, StaticKind, number_input
from aerogel.tensor.programs._lint import look_at_function
from aerogel.tensor.programs._trace import OutsideProgram, Trace

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence


class Lowered:
    """A program that has been traced and compiled for one kind of arguments."""

    def __init__(
        self,
        trace: Trace,
        native: Any,
        results: Any,
        make: Callable[[Any], Tensor],
        effects: Sequence[Any],
        called: tuple[inspect.Signature, Any],
    ) -> None:
        self._native = native
        self._results = results
        self._make = make
        #: The tensors of modules that the function changes: which module, their names, their places.
        self._effects = effects
        self._returned = _trees.nodes(results)
        self._fields = list(trace.fields_read.values())
        self._given = trace.given if any(own is not None for own in trace.given) else None
        #: For each input of the statements what it is given, if that is no argument.
        self.given = trace.given
        #: The signature and the kinds of its arguments; nothing in place of kinds if the function creates its inputs.
        self.called = called
        self._is_one = isinstance(results, Leaf) and not results.is_complex
        #: The inputs, in the order of their creation.
        self.inputs = trace.inputs
        #: The shapes of the arguments, if it was lowered for some, and the name of its function.
        self.sizes: list[list[int]] | None = None
        self.name = ""

    @property
    def is_current(self) -> bool:
        """Whether ``ti.init`` has not been called since, which may change default dtypes and arithmetic."""
        return self._native.is_current

    @property
    def text(self) -> str:
        """The statements."""
        return self._native.text

    def explain(self) -> str:
        """A report: which statements share a kernel, which temporaries are materialised, and why."""
        return self._native.explained

    @property
    def constants(self) -> dict[str, Tensor]:
        """The tensors from outside that the program holds, by the names that they have in ``text``."""
        names = [name for name, _, _ in self._native.inputs]
        held = zip(names, self.given)
        return {name: Tensor(own).detach() for name, own in held if own is not None and not callable(own)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program to a file, which ``ti.load_program`` reads in a process without the function.

        Args:
            path: The file. If writing fails, a file that was there stays as it was.

        Raises:
            TypeError: If the program calls kernels, uses fields, changes a module or draws random numbers, or if an
                argument is a module or a static value that is no number, string or dtype. The error names it.
            OSError: If the file cannot be written.
        """
        from aerogel.tensor.programs._archive import save

        save(self, path)

    def export_c(self, folder: str | os.PathLike[str], name: str | None = None) -> list[str]:
        """Writes the program as code that a C program calls, for arguments of the sizes that it was lowered for.

        Four files are written: ``step.h`` declares ``int step(const float *u, double dt, float *out)``, ``step.c`` is
        that function, ``libstep.a`` has the kernels as machine code, and ``step.ll`` the same as LLVM IR. Results are
        equal to the bit to those of Python. The function runs on the thread of the caller.

        Args:
            folder: Where to write them; it is created.
            name: The name of the function and of the files, in place of that of the Python function.

        Returns:
            The paths of the files.

        Raises:
            TypeError: If the program needs Aerogel when it runs: it calls kernels or libraries, uses fields, changes a
                module or draws random numbers. The error has the reason and the line.
            ValueError: If the name is no identifier of C, or sizes do not agree.
            RuntimeError: If ``arch`` is not ``ti.cpu``.
            OSError: If a file cannot be written.
        """
        from aerogel.tensor.programs._exported_c import export_c

        return export_c(self, folder, name)

    def filled(self, natives: list[Any]) -> list[Any]:
        """The inputs of the statements: arguments, and what others are given."""
        arguments = iter(natives)
        return [next(arguments) if own is None else own() if callable(own) else own for own in self.given]

    def run(self, natives: list[Any], nodes: Sequence[Any] = (), donated: Sequence[int] = ()) -> Any:
        """Runs it. ``nodes`` are the modules among the arguments, whose tensors the program may change.

        Results may take the memory of the inputs numbered in ``donated``, in ascending order.
        """
        if self._fields and _native.recorder() is not None:
            from aerogel.ad._gradients import expect_constant

            for field in self._fields:
                expect_constant(field, "a tensor of")
        if self._given is not None:
            natives = self.filled(natives)
            places = [k for k, own in enumerate(self._given) if own is None]
            donated = [places[k] for k in donated]
        made = self._native.run(natives, donated) if donated else self._native.run(natives)
        if self._is_one and not self._effects:
            return self._make(made[0])
        planes = iter([self._make(native) for native in made])

        def leaf(place: Any) -> Any:
            if not isinstance(place, Leaf):
                return place
            return ComplexTensor(next(planes), next(planes)) if place.is_complex else next(planes)

        results = _trees.mapped(self._results, leaf)
        for at, name, place in self._effects:
            nodes[at]._tree_set(name, leaf(place))
        for node in _trees.nodes(results) if self._returned else ():
            node._tree_returned()
        return results


class Program:
    """A function of tensors that is traced and compiled at its first call.

    Arguments are tensors, arrays, numbers, fields, and tuples, lists, dictionaries and dataclasses of them. Calls with
    other shapes reuse the compiled program. Other dtypes, ranks and structures trace the function again, and so does an
    axis of size 1 in place of a longer one, since it is broadcast. Python numbers are inputs, except those annotated
    ``int`` or ``bool`` and those named in ``static``, which are part of the program.

    Args:
        function: The function to trace.
        static: The names of parameters whose values are part of the program.
        divides_integers: Whether ``/`` of integers truncates as in C, as in TensorFrost.
        donate: The names of parameters whose tensors nobody uses after the call.

    Raises:
        TypeError: If ``static`` or ``donate`` names no parameter.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        static: Sequence[str] = (),
        *,
        divides_integers: bool = False,
        donate: Sequence[str] = (),
    ) -> None:
        self.__name__ = "program"
        functools.update_wrapper(self, function)
        self._function = function
        self._divides_integers = divides_integers
        self._signature = _signature(function)
        self._static = self._parameters("static", static)
        self._donate = self._parameters("donate", donate)
        #: The compiled programs by the kinds of their arguments.
        self._made: dict[Any, Lowered] = {}
        #: The same for positional tensors and floats, which have a key that is cheap to build.
        self._plain: dict[Any, Lowered] = {}
        self._last: Lowered | None = None
        #: How often the function has been traced.
        self.trace_count = 0
        parameters = self._signature.parameters.values()
        positional = all(parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
        #: The number of parameters, if all may be positional and none is static.
        self._n_plain = len(parameters) if positional and not self._static | self._donate else -1
        self._defaults = tuple(parameter.default for parameter in parameters)
        #: Whether the function creates its inputs with ``input``, since it has no parameters.
        self._makes_inputs = not parameters or divides_integers
        #: The program of its gradient, for calls with tensors through which gradients are taken.
        self._pulled: Program | None = None
        #: Only one thread traces; the others wait for its result.
        self._lock = threading.RLock()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else Method(self, instance)

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickling.by_name(self, _pickling.global_name("program", self, self._location()))

    def _parameters(self, what: str, names: Sequence[str]) -> frozenset[str]:
        """The names of parameters that an option gives."""
        named = frozenset([names] if isinstance(names, str) else names)
        if unknown := sorted(named - self._signature.parameters.keys()):
            raise TypeError(f"`{self.__name__}` has no parameter `{unknown[0]}`, which `{what}` names")
        return named

    def _location(self) -> str:
        code = getattr(inspect.unwrap(self._function), "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else type(self._function).__name__

    def __copy__(self) -> Program:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        return self

    def transformed(self, transform: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Program:
        """The program of the transformed function, for ``vmap``.

        Raises:
            TypeError: If the function has no parameters.
        """
        if self._makes_inputs:
            raise TypeError(
                f"`{self.__name__}` creates its inputs with `input` and cannot be mapped: give its function parameters"
            )
        return Program(transform(self._function), sorted(self._static), divides_integers=self._divides_integers)

    # Compilation.

    def compile(self) -> Program:
        """Traces and compiles a function without parameters, before its first call."""
        if not self._makes_inputs:
            raise TypeError(
                f"`{self.__name__}` has parameters: compile it for arguments by `{self.__name__}.lower(...)`"
            )
        self._lowered(())._native.prepare()
        return self

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Compiles the program for some arguments, without running it."""
        if self._makes_inputs:
            lowered = self._lowered(())
            natives = self._given(lowered, args, kwargs) if args or kwargs else None
        else:
            lowered, natives, _ = self._bound(args, kwargs)
        lowered = copy.copy(lowered)
        lowered.sizes = None if natives is None else [list(native.shape) for native in natives]
        lowered._native.prepare(lowered.sizes)
        lowered.name = self.__name__
        return lowered

    def tune(self, *args: Any, **kwargs: Any) -> str:
        """Chooses the sizes of tiles and the limits of fusion by measuring the program with these arguments.

        Later calls with arguments of these sizes use the choice. It is stored in the folder of ``offline_cache``, for
        this processor and number of threads: the next process that calls ``tune`` takes it without measuring. Results
        are equal to the bit to those without tuning, for these arguments.

        Returns:
            The choice, and how many plans were measured; :meth:`explain` reports it too.

        Raises:
            TypeError: The arguments are not those of the program, or it uses fields or calls kernels.
            RuntimeError: ``arch`` is not ``ti.cpu``, or a program is being traced.
        """
        if tracing.program is not None:
            raise RuntimeError(f"`{self.__name__}.tune(...)` is called while a program is traced: call it before")
        if self._makes_inputs:
            lowered = self._lowered(())
            natives = self._given(lowered, args, kwargs)
        else:
            lowered, natives, _ = self._bound(args, kwargs)
        return lowered._native.tune(lowered.filled(natives))

    def _any(self) -> Lowered:
        if self._makes_inputs:
            return self._lowered(())
        if self._last is None:
            raise TypeError(f"`{self.__name__}` has not been called: pass arguments to `{self.__name__}.lower(...)`")
        return self._last

    @property
    def text(self) -> str:
        """The statements of the program that was called last."""
        return self._any().text

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """A report: which statements share a kernel, which temporaries are materialised, and why.

        Without arguments, the report of the program that was called last.
        """
        return (self.lower(*args, **kwargs) if args or kwargs else self._any()).explain()

    def _result(self, native: Any) -> Tensor:
        return Tensor(native)

    # Calls.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program. While another program is traced, the call becomes part of that one."""
        if tracing.program is not None:
            return self._inline(args, kwargs)
        if tracing.mapped is not None and not self._makes_inputs and self._is_for_many(args, kwargs):
            return self._for_many(args, kwargs)
        try:
            return self._run(args, kwargs)
        except ValueError:
            from aerogel.tensor._rules import pulled, run_with_gradient

            if not any(isinstance(x, Tensor) and x.requires_grad for x in _trees.leaves([args, kwargs])):
                raise
            if self._makes_inputs or _native.are_gradients_off():
                raise
            if self._pulled is None:
                own = pulled(self._function)
                self._pulled = Program(own, [*self._static, own.added[0]])
        return run_with_gradient(self, self._pulled, args, kwargs)

    def _is_for_many(self, args: Any, kwargs: Any) -> bool:
        """Whether an argument is a symbolic tensor of ``vmap``."""
        planes = [p for x in _trees.leaves([args, kwargs]) for p in ([x.real, x.imag] if is_complex(x) else [x])]
        return any(isinstance(p, Tensor) and p._native.is_one_of_many() for p in planes)

    def _for_many(self, args: Any, kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except OutsideProgram as e:
            raise TypeError(
                f"`vmap`: the function calls the program `{self.__name__}`, which has blocks (`{e.what}`): call `vmap` "
                "inside a program, as by `ti.program(ti.vmap(function))`"
            ) from None

    def _run(self, args: Any, kwargs: Any) -> Any:
        if args and not kwargs and len(args) <= self._n_plain:
            key, natives = _plain_key(args + self._defaults[len(args) :])
            lowered = self._plain.get(key)
            if lowered is not None and lowered.is_current:
                return lowered.run(natives)
        if self._makes_inputs:
            lowered = self._lowered(())
            return lowered.run(self._given(lowered, args, kwargs))
        if not self._donate:
            return Lowered.run(*self._bound(args, kwargs))
        donated = Donated()
        lowered, natives, nodes = self._bound(args, kwargs, donated)
        places = donated.expect_apart(self.__name__)
        what = f"`{self.__name__}` ({self._location()})"
        try:
            results = lowered.run(natives, nodes, places)
        except BaseException:
            donated.end(what, only_taken=True)
            raise
        donated.end(what)
        return results

    def _inline(self, args: Any, kwargs: Any) -> Any:
        if not self._makes_inputs:
            return self._function(*args, **kwargs)
        called = tracing.program.called
        called.append(self.__name__)
        try:
            if args or kwargs:
                raise RuntimeError(
                    f"`{self.__name__}` creates its inputs with `input` and is called by another program: give its "
                    "function parameters"
                )
            return self._function()
        finally:
            called.pop()

    def _bound(self, args: Any, kwargs: Any, donated: Donated | None = None) -> tuple[Lowered, list[Any], list[Any]]:
        """The compiled program for some arguments, and the inputs and the modules that they contain.

        The tensors among the arguments are added to ``donated``.
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"`{self.__name__}`: {e}") from None
        bound.apply_defaults()
        tensors: list[Tensor] = []
        kinds: list[Any] = []
        shared: dict[int, int] = {}

        def leaf(value: Any, name: str, annotation: Any) -> Any:
            if annotation is _trees.FIXED and isinstance(value, Tensor):
                if id(value) in shared:
                    kinds.append(SharedKind(shared[id(value)]))
                    return kinds[-1]
                shared[id(value)] = len(kinds)
            static = _is_static(value, annotation) or _parameter(name) in self._static
            if static:
                try:
                    hash(value)
                except TypeError:
                    raise TypeError(
                        f"argument `{name}` of `{self.__name__}` is part of the program and must be hashable, which "
                        f"{type(value).__name__} is not"
                    ) from None
                if isinstance(value, (Tensor, ComplexTensor)):
                    raise TypeError(
                        f"argument `{name}` of `{self.__name__}` is static, and a tensor has no value while the "
                        "program is traced: remove it from `static`"
                    )
                kinds.append(StaticKind(value))
                return kinds[-1]
            if is_number(value):
                kinds.append(NumberKind.of(value))
                tensors.append(kinds[-1].wide(value, f"argument `{name}` of `{self.__name__}`: "))
                return kinds[-1]
            # Of a module, a program takes the values of parameters: `backward` of what it returns is an error.
            is_parameter = getattr(type(value), "_is_parameter", False)
            tensor = self._tensor(value.detach() if is_parameter else value, name)
            planes = [tensor.real, tensor.imag] if isinstance(tensor, ComplexTensor) else [tensor]
            if donated is not None and tensor is value:
                donated.add(name, planes, len(tensors), is_given=_parameter(name) in self._donate)
            tensors.extend(planes)
            shape = tuple(n if n == 1 or annotation is _trees.FIXED else None for n in tensor.shape)
            kinds.append((len(planes), planes[0]._native.dtype, shape, planes[0]._outside))
            return kinds[-1]

        parts = []
        for name, parameter in self._signature.parameters.items():
            value = bound.arguments[name]
            parts.append(_trees.flatten(value, leaf, name, parameter.annotation))
        key = tuple(parts)
        natives = [tensor._native for tensor in tensors]
        values = tuple(bound.arguments.values())
        nodes = _trees.nodes(values)
        lowered = self._lowered(key, bound, kinds)
        if self._n_plain == len(values) and (plain := _plain_key(values)[0]) is not None:
            self._plain[plain] = lowered
        return lowered, natives, nodes

    def _tensor(self, value: Any, name: str) -> Any:
        try:
            tensor = asarray(value)
        except (TypeError, ValueError) as e:
            raise TypeError(f"argument `{name}` of `{self.__name__}` is not a tensor: {e}") from None
        if isinstance(tensor, Tensor) and tensor._native.is_one_of_many():
            raise TypeError(
                f"`vmap`: the function calls the program `{self.__name__}`, which creates its inputs with `input`: "
                "give its function parameters"
            )
        return tensor

    def _given(self, lowered: Lowered, values: Any, named: Any) -> list[Any]:
        """The inputs of a function that has created them with ``input``, in the order of these calls."""
        if named:
            names = ", ".join(f"`{name}`" for name in named)
            raise TypeError(
                f"`{self.__name__}` has no parameters, but got the keyword arguments {names}: `{self.__name__}(a, b)` "
                "takes inputs in the order of the calls of `input`"
            )
        if len(values) != len(lowered.inputs):
            raise TypeError(f"`{self.__name__}` takes {len(lowered.inputs)} tensors, {len(values)} were passed")
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
            for axis, (size, known) in enumerate(zip(tensor.shape, wanted.shape)):
                if isinstance(known, int) and known != size:
                    raise ValueError(f"input {n} of `{self.__name__}`: axis {axis} takes {known} elements, not {size}")
            natives.append(tensor._native)
        return natives

    def _of_numbers(self, value: Any, n: int, wanted: Any) -> Any:
        """Python numbers as an input; they have no dtype of their own."""
        dtype = ALL[wanted.dtype]
        if not dtype.is_float and (given := asarray(value)).size:
            _types.kept(given.dtype, dtype, f"input {n} of `{self.__name__}`: elements")
        return number_input(value, dtype) if is_number(value) else asarray(value, dtype)

    # Tracing.

    def _lowered(self, key: Any, bound: Any = None, kinds: Sequence[Any] = ()) -> Lowered:
        with self._lock:
            lowered = self._made.get(key)
            # `ti.init` may have changed default dtypes, arithmetic, and kernels.
            if lowered is None or not lowered.is_current:
                self._plain.clear()
                lowered = self._made[key] = self._traced(key, bound, kinds)
            self._last = lowered
            return lowered

    def _traced(self, key: Any, bound: Any, kinds: Sequence[Any]) -> Lowered:
        look_at_function(self._function)
        self.trace_count += 1
        trace = Trace(self._divides_integers)
        around = tracing.trace, tracing.program
        tracing.trace, tracing.program = trace.native, trace
        outer = _native.set_recorder(trace)
        try:
            effects: list[Any] = []
            planes: list[Any] = []
            if bound is None:
                results = self._function()
                trace.expect_whole()
                tree = self._structure(results, planes)
            else:
                self._make_inputs(trace, bound, kinds)
                nodes = _trees.nodes(tuple(bound.arguments.values()))
                before = [_trees.parts_of(node) for node in nodes]
                results = self._function(*bound.args, **bound.kwargs)
                trace.expect_whole()
                tree = self._structure(results, planes)
                effects = _effects(trace, nodes, before, planes)
            native = trace.native.finish(planes)
        finally:
            _native.set_recorder(outer)
            tracing.trace, tracing.program = around
        called = (self._signature, None if bound is None else key)
        return Lowered(trace, native, tree, self._result, effects, called)

    def _make_inputs(self, trace: Trace, bound: Any, kinds: Sequence[Any]) -> None:
        """Replaces the tensors among some arguments by inputs of the program."""
        rest = iter(kinds)
        natives: list[list[Any]] = []

        def leaf(value: Any, name: str, _: Any) -> None:
            kind = next(rest)
            if isinstance(kind, (StaticKind, SharedKind)):
                natives.append([])
            elif isinstance(kind, NumberKind):
                natives.append([trace.input(name, kind.wide_dtype, [])])
            else:
                n, dtype, shape, _ = kind
                natives.append([trace.input(name, dtype, list(shape)) for _ in range(n)])

        for name in self._signature.parameters:
            _trees.flatten(bound.arguments[name], leaf, name)
        # A block may set a tensor to the shape of any input, so that all exist before the first tensor.
        inputs = iter(zip(kinds, natives))
        all_made: list[Any] = []

        def given(value: Any) -> Any:
            kind, own = next(inputs)
            if isinstance(kind, StaticKind):
                made = value
            elif isinstance(kind, SharedKind):
                made = all_made[kind.at]
            elif isinstance(kind, NumberKind):
                made = GivenNumber(own[0], kind.sample, kind.dtype)
            else:
                planes = [Tensor(native, kind[3]) for native in own]
                made = ComplexTensor(*planes) if len(planes) == 2 else planes[0]
            all_made.append(made)
            return made

        for name in self._signature.parameters:
            bound.arguments[name] = _trees.mapped(bound.arguments[name], given)

    def _structure(self, results: Any, planes: list[Any]) -> Any:
        """The tree of results with places for tensors, which are appended to ``planes``."""

        def leaf(value: Any) -> Any:
            if value is None or isinstance(value, (set, str)) or callable(value):
                inside_one = " in one" if _trees.is_tree(results) else ""
                raise TypeError(
                    "a program returns tensors, or tuples, lists, dictionaries and dataclasses of them, not "
                    f"{type(value).__name__}{inside_one}"
                )
            return _result(value, planes)

        return None if results is None else _trees.mapped(results, leaf, _is_number_that_is_known)


def _result(value: Any, planes: list[Any]) -> Leaf:
    """The place of a result, which is appended to ``planes``."""
    tensor = value if isinstance(value, (Tensor, ComplexTensor)) else asarray(value)
    own = [tensor.real, tensor.imag] if isinstance(tensor, ComplexTensor) else [tensor]
    planes.extend(inside(plane)._native for plane in own)
    return Leaf(is_complex(tensor))


def _effects(trace: Trace, nodes: list[Any], before: list[dict[str, Any]], planes: list[Any]) -> list[Any]:
    """The tensors of modules that differ from those before, by module and name; they are appended to ``planes``."""
    out = []
    for at, (node, was) in enumerate(zip(nodes, before)):
        stored = [(n, x) for n, x in node._tree_parts()[1].items() if id(x) in trace.stored]
        out += [(at, name, _result(part, planes)) for name, part in dict(_trees.changed(node, was) + stored).items()]
    return out


def _program_of(
    function: Callable[..., Any], static: Sequence[str], divides_integers: bool, donate: Sequence[str]
) -> Program:
    return Program(function, static, divides_integers=divides_integers, donate=donate)


_pickling.by_value(
    Program,
    _program_of,
    lambda value: (value._function, sorted(value._static), value._divides_integers, sorted(value._donate)),
)


class Method:
    """A program that is a method, bound to an object."""

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
        """How often the function has been traced, for all objects together."""
        return self._program.trace_count


def _parameter(name: str) -> str:
    """The parameter of which a leaf is a part."""
    return name.partition(".")[0].partition("[")[0]


def _plain_key(values: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The kinds of tensors and floats as a key, and the inputs; no key if there are other arguments."""
    kinds: list[Any] = []
    natives: list[Any] = []
    for value in values:
        if type(value) is Tensor:
            native = value._native
            if not (kind := native.kind):
                return None, natives
            kinds += (kind, value._outside)
            natives.append(native)
        elif type(value) is float:
            kinds.append(float)
            natives.append(_native.NativeTensor.of_number("f64", value))
        else:
            return None, natives
    return tuple(kinds), natives


def _is_static(value: Any, annotation: Any) -> bool:
    """Whether an argument is part of the program, as annotated integers and any value but numbers and arrays are."""
    if _is_number_that_is_known(value, annotation):
        return True
    if isinstance(value, _native.NativeField) or value is None or isinstance(value, (str, bytes)):
        return True
    is_array = isinstance(value, (Tensor, ComplexTensor, _native.NativeNdarray, bool, int, float, complex))
    return not (is_array or hasattr(value, "__array__") or hasattr(value, "__dlpack__") or hasattr(value, "to_list"))


def _is_number_that_is_known(value: Any, annotation: Any) -> bool:
    is_named = annotation in (int, "int") or isinstance(value, bool) and _takes_bool(annotation)
    return is_named and isinstance(value, int) and not hasattr(value, "dtype")


def _takes_bool(annotation: Any) -> bool:
    """Whether an annotation names ``bool``, alone or among others."""
    parts = annotation.split("|") if isinstance(annotation, str) else get_args(annotation) or (annotation,)
    return any(part is bool or isinstance(part, str) and part.strip() == "bool" for part in parts)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.Signature()


def program(function: Any = None, *, static: Sequence[str] = (), donate: Sequence[str] = ()) -> Any:
    """Makes a program of a function, which is traced at its first call and compiled for arguments of any size.

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
        function: The function to trace, once for each kind of arguments (see ``Program``).
        static: The names of parameters whose values are part of the program, like those annotated ``int``.
        donate: The names of parameters whose tensors are not used after the call, as weights that a training step
            replaces: results may take their memory. Using such a tensor again is an error. A tensor keeps its memory if
            another tensor or array shares it, if it belongs to a module, or if a gradient is taken through the call.

    Raises:
        TypeError: If ``static`` or ``donate`` names an unknown parameter, or the argument is not a function.
        ValueError: At a call, if a donated tensor is passed twice.
    """
    if function is None:
        return functools.partial(program, static=static, donate=donate)
    if not callable(function):
        raise TypeError(f"`program` takes a function, not {type(function).__name__}")
    note(function)
    return Program(function, static, donate=donate)
