"""``ti.graph``: sequences of kernel calls that are described once and run with one call.

A graph is built from symbolic arguments, which get their values when it runs:

    x = ti.graph.Arg(ti.graph.ArgKind.NDARRAY, "x", dtype=ti.f32, ndim=1)
    builder = ti.graph.GraphBuilder()
    builder.dispatch(step, x)
    graph = builder.compile()
    graph.run({"x": array})
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Any

from aerogel import _native
from aerogel._dtypes import DataType, dtype_of
from aerogel.data.matrix import Matrix
from aerogel.data.ndarray import Ndarray
from aerogel.data.texture import Format, RWTextureType, Texture, TextureType
from aerogel.errors import AerogelCompilationError, AerogelRuntimeError
from aerogel.kernel import Kernel, _annotations
from aerogel.types import MatrixType, NdarrayType

# Programs import from modules of Taichi's package of this name.
__path__: list[str] = []


class ArgKind(enum.Enum):
    """The kind of an argument of a graph."""

    SCALAR = 0
    MATRIX = 1
    NDARRAY = 2
    TEXTURE = 3
    RWTEXTURE = 4


class Arg:
    """An argument of a graph, named.

    Args:
        tag: The kind of the argument.
        name: The key under which :meth:`Graph.run` finds it.
        dtype: The type of a scalar, of a vector or matrix, or of an array's elements.
        ndim: The number of an array's or a texture's axes.
        fmt: The format of a texture that is written to.

    Raises:
        KeyError: An array without ``ndim``, or nothing where a type is needed.
        TypeError: A texture without ``ndim`` or, if it is written to, ``fmt``.
        AerogelRuntimeError: The type does not go with the kind.
    """

    __slots__ = ("dtype", "fmt", "name", "ndim", "tag")

    dtype: DataType | MatrixType | None
    fmt: Format | None

    def __init__(self, tag: ArgKind, name: str, dtype: Any = None, ndim: int | None = None, **kwargs: Any) -> None:
        if not isinstance(tag, ArgKind):
            raise TypeError(f"the kind of an argument is a ti.graph.ArgKind, not {tag!r}")
        if "element_shape" in kwargs:
            raise AerogelRuntimeError("element_shape was removed; pass a vector or matrix type as dtype")
        self.fmt = kwargs.pop("fmt", None) if tag is ArgKind.RWTEXTURE else None
        if kwargs:
            raise TypeError(f"unexpected argument {next(iter(kwargs))!r} of ti.graph.Arg")
        self.tag, self.name, self.ndim = tag, str(name), ndim
        if tag in (ArgKind.TEXTURE, ArgKind.RWTEXTURE):
            if ndim is None:
                raise TypeError(
                    f"the argument {str(name)!r} is a {tag.name}, which needs ndim, its number of axes: ndim=2"
                )
            if tag is ArgKind.RWTEXTURE and not isinstance(self.fmt, Format):
                raise TypeError(
                    f"the argument {str(name)!r} is a RWTEXTURE, which needs fmt, the format that it is written in: "
                    "fmt=ti.Format.rgba8"
                )
            self.dtype = None
            return
        if dtype is None:
            raise KeyError("dtype")
        is_matrix = isinstance(dtype, MatrixType)
        if tag is ArgKind.SCALAR and is_matrix:
            raise AerogelRuntimeError(f"Tag ArgKind.SCALAR must specify a scalar type, but found {dtype!r}.")
        if tag is ArgKind.MATRIX and not is_matrix:
            raise AerogelRuntimeError(f"Tag ArgKind.MATRIX must specify matrix type, but got {dtype}.")
        if tag is ArgKind.NDARRAY and ndim is None:
            raise KeyError("ndim")
        self.dtype = dtype if is_matrix else dtype_of(dtype)

    @property
    def _what(self) -> tuple[Any, ...]:
        """What two arguments of one name have in common."""
        return (self.tag, self.ndim, str(self.dtype), self.fmt)

    def __repr__(self) -> str:
        if self.dtype is None:
            return f"<ti.graph.Arg {self.name}: {self.tag.name} with {self.ndim} axes>"
        return f"<ti.graph.Arg {self.name}: {self.tag.name} of {self.dtype}>"

    def _check(self, value: Any) -> None:
        """Raises an error if a value cannot be this argument."""
        if not isinstance(value, (int, float, Matrix, Ndarray, Texture)):
            raise AerogelRuntimeError(
                "Only python int, float, ti.Matrix, ti.Ndarray and ti.Texture are supported as runtime arguments"
                f" but got {type(value)}"
            )
        wanted = _CLASSES[self.tag]
        if not isinstance(value, wanted):
            raise AerogelRuntimeError(f"argument `{self.name}` is a {self.tag.name}, not a {type(value).__name__}")
        if isinstance(value, Matrix) and isinstance(self.dtype, MatrixType):
            given = (value.n, value.m)
            if given != (self.dtype.n, self.dtype.m):
                raise AerogelRuntimeError(f"argument `{self.name}` is a {self.dtype}, not one of shape {given}")
        if isinstance(value, Texture):
            if value.num_dims != self.ndim:
                raise AerogelRuntimeError(f"argument `{self.name}` has {self.ndim} axes, the texture {value.num_dims}")
            if self.fmt not in (None, value.fmt):
                raise AerogelRuntimeError(f"argument `{self.name}` is a texture of {self.fmt}, not of {value.fmt}")
        if isinstance(value, Ndarray):
            if len(value.shape) != self.ndim:
                raise AerogelRuntimeError(
                    f"argument `{self.name}` has {self.ndim} axes, the ndarray given has {len(value.shape)}"
                )
            scalar = self.dtype.dtype if isinstance(self.dtype, MatrixType) else self.dtype
            element = self.dtype.get_shape() if isinstance(self.dtype, MatrixType) else ()
            if dtype_of(scalar) != value.dtype or tuple(element) != tuple(value.element_shape):
                raise AerogelRuntimeError(
                    f"argument `{self.name}` is an ndarray of {self.dtype}, not of {value.dtype}"
                    + (f" elements of shape {tuple(value.element_shape)}" if value.element_shape else "")
                )


_CLASSES: dict[ArgKind, Any] = {
    ArgKind.SCALAR: (int, float),
    ArgKind.MATRIX: Matrix,
    ArgKind.NDARRAY: Ndarray,
    ArgKind.TEXTURE: Texture,
    ArgKind.RWTEXTURE: Texture,
}


class Sequential:
    """Calls one after the other, which can be appended to a builder more than once."""

    def __init__(self, named: dict[str, Arg] | None = None) -> None:
        self._calls: list[tuple[Kernel, tuple[Arg, ...]]] = []
        self._named = {} if named is None else named

    def dispatch(self, kernel_fn: Kernel, *args: Arg) -> None:
        """Adds a call of a kernel.

        Raises:
            TypeError: Not a kernel, or an argument that is not symbolic.
            AerogelCompilationError: An argument does not fit the annotation of the kernel's parameter.
            AerogelRuntimeError: Arguments that differ have one name.
        """
        _check_call(kernel_fn, args)
        for arg in args:
            other = self._named.setdefault(arg.name, arg)
            if other._what != arg._what:
                raise AerogelRuntimeError(f"two arguments that differ have the name `{arg.name}`")
        self._calls.append((kernel_fn, args))


class GraphBuilder:
    """Describes a graph: what is called, in which order."""

    def __init__(self) -> None:
        self._nodes: list[Sequential] = []
        self._named: dict[str, Arg] = {}

    def create_sequential(self) -> Sequential:
        """A sequence of its own, which is in the graph once it is appended."""
        return Sequential(self._named)

    def dispatch(self, kernel_fn: Kernel, *args: Arg) -> None:
        """Adds a call of a kernel.

        Raises:
            TypeError: Not a kernel, or an argument that is not symbolic.
            AerogelCompilationError: An argument does not fit the annotation of the kernel's parameter.
            AerogelRuntimeError: Arguments that differ have one name.
        """
        own = self.create_sequential()
        own.dispatch(kernel_fn, *args)
        self._nodes.append(own)

    def append(self, node: Sequential) -> None:
        """Adds all calls of a sequence."""
        if not isinstance(node, Sequential):
            raise TypeError(f"append takes the result of create_sequential, not {type(node).__name__}")
        self._nodes.append(node)

    def compile(self) -> Graph:
        """The graph as it is now."""
        return Graph([call for node in self._nodes for call in node._calls])


class Graph:
    """A sequence of calls that :meth:`run` makes; on a GPU it is launched as one, from the second run on."""

    def __init__(self, calls: list[tuple[Kernel, tuple[Arg, ...]]]) -> None:
        self._calls = calls
        self._args = {arg.name: arg for _, args in calls for arg in args}
        self._native = _native.NativeGraph()

    def run(self, args: Mapping[str, Any]) -> None:
        """Makes all calls. Everything is checked before the first.

        Args:
            args: A number, ``ti.Matrix``, ``ti.ndarray`` or ``ti.Texture`` for each argument, by name; others are
                ignored.

        Raises:
            AerogelRuntimeError: An argument is missing, or does not fit its :class:`Arg`.
        """
        for name, arg in self._args.items():
            if name not in args:
                raise AerogelRuntimeError(f"the graph's argument `{name}` is missing")
            arg._check(args[name])

        def launch() -> None:
            for kernel, symbols in self._calls:
                kernel(*(args[symbol.name] for symbol in symbols))

        self._native.run(launch)


def _check_call(kernel: Any, args: tuple[Any, ...]) -> None:
    if not isinstance(kernel, Kernel):
        raise TypeError(f"a graph is made of calls of kernels, not of {type(kernel).__name__}")
    for arg in args:
        if not isinstance(arg, Arg):
            raise TypeError(f"the arguments of a graph's calls are ti.graph.Arg, not {type(arg).__name__}")
    function = kernel.__wrapped__
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    if len(args) != len(names):
        raise IndexError(f"kernel `{function.__name__}` takes {len(names)} arguments, got {len(args)}")
    annotations = _annotations(function)
    for name, arg in zip(names, args):
        _check_fits(f"the parameter `{name}` of kernel `{function.__name__}`", annotations.get(name), arg)


def _check_fits(parameter: str, annotation: Any, arg: Arg) -> None:
    """Raises an error if an argument cannot be what a parameter is annotated with."""
    if isinstance(annotation, NdarrayType) or annotation is NdarrayType:
        wanted, dtype = ArgKind.NDARRAY, getattr(annotation, "dtype", None)
    elif isinstance(annotation, RWTextureType):
        wanted, dtype = ArgKind.RWTEXTURE, None
        if arg.tag is wanted and arg.fmt is not annotation.fmt:
            raise AerogelCompilationError(f"{parameter} is of {annotation.fmt}, argument `{arg.name}` of {arg.fmt}")
    elif isinstance(annotation, TextureType):
        wanted, dtype = ArgKind.TEXTURE, None
    elif isinstance(annotation, MatrixType):
        wanted, dtype = ArgKind.MATRIX, None
        given = arg.dtype.get_shape() if isinstance(arg.dtype, MatrixType) else ()
        if arg.tag is wanted and math.prod(given) != annotation.n * annotation.m:
            raise AerogelRuntimeError(f"{parameter} is a {annotation}, argument `{arg.name}` is a {arg.dtype}")
    elif annotation in (int, float, bool) or isinstance(annotation, DataType):
        wanted, dtype = ArgKind.SCALAR, annotation
    else:
        raise ValueError(
            f"{parameter} is {annotation!r}: a graph has scalars, vectors, matrices, ndarrays and textures"
        )
    if arg.tag is not wanted:
        raise AerogelCompilationError(f"{parameter} is a {wanted.name}, argument `{arg.name}` a {arg.tag.name}")
    ndim = getattr(annotation, "num_dimensions", getattr(annotation, "ndim", None))
    if wanted in (ArgKind.NDARRAY, ArgKind.TEXTURE, ArgKind.RWTEXTURE) and ndim is not None and arg.ndim != ndim:
        raise AerogelCompilationError(f"{parameter} has {ndim} axes, argument `{arg.name}` {arg.ndim}")
    dtype = dtype if dtype is None or isinstance(dtype, MatrixType) else dtype_of(dtype)
    if dtype is not None and str(dtype) != str(arg.dtype):
        raise AerogelCompilationError(f"{parameter} is of {dtype}, argument `{arg.name}` of {arg.dtype}")


__all__ = ["Arg", "ArgKind", "Graph", "GraphBuilder", "Sequential"]
