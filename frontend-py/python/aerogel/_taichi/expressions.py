"""Taichi's expression classes, for programs that test for them by ``isinstance``."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import integer_types, real_types
from aerogel.data.matrix import Matrix
from aerogel.errors import AerogelNotSupportedError

__all__ = ["AnyArray", "AnyArrayAccess", "Expr", "TaichiOperations", "integer_types", "real_types"]


class Expr:
    """A value inside a kernel. Kernels are read from their source, so Python code never has one in its hands."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise AerogelNotSupportedError(f"{name} is not supported: kernels are read from their source")


class AnyArray(Expr):
    """An array inside a kernel."""


class AnyArrayAccess(Expr):
    """Part of an array inside a kernel."""


#: What has the operators of the language in Python scope.
TaichiOperations = Matrix
