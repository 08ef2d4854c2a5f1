"""Programs of `aerogel.tensor.frost`, the memory that they take and return, and what is reported of them."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel.tensor import programs
from aerogel.tensor._tensor import Tensor
from aerogel.tensor.frost._memory import TensorMemory
from aerogel.tensor.frost._modules import flattened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

cpu, opengl, vulkan, codegen = "cpu", "opengl", "vulkan", "codegen"
cpp_lang, glsl_lang, hlsl_lang = "cpp", "glsl", "hlsl"


def initialize(backend: str = cpu, flags: str = "", kernel_lang: Any = None) -> None:
    """Begins: every back end is this compiler, which needs no flags.

    Raises:
        NotImplementedError: Always: source in another language is requested.
    """
    import aerogel

    if backend == codegen:
        raise NotImplementedError("Aerogel does not generate source in other languages; see `Program.text`")
    aerogel.init(arch=aerogel.cpu, log_level="error")


class TensorProgram(programs.Program):
    """A compiled function.

    Arguments are the inputs in the order in which the function creates them: tensors, arrays, numbers, and modules,
    which stand for their parameters. A single number is returned as an axis of one element.
    """

    _numbers = itertools.count()

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(function, divides_integers=True)
        self._number = next(self._numbers)

    def compile(self) -> TensorProgram:
        """Traces and compiles it before its first call."""
        super().compile()
        _COMPILED.add(self)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs it: the one result, or a tuple of several."""
        results = super().__call__(*args, **kwargs)
        if not isinstance(results, list):
            return results
        return results[0] if len(results) == 1 else tuple(results)

    def _given(self, lowered: Any, values: Sequence[Any], named: Any) -> list[Any]:
        values = flattened(values)
        fitted = [_of_rank(value, len(wanted.shape)) for value, wanted in zip(values, lowered.inputs)]
        return super()._given(lowered, [*fitted, *values[len(fitted) :]], named)

    def _result(self, native: Any) -> Tensor:
        out = TensorMemory(native)
        return out if native.shape else TensorMemory(out.reshape(1)._native)


def _of_rank(value: Any, rank: int) -> Any:
    """One element has no axis or one, as the input has."""
    if rank < 2 and isinstance(value, Tensor) and value.ndim == 1 - rank and value.size == 1:
        return value.reshape((1,) * rank)
    return value


def compile(function: Callable[[], Any]) -> TensorProgram:  # noqa: A001
    """Traces and compiles a function."""
    out = TensorProgram(function)
    out.compile()
    return out


def program(function: Callable[[], Any]) -> TensorProgram:
    """A program of a function, traced at its first call."""
    return TensorProgram(function)


def allocated_memory() -> int:
    """The bytes of memory in use."""
    return _native.live_bytes()


def unused_allocated_memory() -> int:
    """The bytes that are allocated but unused: 0, since cached memory counts as in use."""
    return 0


def current_backend() -> str:
    """The back end: every name of one is this compiler."""
    return cpu


# What became of programs.

#: Weak references to programs.
_COMPILED: weakref.WeakSet[TensorProgram] = weakref.WeakSet()


def _programs() -> list[TensorProgram]:
    return sorted(_COMPILED, key=lambda program: program._number)


def get_all_generated_main_functions() -> list[str]:
    """The statements of each program that has been compiled."""
    return [program.text for program in _programs()]


def get_all_generated_kernels() -> list[str]:
    """The kernels of each compiled program as text: which statements share a kernel, and what is materialised."""
    return [program.explain() for program in _programs()]


def get_cpp_implementation() -> str:
    """The statements of all programs: there is no C++, and none is needed."""
    return "\n".join(get_all_generated_main_functions())


def get_cpp_header() -> str:
    """The names of all programs and the types of their inputs, as comments of C++."""
    lines = []
    for program in _programs():
        kinds = ", ".join(x.dtype for x in program._any().inputs)
        lines.append(f"// {program.__name__}({kinds})\n")
    return "".join(lines)


def renderdoc_start_capture() -> None:
    """For a tool that looks at frames of a GPU: nothing is shown to it."""


def renderdoc_end_capture() -> None:
    """The end of what `renderdoc_start_capture` began."""


def strip_debug_info(strip: bool = True) -> None:
    """Kernels have no more than they need."""


__all__ = [
    "TensorProgram", "allocated_memory", "codegen", "compile", "cpp_lang", "cpu",
    "current_backend", "get_all_generated_kernels", "get_all_generated_main_functions", "get_cpp_header",
    "get_cpp_implementation", "glsl_lang", "hlsl_lang", "initialize", "opengl", "program", "renderdoc_end_capture",
    "renderdoc_start_capture", "strip_debug_info", "unused_allocated_memory", "vulkan",
]  # fmt: skip
