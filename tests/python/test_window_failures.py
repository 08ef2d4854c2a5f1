"""What windows say of wrong arguments and of what is missing: values, types and the machine are told apart."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from desk import Program, needs_desk
from desk import needs_vulkan, window

import aerogel as ti


@pytest.mark.parametrize("res", [2**31, 2**32, (2**40, 3)])
def test_sizes_that_no_picture_has(cpu, res):
    with pytest.raises(ValueError, match=r"res is .*, but a picture has at most \d+ pixels"):
        ti.GUI("g", res, show_gui=False)


@needs_vulkan
@pytest.mark.parametrize("res", [2**31, 2**32, (2**40, 3), (100000, 10)])
def test_sizes_that_no_window_has(cpu, res):
    with pytest.raises(ValueError, match=r"res is .*, but a picture has at most \d+ pixels along each axis here"):
        ti.ui.Window("w", res, show_window=False)


def test_values_and_types(drawn_by):  # noqa: F811
    w = window()
    canvas, scene = w.get_canvas(), w.get_scene()
    flat, space = np.zeros((3, 2), np.float32), np.zeros((3, 3), np.float32)
    wrong = [
        (lambda: canvas.scene(None), TypeError, "scene takes a ti.ui.Scene, not NoneType"),
        (lambda: canvas.circles(flat, 0.1, per_vertex_radius=flat), ValueError, r"one number for each of 3 centers; the shape is \(3, 2\)"),
        (lambda: scene.particles(space, 0.1, per_vertex_radius=space), ValueError, r"one number for each of 3 centers; the shape is \(3, 3\)"),
        (lambda: canvas.circles(flat, 0.1, per_vertex_radius=["a"]), TypeError, "per_vertex_radius must be numbers"),
        (lambda: canvas.circles(flat, 0.1, per_vertex_color=np.zeros((2, 3))), ValueError, "fewer colours than vertices: 2 for 3"),
        (lambda: canvas.lines(flat, 0.1, indices=[0, 1, 2, 3]), IndexError, r"indices\[3\] names vertex 3, but there are 3"),
        (lambda: canvas.triangles(flat, indices=[0, 1, -1]), IndexError, r"indices\[2\] is -1"),
        (lambda: canvas.triangles(flat, indices=[0.5]), TypeError, "indices must be integers"),
        (lambda: canvas.set_image(np.zeros((2, 2), complex)), TypeError, "not complex128"),
        (lambda: canvas.set_background_color((1, 2)), ValueError, "color must be three numbers"),
        (lambda: scene.mesh_instance(space, transforms=np.zeros((2, 3, 3))), ValueError, r"\(2, 3, 3\)"),
        (lambda: scene.point_light((0, 0), (1, 1, 1)), ValueError, "pos must be three numbers"),
    ]  # fmt: skip
    for call, kind, message in wrong:
        with pytest.raises(kind, match=message) as caught:
            call()
        assert type(caught.value) is kind
    # None of them left anything behind.
    w.show()
    assert not w.get_image_buffer_as_numpy()[..., :3].any()
    # A mesh's indices are looked at when it is drawn.
    scene.mesh(space, indices=[0, 1, 5], normals=space)
    with pytest.raises(IndexError if drawn_by == "vulkan" else (IndexError, RuntimeError)):
        canvas.scene(scene)


def test_what_is_far_away_is_not_drawn(drawn_by):  # noqa: F811
    w = window(40, 40)
    canvas = w.get_canvas()
    far = np.array([[1e38, 0.5], [0.5, -3e38], [1e37, 1e37]] * 2)
    canvas.circles(far, 0.1)
    canvas.triangles(far)
    canvas.lines(far, 0.1)
    assert not w.get_image_buffer_as_numpy()[..., :3].any()
    scene = w.get_scene()
    scene.ambient_light((1, 1, 1))
    scene.particles(np.full((3, 3), 1e38), 0.1)
    scene.lines(np.full((4, 3), -1e38), 2)
    canvas.scene(scene)
    assert not w.get_image_buffer_as_numpy()[..., :3].any()


def test_a_field_that_is_gone(drawn_by):  # noqa: F811
    w = window()
    canvas, scene = w.get_canvas(), w.get_scene()
    image, points = ti.field(ti.f32, (4, 4)), ti.Vector.field(3, ti.f32, 4)
    image.fill(1)
    ti.init(arch=ti.cpu, log_level="error")
    for call in (
        lambda: canvas.set_image(image),
        lambda: canvas.circles(points, 0.1),
        lambda: scene.particles(points, 0.1),
        lambda: ti.GUI("g", 4, show_gui=False).set_image(image),
    ):
        with pytest.raises(RuntimeError, match="ti.init|destroyed|gone|reset"):
            call()


def test_a_thread_that_is_not_the_main_one_may_have_pictures(drawn_by):  # noqa: F811
    said = []

    def elsewhere():
        w = window(8, 8)
        w.get_canvas().set_background_color((1, 0, 0))
        said.append(w.get_image_buffer_as_numpy()[0, 0, 0])

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert said == [1]


PROGRAM = """
import aerogel as ti
ti.init()
w = ti.ui.Window("w", 32)
w.get_canvas().set_background_color((0, 1, 0))
w.show()
gui = ti.GUI("g", 32)
gui.show()
print(w.get_image_buffer_as_numpy()[3, 3, 1])
"""


@needs_vulkan
@pytest.mark.parametrize(
    "environment,said",
    [
        ({}, "there is no display: windows draw into pictures"),
        ({"DISPLAY": ":987"}, "there is no display: "),
        ({"DISPLAY": ":987", "VK_DRIVER_FILES": "/nowhere.json"}, "there is no Vulkan: install a graphics driver"),
    ],
)
def test_no_display_and_no_vulkan(environment, said, tmp_path):
    (tmp_path / "p.py").write_text(PROGRAM)
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "AEROGEL_LOG_LEVEL")}
    done = subprocess.run(
        [sys.executable, "p.py"], cwd=tmp_path, env={**env, **environment}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-800:]
    assert said in done.stdout + done.stderr and done.stdout.splitlines()[-1] == "1.0"


@needs_vulkan
def test_a_package_of_another_version_draws_nothing(cpu, monkeypatch):
    import aerogel_viz

    from aerogel.ui import _backend

    monkeypatch.setattr(aerogel_viz, "VERSION", "0.0.1")
    package, why = _backend._viz()
    assert package is None and "aerogel_viz is 0.0.1, and aerogel " in why and "build both" in why


MEMORY = """
def used():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
x, p = ti.Vector.field(3, ti.f32, (16, 16)), ti.Vector.field(3, ti.f32, 12)
@ti.kernel
def step(t: ti.f32):
    for I in ti.grouped(x):
        x[I] = t
    for i in p:
        p[i] = [ti.random(), ti.random(), ti.random()]
w, gui = ti.ui.Window("seen", (40, 32), show_window={visible}, fps_limit=1e6), ti.GUI("g", 24, show_gui={visible})
gui.fps_limit = None
speed = gui.slider("a", 0, 1)
canvas, scene, camera = w.get_canvas(), w.get_scene(), ti.ui.Camera()
camera.position(0.5, 0.5, 3)
scene.set_camera(camera)
for k in range({n}):
    step(k)
    canvas.set_image(x)
    scene.ambient_light((0.5, 0.5, 0.5))
    scene.point_light((1, 1, k % 7), (1, 1, 1))
    scene.particles(p, radius=0.05)
    scene.mesh(p, color=(k % 5 / 5, 0, 0))
    canvas.scene(scene)
    with w.GUI.sub_window("p", 0, 0, 1, 1) as g:
        g.slider_float("a", k % 10 / 10, 0, 1)
        g.text(str(k))
    w.show()
    gui.circle((0.5, 0.5), radius=k % 20)
    gui.show()
    if k == {n} // 3:
        before = used()
print(used() - before)
"""


class TestOnADesk:
    pytestmark = needs_desk

    @pytest.mark.parametrize("visible", [False, True])
    def test_memory_does_not_grow(self, visible, display, tmp_path):
        program = Program(MEMORY.format(visible=visible, n=3000), display, tmp_path)
        code, out, err = program.process.wait(timeout=120), program.process.stdout.read(), program.process.stderr.read()
        # A kilobyte a frame would be two megabytes.
        assert code == 0 and int(out) < 1_500_000, (out, err[-500:])

    def test_minimised_and_back(self, display, tmp_path):
        text = """
        w, gui = ti.ui.Window("seen", (200, 100)), ti.GUI("other", 64)
        print("open", flush=True)
        for k in range(100000):
            w.get_canvas().set_background_color((0, 0, 1))
            w.show()
            gui.show()
            if k % 20 == 0:
                print("frame", *w.get_window_shape(), flush=True)
            if not w.running:
                break
        print("closed", w.get_image_buffer_as_numpy()[0, 0, 2])
        """
        program = Program(textwrap.dedent(text), display, tmp_path)
        number = program.window()
        program.until("frame 200 100")
        program.do("windowunmap", number)
        for _ in range(3):
            program.until("frame 200 100")
        program.do("windowmap", number, "windowsize", number, 10, 10)
        program.until("frame 10 10")
        for size in ((1, 1), (900, 700), (200, 100)):
            program.do("windowsize", number, *size)
            program.until(f"frame {size[0]} {size[1]}")
        program.do("windowclose", number)
        program.until("closed 1.0")
        assert program.end()[0] == 0

    def test_ctrl_c_ends_a_gui(self, display, tmp_path):
        import signal

        text = "gui = ti.GUI('seen', 64)\nprint('open', flush=True)\nwhile gui.running:\n    gui.show()\n"
        program = Program(text, display, tmp_path)
        program.until("open")
        program.process.send_signal(signal.SIGINT)
        code, out, err = program.end()
        assert code != 0 and "KeyboardInterrupt" in err

    def test_asking_for_keys_does_not_ask_the_desk(self, display, tmp_path):
        text = """
        class Counting:
            n = 0
            def __init__(self, view):
                self._view = view
            def events(self):
                Counting.n += 1
                return self._view.events()
            def __getattr__(self, name):
                return getattr(self._view, name)
        w, gui = ti.ui.Window("seen", 64), ti.GUI("g", 64)
        w._backend, gui._view = Counting(w._backend), Counting(gui._view)
        w.show(), gui.show()
        n = Counting.n
        begin = time.perf_counter()
        for k in range(5000):
            w.is_pressed("a"), w.get_cursor_pos(), gui.is_pressed("a"), gui.get_cursor_pos()
        most = 2 * (time.perf_counter() - begin) / 0.002 + 4
        print(0 < Counting.n - n <= most, most < 10000)
        """
        code, out, err = Program(textwrap.dedent(text), display, tmp_path).end()
        assert code == 0 and out == "True True", err[-500:]
