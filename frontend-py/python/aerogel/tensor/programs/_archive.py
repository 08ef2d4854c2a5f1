"""Programs in files: saved, loaded without the function that was traced, and made of text.

A file is one of ``ti.save``. Its tensors are the constants of the program; its metadata have the version of the format,
the text of the statements, and the signature in JSON. Whoever wrote a file is not trusted: what it says is data, the
statements are verified, and indices that are not proved to be in bounds are checked.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import keyword
import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import ALL
from aerogel._safetensors import read, write
from aerogel.tensor import _types
from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._tensor import Tensor, asarray, is_number, tracing
from aerogel.tensor.programs import _saved_trees
from aerogel.tensor.programs._kinds import NumberKind, StaticKind, number_input

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aerogel.tensor.programs._program import Lowered

#: Functions of Python that a program calls while it runs, and what to do instead.
_WATCHES = {"print_value": "print", "assert_value": "check", "expect": "check"}
#: The version of the format.
_VERSION = "1"
_KINDS = ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY", "VAR_KEYWORD")


def save(lowered: Lowered, path: str | os.PathLike[str]) -> None:
    """Writes a compiled program to a file, as ``Lowered.save``."""
    kernels, fields = lowered._native.outside
    for what, names in (("calls the kernel", kernels), ("uses the field", fields)):
        if names and names[0] == "at_least":
            # A block that does not run must not fail, so its check of a size is in it, and Python makes it.
            raise TypeError(
                "a program cannot be saved if a loop or a branch has a function that needs elements, as `max`, and "
                "only a run knows whether there are any: call it before the loop, or give the axis a known size, as by "
                "`x.reshape(8)`"
            )
        if names and names[0] in _WATCHES:
            raise TypeError(
                f"a program that calls `{names[0]}` cannot be saved, since Python runs it: return the value, and "
                f"{_WATCHES[names[0]]} it outside"
            )
        if names:
            raise TypeError(
                f"a program that {what} `{names[0]}` cannot be saved: pass arrays, and compute with tensors"
            )
    if any(callable(own) for own in lowered.given):
        raise TypeError(
            "a program that draws other random numbers at each call cannot be saved: pass a key or the numbers as an "
            "argument"
        )
    if lowered._effects:
        raise TypeError("a program that changes tensors of a module cannot be saved: return the new values")
    parameters = [_parameter(*parameter) for parameter in _parameters(lowered)]
    positional = [own for own in parameters if own["kind"] in _KINDS[:2]]
    last = max((k for k, own in enumerate(positional) if "default" not in own), default=0)
    for own in positional[:last]:
        # Parameters with defaults come last.
        own.pop("default", None)
    signature = {"parameters": parameters, "results": _saved_trees.of_result(lowered._results)}
    _write(path, lowered.text, signature, lowered.constants)


def _parameters(lowered: Lowered) -> list[tuple[str, Any, Any, Any]]:
    """The name, the kind, the default and the kind of the argument of each parameter."""
    signature, key = lowered.called
    if key is not None:
        named = signature.parameters.values()
        return [(own.name, own.kind, own.default, kind) for own, kind in zip(named, key)]
    only, empty = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.empty
    inputs = [own for own, given in zip(lowered._native.inputs, lowered.given) if given is None]
    return [(f"input_{k}", only, empty, (1, own[1], own[2], "")) for k, own in enumerate(inputs)]


def _parameter(name: str, kind: Any, default: Any, argument: Any) -> dict[str, Any]:
    out = {"name": name, "kind": kind.name, "tree": _saved_trees.of_argument(argument, name)}
    if default is not inspect.Parameter.empty:
        # Another default, such as an array, is an argument that the loaded program needs.
        with contextlib.suppress(TypeError):
            out["default"] = _saved_trees.of_value(default, "a default")
    return out


def _write(path: Any, text: str, signature: Any, constants: Mapping[str, Tensor]) -> None:
    metadata = {"format": "aerogel program", "version": _VERSION, "program": text, "signature": json.dumps(signature)}
    write(path, constants, metadata)


class LoadedProgram:
    """A program without its function: it was read from a file or made of text.

    It is called as the function was. It does not retrace: a call with other dtypes, numbers of axes or static arguments
    is an error. The sizes of axes may differ, except those that were 1 when it was traced.

    Attributes:
        signature: The parameters.
        constants: The tensors that the program holds, by the names of their inputs.
    """

    def __init__(self, text: str, signature: Any, constants: Mapping[str, Tensor]) -> None:
        self._native = _native.NativeProgram.read(text)
        self.constants = MappingProxyType(dict(constants))
        self._saved = signature
        self.signature, self._trees, self._results = _read_signature(signature)
        self._expect_consistent()

    def _expect_consistent(self) -> None:
        """Refuses a signature or constants of another program."""
        wanted: list[Any] = []
        for tree in self._trees:
            for key, own in _saved_trees.leaves(tree):
                if key == "tensor":
                    wanted += [(own[1], own[2])] * own[0]
                elif key == "number":
                    wanted.append((NumberKind.of(own(1)).wide_dtype, ()))
        #: For each input its constant, or nothing for one that is an argument.
        self._given: list[Any] = []
        rest = iter(wanted)
        for name, dtype, shape in self._native.inputs:
            constant = self.constants.get(name)
            self._given.append(None if constant is None else constant._native)
            own = next(rest, None) if constant is None else (constant._native.dtype, tuple(constant.shape))
            if own is None or own[0] != dtype or not _fits(own[1], shape):
                said = "nothing" if own is None else f"{own[0]}{list(own[1])}"
                raise ValueError(f"the input `{name}` of the program is {dtype}{shape}, and is given {said}")
        if next(rest, None) is not None or len(self.constants) != sum(own is not None for own in self._given):
            raise ValueError("there are more arguments or constants than the program has inputs")
        planes = sum(own for key, own in _saved_trees.leaves(self._results) if key == "planes")
        if planes != self._native.n_results:
            raise ValueError(f"the tree of results has {planes} tensors, the program {self._native.n_results}")

    @property
    def text(self) -> str:
        """The statements."""
        return self._native.text

    def explain(self) -> str:
        """A report: which statements share a kernel, which temporaries are materialised, and why."""
        return self._native.explained

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, which ``load_program`` reads.

        Raises:
            OSError: If the file cannot be written.
        """
        _write(path, self.text, self._saved, self.constants)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program.

        Raises:
            TypeError: If arguments have other dtypes or another structure than the program takes.
            ValueError: If sizes do not agree, or a static argument differs.
            RuntimeError: If another program is being traced.
        """
        if tracing.program is not None:
            raise RuntimeError("a loaded program cannot be part of another program, since it has no function to trace")
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"the program: {e}") from None
        bound.apply_defaults()
        natives: list[Any] = []
        for name, tree in zip(self.signature.parameters, self._trees):
            _saved_trees.matched(tree, bound.arguments[name], name, lambda *leaf: natives.extend(_natives(*leaf)))
        if not self._native.is_current:
            # `ti.init` may have changed the arithmetic.
            self._native = _native.NativeProgram.read(self.text)
        _expect_values(natives)
        rest = iter(natives)
        made = self._native.run([next(rest) if own is None else own for own in self._given])
        planes = iter([Tensor(native) for native in made])
        return _saved_trees.built(
            self._results, lambda n: ComplexTensor(next(planes), next(planes)) if n == 2 else next(planes)
        )


def _expect_values(natives: list[Any]) -> None:
    """Refuses what has to look into the program: it has no function to differentiate or to map."""
    if any(native.is_one_of_many() for native in natives):
        raise ValueError(
            "a loaded program cannot be called inside `vmap`: save a program of the mapped function, "
            "`ti.program(ti.vmap(f)).lower(x).save(path)`, or call it for one element after the other"
        )
    if not _native.are_gradients_off() and any(map(_native.has_history, natives)):
        raise ValueError(
            "a loaded program has no gradient: save a program of the gradient, "
            "`ti.program(ti.grad(f)).lower(x).save(path)`; pass `x.detach()` if the gradient does not matter"
        )


def _fits(own: Any, shape: Any) -> bool:
    """Whether shapes may be equal; ``None`` is a size of the call."""
    return len(own) == len(shape) and all(a is None or b is None or a == b for a, b in zip(own, shape))


def _natives(node: Any, value: Any, name: str) -> list[Any]:
    """The inputs that an argument is."""
    key, own = node
    if key == "static":
        if StaticKind(value) != StaticKind(own):
            raise ValueError(f"argument `{name}` is part of the program, which was saved for {own!r}, not {value!r}")
        return []
    if key == "number":
        is_bool = isinstance(value, bool)
        if not is_number(value) or is_bool != (own is bool) or (own is int and isinstance(value, float)):
            raise TypeError(f"argument `{name}` is a number of type {own.__name__}, not {type(value).__name__}")
        return [NumberKind.of(own(value)).wide(own(value), f"argument `{name}` of the program: ")._native]
    n_planes, dtype, shape = own
    is_plain = is_number(value) or isinstance(value, (list, tuple))
    tensor = _of_numbers(value, ALL[dtype], name) if is_plain else _tensor(value, name)
    planes = [tensor.real, tensor.imag] if isinstance(tensor, ComplexTensor) else [tensor]
    if len(planes) != n_planes or planes[0]._native.dtype != dtype:
        said = {("f32", 2): "complex64", ("f64", 2): "complex128"}.get((dtype, n_planes), dtype)
        raise TypeError(f"argument `{name}` takes elements of `{said}`, not of `{tensor.dtype}`: convert it before")
    if tensor.ndim != len(shape):
        raise ValueError(f"argument `{name}` takes {len(shape)} axes, not {tensor.ndim}")
    for axis, (size, known) in enumerate(zip(tensor.shape, shape)):
        if known is not None and size != known:
            raise ValueError(f"argument `{name}`: axis {axis} takes {known} elements, not {size}")
    return [plane._native for plane in planes]


def _tensor(value: Any, name: str) -> Any:
    try:
        return asarray(value)
    except (TypeError, ValueError) as e:
        raise TypeError(f"argument `{name}` is not a tensor: {e}") from None


def _of_numbers(value: Any, dtype: Any, name: str) -> Any:
    """Python numbers as an input; they have no dtype of their own."""
    if is_number(value):
        return number_input(value, dtype)
    if not dtype.is_float and (given := _tensor(value, name)).size:
        _types.kept(given.dtype, dtype, f"argument `{name}`: elements")
    return asarray(value, dtype)


def _read_signature(signature: Any) -> tuple[inspect.Signature, list[Any], Any]:
    """The parameters, and the trees of arguments and results.

    Raises:
        ValueError: If it is no signature.
    """
    if not isinstance(signature, dict) or not isinstance(signature.get("parameters"), list):
        raise ValueError("the signature has no list of parameters")
    parameters, trees = [], []
    for own in signature["parameters"]:
        if not isinstance(own, dict) or own.get("kind") not in _KINDS or not isinstance(own.get("name"), str):
            raise ValueError("a parameter of the signature has no name and kind")
        default = _saved_trees.value_of(own["default"]) if "default" in own else inspect.Parameter.empty
        kind = getattr(inspect.Parameter, own["kind"])
        parameters.append(inspect.Parameter(own["name"], kind, default=default))
        trees.append(_saved_trees.expected(own.get("tree"), is_result=False))
    results = _saved_trees.expected(signature.get("results"), is_result=True)
    return inspect.Signature(parameters), trees, results


def load_program(path: str | os.PathLike[str]) -> LoadedProgram:
    """Reads a program that ``Lowered.save`` wrote. No Python in the file is executed, and the statements are verified.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> double = ti.program(lambda x: x * 2)
    >>> double.lower(ti.tensor.ones(3)).save("double.aerogel")  # doctest: +SKIP
    >>> ti.load_program("double.aerogel")(ti.tensor.ones(2)).tolist()  # doctest: +SKIP
    [2.0, 2.0]

    Args:
        path: The file.

    Returns:
        A callable with the parameters of the function. Dataclasses in its result are ``types.SimpleNamespace``, named
        tuples are tuples.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is no such file, was cut off, is of another version, or has statements that are not allowed.
            The error names the mistake; of the statements, in which line.
    """
    path = os.fspath(path)
    tensors, texts = read(path)
    if texts.get("format") != "aerogel program":
        raise ValueError(f"{path} has no program: read its tensors by `ti.load`")
    if texts.get("version") != _VERSION:
        version = str(texts.get("version"))[:20]
        raise ValueError(
            f"{path} has format version {version}; this Aerogel reads version {_VERSION}: save the program again with "
            "this Aerogel"
        )
    if "program" not in texts or "signature" not in texts:
        raise ValueError(f"{path} has no statements or no signature")
    try:
        return LoadedProgram(texts["program"], json.loads(texts["signature"]), tensors)
    except (ValueError, TypeError) as e:
        raise ValueError(f"{path} is damaged: {e}") from None
    except RecursionError:
        raise ValueError(f"{path} is damaged: the signature is nested too deeply") from None


def program_from_text(text: str, constants: Mapping[str, Any] | None = None) -> LoadedProgram:
    """Makes a program of its statements, as ``Lowered.text`` has them.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> text = ti.program(lambda x: x * x + 1).lower(ti.tensor.ones(3)).text
    >>> ti.program_from_text(text.replace("mul(", "add("))(ti.tensor.ones(2)).tolist()
    [3.0, 3.0]

    Args:
        text: The statements.
        constants: Values of inputs by name, such as ``Lowered.constants``. The other inputs are the parameters, in the
            order of the text.

    Returns:
        A callable, which returns one tensor, or a tuple of the results.

    Raises:
        ValueError: If the text is no program, or breaks a rule of programs. The error has the line and a mark below the
            word.
    """
    held = {name: asarray(value) for name, value in (constants or {}).items()}
    native = _native.NativeProgram.read(text)
    parameters: list[Any] = []
    for k, (name, dtype, shape) in enumerate(native.inputs):
        if name in held:
            continue
        is_name = name.isidentifier() and not keyword.iskeyword(name)
        named = is_name and all(name != own["name"] for own in parameters)
        tree = {"tensor": [1, dtype, shape]}
        parameters.append({"name": name if named else f"input_{k}", "kind": "POSITIONAL_OR_KEYWORD", "tree": tree})
    one: Any = {"planes": 1}
    results = one if native.n_results == 1 else {"tuple": [one] * native.n_results}
    return LoadedProgram(text, {"parameters": parameters, "results": results}, held)
