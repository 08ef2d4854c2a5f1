"""The GUI draws into an image; images are read and written."""

import numpy as np
import pytest

import aerogel as ti


def pixels(gui):
    return (gui.get_image()[..., :3] * 255 + 0.5).astype(np.uint8)


def test_shapes():
    gui = ti.GUI("shapes", res=(100, 80), background_color=0x102030)
    assert (pixels(gui) == [0x10, 0x20, 0x30]).all()
    gui.circle((0.5, 0.5), color=0xFF0000, radius=10)
    gui.rect((0.1, 0.9), (0.3, 0.7), color=0x00FF00)
    gui.triangle((0.8, 0.1), (0.9, 0.1), (0.85, 0.4), color=0x0000FF)
    gui.line((0, 0.02), (1, 0.02), radius=1, color=0xFFFFFF)
    gui.text("A", (0.02, 0.6), color=0xFFFF00)
    gui.arrow((0.6, 0.8), (0.1, 0.0))
    image = pixels(gui)
    assert image.shape == (100, 80, 3)
    assert image[50, 40].tolist() == [255, 0, 0]
    assert image[85, 12].tolist() == [0, 0, 255]
    assert image[50, 1].tolist() == [255, 255, 255]
    assert image[20, 72, 1] > 200
    # About the area of the disc is red.
    assert abs((image == [255, 0, 0]).all(-1).sum() - 314) < 40
    assert (image[:20] == [255, 255, 0]).all(-1).any()


def test_palette():
    gui = ti.GUI("palette", res=20, background_color=0)
    pos = np.array([[0.25, 0.25], [0.75, 0.75]])
    gui.circles(pos, radius=3, palette=[0xFF0000, 0x00FF00], palette_indices=np.array([1, 0]))
    image = pixels(gui)
    assert image[5, 5].tolist() == [0, 255, 0] and image[15, 15].tolist() == [255, 0, 0]
    with pytest.raises(ValueError, match="palette_indices"):
        gui.circles(pos, palette=[1, 2], palette_indices=np.array([0, 2]))


def test_images(tmp_path, rng):
    gui = ti.GUI("image", res=(30, 20))
    image = rng.random((30, 20, 3)).astype(np.float32)
    gui.set_image(image)
    gui.show(str(tmp_path / "a.png"))
    back = ti.tools.imread(str(tmp_path / "a.png"), channels=3)
    assert back.shape == (30, 20, 3)
    assert np.abs(back / 255.0 - image).max() < 0.003
    with pytest.raises(ValueError, match="30 by 20"):
        gui.set_image(np.zeros((20, 30)))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_imwrite(tmp_path, rng, channels):
    image = rng.integers(0, 256, (7, 5, channels)).astype(np.uint8)
    ti.tools.imwrite(image, str(tmp_path / "a.png"))
    assert (ti.tools.imread(str(tmp_path / "a.png")) == image).all()


def test_imresize():
    a = np.array([[0, 1], [2, 3]])
    assert ti.tools.imresize(a, 4).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]


def test_fields_are_images(cpu, tmp_path):
    x = ti.field(ti.f32, (16, 8))
    x[15, 7] = 1.0
    ti.tools.imwrite(x, str(tmp_path / "x.png"))
    assert ti.tools.imread(str(tmp_path / "x.png"))[15, 7, 0] == 255


def test_a_program_ends(monkeypatch, tmp_path):
    monkeypatch.setenv("AEROGEL_GUI_FRAMES", "3")
    gui = ti.GUI("frames", res=10)
    while gui.running:
        gui.show()
    assert gui.frame == 3
    assert gui.get_event(gui.ESCAPE, gui.EXIT) and gui.event.key == gui.EXIT
    with pytest.raises(SystemExit):
        gui.show()


def test_ply(tmp_path):
    writer = ti.tools.PLYWriter(num_vertices=3, num_faces=1)
    writer.add_vertex_pos([0, 1, 0], [0, 0, 1], [0, 0, 0])
    writer.add_faces([0, 1, 2])
    writer.export_frame_ascii(7, str(tmp_path / "mesh.ply"))
    lines = (tmp_path / "mesh_000007.ply").read_text().splitlines()
    assert lines[0] == "ply" and lines[-1] == "3 0 1 2"
    writer.export(str(tmp_path / "mesh.ply"))
    assert (tmp_path / "mesh.ply").read_bytes().endswith(bytes([3, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]))


def test_colours():
    assert ti.rgb_to_hex((1.0, 0.5, 0.0)) == 0xFF7F00
    assert ti.hex_to_rgb(0xFF0000) == (1.0, 0.0, 0.0)
