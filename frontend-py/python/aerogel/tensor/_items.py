"""``x[key]`` and ``x[key] = value``: which values these take; keys are read by ``aerogel._native``."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import u1
from aerogel.tensor import _complex, _types
from aerogel.tensor._tensor import Tensor, asarray, constant, is_number, operands, tracing


def indices(key: Any) -> tuple[Any, tuple[int, int] | None]:
    """A list, an array or a tensor from outside of the program as what a tensor is made by.

    The last result is the smallest and the largest index in it, if they are known.
    """
    if isinstance(key, list):
        import numpy as np

        from aerogel.tensor._tensor import _without_tensors

        key = np.asarray(_without_tensors(key))
        # An empty list is of indices.
        key = key if key.size else key.astype(np.int32)
    out = asarray(key)
    if isinstance(out, _complex.ComplexTensor):
        raise IndexError(f"an index is an integer, not `{out.dtype}`")
    are_known = hasattr(key, "__array_interface__") and key.dtype.kind in "iu" and key.size
    return out._native, (int(key.min()), int(key.max())) if are_known else None


def store(x: Tensor, key: Any, value: Any, how: str = "set") -> None:
    """Gives a tensor other numbers in a part of it; whoever else has the old numbers keeps them.

    With ``add``, ``mul``, ``min`` or ``max`` for ``how``, values are accumulated into the elements. Where an index is
    repeated, all of its values are.
    """
    dtype = x.dtype
    if is_number(value):
        _types.kept(value, dtype, "elements")
        values = constant(value, dtype)
    else:
        values = asarray(value)
        if isinstance(values, _complex.ComplexTensor):
            raise TypeError(f"elements of {dtype} cannot hold complex numbers: take `x.real` or `abs(x)`")
        (values,) = operands(values)
        if values.dtype is not dtype:
            _types.kept(values.dtype, dtype, "elements")
            values = values.astype(dtype)
    x._native = x._native.with_item(key, values._native, x._outside, how)


def _is_array(key: Any) -> bool:
    return isinstance(key, (Tensor, list)) or (hasattr(key, "__array__") and getattr(key, "ndim", 0) >= 0)


def _is_apart(k: Any) -> bool:
    return k is None or k is Ellipsis or isinstance(k, slice)


def _are_together(key: Any) -> bool:
    """Whether computed indices and numbers stand side by side in a key, as NumPy has it: even ``...`` for no axis parts
    them."""
    keys = key if isinstance(key, tuple) else (key,)
    at = [n for n, k in enumerate(keys) if not _is_apart(k)]
    return not at or not any(_is_apart(k) for k in keys[at[0] : at[-1]])


def _is_truth(k: Any) -> bool:
    """Whether a key is a boolean: Python's, NumPy's, or a tensor without axes."""
    if isinstance(k, bool):
        return True
    if isinstance(k, Tensor):
        return k.dtype is u1 and k.ndim == 0
    return getattr(k, "ndim", None) == 0 and getattr(getattr(k, "dtype", None), "kind", "") == "b"


def has_truths(key: Any) -> bool:
    """Whether a key contains a boolean, which selects all or nothing."""
    if isinstance(key, tuple):
        return any(map(_is_truth, key))
    return _is_truth(key)


def takes_by_truth(key: Any, value: Any) -> bool:
    """Whether a store takes all or nothing; a tensor alone is a mask where one number is stored."""
    if isinstance(key, (int, slice)) and not isinstance(key, bool):
        return False
    if isinstance(key, Tensor) and (is_number(value) or not getattr(value, "ndim", 1)):
        return False
    return has_truths(key)


def _without_truths(key: Any) -> tuple[list[Any], tuple[Any, ...], int | None]:
    """The booleans of a key, and the key of the elements they select.

    The last result is the axis that the selection adds: ``None`` if the booleans share that of computed indices.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    truths = [k for k in keys if _is_truth(k)]
    together = _are_together(key)
    if any(_is_array(k) and not _is_truth(k) for k in keys):
        rest = [k for k in keys if not _is_truth(k)]
        if not together and _are_together(tuple(rest)):
            raise IndexError("a boolean must be next to the computed indices: `x[:, True, i]`, not `x[True, :, i]`")
        return truths, tuple(rest), None
    first = next(n for n, k in enumerate(keys) if not _is_apart(k)) if together else 0
    before = [k for k in keys[:first] if not _is_truth(k)]
    return truths, (*before, None, *(k for k in keys[first:] if not _is_truth(k))), len(before)


def by_truth(x: Tensor, key: Any) -> Tensor:
    """``x[True]`` has an axis of one more, ``x[False]`` has one of none."""
    truths, rest, at = _without_truths(key)
    out = x[rest]
    if all(bool(asarray(k)) for k in truths):
        return out
    if at is None:
        raise IndexError("`False` selects nothing, and the indices next to it select something")
    return out[(slice(None),) * _axis_of(x, rest, at) + (slice(0, 0),)]


def _axis_of(x: Tensor, rest: tuple[Any, ...], at: int) -> int:
    """Which axis of the result an item of a key is."""
    n_dots = x.ndim - sum(k is not None and k is not Ellipsis for k in rest)
    return sum(n_dots if k is Ellipsis else isinstance(k, slice) or k is None for k in rest[:at])


def set_by_truth(x: Tensor, key: Any, value: Any) -> None:
    """``x[True, ...] = value`` stores as without the truth value, ``x[False, ...] = value`` nothing."""
    truths, rest, at = _without_truths(key)
    unknown = [k for k in truths if isinstance(k, Tensor)]
    is_true = all(bool(k) for k in truths if not isinstance(k, Tensor))
    if unknown and is_true:
        from aerogel.tensor._searching import where

        condition = unknown[0]
        for k in unknown[1:]:
            condition = condition & k
        if not is_number(value) and _is_empty(asarray(value)) and not _is_empty(x[rest]):
            # The values that a false condition takes: none.
            if tracing.program is None and bool(condition):
                _expect_fitting(value, x[rest].shape)
            return
        x[rest] = where(condition, value, x[rest])
    elif is_true:
        x[rest] = value
    elif not is_number(value) and at is not None:
        shape = list(x[rest].shape)
        shape[_axis_of(x, rest, at)] = 0
        _expect_fitting(value, tuple(shape))


def _is_empty(x: Any) -> bool:
    return any(type(n) is int and n == 0 for n in x.shape)


def _expect_fitting(value: Any, shape: tuple[Any, ...]) -> None:
    """Refuses values that nothing could be stored of."""
    given = asarray(value).shape
    fits = all(n == 1 or n == m for n, m in zip(reversed(given), reversed(shape)) if {type(n), type(m)} == {int})
    if not fits or any(n != 1 for n in given[: max(len(given) - len(shape), 0)]):
        raise ValueError(f"values of shape {given} for a slice of shape {shape}")
