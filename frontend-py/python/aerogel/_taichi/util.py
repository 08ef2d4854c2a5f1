"""``ti.lang.util``: scalar types as other packages have them, and where code runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, TypeVar

from aerogel import _log
from aerogel._dtypes import DataType, dtype_of, numpy_dtype, numpy_name
from aerogel.data.matrix import Matrix

F = TypeVar("F", bound=Callable)


def cook_dtype(dtype: Any) -> DataType:
    """The scalar type that ``float``, ``int``, a name or a type of NumPy's means."""
    return dtype_of(dtype)


def to_taichi_type(dt: Any) -> DataType:
    """The scalar type of the same memory format as one of NumPy's or PyTorch's."""
    name = str(dt)
    return dtype_of(name.removeprefix("torch.") if name.startswith("torch.") else dt)


def to_numpy_type(dt: Any) -> Any:
    """The type of NumPy's with the same memory format."""
    return numpy_dtype(dtype_of(dt)).type


def to_pytorch_type(dt: Any) -> Any:
    """The type of PyTorch's with the same memory format."""
    torch = importlib.import_module("torch")
    return getattr(torch, numpy_name(dtype_of(dt)))


def has_pytorch() -> bool:
    """Whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None


def is_taichi_class(rhs: Any) -> bool:
    """Whether this is a matrix, a vector, or an object of a class that says so of itself."""
    return isinstance(rhs, Matrix) or bool(getattr(rhs, "is_taichi_class", False))


def in_taichi_scope() -> bool:
    """Whether this is called by a kernel that is being compiled; Python code never is."""
    return False


def in_python_scope() -> bool:
    """Whether this is called outside kernels; Python code always is."""
    return True


def python_scope(function: F) -> F:
    """Marks a function that kernels do not call."""
    return function


def taichi_scope(function: F) -> F:
    """Marks a function that kernels call."""
    return function


def warning(msg: str, warning_type: type[Warning] = UserWarning, stacklevel: int = 1, **kwargs: Any) -> None:
    """Prints a warning as the package does its own."""
    _log.warn(msg)
