"""Fields on grids as VTK files, which ParaView reads."""

from __future__ import annotations

import os
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from aerogel.tools._files import write_whole

_TYPES = {"f4": "Float32", "f8": "Float64"}
_TYPES |= {
    f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "Int"), ("u", "UInt")) for size in (1, 2, 4, 8)
}


def write_vtk(scalar_field: Any, filename: str) -> str:
    """Writes a grid of numbers or vectors as ``filename.vtr``.

    The points of the grid have integer coordinates; a grid with two axes lies in the plane z = 0.

    Args:
        scalar_field: A field, array or NumPy array with two or three axes; fields of vectors have one more as arrays.
        filename: The file without ``.vtr``. The file's data have the same name, without the folder.

    Returns:
        The name of the file.

    Raises:
        TypeError: The numbers are of a type that VTK has not.
        ValueError: There are other than two or three axes.
        OSError: The file cannot be written; then there is none.
    """
    array = scalar_field.to_numpy() if hasattr(scalar_field, "to_numpy") else np.asarray(scalar_field)
    axes = len(scalar_field.shape) if hasattr(scalar_field, "shape") else array.ndim
    element = array.shape[axes:]
    if axes not in (2, 3) or len(element) > 1:
        raise ValueError(f"write_vtk takes grids with two or three axes, of numbers or vectors; this is {array.shape}")
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    elif array.dtype == np.float16:
        array = array.astype(np.float32)
    kind = _TYPES.get(f"{array.dtype.kind}{array.dtype.itemsize}")
    if kind is None:
        raise TypeError(f"VTK files have no numbers of the type {array.dtype}")
    shape = (*array.shape[:axes], 1)[:3]
    components = max(element, default=1)
    # The first axis goes fastest; vectors have three components.
    data = array.reshape(*shape, components).transpose(2, 1, 0, 3)
    if components == 2:
        data, components = np.concatenate([data, np.zeros_like(data[..., :1])], axis=-1), 3
    name = quoteattr(os.path.basename(filename))
    extent = " ".join(f"0 {n - 1}" for n in shape)
    blocks = [_block(data), *(_block(np.arange(n, dtype=np.float64)) for n in shape)]
    offsets = np.cumsum([0, *map(len, blocks)])
    coordinates = "".join(
        f'<DataArray type="Float64" Name="{axis}" format="appended" offset="{at}"/>\n'
        for axis, at in zip("xyz", offsets[1:])
    )
    head = f"""<?xml version="1.0"?>
<VTKFile type="RectilinearGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64">
<RectilinearGrid WholeExtent="{extent}">
<Piece Extent="{extent}">
<PointData>
<DataArray type="{kind}" Name={name} NumberOfComponents="{components}" format="appended" offset="0"/>
</PointData>
<Coordinates>
{coordinates}</Coordinates>
</Piece>
</RectilinearGrid>
<AppendedData encoding="raw">
_"""
    path = f"{filename}.vtr"
    write_whole(path, head.encode(), *blocks, b"\n</AppendedData>\n</VTKFile>\n")
    return path


def _block(data: np.ndarray) -> bytes:
    """Numbers as VTK appends them: how many bytes, and the bytes."""
    raw = data.astype(data.dtype.newbyteorder("<")).tobytes()
    return len(raw).to_bytes(8, "little") + raw
