"""The GUI draws into an image; images are read and written."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti


def pixels(gui):
    return (gui.get_image()[..., :3] * 255 + 0.5).astype(np.uint8)


ORACLE = Path(__file__).parent.parent / "oracle"
# The colours of contours are the table of 256 that matplotlib has, rounded once more.
TOLERANCE = {"contour": 2, "normalized contour": 2}


def test_pictures_are_taichis(tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, ORACLE / "draw.py", "aerogel", tmp_path / "drawn.npz"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    want, got = np.load(ORACLE / "digests" / "drawn.npz"), np.load(tmp_path / "drawn.npz")
    assert got.files == want.files
    for name in want.files:
        off = np.abs(got[name].astype(int) - want[name])
        assert off.max() <= TOLERANCE.get(name, 1), name


def test_shapes():
    gui = ti.GUI("shapes", res=(100, 80), background_color=0x102030)
    assert (pixels(gui) == [0x10, 0x20, 0x30]).all()
    gui.circle((0.5, 0.5), color=0xFF0000, radius=10)
    gui.rect((0.1, 0.9), (0.3, 0.7), radius=2, color=0x00FF00)
    gui.triangle((0.8, 0.1), (0.9, 0.1), (0.85, 0.4), color=0x0000FF)
    gui.line((0, 0.02), (1, 0.02), radius=2, color=0xFFFFFF)
    gui.text("A", (0.02, 0.6), color=0xFFFF00)
    gui.arrow((0.6, 0.8), (0.1, 0.0))
    image = pixels(gui)
    assert image.shape == (100, 80, 3)
    assert image[50, 40].tolist() == [255, 0, 0]
    assert image[85, 12].tolist() == [0, 0, 255]
    assert image[50, 1].tolist() == [255, 255, 255]
    assert image[20, 72, 1] > 200
    # About the area of the disc is red, but for its edge.
    assert abs((image == [255, 0, 0]).all(-1).sum() - 254) < 40
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
    back = ti.tools.imread(str(tmp_path / "a.png"))
    assert back.shape == (30, 20, 3)
    assert np.abs(back / 255.0 - image).max() < 0.003
    with pytest.raises(ValueError, match="30 by 20"):
        gui.set_image(np.zeros((20, 30)))


def test_a_program_ends(monkeypatch, tmp_path):
    monkeypatch.setenv("AEROGEL_GUI_FRAMES", "3")
    gui = ti.GUI("frames", res=10)
    while gui.running:
        gui.show()
    assert gui.frame == 3
    assert gui.get_event(gui.ESCAPE, gui.EXIT) and gui.event.key == gui.EXIT
    with pytest.raises(SystemExit):
        gui.show()


def test_colours():
    assert ti.rgb_to_hex((1.0, 0.5, 0.0)) == 0xFF7F00
    assert ti.hex_to_rgb(0xFF0000) == (1.0, 0.0, 0.0)


def test_positions_may_be_fields_arrays_or_lists(cpu):
    points = np.array([[0.25, 0.25], [0.75, 0.5]], np.float32)
    pictures = []
    field, array = ti.Vector.field(2, ti.f32, 2), ti.Vector.ndarray(2, ti.f32, 2)
    radius, indices = ti.field(ti.f32, 2), ti.ndarray(ti.i32, 2)
    field.from_numpy(points)
    array.from_numpy(points)
    radius.fill(3)
    for pos in (points, points.tolist(), field, array):
        gui = ti.GUI("points", res=20)
        gui.circles(pos, radius=radius, palette=[0xFF0000, 0xFF], palette_indices=indices)
        pictures.append(pixels(gui))
        assert pictures[-1][5, 5].tolist() == [255, 0, 0]
        assert (pictures[-1] == pictures[0]).all()


def test_nan_is_black_in_contours():
    from aerogel.gui import contour_colors

    values = np.array([[np.nan, -np.inf, np.inf], [2.0, 3.0, 4.0]], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = contour_colors(values, normalize=True)
        assert not contour_colors(np.full((2, 2), np.nan), normalize=True).any()
        wide = contour_colors(np.array([[-3e38, 0, 3e38]], np.float32), normalize=True)
    expected = contour_colors(np.array([[0, 0, 1], [0, 0.5, 1]]))
    assert (made[0, 0] == 0).all() and (made[0, 1:] == expected[0, 1:]).all() and (made[1] == expected[1]).all()
    assert (wide[0] == contour_colors(np.array([[0, 0.5, 1]]))[0]).all()


def test_what_is_far_away_or_no_number_is_not_drawn():
    gui = ti.GUI("far", res=16)
    far = np.array([[1e30, 0.5], [np.nan, 0.5], [-5.0, 2.0], [np.inf, -np.inf]])
    with np.errstate(all="ignore"):
        gui.circles(far, radius=3)
        gui.lines(far[:2], far[2:], radius=2)
        gui.triangles(far, far, far[::-1])
        gui.circle((0.5, 0.5), radius=0)
        gui.circle((0.5, 0.5), radius=-1)
        gui.circles(np.zeros((0, 2)))
    assert not pixels(gui).any()
    # A shape that is larger than the picture covers it.
    gui.circle((0.5, 0.5), radius=1e9, color=0xFF)
    assert (pixels(gui) == [0, 0, 255]).all()
    gui.triangle((-1e6, -1e6), (1e6, -1e6), (0, 1e6), color=0xFF00)
    assert (pixels(gui) == [0, 255, 0]).all()


P = np.zeros((5, 2))


@pytest.mark.parametrize(
    "draw,text",
    [
        (lambda g: g.circles(np.zeros((5, 3))), r"shape \(n, 2\), not \(5, 3\)"),
        (lambda g: g.circles(P, radius=np.ones(3)), "each of 5 shapes"),
        (lambda g: g.circles(P, color=[1, 2]), "each of 5 shapes"),
        (lambda g: g.circles(P, palette=[1, 2]), "palette needs palette_indices"),
        (lambda g: g.circles(P, palette=[1], palette_indices=[0, 0]), "5 integers"),
        (lambda g: g.circles(P, palette=[1], palette_indices=[-1] * 5), "between 0 and 0"),
        (lambda g: g.circle((1, 2, 3)), "two coordinates"),
        (lambda g: g.circle("ab"), "two coordinates"),
        (lambda g: g.lines(P, P[:3]), "5 beginnings and 3 ends"),
        (lambda g: g.triangles(P, P, P[:3]), "5, 5 and 3 corners"),
        (lambda g: g.arrows(P, P[:3]), "5 positions and 3 directions"),
        (lambda g: g.arrow_field(np.zeros((4, 4, 3))), r"\(4, 4, 3\)"),
        (lambda g: g.point_field(np.zeros(4)), r"\(4,\)"),
        (lambda g: g.vector_field(np.zeros((4, 4))), r"\(4, 4\)"),
        (lambda g: g.vector_field(np.zeros((4, 4, 2)), arrow_spacing=0), "arrow_spacing"),
        (lambda g: g.contour(np.zeros((4, 4, 2))), "two axes"),
        (lambda g: g.set_image(np.zeros((16, 8))), "16 by 8, the GUI 16 by 16"),
        (lambda g: g.slider("s", 2, 1), "minimum 2 above its maximum 1"),
        (lambda g: setattr(g, "fps_limit", 0), "fps_limit"),
        (lambda g: ti.GUI("g", res=(0, 4)), "res must be"),
        (lambda g: ti.GUI("g", res=(1.5, 4)), "res must be"),
        (lambda g: ti.GUI("g", res=(4, 4, 4)), "res must be"),
    ],
)
def test_bad_input(draw, text):
    gui = ti.GUI("bad", res=16)
    with pytest.raises(ValueError, match=text):
        draw(gui)
    assert not pixels(gui).any()


def test_signed_integers_are_no_image():
    with pytest.raises(TypeError, match="int32"):
        ti.GUI("ints", res=4).set_image(np.zeros((4, 4), np.int32))


def test_arrows_have_no_other_options():
    with pytest.raises(TypeError, match="colour"):
        ti.GUI("arrows", res=4).arrow((0, 0), (1, 1), colour=3)


def test_widgets_without_a_window():
    gui = ti.GUI("widgets", res=8)
    slider, label = gui.slider("speed", 1, 10, step=1), gui.label("score")
    assert (slider.value, label.value) == (1, 0)
    slider.value += 3
    label.value += 2.5
    assert (slider.value, label.value) == (4, 2.5)
    assert gui.button("Go") == "WidgetButton_Go" and gui.button("Go", "go") == "go"
    assert not gui.get_event("go") and list(gui.get_events()) == []
    assert not gui.is_pressed("a", gui.LMB) and gui.get_cursor_pos() == (0, 0)
    gui.fps_limit = 30
    assert gui.fps_limit == 30 and gui.running
    gui.close()
    assert not gui.running


def test_event_filters():
    escape = ti.GUI.Event(ti.GUI.PRESS, ti.GUI.ESCAPE)
    for wanted, passes in (
        ((), True),
        ((ti.GUI.PRESS,), True),
        ((ti.GUI.RELEASE, ti.GUI.ESCAPE), True),
        (((ti.GUI.PRESS, "a"),), False),
        (((ti.GUI.PRESS, "a", ti.GUI.ESCAPE),), True),
        ((lambda e: e.key == "a",), False),
    ):
        assert ti.GUI.EventFilter(*wanted).match(escape) is passes


@pytest.mark.parametrize("suffix", ["png", "gif", "jpg", "bmp"])
def test_show_writes_any_format(tmp_path, suffix):
    image = pytest.importorskip("PIL.Image")
    gui = ti.GUI("formats", res=(12, 8), background_color=0xFF0000)
    gui.show(str(tmp_path / f"a.{suffix}"))
    with image.open(tmp_path / f"a.{suffix}") as file:
        assert file.size == (12, 8) and file.convert("RGB").getpixel((5, 5))[0] > 250


def test_cook_image():
    gui = ti.GUI("cook", res=4)
    assert gui.cook_image(np.full((2, 2), 1.0)).tolist() == [[[1, 1, 1, 1]] * 2] * 2
    assert gui.cook_image(np.full((2, 2, 2), 255, np.uint8))[0, 0].tolist() == [1, 1, 0, 1]
    assert gui.cook_image(np.zeros((2, 2, 4)))[0, 0].tolist() == [0, 0, 0, 0]


def test_a_picture_that_memory_does_not_hold():
    with pytest.raises(MemoryError, match="1048576 by 1048576"):
        ti.GUI("large", (1 << 20, 1 << 20))


@pytest.mark.parametrize("channels", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [ti.f32, ti.u8, ti.u16])
def test_large_images_are_as_small_ones(cpu, dtype, channels):
    """They go through a kernel; what is drawn is the same, bytes and special values too."""
    from aerogel.tools.image import to_pixels

    res = (260, 190)
    rng = np.random.default_rng(4)
    shape = res if channels is None else (*res, channels)
    values = rng.uniform(-0.2, 1.2, shape).astype(np.float32)
    values.reshape(-1)[:4] = np.nan, np.inf, -np.inf, 0.5
    if dtype != ti.f32:
        name = np.uint8 if dtype == ti.u8 else np.uint16
        values = rng.integers(0, np.iinfo(name).max + 1, shape).astype(name)
    field = ti.field(dtype, res) if channels is None else ti.Vector.field(channels, dtype, res)
    field.from_numpy(values)
    expected = np.zeros((*res, 3), np.uint8)
    expected[..., : 2 if channels == 2 else 3] = to_pixels(values)[..., :3]
    gui = ti.GUI("large", res, show_gui=False)
    array = ti.ndarray(dtype, res) if channels is None else ti.Vector.ndarray(channels, dtype, res)
    array.from_numpy(values)
    for image in (field, array, values, values, np.asfortranarray(values)):
        gui.set_image(image)
        assert (pixels(gui) == expected).all()
        gui.circle((0.5, 0.5), 0xFF0000, 20)
        assert (pixels(gui)[130, 95] == (255, 0, 0)).all()
        gui.show()
    assert gui.get_image().shape == (*res, 4) and (gui.get_image()[..., 3] == 1).all()
    # Before there is a program, and of another size.
    ti.reset()
    gui.set_image(values)
    assert (pixels(gui) == expected).all()
    with pytest.raises(ValueError, match="the image is 190 by 260, the GUI 260 by 190"):
        gui.set_image(np.zeros((190, 260), np.float32))


def test_a_large_image_that_is_set_is_there_to_be_changed(cpu):
    gui = ti.GUI("large", (256, 256), show_gui=False)
    gui.set_image(np.full((256, 256, 3), 0.5, np.float32))
    gui.img[:10] = 1.0
    gui.set_image(gui.img)
    assert (pixels(gui)[:10] == 255).all() and (pixels(gui)[10:] == 128).all()


def test_a_fast_gui_gives_words(cpu):
    """As Taichi has them: one axis that begins at the top, cut off to 8 bits."""
    field = ti.Vector.field(3, ti.f32, (4, 3))

    @ti.kernel
    def paint():
        for i, j in field:
            field[i, j] = ti.Vector([i / 4, j / 4, 0.5])

    paint()
    gui = ti.GUI("fast", (4, 3), show_gui=False, fast_gui=True)
    assert gui.img.dtype == np.uint32 and gui.img.shape == (12,)
    kept = gui.img
    gui.set_image(field)
    assert kept is gui.img
    # Values of Taichi 1.7.4.
    top = [0x7F7F, 0x3F7F7F, 0x7F7F7F, 0xBF7F7F]
    assert gui.img.tolist() == top + [v - 0x4000 for v in top] + [v - 0x7F00 for v in top]
    assert gui.get_image().shape == (12,) and gui.get_image().dtype == np.uint32
    gui.img[:] = 0
    gui.img[1] = 0x010203
    gui.set_image(gui.img)
    assert gui.get_image().tolist() == [0, 0x010203] + [0] * 10
    assert ti.GUI("slow", (4, 3), show_gui=False).img.shape == (4, 3, 4)
