"""Reductions of `aerogel.tensor.frost`: along the last axis, unless one is named; of a single number, that number."""

# ruff: noqa: A001
from __future__ import annotations

from typing import Any

from aerogel._dtypes import i32, u1
from aerogel.tensor import _elementwise, _products, _reductions
from aerogel.tensor._tensor import Tensor, asarray, operands


def sum(x: Any, axis: Any = -1) -> Tensor:
    """The sum along an axis; booleans are counted."""
    x = asarray(x)
    x = x.astype(i32) if x.dtype is u1 else x
    return Tensor(x._native.reduce("sum", _reductions._axes(axis), False)) if x.ndim else x


def mean(x: Any, axis: Any = -1) -> Tensor:
    """The mean along an axis."""
    return _reductions.mean(x, axis=axis if asarray(x).ndim else None)


def norm(x: Any, axis: Any = -1) -> Tensor:
    """The length of vectors along an axis."""
    return _reductions.norm(x, axis=axis if asarray(x).ndim else None)


def min(x: Any, y: Any = None, *, axis: Any = -1) -> Tensor:
    """The smaller of two numbers, or the smallest along an axis."""
    if y is not None:
        return _elementwise.minimum(x, y)
    return _reductions.min(x, axis=axis if asarray(x).ndim else None)


def max(x: Any, y: Any = None, *, axis: Any = -1) -> Tensor:
    """The larger of two numbers, or the largest along an axis."""
    if y is not None:
        return _elementwise.maximum(x, y)
    return _reductions.max(x, axis=axis if asarray(x).ndim else None)


def any(x: Any, axis: Any = -1) -> Tensor:
    """Whether some number along an axis is not zero."""
    return _reductions.any(x, axis=axis if asarray(x).ndim else None)


def all(x: Any, axis: Any = -1) -> Tensor:
    """Whether no number along an axis is zero."""
    return _reductions.all(x, axis=axis if asarray(x).ndim else None)


def dot(a: Any, b: Any, axis: Any = -1) -> Tensor:
    """The sum of products along an axis."""
    a, b = operands(a, b)
    return sum(a * b, axis)


matmul = _products.matmul


def prefix_sum(x: Any, axis: Any = -1) -> Tensor:
    """The sums of the numbers up to each along an axis."""
    return _reductions.prefix_sum(x, axis=axis)


__all__ = ["all", "any", "dot", "matmul", "max", "mean", "min", "norm", "prefix_sum", "sum"]
