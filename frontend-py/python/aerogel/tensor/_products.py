"""Products of matrices and vectors, and sums over shared axes."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import bf16, f16, u1
from aerogel.tensor import _complex, _complex_arithmetic, _types
from aerogel.tensor._reductions import sum
from aerogel.tensor._tensor import Tensor, asarray, operands
from aerogel.tensor._unknown import demand, differ


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """The product of matrices on the last two axes; an operand with one axis is a row or a column."""
    if _complex.is_complex(x1) or _complex.is_complex(x2):
        return _complex_arithmetic.matmul(x1, x2)  # type: ignore[return-value]
    a, b = _numbers("matmul", operands(x1, x2))
    return Tensor(a._native.matmul(b._native))


def _numbers(op: str, tensors: list[Tensor]) -> list[Tensor]:
    """Refuses booleans: their products could mean "any" or "how many"."""
    if any(t.dtype is u1 for t in tensors):
        raise TypeError(f"`{op}` takes numbers, not booleans: write `x.astype(ti.i32)`")
    return tensors


def dot(x1: Any, x2: Any, /) -> Tensor:
    """As in NumPy: the product of matrices, or of numbers; for more axes the sum of products over the last axis of the
    first and the last but one of the second."""
    if _complex.is_complex(x1) or _complex.is_complex(x2):
        from aerogel.tensor._complex_products import multilinear

        return multilinear(dot, x1, x2)
    a, b = operands(x1, x2)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul(a, b)
    return tensordot(a, b, axes=([a.ndim - 1], [max(b.ndim - 2, 0)]))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The sum of products along an axis of both."""
    is_complex = _complex.is_complex(x1) or _complex.is_complex(x2)
    a, b = (asarray(x1), asarray(x2)) if is_complex else operands(x1, x2)
    if axis >= 0 or axis < -min(a.ndim, b.ndim):
        raise IndexError(f"`vecdot` takes an axis from {-min(a.ndim, b.ndim)} to -1, not {axis}")
    if differ(a.shape[axis], b.shape[axis]):
        raise ValueError(
            f"`vecdot`: axis {axis} has {a.shape[axis]} elements in the first, {b.shape[axis]} in the second operand; "
            f"the shapes are {a.shape} and {b.shape}"
        )
    if is_complex:
        return sum(a.conj() * b, axis=axis)
    return Tensor((a * b)._native.reduce("sum", [axis], False))


def outer(x1: Any, x2: Any, /) -> Tensor:
    """The product of each element of one vector and each of another."""
    if _complex.is_complex(x1) or _complex.is_complex(x2):
        from aerogel.tensor._complex_products import multilinear

        return multilinear(outer, x1, x2)
    a, b = operands(x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"`outer` takes two vectors, the shapes are {a.shape} and {b.shape}")
    return a.unsqueeze(1) * b.unsqueeze(0)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over pairs of axes: the last of one and the first of the other, or those that are named."""
    if _complex.is_complex(x1) or _complex.is_complex(x2):
        from aerogel.tensor._complex_products import multilinear

        return multilinear(lambda a, b: tensordot(a, b, axes=axes), x1, x2)
    a, b = _numbers("tensordot", operands(x1, x2))
    if hasattr(axes, "__index__"):
        if axes < 0 or axes > min(a.ndim, b.ndim):
            raise ValueError(f"`tensordot` over {axes} axes of {a.ndim} and {b.ndim}")
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        if not isinstance(axes, (tuple, list)) or len(axes) != 2:
            raise TypeError(f"`tensordot` takes a number of axes, or those of both tensors in a pair, not {axes!r}")
        sides = [_types.whole_numbers(side, "tensordot") for side in axes]
        for side, t in zip(sides, (a, b)):
            if any(not -t.ndim <= n < t.ndim for n in side):
                raise IndexError(f"`tensordot` over axes {side} of a tensor with {t.ndim}")
        left, right = ([n % t.ndim for n in side] for side, t in zip(sides, (a, b)))
        if len(set(left)) != len(left) or len(set(right)) != len(right):
            raise ValueError(f"`tensordot`: an axis is named twice in {sides[0]} and {sides[1]}")
    if len(left) != len(right):
        raise ValueError(f"`tensordot`: {len(left)} axes for {len(right)}")
    labels_a = list(range(a.ndim))
    labels_b = list(range(a.ndim, a.ndim + b.ndim))
    for i, j in zip(left, right):
        if differ(a.shape[i], b.shape[j]):
            raise ValueError(
                f"`tensordot`: axis {i} of the first has {a.shape[i]} elements, axis {j} of the second {b.shape[j]}"
            )
        labels_b[j] = labels_a[i]
    kept = [n for k, n in enumerate(labels_a) if k not in left] + [n for k, n in enumerate(labels_b) if k not in right]
    return Tensor(a._native.einsum([b._native], [labels_a, labels_b], kept))


def einsum(equation: str, /, *tensors: Any) -> Tensor:
    """The sum of products over the letters that the result does not have.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> a = ti.tensor.arange(4).reshape(2, 2)
    >>> ti.tensor.einsum("ij,jk->ik", a, a).tolist()
    [[2, 3], [6, 11]]
    """
    if not isinstance(equation, str):
        raise TypeError(f'`einsum` takes a string such as "ij,jk->ik" first, not {type(equation).__name__}')
    if not tensors:
        raise ValueError(f"`einsum`: {equation!r} needs tensors, but none are passed")
    if any(_complex.is_complex(t) for t in tensors):
        from aerogel.tensor._complex_products import multilinear

        return multilinear(lambda *planes: einsum(equation, *planes), *tensors)
    made = _numbers("einsum", operands(*tensors))
    text = equation.replace(" ", "")
    inputs, arrow, result = text.partition("->")
    terms = inputs.split(",")
    _expect_letters(equation, [*terms, result])
    if len(terms) != len(made):
        raise ValueError(f"`einsum`: the equation names {len(terms)} operands, but {len(made)} are passed")
    if not arrow:
        letters = inputs.replace(",", "").replace("...", "")
        result = ("..." if "..." in text else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    spare = [t.ndim - len(term.replace("...", "")) if "..." in term else 0 for t, term in zip(made, terms)]
    if min(spare, default=0) < 0:
        raise ValueError(f"`einsum`: {equation!r} names more axes than an operand has")
    most = max(spare, default=0)
    numbers = {c: most + n for n, c in enumerate(sorted(set(text) - set(",.->")))}

    def labels(term: str, rows: int) -> list[int]:
        before, dots, behind = term.partition("...")
        row = list(range(most - rows, most)) if dots else []
        return [numbers[c] for c in before] + row + [numbers[c] for c in behind]

    named = [labels(term, n) for term, n in zip(terms, spare)]
    out = labels(result, most)
    if len(set(out)) != len(out):
        raise ValueError(f"`einsum`: an axis of the result is named twice in {equation!r}")
    return _contracted(made, named, out)


def _expect_letters(equation: str, terms: list[str]) -> None:
    for term in terms:
        if wrong := next((c for c in term.replace("...", "", 1) if not c.isalpha()), None):
            raise ValueError(
                f"`einsum`: {equation!r} has `{wrong}` where a letter or one `...` belongs: write a letter for each "
                'axis, a comma between operands, and one arrow before the result, as in "ij,jk->ik"'
            )


def _contracted(tensors: list[Tensor], named: list[list[int]], out: list[int]) -> Tensor:
    """The sum of products over the labels that the result does not have: of several tensors two at a time, in the order
    that NumPy finds, where that takes fewer steps than all at once."""
    tensors, named = list(tensors), list(named)
    for group in _path(tensors, named, out):
        rest = [k for k in range(len(tensors)) if k not in group]
        wanted = {n for k in rest for n in named[k]} | set(out)
        kept = [n for n in dict.fromkeys(n for k in group for n in named[k]) if n in wanted]
        kept = kept if rest else out
        first, *others = (tensors[k]._native for k in group)
        made = Tensor(first.einsum(others, [named[k] for k in group], kept))
        tensors, named = [*(tensors[k] for k in rest), made], [*(named[k] for k in rest), kept]
    return tensors[0]


#: The assumed size of an axis whose size is known only at run time.
_MANY = 64
#: NumPy has no more labels.
_MOST_LABELS = 52


def _path(tensors: list[Tensor], named: list[list[int]], out: list[int]) -> list[tuple[int, ...]]:
    """Which tensors to multiply, one group after the other; what a group becomes stands behind what is left."""
    at_once = [tuple(range(len(tensors)))]
    # What lies between is rounded: halves would lose what one sum in `f32` keeps.
    if (
        len(tensors) < 3
        or tensors[0].dtype in (f16, bf16)
        or max((n for term in named for n in term), default=0) >= _MOST_LABELS
    ):
        return at_once
    import numpy as np

    if any(t.ndim != len(term) for t, term in zip(tensors, named)):
        return at_once
    # A size that is known only at run time is that of another tensor, or the assumed one.
    known: dict[int, int] = {}
    for t, term in zip(tensors, named):
        known.update({label: n for label, n in zip(term, t.shape) if isinstance(n, int) and n != 1})
    shapes = [
        [n if isinstance(n, int) else known.get(label, _MANY) for label, n in zip(term, t.shape)]
        for t, term in zip(tensors, named)
    ]
    operands = [x for s, term in zip(shapes, named) for x in (np.broadcast_to(np.int8(0), s), term)]
    try:
        return [tuple(group) for group in np.einsum_path(*operands, out, optimize="greedy")[0][1:]]
    except ValueError:
        return at_once


def trace(x: Any, /, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum on a diagonal of the last two axes."""
    from aerogel.tensor._shapes import diagonal

    return sum(diagonal(asarray(x), offset=offset), axis=-1, dtype=dtype)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of 3, which is perpendicular to both."""
    from aerogel.tensor._shapes import broadcast_arrays, moveaxis, stack

    if _complex.is_complex(x1) or _complex.is_complex(x2):
        from aerogel.tensor._complex_products import multilinear

        return multilinear(lambda a, b: cross(a, b, axis=axis), x1, x2)
    a, b = broadcast_arrays(*operands(x1, x2))
    if not isinstance(a.shape[axis], int):
        demand(a, axis, 3)
    elif a.shape[axis] != 3:
        raise ValueError(f"`cross` takes vectors of 3, the shapes are {asarray(x1).shape} and {asarray(x2).shape}")
    a, b = (moveaxis(t, axis, 0) for t in (a, b))
    parts = [a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3] for k in range(3)]
    return stack(parts, axis=axis)


__all__ = [
    "cross", "dot", "einsum", "matmul", "outer", "tensordot", "trace", "vecdot",
]  # fmt: skip
