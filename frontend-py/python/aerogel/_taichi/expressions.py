"""Taichi's expression classes, for programs that test for them by ``isinstance``."""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel._dtypes import integer_types, real_types
from aerogel.data.matrix import Matrix
from aerogel.errors import AerogelNotSupportedError

__all__ = ["AnyArray", "AnyArrayAccess", "Expr", "TaichiOperations", "integer_types", "real_types"]


class _OfKernels(type):
    """The class of :class:`Expr`, whose instances are made while kernels are compiled."""

    def __instancecheck__(cls, value: Any) -> bool:
        return cls is Expr and isinstance(value, _native.Expr)


class Expr(metaclass=_OfKernels):
    """A value inside a kernel, which Python functions that the kernel calls get as an argument."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise AerogelNotSupportedError(f"{name} cannot be made: kernels are read from their source")


class AnyArray(Expr):
    """An array inside a kernel."""


class AnyArrayAccess(Expr):
    """Part of an array inside a kernel."""


#: What has the operators of the language in Python scope.
TaichiOperations = Matrix
