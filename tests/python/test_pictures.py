"""Taichi's example programs with windows, unchanged: they draw what they drew when it was looked at."""

import numpy as np
import pytest
from pictures import EXAMPLES, PART, PROGRAMS, difference, draw, kept, smaller
from desk import needs_vulkan

import aerogel as ti
from aerogel.ui import _backend

image_module = pytest.importorskip("PIL.Image")
MPM = "ggui_examples/mpm128_ggui.py"
needs_programs = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="Taichi's example programs are not there")


@needs_programs
@needs_vulkan
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_draw_what_they_drew(program):
    found = draw(program, PROGRAMS[program])
    with image_module.open(kept(program)) as picture:
        assert difference(found, np.asarray(picture.convert("RGB"))) <= PART


def test_what_counts_as_a_difference():
    """Another picture is one, noise and a shifted edge are none."""
    x, y = np.meshgrid(np.arange(512), np.arange(512))

    def disc(shift, noise=0):
        rows = np.where(((x - 256 - shift) ** 2 + (y - 256) ** 2 < 150**2)[..., None], (200, 120, 40), (20, 30, 40))
        rows = rows + np.random.default_rng(1).integers(-noise, noise + 1, rows.shape)
        return smaller(image_module.fromarray(rows.clip(0, 255).astype(np.uint8)))

    first = disc(0)
    assert difference(first, disc(0, noise=8)) == 0 and difference(first, disc(0.1)) <= PART
    assert difference(first, disc(12)) > PART and difference(first, first[::-1, :, ::-1]) > PART


@needs_programs
@pytest.mark.parametrize("program", ["rendering/simple_texture.py", "ggui_examples/fem128_ggui.py", MPM])
def test_without_vulkan_the_picture_is_the_same(program):
    """Images, discs, lines and triangles in software: a pixel in fifty may differ, which is more than do."""
    found = draw(program, PROGRAMS[program], without_vulkan=True)
    with image_module.open(kept(program)) as picture:
        assert difference(found, np.asarray(picture.convert("RGB"))) <= 0.02


@needs_vulkan
@pytest.mark.parametrize("lamp, part", [(0.0, 0.03), (0.7, 0.15)])
def test_balls_without_vulkan(cpu, monkeypatch, lamp, part):
    """Balls lie where they lie, and hide each other so; under a lamp a painted one has the light of its middle all over."""
    rng = np.random.default_rng(1)
    centers = rng.uniform(-1, 1, (60, 3)).astype(np.float32)
    colors, radii = rng.uniform(0.3, 1, (60, 3)), rng.uniform(0.03, 0.15, 60)
    pictures = []
    for viz in (_backend._viz, lambda: (None, "this test is without")):
        monkeypatch.setattr(_backend, "_viz", viz)
        window = ti.ui.Window("balls", (512, 384), show_window=False)
        scene, camera = window.get_scene(), ti.ui.Camera()
        camera.position(0.5, 1, 3.5)
        camera.lookat(0, 0, 0)
        scene.set_camera(camera)
        scene.ambient_light((1 - lamp,) * 3)
        scene.point_light((0.5, 1, 3.5), (lamp,) * 3)
        scene.particles(centers, radius=0.1, per_vertex_color=colors, per_vertex_radius=radii)
        window.get_canvas().scene(scene)
        rows = window.get_image_buffer_as_numpy()[..., :3].swapaxes(0, 1)[::-1]
        pictures.append(smaller(image_module.fromarray((rows * 255).astype(np.uint8))))
    assert pictures[0].std() > 20
    assert difference(*pictures) <= part
