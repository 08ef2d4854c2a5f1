"""``ti.ui`` without a desktop: drawn by Vulkan where there is one, and in software."""

import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest
from desk import near, needs_vulkan, window

import aerogel as ti
from aerogel.ui import _backend


def test_images_lie_as_arrays_do(drawn_by):
    w = window(4, 3)
    canvas = w.get_canvas()
    rng = np.random.default_rng(1)
    bytes_ = rng.integers(0, 256, (4, 3, 3), dtype=np.uint8)
    expected = bytes_ / np.float32(255)
    field = ti.Vector.field(3, ti.f32, (4, 3))
    field.from_numpy(expected.astype(np.float32))
    wide = bytes_.astype(np.uint16) * 257
    for image in (bytes_, field, expected, wide, expected.astype(np.float16), np.dstack([bytes_, bytes_[..., :1]])):
        canvas.set_image(image)
        found = w.get_image_buffer_as_numpy()
        assert found.shape == (4, 3, 4) and found.dtype == np.float32
        assert np.abs(found[..., :3] - expected).max() < 0.003
        w.show()
    canvas.set_image(expected[..., 0])
    assert np.abs(w.get_image_buffer_as_numpy()[..., :3] - expected[..., :1]).max() < 0.003


def test_large_images_of_fields(drawn_by):
    """They go through a kernel, which nobody notices: not those who draw random numbers, nor those who count launches."""
    shape = (320, 200)
    rng = np.random.default_rng(3)
    w = window(*shape)

    @ti.kernel
    def draw() -> ti.f32:
        return ti.random()

    def drawn(image):
        ti.init(arch=ti.cpu, log_level="error", random_seed=5)
        shown = image()
        w.get_canvas().set_image(shown)
        return w.get_image_buffer_as_numpy()[..., :3], draw()

    for channels in (None, 1, 2, 3, 4):
        values = rng.uniform(-0.2, 1.2, (*shape, *([] if channels is None else [channels]))).astype(np.float32)
        values.reshape(-1)[:3] = np.nan, np.inf, -np.inf

        def field(values=values, channels=channels):
            made = ti.field(ti.f32, shape) if channels is None else ti.Vector.field(channels, ti.f32, shape)
            made.from_numpy(values)
            return made

        (one, number), (other, same) = drawn(field), drawn(lambda values=values: values)
        assert np.abs(one - other).max() < 0.005 and number == same
    shifted = ti.field(ti.f32, shape, offset=(-10, 5))
    shifted.fill(0.5)
    w.get_canvas().set_image(shifted)
    assert abs(float(w.get_image_buffer_as_numpy()[..., 0].mean()) - 0.5) < 0.01


def test_images_are_stretched_between_their_numbers(drawn_by):
    w = window(200, 100)
    image = np.zeros((2, 2, 3), np.float32)
    image[0, 0], image[1, 0], image[0, 1], image[1, 1] = (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)
    w.get_canvas().set_image(image)
    found = w.get_image_buffer_as_numpy()
    # The numbers of Taichi 1.7.4.
    expected = [[1, 0, 0], [1, 0, 0], [0.694, 0.306, 0], [0.298, 0.702, 0], [0, 1, 0]]
    assert np.abs(found[::40, 10, :3] - expected).max() < 0.006


def test_colours_are_blended_and_change_over_triangles(drawn_by):
    w = window(60, 60)
    canvas = w.get_canvas()
    canvas.set_background_color((0, 0, 1))
    # Two triangles: no pixel of their common edge is drawn twice.
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 0], [1, 1], [0, 1]], np.float32)
    canvas.triangles(square, color=(1, 0, 0, 0.25))
    picture = w.get_image_buffer_as_numpy()
    assert np.abs(picture[..., :3] - (0.25, 0, 0.75)).max() < 0.01
    w.show()
    canvas.set_background_color((0, 0, 0))
    # Of one call, what is later lies above what is earlier.
    canvas.circles(np.array([[0.5, 0.5], [0.5, 0.5]], np.float32), 0.3, per_vertex_color=[[1, 0, 0, 1], [0, 1, 0, 0.5]])
    canvas.lines(np.array([[0, 0.1], [1, 0.1]], np.float32), 0.1, per_vertex_color=[[0, 0, 0], [1, 1, 1]])
    picture = w.get_image_buffer_as_numpy()
    assert near(picture[30, 30], (0.5, 0.5, 0)) and near(picture[30, 50], (0, 0, 0))
    assert near(picture[30, 6], 30.5 / 60) and near(picture[6, 6], 6.5 / 60) and near(picture[6, 11], 0)
    w.show()
    corners = np.array([[0, 0], [1, 0], [0, 1]], np.float32)
    canvas.triangles(corners, per_vertex_color=np.eye(3, dtype=np.float32))
    picture = w.get_image_buffer_as_numpy()
    for x, y in ((1, 1), (40, 5), (10, 30)):
        u, v = (x + 0.5) / 60, (y + 0.5) / 60
        assert near(picture[x, y], (1 - u - v, u, v), 0.02)
    w.show()


@needs_vulkan
def test_translucent_shapes_are_those_of_vulkan(cpu, monkeypatch):
    rng = np.random.default_rng(5)
    points, colors = rng.random((90, 2), np.float32), rng.random((90, 4), np.float32)
    image = rng.random((7, 5, 3), np.float32)
    pictures = []
    for viz in (_backend._viz, lambda: (None, "this test is without")):
        monkeypatch.setattr(_backend, "_viz", viz)
        w = window(200, 150)
        canvas = w.get_canvas()
        canvas.set_image(image)
        canvas.triangles(points, per_vertex_color=colors)
        canvas.lines(points, 0.02, per_vertex_color=colors)
        canvas.circles(points, 0.03, color=(1, 1, 1, 0.4))
        pictures.append(w.get_image_buffer_as_numpy()[..., :3])
    apart = np.abs(pictures[0] - pictures[1]).max(-1)
    assert (apart > 12 / 255).mean() < 0.005


def test_shapes_in_the_plane(drawn_by):
    w = window(400, 300)
    canvas = w.get_canvas()
    canvas.set_background_color((0.2, 0.3, 0.4))
    points = ti.Vector.field(2, ti.f32, 6)
    points.from_numpy(np.array([[0.1, 0.1], [0.5, 0.5], [0.9, 0.1], [0.1, 0.9], [0.3, 0.5], [0.5, 0.9]], np.float32))
    canvas.triangles(points, color=(1, 0.5, 0))
    canvas.circles(points, radius=0.05, color=(1, 1, 1))
    canvas.lines(points, width=0.02, color=(0, 0, 0))
    picture = w.get_image_buffer_as_numpy()
    assert near(picture[5, 5], (0.2, 0.3, 0.4)) and near(picture[200, 60], (1, 0.5, 0))
    # A radius is a part of the height: 15 pixels.
    assert near(picture[40, 30 - 13], (1, 1, 1)) and near(picture[40, 30 - 17], (0.2, 0.3, 0.4))
    assert near(picture[120, 90], (0, 0, 0)) and near(picture[120, 98], (1, 0.5, 0), 1)
    w.show()
    # The background stays, and nothing else.
    canvas.circles(np.array([[0.5, 0.5]]), radius=0.1, per_vertex_color=[[0, 1, 0]])
    picture = w.get_image_buffer_as_numpy()
    assert near(picture[200, 150], (0, 1, 0)) and near(picture[40, 30], (0.2, 0.3, 0.4))


def test_vertices_are_named_by_indices(drawn_by):
    w = window()
    canvas = w.get_canvas()
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, np.nan]], np.float32)
    canvas.triangles(corners, indices=[0, 1, 2, 0, 2, 3], color=(1, 0, 0))
    assert near(w.get_image_buffer_as_numpy().reshape(-1, 4).mean(0), (1, 0, 0))
    for indices in ([0, 1, 5], [0, 1, -1], ti.ndarray(ti.i32, 3)):
        if isinstance(indices, list):
            with pytest.raises(IndexError, match=r"indices\[2\]"):
                canvas.triangles(corners, indices=indices)
        else:
            canvas.triangles(corners, indices=indices)
    with pytest.raises(TypeError, match="indices must be integers"):
        canvas.triangles(corners, indices=[0.0, 1.0, 2.0])
    canvas.triangles(corners, indices=[0, 1, 2, 0, 2, 3], color=(1, 0, 0))
    assert near(w.get_image_buffer_as_numpy().reshape(-1, 4).mean(0), (1, 0, 0))


def test_frames_begin_empty(drawn_by):
    w = window()
    canvas = w.get_canvas()

    def total():
        return float(w.get_image_buffer_as_numpy()[..., :3].sum())

    for nothing in ([], np.zeros((0, 2))):
        canvas.circles([[0.5, 0.5]], radius=0.2, color=(1, 1, 1))
        w.show()
        assert total() > 100
        canvas.circles(nothing, radius=0.2)
        canvas.triangles([[0, 0], [1, 0], [1, 1]], indices=[])
        w.show()
        assert total() == 0
    canvas.circles([[0.5, 0.5]], radius=0.2)
    w.show()
    w.show()
    assert total() == 0
    # Looking at a frame ends it, so that programs that never show one do not draw all that came before.
    canvas.circles([[0.2, 0.5]], radius=0.1)
    one = total()
    canvas.circles([[0.8, 0.5]], radius=0.1)
    assert abs(total() - one) < 0.05 * one
    w.show()
    assert abs(total() - one) < 0.05 * one


def test_parts_lie_within_what_there_is(drawn_by):
    w = window()
    scene = w.get_scene()
    points = np.random.default_rng(1).random((6, 3)).astype(np.float32)
    matrices = np.eye(4, dtype=np.float32)[None].repeat(3, 0)
    for part in ({"vertex_offset": -1}, {"vertex_offset": 7}, {"vertex_count": 7}, {"vertex_count": -1}):
        for call in (
            lambda: scene.lines(points, 1, **part),  # noqa: B023
            lambda: scene.mesh(points, **part),  # noqa: B023
            lambda: scene.mesh(points, show_wireframe=True, **part),  # noqa: B023
        ):
            with pytest.raises(IndexError, match="vertices from index"):
                call()
    with pytest.raises(IndexError, match="-1 particles from index 0"):
        scene.particles(points, 0.1, index_count=-1)
    for wireframe in (False, True):
        with pytest.raises(IndexError, match="1 instances from index 3"):
            scene.mesh_instance(
                points, transforms=matrices, instance_offset=3, instance_count=1, show_wireframe=wireframe
            )
    scene.mesh_instance(points, transforms=matrices[:0], show_wireframe=True)
    assert not scene._things
    for index in (2**32 + 1, -1, 2**40):
        with pytest.raises(IndexError, match=r"indices\[1\] is"):
            w.get_canvas().lines(points, 0.1, indices=np.array([0, index], np.int64))


def test_widgets_keep_their_values(drawn_by):
    w = window(300, 200)
    for _ in range(3):
        with w.get_gui().sub_window("panel", 0.05, 0.05, 0.5, 0.5) as gui:
            gui.text("words")
            assert gui.slider_float("x", 0.5, 0, 1) == 0.5 and gui.slider_int("n", 3, 0, 10) == 3
            assert gui.checkbox("on", True) is True and gui.button("go") is False
            assert np.abs(np.subtract(gui.color_edit_3("c", (0.1, 0.2, 0.3)), (0.1, 0.2, 0.3))).max() < 1e-6
            with pytest.raises(ValueError, match="the slider 'x' has the minimum 1 above its maximum 0"):
                gui.slider_float("x", 0.5, 1, 0)
        w.show()
    if drawn_by == "vulkan":
        assert len(np.unique(w.get_image_buffer_as_numpy()[..., :3])) > 5


def plotted(draw, **how):
    """A picture of a plot alone."""
    w = window(420, 330)
    for _ in range(2):
        w.get_canvas().set_background_color((0, 0, 0))
        with w.get_gui().sub_window("panel", 0, 0, 1, 1) as gui, gui.plot("plot", height=240, **how) as plot:
            draw(plot)
        picture = w.get_image_buffer_as_numpy()
        w.show()
    # Rows from the top.
    return np.rint(picture[..., :3] * 255).astype(int).transpose(1, 0, 2)[::-1]


def where(picture, color, near=12):
    """The rows and columns of a colour."""
    return np.nonzero(np.abs(picture - color).max(-1) < near)


BLUE, ORANGE = (78, 121, 167), (242, 142, 43)


@needs_vulkan
def test_plots(cpu):
    rising = plotted(lambda plot: plot.line("", [0.0, 1.0, 2.0, 3.0]))
    rows, columns = where(rising, BLUE)
    assert np.corrcoef(rows, columns)[0, 1] < -0.99
    # A gap where a number is missing, and axes that scale with the numbers.
    gap = plotted(lambda plot: plot.line("", [0.0, 1e6, np.nan, 3e6, 4e6]))
    found = np.unique(where(gap, BLUE)[1])
    assert np.diff(found).max() > 60 and found.max() - columns.max() < 5
    falling = plotted(lambda plot: plot.scatter("", ti.tensor.asarray([4.0, 5.0, 6.0]), np.array([3, 2, 1])))
    rows, columns = where(falling, BLUE)
    assert np.corrcoef(rows, columns)[0, 1] > 0.99 and len(rows) < 150

    def two(plot, name=""):
        plot.bars(name, [1, 2, 3], [1.0, 1.0, 4.0])
        plot.histogram("", np.repeat([11.0, 12.0], [90, 10]), bins=2)

    both = plotted(two)
    heights = [np.ptp(where(both, color, 25)[0]) for color in (BLUE, ORANGE)]
    assert heights[1] > 10 * heights[0] > 0
    # The label of an axis and the legend change the picture, at the bottom and at the upper right.
    labelled = plotted(two, x_label="numbers") != both
    assert labelled[200:, 150:300].any()
    legend = (plotted(lambda plot: two(plot, "first")) != both).any(-1)
    assert legend[:120, 300:].any() and not legend[150:, :200].any()


@needs_vulkan
def test_heat_maps(cpu):
    values = np.array([[0.0, 1.0, 2.0], [3.0, np.nan, 4.0]])
    picture = plotted(lambda plot: plot.heatmap("", values))
    dark, bright = (where(picture, color) for color in ((68, 1, 84), (253, 231, 37)))
    # Element [0, 0] is at the lower left, [1, 2] at the upper right.
    assert dark[0].min() > bright[0].max() and dark[1].max() < bright[1].min()
    assert len(dark[0]) > 1000 and abs(len(dark[0]) / len(bright[0]) - 1) < 0.2


def test_wrong_plots(drawn_by):
    gui = window().get_gui()
    with gui.plot("plot") as plot:
        plot.line("whole", range(3))
        plot.scatter("none", [])
        for wrong, what in (
            (lambda: plot.line("", [1, 2], [1, 2, 3]), "shapes \\(2,\\) and \\(3,\\)"),
            (lambda: plot.scatter("", np.zeros((2, 2))), "one axis"),
            (lambda: plot.line("", [1j]), "real numbers"),
            (lambda: plot.bars("", [1], width=0), "positive width"),
            (lambda: plot.heatmap("", [1, 2]), "two axes"),
        ):
            with pytest.raises(ValueError, match=what):
                wrong()
    with pytest.raises(ValueError, match="has no size"), gui.plot("plot", height=0):
        pass


@needs_vulkan
def test_panels_are_whole_in_the_first_frame(cpu):
    pictures = []
    w = window(200, 100)
    for _ in range(4):
        w.get_canvas().set_background_color((1, 1, 1))
        w.get_gui().text("words")
        pictures.append(w.get_image_buffer_as_numpy())
        w.show()
    assert np.abs(pictures[0] - pictures[-1]).max() < 0.02


def test_wrong_arguments(drawn_by):
    for res in (0, (3,), (3, -1), (2.5, 3), "ab"):
        with pytest.raises(ValueError, match="res must be"):
            ti.ui.Window("w", res, show_window=False)
    w = window()
    canvas, scene = w.get_canvas(), w.get_scene()
    wrong = [
        (lambda: canvas.set_image(np.zeros((3, 3), np.int32)), TypeError, "unsigned integers"),
        (lambda: canvas.set_image(np.zeros((3, 3, 5), np.float32)), ValueError, "1 to 4 channels"),
        (lambda: canvas.set_image(np.zeros((0, 3), np.float32)), ValueError, "1 to 4 channels"),
        (lambda: canvas.circles(np.zeros((3, 1)), 0.1), ValueError, "vectors of 2 numbers"),
        (lambda: canvas.circles(["a"], 0.1), TypeError, "must be numbers"),
        (lambda: canvas.circles(np.zeros((3, 2)), 0.1, color=(1, 2)), ValueError, "three numbers"),
        (lambda: canvas.circles(np.zeros((3, 2)), 0.1, per_vertex_color=np.zeros((2, 3))), ValueError, "fewer colours"),
        (lambda: canvas.circles(np.zeros((3, 2)), 0.1, per_vertex_radius=[1, 2]), ValueError, "fewer radii"),
        (lambda: scene.particles(np.zeros((3, 1)), 0.1), ValueError, "vectors of 3 numbers"),
        (lambda: scene.set_camera(3), TypeError, "ti.ui.Camera"),
        (lambda: canvas.contour(np.zeros((2, 2)), cmap_name="no colours"), ValueError, "no colours"),
    ]
    for call, kind, message in wrong:
        with pytest.raises(kind, match=message):
            call()
    canvas.contour(np.linspace(0, 1, 12).reshape(4, 3))
    canvas.vector_field(np.ones((8, 8, 2)), arrow_spacing=2)
    w.show()
    gone = ti.field(ti.f32, (4, 4))
    ti.init(arch=ti.cpu, log_level="error")
    with pytest.raises(RuntimeError):
        canvas.set_image(gone)
    w.destroy()
    with pytest.raises(RuntimeError, match="is destroyed"):
        canvas.circles(np.zeros((1, 2)), 0.1)
    assert not w.running


def test_a_window_stays_with_its_thread(drawn_by):
    w, said = window(), []

    def elsewhere():
        try:
            w.show()
        except RuntimeError as e:
            said.append(str(e))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "must be used from the thread that made it" in said[0]
    w.show()


def test_windows_of_a_thread_that_has_ended_are_let_go(drawn_by, capfd):
    """Whoever drops them last: nothing of theirs is kept."""
    made = []

    def make():
        w = window()
        w.get_canvas().set_image(np.ones((320, 200), np.float32))
        w.show()
        made.append(w)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    view = weakref.ref(made[0])
    before = len(_backend._dropped)
    made.clear()
    gc.collect()
    assert view() is None and len(_backend._dropped) == before
    assert "unsendable" not in capfd.readouterr().err


PROGRAM = """
import aerogel as ti
ti.init(log_level="error")
x = ti.Vector.field(3, ti.f32, (32, 32))
w = ti.ui.Window("w", 32)
canvas, n = w.get_canvas(), 0
while {condition}:
    n += 1
    x.fill(n / 10)
    canvas.set_image(x)
    w.show()
print(n)
"""


@pytest.mark.parametrize("condition", ["w.running", "True"])
def test_programs_end_and_keep_their_last_frame(condition, tmp_path):
    (tmp_path / "p.py").write_text(textwrap.dedent(PROGRAM.format(condition=condition)))
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    env.update(AEROGEL_GUI_FRAMES="3", AEROGEL_GUI_OUT=str(tmp_path / "last.png"))
    done = subprocess.run([sys.executable, "p.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-800:]
    picture = ti.tools.imread(str(tmp_path / "last.png"))
    assert picture.shape == (32, 32, 3) and abs(int(picture[7, 7, 0]) - (77 if condition == "w.running" else 102)) <= 26


TWO = """
import sys
import aerogel as ti
ti.init(log_level="warn")
make = {"gui": lambda n: ti.GUI("g", n), "ui": lambda n: ti.ui.Window("w", n, show_window=False)}
kinds = sys.argv[1].split(",")
windows = [make[kind](16 * (k + 1)) for k, kind in enumerate(kinds)]
for w in windows:
    w.show()
if "close" in sys.argv:
    windows[-1].close() if kinds[-1] == "gui" else windows[-1].destroy()
"""


def two(kinds, tmp_path, *arguments, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")} | environment
    command = [sys.executable, "-c", TWO, kinds, *arguments]
    return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("kinds", ["gui,ui", "ui,gui", "gui,gui"])
@pytest.mark.parametrize("how", ["", "close"])
def test_of_two_windows_the_last_is_kept(kinds, how, tmp_path):
    done = two(kinds, tmp_path, how, AEROGEL_GUI_OUT="last.png")
    assert done.returncode == 0, done.stderr
    assert ti.tools.imread(str(tmp_path / "last.png")).shape[:2] == (32, 32)


def test_a_picture_that_cannot_be_written_is_one_message(tmp_path):
    done = two("gui,gui,ui,gui", tmp_path, AEROGEL_GUI_OUT="none/last.png")
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert (done.stdout + done.stderr).count("AEROGEL_GUI_OUT: ") == 1


@pytest.mark.parametrize("kind", ["gui", "ui"])
def test_frames_are_a_number(kind, tmp_path):
    done = two(kind, tmp_path, AEROGEL_GUI_FRAMES="abc")
    assert "ValueError: AEROGEL_GUI_FRAMES is a number of frames, not 'abc'" in done.stderr


def test_closed_guis_are_let_go(cpu, tmp_path, monkeypatch):
    import gc
    import weakref

    monkeypatch.setenv("AEROGEL_GUI_OUT", str(tmp_path / "last.png"))
    with ti.GUI("g", 16, show_gui=False) as gui:
        gui.show()
    kept = weakref.ref(gui)
    del gui
    gc.collect()
    assert kept() is None and (tmp_path / "last.png").exists()


def test_what_cannot_be_drawn_is_said(drawn_by):
    w = window()
    canvas, scene, gui = w.get_canvas(), w.get_scene(), w.get_gui()
    structs = ti.types.struct(pos=ti.math.vec2, mass=ti.f32).field(shape=3)
    with pytest.raises(TypeError, match=r"one of its members, as in x.pos: pos, mass"):
        canvas.circles(structs, 0.1)
    flat, space = np.zeros((4, 2), np.float32), np.zeros((4, 3), np.float32)
    for draw in (
        lambda: canvas.lines(flat[:3], 0.1),
        lambda: canvas.triangles(flat),
        lambda: scene.lines(space, 1, indices=[0, 1, 2]),
        lambda: scene.mesh(space),
        lambda: scene.mesh(space, indices=[0, 1, 2, 3]),
    ):
        with pytest.raises(ValueError, match="make a (line|triangle): [34] are not a multiple of [23]"):
            draw()
    with pytest.raises(IndexError, match=r"indices\[5\] names vertex 9"):
        scene.mesh(space, indices=[0, 1, 2, 1, 2, 9], show_wireframe=True)
    with pytest.raises(ValueError, match="maximum of the slider 's'"):
        gui.slider_int("s", 1, 0, 2**70)
    for name, values in (("fps_limit", (None, 0, "5")), ("pos", ((1,), 5, (2**40, 0), (0.5, 1)))):
        for value in values:
            with pytest.raises(ValueError, match=f"{name} must be"):
                ti.ui.Window("w", 16, show_window=False, **{name: value})


def test_images_of_one_bit(drawn_by):
    w = window(4, 4)
    x = ti.field(ti.u1, (4, 4))
    x[1, 2] = 1
    w.get_canvas().set_image(x)
    picture = w.get_image_buffer_as_numpy()[..., 0]
    assert picture[1, 2] == 1 and picture.sum() == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_positions_that_are_no_numbers(drawn_by, bad):
    """Whatever is drawn says which one; those that nothing names, and what is only very far away, do no harm."""
    w = window()
    canvas, scene = w.get_canvas(), w.get_scene()
    flat, space = np.full((9, 2), -5.0), np.full((9, 3), -5, np.float32)
    flat[4, 1], space[4, 1] = bad, bad
    field = ti.Vector.field(3, ti.f32, 9)
    field.from_numpy(space)
    for what, call in (
        ("centers", lambda: canvas.circles(flat, 0.1)),
        ("vertices", lambda: canvas.lines(flat[:8], 0.1)),
        ("vertices", lambda: canvas.lines(flat, 0.1, indices=[0, 4])),
        ("vertices", lambda: canvas.triangles(flat)),
        ("centers", lambda: scene.particles(field, 0.1)),
        ("centers", lambda: scene.particles(space, 0.1, index_offset=4, index_count=1)),
        ("vertices", lambda: scene.lines(field, 1, vertex_count=6)),
        ("vertices", lambda: scene.mesh(space)),
        ("vertices", lambda: scene.mesh(field, indices=[0, 1, 1], vertex_offset=3)),
        ("vertices", lambda: scene.mesh_instance(space, indices=[0, 1, 4], transforms=np.zeros((1, 4, 4)))),
        ("vertices", lambda: scene.mesh(space, show_wireframe=True)),
    ):
        with pytest.raises(ValueError, match=rf"{what}\[4\] is \(-5\.0, (nan|inf|-inf).*not a finite position"):
            call()
    canvas.lines(flat, 0.1, indices=[0, 1])
    canvas.triangles(flat, indices=[0, 1, 2])
    scene.particles(space, 0.1, index_offset=5)
    scene.lines(space, 1, vertex_count=4)
    scene.mesh(space, indices=[0, 1, 4], index_count=0)
    canvas.circles([[1e38, 0.5], [3e38, 3e38], [1e30, -3e38]], 0.1)
    canvas.circles([[0.5, 0.5]], 0.3, color=(1, 1, 1), per_vertex_radius=[bad if bad < 0 else np.nan])
    assert w.get_image_buffer_as_numpy()[..., :3].sum() == 0


def test_after_a_panel_inside_another_its_widgets_go_on(cpu, monkeypatch):
    monkeypatch.setattr(_backend, "_viz", lambda: (None, "this test is without"))
    w, told = window(), []
    monkeypatch.setattr(w._backend, "panel", lambda name, place: told.append(name))
    monkeypatch.setattr(w._backend, "text", lambda text, color: told.append(text))
    with w.get_gui().sub_window("outer", 0, 0, 0.5, 0.5) as gui:
        with gui.sub_window("inner", 0.5, 0, 0.5, 0.5) as other:
            other.text("a")
        gui.text("b")
    w.show()
    w.get_gui().end()
    assert told == ["outer", "inner", "a", "outer", "b"]
