"""Windows that a window manager minimises and closes, and windows that nobody refers to any more."""

import shutil
import subprocess
import textwrap
import time

import pytest
from desk import Program, needs_desk

pytestmark = needs_desk


def titles(program):
    """The names of the windows that are seen."""
    found = subprocess.run(
        ["xdotool", "search", "--onlyvisible", "--name", "seen|other"], env=program.env, capture_output=True, text=True
    ).stdout.split()
    name = ["xdotool", "getwindowname"]
    return [subprocess.run([*name, n], env=program.env, capture_output=True, text=True).stdout.strip() for n in found]


def until(what, seconds=20.0, ask=lambda: None):
    """Waits for something to be so, which is asked for every five seconds."""
    end, asked = time.time() + seconds, 0.0
    while not what():
        assert time.time() < end
        if time.time() - asked > 5:
            ask()
            asked = time.time()
        time.sleep(0.05)


@pytest.fixture
def manager(display):
    """A window manager on the display, which hears: what is asked of it before is lost."""
    if not shutil.which("openbox"):
        pytest.skip("openbox is missing")
    env = {"DISPLAY": display.name, "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen(["openbox", "--sm-disable"], env=env)
    count = ["xdotool", "get_num_desktops"]
    until(lambda: subprocess.run(count, env=env, capture_output=True).returncode == 0)
    yield process
    process.kill()
    process.wait()


MANAGED = """
x = ti.Vector.field(3, ti.f32, (300, 300))
@ti.kernel
def paint(k: int):
    for i, j in x:
        x[i, j] = [k % 2, i / 300, j / 300]
w, other = ti.ui.Window("seen", (300, 300)), {other}
print("open", flush=True)
k = 0
while w.running:
    k += 1
    paint(k)
    w.get_canvas().set_image(x)
    w.show()
    other.show()
    if k % 20 == 0:
        print("frame", *w.get_window_shape(), flush=True)
print("closed", w.get_image_buffer_as_numpy().shape[:2] == w.get_window_shape(), other.running, x[1, 1][0] == k % 2)
"""


@pytest.mark.parametrize("other", ['ti.ui.Window("other", (80, 60))', 'ti.GUI("other", 64)'])
def test_minimised_by_a_window_manager(other, display, manager, tmp_path):
    """Frames go on while it is minimised, maximised and resized; the other window stays when it is closed."""
    program = Program(MANAGED.format(other=other), display, tmp_path)
    number = program.window()
    program.until("frame 300 300")
    for _ in range(3):
        until(lambda: titles(program) == ["other"], ask=lambda: program.do("windowminimize", number))
        for _ in range(3):
            program.until("frame 300 300")
        until(lambda: "seen" in titles(program), ask=lambda: program.do("windowactivate", number))
        program.until("frame 300 300")
    program.do("windowsize", "--sync", number, 333, 200)
    program.until("frame 333 200")
    # As the cross of its frame does.
    last, line = 0.0, "frame"
    end = time.time() + 60
    while line.startswith("frame"):
        assert time.time() < end, "it does not close"
        if time.time() - last > 5:
            program.do("windowactivate", "--sync", number, "key", "alt+F4")
            last = time.time()
        line = program.line()
    assert line == "closed True True True"
    assert program.end()[0] == 0


DROPPED = """
import gc, threading
gc.disable()
class Owner:
    pass
def make():
    owner = Owner()
    owner.window, owner.itself = {made}, owner
    owner.window.show()
make()
print("open", flush=True)
sys.stdin.readline()
thread = threading.Thread(target=gc.collect)
thread.start()
thread.join()
other = ti.ui.Window("other", 64)
other.show()
print("collected", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("made", ['ti.ui.Window("seen", 64)', 'ti.GUI("seen", 64)'])
def test_windows_that_another_thread_drops(made, display, tmp_path):
    """They vanish when their own thread next asks for a window."""
    program = Program(textwrap.dedent(DROPPED.format(made=made)), display, tmp_path, stdin=subprocess.PIPE)
    program.until("open")
    until(lambda: titles(program) == ["seen"])
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    program.until("collected")
    until(lambda: titles(program) == ["other"])
    code, _, err = program.end("\n")
    assert code == 0 and not err, err


@pytest.mark.parametrize("made", ['ti.ui.Window("seen", 64)', 'ti.GUI("seen", 64)'])
def test_windows_that_stay_until_the_program_ends(made, display, tmp_path):
    """Nothing is said of them, whether something still refers to them or they refer to themselves."""
    text = f"""
    w = {made}
    w.show()
    w.itself = w
    other = {made}
    other.show()
    print("open", flush=True)
    """
    program = Program(text, display, tmp_path)
    code, out, err = program.end()
    assert (code, out, err) == (0, "open", "")
