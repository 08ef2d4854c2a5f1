"""How fields and arrays look in notebooks: grids of numbers and colours as pictures, others as a short text."""

from __future__ import annotations

import html
from typing import Any

#: Pictures are not larger than this; of larger grids every so manieth element is shown.
_LARGEST = 1024
#: Of more elements than this no values are shown.
_MANY = 1 << 22


def _is_ready(x: Any) -> bool:
    """Whether there are elements: a field that is not placed has none."""
    return not hasattr(x, "_is_placed") or x._is_placed()


def _is_picture(x: Any) -> bool:
    element = x._array_shape()[len(x.shape) :] if hasattr(x, "_array_shape") else x.element_shape
    return len(x.shape) == 2 and 0 not in x.shape and tuple(element) in ((), (3,), (4,))


def png(x: Any) -> bytes | None:
    """A field or array with two axes of numbers, or of vectors of three or four, as a PNG; otherwise None.

    Floats from 0 to 1 and bytes are shown as they are; other numbers go from black for the smallest to white.
    """
    if not _is_ready(x) or not _is_picture(x):
        return None
    import numpy as np

    from aerogel import _native
    from aerogel.tools.image import to_pixels

    step = (max(x.shape) - 1) // _LARGEST + 1
    array = x.to_numpy()[::step, ::step]
    if array.dtype not in (np.uint8, np.bool_):
        array = array.astype(np.float64)
        finite = array[np.isfinite(array)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
        is_float = x.dtype.is_float if hasattr(x.dtype, "is_float") else True
        if not (is_float and 0 <= low and high <= 1):
            array = (array - low) / (high - low if high > low else 1.0)
    rows = np.ascontiguousarray(to_pixels(array)[:, ::-1].swapaxes(0, 1))
    return _native.encode_png(rows)


def summary(x: Any) -> str | None:
    """A field or array as a short text in HTML; None if it is shown as a picture."""
    if not _is_ready(x):
        return f"<code>{html.escape(type(x).__name__)}</code>, not placed yet"
    if _is_picture(x):
        return None
    import math

    head = f"<code>{html.escape(type(x).__name__)}</code> of {x.dtype}, shape {tuple(x.shape)}"
    if math.prod(x.shape) > _MANY:
        return head
    import numpy as np

    with np.printoptions(threshold=8, edgeitems=2):
        return f"{head}<pre>{html.escape(str(x.to_numpy()))}</pre>"


def struct_summary(x: Any) -> str:
    """A field of structs as a short text in HTML: the names and types of its members."""
    members = ", ".join(f"{name}: {getattr(member, 'dtype', 'struct')}" for name, member in x._members.items())
    ready = all(_is_ready(leaf) for leaf in x._leaves())
    where = f"shape {tuple(x.shape)}" if ready else "not placed yet"
    return f"<code>{type(x).__name__}</code> of {html.escape(members)}, {where}"
