"""Shapes of `aerogel.tensor.frost`, and tensors of one value."""

# ruff: noqa: A001
from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel._dtypes import f32
from aerogel.tensor import _shapes
from aerogel.tensor._tensor import Tensor, asarray, tracing
from aerogel.tensor.programs import indices
from aerogel.tensor.programs._blocks import trace_of


def unsqueeze(x: Any, axis: int = -1) -> Tensor:
    """With a new axis of size 1."""
    return _shapes.unsqueeze(x, axis)


def squeeze(x: Any, axis: int = -1) -> Tensor:
    """Without an axis of size 1."""
    return _shapes.squeeze(x, axis)


def reshape(x: Any, shape: Any) -> Tensor:
    """The elements row by row in another shape."""
    return _shapes.reshape(x, shape)


def transpose(x: Any, axis1: int = -1, axis2: int = -2) -> Tensor:
    """Two axes exchanged."""
    x = asarray(x)
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return x.permute(*order)


def reverse(x: Any, axis: int = -1) -> Tensor:
    """The elements in the opposite order along an axis."""
    return _shapes.flip(x, axis=axis)


def _filled(shape: Any, value: Any, dtype: Any) -> Tensor:
    kind = f32 if dtype is None else dtype
    shape = tracing.program.extents(shape) if tracing.program is not None else list(shape)
    return Tensor(_native.NativeTensor.full(shape, kind._aerogel_dtype, value, tracing.trace))


def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """Zeros."""
    return _filled(shape, 0, dtype)


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Ones."""
    return _filled(shape, 1, dtype)


def copy(x: Any) -> Tensor:
    """A tensor with the same numbers."""
    return asarray(x).copy()


get_copy = copy


def zeros_like(x: Any) -> Tensor:
    """Zeros of the shape and the type of a tensor."""
    x = asarray(x)
    return zeros(x.shape, x.dtype)


def ones_like(x: Any) -> Tensor:
    """Ones of the shape and the type of a tensor."""
    x = asarray(x)
    return ones(x.shape, x.dtype)


def eye(n: Any) -> Tensor:
    """The unit matrix."""
    i, j = indices([n, n])
    return (i == j).astype(f32)


def eye_like(x: Any) -> Tensor:
    """The unit matrix of the shape of a matrix."""
    i, j = indices(asarray(x).shape)
    return (i == j).astype(f32)


def split_dim(x: Any, split_size: int, axis: int = -1) -> Tensor:
    """An axis as rows of ``split_size`` elements, the last of which ends with zeros."""
    x = asarray(x)
    axis %= x.ndim
    shape = list(x.shape)
    rows = (shape[axis] + (split_size - 1)) // split_size
    at = list(indices([*shape[:axis], rows, split_size, *shape[axis + 1 :]]))
    row, column = at[axis : axis + 2]
    at[axis : axis + 2] = [row * split_size + column]
    return trace_of("split_dim").gather(x.outside("zero"), tuple(at)).outside(x._outside)


def merge_dim(x: Any, axis: int = -1, target_size: Any = None) -> Tensor:
    """An axis and the one before it as one, or its first ``target_size`` elements: what `split_dim` parts."""
    x = asarray(x)
    axis %= x.ndim
    if axis == 0:
        raise ValueError("`merge_dim`: there is no axis before axis 0")
    shape = list(x.shape)
    n = shape[axis]
    at = list(
        indices([*shape[: axis - 1], shape[axis - 1] * n if target_size is None else target_size, *shape[axis + 1 :]])
    )
    both = at[axis - 1]
    at[axis - 1 : axis] = [both // n, both % n]
    return trace_of("merge_dim").gather(x, tuple(at))


def repeat(x: Any, repeats: int, axis: int = -1) -> Tensor:
    """The tensor so many times one after the other along an axis."""
    x = asarray(x)
    times = [1] * x.ndim
    times[axis] = repeats
    return _shapes.tile(x, times)


__all__ = [
    "copy", "eye", "eye_like", "get_copy", "merge_dim", "ones", "ones_like", "repeat", "reshape", "reverse",
    "split_dim", "squeeze", "transpose", "unsqueeze", "zeros", "zeros_like",
]  # fmt: skip
