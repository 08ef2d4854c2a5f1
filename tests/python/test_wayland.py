"""Windows on a Wayland compositor that nobody looks at."""

import os
import shutil
import subprocess
import time
from types import SimpleNamespace

import pytest
from desk import Program, vulkan

pytestmark = [
    pytest.mark.skipif(not vulkan(), reason="there is no Vulkan, or no aerogel_viz"),
    pytest.mark.skipif(not shutil.which("weston"), reason="weston is missing"),
]


@pytest.fixture
def compositor(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    command = ["weston", "--backend=headless-backend.so", "--socket=wayland-9", "--idle-time=0"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=env, **quiet)
    for _ in range(200):
        if (folder / "wayland-9").exists():
            break
        time.sleep(0.05)
    else:
        process.kill()
        pytest.skip("weston does not start")
    yield SimpleNamespace(folder=folder, process=process)
    process.kill()
    process.wait()


TEXT = """
import numpy as np
x = ti.Vector.field(3, ti.f32, (320, 200))
x.fill(0.5)
w, g = ti.ui.Window("seen", (320, 200)), ti.GUI("other", (160, 100))
for _ in range(10):
    w.get_canvas().set_image(x)
    w.get_gui().slider_float("speed", 0.5, 0, 1)
    w.show()
    g.set_image(np.zeros((160, 100), np.float32))
    g.show()
print(w._backend.visible, w.running, g.running, abs(w.get_image_buffer_as_numpy()[300, 9, 0] - 0.5) < 0.01)
print("open", flush=True)
sys.stdin.readline()
try:
    for _ in range(100):
        w.get_canvas().set_image(x)
        w.show()
except RuntimeError as e:
    print(e)
print(x.to_numpy().min(), w.running)
"""


def test_windows_are_shown_until_the_compositor_ends(compositor, tmp_path):
    where = {"WAYLAND_DISPLAY": "wayland-9", "XDG_RUNTIME_DIR": str(compositor.folder)}
    program = Program(TEXT, SimpleNamespace(name=None), tmp_path, stdin=subprocess.PIPE, **where)
    assert program.line() == "True True True True"
    program.until("open")
    compositor.process.kill()
    compositor.process.wait()
    code, out, err = program.end("\n")
    assert (code, out) == (0, "the display is gone\n0.5 False"), err[-800:]
