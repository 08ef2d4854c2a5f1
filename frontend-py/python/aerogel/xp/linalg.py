"""Linear algebra of the Array API standard."""

from __future__ import annotations

from typing import Any

from aerogel.tensor._products import cross, matmul, outer, tensordot, trace, vecdot
from aerogel.tensor._reductions import norm
from aerogel.tensor._shapes import diagonal as _diagonal
from aerogel.tensor._shapes import matrix_transpose
from aerogel.tensor._tensor import Tensor, asarray


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:  # noqa: A002
    """The ``ord``-norm of vectors."""
    return norm(x, axis=axis, ord=ord, keepdims=keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:  # noqa: A002
    """A norm of matrices: ``fro``, or 1, -1 and infinite ones (of sums of columns or rows)."""
    x = asarray(x)
    if ord == "fro":
        return norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord not in (1, -1, float("inf"), float("-inf")):
        raise ValueError(f"`matrix_norm` takes 'fro', 1, -1, inf or -inf, not {ord!r}")
    first, second = (-2, -1) if abs(ord) == 1 else (-1, -2)
    sums = norm(x, axis=first, ord=1, keepdims=True)
    out = sums.max(axis=second, keepdims=True) if ord > 0 else sums.min(axis=second, keepdims=True)
    return out if keepdims else out.squeeze((-2, -1))


def matrix_power(x: Any, n: int, /) -> Tensor:
    """A matrix by itself, ``n`` times."""
    from aerogel.tensor._creation import eye
    from aerogel.tensor._shapes import broadcast_to

    x = asarray(x)
    if n < 0:
        raise ValueError("`matrix_power` takes a power of 0 or more")
    out = broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    while n:
        if n & 1:
            out = out @ x
        x, n = x @ x, n >> 1
    return out


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The elements on a diagonal of the last two axes."""
    return _diagonal(x, offset=offset)


__all__ = [
    "cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "matrix_transpose", "outer", "tensordot", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip
