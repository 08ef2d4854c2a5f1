"""The memory of a dense field as a NumPy array, without copying."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel import _config, _native
from aerogel._dtypes import bf16, numpy_dtype
from aerogel.data._quant import QuantType

if TYPE_CHECKING:
    from aerogel.data.field import NumericField


def view(field: NumericField) -> Any:
    """An array over the memory of a field, of the shape of its copies; ``bf16`` as ``uint16``.

    The array keeps the memory alive, also after the field's layout was destroyed.

    Raises:
        ValueError: The memory is no strided array of the elements.
    """
    import numpy as np

    key, places = field._places()
    if field._is_split:
        raise _refused(field, "is divided among ranks (`local()` is the memory of this one)")
    if _config.cfg.arch == _config.cuda:
        raise _refused(field, "is in the memory of a GPU")
    if isinstance(field.dtype, QuantType):
        raise _refused(field, "is quantised: its elements are some bits of words")
    try:
        components = [np.asarray(_native.place_memory(key, place)) for place in places]
    except ValueError:
        raise _refused(field, "has a sparse layout, or one that divides an axis into blocks") from None
    first, element = components[0], field._array_shape()[len(field.shape) :]
    starts = [array.__array_interface__["data"][0] for array in components]
    steps = {b - a for a, b in zip(starts, starts[1:])} or {first.itemsize}
    step = steps.pop()
    if steps or any(array.strides != first.strides for array in components):
        raise _refused(field, "has components that are not evenly spaced in memory")
    inner = [step]
    for n in reversed(element[1:]):
        inner.insert(0, inner[0] * n)
    strides = (*first.strides, *inner) if element else first.strides
    array = np.lib.stride_tricks.as_strided(first, (*first.shape, *element), strides)
    return array if field.dtype is bf16 else array.view(numpy_dtype(field.dtype))


def _refused(field: NumericField, why: str) -> ValueError:
    name = f" `{field._name}`" if field._name else ""
    return ValueError(f"the field{name} {why}, so its memory cannot be shared: leave out copy=False to get a copy")
