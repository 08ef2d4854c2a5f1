"""Cells in bulk: active ones as arrays, arrays as active ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from aerogel._dtypes import numpy_dtype
from aerogel.data.field import MatrixField


def rows(data: bytearray, n_axes: int, n: int | None = None) -> np.ndarray:
    """Indices that native code gave, as an array of shape (n, axes)."""
    found = np.frombuffer(data, np.int32)
    # Without axes there is one cell, and an array of no numbers does not tell.
    return found.reshape(len(found) // n_axes if n_axes else n or 0, n_axes)


def element_shape(field: Any) -> tuple[int, ...]:
    """The axes of an element: none for numbers."""
    if not isinstance(field, MatrixField):
        return ()
    return (field.n,) if field.ndim == 1 else (field.n, field.m)


def active(field: Any) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values of the active elements."""
    shape, element = field.shape, element_shape(field)
    indices, values = field._active_cells()
    values = np.frombuffer(values, numpy_dtype(field.dtype)).reshape(-1, *element)
    return rows(indices, len(shape), len(values)), values


def write(field: Any, coordinates: Any, values: Any) -> None:
    """Makes elements active and writes to them."""
    name = f"the field `{field._name}`" if field._name else "the field"
    at = indices(coordinates, len(field.shape), name)
    field._set_cells(at, _values(field, name, values, len(at)))


def indices(coordinates: Any, n_axes: int, name: str) -> np.ndarray:
    """Rows of indices as native code wants them."""
    at = np.asarray(coordinates)
    if at.size == 0:
        at = at.astype(np.int32)
        at = at.reshape(0, n_axes) if at.ndim < 2 else at
    if at.dtype.kind not in "iu":
        raise TypeError(f"indices are integers, not {at.dtype}")
    if n_axes == 1 and at.ndim == 1:
        at = at[:, None]
    if at.ndim != 2 or at.shape[1] != n_axes:
        raise ValueError(f"the indices for {name} have the shape (n, {n_axes}), not {tuple(np.shape(coordinates))}")
    if at.dtype != np.int32:
        limits = np.iinfo(np.int32)
        outside = ((at < limits.min) | (at > limits.max)).any(axis=1)
        if outside.any():
            from aerogel.errors import AerogelIndexError

            raise AerogelIndexError(f"index {at[outside.argmax()].tolist()} is out of range for {name}")
    return np.ascontiguousarray(at, np.int32)


def _values(field: Any, name: str, values: Any, n: int) -> np.ndarray:
    given, dtype = np.asarray(values), np.dtype(numpy_dtype(field.dtype))
    element = element_shape(field)
    if n == 0 and given.size == 0:
        return np.empty((0, *element), dtype)  # An empty list has no type to speak of.
    integers = given.dtype.kind in "iub" and dtype.kind in "iub"
    if not integers and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise TypeError(f"values of type {given.dtype} do not fit {name}, which holds {field.dtype}")
    if given.shape in ((), element):
        given = np.broadcast_to(given, (n, *element))
    if given.shape != (n, *element):
        raise ValueError(f"the values for {n} cells of {name} have the shape {(n, *element)}, not {given.shape}")
    out = np.ascontiguousarray(given, dtype)
    if integers and not (out == given).all():
        raise ValueError(f"a value does not fit {name}, which holds {field.dtype}")
    return out
