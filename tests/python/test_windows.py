"""``ti.ui`` on a desktop that nobody looks at: windows, keys, mouse."""

import json
import signal
import subprocess
import textwrap
import time

import numpy as np
import pytest
from desk import Program, colors, needs_desk

pytestmark = needs_desk


LOOP = """
w = ti.ui.Window("seen", (400, 300), pos=(0, 0))
canvas = w.get_canvas()
print("open")
until = time.time() + 30
while w.running and time.time() < until:
    canvas.set_background_color((0.5, 0.5, 0.5))
    {body}
    w.show()
print("closed" if not w.running else "late")
"""


def test_keys_and_mouse(display, tmp_path):
    body = """
    for e in w.get_events():
        print(e.type, e.key)
    x, y = w.get_cursor_pos()
    if w.is_pressed("a") and w.is_pressed(ti.ui.LMB):
        print("both", round(x * 400), round(y * 300))
    """
    program = Program(LOOP.format(body=textwrap.dedent(body).strip().replace("\n", "\n    ")), display, tmp_path)
    program.until("open")
    program.window()
    program.do("mousemove", 100, 100)
    program.do("keydown", "a")
    program.until("Press a")
    program.do("mousedown", 1)
    program.until("Press LMB")
    program.until("both 100 200")
    program.do("mouseup", 1, "keyup", "a", "key", "space", "key", "Escape")
    program.until("Release LMB")
    program.until("Press  ")
    program.until("Press Escape")
    program.process.kill()
    program.end()


def test_a_slider_is_dragged_and_a_button_pressed(display, tmp_path):
    body = """
    with w.get_gui().sub_window("p", 0.0, 0.0, 0.5, 0.5) as g:
        x = g.slider_float("x", x, 0.0, 1.0)
        if g.button("a button"):
            print("pressed")
    if x != last:
        last = x
        print("moved")
    """
    text = "x = last = 0.0\n" + LOOP.format(body=textwrap.dedent(body).strip().replace("\n", "\n    "))
    program = Program(text, display, tmp_path)
    program.until("open")
    time.sleep(1)
    program.do("mousemove", 20, 45, "mousedown", 1)
    time.sleep(0.3)
    program.do("mousemove", 60, 45)
    time.sleep(0.3)
    program.do("mousemove", 70, 45, "mouseup", 1)
    program.until("moved")
    program.do("mousemove", 40, 66)
    time.sleep(0.3)
    program.do("mousedown", 1)
    time.sleep(0.3)
    program.do("mouseup", 1)
    program.until("pressed")
    program.process.kill()
    program.end()


def test_resized_and_closed(display, tmp_path):
    body = 'print("size", *w.get_window_shape())'
    program = Program(LOOP.format(body=body), display, tmp_path)
    program.until("size 400 300")
    window = program.window()
    program.do("windowsize", window, 320, 200)
    program.until("size 320 200")
    program.do("windowclose", window)
    code, out, err = program.end()
    assert code == 0 and out.endswith("closed"), err[-500:]


@pytest.mark.parametrize("panel", [False, True])
def test_destroyed_while_the_program_looks_elsewhere(panel, display, tmp_path):
    """All that happens to the window is there to be read at once, and the window is not."""
    body = "print('size', *w.get_window_shape()); time.sleep(0.5)"
    if panel:
        body += "; w.get_gui().text('a line')"
    program = Program(LOOP.format(body=body), display, tmp_path)
    program.until("size 400 300")
    window = program.window()
    program.until("size 400 300")
    program.do("windowsize", window, 320, 200, "windowmove", window, 20, 30, "windowclose", window)
    code, out, err = program.end()
    assert code == 0 and out.endswith("closed"), err[-500:]


def test_two_windows_and_one_after_a_reset(display, tmp_path):
    text = """
    a, b = ti.ui.Window("a", 100), ti.ui.Window("b", (120, 80))
    for k in range(5):
        for w, c in ((a, 1.0), (b, 0.5)):
            w.get_canvas().set_background_color((c, 0, 0))
            w.show()
    print(a.get_image_buffer_as_numpy()[5, 5, 0] > 0.9, abs(b.get_image_buffer_as_numpy()[5, 5, 0] - 0.5) < 0.01)
    a.destroy()
    b.show()
    ti.reset()
    ti.init(log_level="error")
    c = ti.ui.Window("c", 64)
    x = ti.field(ti.f32, (64, 64))
    x.fill(1)
    c.get_canvas().set_image(x)
    c.show()
    print(c.get_image_buffer_as_numpy().min())
    """
    code, out, err = Program(text, display, tmp_path).end()
    assert code == 0 and out.split() == ["True", "True", "1.0"], err[-800:]


def test_windows_are_opened_on_the_main_thread(display, tmp_path):
    text = """
    import threading
    def elsewhere():
        try:
            ti.ui.Window("w", 64)
        except RuntimeError as e:
            print(e)
    t = threading.Thread(target=elsewhere)
    t.start()
    t.join()
    ti.ui.Window("w", 64).show()
    """
    code, out, err = Program(text, display, tmp_path).end()
    assert code == 0 and out.startswith("windows belong to the main thread"), err[-800:]


def test_ctrl_c_ends_a_program_that_shows(display, tmp_path):
    program = Program(LOOP.format(body="pass"), display, tmp_path)
    program.until("open")
    time.sleep(0.5)
    program.process.send_signal(signal.SIGINT)
    code, out, err = program.end()
    assert code != 0 and "KeyboardInterrupt" in err


SHOWN = """
import numpy as np
left = np.zeros((300, 200, 3), np.float32)
left[:150] = 1, 0.4, 0
left[150:] = 0, 0.2, 0.8
field = ti.Vector.field(3, ti.f32, (300, 200))
field.from_numpy(left)
{made}
for _ in range(5):
    {draw}
    w.show()
print("open", flush=True)
sys.stdin.readline()
"""

ON_SCREEN = {
    "an image that is as large as the window": ("Window", "w.get_canvas().set_image(field)"),
    "one of NumPy": ("Window", "w.get_canvas().set_image(left)"),
    "one that is stretched by the device": (
        "Window",
        "w.get_canvas().set_image(np.repeat(np.repeat(left, 2, 0), 2, 1))",
    ),
    "a small one": ("Window", "w.get_canvas().set_image(left[::100, ::100])"),
    "what a GUI paints": ("GUI", "w.set_image(field)"),
    "triangles": (
        "Window",
        "w.get_canvas().set_background_color((0, 0.2, 0.8));"
        " w.get_canvas().triangles(np.float32([[0, 0], [0.5, 0], [0.5, 1], [0, 0], [0.5, 1], [0, 1]]), (1, 0.4, 0))",
    ),
}


@pytest.mark.parametrize("what", ON_SCREEN)
def test_colours_on_the_screen(what, display, tmp_path):
    """Red is red there and blue is blue, and so they are in pictures that are read back."""
    kind, draw = ON_SCREEN[what]
    made = 'w = ti.ui.Window("seen", (300, 200))' if kind == "Window" else 'w = ti.GUI("seen", (300, 200))'
    text = SHOWN.format(made=made, draw=draw)
    if kind == "Window":
        text = text.replace('print("open"', 'print(w.get_image_buffer_as_numpy()[::299, 9].tolist())\nprint("open"')
    program = Program(text, display, tmp_path, stdin=subprocess.PIPE)
    if kind == "Window":
        read = json.loads(program.line())
        assert np.abs(np.subtract(read, [[1, 0.4, 0, 1], [0, 0.2, 0.8, 1]])).max() < 0.01
    program.until("open")
    time.sleep(0.3)
    found = colors(display)
    assert program.end("\n")[0] == 0
    near = {(255, 102, 0): 0, (0, 51, 204): 0}
    for color, number in found.items():
        for wanted in near:
            near[wanted] += number * (np.abs(np.subtract(color, wanted)).max() <= 1)
    # Half of the window each, but for what lies between the pixels of an image that is stretched.
    assert all(9_000 <= number <= 31_000 for number in near.values()), found
