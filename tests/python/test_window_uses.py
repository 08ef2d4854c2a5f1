"""What is made of windows' frames: videos, and pictures in notebooks."""

from pathlib import Path

import numpy as np
import pytest
from test_notebook import notebook  # noqa: F401  A fixture.
from desk import window

import aerogel as ti


def test_videos_of_frames(drawn_by, tmp_path):  # noqa: F811
    image = pytest.importorskip("PIL.Image")
    w, gui = window(32, 24), ti.GUI("g", (32, 24), show_gui=False)
    for name in ("window", "gui"):
        video = ti.tools.VideoManager(str(tmp_path / name), framerate=10, automatic_build=False)
        for k in range(3):
            if name == "window":
                w.get_canvas().set_background_color((k / 2, 0, 0))
                w.get_canvas().triangles([[0, 0], [1, 0], [0, 0.5]], color=(0, 0, 1))
                video.write_frame(w.get_image_buffer_as_numpy())
                w.show()
            else:
                gui.clear((k * 255 // 2) << 16)
                gui.triangle((0, 0), (1, 0), (0, 0.5), color=0xFF)
                video.write_frame(gui.get_image())
                gui.show()
        video.make_video(gif=True, mp4=False)
        frames = sorted(Path(video.get_frame_directory()).iterdir())
        pictures = [ti.tools.imread(str(f)) for f in frames]
        assert [p.shape[:2] for p in pictures] == [(32, 24)] * 3
        # The second axis goes up: the triangle is below.
        assert [int(p[30, 22, 0]) for p in pictures] == pytest.approx([0, 127, 255], abs=1)
        assert all(p[2, 1, 2] == 255 and p[2, 22, 2] == 0 for p in pictures)
        with image.open(video.get_output_filename(".gif")) as film:
            assert film.n_frames == 3 and film.size == (32, 24)


def test_a_window_shows_its_frames_in_one_place(drawn_by, notebook):  # noqa: F811
    w = window(16, 8)
    for k in range(3):
        w.get_canvas().set_background_color((k / 2, 0, 0))
        w.show()
    assert len(notebook) == 1 and len(notebook[0].images) == 3
    png = w._repr_png_()
    Path("shown.png").write_bytes(png)
    assert (ti.tools.imread("shown.png") == np.array([255, 0, 0])).all()


def test_a_gui_shows_its_widgets_in_a_notebook(cpu, notebook):  # noqa: F811
    gui = ti.GUI("g", (64, 64))
    gui.slider("x", 0, 1)
    gui.show()
    Path("shown.png").write_bytes(gui._repr_png_())
    assert (ti.tools.imread("shown.png")[10, 60] == 0xCC).all() and len(notebook) == 1
