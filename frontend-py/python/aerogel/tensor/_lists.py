"""Lists of numbers, of which tensors are made."""

from __future__ import annotations

import itertools
from typing import Any

from aerogel._dtypes import numpy_dtype
from aerogel.tensor import _types

_MOST_AXES = 64


def whole(obj: Any, array: Any, is_exact: bool) -> Any:
    """The array of a list; of ``uint64`` if it has only large integers, which NumPy would convert to floats."""
    import numpy as np

    exact = np.asarray(obj, object)
    if not all(isinstance(x, int) for x in exact.flat):
        return array
    for x in exact.flat:
        if not -(2**63) <= x < 2**64:
            raise OverflowError(f"{x} does not fit an integer of 64 bits")
    if is_exact and exact.min() < 0 and exact.max() >= 2**63:
        raise OverflowError(f"no integer dtype holds both {exact.min()} and {exact.max()}: name a float dtype")
    return exact.astype(np.uint64) if exact.min() >= 0 else array


def kinds(obj: Any) -> set[type]:
    """The types of what lists in lists hold, as deep as an array may be."""
    found: set[type] = set()
    level = [obj]
    for _ in range(_MOST_AXES):
        kinds = set(map(type, level))
        lists = {k for k in kinds if issubclass(k, (list, tuple))}
        found |= kinds - lists
        if not lists:
            break
        level = list(itertools.chain.from_iterable(level if lists == kinds else (x for x in level if type(x) in lists)))
    return found


def type_of_list(array: Any) -> Any:
    """The type of a tensor made of a list; nothing if that of NumPy's array is it."""
    if array.dtype.kind == "f":
        return _types.default_float()
    if array.dtype.kind == "i" and array.size:
        import numpy as np

        info = np.iinfo(numpy_dtype(_types.default_int()))
        return None if array.min() < info.min or array.max() > info.max else _types.default_int()
    return _types.default_float() if array.size == 0 and array.dtype.kind == "f" else None


def array_of(obj: Any) -> Any:
    """NumPy's array of an object, as `np.asarray` makes it.

    Raises:
        ValueError: If the elements of a list have different shapes.
    """
    import numpy as np

    try:
        return np.asarray(obj)
    except ValueError as e:
        if "inhomogeneous" not in str(e):
            raise
        raise ValueError(
            "elements of a list have different shapes, as in `[[1, 2], [3]]`: pad them, or make a tensor of each"
        ) from None
