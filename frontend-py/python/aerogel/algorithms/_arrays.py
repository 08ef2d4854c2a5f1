"""What the algorithms take: fields and arrays of numbers with one axis."""

from __future__ import annotations

from typing import Any

import aerogel as ti
from aerogel._config import cfg, n_threads
from aerogel._dtypes import DataType

ARRAY: Any = ti.types.ndarray(ndim=1)
ANY: Any = ti.types.ndarray()
TABLE: Any = ti.types.ndarray(ndim=2)


def is_field(x: Any) -> bool:
    """Whether ``x`` is a field of numbers, not an array."""
    return isinstance(x, ti.ScalarField)


def numbers(x: Any, name: str) -> DataType:
    """The type of the numbers in ``x``, which has one axis.

    Raises:
        TypeError: ``x`` is no field and no array of numbers.
        ValueError: It has more than one axis.
    """
    dtype = numbers_of_any_shape(x, name)
    if len(x.shape) != 1:
        raise ValueError(f"`{name}` must have one axis; its shape is {tuple(x.shape)}")
    return dtype


def numbers_of_any_shape(x: Any, name: str) -> DataType:
    """The type of the numbers in ``x``, or a TypeError if it is no field and no array of numbers."""
    if not isinstance(x, (ti.ScalarField, ti.ScalarNdarray)):
        raise TypeError(f"`{name}` must be a field or a ti.ndarray of numbers, not {type(x).__name__}")
    if not isinstance(x.dtype, DataType):
        raise TypeError(f"`{name}` must be of a plain number type, not {x.dtype}")
    return x.dtype


def bit_width(dtype: DataType) -> int:
    """How many bits a number has."""
    return int(dtype.to_string()[1:])


def first_index(x: Any) -> int:
    """The first index of a field or array with one axis: fields may have an offset."""
    return x._offset[0] if is_field(x) and x._offset else 0


def same_length(x: Any, y: Any, names: str) -> None:
    """Raises a ValueError if two have different lengths."""
    if x.shape[0] != y.shape[0]:
        raise ValueError(f"{names} must have the same length, not {x.shape[0]} and {y.shape[0]}")


def array_of(dtype: Any, n: int) -> Any:
    """A new array of ``n`` numbers, which may be none."""
    from aerogel.data.ndarray import ScalarNdarray, _make

    return _make(ScalarNdarray, dtype, (n,), ())


def chunks_for(n: int, least: int) -> int:
    """Into how many parts ``n`` elements are cut, one for each thread, each of ``least`` elements or more.

    Where results must not depend on threads, there are as many parts on any machine.
    """
    most = 8 if cfg.deterministic else n_threads()
    return max(1, min(most, n // least))


def for_fields_and_arrays(make: Any, array: Any = ARRAY) -> Any:
    """Makes a kernel twice from one text, ``make(annotation)``: for a field and for an array.

    Args:
        make: Makes it.
        array: The annotation for an array.

    Returns:
        A function that calls the one that fits its first argument.
    """
    made: dict[bool, Any] = {}

    def call(x: Any, *args: Any) -> Any:
        field = is_field(x)
        if field not in made:
            made[field] = make(ti.template() if field else array)
        return made[field](x, *args)

    return call
