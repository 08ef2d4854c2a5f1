"""Windows on Wayland, on a compositor that nobody looks at."""

import shutil
import subprocess
import time

import pytest
from desk import Program, vulkan

pytestmark = [
    pytest.mark.skipif(not vulkan(), reason="there is no Vulkan, or no aerogel_viz"),
    pytest.mark.skipif(not shutil.which("weston"), reason="weston is missing"),
]

TEXT = """
w, gui = ti.ui.Window("seen", (200, 100)), ti.GUI("g", 64)
x = ti.field(ti.f32, (64, 64))
x.fill(1)
print("open", w._view.visible, gui._view is not None, flush=True)
failed = []
until = time.time() + 20
for k in range(100000):
    for v in (w, gui):
        try:
            if v is w:
                w.get_canvas().set_background_color((1, 0, 0))
                w.GUI.text("words")
            else:
                gui.set_image(x)
            v.show()
        except RuntimeError as e:
            failed.append(str(e))
    if k == 20:
        print("shown", flush=True)
    if len(failed) == 2 or time.time() > until or (k > 30 and {is_short}):
        break
print(*failed, w.running, gui.running, x.to_numpy().min(), w.get_image_buffer_as_numpy()[0, 0, 0], flush=True)
"""


@pytest.fixture
def compositor(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    command = ["weston", "--backend=headless-backend.so", "--socket=tried", "--width=800", "--height=600"]
    env = {"XDG_RUNTIME_DIR": str(folder), "PATH": "/usr/bin:/bin"}
    server = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.time() + 15
    while not (folder / "tried").exists() and time.time() < until:
        time.sleep(0.05)
    if not (folder / "tried").exists():
        server.kill()
        pytest.skip("weston does not start")
    server.name, server.folder = "", str(folder)
    yield server
    server.kill()
    server.wait()


def program(text, compositor, tmp_path):
    where = {"WAYLAND_DISPLAY": "tried", "XDG_RUNTIME_DIR": compositor.folder}
    return Program(text, compositor, tmp_path, **where)


def test_windows_are_shown(compositor, tmp_path):
    code, out, err = program(TEXT.format(is_short=True), compositor, tmp_path).end()
    assert code == 0 and out.splitlines() == ["open True True", "shown", "True True 1.0 1.0"], (out, err[-500:])


def test_a_compositor_that_ends_is_an_exception(compositor, tmp_path):
    running = program(TEXT.format(is_short=False), compositor, tmp_path)
    running.until("shown")
    compositor.kill()
    code, out, err = running.end()
    gone = "the display is gone"
    assert code == 0 and out == f"{gone} {gone} False False 1.0 1.0", (out, err[-500:])
    assert len(err) < 5000
