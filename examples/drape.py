"""A cloth falls over a ring, in a window (`--show`): meshes under two lamps; drag with the left button to look around.

Points at fixed distances, moved by position based dynamics, each by what all its neighbours want (Müller et al. 2007).
"""

import numpy as np
from common import run

import aerogel as ti
from aerogel.math import vec2, vec3

AROUND, TUBE, SIDE, DT = 0.42, 0.13, 1.5, 0.005
WAYS = [(s * k, s * l) for k, l in [(1, 0), (0, 1), (1, 1), (1, -1), (2, 0), (0, 2)] for s in (-1, 1)]


@ti.func
def outwards(x):
    """How far a point is outside the ring, and the way out."""
    along = vec2(x.x, x.z)
    middle = along / ti.max(along.norm(), 1e-6) * AROUND
    away = x - vec3(middle.x, 0, middle.y)
    return away.norm() - TUBE, away / ti.max(away.norm(), 1e-6)


@ti.data_oriented
class Cloth:
    """n x n points, where they were a step ago, and the triangles between them."""

    def __init__(self, n):
        self.n, self.width = n, SIDE / (n - 1)
        self.x, self.old, self.new, self.normal = (ti.Vector.field(3, float, (n, n)) for _ in range(4))
        self.color = ti.Vector.field(3, float, (n, n))
        i, j = np.mgrid[:n, :n] - (n - 1) / 2
        self.x.from_numpy(np.stack([i * self.width, 0.25 + 0.02 * np.sin(i + 2 * j), j * self.width], -1).astype("f4"))
        self.old.copy_from(self.x)
        stripes = (np.arange(n) * 12 // n % 2)[:, None, None]
        self.color.from_numpy(np.where(stripes, (0.86, 0.30, 0.22), (0.95, 0.87, 0.72)).repeat(n, 1).astype("f4"))
        at = np.arange(n * n).reshape(n, n)
        a, b, c, d = at[:-1, :-1], at[1:, :-1], at[:-1, 1:], at[1:, 1:]
        self.triangles = np.stack([a, b, c, c, b, d], -1).astype(np.int32)

    @ti.kernel
    def fall(self):
        for p in ti.grouped(self.x):
            x = self.x[p]
            self.x[p], self.old[p] = x + 0.995 * (x - self.old[p]) - DT**2 * vec3(0, 9.81, 0), x

    @ti.kernel
    def relax(self):
        """Each point moves as its distances to its neighbours want it, and leaves the ring and the floor."""
        for i, j in self.x:
            x, change = self.x[i, j], vec3(0.0)
            for way in ti.static(WAYS):
                k, l = i + way[0], j + way[1]
                if 0 <= k and k < self.n and 0 <= l and l < self.n:
                    d = self.x[k, l] - x
                    change += (1 - self.width * ti.sqrt(float(way[0] ** 2 + way[1] ** 2)) / d.norm()) * d
            x += change / 10
            far, way = outwards(x)
            if far < 0.012:
                x += (0.012 - far) * way + 0.3 * (self.old[i, j] - x - way * (self.old[i, j] - x).dot(way))
            x.y = ti.max(x.y, -0.55)
            self.new[i, j] = x
        for p in ti.grouped(self.x):
            self.x[p] = self.new[p]

    @ti.kernel
    def turn_normals(self):
        for i, j in self.x:
            low, high = ti.max(vec2(i, j) - 1, 0), ti.min(vec2(i, j) + 1, self.n - 1)
            across = self.x[int(high.x), j] - self.x[int(low.x), j]
            along = self.x[i, int(high.y)] - self.x[i, int(low.y)]
            self.normal[i, j] = along.cross(across).normalized()

    def step(self):
        self.fall()
        for _ in range(20):
            self.relax()


def ring(n, m):
    """The ring as a mesh: points, normals and triangles."""
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, n), np.linspace(0, 2 * np.pi, m), indexing="ij")
    normal = np.stack([np.cos(u) * np.cos(v), np.sin(v), np.sin(u) * np.cos(v)], -1)
    middle = AROUND * np.stack([np.cos(u), 0 * u, np.sin(u)], -1)
    at = np.arange(n * m).reshape(n, m)
    a, b, c, d = at[:-1, :-1], at[1:, :-1], at[:-1, 1:], at[1:, 1:]
    return middle + TUBE * normal, normal, np.stack([a, b, c, c, b, d], -1).astype(np.int32)


def main(small=False, show=False, frames=90):
    ti.init(arch=ti.cpu)
    cloth = Cloth(33 if small else 97)
    window = ti.ui.Window("drape", (240, 180) if small else (1280, 960), show_window=show)
    canvas, scene, camera = window.get_canvas(), window.get_scene(), ti.ui.Camera()
    canvas.set_background_color((0.13, 0.15, 0.20))
    camera.position(1.1, 0.95, 1.5)
    camera.lookat(0, -0.12, 0)
    points, normals, triangles = ring(96, 32)
    floor = np.array([[-3, -0.56, -3], [3, -0.56, -3], [3, -0.56, 3], [-3, -0.56, 3]])
    shown = 0
    while window.running and (show or shown < (25 if small else frames)):
        for _ in range(3):
            cloth.step()
        cloth.turn_normals()
        camera.track_user_inputs(window, movement_speed=0.03, hold_key=ti.ui.LMB)
        scene.set_camera(camera)
        scene.ambient_light((0.25, 0.25, 0.3))
        scene.point_light((1.5, 2.5, 1.0), (0.75, 0.7, 0.6))
        scene.point_light((-2.0, 1.5, 1.5), (0.25, 0.3, 0.45))
        scene.mesh(floor, indices=[0, 2, 1, 0, 3, 2], color=(0.32, 0.35, 0.42), two_sided=True)
        scene.mesh(points.reshape(-1, 3), triangles.reshape(-1), normals.reshape(-1, 3), color=(0.75, 0.72, 0.66))
        scene.mesh(cloth.x, cloth.triangles.reshape(-1), cloth.normal, per_vertex_color=cloth.color, two_sided=True)
        canvas.scene(scene)
        window.show()
        shown += 1
    x = cloth.x.to_numpy()
    strain = np.linalg.norm(np.diff(x, axis=0), axis=-1) / cloth.width - 1
    across = np.hypot(x[..., 0], x[..., 2]) - AROUND
    numbers = {"mean strain": np.abs(strain).mean(), "nearest to the ring": np.hypot(across, x[..., 1]).min() / TUBE}
    return window.get_image_buffer_as_numpy()[..., :3], numbers


if __name__ == "__main__":
    run(main)
