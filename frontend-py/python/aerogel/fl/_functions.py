"""The functions of ``aerogel.fl``: a table of names onto those of `aerogel.tensor`, and those that differ."""

from __future__ import annotations

import builtins
import enum
from typing import TYPE_CHECKING, Any

from aerogel import tensor as t
from aerogel import xp
from aerogel._dtypes import ALL, dtype_of
from aerogel.backends import _registry
from aerogel.fl import _memory
from aerogel.fl._tensor import Tensor, _inner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class dtype:
    """The dtypes by the names of the document."""

    f16, f32, f64, b8 = ALL["f16"], ALL["f32"], ALL["f64"], ALL["u1"]
    s16, s32, s64 = ALL["i16"], ALL["i32"], ALL["i64"]
    u8, u16, u32, u64 = ALL["u8"], ALL["u16"], ALL["u32"], ALL["u64"]


class MatrixProperty(enum.Enum):
    """How `matmul` takes a matrix."""

    None_ = "none"
    Transpose = "transpose"


class SortMode(enum.Enum):
    """The order of `sort`, `argsort` and `topk`."""

    Ascending = "ascending"
    Descending = "descending"


class PadType(enum.Enum):
    """What is around a tensor after `pad`."""

    Constant = "constant"
    Edge = "edge"
    Symmetric = "symmetric"


#: Functions of tensors that have another name, or the same, and the same arguments.
_ELEMENTWISE = {
    "exp": "exp", "log": "log", "negative": "negative", "log1p": "log1p", "sin": "sin", "cos": "cos",
    "sqrt": "sqrt", "tanh": "tanh", "floor": "floor", "ceil": "ceil", "rint": "round", "absolute": "abs",
    "sigmoid": "sigmoid", "erf": "erf", "isnan": "isnan", "isinf": "isinf", "sign": "sign", "tril": "tril",
    "triu": "triu", "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "eq": "equal",
    "neq": "not_equal", "lessThan": "less", "lessThanEqual": "less_equal", "greaterThan": "greater",
    "greaterThanEqual": "greater_equal", "bitwiseAnd": "bitwise_and", "bitwiseOr": "bitwise_or",
    "bitwiseXor": "bitwise_xor", "lShift": "bitwise_left_shift", "rShift": "bitwise_right_shift",
    "minimum": "minimum", "maximum": "maximum", "power": "power", "where": "where",
}  # fmt: skip
#: Functions along axes: `(input, axes=[], keepDims=False)`.
_REDUCTIONS = {"amin": "min", "amax": "max", "sum": "sum", "mean": "mean", "any": "any", "all": "all"}


def _named(name: str, ours: str) -> Callable[..., Tensor]:
    function = getattr(t if hasattr(t, ours) else xp, ours)

    def call(*operands: Any) -> Tensor:
        return Tensor(function(*[_inner(x) for x in operands]))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"As `aerogel.tensor.{ours}`."
    return call


def _axes(axes: Any) -> Any:
    axes = (axes,) if hasattr(axes, "__index__") else tuple(axes)
    return axes or None


def _reduction(name: str, ours: str) -> Callable[..., Tensor]:
    function = getattr(t, ours)

    def call(input: Any, axes: Any = (), keepDims: bool = False) -> Tensor:
        return Tensor(function(_inner(input), axis=_axes(axes), keepdims=keepDims))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"As `aerogel.tensor.{ours}`, along some axes; without axes along all."
    return call


for _name, _ours in _ELEMENTWISE.items():
    globals()[_name] = _named(_name, _ours)
for _name, _ours in _REDUCTIONS.items():
    globals()[_name] = _reduction(_name, _ours)


# Back ends and evaluation.


def backendType() -> str:
    """The name of the back end of tensors that are made now."""
    return _registry.current()


def eval(*tensors: Tensor) -> None:
    """Computes tensors together."""
    t.realize(*[_inner(x) for x in tensors])
    _memory.note("eval")


def sync() -> None:
    """Waits for all that was begun, with all back ends."""
    from aerogel.fl._tensor import Stream

    for name in ("native", _registry.current()):
        Stream(name).sync()


def supportsDataType(type: Any) -> bool:
    """Whether the current back end has a dtype."""
    backend = _registry.entry(_registry.current()).backend
    return backend is None or backend.supports(dtype_of(type))


# Random numbers, and tensors of nothing.


def setSeed(seed: int) -> None:
    """Restarts the random numbers."""
    t.random.seed(seed)


def randn(shape: Sequence[int], type: Any = dtype.f32) -> Tensor:
    """Numbers of the normal distribution."""
    return Tensor(t.random.randn(*shape).astype(type))


def rand(shape: Sequence[int], type: Any = dtype.f32) -> Tensor:
    """Numbers from 0 (inclusive) to 1 (exclusive)."""
    return Tensor(t.random.rand(*shape).astype(type))


def fromScalar(value: Any, type: Any = dtype.f32) -> Tensor:
    """A tensor without axes."""
    return Tensor(t.full((), value, dtype=dtype_of(type)))


def full(shape: Sequence[int], value: Any, type: Any = dtype.f32) -> Tensor:
    """One number everywhere."""
    return Tensor(t.full(tuple(shape), value, dtype=dtype_of(type)))


def identity(dim: int, type: Any = dtype.f32) -> Tensor:
    """The identity matrix."""
    return Tensor(t.eye(dim, dtype=dtype_of(type)))


def arange(start: Any, end: Any = None, step: Any = 1, type: Any = None) -> Tensor:
    """Numbers from ``start`` to ``end`` (exclusive); after a shape, the second argument is the axis that is counted."""
    if isinstance(start, tuple):
        axis = 0 if end is None else end
        row = t.arange(start[axis], dtype=dtype_of(type or dtype.f32))
        aligned = row.reshape([start[axis] if k == axis else 1 for k in builtins.range(len(start))])
        return Tensor(t.broadcast_to(aligned, tuple(start)))
    return Tensor(t.arange(start, end, step, dtype=None if type is None else dtype_of(type)))


def iota(dims: Sequence[int], tileDims: Sequence[int] = (1,), type: Any = dtype.f32) -> Tensor:
    """The numbers of elements in a shape, row by row, and as often along each axis as ``tileDims`` says."""
    n = 1
    for size in dims:
        n *= size
    return tile(Tensor(t.arange(n, dtype=dtype_of(type)).reshape(tuple(dims))), tileDims)


# Shapes.


def reshape(tensor: Any, shape: Sequence[int]) -> Tensor:
    """The elements row by row in another shape."""
    return Tensor(t.reshape(_inner(tensor), tuple(shape)))


def transpose(tensor: Any, axes: Sequence[int] = ()) -> Tensor:
    """The axes in another order; without one, in the opposite order."""
    x = _inner(tensor)
    return Tensor(x.T if not tuple(axes) else t.permute_dims(x, tuple(axes)))


def tile(tensor: Any, shape: Sequence[int]) -> Tensor:
    """Repetitions side by side, as often along each axis as ``shape`` says; of fewer, along the first axes."""
    x, times = _inner(tensor), tuple(shape)
    times = (*times, *[1] * (x.ndim - len(times)))
    return Tensor(t.tile(x, times))


def concatenate(tensors: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors one behind the other along an axis."""
    return Tensor(t.concat([_inner(x) for x in tensors], axis=axis))


def nonzero(tensor: Any) -> Tensor:
    """The numbers of the elements that are not zero, row by row."""
    return Tensor(t.nonzero(_inner(tensor).reshape(-1))[0])


def pad(input: Any, padWidths: Sequence[Any], type: PadType = PadType.Constant) -> Tensor:
    """Elements before and after each axis: zeros, the nearest element, or those at the edge in the opposite order."""
    x, widths = _inner(input), [tuple(w) for w in padWidths]
    widths += [(0, 0)] * (x.ndim - len(widths))
    if type is PadType.Constant:
        return Tensor(t.pad(x, widths))
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        at = t.arange(-before, n + after)
        if type is PadType.Edge:
            at = t.clip(at, 0, n - 1)
        elif builtins.max(before, after) > n:
            raise ValueError(f"axis {axis} has {n} elements, of which {builtins.max(before, after)} cannot be mirrored")
        else:
            at = t.where(at < 0, -1 - at, t.where(at >= n, 2 * n - 1 - at, at))
        x = t.take(x, at, axis=axis)
    return Tensor(x)


def flip(tensor: Any, dim: int) -> Tensor:
    """An axis in the opposite order."""
    return Tensor(t.flip(_inner(tensor), axis=dim))


def roll(tensor: Any, shift: int, axis: int) -> Tensor:
    """The elements moved along an axis, around its end."""
    return Tensor(t.roll(_inner(tensor), shift, axis=axis))


def clip(tensor: Any, low: Any, high: Any) -> Tensor:
    """Elements below and above bounds replaced by these."""
    return Tensor(t.clip(_inner(tensor), _inner(low), _inner(high)))


# Conditions, and order.


def _truth(x: Any) -> Any:
    x = t.asarray(_inner(x))
    return x if x.dtype is ALL["u1"] else x != 0


def logicalNot(tensor: Any) -> Tensor:
    """Whether each element is zero."""
    return Tensor(t.logical_not(_truth(tensor)))


def logicalOr(lhs: Any, rhs: Any) -> Tensor:
    """Whether either element is not zero."""
    return Tensor(t.logical_or(_truth(lhs), _truth(rhs)))


def logicalAnd(lhs: Any, rhs: Any) -> Tensor:
    """Whether both elements are not zero."""
    return Tensor(t.logical_and(_truth(lhs), _truth(rhs)))


def mod(lhs: Any, rhs: Any) -> Tensor:
    """The remainder, with the sign of the dividend as in C++."""
    return Tensor(xp.fmod(_inner(lhs), _inner(rhs)))


def topk(input: Any, k: int, axis: int, sortMode: SortMode = SortMode.Descending) -> tuple[Tensor, Tensor]:
    """The largest elements along an axis (or the smallest, ascending), and their indices."""
    values, indices = sort(input, axis, sortMode), argsort(input, axis, sortMode)
    key = (slice(None),) * (axis % _inner(input).ndim) + (slice(0, k),)
    return Tensor(values._values[key]), Tensor(indices._values[key])


def sort(input: Any, axis: int, sortMode: SortMode = SortMode.Ascending) -> Tensor:
    """The elements along an axis in order."""
    return Tensor(t.sort(_inner(input), axis=axis, descending=sortMode is SortMode.Descending))


def argsort(input: Any, axis: int, sortMode: SortMode = SortMode.Ascending) -> Tensor:
    """Where the elements of `sort` were."""
    return Tensor(t.argsort(_inner(input), axis=axis, descending=sortMode is SortMode.Descending))


# Products and sums.


def matmul(
    lhs: Any, rhs: Any, lhsProp: MatrixProperty = MatrixProperty.None_, rhsProp: MatrixProperty = MatrixProperty.None_
) -> Tensor:
    """A product of matrices; that of two vectors has the shape ``[1]``, as in the document's library."""
    a, b = (
        x.mT if prop is MatrixProperty.Transpose and x.ndim > 1 else x
        for x, prop in ((_inner(lhs), lhsProp), (_inner(rhs), rhsProp))
    )
    out = a @ b
    return Tensor(out.reshape(1) if a.ndim == b.ndim == 1 else out)


def min(input: Any, axis: int, keepDims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest elements along an axis, and their indices."""
    return amin(input, axis, keepDims), argmin(input, axis, keepDims)  # type: ignore[name-defined]  # noqa: F821


def max(input: Any, axis: int, keepDims: bool = False) -> tuple[Tensor, Tensor]:
    """The largest elements along an axis, and their indices."""
    return amax(input, axis, keepDims), argmax(input, axis, keepDims)  # type: ignore[name-defined]  # noqa: F821


def argmax(input: Any, axis: int, keepDims: bool = False) -> Tensor:
    """The index of the largest element along an axis."""
    return Tensor(t.argmax(_inner(input), axis=axis, keepdims=keepDims))


def argmin(input: Any, axis: int, keepDims: bool = False) -> Tensor:
    """The index of the smallest element along an axis."""
    return Tensor(t.argmin(_inner(input), axis=axis, keepdims=keepDims))


def cumsum(input: Any, axis: int) -> Tensor:
    """The sum up to each element along an axis."""
    return Tensor(t.cumulative_sum(_inner(input), axis=axis))


def median(input: Any, axes: Any = (), keepDims: bool = False) -> Tensor:
    """The median along some axes; without axes, of all elements."""
    x, where = _inner(input), _axes(axes)
    if where is None or len(where) == 1:
        return Tensor(t.median(x, axis=None if where is None else where[0], keepdims=keepDims))
    # The axes side by side as one.
    own = [axis % x.ndim for axis in where]
    others = [axis for axis in builtins.range(x.ndim) if axis not in own]
    flat = t.permute_dims(x, (*others, *own)).reshape(*[x.shape[axis] for axis in others], -1)
    out = t.median(flat, axis=-1)
    shape = [1 if axis in own else n for axis, n in enumerate(x.shape)]
    return Tensor(out.reshape(shape) if keepDims else out)


def var(input: Any, axes: Any = (), bias: bool = False, keepDims: bool = False) -> Tensor:
    """The variance along some axes; with ``bias``, divided by the number of elements less one."""
    return Tensor(t.var(_inner(input), axis=_axes(axes), correction=1 if bias else 0, keepdims=keepDims))


def std(input: Any, axes: Any = (), keepDims: bool = False) -> Tensor:
    """The root of the variance along some axes."""
    return Tensor(t.std(_inner(input), axis=_axes(axes), keepdims=keepDims))


def norm(input: Any, axes: Any = (), p: float = 2, keepDims: bool = False) -> Tensor:
    """The sum of absolute values to the power ``p``, and its root, along some axes."""
    total = t.sum(t.abs(_inner(input)) ** p, axis=_axes(axes), keepdims=keepDims)
    return Tensor(t.sqrt(total) if p == 2 else total ** (1.0 / p))


def countNonzero(input: Any, axes: Any = (), keepDims: bool = False) -> Tensor:
    """How many elements are not zero, along some axes."""
    return Tensor(t.sum(_truth(input).astype("i32"), axis=_axes(axes), keepdims=keepDims))


def print(tensor: Any) -> None:
    """Prints the values."""
    builtins.print(_inner(tensor))


__all__ = [
    *_ELEMENTWISE,
    *_REDUCTIONS,
    "MatrixProperty", "PadType", "SortMode", "arange", "argmax", "argmin", "argsort", "backendType", "clip",
    "concatenate", "countNonzero", "cumsum", "dtype", "eval", "flip", "fromScalar", "full", "identity", "iota",
    "logicalAnd", "logicalNot", "logicalOr", "matmul", "max", "median", "min", "mod", "nonzero", "norm", "pad", "print",
    "rand", "randn", "reshape", "roll", "setSeed", "sort", "std", "supportsDataType", "sync", "tile", "topk",
    "transpose", "var",
]  # fmt: skip
