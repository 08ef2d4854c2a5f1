"""One number of many: sums, extremes, means, and where they are."""

from __future__ import annotations

import math
from typing import Any

from aerogel._dtypes import ALL, bf16, dtype_of, f16, f32, f64, u1
from aerogel.tensor import _types
from aerogel.tensor._cells import are_at, refuse_order
from aerogel.tensor._complex import by_planes, complex_type, is_complex
from aerogel.tensor._tensor import Tensor, asarray
from aerogel.tensor._unknown import at_least


def _axes(axis: Any) -> list[int] | None:
    if axis is None:
        return None
    return _types.whole_numbers(axis, "axis")


def _summed(dtype: Any, given: Any) -> Any:
    """What a sum of integers is made in: no less than the default."""
    if given is not None:
        return dtype_of(given)
    kind = _types.kind(dtype)
    if kind == "f":
        return dtype
    default = _types.default_int()
    if kind == "u":
        default = ALL["u" + default._aerogel_dtype[1:]]
    return default if kind == "b" or _types._width(dtype) < _types._width(default) else dtype


def _terms(x: Any, dtype: Any) -> Any:
    """The numbers of a sum or a product, in the type in which it is made: one of complex numbers, too."""
    x = asarray(x)
    if is_complex(x) or complex_type(dtype) is not None:
        return x if dtype is None else x.astype(dtype)
    return x.astype(_summed(x.dtype, dtype))


def sum(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """The sum along some axes, or of all. Integers narrower than the default one are summed in it."""
    return _sum(_terms(x, dtype), _axes(axis), keepdims)


@by_planes
def _sum(x: Any, axes: list[int] | None, keepdims: bool) -> Tensor:
    return Tensor(x._native.reduce("sum", axes, keepdims))


def prod(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product along some axes, or of all, in the type that ``sum`` has."""
    x = _terms(x, dtype)
    if is_complex(x):
        from aerogel.tensor._complex_products import product

        return product(x, axis, keepdims)
    return Tensor(x._native.reduce("prod", _axes(axis), keepdims))


def _floats(x: Any, name: str) -> Tensor:
    x = asarray(x)
    if is_complex(x):
        raise TypeError(f"`{name}` takes real numbers, not `{x.dtype}`")
    return x if x.dtype.is_float else x.astype(_types.default_float())


def _counted(x: Any, name: str) -> tuple[Tensor, Any]:
    """Numbers in a type in which sums of integers lose nothing, and the type of their mean."""
    x = asarray(x)
    if is_complex(x) or x.dtype.is_float:
        return _floats(x, name), x.dtype
    return x.astype(f64), _types.default_float()


def _some(x: Any, axis: Any, name: str) -> Tensor:
    """A tensor that has numbers along some axes, which a program may know only when it runs."""
    x = asarray(x)
    named = range(x.ndim) if axis is None else [a for a in _axes(axis) or () if -x.ndim <= a < x.ndim]
    for n in (x.shape[a] for a in named):
        if not isinstance(n, int):
            at_least(n, 1, f"`{name}` of {{}} elements")
    return x


def min(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:  # noqa: A001
    """The minimum along some axes, or of all elements; NaN if any is NaN."""
    return Tensor(_some(x, axis, "min")._native.reduce("min", _axes(axis), keepdims))


def max(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:  # noqa: A001
    """The maximum along some axes, or of all elements; NaN if any is NaN."""
    return Tensor(_some(x, axis, "max")._native.reduce("max", _axes(axis), keepdims))


@by_planes
def mean(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The mean along some axes, or of all; of integers the one in double precision, as the default float."""
    x, dtype = _counted(x, "mean")
    return Tensor(x._native.reduce("mean", _axes(axis), keepdims)).astype(dtype)


def _variance(x: Any, axis: Any, correction: Any, keepdims: bool, name: str) -> Tensor:
    x, dtype = _counted(x, name)
    axes = _types.axes(_axes(axis), x.ndim, name)
    root = name == "std"
    if not are_at(x):
        return Tensor(x._native.variance(axes, float(correction), root, keepdims)).astype(dtype)
    from aerogel.tensor._creation import ones_like
    from aerogel.tensor._elementwise import maximum, sqrt

    x = x.astype(f32) if dtype in (f16, bf16) else x
    off = x - mean(x, axes, keepdims=True)
    count = sum(ones_like(x), axes, keepdims=keepdims)
    out = sum(off * off, axes, keepdims=keepdims) / maximum(count - float(correction), 0.0)
    return (sqrt(out) if root else out).astype(dtype)


def var(x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance along some axes, or of all, divided by the count less ``correction``."""
    return _variance(x, axis, correction, keepdims, "var")


def std(x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The root of the variance."""
    return _variance(x, axis, correction, keepdims, "std")


def norm(x: Any, /, axis: Any = None, *, ord: float = 2, keepdims: bool = False) -> Tensor:  # noqa: A002
    """The ``ord``-norm of vectors along some axes, or of all numbers."""
    x = asarray(x)
    x = abs(x) if is_complex(x) else x
    return Tensor(_floats(x, "norm")._native.norm(float(ord), _axes(axis), keepdims))


def _below_largest(x: Any, axis: Any, name: str) -> tuple[Tensor, list[int] | None, Any]:
    """Numbers less the largest along some axes, whose exponentials do not overflow; the axes, and the type."""
    x = _some(_floats(x, name), axis, name)
    axes, dtype = _types.axes(_axes(axis), x.ndim, name), x.dtype
    if 0 in [n for k, n in enumerate(x.shape) if (axes is None or k in axes) and isinstance(n, int)]:
        raise ValueError(f"`{name}` of 0 elements: the shape is {x._native.shape_text()}")
    # Half-precision intermediate results would be rounded.
    x = x.astype(f32) if dtype in (f16, bf16) else x
    # Results do not depend on what is taken off.
    return x - max(x, axes, keepdims=True).detach(), axes, dtype


def softmax(x: Any, /, axis: Any = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis (or several; ``None`` for all), without overflow.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.tensor.softmax([[0.0, 0.0], [1000.0, 0.0]])
    tensor([[0.5, 0.5],
            [1. , 0. ]], dtype=f32)
    """
    from aerogel.tensor._elementwise import exp

    x, axes, dtype = _below_largest(x, axis, "softmax")
    parts = exp(x)
    return (parts / sum(parts, axes, keepdims=True)).astype(dtype)


def log_softmax(x: Any, /, axis: Any = -1) -> Tensor:
    """The logarithm of ``softmax``, accurate where ``softmax`` is small.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.tensor.log_softmax([1000.0, 0.0])
    tensor([    0., -1000.], dtype=f32)
    """
    from aerogel.tensor._elementwise import exp, log
    from aerogel.tensor._searching import where

    x, axes, dtype = _below_largest(x, axis, "log_softmax")
    # Under `fast_math`, the largest and the logarithm would else be one sum, which rounds to the digits of the largest.
    # Not a minimum, which halves the gradient of the largest.
    x = where(x > 0, 0.0, x)
    return (x - log(sum(exp(x), axes, keepdims=True))).astype(dtype)


def _truths(x: Any) -> Tensor:
    """Numbers that are zero where those of a tensor are: complex ones by being other than zero."""
    x = asarray(x)
    return x != 0 if is_complex(x) else x


def any(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:  # noqa: A001
    """Whether any element is nonzero, along some axes or of all."""
    return Tensor(_truths(x)._native.reduce("any", _axes(axis), keepdims))


def all(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:  # noqa: A001
    """Whether all elements are nonzero, along some axes or of all."""
    return Tensor(_truths(x)._native.reduce("all", _axes(axis), keepdims))


def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first minimum along an axis, or its row-major index among all elements."""
    x = _some(x, axis, "argmin")
    refuse_order(x, axis, "argmin")
    return Tensor(x._native.arg_reduce("argmin", axis, keepdims))


def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first maximum along an axis, or its row-major index among all elements."""
    x = _some(x, axis, "argmax")
    refuse_order(x, axis, "argmax")
    return Tensor(x._native.arg_reduce("argmax", axis, keepdims))


def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements."""
    return Tensor(_truths(x)._native.reduce("count_nonzero", _axes(axis), keepdims))


def median(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The median: the middle element of the sorted ones, or the mean of the two middle ones."""
    x = _floats(x, "median")
    rank = x.ndim
    axis = None if axis is None else _types.axis(axis, rank, "median")
    refuse_order(x, axis, "median")
    if axis is None:
        x, axis = x.reshape(-1), 0
    n = x.shape[axis]
    if not isinstance(n, int):
        at_least(n, 1, "`median` of {} elements")
    elif n == 0:
        raise ValueError(f"`median` of no elements: the shape is {x.shape}")
    # Of numbers whose count is known, those behind the middle need no order.
    values = Tensor(x._native.sort(axis, False, n // 2 + 1 if isinstance(n, int) else None)[0])
    pick = [slice(None)] * x.ndim
    pick[axis] = slice((n - 1) // 2, n // 2 + 1)
    out = mean(values[tuple(pick)], axis=axis, keepdims=keepdims)
    from aerogel.tensor._elementwise import isnan
    from aerogel.tensor._searching import where

    out = where(any(isnan(x), axis=axis, keepdims=keepdims), math.nan, out)
    return out.reshape((1,) * rank) if keepdims and out.ndim != rank else out


def cumulative_sum(x: Any, /, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The cumulative sum along an axis; ``include_initial`` prepends a zero."""
    return _cumulative("add", x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Any, /, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The cumulative product along an axis; ``include_initial`` prepends a one."""
    return _cumulative("mul", x, axis, dtype, include_initial, 1)


def _cumulative(name: str, x: Any, axis: int | None, dtype: Any, include_initial: bool, initial: int) -> Tensor:
    x = _terms(x, dtype)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"name an axis: the shape is {x.shape}")
        axis = 0
    axis = _types.axis(axis, x.ndim, "cumulative_sum" if name == "add" else "cumulative_prod")
    if name == "mul" and is_complex(x):
        from aerogel.tensor._complex_products import cumulative_product

        out = cumulative_product(x, axis)
    else:
        out = _scan(x, name, axis)
    if include_initial:
        from aerogel.tensor import _shapes

        widths = [(0, 0)] * x.ndim
        widths[axis] = (1, 0)
        out = _shapes.pad(out, widths, value=initial)
    return out


@by_planes
def _scan(x: Any, name: str, axis: int) -> Tensor:
    return Tensor(x._native.scan(name, axis, False))


def cummax(x: Any, /, axis: int = 0) -> Tensor:
    """The cumulative maximum along an axis."""
    return Tensor(asarray(x)._native.scan("max", axis, False))


def cummin(x: Any, /, axis: int = 0) -> Tensor:
    """The cumulative minimum along an axis."""
    return Tensor(asarray(x)._native.scan("min", axis, False))


def prefix_sum(x: Any, /, axis: int = -1) -> Tensor:
    """The inclusive prefix sum along an axis, in the tensor's dtype; booleans are counted."""
    x = asarray(x)
    x = x.astype(_types.default_int()) if x.dtype is u1 else x
    return Tensor(x._native.scan("add", _types.axis(axis, x.ndim, "prefix_sum"), False))


def cumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The cumulative sum along an axis, or of all elements in row-major order."""
    return asarray(x).cumsum(axis, dtype)


def cumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The cumulative product along an axis, or of all elements in row-major order."""
    return asarray(x).cumprod(axis, dtype)


def diff(x: Any, /, n: int = 1, axis: int = -1, *, prepend: Any = None, append: Any = None) -> Tensor:
    """The differences of neighbours along an axis, ``n`` times."""
    (n,) = _types.whole_numbers([n], "diff")
    if n < 0:
        raise ValueError(f"`diff`: `n` must be at least 0, not {n}")
    from aerogel.tensor import _shapes

    x = asarray(x)
    axis = _types.axis(axis, x.ndim, "diff")
    parts = [p for p in (prepend, x, append) if p is not None]
    x = _shapes.concat(parts, axis=axis) if len(parts) > 1 else asarray(x)
    # What has no elements left stays so.
    extent = x.shape[axis]
    for _ in range(extent if isinstance(extent, int) and n > extent else n):
        after, before = [slice(None)] * x.ndim, [slice(None)] * x.ndim
        after[axis], before[axis] = slice(1, None), slice(None, -1)
        x = x[tuple(after)] - x[tuple(before)] if x.dtype is not u1 else x[tuple(after)] != x[tuple(before)]
    return x


__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "cummax", "cummin", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "diff", "log_softmax", "max", "mean", "median", "min", "norm", "prefix_sum", "prod", "softmax",
    "std", "sum", "var",
]  # fmt: skip
