"""``python -m aerogel view``: a program's fields while it runs."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from desk import Program, needs_desk

import aerogel as ti
from aerogel.view import _tiles, _values
from aerogel.view._health import Health
from aerogel.view._hooks import Hooks
from aerogel.view._page import Page

HEAD = "import taichi as ti\nti.init(log_level='error')\n"


def look(text, tmp_path, *options, arguments=(), **environment):
    (tmp_path / "p.py").write_text(HEAD + textwrap.dedent(text))
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    env.update(environment)
    command = [sys.executable, "-m", "aerogel", "view", *options, "p.py", *arguments]
    return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)


PROGRAM = """
import sys
x = ti.field(ti.f32, (16, 16))
n = ti.field(ti.i32, ())

@ti.kernel
def step(t: ti.f32):
    for i, j in x:
        x[i, j] = i * t
    n[None] += 1

@ti.kernel
def blow(at: ti.i32):
    x[at, 3] = ti.sqrt(-1.0)

for k in range(6):
    step(k)
    if "blow" in sys.argv:
        blow(5)
    if "python" in sys.argv and k == 2:
        x[7, 2] = float("inf")
print("end")
"""


def test_a_program_runs_and_its_last_frame_is_written(tmp_path):
    done = look(PROGRAM, tmp_path, "--size", "640x400", arguments=["a", "--b"])
    assert done.returncode == 0 and done.stdout == "end\n", done.stderr
    picture = ti.tools.imread(str(tmp_path / "view.png"))
    assert picture.shape == (640, 400, 3)
    # Yellow where x is largest, dark blue where it is zero.
    yellow, blue = (np.abs(picture.astype(int) - c).max(-1) < 12 for c in ((240, 249, 33), (13, 8, 135)))
    assert yellow.sum() > 100 and blue.sum() > 100
    assert np.argwhere(yellow)[:, 0].mean() > np.argwhere(blue)[:, 0].mean()


def test_every_frame_is_written(tmp_path):
    done = look(PROGRAM, tmp_path, "--every", "2", "--out", "frame-%d.png")
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in tmp_path.glob("frame-*.png")) == [f"frame-{k}.png" for k in (1, 2, 3, 4)]


def test_frames_end_a_program_and_the_environment_says_so(tmp_path):
    for options, environment in (
        (["--frames", "2", "--out", "a.png"], {}),
        ([], {"AEROGEL_GUI_FRAMES": "2", "AEROGEL_GUI_OUT": "a.png"}),
    ):
        done = look(PROGRAM, tmp_path, "--every", "1", *options, **environment)
        assert done.returncode == 0 and not done.stdout, done.stderr
        assert (tmp_path / "a.png").exists()
        (tmp_path / "a.png").unlink()


def test_the_first_nan_stops_and_names_its_kernel(tmp_path):
    done = look(PROGRAM, tmp_path, arguments=["blow"])
    assert done.returncode == 1 and not done.stdout
    assert "x: 1 NaN, first [5, 3], written by `blow`, its launch 1" in done.stderr
    picture = ti.tools.imread(str(tmp_path / "view.png"))
    assert (picture == (255, 0, 200)).all(-1).sum() > 20
    done = look(PROGRAM, tmp_path, "--no-stop", arguments=["blow"])
    assert done.returncode == 0 and done.stdout == "end\n" and "NaN" not in done.stderr


def test_what_python_wrote_is_not_said_of_a_kernel(tmp_path):
    done = look(PROGRAM, tmp_path, arguments=["python"])
    assert done.returncode == 1
    assert "x: 1 infinite, first [7, 2], written by Python before `step`" in done.stderr


@pytest.mark.parametrize(
    "write,said",
    [
        ("x.fill(float('nan'))", "x: 4 NaN, first [0]"),
        ("x[3][1] = float('nan')", "x: 1 NaN, first [3]"),
        ("x[3].y = float('inf')", "x: 1 infinite, first [3]"),
        ("a.fill(float('nan'))", "a: 4 NaN, first [0]"),
        ("a[2] = float('nan')", "a: 1 NaN, first [2]"),
        ("a.from_numpy(np.float32([0, 1, np.nan, 3]))", "a: 1 NaN, first [2]"),
        ("b[1].x = float('inf')", "b: 1 infinite, first [1]"),
    ],
)
def test_python_writes_in_many_ways(write, said, tmp_path):
    text = f"""
    import numpy as np
    x = ti.Vector.field(2, ti.f32, 4)
    a, b = ti.ndarray(ti.f32, 4), ti.ndarray(ti.math.vec2, 4)

    @ti.kernel
    def step(a: ti.types.ndarray(dtype=ti.f32, ndim=1), b: ti.types.ndarray(dtype=ti.math.vec2, ndim=1)):
        for i in x:
            x[i] += b[i]
            a[i] += x[i].y
            b[i] += a[i]

    step(a, b)
    {write}
    step(a, b)
    """
    done = look(text, tmp_path)
    assert done.returncode == 1 and f"{said}, written by Python before `step`" in done.stderr, done.stderr


def test_what_a_kernel_makes_of_an_array_is_its_work(tmp_path):
    text = """
    a = ti.ndarray(ti.f32, 4)

    @ti.kernel
    def blow(a: ti.types.ndarray(dtype=ti.f32, ndim=1), t: ti.f32):
        a[1] = ti.sqrt(t)

    blow(a, 1.0)
    blow(a, -1.0)
    """
    done = look(text, tmp_path)
    assert done.returncode == 1 and "a: 1 NaN, first [1], written by `blow`, its launch 2" in done.stderr


FUNCTION = """
@ti.data_oriented
class S:
    def __init__(self):
        self.x = ti.field(ti.f32, (16, 16))

    @ti.kernel
    def step(self):
        for i, j in self.x:
            self.x[i, j] = i

def main():
    s = S()
    s.step()

main()
"""


def test_fields_of_functions_stay_after_the_end(tmp_path):
    done = look(FUNCTION, tmp_path, "--size", "640x400")
    assert done.returncode == 0, done.stderr
    picture = ti.tools.imread(str(tmp_path / "view.png"))
    assert (np.abs(picture.astype(int) - (240, 249, 33)).max(-1) < 12).sum() > 100
    # The state of the program, above the list of kernels: not as in the frame after the launch.
    first = look(FUNCTION, tmp_path, "--size", "640x400", "--every", "1", "--out", "f-%d.png")
    assert first.returncode == 0
    words = [ti.tools.imread(str(tmp_path / f"f-{k}.png"))[448:520, 290:310] for k in (1, 2)]
    assert (words[0] != words[1]).any()


def test_paused_without_a_window_goes_on(tmp_path):
    done = look(PROGRAM, tmp_path, "--paused")
    assert done.returncode == 0 and done.stdout == "end\n"
    assert done.stderr.count("--paused does nothing") == 1


def test_a_display_that_does_not_answer_gives_a_picture(tmp_path):
    done = look(PROGRAM, tmp_path, DISPLAY=":987")
    assert done.returncode == 0 and done.stdout == "end\n", done.stderr
    assert (tmp_path / "view.png").exists()


def test_names_that_no_field_has(tmp_path):
    done = look(PROGRAM, tmp_path, "--only", "x,y", "--range", "z=0:1")
    assert done.returncode == 0
    assert "no field has the name of --only y, --range z; there are x, n" in done.stderr


def test_what_the_environment_says_is_looked_at_first(tmp_path):
    done = look("print(1)", tmp_path, AEROGEL_GUI_FRAMES="abc")
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == "python -m aerogel view: AEROGEL_GUI_FRAMES is a number of frames, not 'abc'\n"
    pytest.importorskip("PIL")
    done = look("print(1)", tmp_path, "--out", "a.picture")
    assert done.returncode == 2 and not done.stdout and "--out: a.picture has the suffix '.picture'" in done.stderr


def test_a_program_that_fails_fails(tmp_path):
    done = look(PROGRAM + "\nraise KeyError('mine')\n", tmp_path)
    assert done.returncode == 1 and "KeyError: 'mine'" in done.stderr and (tmp_path / "view.png").exists()
    done = look("print(1)", tmp_path)
    assert done.returncode == 0 and done.stdout == "1\n"
    # A field that is gone is no reason to stop.
    done = look(PROGRAM + "\nti.reset()\nti.init(log_level='error')\ny = ti.field(ti.f32, 4)\ny.fill(1)\n", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "options,message",
    [
        (["--range", "x"], "--range is a name and two numbers"),
        (["--range", "x=2:1"], "--range is a name and two numbers"),
        (["--size", "10x10"], "--size is a width and a height"),
        (["--every", "-1"], "--every is not negative"),
        (["--out", "%d%d.png"], "--out has one number"),
    ],
)
def test_misuse(options, message, tmp_path):
    done = look("", tmp_path, *options)
    assert done.returncode == 2 and message in done.stderr


def test_a_program_that_is_not_viewed_pays_nothing(cpu):
    from aerogel.kernel import Kernel

    before = dict(vars(Kernel))

    class Watcher:
        def __init__(self):
            self.told = []

        def before(self, kernel, args, kwargs):
            self.told.append(("before", kernel.__name__))

        def after(self, kernel, name, args, kwargs):
            self.told.append((name, *args))

        def wrote(self, field):
            self.told.append("wrote")

    x = ti.field(ti.f32, (), needs_grad=True)
    y = ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def square():
        y[None] += x[None] ** 2

    @ti.data_oriented
    class Twice:
        @ti.kernel
        def twice(self, k: ti.i32) -> ti.i32:
            return 2 * k

    watcher = Watcher()
    with Hooks(watcher):
        x[None] = 3
        square()
        assert Twice().twice(4) == 8
        with ti.ad.Tape(y):
            square()
    assert watcher.told.count(("before", "square")) >= 2 and "wrote" in watcher.told
    assert [t[2] for t in watcher.told if t[0] == "twice"] == [4]
    assert ("square.grad",) in watcher.told and x.grad[None] == 6
    assert dict(vars(Kernel)) == before
    n = len(watcher.told)
    square()
    assert len(watcher.told) == n


def test_fields_have_the_names_of_the_program(tmp_path):
    text = """
    import beside
    particle = ti.types.struct(pos=ti.math.vec3, mass=ti.f32)
    ps = particle.field(shape=4)
    levels = [ti.field(ti.f32, (4 >> k, 4)) for k in range(2)]
    by_name = {"a": ti.field(ti.f32, 3)}

    @ti.data_oriented
    class Solver:
        def __init__(self):
            self.u = ti.Vector.field(2, ti.f32, (4, 4))
            self.again = self.u

        @ti.kernel
        def step(self):
            for I in ti.grouped(self.u):
                self.u[I] = 1

    @ti.kernel
    def fill(q: ti.template()):
        for i in q:
            q[i] = 1

    def main():
        solver, inner, array = Solver(), ti.field(ti.f32, 5), ti.ndarray(ti.f32, 6)
        solver.step()
        fill(inner)
        from aerogel.view._names import Names
        import os, sys
        print(*Names(os.getcwd()).find(sys._getframe()))

    main()
    """
    (tmp_path / "beside.py").write_text("import taichi as ti\nother = ti.field(ti.f32, (2, 2))\n")
    done = look(text, tmp_path)
    assert done.returncode == 0, done.stderr
    expected = "ps.pos ps.mass levels[0] levels[1] by_name['a'] beside.other solver.u inner array"
    assert sorted(done.stdout.split()) == sorted(expected.split())


def drawn(x, **how):
    page = Page(400, 300)
    tile = _tiles.Tile("x", place=(0, 0, 400, 300), **how)
    values = _values.read(x)
    if values.kind == "number":
        tile.history.extend([1.0, 2.0, values.numbers[()]])
    tile.draw(page, values)
    gui = ti.GUI("page", (400, 300), show_gui=False)
    page.put(gui)
    return values, (gui.get_image()[..., :3] * 255 + 0.5).astype(np.uint8)


def test_what_is_drawn_of_each_kind(cpu):
    rng = np.random.default_rng(3)
    kinds = {
        "image": ti.field(ti.f32, (8, 8)),
        "slices": ti.field(ti.f32, (4, 4, 4)),
        "colours": ti.Vector.field(3, ti.f32, (6, 6)),
        "arrows": ti.Vector.field(2, ti.f32, (8, 8)),
        "points": ti.Vector.field(3, ti.f32, 40),
        "plot": ti.field(ti.f64, 30),
        "number": ti.field(ti.f32, ()),
        "text": ti.field(ti.f32, (2, 2, 2, 2)),
    }
    seen = set()
    for kind, x in kinds.items():
        if kind == "number":
            x[None] = 3
        else:
            x.from_numpy(rng.random(x.to_numpy().shape).astype(x.to_numpy().dtype) - (kind == "arrows"))
        values, picture = drawn(x)
        assert values.kind == kind and values.wrong is None
        assert (picture[4:-4, 24:-24] != picture[200, 297]).any(-1).sum() > 60, kind
        seen.add(picture.tobytes())
    assert len(seen) == len(kinds)
    flat, _ = drawn(ti.Vector.field(2, ti.f32, 5))
    array, _ = drawn(ti.ndarray(ti.f32, (4, 4)))
    assert (flat.kind, array.kind) == ("points", "image")


def test_what_is_no_number_is_seen(cpu):
    x = ti.field(ti.f32, (2000, 2000))
    x[1234, 777], x[5, 6] = float("nan"), float("-inf")
    values, picture = drawn(x)
    assert str(values.wrong) == "1 NaN and 1 infinite, first [5, 6]"
    # However small it is in the picture.
    assert (picture == (255, 0, 200)).all(-1).any() and (picture == (0, 230, 255)).all(-1).any()


def test_ranges_may_be_fixed(cpu):
    x = ti.field(ti.f32, (8, 8))
    x.fill(0.5)
    _, low = drawn(x, low=0.5, high=1.0)
    _, high = drawn(x, low=0.0, high=0.5)
    assert low[150, 150].tolist() == [13, 8, 135] and high[150, 150].tolist() == [240, 249, 33]


def test_sparse_fields_show_their_blocks(cpu):
    x = ti.field(ti.f32)
    ti.root.pointer(ti.ij, (8, 8)).dense(ti.ij, (8, 8)).place(x)
    x[20, 20] = 1
    values, picture = drawn(x)
    assert values.kind == "image" and values.block == (8, 8) and len(values.cells) == 64
    nothing = (picture == _tiles._NOTHING).all(-1)
    assert nothing.sum() > 30000 and 1000 < (~nothing[60:330, 10:270]).sum() < 30000
    far = ti.field(ti.f32)
    ti.root.hash(ti.ij, (1 << 20, 1 << 20)).dense(ti.ij, (4, 4)).place(far)
    far[5, 7] = float("nan")
    values, _ = drawn(far)
    assert str(values.wrong) == "1 NaN, first [5, 7]"
    space = ti.field(ti.f32)
    ti.root.pointer(ti.ijk, (4, 4, 4)).dense(ti.ijk, (4, 4, 4)).place(space)
    space[3, 3, 3] = 1
    assert drawn(space)[0].kind == "points"


def test_sparse_points_along_one_axis_are_where_their_numbers_say(cpu):
    x = ti.Vector.field(2, ti.f32)
    ti.root.dynamic(ti.i, 64).place(x)
    for k in range(40):
        x[k] = (k % 8, k // 8)
    values, picture = drawn(x)
    assert values.kind == "points" and values.cells is not None
    # Eight beside each other, five above each other; not a diagonal.
    blue = (picture[8:-8, 24:-28] == (0x57, 0xB8, 0xFF)).all(-1)
    assert _runs(blue.any(1)) == 8 and _runs(blue.any(0)) == 5
    empty, _ = drawn(ti.Vector.ndarray(2, ti.f32, 0))
    assert empty.kind == "text"


def _runs(line):
    return int((np.diff(np.r_[0, line.astype(int)]) == 1).sum())


def test_points_in_space_turn(cpu):
    x = ti.Vector.field(3, ti.f32, 300)
    x.from_numpy(np.random.default_rng(1).random((300, 3), np.float32) * (1, 0.2, 0.4))
    tile = _tiles.Tile("x")
    tile.drag(100, 20)
    assert (tile.turn, tile.tilt) == (1.6, 0.6000000000000001)
    assert (drawn(x)[1] != drawn(x, turn=tile.turn, tilt=tile.tilt)[1]).any()


def test_health_looks_at_what_is_written(cpu):
    x, y = ti.field(ti.f32, 4), ti.field(ti.f32, 4)

    @ti.kernel
    def spread():
        for i in x:
            x[i] = y[i] / 0.0 * 0.0

    health = Health()
    health.know({"x": x, "y": y})
    assert health.before() == []
    spread()
    y[2] = float("nan")
    # The launch wrote x alone.
    assert [name for name, _ in health.after(spread, (), {})] == ["x"]
    assert health.after(spread, (), {}) == []
    health.wrote(y)
    assert [(name, str(wrong)) for name, wrong in health.before()] == [("y", "1 NaN, first [2]")]


def test_tiles_are_dragged_and_clicked(cpu, monkeypatch, tmp_path):
    from aerogel.view._viewer import Ended, Options, Viewer

    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    points, cube = ti.Vector.field(3, ti.f32, 30), ti.field(ti.f32, (4, 4, 4))
    points.from_numpy(np.random.default_rng(1).random((30, 3), np.float32))
    viewer = Viewer(Options(), str(tmp_path))
    monkeypatch.setattr(viewer, "_look", lambda: viewer._fields.update(points=points, cube=cube))
    viewer._show()
    gui, tile = viewer._gui, viewer._tiles["points"]
    other = viewer._tiles["cube"].place

    def do(*events):
        for kind, key, x, y in events:
            gui._hear(kind, key, x / 1080, 1 - y / 680)
        # What was heard at the end of a frame is seen in the next.
        viewer._show()
        viewer._show()

    do(("Press", "LMB", 100, 200), ("Motion", "Motion", 160, 190), ("Release", "LMB", 160, 190))
    assert abs(tile.turn - 1.2) < 1e-6 and abs(tile.tilt - 0.3) < 1e-6 and not viewer._focus
    # The wheel turns over what the mouse is over.
    gui._cursor = (100 / 1080, 0.5)
    gui._hear("Wheel", "Wheel", 0.0, 2.0)
    viewer._show()
    assert abs(tile.zoom - 1.15**2) < 1e-6
    middle = (other[0] + other[2] / 2, other[1] + other[3] / 2)
    do(("Press", "LMB", *middle), ("Release", "LMB", *middle))
    assert viewer._focus == "cube" and viewer._tiles["cube"].place[2] > 800 and not viewer._placed().get("points")
    do(("Press", "LMB", 300, 300), ("Release", "LMB", 300, 300))
    assert not viewer._focus and set(viewer._placed()) == {"points", "cube"}
    do(("Press", " ", 0, 0))
    assert viewer._is_paused
    do(("Press", "n", 0, 0))
    assert viewer._is_paused and viewer._steps == 1
    do(("Press", " ", 0, 0))
    assert not viewer._is_paused
    gui.close()
    with pytest.raises(Ended):
        viewer._show()


class TestOnADesk:
    pytestmark = needs_desk

    TEXT = """
    import os
    x = ti.field(ti.f32, (16, 16))

    @ti.kernel
    def step(t: ti.f32):
        for i, j in x:
            x[i, j] = i * t

    @ti.kernel
    def blow():
        x[3, 4] = ti.sqrt(-1.0)

    for k in range(100000):
        step(k)
        print("step", k, flush=True)
        if os.path.exists("blow"):
            blow()
            print("blown", flush=True)
            os.remove("blow")
    """

    def program(self, display, tmp_path):
        code = "import sys; sys.argv[1:] = ['view', 'v.py']; from aerogel.cli import main; main(sys.argv[1:])"
        (tmp_path / "v.py").write_text(HEAD + textwrap.dedent(self.TEXT))
        out = Program(code, display, tmp_path)
        self.lines = []
        threading.Thread(target=lambda: self.lines.extend(out.process.stdout), daemon=True).start()
        found = ["xdotool", "search", "--sync", "--onlyvisible", "--name", "aerogel view"]
        number = subprocess.run(found, env=out.env, capture_output=True, text=True, timeout=60).stdout.split()[0]
        out.do("windowfocus", "--sync", number)
        assert self.goes_on(3), out.process.stderr.read()
        return out, number

    def last(self):
        """The last line that a paused program writes."""
        n = -1
        while n != len(self.lines):
            n = len(self.lines)
            time.sleep(0.5)
        return self.lines[-1].strip()

    def goes_on(self, n):
        until = time.time() + 20
        while len(self.lines) <= n and time.time() < until:
            time.sleep(0.05)
        return len(self.lines) > n

    def end(self, program, number):
        program.do("windowclose", number)
        code = program.process.wait(timeout=60)
        return code, program.process.stderr.read()

    def test_pause_step_and_close(self, display, tmp_path):
        program, number = self.program(display, tmp_path)
        program.do("key", "space")
        first = int(self.last().split()[1])
        program.do("key", "n")
        assert self.last() == f"step {first + 1}"
        # The button does the same.
        program.do("mousemove", 980, 60, "click", 1)
        assert self.last() == f"step {first + 2}"
        program.do("mousemove", 980, 20, "click", 1)
        assert self.goes_on(len(self.lines))
        code, err = self.end(program, number)
        assert code == 0, err[-500:]

    def test_the_first_nan_pauses(self, display, tmp_path):
        program, number = self.program(display, tmp_path)
        (tmp_path / "blow").touch()
        assert self.last().startswith("step")
        program.do("key", "space")
        assert self.goes_on(len(self.lines)) and "blown\n" in self.lines
        code, err = self.end(program, number)
        assert code == 0 and "written by `blow`, its launch 1" in err


def test_misuse_of_the_command_line(tmp_path):
    program = tmp_path / "p.py"
    program.write_text("import sys; print(sys.argv[1:])")

    def ran(*arguments):
        command = [sys.executable, "-m", "aerogel", "view", *arguments]
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)

    done = ran()
    assert done.returncode == 2 and "usage: python -m aerogel view [OPTIONS] PROGRAM.py [ARGUMENTS ...]" in done.stderr
    assert done.stderr.strip().endswith("the following arguments are required: PROGRAM.py")
    done = ran("--cmap", "no colours", "p.py")
    assert done.returncode == 2 and "--cmap: there is no colour map 'no colours'" in done.stderr
    done = ran("p.py", "--out=a.png")
    assert "['--out=a.png']" in done.stdout and "[view] --out=a.png follows p.py, so the program gets it" in done.stderr
