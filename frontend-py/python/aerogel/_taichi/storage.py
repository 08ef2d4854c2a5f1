"""``tensor`` and ``Tensor`` of Quadrants: a field or an array, by a name of its own."""

from __future__ import annotations

import enum
from typing import Any

import aerogel as ti


class Backend(enum.IntEnum):
    """What a tensor of Quadrants is: a field, whose kernels know its shape, or an array, whose kernels run with any."""

    FIELD = 0
    NDARRAY = 1


class _Kind(type):
    """Classes of fields and arrays by the number of axes of an element."""

    _n_axes: int | None

    def __instancecheck__(cls, value: Any) -> bool:
        if not isinstance(value, (ti.ScalarField, ti.MatrixField, ti.Ndarray)):
            return False
        return cls._n_axes is None or len(_element_shape(value)) == cls._n_axes


def _element_shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, ti.MatrixField):
        return (value.n,) if value.ndim == 1 else (value.n, value.m)
    return tuple(getattr(value, "element_shape", ()))


class Tensor(metaclass=_Kind):
    """A field or an array: an annotation of kernels' parameters, and a class for ``isinstance``."""

    _aerogel_annotation = "template"
    _n_axes = None


class VectorTensor(Tensor):
    """One of vectors."""

    _n_axes = 1


class MatrixTensor(Tensor):
    """One of matrices."""

    _n_axes = 2


def allocate(make: Any, dtype: Any, shape: Any, backend: Any, layout: Any, **kwargs: Any) -> Any:
    """A field or an array of numbers, vectors or matrices.

    Args:
        make: Has ``field`` and ``ndarray``.
        dtype: The type of the numbers; for vectors and matrices their sizes before it.
        shape: The shape.
        backend: A ``Backend``.
        layout: The axes of the shape in the order in which memory has them, the outermost first. Arrays are in the
            order of their shape, whatever it says.
        kwargs: ``needs_grad``, ``needs_dual``, ``offset``.

    Raises:
        ValueError: If there is no such back end, or the layout is no permutation of the axes.
    """
    try:
        backend = Backend(backend)
    except ValueError:
        raise ValueError(f"`backend` is ti.Backend.FIELD or ti.Backend.NDARRAY, not {backend!r}") from None
    axes = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    if layout is not None and sorted(layout) != list(range(len(axes))):
        raise ValueError(f"`layout` {layout!r} is no permutation of the {len(axes)} axes")
    if backend is Backend.NDARRAY:
        return make.ndarray(*dtype, axes, **kwargs)
    if layout is not None and list(layout) != sorted(layout):
        kwargs["order"] = "".join("ijklmnop"[axis] for axis in layout)
    return make.field(*dtype, shape=axes, **kwargs)


__all__ = ["Backend", "MatrixTensor", "Tensor", "VectorTensor", "allocate"]
