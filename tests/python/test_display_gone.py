"""The display ends while a program shows something: an exception, and the program goes on."""

import contextlib
import os
import select
import socket
import textwrap
import threading
import time
from types import SimpleNamespace

import pytest
from desk import Program, needs_desk

pytestmark = needs_desk

TEXT = """
import numpy as np
x = ti.field(ti.f32, (64, 64))
@ti.kernel
def step():
    for i, j in x:
        x[i, j] += 1
{windows}
print("open", flush=True)
n = failed = 0
until = time.time() + 30
while time.time() < until and failed < len(windows):
    step()
    n += 1
    for w in windows:
        try:
            if isinstance(w, ti.GUI):
                w.set_image(x)
            else:
                w.get_canvas().set_image(x)
                w.GUI.slider_float("speed", 0.5, 0, 1)
            w.show()
        except RuntimeError as e:
            failed += 1
            print(e, flush=True)
step()
# Fields are as they were, and everything else goes on.
print(x.to_numpy().min() == x.to_numpy().max() == n + 1, *[w.running for w in windows])
for w in windows:
    w.show()
w = ti.ui.Window("later", 64)
w.get_canvas().set_image(np.ones((4, 4), np.float32))
print(w.get_image_buffer_as_numpy()[..., :3].min(), ti.GUI("later").running, flush=True)
"""

WINDOWS = {
    "a window": 'windows = [ti.ui.Window("seen", 200)]',
    "a GUI": 'windows = [ti.GUI("seen", 64)]',
    "two windows": 'windows = [ti.ui.Window("seen", 200), ti.ui.Window("other", (100, 80))]',
    "a window and a GUI": 'windows = [ti.GUI("seen", 64), ti.ui.Window("other", 200)]',
}


@pytest.mark.parametrize("windows", WINDOWS)
def test_the_display_ends_while_windows_are_shown(windows, display, tmp_path):
    program = Program(TEXT.format(windows=WINDOWS[windows]), display, tmp_path)
    program.until("open")
    time.sleep(0.4)
    display.kill()
    n = WINDOWS[windows].count("seen") + WINDOWS[windows].count("other")
    code, out, err = program.end()
    assert code == 0, (out, err[-800:])
    gone, state, later = out.splitlines()[:n], *out.splitlines()[n:]
    assert all("the display is gone" in line for line in gone), out
    assert state == " ".join(["True"] + ["False"] * n) and later == "1.0 True"


@contextlib.contextmanager
def silent_display():
    """A display that takes connections and never says anything."""
    server = socket.socket(socket.AF_UNIX)
    os.makedirs("/tmp/.X11-unix", exist_ok=True)
    number = next(n for n in range(200, 1000) if not os.path.exists(f"/tmp/.X11-unix/X{n}"))
    server.bind(f"/tmp/.X11-unix/X{number}")
    server.listen()
    try:
        yield SimpleNamespace(name=f":{number}")
    finally:
        server.close()
        os.remove(f"/tmp/.X11-unix/X{number}")


def test_a_silent_display_is_not_asked_for_pictures(tmp_path):
    with silent_display() as display:
        text = """
        import os
        import numpy as np
        w = ti.ui.Window("picture", 64, show_window=False)
        w.get_canvas().set_image(np.ones((64, 64), np.float32))
        print(w.get_image_buffer_as_numpy().min(), "NODEVICE_SELECT" in os.environ, flush=True)
        """
        code, out, err = Program(text, display, tmp_path).end()
    assert (code, out) == (0, "1.0 False"), err[-800:]


def test_windows_of_a_silent_display_draw_into_pictures(tmp_path):
    with silent_display() as display:
        text = """
        import numpy as np
        from aerogel.ui import _backend
        for k in range(2):
            w = ti.ui.Window("seen", 64)
            w.get_canvas().set_image(np.ones((64, 64), np.float32))
            print(w.get_image_buffer_as_numpy().min(), flush=True)
            w.show()
        print(*_backend._told)
        """
        code, out, err = Program(text, display, tmp_path).end()
    assert code == 0 and out.startswith("1.0\n1.0\nthe display does not respond: "), (out, err[-800:])


OPENING = """
print("ready", flush=True)
for k in range(200):
    try:
        w = ti.ui.Window("seen", 64)
        w.show()
        w.destroy()
    except RuntimeError as e:
        assert "the display is gone" in str(e)
print("done")
"""


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_the_display_ends_while_a_window_is_made(after, display, tmp_path):
    program = Program(textwrap.dedent(OPENING), display, tmp_path)
    program.until("ready")
    time.sleep(after)
    display.kill()
    code, out, err = program.end()
    assert code == 0 and out == "done", (out, err[-800:])


class Broken:
    """A display that hands on what is told to another, and ends after so many messages of programs."""

    def __init__(self, behind, after):
        self.listening = socket.socket(socket.AF_UNIX)
        for number in range(100, 300):
            self.path = f"/tmp/.X11-unix/X{number}"
            with contextlib.suppress(OSError):
                self.listening.bind(self.path)
                break
        self.name, self.behind, self.left = f":{number}", behind.name[1:], after
        self.listening.listen()
        self.programs, self.other = set(), {}
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            while True:
                for end in select.select([self.listening, *self.other], [], [])[0]:
                    if end in self.other:
                        if not self.hand_on(end):
                            return
                    elif end is self.listening:
                        program, server = end.accept()[0], socket.socket(socket.AF_UNIX)
                        server.connect(f"/tmp/.X11-unix/X{self.behind}")
                        self.programs.add(program)
                        self.other.update({program: server, server: program})
        finally:
            os.unlink(self.path)
            for end in (self.listening, *self.other):
                end.close()

    def hand_on(self, end):
        """Hands on what one end told; whether the display stands."""
        with contextlib.suppress(OSError):
            told = end.recv(1 << 20)
            self.left -= bool(told) and end in self.programs
            if self.left < 0:
                return False
            if told:
                self.other[end].sendall(told)
                return True
        for closed in (end, self.other[end]):
            del self.other[closed]
            closed.close()
        return True


ONCE = """
x = ti.field(ti.f32, 4)
x.fill(3)
try:
    w = ti.ui.Window("seen", 64)
    w.show()
    w.destroy()
except RuntimeError as e:
    assert "the display is gone" in str(e)
print(x[0], ti.ui.Window("later", 64).get_image_buffer_as_numpy().shape, flush=True)
"""


# Of the messages until a window stands, in a moment of Xlib's own, of its input method's, and of the event loop's.
@pytest.mark.parametrize("after", [6, 8, 26, 27, 31, 36])
def test_the_display_ends_after_so_many_messages(after, display, tmp_path):
    broken = Broken(display, after)
    code, out, err = Program(ONCE, SimpleNamespace(name=broken.name), tmp_path).end()
    assert code == 0 and out == "3.0 (64, 64, 4)", (code, out, err[-800:])
    assert "panicked" not in err
