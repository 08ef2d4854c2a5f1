"""A level set in a narrow band around a mesh, repaired and measured by tensors that visit only the cells of the band.

The mesh is a file of triangles. A kernel makes the cells near them active and stores signed distances; what comes then,
the equation that makes distances of bent ones, curvature, area and volume, is statements over active cells.
"""

import tempfile
from pathlib import Path

import common
import numpy as np
from levelset import distance

import aerogel as ti
from aerogel.tensor import programs as p

BAND = 5.0  # Cells on both sides of the surface.


def write_sphere(path, radius, n_halvings=4):
    """An octahedron whose faces are cut into four again and again, as an .obj file."""
    corners = np.array([(1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)], float)
    faces = np.array([(a, b, c) for k in range(4) for a, b, c in [(k, (k + 1) % 4, 4), ((k + 1) % 4, k, 5)]])
    for _ in range(n_halvings):
        edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
        ends, at = np.unique(edges, axis=0, return_inverse=True)
        middles = corners[ends].sum(axis=1)
        x, y, z = np.split(at.ravel() + len(corners), 3)
        corners = np.concatenate([corners, middles / np.linalg.norm(middles, axis=1, keepdims=True)])
        a, b, c = faces.T
        faces = np.concatenate([np.stack(f, axis=1) for f in [(a, x, z), (x, b, y), (z, y, c), (x, y, z)]])
    lines = ["v {:.7f} {:.7f} {:.7f}\n".format(*c) for c in corners * radius]
    Path(path).write_text("".join(lines + ["f {} {} {}\n".format(*f) for f in faces + 1]))


def read_triangles(path):
    """The corners of the triangles in an .obj file."""
    lines = [line.split() for line in Path(path).read_text().splitlines()]
    corners = np.array([words[1:4] for words in lines if words[:1] == ["v"]], np.float32)
    faces = [[int(word.split("/")[0]) - 1 for word in words[1:4]] for words in lines if words[:1] == ["f"]]
    return corners[np.array(faces)]


@ti.kernel
def activate(near: ti.template(), side: ti.template(), corners: ti.types.ndarray(ti.math.vec3, ndim=2), last: int):
    """First how near the surface is; then, from the triangles that are nearest, on which side of it cells are."""
    for t in range(corners.shape[0]):
        a, b, c = corners[t, 0], corners[t, 1], corners[t, 2]
        low = ti.cast(ti.ceil(ti.min(a, b, c) - BAND), int)
        high = ti.cast(ti.floor(ti.max(a, b, c) + BAND), int) + 1
        for cell in ti.grouped(ti.ndrange((low.x, high.x), (low.y, high.y), (low.z, high.z))):
            inside = BAND - distance(ti.cast(cell, float), a, b, c)
            if inside > 0 and last == 0:
                ti.atomic_max(near[cell], inside)
            elif inside > 0 and inside > near[cell] - 1e-4:
                side[cell] += (cell - a).dot((b - a).cross(c - a).normalized())


def around(phi, at, axis):
    """The values on both sides of cells along an axis; where the band ends, it goes on by one."""
    here, ways = phi[at], [tuple(x + s * (k == axis) for k, x in enumerate(at)) for s in (-1, 1)]
    return [ti.tensor.where(phi[to] == 0, here + ti.tensor.sign(here), phi[to]) for to in ways]


def mending(phi, bent, n_steps):
    """Steps of dphi/dt = sign(phi) (1 - |grad phi|), which keep the surface and make distances of what is around it."""

    @p.program
    def mend():
        t = ti.tensor
        with p.loop(n_steps):
            at = p.indices(phi)
            here, slopes = phi[at], 0.0
            for axis in range(3):
                low, high = around(phi, at, axis)
                down, up = here - low, high - here
                outside = t.maximum(t.maximum(down, 0) ** 2, t.minimum(up, 0) ** 2)
                inside = t.maximum(t.minimum(down, 0) ** 2, t.maximum(up, 0) ** 2)
                slopes = slopes + t.where(bent[at] > 0, outside, inside)
            sign = bent[at] / t.sqrt(bent[at] ** 2 + slopes)
            phi[at] = here - 0.4 * sign * (t.sqrt(slopes) - 1)

    return mend


def measuring(phi, curvature, centre, radius):
    """What the cells say of the surface: its area, its volume, and how it is bent."""

    @p.program
    def measure():
        t = ti.tensor
        at = p.indices(phi)
        here, sides = phi[at], [around(phi, at, axis) for axis in range(3)]
        first = [(high - low) / 2 for low, high in sides]
        second = sum(low + high - 2 * here for low, high in sides)
        slope = t.sqrt(sum(f * f for f in first))
        curvature[at] = second  # Of a distance: the sum of both curvatures.
        near = t.abs(here) < 1.5  # There the smoothed step over the surface falls, like this:
        sheet = t.where(near, (1 + t.cos(np.pi / 1.5 * here)) / 3, 0)
        away = sum((x - c) * f for x, c, f in zip(at, centre, first))
        wrong = t.abs(here - (t.sqrt(sum((x - c) ** 2 for x, c in zip(at, centre))) - radius))
        area = (sheet * slope).sum()
        deviation = t.where(t.abs(here) < BAND - 2, t.abs(slope - 1), 0).max()
        return area, (sheet * away).sum() / 3, (sheet * second).sum() / area, t.where(near, wrong, 0).max(), deviation

    return measure


def main(small=False):
    """The band before and after it is mended, and its curvature; what is measured beside what a sphere has."""
    ti.init(arch=ti.cpu)
    n = 40 if small else 96
    radius, centre = 0.34 * n, (0.5 * n + 0.21, 0.5 * n - 0.13, 0.5 * n + 0.37)
    phi, bent, near, side, curvature = fields = [ti.field(ti.f32) for _ in range(5)]
    ti.root.pointer(ti.ijk, n // 8).bitmasked(ti.ijk, 8).place(*fields)
    with tempfile.TemporaryDirectory() as folder:
        write_sphere(f"{folder}/sphere.obj", radius, 3 if small else 5)
        corners = read_triangles(f"{folder}/sphere.obj") + np.array(centre, np.float32)
    activate(near, side, corners, 0)
    activate(near, side, corners, 1)

    @p.program
    def begin():
        at = p.indices(near)
        phi[at] = ti.tensor.sign(side[at]) * (BAND - near[at])
        return (at[0] * 0 + 1).sum()

    @p.program
    def bend():
        at = p.indices(phi)
        phi[at] = phi[at] * (1 + 0.6 * ti.tensor.sin(at[0] * 0.35) * ti.tensor.cos(at[1] * 0.3))
        bent[at] = phi[at]

    numbers = {"cells in the band": begin().item()}
    measure = measuring(phi, curvature, centre, radius)
    numbers["curvature"], curves = measure()[2].item() * radius / 2, curvature.to_numpy()[:, :, n // 2] * radius / 4
    bend()
    before, numbers["slope off before"] = phi.to_numpy()[:, :, n // 2], measure()[4].item()
    mending(phi, bent, 12 if small else 40)()
    area, volume, _, wrong, slope = (x.item() for x in measure())
    numbers |= {"slope off after": slope, "farthest from the sphere": wrong}
    numbers |= {"area": area / (4 * np.pi * radius**2), "volume": volume / (4 / 3 * np.pi * radius**3)}
    shown = np.concatenate([before / BAND, phi.to_numpy()[:, :, n // 2] / BAND, curves])[..., None]
    colors = common.palette((shown[..., 0] + 1) / 2, "14284b 2f6fb5 9fd0e6 f4f1e8 f0a860 c2502f 5b1622")
    return np.kron(np.where(shown == 0, 0.08, colors), np.ones((5, 5, 1))), numbers


if __name__ == "__main__":
    common.run(main)
