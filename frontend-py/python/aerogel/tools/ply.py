"""Particles and meshes as PLY files."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from aerogel import _log


class PLYWriter:
    """Collects vertices and faces, and writes them as a PLY file.

    Args:
        num_vertices: How many vertices.
        num_faces: How many faces.
        face_type: ``"tri"`` or ``"quad"``.
        comment: A line for the header.
    """

    def __init__(self, num_vertices: int, num_faces: int = 0, face_type: str = "tri", comment: str = "made by aerogel"):
        if face_type not in ("tri", "quad"):
            raise ValueError(f"face_type must be 'tri' or 'quad', not {face_type!r}")
        self.num_vertices, self.num_faces, self.comment = num_vertices, num_faces, comment
        self._corners = 3 if face_type == "tri" else 4
        self._channels: list[tuple[str, str, np.ndarray]] = []
        self._faces: np.ndarray | None = None
        self._face_channels: list[tuple[str, str, np.ndarray]] = []

    def add_vertex_channel(self, key: str, data_type: str, data: Any) -> None:
        """Adds a number for each vertex, of a PLY type such as ``float`` or ``uchar``."""
        _add_channel(self._channels, key, data_type, data, self.num_vertices)

    def add_vertex_pos(self, x: Any, y: Any, z: Any) -> None:
        """Adds the positions."""
        for key, data in zip("xyz", (x, y, z)):
            self.add_vertex_channel(key, "float", data)

    def add_vertex_normal(self, nx: Any, ny: Any, nz: Any) -> None:
        """Adds the normals."""
        for key, data in zip(("nx", "ny", "nz"), (nx, ny, nz)):
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
        """Adds the faces: the numbers of their vertices."""
        self._faces = np.asarray(indices).reshape(-1, self._corners).astype("<i4")
        if len(self._faces) != self.num_faces:
            raise ValueError(f"{len(self._faces)} faces were given, {self.num_faces} announced")

    def _header(self, form: str) -> str:
        lines = ["ply", f"format {form} 1.0", f"comment {self.comment}", f"element vertex {self.num_vertices}"]
        lines += [f"property {kind} {key}" for key, kind, _ in self._channels]
        if self.num_faces:
            lines += [f"element face {self.num_faces}", "property list uchar int vertex_indices"]
            lines += [f"property {kind} {key}" for key, kind, _ in self._face_channels]
        return "\n".join([*lines, "end_header"]) + "\n"

    def export(self, path: str) -> None:
        """Writes a binary file."""
        form = "binary_little_endian" if sys.byteorder == "little" else "binary_big_endian"
        rows = np.empty(self.num_vertices, dtype=[(key, a.dtype) for key, _, a in self._channels])
        for key, _, a in self._channels:
            rows[key] = a
        with open(path, "wb") as f:
            f.write(self._header(form).encode())
            f.write(rows.tobytes())
            if self._faces is not None:
                extra = [(key, a.dtype) for key, _, a in self._face_channels]
                faces = np.empty(len(self._faces), dtype=[("n", "u1"), ("v", "<i4", (self._corners,)), *extra])
                faces["n"], faces["v"] = self._corners, self._faces
                for key, _, a in self._face_channels:
                    faces[key] = a
                f.write(faces.tobytes())

    def export_ascii(self, path: str) -> None:
        """Writes a text file."""
        with open(path, "w") as f:
            f.write(self._header("ascii"))
            for row in zip(*(a for _, _, a in self._channels)):
                f.write(" ".join(str(v) for v in row) + "\n")
            for k, face in enumerate(self._faces if self._faces is not None else ()):
                numbers = [self._corners, *face, *(a[k] for _, _, a in self._face_channels)]
                f.write(" ".join(str(v) for v in numbers) + "\n")

    @staticmethod
    def _frame(series_num: int, path: str) -> str:
        stem = path[:-4] if path.endswith(".ply") else path
        return f"{stem}_{series_num:06d}.ply"

    def export_frame(self, series_num: int, path: str) -> None:
        """Writes a binary file named for a frame."""
        self.export(self._frame(series_num, path))

    def export_frame_ascii(self, series_num: int, path: str) -> None:
        """Writes a text file named for a frame."""
        self.export_ascii(self._frame(series_num, path))


_TYPES = {"float": "<f4", "double": "<f8", "int": "<i4", "uint": "<u4", "uchar": "u1", "char": "i1"}


def _add_channel(channels: list, key: str, data_type: str, data: Any, count: int) -> None:
    """Adds a channel; one of a type that PLY does not have is left out with a warning."""
    if data_type not in _TYPES:
        _log.warn(f"the channel {key!r} is left out: there is no PLY type {data_type!r}")
        return
    values = np.asarray(data).reshape(-1).astype(_TYPES[data_type])
    if values.size != count:
        raise ValueError(f"the channel {key!r} has {values.size} values for {count} elements")
    channels.append((key, data_type, values))
