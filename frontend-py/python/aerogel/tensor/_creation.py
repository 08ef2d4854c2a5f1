"""Tensors of nothing: numbers that are the same everywhere, that count, or that are drawn."""

from __future__ import annotations

import math
from typing import Any

from aerogel import _native
from aerogel._dtypes import dtype_of
from aerogel.tensor import _complex, _types
from aerogel.tensor._tensor import Tensor, asarray, tracing

#: Indices are of 32 bits, addresses of 47.
_MOST_ALONG, _MOST = (1 << 31) - 1, 1 << 47


def _shape(shape: Any, called: str, argument: str = "shape") -> list[Any]:
    """The checked shape, for the function that is called."""
    _types.counts(shape, called, argument)
    if tracing.program is not None:
        return tracing.program.extents(shape)
    out = _types.whole_numbers(shape, "shape")
    _types.counts(out, called, argument)
    for n in out:
        if n > _MOST_ALONG:
            raise ValueError(f"an axis has at most {_MOST_ALONG} elements, not {n}: indices are `i32`")
    if math.prod(out) > _MOST:
        raise MemoryError(f"a tensor of shape {tuple(out)} is too large for any memory")
    return out


def _device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"there is no device {device!r}; tensors are on 'cpu'")


def _type(dtype: Any, called: str) -> Any:
    """A dtype, the default float if None; a size in its place is an error that shows the right call."""
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        raise TypeError(
            f"`{called}` takes the shape as one tuple, as in `{called}((2, 3))`, and then a dtype, not {dtype}"
        )
    return _types.default_float() if dtype is None else dtype


def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor filled with one number.

    Args:
        shape: The size of each axis.
        fill_value: The value of each element.
        dtype: Its type; without it that of ``fill_value``.
        device: ``"cpu"``.
    """
    return _full("full", shape, fill_value, dtype, device)


def _full(called: str, shape: Any, fill_value: Any, dtype: Any, device: Any) -> Tensor:
    _device(device)
    wanted = _complex.complex_type(dtype) if dtype is not None else None
    if wanted is not None or _complex.is_complex(fill_value):
        value = complex(fill_value)
        part = wanted.part if wanted is not None else _types.default_float()
        real, imag = (_full(called, shape, of, part, device) for of in (value.real, value.imag))
        return _complex.joined(real, imag)  # type: ignore[return-value]
    if isinstance(fill_value, Tensor):
        out = fill_value if dtype is None else fill_value.astype(dtype)
        return Tensor(out._native.broadcast_to(_shape(shape, called)))
    if not hasattr(fill_value, "__float__"):
        raise TypeError(f"`full` takes a number, not {fill_value!r}")
    kind = dtype_of(dtype) if dtype is not None else _types.of_number(fill_value, None)
    value = _types.checked(fill_value, kind)
    return Tensor(_native.NativeTensor.full(_shape(shape, called), kind._aerogel_dtype, value, tracing.trace))


def zeros(shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros."""
    return _full("zeros", shape, 0, _type(dtype, "zeros"), device)


def ones(shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones."""
    return _full("ones", shape, 1, _type(dtype, "ones"), device)


def empty(shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of zeros: tensors always have values."""
    return _full("empty", shape, 0, _type(dtype, "empty"), device)


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """One number everywhere, in the shape and the type of another tensor; at the cells that it is at."""
    x = asarray(x)
    dtype = x.dtype if dtype is None else dtype
    if tracing.program is not None and tracing.program.native.is_sparse(x._native):
        from aerogel.tensor._searching import where

        number = full((), fill_value, dtype=dtype, device=device)
        return where(Tensor(x._native.binary("eq", x._native)), number, number)
    return full(x.shape, fill_value, dtype=dtype, device=device)


def zeros_like(x: Any, /, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in the shape and the type of another tensor."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Any, /, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones in the shape and the type of another tensor."""
    return full_like(x, 1, dtype=dtype, device=device)


empty_like = zeros_like


def iota(shape: Any, axis: int = 0, dtype: Any = None) -> Tensor:
    """The index along an axis, at every point of a shape."""
    kind = dtype_of(dtype) if dtype is not None else _types.default_int()
    return Tensor(_native.NativeTensor.iota(_shape(shape, "iota"), axis, kind._aerogel_dtype, tracing.trace))


def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from ``start`` (0 if only one is given) to before ``stop`` by ``step``."""
    _device(device)
    if tracing.program is not None and any(isinstance(v, Tensor) for v in (start, stop, step)):
        return _counted(0, start, step, dtype) if stop is None else _counted(start, stop, step, dtype)
    start, stop, step = (v.item() if isinstance(v, Tensor) else v for v in (start, stop, step))
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("`arange` takes a step other than 0")
    is_whole = all(isinstance(v, int) for v in (start, stop, step))
    n = max(math.ceil((stop - start) / step), 0)
    if dtype is not None:
        kind = dtype_of(dtype)
    elif is_whole:
        # The type that holds the first and the last.
        ends = [_types.of_number(v, None) for v in (start, start + max(n - 1, 0) * step)]
        kind = ends[0] if ends[0]._aerogel_dtype == "i64" else ends[1]
    else:
        kind = _types.default_float()
    if kind.is_float:
        # In double precision, so that no error grows along the way.
        k = iota((n,), 0, dtype="f64")
        return (k * float(step) + float(start)).astype(kind)
    k = iota((n,), 0, dtype=kind if kind._aerogel_dtype not in ("u1",) else "i32")
    return (k * step + start).astype(kind)


def _counted(start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    """Integers whose bounds are known only at run time."""
    from aerogel.tensor._elementwise import maximum

    given = [v for v in (start, stop, step) if isinstance(v, float)]
    start, stop, step = (int(v) if isinstance(v, float) and v.is_integer() else v for v in (start, stop, step))
    if isinstance(step, Tensor) or not isinstance(step, int) or step == 0:
        raise ValueError("`arange`: in a program the step is an integer other than zero")
    if any(isinstance(v, float) or isinstance(v, Tensor) and v.dtype.is_float for v in (start, stop)):
        raise TypeError("`arange`: in a program the bounds are integers")
    n = (stop - start + (step - 1 if step > 0 else step + 1)) // step
    usual = _types.default_float() if given else _types.default_int()
    kind = dtype_of(dtype) if dtype is not None else usual
    return (iota((maximum(n, 0),), 0, dtype="i32" if kind.is_float else kind) * step + start).astype(kind)


def _double(value: Any) -> Any:
    """A number in double precision; a tensor where only the run knows it, or a gradient goes through it."""
    if isinstance(value, Tensor) and (tracing.program is not None or value.requires_grad):
        return value.astype("f64")
    return float(value)


def linspace(
    start: Any, stop: Any, /, num: Any, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """So many numbers equally far apart from ``start`` to ``stop``, with it if ``endpoint``.

    In a program all three may be values known only at run time; ``num`` must be computed from shapes.

    Raises:
        ValueError: If ``num`` is below zero; in a program, when it runs.
    """
    from aerogel.tensor._elementwise import floor, maximum
    from aerogel.tensor._searching import where

    _device(device)
    start, stop = _double(start), _double(stop)
    is_known = not (isinstance(num, Tensor) and tracing.program is not None)
    if is_known:
        if not hasattr(num, "__index__"):
            raise TypeError(f"`linspace`: `num` takes an integer, not {num!r}")
        num = num.__index__()
        _types.counts(num, "linspace", "num")
    kind = dtype_of(dtype) if dtype is not None else _types.default_float()
    n = num - 1 if endpoint else num
    k = iota((num,), 0, dtype="f64")
    is_whole = is_known and all(isinstance(v, (int, float)) and float(v).is_integer() for v in (start, stop))
    if is_whole and not kind.is_float and n > 0 and abs(stop - start) < 2**62 // n:
        # Exactly: a rounding would be seen where the numbers are rounded down.
        out = iota((num,), 0, dtype="i64") * int(stop - start) // n + int(start)
    elif is_known:
        out = k * ((stop - start) / n if n > 0 else 0.0) + start
    else:
        out = k * ((stop - start) / maximum(n, 1).astype("f64")) + start
    if endpoint and not (is_known and num < 2):
        # The last of several: a single one is the first.
        out = where((k == n) & (k > 0), stop, out) if out.dtype.is_float else out
    if not kind.is_float and out.dtype.is_float:
        out = floor(out)
    return out.astype(kind)


def eye(n_rows: Any, n_cols: Any = None, /, k: Any = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on a diagonal, zeros elsewhere."""
    _device(device)
    _types.counts(n_rows, "eye", "n_rows")
    _types.counts(n_cols, "eye", "n_cols")
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    if not hasattr(k, "__index__"):
        raise TypeError(f"`eye`: `k` takes an integer, not {k!r}")
    if all(isinstance(n, int) for n in (*shape, k)):
        k = max(min(k, shape[1]), -shape[0])
    from aerogel.tensor._elementwise import equal

    return equal(iota(shape, 0) + k, iota(shape, 1)).astype(_type(dtype, "eye"))


def identity(n: Any, dtype: Any = None) -> Tensor:
    """Ones on the diagonal of ``n`` rows and columns, and zeros elsewhere."""
    return eye(n, dtype=dtype)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Each tensor along an axis of its own, broadcast along the others."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"the indexing is 'xy' or 'ij', not {indexing!r}")
    from aerogel.tensor._shapes import broadcast_to

    made = [asarray(a) for a in arrays]
    order = list(range(len(made)))
    if indexing == "xy" and len(made) > 1:
        order[:2] = 1, 0
    shape: list[Any] = [0] * len(made)
    for a, at in zip(made, order):
        shape[at] = a.size
    out = []
    for a, at in zip(made, order):
        own: list[Any] = [1] * len(made)
        own[at] = a.size
        out.append(broadcast_to(a.reshape(own), shape))
    return tuple(out)


def _triangle(x: Any, k: Any, lower: bool, name: str) -> Tensor:
    x = asarray(x)
    if not isinstance(k, Tensor) or tracing.program is None:
        return Tensor(x._native.triangle(k, lower))
    from aerogel.tensor._searching import where

    if x.ndim < 2 or k.ndim or k.dtype.is_float:
        raise ValueError(f"`{name}` takes a tensor of at least two axes, and an integer for the diagonal")
    shape = x.shape[-2:]
    row, column = iota(shape, 0), iota(shape, 1)
    return where(column - row <= k if lower else column - row >= k, x, zeros((), dtype=x.dtype))


@_complex.by_planes
def tril(x: Any, /, k: Any = 0) -> Tensor:
    """The elements on a diagonal of the last two axes and below it, zero above."""
    return _triangle(x, k, True, "tril")


@_complex.by_planes
def triu(x: Any, /, k: Any = 0) -> Tensor:
    """The elements on a diagonal of the last two axes and above it, zero below."""
    return _triangle(x, k, False, "triu")


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """The numbers of another package's array, copied; those of a tensor are shared until one of both is stored to."""
    import numpy as np

    _device(device)
    if isinstance(x, (Tensor, _complex.ComplexTensor)):
        return asarray(x, copy=True)
    if copy is False:
        raise BufferError("a tensor has memory of its own; a ti.ndarray shares it")
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"`from_dlpack` takes an array that supports DLPack, not {type(x).__name__}: use `asarray`")
    is_known = isinstance(x, np.ndarray) or _native.is_torch_tensor(x)
    return asarray(x if is_known else np.from_dlpack(x), copy=True)


__all__ = [
    "arange", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "identity", "iota", "linspace",
    "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip
