"""Linear algebra of the last two axes; leading axes are a batch. Decompositions are a library's, on the host.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> a = ti.tensor.asarray([[4.0, 1.0], [1.0, 3.0]])
>>> round((a @ ti.tensor.linalg.inv(a))[0, 0].item(), 5)
1.0

Matrices are of ``f32`` or ``f64``, or complex; integers become the default float, ``f16`` and ``bf16`` become ``f32``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from aerogel._dtypes import f32, f64, i32
from aerogel.tensor import _arguments, _types
from aerogel.tensor._complex import ComplexTensor, is_complex
from aerogel.tensor._products import cross, dot, einsum, matmul, outer, tensordot, trace, vecdot
from aerogel.tensor._reductions import norm as _norm
from aerogel.tensor._shapes import diagonal as _diagonal
from aerogel.tensor._shapes import matrix_transpose
from aerogel.tensor._tensor import Tensor, asarray
from aerogel.tensor._unknown import all_known, differ, least


def _matrix(x: Any) -> Any:
    x = asarray(x)
    if is_complex(x) or x.dtype in (f32, f64):
        return x
    return x.astype(f32 if x.dtype.is_float else _types.default_float())


def _call(name: str, *tensors: Any) -> list[Any]:
    given = [_matrix(t) for t in tensors]
    planes = given
    if any(is_complex(t) for t in given):
        planes = [plane for t in given for plane in (t.real, t.imag)]
    if any(t.dtype is not planes[0].dtype for t in planes):
        planes = [t.astype(f64) for t in planes]
    first, *rest = (t._native for t in planes)
    made = ([Tensor(t) for t in result] for result in first.algebra(name, rest))
    return [ComplexTensor(*result) if len(result) == 2 else result[0] for result in made]


def _adjoint(x: Any) -> Any:
    return x.mT.conj()


class QR(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """Orthonormal columns, singular values from the largest, and orthonormal rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class SlogDet(NamedTuple):
    """The sign of a determinant (of absolute value 1 or 0), and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class LstSq(NamedTuple):
    """A solution, the sums of the squares that it leaves, how many singular values count, and these from the
    largest."""

    x: Tensor
    residuals: Tensor
    rank: Tensor
    s: Tensor


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Eig(NamedTuple):
    """Complex eigenvalues, and eigenvectors as columns."""

    eigenvalues: ComplexTensor
    eigenvectors: ComplexTensor


class LU(NamedTuple):
    """A lower triangle with ones on its diagonal, an upper one, and which row of the matrix each row of
    their product is."""

    L: Tensor
    U: Tensor
    perm: Tensor


def qr(x: Any, /, *, mode: str = "reduced") -> QR:
    """The QR decomposition: orthonormal columns times an upper triangle; all columns if ``mode="complete"``."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"`qr`: the mode is 'reduced' or 'complete', not {mode!r}")
    return QR(*_call("qr" if mode == "reduced" else "qr_complete", x))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVD:
    """The singular value decomposition ``U @ diag(S) @ Vh``."""
    return SVD(*_call("svd_full" if full_matrices else "svd", x))


def svdvals(x: Any, /) -> Tensor:
    """The singular values in descending order."""
    return _call("svdvals", x)[0]


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """The triangle ``L`` with ``x = L @ L.mT.conj()``, or ``U`` with ``x = U.mT.conj() @ U``, of a symmetric or a
    Hermitian matrix that is positive definite; the same triangle of it counts."""
    x = _matrix(x)
    return _adjoint(_call("cholesky", _adjoint(x))[0]) if upper else _call("cholesky", x)[0]


def lu(x: Any, /) -> LU:
    """The LU decomposition with row pivoting: ``x[perm] = L @ U``."""
    lower, upper, perm = _call("lu", x)
    return LU(lower, upper, perm.astype(i32))


def solve(x1: Any, x2: Any, /) -> Tensor:
    """The solutions of ``x1 @ x = x2``; an ``x2`` with one axis is one right side."""
    a, b = asarray(x1), asarray(x2)
    if b.ndim and a.ndim > 1 and differ(a.shape[-2], b.shape[-2 if b.ndim > 1 else -1]):
        raise ValueError(f"`solve`: matrices of shape {a.shape} for right sides of shape {b.shape}")
    if b.ndim == 1:
        return _call("solve", a, b.unsqueeze(-1))[0].squeeze(-1)
    return _call("solve", a, b)[0]


def inv(x: Any, /) -> Tensor:
    """The inverse of a matrix."""
    return _call("inv", x)[0]


def det(x: Any, /) -> Tensor:
    """The determinant of a matrix."""
    return _call("det", x)[0]


def slogdet(x: Any, /) -> SlogDet:
    """The sign of a determinant (of absolute value 1 or 0), and the logarithm of its absolute value."""
    return SlogDet(*_call("slogdet", x))


def eigh(x: Any, /) -> Eigh:
    """The real eigenvalues of a symmetric or Hermitian matrix in rising order, and eigenvectors as columns; its lower
    triangle counts."""
    return Eigh(*_call("eigh", x))


def eigvalsh(x: Any, /) -> Tensor:
    """The real eigenvalues of a symmetric or Hermitian matrix in rising order."""
    return _call("eigvalsh", x)[0]


def eig(x: Any, /) -> Eig:
    """The eigenvalues of a matrix, and eigenvectors of length 1 as columns, of complex numbers."""
    return Eig(*_call("eig", x))


def eigvals(x: Any, /) -> ComplexTensor:
    """The eigenvalues of a matrix, of complex numbers."""
    return _call("eigvals", x)[0]


def _least(x: Tensor, rtol: Any, largest: Tensor) -> Tensor:
    if rtol is None:
        eps = 2.0**-23 if largest.dtype is f32 else 2.0**-52
        n, m = x.shape[-2:]
        most = max(n, m) if all_known((n, m)) else (n + m - least(n, m)).astype(largest.dtype)
        rtol = most * eps
    return largest * rtol


def _counting(x: Tensor, s: Tensor, rtol: Any) -> Tensor:
    """Which singular values of matrices count: those of more than ``rtol`` of the largest."""
    rtol = asarray(rtol).unsqueeze(-1) if rtol is not None and asarray(rtol).ndim else rtol
    return s > _least(x, rtol, s.max(axis=-1, keepdims=True))


def _inverted(s: Tensor, counts: Tensor) -> Tensor:
    from aerogel.tensor._searching import where

    return where(counts, 1.0 / where(counts, s, 1.0), 0.0)  # type: ignore[no-any-return]


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse: singular values up to ``rtol`` times the largest count as zero."""
    x = _matrix(x)
    if 0 in [n for n in x.shape[-2:] if isinstance(n, int)]:
        return x.mT
    u, s, vh = svd(x, full_matrices=False)
    inverse = _inverted(s, _counting(x, s, rtol))
    return (_adjoint(vh) * inverse.unsqueeze(-2)) @ _adjoint(u)


def lstsq(x1: Any, x2: Any, /, *, rtol: Any = None) -> LstSq:
    """The ``x`` for which the squares of ``x1 @ x - x2`` sum to the least, and of several the smallest.

    Args:
        x1: Matrices, with a row for each equation.
        x2: Right sides: one, as a vector, or the columns of matrices.
        rtol: Singular values up to this fraction of the largest count as zero.

    Returns:
        ``x``, ``residuals`` (the sum of squares for each right side, whatever the rank), ``rank``, ``s``.
    """
    from aerogel.tensor._elementwise import abs
    from aerogel.tensor._reductions import count_nonzero

    a, b = _matrix(x1), _matrix(x2)
    if a.ndim < 2 or b.ndim < 1:
        raise ValueError(f"`lstsq` takes matrices and right sides: the shapes are {a.shape} and {b.shape}")
    if differ(a.shape[-2], b.shape[-2 if b.ndim > 1 else -1]):
        raise ValueError(f"`lstsq`: matrices of shape {a.shape} for right sides of shape {b.shape}")
    if b.ndim == 1:
        x, residuals, rank, s = lstsq(a, b.unsqueeze(-1), rtol=rtol)
        return LstSq(x.squeeze(-1), residuals.squeeze(-1), rank, s)
    u, s, vh = svd(a, full_matrices=False)
    # Of no singular values none counts.
    counts = _counting(a, s, rtol) if 0 not in [n for n in s.shape[-1:] if isinstance(n, int)] else s > 0
    inverse = _inverted(s, counts)
    x = _adjoint(vh) @ (inverse.unsqueeze(-1) * (_adjoint(u) @ b))
    return LstSq(x, (abs(a @ x - b) ** 2).sum(axis=-2), count_nonzero(counts, axis=-1), s)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are more than ``rtol`` of the largest."""
    from aerogel.tensor._reductions import count_nonzero

    x = _matrix(x)
    s = svdvals(x)
    if isinstance(s.shape[-1], int) and s.shape[-1] == 0:
        return s.sum(axis=-1).astype(i32)
    return count_nonzero(_counting(x, s, rtol), axis=-1)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:  # noqa: A002
    """The ``ord``-norm of vectors."""
    return _norm(x, axis=axis, ord=ord, keepdims=keepdims)


def norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A002
    """As ``numpy.linalg.norm``: the 2-norm of all numbers, or a norm of vectors along an axis, or of matrices: those
    that two axes hold, or a tensor with two axes if ``ord`` is given."""
    from aerogel.tensor._shapes import moveaxis

    x = asarray(x)
    pair = axis if isinstance(axis, (tuple, list)) else None
    if ord is None and axis is None or pair is None and (axis is not None or x.ndim == 1):
        return _norm(x, axis=axis, ord=2 if ord is None else ord, keepdims=keepdims)
    if pair is None and x.ndim != 2 or pair is not None and len(pair) > 2:
        raise ValueError(f"`norm` takes vectors or matrices: name one or two axes of the shape {x.shape}")
    if pair is not None and len(pair) == 1:
        return _norm(x, axis=pair[0], ord=2 if ord is None else ord, keepdims=keepdims)
    pair = (0, 1) if pair is None else tuple(_types.axis(n, x.ndim, "norm") for n in pair)
    if pair[0] == pair[1]:
        raise ValueError(f"`norm`: an axis is named twice in {axis}")
    out = matrix_norm(moveaxis(x, pair, (-2, -1)), ord="fro" if ord is None else ord, keepdims=keepdims)
    return moveaxis(out, (-2, -1), pair) if keepdims else out


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:  # noqa: A002
    """A norm of matrices: ``fro``, ``nuc``, 2 and -2 (of singular values), 1, -1 and infinite ones (of sums)."""
    x = asarray(x)
    if x.ndim < 2:
        raise ValueError(f"`matrix_norm` takes matrices: the shape is {x.shape}")
    if ord == "fro":
        return _norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        s = svdvals(x)
        out = s.sum(axis=-1) if ord == "nuc" else s.max(axis=-1) if ord > 0 else s.min(axis=-1)
        return out.unsqueeze(-1).unsqueeze(-1) if keepdims else out
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"`matrix_norm` takes 'fro', 'nuc', 2, -2, 1, -1, inf or -inf, not {ord!r}")
    first, second = (-2, -1) if abs(ord) == 1 else (-1, -2)
    sums = _norm(x, axis=first, ord=1, keepdims=True)
    out = sums.max(axis=second, keepdims=True) if ord > 0 else sums.min(axis=second, keepdims=True)
    return out if keepdims else out.squeeze((-2, -1))


def cond(x: Any, /, *, p: Any = 2) -> Tensor:
    """How much a matrix enlarges errors: its norm times that of its inverse, infinite for a matrix of zeros.

    Raises:
        ValueError: The matrix has no elements, or some that are not finite, or is singular and ``p`` is not 2 or -2.
    """
    from aerogel.tensor._searching import where

    if p in (2, -2):
        s = svdvals(x)
        large, small = s.max(axis=-1), s.min(axis=-1)
        return where(large == 0, math.inf, large / small if p == 2 else small / large)
    return matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)


def matrix_power(x: Any, n: int, /) -> Tensor:
    """A matrix by itself, ``n`` times; its inverse for a negative ``n``."""
    from aerogel.tensor._creation import eye
    from aerogel.tensor._shapes import broadcast_to

    x = asarray(x)
    if x.ndim < 2 or differ(x.shape[-1], x.shape[-2]):
        raise ValueError(f"`matrix_power` takes square matrices: the shape is {x.shape}")
    if n < 0:
        x, n = inv(x), -n
    out: Any = None
    while n:
        if n & 1:
            out = x.copy() if out is None else out @ x
        n >>= 1
        x = x @ x if n else x
    return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape) if out is None else out


def multi_dot(arrays: Any, /) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications for three of them."""
    given = [asarray(a) for a in arrays]
    if len(given) < 2:
        raise ValueError("`multi_dot` takes at least two matrices")
    while len(given) > 1:
        # The pair whose product removes the largest size.
        inner = [given[k].shape[-1] for k in range(len(given) - 1)]
        k = inner.index(max(inner)) if all_known(inner) else 0
        given[k : k + 2] = [given[k] @ given[k + 1]]
    return given[0]


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The elements on a diagonal of the last two axes."""
    return _diagonal(x, offset=offset)


__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "dot", "eig", "eigh", "eigvals", "eigvalsh", "einsum", "inv",
    "lstsq", "lu", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm",
    "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

_arguments.guard(globals())
