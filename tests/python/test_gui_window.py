"""``ti.GUI`` in a window of a desktop that nobody looks at, and without one."""

import os
import subprocess
import sys
import textwrap

import numpy as np
from desk import Program, needs_desk

import aerogel as ti

pytestmark = needs_desk

LOOP = """
gui = ti.GUI("seen", (400, 300), background_color=0x102030)
{before}
print("open", flush=True)
until = time.time() + 30
while gui.running and time.time() < until:
    {body}
    gui.show()
print("closed" if not gui.running else "late")
"""


def loop(body, before="pass"):
    body = textwrap.dedent(body).strip().replace("\n", "\n    ")
    return LOOP.format(body=body, before=textwrap.dedent(before).strip())


def test_keys_and_mouse(display, tmp_path):
    body = """
    for e in gui.get_events():
        if e.key == gui.WHEEL:
            print("wheel", e.type, e.delta)
        elif e.type != gui.MOTION:
            print(e.type, e.key, e.modifier)
    x, y = gui.get_cursor_pos()
    if gui.is_pressed("a", "b") and gui.is_pressed(gui.LMB):
        print("both", round(x * 400), round(y * 300))
    if gui.is_pressed(gui.SHIFT):
        print("shift")
    """
    program = Program(loop(body), display, tmp_path)
    program.until("open")
    program.window()
    program.do("mousemove", 100, 100, "keydown", "a")
    program.until("Press a []")
    program.do("mousedown", 1)
    program.until("both 100 200")
    program.do("mouseup", 1, "keyup", "a")
    program.until("Release a []")
    program.do("click", 4, "click", 5)
    program.until("wheel Motion (0, 120)")
    program.until("wheel Motion (0, -120)")
    # The names that Taichi 1.7.4 gives on X11.
    names = {
        "space": " ", "Return": "Return", "BackSpace": "BackSpace", "Delete": "Delete", "Insert": "Insert",
        "Prior": "Prior", "Next": "Next", "Home": "Home", "End": "End", "Up": "Up", "F12": "F12", "minus": "-",
        "Shift_R": "Shift_R", "Control_L": "Control_L", "Alt_L": "Alt_L", "Caps_Lock": "Caps_Lock",
        "KP_Enter": "KP_Enter", "Tab": "Tab", "Escape": "Escape",
    }  # fmt: skip
    for pressed, told in names.items():
        program.do("key", pressed)
        own = [told[:-2]] if told.endswith(("_L", "_R")) else []
        # For this one xdotool presses the other as well.
        program.until(f"Press {told} {own if told == 'Shift_R' else []}")
        program.until(f"Release {told} {own}")
    program.do("key", "Caps_Lock", "keydown", "shift", "key", "1")
    program.until("Press 1 ['Shift']")
    program.until("shift")
    program.process.kill()
    program.end()


def test_sliders_buttons_and_labels(display, tmp_path):
    before = """
    speed, score, go = gui.slider("speed", 0, 10), gui.label("score"), gui.button("Go")
    last = None
    """
    body = """
    if speed.value != last:
        last = speed.value
        print("speed", round(last, 2))
    for e in gui.get_events((gui.PRESS, go)):
        score.value += 1
        print("pressed", e.key, score.value)
    """
    program = Program(loop(body, before), display, tmp_path)
    program.until("speed 0.0")
    program.window()
    # It goes from 210 to 390.
    program.do("mousemove", 300, 28, "mousedown", 1)
    program.until("speed 5.0")
    # Held, it goes where the mouse goes, even beside it.
    program.do("mousemove", 345, 200)
    program.until("speed 7.5")
    program.do("mousemove", 395, 20, "mouseup", 1)
    program.until("speed 10.0")
    program.do("mousemove", 250, 28)
    program.do("mousemove", 300, 80, "click", 1)
    program.until("pressed WidgetButton_Go 1.0")
    program.do("windowclose", program.window())
    code, out, err = program.end()
    assert code == 0 and out == "closed", (out, err[-500:])


DRAWN = """
gui = ti.GUI("seen", (400, 300), background_color=0x102030)
speed, score, go = gui.slider("speed", 0, 10), gui.label("score"), gui.button("Go")
speed.value = 4
for k in range(3):
    gui.circle((0.3, 0.4), radius=60, color=0xff8000)
    gui.text("words", (0.05, 0.95), font_size=24)
    gui.show("drawn.png" if k == 2 else None)
print(gui._view is not None)
if gui._view is not None:
    import numpy as np
    seen = np.frombuffer(gui._view.pixels(), np.uint8).reshape(300, 400, 4)[::-1].swapaxes(0, 1)
    ti.tools.imwrite(seen[..., :3], "seen.png")
"""


def test_windows_show_what_files_hold(display, tmp_path):
    pictures = {}
    for where in ("desk", "nowhere"):
        folder = tmp_path / where
        folder.mkdir()
        program = Program(DRAWN, display, folder, **({} if where == "desk" else {"AEROGEL_GUI_SHOW": "0"}))
        code, out, err = program.end()
        assert code == 0 and out.endswith(str(where == "desk")), err[-500:]
        pictures[where] = ti.tools.imread(str(folder / "drawn.png"))
    assert (pictures["desk"] == pictures["nowhere"]).all()
    assert (ti.tools.imread(str(tmp_path / "desk" / "seen.png")) == pictures["desk"]).all()
    # The widgets are at the upper right, in both.
    assert (pictures["desk"][202, 298] == 0xCC).all() and pictures["desk"][120, 120].tolist() == [0xFF, 0x80, 0]


def test_a_program_that_does_not_ask_ends_when_closed(display, tmp_path):
    text = """
    gui = ti.GUI("seen", 200)
    print("open", flush=True)
    while True:
        gui.show()
    """
    program = Program(text, display, tmp_path)
    program.until("open")
    program.do("windowclose", program.window())
    assert program.end()[0] == 0


def test_closing_is_an_event(display, tmp_path):
    text = """
    gui = ti.GUI("seen", 200)
    print("open", flush=True)
    while True:
        if gui.get_event(gui.ESCAPE, gui.EXIT):
            print("told", gui.event.type, gui.event.key)
            break
        gui.show()
    print(gui.running)
    """
    program = Program(text, display, tmp_path)
    program.until("open")
    program.do("windowclose", program.window())
    code, out, err = program.end()
    assert code == 0 and out == "told Press WMClose\nFalse", err[-500:]


def test_a_window_that_vanishes_is_closed_once(display, tmp_path):
    text = """
    class Vanishing:
        closed = False
        def __init__(self, view):
            self._view = view
        def show(self):
            self.closed = True
        def __getattr__(self, name):
            return getattr(self._view, name)
    gui = ti.GUI("seen", 64)
    gui._view = Vanishing(gui._view)
    gui.show()
    gui.show()
    print([e.key for e in gui.get_events()], gui.running)
    """
    code, out, err = Program(text, display, tmp_path).end()
    assert code == 0 and out == "['WMClose'] False", (out, err[-500:])


def test_a_gui_beside_a_window_and_one_after_a_reset(display, tmp_path):
    text = """
    gui, w = ti.GUI("a", 100), ti.ui.Window("b", (120, 80))
    for k in range(5):
        gui.clear(0xff0000)
        gui.show()
        w.get_canvas().set_background_color((0, 1, 0))
        w.show()
    seen = [v.pixels()[:3].hex() for v in (gui._view, w._view)]
    gui.close()
    w.show()
    ti.reset()
    ti.init(log_level="error")
    x = ti.field(ti.f32, (64, 64))
    x.fill(1)
    again = ti.GUI("again", 64)
    again.set_image(x)
    again.show()
    print(*seen, again._view.pixels()[:3].hex(), gui.running, again.running)
    """
    code, out, err = Program(text, display, tmp_path).end()
    assert code == 0 and out == "ff0000 00ff00 ffffff False True", err[-500:]


def test_frames_are_held_back(display, tmp_path):
    text = """
    gui = ti.GUI("seen", 100)
    gui.fps_limit = 50
    gui.show()
    begin = time.time()
    for k in range(10):
        gui.show()
    print(time.time() - begin)
    """
    code, out, err = Program(text, display, tmp_path).end()
    assert code == 0 and float(out) > 0.17, err[-500:]


def test_all_the_screen(display, tmp_path):
    text = """
    gui = ti.GUI("seen", (100, 50), fullscreen=True, fast_gui=True)
    gui.set_image(np.ones((100, 50), np.float32))
    for k in range(20):
        gui.show()
    print(*gui._view.size)
    """
    code, out, err = Program("import numpy as np\n" + textwrap.dedent(text), display, tmp_path).end()
    # Without a window manager the display alone decides.
    assert code == 0 and len(out.split()) == 2, err[-500:]


def test_windows_are_opened_on_the_main_thread(display, tmp_path):
    text = """
    import threading
    def elsewhere(call):
        try:
            call()
        except RuntimeError as e:
            print(e)
    gui = ti.GUI("here", 64)
    for call in (lambda: ti.GUI("w", 64), gui.show, lambda: ti.GUI("w", 64, show_gui=False).show(), gui.close):
        t = threading.Thread(target=elsewhere, args=(call,))
        t.start()
        t.join()
    gui.show()
    print(gui.running)
    """
    code, out, err = Program(text, display, tmp_path).end()
    lines = out.splitlines()
    assert code == 0 and len(lines) == 4, err[-500:]
    assert lines[0].startswith("windows belong to the main thread") and lines[3] == "True"
    assert all("thread that made it" in line for line in lines[1:3])


def test_windows_that_are_closed_vanish(display, tmp_path):
    text = """
    import subprocess
    def n_visible():
        seen = ["xdotool", "search", "--onlyvisible", "--name", "seen"]
        return len(subprocess.run(seen, capture_output=True, text=True).stdout.split())
    gui, window = ti.GUI("seen\\0here", 64), ti.ui.Window("seen", 64)
    gui.show()
    window.show()
    time.sleep(0.3)
    print(n_visible())
    gui.close()
    window.destroy()
    time.sleep(0.3)
    print(n_visible())
    """
    code, out, err = Program(text, display, tmp_path).end()
    assert code == 0 and out.split() == ["2", "0"], (out, err[-500:])


def test_without_a_display_frames_are_pictures(tmp_path):
    text = """
    import aerogel as ti
    ti.init(log_level="error")
    gui = ti.GUI("seen", 32)
    n = 0
    while gui.running:
        gui.clear(0x00ff00)
        gui.show()
        n += 1
    print(n, "aerogel_viz" in __import__("sys").modules)
    """
    (tmp_path / "p.py").write_text(textwrap.dedent(text))
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    env.update(AEROGEL_GUI_FRAMES="4", AEROGEL_GUI_OUT="last.png")
    done = subprocess.run([sys.executable, "p.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "4 False", done.stderr[-500:]
    assert (ti.tools.imread(str(tmp_path / "last.png"))[..., :3] == np.array([0, 255, 0])).all()
