"""A volume of two solids, lit by a lamp, seen from two sides."""

import taichi as ti
from _client import run

ti.init(arch=ti.cpu)
from taichi_volume_renderer import Scene, canvas  # noqa: E402, it makes kernels as it is imported

smoke, color = canvas.empty_canvas(64)
canvas.fill_disk(smoke, color, ti.Vector([24.0, 30.0, 30.0]), 14.0, 20.0, ti.Vector([1.0, 0.4, 0.2]))
canvas.fill_rectangle(
    smoke, color, ti.Vector([36.0, 20.0, 20.0]), ti.Vector([12.0, 20.0, 24.0]), 10.0, ti.Vector([0.2, 0.5, 1.0])
)
places, lamps = ti.Vector.field(3, ti.f32, 1), ti.Vector.field(3, ti.f32, 1)
places[0], lamps[0] = [2.0, 1.0, 1.5], [8.0, 8.0, 8.0]
scene = Scene(smoke, color, places, lamps)
pictures = [ti.Vector.field(3, ti.f32, (320, 240)) for _ in range(2)]


def step():
    scene.update_light()
    for picture, angle in zip(pictures, (20.0, 140.0)):
        scene.set_camera_phi(angle)
        scene.set_camera_theta(30.0)
        scene.render(picture)


run(step, lambda: {str(k): p.to_numpy() for k, p in enumerate(pictures)}, ti.sync)
