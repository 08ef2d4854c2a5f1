"""Grids, particles and meshes as VTK files, and series of them, which ParaView reads."""

from __future__ import annotations

import os
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np

from aerogel.tools._files import write_whole

_TYPES = {"f4": "Float32", "f8": "Float64"}
_TYPES |= {
    f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "Int"), ("u", "UInt")) for size in (1, 2, 4, 8)
}
#: The number of VTK and the corners of each kind of cell.
_CELLS = {
    "vertex": (1, 1), "line": (3, 2), "triangle": (5, 3), "quad": (9, 4), "tetrahedron": (10, 4), "hexahedron": (12, 8)
}  # fmt: skip


def write_vtk(scalar_field: Any, filename: str, *, spacing: Any = 1.0, origin: Any = 0.0) -> str:
    """Writes a grid of numbers or vectors as a file of the kind ``.vtr``.

    >>> write_vtk({"pressure": p, "velocity": v}, "flow.vtr", spacing=1 / 64)  # doctest: +SKIP
    'flow.vtr'

    Args:
        scalar_field: A field, array or NumPy array with two or three axes; fields of vectors have one more as arrays.
            Or several of one shape, by name. A grid with two axes is in the plane z = 0.
        filename: The file. A name that does not end in ``.vtr`` gets this suffix, as in Taichi. The data of a single
            field have the name of the file.
        spacing: The distance of neighbouring points: a number, or one for each axis.
        origin: Where the first point is: a number, or one for each axis.

    Returns:
        The name of the file.

    Raises:
        TypeError: VTK has no type for the numbers.
        ValueError: The number of axes is not two or three, or the suffix is of another kind of file.
        OSError: The file cannot be written; then there is none.
    """
    path, stem = _named(filename, ".vtr")
    fields = scalar_field if isinstance(scalar_field, dict) else {stem: scalar_field}
    shape, file = (), _File()
    for name, field in fields.items():
        array, axes = _grid(field)
        if shape not in ((), array.shape[:axes]):
            raise ValueError(f"write_vtk takes grids of one shape: `{name}` has {array.shape[:axes]}, not {shape}")
        shape = array.shape[:axes]
        # The first axis goes fastest.
        rows = array.reshape(*shape, *[1] * (3 - axes), -1).transpose(2, 1, 0, 3)
        file.add("PointData", name, rows.reshape(-1, rows.shape[-1]))
    steps, begin = (np.broadcast_to(np.asarray(x, np.float64), len(shape)) for x in (spacing, origin))
    for k, axis in enumerate("xyz"):
        is_flat = k >= len(shape)
        points = np.zeros(1) if is_flat else begin[k] + steps[k] * np.arange(shape[k])
        file.add("Coordinates", axis, points[:, None])
    extent = " ".join(f"0 {n - 1}" for n in (*shape, 1)[:3])
    file.write(path, "RectilinearGrid", f'WholeExtent="{extent}"', f'Extent="{extent}"')
    return path


def write_vtk_mesh(
    filename: str, points: Any, cells: Any = None, *, kind: str = "", data: Any = None, cell_data: Any = None
) -> str:
    """Writes particles or a mesh as a file of the kind ``.vtu``.

    >>> write_vtk_mesh("water.vtu", x, data={"speed": speed})  # doctest: +SKIP
    'water.vtu'

    Args:
        filename: The file. A name that does not end in ``.vtu`` gets this suffix.
        points: Positions: a field of vectors or an array of shape (n, 2) or (n, 3).
        cells: The numbers of the corners of each cell, of shape (m, corners), or flat if ``kind`` is given. Without
            them the points are particles.
        kind: ``"line"``, ``"triangle"``, ``"quad"``, ``"tetrahedron"`` or ``"hexahedron"``. By default two corners are
            lines, three triangles, four quads and eight hexahedra.
        data: Numbers or vectors of the points, by name.
        cell_data: Numbers or vectors of the cells, by name.

    Returns:
        The name of the file.

    Raises:
        TypeError: VTK has no type for the numbers.
        ValueError: A shape is wrong, a corner is not the number of a point, or the suffix is of another kind.
        OSError: The file cannot be written; then there is none.
    """
    path, _ = _named(filename, ".vtu")
    at = _array(points)
    if at.ndim != 2 or at.shape[1] not in (2, 3) or at.dtype.kind != "f":
        raise ValueError(f"write_vtk_mesh: points are floats of shape (n, 2) or (n, 3), not {at.dtype}{at.shape}")
    kind, corners = _corners(cells, kind, len(at))
    file = _File()
    for group, values, count in (("PointData", data, len(at)), ("CellData", cell_data, len(corners))):
        for name, own in (values or {}).items():
            array = _array(own)
            if array.ndim not in (1, 2) or len(array) != count:
                raise ValueError(f"write_vtk_mesh: `{name}` has the shape {array.shape}; there are {count} elements")
            file.add(group, name, array.reshape(count, -1))
    file.add("Points", "points", at)
    number, n = _CELLS[kind]
    file.add("Cells", "connectivity", corners.reshape(-1, 1))
    file.add("Cells", "offsets", np.arange(1, len(corners) + 1)[:, None] * n)
    file.add("Cells", "types", np.full((len(corners), 1), number, np.uint8))
    file.write(path, "UnstructuredGrid", "", f'NumberOfPoints="{len(at)}" NumberOfCells="{len(corners)}"')
    return path


class VTKSeries:
    """A ``.pvd`` file, which lists the time of each of many files. It is rewritten whenever a file is added.

    >>> series = VTKSeries("out/water.pvd")  # doctest: +SKIP
    >>> series.add(write_vtk_mesh("out/water_0001.vtu", x), time=0.1)  # doctest: +SKIP

    After ``ti.tools.resume`` the series continues: ``resumed=True`` keeps the entries of the file, if there is one.
    The first file that is added then replaces those of its time and later, which are computed again.

    Args:
        filename: The file, whose suffix is ``.pvd``.
        resumed: Whether to continue an existing file.

    Raises:
        ValueError: The file to continue is not a series.
    """

    def __init__(self, filename: str, *, resumed: bool = False) -> None:
        self.filename, _ = _named(filename, ".pvd")
        self._files = _listed(self.filename) if resumed and os.path.isfile(self.filename) else []
        self._is_resumed = bool(self._files)

    def add(self, filename: str, time: float) -> None:
        """Adds a file.

        Raises:
            OSError: The file does not exist, or the ``.pvd`` file cannot be written.
        """
        if not os.path.isfile(filename):
            raise FileNotFoundError(f"{filename} is not there: write it before it is added to {self.filename}")
        # ParaView looks for the files from the folder of the series.
        folder = os.path.dirname(os.path.abspath(self.filename))
        if self._is_resumed:
            self._files, self._is_resumed = [own for own in self._files if own[0] < float(time)], False
        self._files.append((float(time), os.path.relpath(filename, folder)))
        sets = [f'<DataSet timestep="{at!r}" file={quoteattr(own)}/>' for at, own in self._files]
        head = '<?xml version="1.0"?>\n<VTKFile type="Collection" version="1.0">\n<Collection>'
        write_whole(self.filename, "\n".join([head, *sets, "</Collection>\n</VTKFile>\n"]).encode())


def _listed(filename: str) -> list[tuple[float, str]]:
    """The times and the files of a series."""
    try:
        sets = ElementTree.parse(filename).findall("Collection/DataSet")
        return [(float(own.attrib["timestep"]), own.attrib["file"]) for own in sets]
    except (ElementTree.ParseError, KeyError, ValueError):
        raise ValueError(f"{filename} is no series of VTK files: remove it, or leave out `resumed`") from None


class _File:
    """The arrays of a file by their groups."""

    def __init__(self) -> None:
        self._groups: dict[str, list[str]] = {}
        self._blocks: list[bytes] = []
        self._size = 0

    def add(self, group: str, name: str, rows: np.ndarray) -> None:
        """Adds an array of shape (elements, components)."""
        rows = _as_vtk(rows, name)
        kind = _TYPES[f"{rows.dtype.kind}{rows.dtype.itemsize}"]
        self._groups.setdefault(group, []).append(
            f'<DataArray type="{kind}" Name={quoteattr(str(name))} NumberOfComponents="{rows.shape[1]}" '
            f'format="appended" offset="{self._size}"/>'
        )
        # How many bytes, and the bytes.
        raw = rows.astype(rows.dtype.newbyteorder("<")).tobytes()
        self._blocks.append(len(raw).to_bytes(8, "little") + raw)
        self._size += len(raw) + 8

    def write(self, path: str, kind: str, whole: str, piece: str) -> None:
        """Writes the file."""
        order = ("PointData", "CellData", "Points", "Cells", "Coordinates")
        groups = [
            "\n".join([f"<{group}>", *self._groups[group], f"</{group}>"]) for group in order if group in self._groups
        ]
        head = [
            '<?xml version="1.0"?>',
            f'<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" header_type="UInt64">',
            f"<{kind} {whole}>".replace(" >", ">"),
            f"<Piece {piece}>",
            *groups,
            f'</Piece>\n</{kind}>\n<AppendedData encoding="raw">\n_',
        ]
        write_whole(path, "\n".join(head).encode(), *self._blocks, b"\n</AppendedData>\n</VTKFile>\n")


def _as_vtk(rows: np.ndarray, name: str) -> np.ndarray:
    """Numbers of a type that VTK has; vectors have three components there."""
    if rows.dtype == np.bool_:
        rows = rows.astype(np.uint8)
    elif rows.dtype == np.float16:
        rows = rows.astype(np.float32)
    if f"{rows.dtype.kind}{rows.dtype.itemsize}" not in _TYPES:
        raise TypeError(f"VTK files have no numbers of the type {rows.dtype}, which `{name}` has")
    if rows.shape[1] == 2:
        rows = np.concatenate([rows, np.zeros_like(rows[:, :1])], axis=1)
    return rows


def _array(values: Any) -> np.ndarray:
    return values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)


def _grid(field: Any) -> tuple[np.ndarray, int]:
    """A grid as an array, and how many axes it has without those of an element."""
    array = _array(field)
    axes = len(field.shape) if hasattr(field, "shape") else array.ndim
    if axes not in (2, 3) or array.ndim > axes + 1:
        raise ValueError(f"write_vtk takes grids with two or three axes, of numbers or vectors; this is {array.shape}")
    return array, axes


def _corners(cells: Any, kind: str, n_points: int) -> tuple[str, np.ndarray]:
    """The kind of the cells, and the numbers of their corners of shape (cells, corners)."""
    if cells is None:
        return "vertex", np.arange(n_points, dtype=np.int64)[:, None]
    array = _array(cells)
    kinds = {2: "line", 3: "triangle", 4: "quad", 8: "hexahedron"}
    kind = kind or kinds.get(array.shape[1] if array.ndim == 2 else 0, "")
    if kind not in _CELLS:
        raise ValueError(
            f"write_vtk_mesh: cells of shape {array.shape} are of no known kind; kind= is one of {', '.join(_CELLS)}"
        )
    n = _CELLS[kind][1]
    if array.dtype.kind not in "iu" or array.size % n or array.ndim == 2 and array.shape[1] != n:
        raise ValueError(f"write_vtk_mesh: a {kind} has {n} integers, the cells are {array.dtype}{array.shape}")
    if array.size and not 0 <= array.min() <= array.max() < n_points:
        raise ValueError(
            f"write_vtk_mesh: corners lie between 0 and {n_points - 1}, not at {array.min()} and {array.max()}"
        )
    return kind, array.reshape(-1, n).astype(np.int64)


def _named(filename: str, suffix: str) -> tuple[str, str]:
    """The path of a file of a kind, and its name without folder and suffix.

    Raises:
        ValueError: The suffix is of another kind of VTK's files.
    """
    path = os.fspath(filename)
    stem, given = os.path.splitext(path)
    if given.lower() == suffix:
        return path, os.path.basename(stem)
    if given.lower() in (".vtk", ".vtr", ".vtu", ".vtp", ".vti", ".vts", ".pvd"):
        raise ValueError(f"{path} would be a file of the kind {suffix}: name it {stem}{suffix}")
    return path + suffix, os.path.basename(path)
