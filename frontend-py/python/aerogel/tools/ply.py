"""Particles and meshes as PLY files."""

from __future__ import annotations

from typing import Any

import numpy as np

from aerogel import _log
from aerogel.tools._files import write_whole


class PLYWriter:
    """Collects vertices and faces, and writes them as a PLY file. Data may be fields, arrays or lists.

    Args:
        num_vertices: How many vertices.
        num_faces: How many faces.
        face_type: ``"tri"`` or ``"quad"``.
        comment: A line for the header.
    """

    def __init__(
        self, num_vertices: int, num_faces: int = 0, face_type: str = "tri", comment: str = "created by PLYWriter"
    ) -> None:
        if num_vertices < 1 or num_faces < 0:
            raise ValueError(f"a PLY file has one vertex or more, not {num_vertices}, and not {num_faces} faces")
        if face_type not in _CORNERS:
            raise ValueError(f"face_type must be 'tri' or 'quad', not {face_type!r}")
        self.num_vertices, self.num_faces = int(num_vertices), int(num_faces)
        self.face_type, self.comment = face_type, comment
        self._corners = _CORNERS[face_type]
        self._channels: dict[str, tuple[str, np.ndarray]] = {}
        self._faces: np.ndarray | None = None
        self._face_channels: dict[str, tuple[str, np.ndarray]] = {}

    def add_vertex_channel(self, key: str, data_type: str, data: Any) -> None:
        """Adds a number for each vertex.

        Args:
            key: The name of the channel; one of the same name is replaced.
            data_type: A PLY type: char, uchar, short, ushort, int, uint, float or double. A channel of another is
                left out with a warning.
            data: The values, one for each vertex.

        Raises:
            ValueError: There are more or fewer.
        """
        _add_channel(self._channels, key, data_type, data, self.num_vertices)

    def add_vertex_pos(self, x: Any, y: Any, z: Any) -> None:
        """Adds the positions."""
        for key, data in zip("xyz", (x, y, z)):
            self.add_vertex_channel(key, "float", data)

    def add_vertex_normal(self, nx: Any, ny: Any, nz: Any) -> None:
        """Adds the normals."""
        for key, data in zip(("nx", "ny", "nz"), (nx, ny, nz)):
            self.add_vertex_channel(key, "float", data)

    def add_vertex_vel(self, vx: Any, vy: Any, vz: Any) -> None:
        """Adds the velocities."""
        for key, data in zip(("vx", "vy", "vz"), (vx, vy, vz)):
            self.add_vertex_channel(key, "float", data)

    def add_vertex_color(self, r: Any, g: Any, b: Any) -> None:
        """Adds colours with components from 0 to 1."""
        for key, data in zip(("red", "green", "blue"), (r, g, b)):
            self.add_vertex_channel(key, "float", data)

    def add_vertex_alpha(self, alpha: Any) -> None:
        """Adds opacities from 0 to 1."""
        self.add_vertex_channel("Alpha", "float", alpha)

    def add_vertex_rgba(self, r: Any, g: Any, b: Any, a: Any) -> None:
        """Adds colours and opacities."""
        self.add_vertex_color(r, g, b)
        self.add_vertex_alpha(a)

    def add_vertex_id(self) -> None:
        """Adds the number of each vertex."""
        self.add_vertex_channel("id", "int", np.arange(self.num_vertices))

    def add_vertex_piece(self, piece: Any = 1) -> None:
        """Adds the number of the piece that each vertex belongs to."""
        self.add_vertex_channel("piece", "int", np.broadcast_to(piece, self.num_vertices))

    def add_face_channel(self, key: str, data_type: str, data: Any) -> None:
        """Adds a number for each face."""
        _add_channel(self._face_channels, key, data_type, data, self.num_faces)

    def add_face_id(self) -> None:
        """Adds the number of each face."""
        self.add_face_channel("id", "int", np.arange(self.num_faces))

    def add_face_piece(self, piece: Any = 1) -> None:
        """Adds the number of the piece that each face belongs to."""
        self.add_face_channel("piece", "int", np.broadcast_to(piece, self.num_faces))

    def add_faces(self, indices: Any) -> None:
        """Adds the faces.

        Args:
            indices: The numbers of their vertices, 3 or 4 of each face one after the other.

        Raises:
            ValueError: There are more or fewer faces than announced, or a number is not that of a vertex.
        """
        numbers = _array(indices).reshape(-1)
        if numbers.size != self.num_faces * self._corners:
            raise ValueError(
                f"{self.num_faces} faces need {self.num_faces * self._corners} indices, not {numbers.size}"
            )
        if numbers.size and not (0 <= numbers.min() and numbers.max() < self.num_vertices):
            raise ValueError(f"the faces' vertices must lie between 0 and {self.num_vertices - 1}")
        self._faces = numbers.reshape(-1, self._corners).astype("<i4")

    def sanity_check(self) -> None:
        """Raises a ValueError if positions are missing, or faces that were announced."""
        if not {"x", "y", "z"} <= self._channels.keys():
            raise ValueError("the positions are missing: call add_vertex_pos")
        if self.num_faces and self._faces is None:
            raise ValueError(f"{self.num_faces} faces were announced, but none added: call add_faces")

    def _header(self, form: str) -> str:
        lines = ["ply", f"format {form} 1.0"]
        lines += [f"comment {line}" for line in str(self.comment).splitlines() or [""]]
        lines += [f"element vertex {self.num_vertices}"]
        lines += [f"property {kind} {key}" for key, (kind, _) in self._channels.items()]
        if self.num_faces:
            lines += [f"element face {self.num_faces}", f"property list uchar int {_INDICES}"]
            lines += [f"property {kind} {key}" for key, (kind, _) in self._face_channels.items()]
        return "\n".join([*lines, "end_header"]) + "\n"

    def print_header(self, path: str, _format: str) -> None:
        """Writes a file that has only the header, for the format ``ascii`` or ``binary_little_endian``."""
        write_whole(path, self._header(_format).encode())

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices and faces as they lie in a binary file."""
        vertices = np.empty(self.num_vertices, dtype=[(key, a.dtype) for key, (_, a) in self._channels.items()])
        for key, (_, a) in self._channels.items():
            vertices[key] = a
        extra = [(f"channel {key}", a.dtype) for key, (_, a) in self._face_channels.items()]
        faces = np.empty(self.num_faces, dtype=[("n", "u1"), ("v", "<i4", (self._corners,)), *extra])
        if self._faces is not None:
            faces["n"], faces["v"] = self._corners, self._faces
            for key, (_, a) in self._face_channels.items():
                faces[f"channel {key}"] = a
        return vertices, faces

    def export(self, path: str) -> None:
        """Writes a binary file.

        Raises:
            ValueError: Positions or faces are missing.
            OSError: The file cannot be written; then there is none.
        """
        self.sanity_check()
        header = self._header("binary_little_endian").encode()
        write_whole(path, header, *(table.tobytes() for table in self._tables()))

    def export_ascii(self, path: str) -> None:
        """Writes a text file.

        Raises:
            ValueError: Positions or faces are missing.
            OSError: The file cannot be written; then there is none.
        """
        self.sanity_check()
        lines = [self._header("ascii")]
        lines += [" ".join(map(str, row)) + " \n" for row in zip(*(a for _, a in self._channels.values()))]
        for k, face in enumerate(self._faces if self._faces is not None else ()):
            numbers = [self._corners, *face, *(a[k] for _, a in self._face_channels.values())]
            lines.append(" ".join(map(str, numbers)) + " \n")
        write_whole(path, "".join(lines).encode())

    def export_frame(self, series_num: int, path: str) -> None:
        """Writes a binary file named for a frame: ``mesh.ply`` becomes ``mesh_000007.ply``."""
        self.export(_of_frame(series_num, path))

    def export_frame_ascii(self, series_num: int, path: str) -> None:
        """Writes a text file named for a frame: ``mesh.ply`` becomes ``mesh_000007.ply``."""
        self.export_ascii(_of_frame(series_num, path))


_CORNERS = {"tri": 3, "quad": 4}
_INDICES = "vertex_indices"
_TYPES = {
    "char": "i1",
    "uchar": "u1",
    "short": "<i2",
    "ushort": "<u2",
    "int": "<i4",
    "uint": "<u4",
    "float": "<f4",
    "double": "<f8",
}


def _array(data: Any) -> np.ndarray:
    return data.to_numpy() if hasattr(data, "to_numpy") else np.asarray(data)


def _of_frame(series_num: int, path: str) -> str:
    stem = path[:-4] if path.endswith(".ply") else path
    return f"{stem}_{series_num:06d}.ply"


def _add_channel(channels: dict[str, Any], key: str, data_type: str, data: Any, count: int) -> None:
    """Adds a channel; one of a type that PLY does not have is left out with a warning."""
    if data_type not in _TYPES:
        _log.warn(f"the channel {key!r} is left out: there is no PLY type {data_type!r}")
        return
    values = _array(data).reshape(-1).astype(_TYPES[data_type])
    if values.size != count:
        raise ValueError(f"the channel {key!r} has {values.size} values for {count} elements")
    if key in channels:
        _log.warn(f"the channel {key!r} existed already, and is replaced")
    channels[key] = (data_type, values)
