"""The decorators: ``@ti.kernel``, ``@ti.func``, ``@ti.pyfunc``, ``@ti.data_oriented``."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from aerogel import _native, _pickling
from aerogel._dtypes import DataType, dtype_of
from aerogel._source_lines import note
from aerogel.errors import AerogelSyntaxError
from aerogel.types import AnyMatrixType, ArgPackType, MatrixType, NdarrayType, RefType, StructType

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Self
else:
    from typing import ParamSpec

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
Q = ParamSpec("Q")
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_EMPTY = object()


class Inspection(dict[str, Any]):
    """The result of :meth:`Kernel.inspect`: a dictionary that prints as text."""

    def __repr__(self) -> str:
        if "loops" in self:
            from aerogel import _loops

            return _loops.text_of(self["loops"], self["changes"])
        parts = [("source", self["source"])]
        parts += [(f"stages: {name}", text) for name, text in self["stages"].items()]
        parts += [(name, self[name]) for name in ("llvm", "asm")]
        parts.append(("times", "\n".join(f"{1e3 * t:9.3f} ms  {name}" for name, t in self["times"].items())))
        return "\n\n".join(f"; {title}\n{(text or '').rstrip()}" for title, text in parts)


class Kernel(_native.NativeKernel, Generic[P, R]):
    """A kernel, made by ``@ti.kernel``: a callable that is compiled for the arguments it is first called with.

    The call itself, with argument checks and packing, is native code.
    """

    __wrapped__: Callable[P, R]
    __name__: str
    __qualname__: str

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
            """Runs the kernel; editors and type checkers see the function's own signature."""
            ...

        @overload
        def __get__(self, instance: None, owner: Any = None) -> Self: ...
        @overload
        def __get__(self: Kernel[Concatenate[S, Q], R], instance: S, owner: Any = None) -> Kernel[Q, R]: ...

    def __repr__(self) -> str:
        return f"<ti.kernel {self.__wrapped__.__qualname__}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else BoundKernel(self, instance)

    @property
    def grad(self) -> KernelGradient:
        """The kernel that computes gradients, with the same arguments.

        It adds to the gradients of the memory that this one reads, from those of the memory that it writes.
        """
        return KernelGradient(self)

    # Taichi's kernels are functions with these two attributes, by which packages tell kernels from other functions.
    @property
    def _primal(self) -> Self:
        return self

    @property
    def _adjoint(self) -> KernelGradient:
        return _Adjoint(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _pickling.by_name(self, _pickling.global_name("kernel", self, defined_at(self.__wrapped__)))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def inspect(self, *args: Any, loops: bool = False, **kwargs: Any) -> Inspection:
        """The states of this kernel in the compiler, or what became of its loops.

        Args:
            args: Arguments to compile for; without any, the instance that was compiled last.
            loops: Whether to report on loops instead.

        Returns:
            A dictionary with ``"source"``, ``"stages"`` (the IR after each pass by its name), ``"llvm"``,
            ``"asm"`` and ``"times"`` (seconds by step). Printed, it is all of them in order. With ``loops``, also
            ``"loops"``: for each loop its line, how it runs (on threads, in vectors), how it accesses memory, why it
            has no vectors, and what to change; and ``"changes"``: what passes changed in the whole kernel. Printed,
            it is these two.

        Raises:
            AerogelRuntimeError: The kernel is not compiled yet, and there are no arguments.
        """
        found = self._inspect(args, kwargs, loops)
        if loops:
            from aerogel import _loops

            found["loops"], found["changes"] = _loops.report(found)
        return Inspection(found)

    def export_c(self, folder: str | os.PathLike[str], *args: Any, name: str | None = None) -> list[str]:
        """Writes the kernel as code that C programs call without Python or Aerogel.

        Args:
            folder: Where the files are written; it is made if it is not there.
            args: Arguments to compile for; without any, the instance that was compiled last. Only the dtypes and the
                number of axes of arrays count, and the values of templates, which become constants.
            name: The name of the function and of the files, by default the kernel's own.

        Returns:
            The paths of the header, the function in C, the static library and the LLVM IR.

        Raises:
            TypeError: The kernel needs Aerogel when it runs: it uses fields or arrays that are no arguments, prints, or
                draws random numbers.
            ValueError: A function of C cannot have this name.
        """
        from aerogel import _exported_c

        name = self.__name__ if name is None else name
        names = _exported_c.Names(name, "export_c(folder, x, name='step')")
        return _exported_c.write(folder, name, self._export_c(args, name, names.identifier))


class BoundKernel:
    """A kernel that is a method, of one object."""

    __slots__ = ("__func__", "__self__")

    def __init__(self, kernel: Kernel[Any, Any], instance: Any) -> None:
        self.__func__ = kernel
        self.__self__ = instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    @property
    def grad(self) -> KernelGradient:
        """The kernel that computes gradients; see :attr:`Kernel.grad`."""
        return KernelGradient(self.__func__, self.__self__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundKernel) and (self.__func__, self.__self__) == (other.__func__, other.__self__)

    def __hash__(self) -> int:
        return hash((id(self.__func__), id(self.__self__)))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return BoundKernel, (self.__func__, self.__self__)

    def __deepcopy__(self, memo: dict[int, Any]) -> BoundKernel:
        return BoundKernel(self.__func__, copy.deepcopy(self.__self__, memo))

    def __repr__(self) -> str:
        return f"<bound {self.__func__!r} of {self.__self__!r}>"


class KernelGradient:
    """The gradient of a kernel: ``kernel.grad(*args)`` computes the gradients of the launch ``kernel(*args)``."""

    def __init__(self, kernel: Kernel[Any, Any], *bound: Any) -> None:
        self._kernel, self._bound = kernel, bound

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        given = (*self._bound, *args)
        forward = getattr(_native.recorder(), "gradient", None)
        if forward is not None:
            forward(self._kernel, given, kwargs)
        else:
            self._kernel._launch(given, kwargs, "grad")

    def __repr__(self) -> str:
        return f"<gradient of {self._kernel!r}>"


class _Adjoint(KernelGradient):
    """The gradient under its name in Taichi, where it is a ``Kernel``."""

    @property
    def __class__(self) -> type:
        return Kernel


def _annotations(fn: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, those given as text evaluated where the function stands."""
    raw = dict(getattr(fn, "__annotations__", {}))
    if any(isinstance(a, str) for a in raw.values()):
        scope = dict(fn.__globals__)
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
            try:
                scope[name] = cell.cell_contents
            except ValueError:
                pass
        for name, a in raw.items():
            if isinstance(a, str):
                try:
                    raw[name] = eval(a, scope)  # noqa: S307
                except Exception as e:
                    raise AerogelSyntaxError(f"the annotation `{a}` of `{name}` cannot be evaluated: {e}") from e
    return raw


def defined_at(fn: Callable[..., Any]) -> str:
    """The source location of a function, for messages."""
    return f"{fn.__code__.co_filename}:{fn.__code__.co_firstlineno}"


def _parameter(fn: Callable[..., Any], name: str, annotation: Any) -> tuple:
    """How the native side takes an argument: ``(kind, ...)``."""
    if annotation is _EMPTY:
        raise AerogelSyntaxError(
            f"the parameter `{name}` of kernel `{fn.__name__}` ({defined_at(fn)}) needs a type annotation, "
            f"for instance `{name}: ti.f32`, `{name}: ti.template()` or `{name}: ti.types.ndarray()`"
        )
    if annotation in (float, int, bool) or isinstance(annotation, DataType):
        return ("scalar", annotation if isinstance(annotation, DataType) else annotation.__name__)
    kind = getattr(annotation, "_aerogel_annotation", None)
    if kind == "template":
        return ("template",)
    if annotation is NdarrayType:
        annotation = NdarrayType()
    if isinstance(annotation, NdarrayType):
        return ("ndarray", annotation)
    if kind == "texture":
        if isinstance(annotation, type):
            call = "rw_texture(num_dimensions=2, fmt=ti.Format.rgba8)" if "RW" in annotation.__name__ else "texture(2)"
            raise TypeError(
                f"the parameter `{name}` of kernel `{fn.__name__}` ({defined_at(fn)}) is a texture and needs "
                f"its number of axes: `{name}: ti.types.{call}`"
            )
        return ("texture", annotation)
    if isinstance(annotation, MatrixType):
        return ("tensor", annotation)
    if isinstance(annotation, StructType):
        return ("struct", annotation)
    if isinstance(annotation, ArgPackType) or kind == "sparse_matrix_builder":
        members = [(key, _parameter(fn, f"{name}.{key}", ty)) for key, ty in annotation.members.items()]
        return ("pack", members, list(annotation.methods.items()))
    if isinstance(annotation, AnyMatrixType):
        raise AerogelSyntaxError(
            f"the parameter `{name}` of kernel `{fn.__name__}` ({defined_at(fn)}) needs its sizes, "
            f"for instance `{name}: {'ti.math.vec3' if annotation.ndim == 1 else 'ti.types.matrix(2, 2, ti.f32)'}`"
        )
    raise AerogelSyntaxError(
        f"the parameter `{name}` of kernel `{fn.__name__}` ({defined_at(fn)}) has the annotation "
        f"{getattr(annotation, '__name__', None) or repr(annotation)}, which is not a type of the kernel language"
        + _annotation_meant(name, annotation)
    )


def _annotation_meant(name: str, annotation: Any) -> str:
    """What to write instead of an annotation that kernels do not have."""
    called = getattr(annotation, "__name__", "")
    if annotation is str or annotation is bytes:
        return f": an argument that is not a number is a template, `{name}: ti.template()`"
    if called in ("field", "Field", "ScalarField", "MatrixField", "StructField"):
        return f": a field is passed as `{name}: ti.template()`"
    if called in ("ndarray", "Ndarray", "ScalarNdarray", "Tensor", "Array") and not isinstance(annotation, NdarrayType):
        return f": an array is passed as `{name}: ti.types.ndarray(dtype=ti.f32, ndim=1)`"
    if annotation in (list, tuple) or called in ("Vector", "Matrix"):
        return f": a vector is passed as `{name}: ti.math.vec3` or `{name}: ti.types.vector(3, ti.f32)`"
    return f": numbers are `{name}: ti.f32` or `{name}: ti.i32`, fields and other objects `{name}: ti.template()`"


def _return_type(fn: Callable[..., Any], annotation: Any) -> list[Any] | None:
    """The types of the values a kernel returns: ``None`` for nothing, one, or several for a tuple."""
    import typing

    if annotation is _EMPTY or annotation is None or annotation is type(None):
        return None
    if typing.get_origin(annotation) is tuple:
        annotation = typing.get_args(annotation)
    parts = list(annotation) if isinstance(annotation, (tuple, list)) else [annotation]
    for part in parts:
        if not (part in (float, int, bool) or isinstance(part, (DataType, MatrixType, StructType))):
            raise AerogelSyntaxError(f"kernel `{fn.__name__}` ({defined_at(fn)}) cannot return {part!r}")
    return parts


def returned_types(kernel: Kernel[Any, Any]) -> list[Any]:
    """The types of what a kernel returns."""
    fn = kernel.__wrapped__
    return _return_type(fn, _annotations(fn).get("return", _EMPTY)) or []


def _resolve(part: Any) -> Any:
    """The scalar or tensor type that a return annotation means under the present defaults."""
    return part if isinstance(part, MatrixType) else dtype_of(part)


def _signature(fn: Callable[..., Any], method: bool) -> tuple[list[tuple[str, tuple]], list[Any] | None, bool]:
    """The parameters and the return type of a kernel; whether several values are returned."""
    code = fn.__code__
    kind = "kernel `" + fn.__name__ + "` (" + defined_at(fn) + ")"
    if code.co_flags & 0x04 or code.co_flags & 0x08:
        raise AerogelSyntaxError(f"{kind} cannot have `*args` or `**kwargs`")
    if code.co_kwonlyargcount:
        raise AerogelSyntaxError(f"{kind} cannot have keyword-only parameters")
    annotations = _annotations(fn)
    names = code.co_varnames[: code.co_argcount]
    params = []
    for at, name in enumerate(names):
        if at == 0 and method:
            params.append((name, ("self",)))
        else:
            params.append((name, _parameter(fn, name, annotations.get(name, _EMPTY))))
    returned = annotations.get("return", _EMPTY)
    ret = _return_type(fn, returned)
    return params, ret, ret is not None and (isinstance(returned, (tuple, list)) or hasattr(returned, "__origin__"))


def _is_method(fn: Callable[..., Any]) -> bool:
    """Whether a function stands in a class body and takes the instance first."""
    outer = fn.__qualname__.rsplit(".", 1)[0] if "." in fn.__qualname__ else ""
    if not outer or outer.endswith("<locals>"):
        return False
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    return bool(names) and names[0] not in getattr(fn, "__annotations__", {})


#: Options of Quadrants' kernels. All of them select the behaviour of Aerogel, or another way to the same result.
_HINTS = frozenset(["fastcache", "graph", "pure"])


@overload
def kernel(fn: Callable[P, R]) -> Kernel[P, R]: ...
@overload
def kernel(
    *, fastcache: bool = ..., graph: bool = ..., pure: bool = ...
) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def kernel(fn: Any = None, **hints: Any) -> Any:
    """Compiles a function for all cores: each loop at its outermost level runs in parallel.

    The parameters need annotations: scalar types, ``ti.types.vector(...)``, ``ti.types.ndarray(...)`` or
    ``ti.template()``. The function is read from its source and compiled when it is first called.
    ``fastcache``, ``graph`` and ``pure`` are options of Quadrants, accepted without effect.

    Raises:
        TypeError: A keyword that is none of these.
    """
    unknown = sorted(hints.keys() - _HINTS)
    if unknown:
        raise TypeError(f"`ti.kernel` has no option `{unknown[0]}`")
    if fn is None:
        return kernel
    if isinstance(fn, (staticmethod, classmethod)):
        raise AerogelSyntaxError("put @staticmethod above @ti.kernel, and do not use @classmethod")
    _check_function(fn)
    if hasattr(fn, "__aerogel_func__"):
        raise AerogelSyntaxError(f"`{fn.__name__}` is decorated as a function: remove that decorator, or @ti.kernel")
    if fn.__name__ == "<lambda>":
        raise AerogelSyntaxError("a lambda cannot be a kernel: its parameters have no types")
    method = _is_method(fn)
    params, ret, many = _signature(fn, method)
    out = Kernel(fn, params, ret, many)
    functools.update_wrapper(out, fn)
    return out


def func(fn: F) -> F:
    """Makes a function that kernels and other such functions call; it is compiled into its callers.

    Arguments are passed by value, those annotated ``ti.template()`` by reference.
    """
    if isinstance(fn, staticmethod):
        raise AerogelSyntaxError("put @staticmethod above @ti.func")
    _check_function(fn)

    @functools.wraps(fn)
    def outside(*args: Any, **kwargs: Any) -> Any:
        made = _native.traced_call(outside, args, kwargs, True)
        if made is NotImplemented:
            raise AerogelSyntaxError(
                f"the function `{fn.__name__}` can be called inside kernels only; @ti.pyfunc makes functions for both"
            )
        return made

    outside.__aerogel_func__ = fn  # type: ignore[attr-defined]
    return outside  # type: ignore[return-value]


def _check_function(fn: Any) -> None:
    if not hasattr(fn, "__code__"):
        raise TypeError(f"{fn!r} is not a function written in Python")
    note(fn)


def pyfunc(fn: F) -> F:
    """Makes a function that can be called both inside kernels and from Python."""
    if hasattr(fn, "__code__"):
        note(fn)

    @functools.wraps(fn)
    def both(*args: Any, **kwargs: Any) -> Any:
        made = _native.traced_call(both, args, kwargs)
        return fn(*args, **kwargs) if made is NotImplemented else made

    both.__aerogel_func__ = fn  # type: ignore[attr-defined]
    return both  # type: ignore[return-value]


def _passing(fn: Callable[..., Any], name: str, annotation: Any) -> tuple[str, Any]:
    """How a real function takes an argument: ``(kind, type)``."""
    where = f"the parameter `{name}` of the real function `{fn.__name__}` ({defined_at(fn)})"
    if annotation is _EMPTY:
        raise AerogelSyntaxError(f"{where} needs a type annotation, for instance `{name}: ti.f32`")
    if annotation in (float, int, bool) or isinstance(annotation, DataType):
        return ("value", dtype_of(annotation))
    if isinstance(annotation, (MatrixType, StructType)):
        return ("value", annotation)
    if isinstance(annotation, RefType):
        return ("reference", annotation.dtype)
    kind = getattr(annotation, "_aerogel_annotation", None)
    if kind == "template" or annotation is NdarrayType or isinstance(annotation, NdarrayType):
        return ("template", None)
    raise AerogelSyntaxError(f"{where} has the annotation {annotation!r}, which is not a type of the kernel language")


def _real_signature(fn: Callable[..., Any]) -> tuple[list[tuple[str, Any]], list[Any] | None, bool]:
    """How a real function takes each argument, the types of what it returns, and whether that is a tuple."""
    annotations = _annotations(fn)
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    params = []
    for at, name in enumerate(names):
        if at == 0 and _is_method(fn):
            params.append(("template", None))
        else:
            params.append(_passing(fn, name, annotations.get(name, _EMPTY)))
    returned = annotations.get("return", _EMPTY)
    ret = _return_type(fn, returned)
    many = ret is not None and (isinstance(returned, (tuple, list)) or hasattr(returned, "__origin__"))
    return params, ret and [part if isinstance(part, StructType) else _resolve(part) for part in ret], many


def real_func(fn: F) -> F:
    """Makes a function that is compiled by itself, and may call itself.

    All parameters need annotations: scalars, vectors, matrices and structs are passed by value, those annotated
    ``ti.ref(ti.f32)`` by reference to a variable or an element of a field. ``return`` may stand anywhere.

    >>> @real_func
    ... def fib(n: int) -> int:
    ...     if n < 2:
    ...         return n
    ...     return fib(n - 1) + fib(n - 2)
    """
    _check_function(fn)
    fn.__aerogel_real__ = True  # type: ignore[attr-defined]
    return func(fn)


def data_oriented(cls: C) -> C:
    """Lets the methods of a class be kernels; ``self`` is known when they are compiled."""
    cls._aerogel_data_oriented = True  # type: ignore[attr-defined]
    return cls


_pickling.by_value(Kernel, kernel, lambda value: (value.__wrapped__,))


__all__ = ["Kernel", "data_oriented", "func", "kernel", "pyfunc", "real_func"]
