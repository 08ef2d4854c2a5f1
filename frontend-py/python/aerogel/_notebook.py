"""How fields and arrays look in notebooks: grids of numbers and colours as pictures, others as a short text."""

from __future__ import annotations

import html
import re
import sys
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

    from aerogel.tools._pixels import to_pixels

    step = (max(x.shape) - 1) // _LARGEST + 1
    array = x.to_numpy()[::step, ::step]
    if array.dtype not in (np.uint8, np.bool_):
        array = array.astype(np.float64)
        finite = array[np.isfinite(array)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
        is_float = x.dtype.is_float if hasattr(x.dtype, "is_float") else True
        if not (is_float and 0 <= low and high <= 1):
            array = (array - low) / (high - low if high > low else 1.0)
    return encoded(to_pixels(array))


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


def _type_text(ty: Any) -> str:
    """A member's type, members of structs in braces."""
    from aerogel._dtypes import dtype_of

    members = getattr(ty, "members", None)
    if members is not None:
        return "{" + ", ".join(f"{name}: {_type_text(member)}" for name, member in members.items()) + "}"
    return str(dtype_of(ty) if ty in (float, int, bool) else ty)


def struct_summary(x: Any) -> str:
    """A field of structs as a short text in HTML: the names and types of its members."""
    members = ", ".join(f"{name}: {_type_text(ty)}" for name, ty in x._type.members.items())
    ready = all(_is_ready(leaf) for leaf in x._leaves())
    where = f"shape {tuple(x.shape)}" if ready else "not placed yet"
    return f"<code>{type(x).__name__}</code> of {html.escape(members)}, {where}"


#: The files that notebooks say a cell is in: of ipykernel, of IPython, and of marimo.
_CELL = re.compile(r"ipykernel_\d+[/\\]\d+\.py$|^<ipython-input-\d+|__marimo__cell_(?P<marimo>\w+?)_?(\.py)?$")


def is_in_file(function: Any) -> bool:
    """Whether a function is in something else than a cell: the globals of a cell are there to be changed."""
    code = getattr(getattr(function, "__aerogel_func__", function), "__code__", None)
    return code is None or _CELL.search(code.co_filename) is None


def cell_name(path: str) -> str:
    """The name that a notebook shows for the cell in a file, as ``Cell In[3]``; the path of anything else."""
    found = _CELL.search(path)
    if found is None:
        return path
    if found["marimo"]:
        return f"cell {found['marimo']}"
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    return " ".join(named(path) or [path]) if named is not None else path


def is_running() -> bool:
    """Whether this is a notebook, which shows pictures."""
    if _marimo() is not None:
        return True
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def encoded(pixels: Any) -> bytes:
    """Bytes of shape (width, height, channels), the second axis upwards, as a PNG."""
    import numpy as np

    from aerogel import _native

    return _native.encode_png(np.ascontiguousarray(pixels[:, ::-1].swapaxes(0, 1)))


def _marimo() -> Any:
    """The module marimo, if a notebook of it is running."""
    marimo = sys.modules.get("marimo")
    return marimo if marimo is not None and marimo.running_in_notebook() else None


def show(pixels: Any, handle: Any = None) -> Any:
    """Shows a picture below the cell that runs; in place of an earlier one, if its handle is given."""
    if (marimo := _marimo()) is not None:
        # Each cell has one output, which a frame takes.
        marimo.output.replace(marimo.image(encoded(pixels)))
        return None
    from IPython.display import Image, display  # type: ignore[import-not-found]

    image = Image(encoded(pixels), format="png")
    if handle is None:
        return display(image, display_id=True)
    handle.update(image)
    return handle
