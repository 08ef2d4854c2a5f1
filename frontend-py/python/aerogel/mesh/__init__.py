"""Meshes of triangles and tetrahedra: ``for v in mesh.verts: for f in v.faces: ...``.

Attributes are fields, and so are the relations between elements.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from aerogel.data.axes import Layout, axes
from aerogel.data.field import field
from aerogel.data.snode import root
from aerogel.errors import AerogelCompilationError, AerogelSyntaxError
from aerogel.mesh._topology import LETTERS, Relation, Topology, order_of
from aerogel.types import MatrixType, StructType

NAMES = ("verts", "edges", "faces", "cells")
_RESERVED = frozenset((*NAMES, "id", "size"))


class MeshMetadata:
    """The elements of a mesh, their relations, and the positions of its vertices."""

    def __init__(self, data: dict[str, Any]) -> None:
        """Reads the format of Taichi, in which a mesh is cut into patches with numbers of their own.

        Args:
            data: What :meth:`Mesh.load_meta` finds in a file.
        """
        from aerogel.mesh._patches import Patches

        patches = Patches(data)
        self.num_patches: int = patches.n_patches
        self.num_elements: dict[int, int] = patches.n_elements
        self.relations: dict[tuple[int, int], Relation] = patches.relations
        self.patch_of: dict[int, Any] = patches.patch_of
        self.attrs = {"x": patches.positions}
        self.patcher = data.get("patcher")

    @classmethod
    def of(cls, positions: Any, corners: Any, relations: Iterable[str] | None = None) -> MeshMetadata:
        """Of the positions of vertices and the corners of triangles or tetrahedra."""
        import numpy as np

        positions, corners = np.asarray(positions, np.float64), np.asarray(corners)
        if positions.ndim != 2 or positions.shape[1] not in (2, 3):
            raise ValueError(f"vertices are an array of shape (n, 3), not {positions.shape}")
        if corners.ndim != 2 or corners.shape[1] not in (3, 4) or not len(corners):
            raise ValueError(f"elements are an array of shape (n, 3) or (n, 4), not {corners.shape}")
        if corners.dtype.kind not in "iu":
            raise ValueError(f"the corners of elements are integers, not {corners.dtype}")
        if corners.min() < 0 or corners.max() >= len(positions):
            raise ValueError(f"the corners of elements are from 0 to {len(positions) - 1}: there are no other vertices")
        ends = np.sort(corners, axis=1)
        if (ends[:, 1:] == ends[:, :-1]).any():
            raise ValueError("an element has the same corner twice")
        topology = Topology(len(positions), corners.astype(np.int64))
        top = topology.order
        out = cls.__new__(cls)
        out.num_patches, out.patch_of, out.patcher = 1, {}, None
        out.num_elements = {order: topology.n[order] for order in range(top + 1)}
        if relations is None:
            relations = [a + b for a in LETTERS[: top + 1] for b in LETTERS[: top + 1]]
        out.relations = {}
        for name in relations:
            if len(name) != 2 or not set(name.upper()) <= set(LETTERS[: top + 1]):
                raise ValueError(f"a relation is two letters of {LETTERS[: top + 1]}, such as VF, not {name!r}")
            key = order_of(name[0].upper()), order_of(name[1].upper())
            out.relations[key] = topology.relation(*key)
        out.attrs = {"x": np.zeros((len(positions), 3))}
        out.attrs["x"][:, : positions.shape[1]] = positions
        return out


class MeshRelation:
    """The elements at each element, in fields."""

    def __init__(self, relation: Relation, to: MeshElementField) -> None:
        self.width, self.to = relation.width, to
        self.offsets = None if relation.offsets is None else _number_field(relation.offsets)
        self.targets = _number_field(relation.targets)

    @property
    def _aerogel_relation(self) -> tuple[int, Any, Any, MeshElementField]:
        return self.width, self.offsets, self.targets, self.to


def _number_field(numbers: Any) -> Any:
    """A field of integers; one that would be empty has an element that is not used."""
    from aerogel import i32

    out = field(i32, shape=max(len(numbers), 1))
    if len(numbers):
        out.from_numpy(numbers)
    return out


class MeshElementField:
    """The vertices, edges, faces or cells of a mesh, with their attributes."""

    def __init__(self, mesh: MeshInstance, order: int, n: int) -> None:
        self.mesh = mesh
        self._order, self._n = order, n
        self._relations: dict[int, MeshRelation] = {}
        self._patches: Any = None
        self.field_dict: dict[str, Any] = {}

    @property
    def _aerogel_elements(self) -> tuple[str, int]:
        return NAMES[self._order], self._n

    def place(
        self, members: dict[str, Any], reorder: bool = False, needs_grad: bool = False, layout: Any = Layout.SOA
    ) -> None:
        """Gives the elements attributes.

        Args:
            members: Their types, by name.
            reorder: Accepted for Taichi's programs: the numbers of elements are always those of the mesh.
            needs_grad: Whether the attributes have gradients.
            layout: ``ti.Layout.AOS`` puts the attributes of an element side by side.
        """
        self._check(members)
        side_by_side = layout is Layout.AOS
        made = {}
        for key, dtype in members.items():
            shape = None if side_by_side else self._n
            if isinstance(dtype, (MatrixType, StructType)):
                made[key] = dtype.field(shape=shape, needs_grad=needs_grad)
            else:
                made[key] = field(dtype, shape=shape, needs_grad=needs_grad)
        if side_by_side and made:
            root.dense(axes(0), self._n).place(*made.values())
        self.field_dict.update(made)

    def _check(self, members: Iterable[str]) -> None:
        """Whether attributes of these names can be added."""
        if self._n == 0:
            raise AerogelSyntaxError(f"the mesh has no {NAMES[self._order]}")
        for key in members:
            if key in self.field_dict:
                raise AerogelSyntaxError(f"the {NAMES[self._order]} have an attribute {key!r} already")
            if key in _RESERVED or hasattr(type(self), key) or key.startswith("_") or key in self.__dict__:
                raise AerogelSyntaxError(f"{key!r} cannot be the name of an attribute: it means something else already")

    @property
    def keys(self) -> list[str]:
        """The names of the attributes."""
        return list(self.field_dict)

    def get_member_field(self, key: str) -> Any:
        """The field of an attribute."""
        return self.field_dict[key]

    def __len__(self) -> int:
        return self._n

    def __getattr__(self, name: str) -> Any:
        if name in NAMES:
            to = NAMES.index(name)
            if to in self._relations:
                return self._relations[to]
            code = LETTERS[self._order] + LETTERS[to]
            has = ", ".join(sorted(self.mesh.relation_set)) or "none"
            raise AerogelCompilationError(
                f"the relation {code}, from {NAMES[self._order]} to {name}, was not requested at the mesh's creation: "
                f"it has {has}"
            )
        fields = self.__dict__.get("field_dict", {})
        if name not in fields:
            raise AttributeError(f"the {NAMES[self.__dict__.get('_order', 0)]} of the mesh have no attribute {name!r}")
        return fields[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.field_dict, *NAMES, "id"})


class MeshInstance:
    """A mesh. :meth:`Mesh._create_instance` makes it, as in Taichi."""

    def __init__(self, metadata: MeshMetadata) -> None:
        self.num_patches, self.patcher = metadata.num_patches, metadata.patcher
        self._vert_position = metadata.attrs["x"]
        elements = [MeshElementField(self, order, metadata.num_elements.get(order, 0)) for order in range(4)]
        self.verts, self.edges, self.faces, self.cells = elements
        #: The relations that the mesh has, such as ``"VF"``.
        self.relation_set = {LETTERS[a] + LETTERS[b] for a, b in metadata.relations}
        for (source, target), relation in metadata.relations.items():
            elements[source]._relations[target] = MeshRelation(relation, elements[target])
        for order, numbers in metadata.patch_of.items():
            elements[order]._patches = _number_field(numbers)

    def get_position_as_numpy(self) -> Any:
        """The positions of the vertices, of shape (n, 3)."""
        return self._vert_position


class Mesh:
    """Meshes of triangles or tetrahedra, as kernels see them.

    >>> import numpy as np
    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    >>> mesh = ti.Mesh._create_instance(ti.Mesh.generate_meta((square, [[0, 1, 2], [0, 2, 3]]), relations=["VF"]))
    >>> mesh.verts.place({"n_faces": ti.i32})
    >>> @ti.kernel
    ... def count():
    ...     for v in mesh.verts:
    ...         v.n_faces = v.faces.size
    >>> count()
    >>> mesh.verts.n_faces.to_numpy().tolist()
    [2, 1, 2, 1]
    """

    @staticmethod
    def _create_instance(metadata: MeshMetadata) -> MeshInstance:
        """The mesh that metadata describe."""
        return MeshInstance(metadata)

    @staticmethod
    def load_meta(filename: str | os.PathLike[str]) -> MeshMetadata:
        """Reads a JSON file of MeshTaichi's patcher.

        Raises:
            OSError: The file cannot be read.
            ValueError: It holds something else, or is damaged.
        """
        try:
            with open(filename, encoding="utf-8") as file:
                return MeshMetadata(json.load(file))
        except json.JSONDecodeError as e:
            raise ValueError(f"{os.fspath(filename)} is not a JSON file: {e}") from None
        except ValueError as e:
            raise ValueError(f"{os.fspath(filename)}: {e}") from None

    @staticmethod
    def generate_meta(data: Any, relations: Iterable[str] | None = None) -> MeshMetadata:
        """Finds the elements of a mesh and their relations.

        Args:
            data: The content of a file of :meth:`load_meta`, as a dictionary; or the positions of the vertices and the
                corners of the triangles or tetrahedra, a pair of arrays; or the name of a file that ``meshio`` reads.
            relations: Those that are needed, such as ``["FV", "VF"]``; all if not given. Taichi's dictionary has its
                own.
        """
        if isinstance(data, dict):
            return MeshMetadata(data)
        if isinstance(data, (str, os.PathLike)):
            data = _read(data)
        return MeshMetadata.of(*data, relations=relations)


def _read(filename: str | os.PathLike[str]) -> tuple[Any, Any]:
    """The vertices of a file, and its tetrahedra, or triangles if it has none."""
    try:
        import meshio  # type: ignore[import-not-found]
    except ImportError:
        raise ImportError("meshes are read from files by meshio: pip install meshio") from None
    mesh = meshio.read(filename)
    for kind in ("tetra", "triangle"):
        if len(mesh.get_cells_type(kind)):
            return mesh.points, mesh.get_cells_type(kind)
    raise ValueError(f"{os.fspath(filename)} has neither tetrahedra nor triangles")


class MeshElement:
    """The attributes that the elements of a mesh will have."""

    def __init__(self) -> None:
        self.layout = Layout.SOA
        self.placed: list[tuple[dict[str, Any], bool, bool]] = []

    def place(self, members: dict[str, Any], reorder: bool = False, needs_grad: bool = False) -> None:
        """Adds attributes, see :meth:`MeshElementField.place`."""
        self.placed.append((dict(members), reorder, needs_grad))

    def _set_layout(self, layout: Any) -> None:
        self.layout = layout

    SOA = property(fset=lambda self, on: self._set_layout(Layout.SOA if on else Layout.AOS))
    AOS = property(fset=lambda self, on: self._set_layout(Layout.AOS if on else Layout.SOA))


class MeshBuilder:
    """Attributes first, the mesh later, as early versions of Taichi had it."""

    def __init__(self) -> None:
        self.verts, self.edges, self.faces, self.cells = (MeshElement() for _ in range(4))

    def build(self, metadata: MeshMetadata) -> MeshInstance:
        """The mesh, with the attributes."""
        out = MeshInstance(metadata)
        for name in NAMES:
            element = getattr(self, name)
            for members, reorder, needs_grad in element.placed:
                getattr(out, name).place(members, reorder, needs_grad, element.layout)
        return out


# The names that Taichi has left it.
_TriMesh = _TetMesh = MeshBuilder

__all__ = ["Mesh", "MeshBuilder", "MeshElementField", "MeshInstance", "MeshMetadata"]
