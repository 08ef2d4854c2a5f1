"""Three-dimensional scenes."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from aerogel.ui import _arrays, _normals
from aerogel.ui.camera import Camera

if TYPE_CHECKING:
    from aerogel.ui.window import Window


class Scene:
    """Objects in space, lights and a camera.

    Objects and lights are added again in every frame, in any order; `Canvas.scene` draws them. Positions, colours,
    radii, normals and indices may be fields, arrays, NumPy arrays or lists. An object is lit by the ambient light
    and, by Lambert's law, by each point light.
    """

    def __init__(self) -> None:
        self._camera = Camera()
        self._ambient = (0.1, 0.1, 0.1)
        self._clear()

    def _clear(self) -> None:
        self._things: list[tuple[str, bytes, dict[str, Any]]] = []
        self._lights: list[tuple[tuple[float, float, float], tuple[float, float, float]]] = []

    def set_camera(self, camera: Camera) -> None:
        """Sets the camera."""
        if not isinstance(camera, Camera):
            raise TypeError(f"set_camera takes a ti.ui.Camera, not {type(camera).__name__}")
        self._camera = camera

    def ambient_light(self, color: Any) -> None:
        """Sets the ambient light, for this frame and later ones; the default is 0.1 of white."""
        self._ambient = _arrays.color(color)[:3]

    def point_light(self, pos: Any, color: Any) -> None:
        """Adds a point light; there may be 16."""
        self._lights.append((_arrays.vector(pos, "pos"), _arrays.color(color)[:3]))

    def particles(
        self,
        centers: Any,
        radius: float,
        color: Any = (0.5, 0.5, 0.5),
        per_vertex_color: Any = None,
        per_vertex_radius: Any = None,
        index_offset: int = 0,
        index_count: int | None = None,
    ) -> None:
        """Adds balls.

        Args:
            centers: Vectors of three numbers, or of two in the plane where z is 0.
            radius: The radius of all.
            color: The colour of all.
            per_vertex_color: A colour for each instead.
            per_vertex_radius: A radius for each instead.
            index_offset: The first one that is drawn.
            index_count: The number of drawn ones; by default all that follow.

        Raises:
            ValueError: A centre that is drawn is NaN or infinite.
        """
        how = _arrays.appearance(color, per_vertex_color, None)
        positions = _arrays.points(centers, 3, "centers")
        if per_vertex_radius is not None:
            how["extra"] = _arrays.radii(per_vertex_radius, positions, 3)
        first, number = _arrays.part("particles", index_offset, index_count, len(positions) // 12)
        how.update(size=float(radius), first=first, number=number)
        _arrays.check_places("centers", positions, 3, how)
        self._things.append(("particles", positions, how))

    def lines(
        self,
        vertices: Any,
        width: float,
        indices: Any = None,
        color: Any = (0.5, 0.5, 0.5),
        per_vertex_color: Any = None,
        vertex_offset: int = 0,
        vertex_count: int | None = None,
        index_offset: int = 0,
        index_count: int | None = None,
    ) -> None:
        """Adds lines.

        Args:
            vertices: Vectors of three numbers; each two make a line.
            width: The width of all in pixels.
            indices: The numbers of vertices, each two of which make a line instead.
            color: The colour of all.
            per_vertex_color: A colour for each vertex instead.
            vertex_offset: A number that is added to indices; without indices, the first vertex.
            vertex_count: How many vertices are drawn, without indices.
            index_offset: The first index.
            index_count: How many indices there are.

        Raises:
            ValueError: A vertex that is drawn is NaN or infinite.
        """
        how = _arrays.appearance(color, per_vertex_color, indices)
        positions = _arrays.points(vertices, 3, "vertices")
        part = _part("space_lines", positions, how, vertex_offset, vertex_count, index_offset, index_count)
        how.update(size=float(width), **part)
        _arrays.check_places("vertices", positions, 3, how)
        self._things.append(("space_lines", positions, how))

    def mesh(
        self,
        vertices: Any,
        indices: Any = None,
        normals: Any = None,
        color: Any = (0.5, 0.5, 0.5),
        per_vertex_color: Any = None,
        two_sided: bool = False,
        vertex_offset: int = 0,
        vertex_count: int | None = None,
        index_offset: int = 0,
        index_count: int | None = None,
        show_wireframe: bool = False,
    ) -> None:
        """Adds triangles.

        Args:
            vertices: Vectors of three numbers; each three make a triangle.
            indices: The numbers of vertices, each three of which make a triangle instead.
            normals: A normal for each vertex; by default the mean of those of its triangles, whatever their size.
            color: The colour of all.
            per_vertex_color: A colour for each vertex instead.
            two_sided: Whether back faces are lit like front faces.
            vertex_offset: A number that is added to indices; without indices, the first vertex.
            vertex_count: How many vertices are drawn, without indices.
            index_offset: The first index.
            index_count: How many indices there are.
            show_wireframe: Whether the edges are drawn instead of the insides.

        Raises:
            ValueError: A vertex that is drawn is NaN or infinite.
        """
        self.mesh_instance(
            vertices, indices, normals, color, per_vertex_color, two_sided, None, 0, None,
            vertex_offset, vertex_count, index_offset, index_count, show_wireframe,
        )  # fmt: skip

    def mesh_instance(
        self,
        vertices: Any,
        indices: Any = None,
        normals: Any = None,
        color: Any = (0.5, 0.5, 0.5),
        per_vertex_color: Any = None,
        two_sided: bool = False,
        transforms: Any = None,
        instance_offset: int = 0,
        instance_count: int | None = None,
        vertex_offset: int = 0,
        vertex_count: int | None = None,
        index_offset: int = 0,
        index_count: int | None = None,
        show_wireframe: bool = False,
    ) -> None:
        """Adds a copy of a mesh for each matrix; the other arguments are those of :func:`mesh`.

        Args:
            transforms: Matrices of shape (4, 4) for column vectors, one for each copy.
            instance_offset: The first matrix.
            instance_count: The number of matrices.
        """
        positions = _arrays.points(vertices, 3, "vertices")
        how = _arrays.appearance(color, per_vertex_color, indices)
        how.update(_part("mesh", positions, how, vertex_offset, vertex_count, index_offset, index_count))
        _arrays.check_places("vertices", positions, 3, how)
        if transforms is not None:
            matrices = _arrays.array(transforms)
            if matrices.ndim < 2 or matrices.shape[-2:] != (4, 4):
                raise ValueError(f"transforms are matrices of shape (4, 4); the shape is {matrices.shape}")
            how["transforms"] = _arrays.numbers(matrices, "transforms")
            first, number = _arrays.part("instances", instance_offset, instance_count, matrices.size // 16)
            how.update(first_copy=first, n_copies=number)
        if show_wireframe:
            self._wireframe(positions, how)
            return
        if normals is not None:
            how["extra"] = _arrays.points(normals, 3, "normals")
        elif indices is not None:
            how["extra"] = _normals.of_vertices(positions, how["indices"], how["base"])
        self._things.append(("mesh", positions, {**how, "two_sided": bool(two_sided)}))

    def _wireframe(self, positions: bytes, how: dict[str, Any]) -> None:
        first, number = how.pop("first"), how.pop("number")
        if "indices" in how:
            # Afterwards they are those of the edges.
            _arrays.check_indices(how["indices"], first, number, how["base"], len(positions) // 12)
            corners = np.frombuffer(how.pop("indices"), np.uint32)
        else:
            corners = np.arange(len(positions) // 12, dtype=np.uint32)
        corners = corners[first:][:number].reshape(-1, 3)
        edges = np.sort(corners[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), 1)
        how["indices"] = np.unique(edges, axis=0).tobytes()
        points = np.frombuffer(positions, np.float32).reshape(-1, 3)
        moved = [points]
        if "transforms" in how:
            matrices = np.frombuffer(how.pop("transforms"), np.float32).reshape(-1, 4, 4)
            at, copies = how.pop("first_copy"), how.pop("n_copies")
            moved = [points @ m[:3, :3].T + m[:3, 3] for m in matrices[at:][:copies]]
        for p in moved:
            self._things.append(("space_lines", np.ascontiguousarray(p, np.float32).tobytes(), {**how, "size": 1.0}))

    def _draw(self, window: Window) -> None:
        view = window._view
        width, height = view.size
        things, lights, ambient = self._things, self._lights, self._ambient
        self._clear()
        seen, shown = self._camera.get_view_matrix(), self._camera.get_projection_matrix(width / height)
        eye = [float(x) for x in self._camera.curr_position]
        view.world(seen.T.tolist(), shown.T.tolist(), eye, ambient, lights)
        for kind, positions, how in things:
            _arrays.draw(view, kind, positions, **how)


def _part(
    kind: str,
    positions: bytes,
    how: dict[str, Any],
    vertex_offset: int,
    vertex_count: int | None,
    index_offset: int,
    index_count: int | None,
) -> dict[str, Any]:
    """Which vertices, or which indices, are drawn."""
    what = "indices" if "indices" in how else "vertices"
    if "indices" not in how:
        first, number = _arrays.part(what, vertex_offset, vertex_count, len(positions) // 12)
        _arrays.check_whole(kind, what, number)
        return {"base": 0, "first": first, "number": number}
    first, number = _arrays.part(what, index_offset, index_count, len(how["indices"]) // 4)
    _arrays.check_whole(kind, what, number)
    return {"base": operator.index(vertex_offset), "first": first, "number": number}
