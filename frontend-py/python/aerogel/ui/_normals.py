"""Normals of meshes whose vertices come without: of each vertex the mean of those of its triangles, large or small."""

from __future__ import annotations

import numpy as np

import aerogel as ti
from aerogel import _native
from aerogel.ui import _kept, _pixels

#: Fewer triangles have theirs sooner than a kernel is compiled.
_FEW = 20_000
# What has no area has no normal.
_LEAST = 1e-30


@ti.kernel
def _add(
    points: ti.types.ndarray(ti.f32, 2),
    corners: ti.types.ndarray(ti.i32, 2),
    base: ti.i32,
    normals: ti.types.ndarray(ti.f32, 2),
):
    for t in range(corners.shape[0]):
        corner = ti.Vector([corners[t, 0], corners[t, 1], corners[t, 2]]) + base
        at = ti.Matrix([[points[corner[k], axis] for axis in range(3)] for k in range(3)], ti.f32)
        ab = ti.Vector([at[1, axis] - at[0, axis] for axis in range(3)])
        ac = ti.Vector([at[2, axis] - at[0, axis] for axis in range(3)])
        normal = ab.cross(ac)
        size = normal.norm()
        if size > ti.f32(_LEAST):
            for k, axis in ti.static(ti.ndrange(3, 3)):
                normals[corner[k], axis] += normal[axis] / size


def _by_numpy(points: np.ndarray, corners: np.ndarray, out: np.ndarray) -> None:
    a, b, c = (points[corners[:, k]] for k in range(3))
    # Vertices that no index names may be anything.
    with np.errstate(all="ignore"):
        normals = np.cross(b - a, c - a)
        sizes = np.linalg.norm(normals, axis=1, keepdims=True)
        normals = np.where(sizes > _LEAST, normals / sizes, 0)
    for k in range(3):
        for axis in range(3):
            out[:, axis] += np.bincount(corners[:, k], normals[:, axis], len(points)).astype(np.float32)


def of_vertices(positions: bytes, indices: bytes, base: int) -> bytes:
    """The bytes of three f32 for each vertex: the direction is the normal's.

    Args:
        positions: The bytes of three f32 for each vertex.
        indices: The bytes of u32, three for each triangle.
        base: A number that is added to each index.
    """
    return _kept.known(indices, "normals", (positions, base), lambda: _of_vertices(positions, indices, base))


def _of_vertices(positions: bytes, indices: bytes, base: int) -> bytes:
    points = np.frombuffer(positions, np.float32).reshape(-1, 3)
    corners = np.frombuffer(indices, np.uint32)
    corners = corners[: len(corners) - len(corners) % 3].reshape(-1, 3)
    out = np.zeros_like(points)
    # `draw` says which index is wrong.
    if not corners.size or int(corners.min()) + base < 0 or int(corners.max()) + base >= len(points):
        return out.tobytes()
    if len(corners) < _FEW or not _pixels.may_run():
        _by_numpy(points, corners.astype(np.int64) + base, out)
    else:
        # Not as a launch of the program's, which others may watch, and which takes a seed from those that follow.
        _native.NativeKernel._launch(_add, (points, corners.view(np.int32), base, out), {}, None, 0)
    return out.tobytes()
