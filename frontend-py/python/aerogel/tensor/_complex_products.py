"""Products of complex tensors, and equations: said of their planes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from aerogel.tensor._complex import ComplexTensor, is_complex, joined
from aerogel.tensor._tensor import asarray

if TYPE_CHECKING:
    from collections.abc import Callable


def multilinear(function: Callable[..., Any], *tensors: Any) -> Any:
    """What a function gives that is linear in each of its tensors, some of them complex."""
    given = [asarray(t) for t in tensors]
    planes = [[(0, t.real), (1, t.imag)] if is_complex(t) else [(0, t)] for t in given]
    # Real and imaginary, by the power of the imaginary unit.
    parts: list[Any] = [None, None]
    for chosen in itertools.product(*planes):
        power = sum(p for p, _ in chosen)
        term = function(*(plane for _, plane in chosen))
        term = -term if power % 4 > 1 else term
        part = parts[power % 2]
        parts[power % 2] = term if part is None else part + term
    return joined(*parts)


def product(z: Any, axis: Any, keepdims: bool) -> Any:
    """The product along some axes, or of all: of halves, again and again."""
    from aerogel.tensor import _shapes, _types

    rank = z.ndim
    axes = (
        list(range(rank))
        if axis is None
        else [_types.axis(n, rank, "prod") for n in _types.whole_numbers(axis, "axis")]
    )
    shape = z.shape
    others = [k for k in range(rank) if k not in axes]
    count = 1
    for k in axes:
        count *= shape[k]
    z = z.permute(*others, *axes).reshape(*(shape[k] for k in others), count)
    if count == 0:
        z = _shapes.concat(
            [z, joined(z.real.sum(axis=-1, keepdims=True) + 1, z.imag.sum(axis=-1, keepdims=True))], axis=-1
        )
        count = 1
    while count > 1:
        half = count // 2
        both = z[..., :half] * z[..., half : 2 * half]
        z = both if count % 2 == 0 else _shapes.concat([both, z[..., 2 * half :]], axis=-1)
        count -= half
    kept = [1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes]
    return z.reshape(*kept) if kept else z[..., 0]


def _real(a: Any) -> Any:
    """The real matrix that does to both planes what a complex one does to numbers."""
    from aerogel.tensor import _shapes

    a = asarray(a)
    real, imag = (a.real, a.imag) if is_complex(a) else (a, a * 0)
    rows = [_shapes.concat(row, axis=-1) for row in ([real, -imag], [imag, real])]
    return _shapes.concat(rows, axis=-2)


def solve(a: Any, b: Any) -> ComplexTensor:
    """The solutions of an equation of complex matrices."""
    from aerogel.tensor import _shapes, linalg

    b = asarray(b)
    if b.ndim == 1:
        out = solve(a, b.reshape(-1, 1))
        return out[..., 0]
    real, imag = (b.real, b.imag) if is_complex(b) else (b, b * 0)
    both = linalg.solve(_real(a), _shapes.concat([real, imag], axis=-2))
    n = b.shape[-2]
    return joined(both[..., :n, :], both[..., n:, :])


def inv(a: Any) -> ComplexTensor:
    """The inverse of a complex matrix."""
    from aerogel.tensor import linalg

    both, n = linalg.inv(_real(a)), asarray(a).shape[-1]
    return joined(both[..., :n, :n], both[..., n:, :n])
