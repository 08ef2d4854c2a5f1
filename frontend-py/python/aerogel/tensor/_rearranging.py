"""Axes and diagonals in other places, as NumPy has it, and products of all pairs of elements."""

from __future__ import annotations

from typing import Any

from aerogel.tensor import _types
from aerogel.tensor._complex import by_planes, is_complex
from aerogel.tensor._creation import eye
from aerogel.tensor._products import dot, matmul, tensordot
from aerogel.tensor._reductions import sum
from aerogel.tensor._searching import where
from aerogel.tensor._shapes import diagonal as _diagonal
from aerogel.tensor._shapes import expand_dims, flip, pad, permute_dims, reshape, squeeze
from aerogel.tensor._tensor import Tensor, asarray, operands


def swapaxes(x: Any, axis1: int, axis2: int, /) -> Tensor:
    """The tensor with two axes exchanged."""
    x = asarray(x)
    first, second = (_types.axis(a, x.ndim, "swapaxes") for a in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return permute_dims(x, order)


def rollaxis(x: Any, axis: int, /, start: int = 0) -> Tensor:
    """The tensor with an axis moved before another one."""
    x = asarray(x)
    axis = _types.axis(axis, x.ndim, "rollaxis")
    if not -x.ndim <= start <= x.ndim:
        raise IndexError(f"`rollaxis`: `start` is {start}: the tensor has {x.ndim} axes")
    start = start + x.ndim if start < 0 else start
    order = [k for k in range(x.ndim) if k != axis]
    order.insert(start - (axis < start), axis)
    return permute_dims(x, order)


def ravel(x: Any, /) -> Tensor:
    """The elements row by row along one axis."""
    return reshape(asarray(x), (-1,))


def fliplr(x: Any, /) -> Tensor:
    """The elements in the opposite order along the second axis."""
    x = asarray(x)
    if x.ndim < 2:
        raise ValueError(f"`fliplr` takes at least two axes, the shape is {x.shape}")
    return flip(x, axis=1)


def flipud(x: Any, /) -> Tensor:
    """The elements in the opposite order along the first axis."""
    x = asarray(x)
    if x.ndim < 1:
        raise ValueError("`flipud` takes at least one axis")
    return flip(x, axis=0)


def rot90(x: Any, /, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """The tensor turned ``k`` times by a right angle, from the first of two axes towards the second.

    Raises:
        ValueError: If the axes are not two different ones.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    x = asarray(x)
    named = _types.whole_numbers(axes, "rot90")
    if len(named) != 2:
        raise ValueError(f"`rot90` takes two axes, not {axes}")
    first, second = (_types.axis(a, x.ndim, "rot90") for a in named)
    if first == second:
        raise ValueError(f"`rot90` takes two different axes, not {axes}")
    (k,) = _types.whole_numbers([k], "rot90")
    if k % 4 == 0:
        return x
    if k % 4 == 2:
        return flip(x, axis=[first, second])
    if k % 4 == 1:
        return swapaxes(flip(x, axis=second), first, second)
    return flip(swapaxes(x, first, second), axis=second)


@by_planes
def _placed(x: Tensor, k: int) -> Tensor:
    n = x.shape[0] + abs(k)
    on = eye(n, n, k=k, dtype="u1")
    values = pad(x, ((max(k, 0), max(-k, 0)),))
    return where(on, values.unsqueeze(0), asarray(0).astype(x.dtype))


def diag(x: Any, /, k: int = 0) -> Tensor:
    """A matrix with a vector on its diagonal, ``k`` above the main one; of a matrix its diagonal.

    Raises:
        ValueError: For a tensor without axes, or with more than two.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.diag([1, 2], k=1).tolist(), xp.diag([[1, 2], [3, 4]]).tolist()
    ([[0, 1, 0], [0, 0, 2], [0, 0, 0]], [1, 4])
    """
    x = asarray(x)
    (k,) = _types.whole_numbers([k], "diag")
    if x.ndim == 2:
        return _diagonal(x, offset=k)
    if x.ndim != 1:
        raise ValueError(f"`diag` takes one axis or two, the shape is {x.shape}")
    return _placed(x, k)


def diagonal(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements whose indices along two axes are equal, as the last axis."""
    return _diagonal(x, offset=offset, axis1=axis1, axis2=axis2)


def trace(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """The sum on a diagonal of two axes, the first two without others."""
    return sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def diagflat(x: Any, /, k: int = 0) -> Tensor:
    """A matrix with the elements, row by row, on its diagonal."""
    return diag(ravel(x), k)


def kron(x1: Any, x2: Any, /) -> Any:
    """The Kronecker product: each element of the first tensor times the whole second one, as blocks.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.kron([1, 10], [1, 2]).tolist()
    [1, 2, 10, 20]
    """
    a, b = _both(x1, x2)
    rank = max(a.ndim, b.ndim)
    a, b = (expand_dims(t, list(range(rank - t.ndim))) if t.ndim < rank else t for t in (a, b))
    shape = tuple(n * m for n, m in zip(a.shape, b.shape))
    product = expand_dims(a, [2 * k + 1 for k in range(rank)]) * expand_dims(b, [2 * k for k in range(rank)])
    return reshape(product, shape)


def _both(x1: Any, x2: Any) -> list[Any]:
    return [asarray(x1), asarray(x2)] if is_complex(x1) or is_complex(x2) else operands(x1, x2)


def outer(x1: Any, x2: Any, /) -> Any:
    """The product of each element of one tensor and each of another, both taken row by row."""
    a, b = (ravel(t) for t in _both(x1, x2))
    return expand_dims(a, 1) * expand_dims(b, 0)


def inner(x1: Any, x2: Any, /) -> Any:
    """The sum of products over the last axis of both tensors; without axes the product."""
    a, b = _both(x1, x2)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


def vdot(x1: Any, x2: Any, /) -> Any:
    """The sum of products of all elements, those of the first tensor complex conjugated.

    Raises:
        ValueError: If the tensors have different numbers of elements.
    """
    a, b = (ravel(t) for t in _both(x1, x2))
    return dot(a.conj() if is_complex(a) else a, b)


def matvec(x1: Any, x2: Any, /) -> Any:
    """The product of matrices on the last two axes and vectors on the last one."""
    a, b = _both(x1, x2)
    if a.ndim < 2 or b.ndim < 1:
        raise ValueError(f"`matvec` takes matrices and vectors: the shapes are {a.shape} and {b.shape}")
    return squeeze(matmul(a, expand_dims(b, -1)), axis=-1)


def vecmat(x1: Any, x2: Any, /) -> Any:
    """The product of vectors on the last axis, complex conjugated, and matrices on the last two axes."""
    a, b = _both(x1, x2)
    if a.ndim < 1 or b.ndim < 2:
        raise ValueError(f"`vecmat` takes vectors and matrices: the shapes are {a.shape} and {b.shape}")
    return squeeze(matmul(expand_dims(a.conj() if is_complex(a) else a, -2), b), axis=-2)
