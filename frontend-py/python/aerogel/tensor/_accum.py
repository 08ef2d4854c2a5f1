"""``accum``: sums over named axes, in rows of batch, input and output axes.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> x, w = ti.tensor.arange(6).reshape(2, 3), ti.tensor.ones((4, 3), ti.i32)
>>> ti.tensor.accum("b|i; i->o => b|o", x, w).tolist()
[[3, 3, 3, 3], [12, 12, 12, 12]]
"""

from __future__ import annotations

import operator
import re
from typing import Any

from aerogel.tensor import _elementwise
from aerogel.tensor._tensor import Tensor, operands, tracing

#: What puts a result to what is there.
_PUT = {
    "add": _elementwise.add, "mul": _elementwise.multiply, "min": _elementwise.minimum, "max": _elementwise.maximum,
    "and": _elementwise.bitwise_and, "or": _elementwise.bitwise_or, "xor": _elementwise.bitwise_xor,
}  # fmt: skip


def accum(
    spec: str,
    /,
    *tensors: Any,
    op: str = "mul",
    how: str = "add",
    into: Any = None,
    sizes: dict[str, Any] | None = None,
    padding: str = "valid",
) -> Tensor:
    """Reduces ``op`` of the tensors' elements by ``how``, over all axes that the result does not have.

    Args:
        spec: The axes of each tensor, between semicolons, and behind ``=>`` those of the result, each in three rows:
            ``batch|input->output``, of which the first two may be left out. An axis is a label, a number (one
            element), or a sum (``2*o+k``: a window; ``2*o=+k`` has zeros around, ``2*o<+k`` ends where the axis does);
            ``i^j`` is an axis that concatenates two segments, where a number is a size; ``..`` is all other axes of
            a row, broadcast as in NumPy; ``_`` is an axis without a name. Labels are letters, or words between commas.
            Axes lie in the order batch, output, input, so that ``i->o`` is a matrix with a row for each output. A
            label that occurs twice in a tensor selects its diagonal.
        tensors: The tensors.
        op: The operation on elements of several tensors: ``mul``, ``add``, ``sub``, ``div``, ``minimum``,
            ``maximum`` ...
        how: ``add``, ``mul``, ``min``, ``max``, ``and``, ``or`` or ``xor``.
        into: A tensor of the result's shape that is combined with the result by ``how``.
        sizes: Sizes of labels that no tensor determines.
        padding: ``valid``: windows lie inside; ``same``: there are as many as every ``stride``-th element, with zeros
            on both sides of the axis, of an odd number one more behind it.
    """
    if not isinstance(spec, str):
        raise TypeError(f'`accum` takes a string such as "ij => i" first, not {type(spec).__name__}')
    if not tensors:
        raise ValueError(f"`accum`: {spec!r} names tensors, but none are passed")
    first, *others = operands(*tensors)
    target = None if into is None else operands(into)[0]
    call = {
        "op": op,
        "how": how,
        "padding": padding,
        "extents": [(label, _size(n)) for label, n in (sizes or {}).items()],
        "into": None if target is None else target._native.shape,
    }
    out = Tensor(first._native.accum(spec, [t._native for t in others], call))
    if target is None:
        return out
    if tracing.program is None and target.shape != out.shape:
        raise ValueError(f"`accum`: the result has the shape {out.shape}, `into` {target.shape}")
    return _PUT[how](target, out)


def accum_gradients(spec: str, /, *, op: str = "mul") -> list[str]:
    """The gradients of a sum of products, in the notation of ``accum``: for each tensor, a sum itself.

    >>> import aerogel as ti
    >>> for text in ti.tensor.accum_gradients("b|i; i->o => b|o"):
    ...     print(text)
    b|o; i->o => b|i
    b|i; b|o => i->o

    In each, the gradient of the result stands in the place of the tensor. An axis that only that tensor has needs a
    size: the gradient of ``ij => i`` is ``i => ij``, with ``sizes={"j": n}``.

    Args:
        spec: The notation of ``accum``.
        op: ``mul``, or ``add`` and ``sub``, whose gradients do not depend on the other tensors; for ``sub``, that of
            the second is to be negated.

    Raises:
        ValueError: If the notation has no ``=>``, or has an axis without a name, a number, segments, a window with a
            step, or zeros around an axis; or if the gradient is no sum of products.
    """
    if not isinstance(spec, str) or spec.count("=>") != 1:
        raise ValueError(f'`accum_gradients` takes a string such as "i; i => ", not {spec!r}')
    given, result = (part.strip() for part in spec.split("=>"))
    tensors = [part.strip() for part in given.split(";")]
    if any(part == "_" for tensor in tensors for part in _letters(tensor)):
        raise ValueError(f"`accum_gradients`: `_` in {spec!r} is an axis without a name: give it one")
    if (sign := next((sign for sign in ("^", "=+", "<+") if sign in spec), None)) is not None:
        raise ValueError(f"`accum_gradients`: `{sign}` in {spec!r} has no inverse in the notation: use `ti.grad`")
    if (sign := re.search(r"(?<![\w.])\d+(?!\s*\*)|\d+\s*\*\s*\w+\s*\+", spec)) is not None:
        raise ValueError(
            f"`accum_gradients`: the size of `{sign[0]}` in {spec!r} does not follow from the others: use `ti.grad`"
        )
    if op not in ("mul", "add", "sub"):
        raise ValueError(f"`accum_gradients`: the gradient of `{op}` is not a sum of products: use `ti.grad`")
    if op != "mul":
        return [f"{result} => {own}".rstrip() for own in tensors]
    others = [[*tensors[:k], result, *tensors[k + 1 :]] for k in range(len(tensors))]
    return [f"{'; '.join(terms)} => {own}".rstrip() for terms, own in zip(others, tensors)]


def _letters(tensor: str) -> list[str]:
    """What may be an axis without a name: words between commas, or single letters."""
    return tensor.replace("|", ",").replace("->", ",").split(",") if "," in tensor else list(tensor)


def _size(n: Any) -> Any:
    if tracing.program is not None:
        return tracing.program.extents([n])[0]
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"`accum`: a size in `sizes` is {n}; sizes are not negative")
    return n
