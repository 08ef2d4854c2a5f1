"""The functions of the kernel language.

In a kernel the frontend recognises each by ``__aerogel_builtin__`` and never runs its body; from
Python the body works on numbers and matrices, or says that the function belongs in a kernel.
"""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

from aerogel import _native
from aerogel._dtypes import convert, dtype_of
from aerogel._traced import traced
from aerogel.data.matrix import Matrix, Vector, _divide
from aerogel.errors import AerogelRuntimeError

F = TypeVar("F", bound=Callable[..., Any])


def builtin(name: str) -> Callable[[F], F]:
    """Marks a function as the language builtin ``name``."""

    def mark(f: F) -> F:
        marked = traced(f)
        marked.__aerogel_builtin__ = name  # type: ignore[attr-defined]
        return marked

    return mark


#: What functions of kernels are called for tensors, if otherwise.
_FOR_TENSORS = {"max": "maximum", "min": "minimum", "select": "where", "zero": "zeros_like", "one": "ones_like"}


def _is_tensor(x: Any) -> bool:
    return getattr(type(x), "_aerogel_tensor", False)


def _map(name: str, f: Callable[..., Any], *args: Any) -> Any:
    """Applies ``f`` to numbers, or component by component where an argument is a matrix; to tensors their function.

    Raises:
        TypeError: If there is none of that name.
    """
    if any(map(_is_tensor, args)):
        from aerogel import tensor

        own = name.rpartition(".")[2]
        of_tensors = getattr(tensor, _FOR_TENSORS.get(own, own), None)
        if of_tensors is None:
            raise TypeError(f"`ti.{name}` takes numbers, vectors and matrices, not tensors: call it in a kernel")
        return of_tensors(*args)
    shape = next((a for a in args if isinstance(a, Matrix)), None)
    if shape is None:
        return f(*args)
    columns = [a._data if isinstance(a, Matrix) else [a] * len(shape._data) for a in args]
    return shape._like([f(*xs) for xs in zip(*columns)])


def _unary(name: str, doc: str, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def op(x: Any) -> Any:
        return _map(name, f, x)

    op.__name__ = op.__qualname__ = name
    op.__doc__ = doc
    return builtin(name)(op)


def _kernel_only(name: str, doc: str) -> Callable[..., Any]:
    def op(*args: Any, **kwargs: Any) -> Any:
        made = _native.traced_call(op, args, kwargs, True)
        if made is NotImplemented:
            raise AerogelRuntimeError(f"ti.{name} can be used inside kernels and functions only")
        return made

    op.__name__ = op.__qualname__ = name
    op.__doc__ = doc
    op.__aerogel_builtin__ = name  # type: ignore[attr-defined]
    return op


def _or_nan(f: Callable[[float], float]) -> Callable[[Any], float]:
    def g(x: Any) -> float:
        try:
            return f(x)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return g


def _log(x: Any) -> float:
    return -math.inf if x == 0 else _or_nan(math.log)(x)


def _round_away(x: float) -> float:
    return math.copysign(math.floor(builtins.abs(x) + 0.5), x) if math.isfinite(x) else x


sin = _unary("sin", "The sine of an angle in radians.", _or_nan(math.sin))
cos = _unary("cos", "The cosine of an angle in radians.", _or_nan(math.cos))
tan = _unary("tan", "The tangent of an angle in radians.", _or_nan(math.tan))
asin = _unary("asin", "The arc sine, in radians.", _or_nan(math.asin))
acos = _unary("acos", "The arc cosine, in radians.", _or_nan(math.acos))
tanh = _unary("tanh", "The hyperbolic tangent.", _or_nan(math.tanh))
exp = _unary("exp", "e to the power of x.", _or_nan(math.exp))
log = _unary("log", "The natural logarithm.", _log)
sqrt = _unary("sqrt", "The square root.", _or_nan(math.sqrt))
rsqrt = _unary("rsqrt", "One over the square root.", lambda x: _divide(1.0, _or_nan(math.sqrt)(x)))
popcnt = _unary("popcnt", "The number of bits that are set.", lambda x: bin(x & 0xFFFFFFFFFFFFFFFF).count("1"))
clz = _kernel_only("clz", "The number of leading zero bits.")


@builtin("floor")
def floor(x: Any, dtype: Any = None) -> Any:
    """The largest integer not above ``x``, converted to ``dtype`` if one is given."""
    y = _map("floor", lambda v: float(math.floor(v)) if math.isfinite(v) else v, x)
    return y if dtype is None else cast(y, dtype)


@builtin("ceil")
def ceil(x: Any, dtype: Any = None) -> Any:
    """The smallest integer not below ``x``, converted to ``dtype`` if one is given."""
    y = _map("ceil", lambda v: float(math.ceil(v)) if math.isfinite(v) else v, x)
    return y if dtype is None else cast(y, dtype)


@builtin("round")
def round(x: Any, dtype: Any = None) -> Any:
    """The nearest integer, halves away from zero, converted to ``dtype`` if one is given."""
    if _is_tensor(x):
        # Not that of tensors, which takes halves to even numbers as NumPy's.
        from aerogel.tensor._tensor import unary

        y = unary("round")(x)
    else:
        y = _map("round", _round_away, x)
    return y if dtype is None else cast(y, dtype)


@builtin("frexp")
def frexp(x: Any) -> Any:
    """``m`` and ``e`` with ``x == m * 2**e`` and ``0.5 <= abs(m) < 1``; zero, infinity and NaN have ``e == 0``.

    >>> frexp(10.0)
    (0.625, 4)
    """
    if isinstance(x, Matrix):
        parts = [math.frexp(v) for v in x._data]
        return x._like([m for m, _ in parts]), x._like([e for _, e in parts])
    return _map("frexp", math.frexp, x)


@builtin("abs")
def abs(x: Any) -> Any:
    """The absolute value."""
    return _map("abs", builtins.abs, x)


@builtin("pow")
def pow(base: Any, exponent: Any) -> Any:
    """``base`` to the power of ``exponent``."""
    return _map("pow", lambda a, b: a**b, base, exponent)


@builtin("atan2")
def atan2(x1: Any, x2: Any) -> Any:
    """The angle of the point with ordinate ``x1`` and abscissa ``x2``, in radians."""
    return _map("atan2", math.atan2, x1, x2)


def _fold(name: str, f: Callable[[Any, Any], Any], args: tuple) -> Any:
    if not args:
        raise TypeError("at least one argument is needed")
    result = args[0]
    if len(args) == 1 and getattr(result, "_aerogel_tensor", False):
        raise TypeError(f"`ti.{name}` takes two values or more: `x.{name}()` is that of a tensor")
    for a in args[1:]:
        result = _map(name, f, result, a)
    return result


@builtin("max")
def max(*args: Any) -> Any:
    """The largest of its arguments, component by component for vectors and matrices."""
    return _fold("max", builtins.max, args)


@builtin("min")
def min(*args: Any) -> Any:
    """The smallest of its arguments, component by component for vectors and matrices."""
    return _fold("min", builtins.min, args)


@builtin("select")
def select(cond: Any, x1: Any, x2: Any) -> Any:
    """``x1`` where ``cond`` holds and ``x2`` elsewhere."""
    return _map("select", lambda c, a, b: a if c else b, cond, x1, x2)


@builtin("cast")
def cast(obj: Any, dtype: Any) -> Any:
    """``obj`` converted to a scalar type."""
    if _is_tensor(obj):
        return obj.astype(dtype)
    dtype = dtype_of(dtype)
    return obj.cast(dtype) if isinstance(obj, Matrix) else convert(dtype, obj)


@builtin("raw_div")
def raw_div(x1: Any, x2: Any) -> Any:
    """The quotient of integers rounded towards zero."""
    return _map("raw_div", lambda a, b: int(a / b) if isinstance(a, float) else _truncate(a, b), x1, x2)


@builtin("raw_mod")
def raw_mod(x1: Any, x2: Any) -> Any:
    """The remainder of :func:`raw_div`."""
    return _map("raw_mod", lambda a, b: a - b * _truncate(a, b), x1, x2)


def _truncate(a: int, b: int) -> int:
    q = builtins.abs(a) // builtins.abs(b)
    return q if (a < 0) == (b < 0) else -q


@builtin("zero")
def zero(x: Any) -> Any:
    """A zero of the type and shape of ``x``."""
    return _map("zero", lambda v: type(v)(0), x)


@builtin("one")
def one(x: Any) -> Any:
    """A one of the type and shape of ``x``."""
    return _map("one", lambda v: type(v)(1), x)


@builtin("logical_not")
def logical_not(x: Any) -> Any:
    """Whether ``x`` is zero."""
    return _map("logical_not", lambda v: not v, x)


@builtin("static")
def static(x: Any, *xs: Any) -> Any:
    """Marks an expression that is evaluated when the kernel is compiled: conditions and loops to unroll."""
    return [x, *xs] if xs else x


@builtin("static_print")
def static_print(*args: Any, **kwargs: Any) -> None:
    """Prints while a kernel is being compiled."""
    print(*args, **kwargs)  # noqa: T201


@builtin("static_assert")
def static_assert(cond: Any, msg: str | None = None) -> None:
    """Fails while a kernel is being compiled, if ``cond`` does not hold."""
    if not cond:
        raise AssertionError(msg or "static assertion failed")


class _Ndrange:
    """What :func:`ndrange` gives: all index tuples of a box, the last index fastest."""

    _aerogel_ndrange = True

    def __init__(self, *args: Any, axes: Any = None) -> None:
        self.bounds = []
        for a in args:
            lo, hi = (a[0], a[1]) if isinstance(a, (tuple, list, Matrix)) else (0, a)
            self.bounds.append((int(lo), builtins.max(int(lo), int(hi))))
        self.axes = None if axes is None else tuple(axes)
        if self.axes is not None and sorted(self.axes) != list(range(len(args))):
            raise ValueError(f"axes= names each of the {len(args)} axes once, from 0, not {self.axes}")

    def __iter__(self) -> Any:
        ranges = [range(lo, hi) for lo, hi in self.bounds]
        if self.axes is None:
            return itertools.product(*ranges)
        place = [self.axes.index(axis) for axis in range(len(ranges))]
        return (tuple(at[k] for k in place) for at in itertools.product(*(ranges[axis] for axis in self.axes)))

    def grouped(self) -> Iterable[Vector]:
        """The index tuples as vectors."""
        return [Vector(list(t)) for t in self]


@builtin("ndrange")
def ndrange(*args: Any, axes: Any = None) -> Any:
    """All index tuples of a box, each axis given by its end or by ``(begin, end)``; the last index is fastest.

    >>> list(ndrange(2, (1, 3)))
    [(0, 1), (0, 2), (1, 1), (1, 2)]
    >>> list(ndrange(2, (1, 3), axes=(1, 0)))
    [(0, 1), (1, 1), (0, 2), (1, 2)]

    Args:
        args: The axes.
        axes: The order of the loops, the outermost axis first, as Quadrants has it. The indices stay where they are.
            It decides the order of loops that are serial; parallel ones run in any order.

    Raises:
        ValueError: ``axes`` does not name each axis once.
    """
    return _Ndrange(*args, axes=axes)


@builtin("grouped")
def grouped(x: Any) -> Any:
    """Loops over ``x`` with one index vector in place of an index for each axis."""
    return x.grouped() if isinstance(x, _Ndrange) else [Vector(list(i)) for i in ndrange(*x.shape)]


@builtin("loop_config")
def loop_config(
    *,
    block_dim: int | None = None,
    serialize: bool = False,
    parallelize: int | None = None,
    block_dim_adaptive: bool = True,
    bit_vectorize: bool = False,
    fast_math: bool | Literal["full"] | None = None,
) -> None:
    """Says how the next loop of a kernel is to run.

    Args:
        block_dim: The number of threads in a block on a GPU: a power of two up to 1024.
        serialize: Whether the loop runs in order on one thread.
        parallelize: The largest number of threads.
        block_dim_adaptive: Accepted, without effect.
        bit_vectorize: Accepted, without effect.
        fast_math: The loop's own level of ``ti.init(fast_math=...)``: ``True``, ``False`` or
            ``"full"``. The loop must be a parallel one.
    """
    raise AerogelRuntimeError("ti.loop_config can be used only inside kernels")


random = _kernel_only("random", "A random number: [0, 1) for floating types, the full range for integer types.")
randn = _kernel_only("randn", "A random number from the standard normal distribution.")
bit_cast = _kernel_only("bit_cast", "The same bits reinterpreted as another dtype of the same width.")
bit_shr = _kernel_only("bit_shr", "The logical shift to the right.")
stop_grad = _kernel_only("stop_grad", "Stops gradients at a field for the rest of the kernel.")
no_activate = _kernel_only("no_activate", "Declares that accesses to a node never activate it.")
block_local = _kernel_only("block_local", "Requests that fields are staged in fast memory for the next loop.")
mesh_local = _kernel_only(
    "mesh_local", "Requests that attributes of a mesh are staged in fast memory for the next loop."
)
mesh_patch_idx = _kernel_only("mesh_patch_idx", "The mesh patch of the current element of the loop.")
cache_read_only = _kernel_only("cache_read_only", "Declares that fields are only read in the next loop.")
assume_in_range = _kernel_only("assume_in_range", "Declares that a value lies near another.")
is_active = _kernel_only("is_active", "Whether a cell of a sparse node is active.")
activate = _kernel_only("activate", "Activates a cell of a sparse node.")
deactivate = _kernel_only("deactivate", "Deactivates a cell of a sparse node.")
append = _kernel_only("append", "Appends to a dynamic node.")
length = _kernel_only("length", "The length of a dynamic node.")
get_addr = _kernel_only("get_addr", "The address of a cell.")
# For this package's own algorithms, and no name of `ti`.
prefetch = _kernel_only("prefetch", "Prefetches an element and its cache line.")
rescale_index = _kernel_only("rescale_index", "Converts an index of one field to a coarser or finer field.")
atomic_add = _kernel_only("atomic_add", "Adds to a value in memory atomically; returns the old value.")
atomic_sub = _kernel_only("atomic_sub", "Subtracts from a value in memory atomically; returns the old value.")
atomic_mul = _kernel_only("atomic_mul", "Multiplies a value in memory atomically; returns the old value.")
atomic_min = _kernel_only("atomic_min", "Takes the minimum with a value in memory atomically; returns the old value.")
atomic_max = _kernel_only("atomic_max", "Takes the maximum with a value in memory atomically; returns the old value.")
atomic_and = _kernel_only("atomic_and", "Bitwise and with a value in memory, atomically; returns the old value.")
atomic_or = _kernel_only("atomic_or", "Bitwise or with a value in memory, atomically; returns the old value.")
atomic_xor = _kernel_only("atomic_xor", "Bitwise xor with a value in memory, atomically; returns the old value.")
atomic_exchange = _kernel_only("atomic_exchange", "Stores a value in memory atomically; returns the old value.")
atomic_cas = _kernel_only(
    "atomic_cas",
    "Stores ``value`` in memory atomically if it holds ``compare``; returns the old value.",
)
global_thread_idx = _kernel_only("global_thread_idx", "The index of the thread.")

__all__ = [
    "abs",
    "acos",
    "activate",
    "append",
    "asin",
    "assume_in_range",
    "atan2",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_mul",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "bit_cast",
    "bit_shr",
    "block_local",
    "cache_read_only",
    "cast",
    "ceil",
    "clz",
    "cos",
    "deactivate",
    "exp",
    "floor",
    "frexp",
    "get_addr",
    "global_thread_idx",
    "grouped",
    "is_active",
    "length",
    "mesh_local",
    "mesh_patch_idx",
    "log",
    "logical_not",
    "loop_config",
    "max",
    "min",
    "ndrange",
    "no_activate",
    "one",
    "popcnt",
    "pow",
    "randn",
    "random",
    "raw_div",
    "raw_mod",
    "rescale_index",
    "round",
    "rsqrt",
    "select",
    "sin",
    "sqrt",
    "static",
    "static_assert",
    "static_print",
    "stop_grad",
    "tan",
    "tanh",
    "zero",
]
