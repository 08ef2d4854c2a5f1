"""The narrow band around a mesh: distances are kept near the surface only, and a Laplacian is swept over them.

pip install trimesh pymeshfix        # The reader, and the Stanford bunny.
python examples/levelset.py --resolution 512 --out bunny.png
python examples/levelset.py --resolution 256 --compare      # Against a dense grid.
"""

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np

import aerogel as ti

BAND = 4.0  # Cells on both sides of the surface.


@ti.data_oriented
class LevelSet:
    """`near` is what a cell's distance to the surface lacks to the width of the band; so it is zero outside."""

    def __init__(self, resolution, kind="pointer"):
        self.near, self.laplacian = ti.field(float), ti.field(float)
        self.grid = getattr(ti.root, kind)(ti.ijk, resolution // 32)
        blocks = getattr(self.grid, kind)(ti.ijk, 4)
        for field in (self.near, self.laplacian):
            blocks.dense(ti.ijk, 8).place(field)

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
    def sweep(self):
        for i, j, k in self.near:
            if self.near[i, j, k] > 0:
                x = self.near[i - 1, j, k] + self.near[i + 1, j, k]
                y = self.near[i, j - 1, k] + self.near[i, j + 1, k]
                z = self.near[i, j, k - 1] + self.near[i, j, k + 1]
                self.laplacian[i, j, k] = x + y + z - 6 * self.near[i, j, k]

    @ti.kernel
    def cells(self) -> int:
        n = 0
        for cell in ti.grouped(self.near):
            n += self.near[cell] > 0
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
    import trimesh

    package = importlib.util.find_spec("pymeshfix")
    assert package is not None and package.origin is not None, "pip install pymeshfix"
    mesh = trimesh.load_mesh(Path(package.origin).parent / "examples/StanfordBunny.ply")
    corners = np.asarray(mesh.triangles)
    low, high = corners.min((0, 1)), corners.max((0, 1))
    return ((corners - (low + high) / 2) * (0.8 * resolution / (high - low).max()) + resolution / 2).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resolution", type=int, default=512)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--out", default="bunny.png")
    parser.add_argument("--small", action="store_true", help="a resolution of 96")
    args = parser.parse_args()
    if args.small:
        args.resolution = 96
    ti.init(arch=ti.cpu)
    corners = bunny(args.resolution)
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum() / 2
    for kind in ["pointer", "dense"] if args.compare else ["pointer"]:
        band, times = LevelSet(args.resolution, kind), []
        band.rasterize(corners)
        for _ in range(12):
            begin = time.perf_counter()
            band.sweep()
            times.append(time.perf_counter() - begin)
        cells, held = band.cells(), sum(node["held_bytes"] for node in band.grid.stats())
        print(f"{kind}: {cells} cells, {cells / (2 * BAND * area):.3f} of the band's volume by the mesh's area")
        print(f"  a sweep takes {1e3 * np.median(times):.1f} ms; the sparse nodes hold {held / 2**20:.0f} MiB")
        depth = np.zeros((args.resolution,) * 2, np.float32)
        band.front(depth)
        slope = np.stack(np.gradient(-depth), -1)
        light = np.clip((slope @ [0.3, 0.5] + 0.8) / np.sqrt((slope**2).sum(-1) + 1), 0, 1)
        ti.tools.imwrite(np.where(depth > 0, 0.3 + 0.7 * light, 0.1), args.out)


if __name__ == "__main__":
    main()
