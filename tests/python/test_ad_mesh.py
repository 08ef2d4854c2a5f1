"""Gradients through loops over the elements of meshes."""

import numpy as np
import pytest

import aerogel as ti

N = 7


def fan():
    """Triangles around a point."""
    angles = np.linspace(0, 2 * np.pi, N, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles), 0.1 * np.arange(N)], -1)
    corners = np.array([[0, 1 + k, 1 + (k + 1) % N] for k in range(N)])
    return np.concatenate([[[0.1, 0.2, 0.3]], ring]), corners


def test_faces_gather_and_scatter(arch):
    """Faces read their corners and add to them; each vertex then overwrites what is its own."""
    points, corners = fan()
    mesh = ti.Mesh._create_instance(ti.Mesh.generate_meta((points, corners), ["FV", "VF"]))
    mesh.verts.place({"x": ti.types.vector(3, ti.f64), "w": ti.f64}, needs_grad=True)
    mesh.faces.place({"area": ti.f64}, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def areas():
        for f in mesh.faces:
            side, other = f.verts[1].x - f.verts[0].x, f.verts[2].x - f.verts[0].x
            f.area = side.cross(other).norm_sqr()
            for v in f.verts:
                v.w += f.area * v.x[2]

    @ti.kernel
    def total():
        for v in mesh.verts:
            v.w = ti.sin(v.w) * v.x[0]
            v.w *= v.w
            for f in v.faces:
                loss[None] += v.w * f.area

    def run():
        areas()
        total()

    def of(x):
        mesh.verts.x.from_numpy(x)
        mesh.verts.w.fill(0)
        loss[None] = 0
        run()
        return loss[None]

    mesh.verts.x.from_numpy(points)
    mesh.verts.w.fill(0)
    with ti.ad.Tape(loss):
        run()
    grad = mesh.verts.x.grad.to_numpy()
    for at in np.ndindex(points.shape):
        moved = []
        for by in (1e-6, -1e-6):
            x = points.copy()
            x[at] += by
            moved.append(of(x))
        assert grad[at] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-5, abs=1e-6)
