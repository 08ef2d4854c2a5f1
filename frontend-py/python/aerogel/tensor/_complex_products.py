"""Products of complex tensors: said of their planes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from aerogel.tensor._complex import is_complex, joined
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


def cumulative_product(z: Any, axis: int) -> Any:
    """The product of the numbers up to each along an axis: of the last 2, 4, 8 and so on."""
    from aerogel.tensor import _shapes

    count = z.shape[axis]
    if not isinstance(count, int):
        raise TypeError(
            "`cumulative_prod` of complex numbers: the size of the axis has to be known when the program is traced"
        )
    z = _shapes.moveaxis(z, axis, -1)
    step = 1
    while step < count:
        z = _shapes.concat([z[..., :step], z[..., step:] * z[..., :-step]], axis=-1)
        step *= 2
    return _shapes.moveaxis(z, -1, axis)


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
