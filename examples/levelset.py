"""A narrow band around a mesh: distances are stored only near the surface, and their Laplacian is computed there.

pip install trimesh pymeshfix        # The reader, and the Stanford bunny.
"""

from pathlib import Path

import numpy as np
from common import lit, run

import aerogel as ti

BAND = 4.0  # Cells on both sides of the surface.


@ti.data_oriented
class LevelSet:
    """`near` is what a cell's distance to the surface lacks to the width of the band; so it is zero outside."""

    def __init__(self, resolution, kind="pointer"):
        self.near, self.laplacian = ti.field(float), ti.field(float)
        self.grid = getattr(ti.root, kind)(ti.ijk, resolution // 32)
        blocks = getattr(self.grid, kind)(ti.ijk, 4)
        blocks.dense(ti.ijk, 8).place(self.near)
        blocks.dense(ti.ijk, 8).place(self.laplacian)

    @ti.kernel
    def rasterize(self, corners: ti.types.ndarray(ti.math.vec3, ndim=2)):
        for t in range(corners.shape[0]):
            a, b, c = corners[t, 0], corners[t, 1], corners[t, 2]
            low = ti.cast(ti.ceil(ti.min(a, b, c) - BAND), int)
            high = ti.cast(ti.floor(ti.max(a, b, c) + BAND), int) + 1
            for cell in ti.grouped(ti.ndrange((low.x, high.x), (low.y, high.y), (low.z, high.z))):
                inside = BAND - distance(ti.cast(cell, float), a, b, c)
                if inside > 0:
                    ti.atomic_max(self.near[cell], inside)

    @ti.kernel
    def sweep(self) -> int:
        """The Laplacian of all cells of the band; gives how many there are."""
        n = 0
        for i, j, k in self.near:
            if self.near[i, j, k] > 0:
                x = self.near[i - 1, j, k] + self.near[i + 1, j, k]
                y = self.near[i, j - 1, k] + self.near[i, j + 1, k]
                z = self.near[i, j, k - 1] + self.near[i, j, k + 1]
                self.laplacian[i, j, k] = x + y + z - 6 * self.near[i, j, k]
                n += 1
        return n

    @ti.kernel
    def front(self, depth: ti.types.ndarray(float, ndim=2)):
        for i, j, k in self.near:
            if self.near[i, j, k] > BAND - 1:
                ti.atomic_max(depth[i, j], k + self.near[i, j, k] - BAND)


@ti.func
def distance(p, a, b, c):
    """From a point to a triangle: to its plane if the point lies above it, otherwise to the nearest edge."""
    n = (b - a).cross(c - a)
    away = ti.min(to_edge(p, a, b), to_edge(p, b, c), to_edge(p, c, a))
    if n.cross(b - a).dot(p - a) >= 0 and n.cross(c - b).dot(p - b) >= 0 and n.cross(a - c).dot(p - c) >= 0:
        away = ti.min(away, abs(n.dot(p - a)) / n.norm(1e-12))
    return away


@ti.func
def to_edge(p, a, b):
    return (a + ti.math.clamp((p - a).dot(b - a) / ti.max((b - a).norm_sqr(), 1e-12), 0, 1) * (b - a) - p).norm()


def bunny(resolution):
    """The corners of the Stanford bunny's triangles, scaled to the grid."""
    import pymeshfix
    import trimesh

    corners = np.asarray(trimesh.load_mesh(Path(pymeshfix.__path__[0]) / "examples/StanfordBunny.ply").triangles)
    low, high = corners.min((0, 1)), corners.max((0, 1))
    return ((corners - (low + high) / 2) * (0.8 * resolution / (high - low).max()) + resolution / 2).astype(np.float32)


def main(small=False, resolution=512, kind="pointer"):
    """The bunny from the front; ``kind`` is `pointer`, or `dense` to compare with a dense grid."""
    ti.init(arch=ti.cpu)
    n = 96 if small else resolution
    band, depth = LevelSet(n, kind), np.zeros((n, n), np.float32)
    band.rasterize(bunny(n))
    numbers = {
        "cells": band.sweep(),
        "MiB of sparse nodes": sum(node["held_bytes"] for node in band.grid.stats()) / 2**20,
    }
    band.front(depth)
    image = np.where(depth > 0, 0.3 + 0.7 * np.clip(lit(depth, (0.3, 0.5, 0.8)), 0, 1), 0.1)
    return np.repeat(image[..., None], 3, 2), numbers


if __name__ == "__main__":
    run(main)
