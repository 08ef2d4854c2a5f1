"""Pictures of Taichi's example programs with windows, drawn without a desktop, and how they are compared with those kept.

    python tests/python/pictures.py [NAME...]     # makes the kept pictures anew, of all programs or of these

A picture is made smaller by averaging, so that another version of a driver, which draws an edge a little elsewhere, changes it little.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
EXAMPLES = Path(os.environ.get("AEROGEL_TAICHI_EXAMPLES", HERE.parents[1] / ".cache/taichi/examples"))
KEPT = HERE.parent / "data" / "pictures"
WIDTH = 256

#: The programs, and after how many frames they are looked at.
PROGRAMS = {
    "ggui_examples/fem128_ggui.py": 30,
    "ggui_examples/fractal3d_ggui.py": 2,
    # Its points read velocities that others change: once the cloth folds, the order of iterations shows.
    "ggui_examples/mass_spring_3d_ggui.py": 18,
    "ggui_examples/mass_spring_game_ggui.py": 3,
    "ggui_examples/mpm128_ggui.py": 30,
    "ggui_examples/mpm3d_ggui.py": 3,
    "ggui_examples/stable_fluid_ggui.py": 10,
    "graph/texture_graph.py": 10,
    "rendering/cornell_box.py": 3,
    "rendering/simple_texture.py": 10,
    "algorithm/poisson_disk_sampling.py": 3,
    "real_func/rendering/cornell_box.py": 3,
    "real_func/algorithm/poisson_disk_sampling.py": 3,
}

#: A mouse that goes round with its left button down, for programs that wait for one.
MOUSE = """
import math, sys
import numpy
numpy.random.seed(0)
from aerogel.ui import window

def pressed(self, *keys):
    return "LMB" in keys

def cursor(self):
    return 0.5 + 0.3 * math.cos(0.4 * self._shown), 0.5 + 0.3 * math.sin(0.4 * self._shown)

window.Window.is_pressed, window.Window.get_cursor_pos = pressed, cursor
from aerogel.cli import main
sys.exit(main(["run", sys.argv[1]]))
"""

#: A pixel differs when one of its channels does by more than this, of 255 ...
NEAR = 12
#: ... and so large a part of them may: what moves, and what is drawn by chance, is rounded differently on other processors.
PART = 0.005


def kept(program):
    """Where the picture of a program is."""
    return KEPT / (program.removesuffix(".py").replace("/", "-") + ".png")


def draw(program, frames, without_vulkan=False):
    """What a program shows after so many frames, as rows of bytes, made smaller."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.png"
        env = {**os.environ, "AEROGEL_GUI_FRAMES": str(frames), "AEROGEL_GUI_OUT": str(out)}
        # Sums in one order, random numbers in one order.
        env["AEROGEL_CPU_MAX_NUM_THREADS"] = "1"
        env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        env.pop("DISPLAY", None)
        env.pop("WAYLAND_DISPLAY", None)
        if without_vulkan:
            env["VK_DRIVER_FILES"] = env["VK_ICD_FILENAMES"] = "/nowhere"
        command = [sys.executable, "-c", MOUSE, str(EXAMPLES / program)]
        run = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=600)
        assert run.returncode == 0 and out.exists(), run.stderr[-2000:]
        with Image.open(out) as picture:
            return smaller(picture)


def smaller(picture):
    """A picture as wide as those that are kept."""
    from PIL import Image

    size = (WIDTH, round(picture.height * WIDTH / picture.width))
    return np.asarray(picture.convert("RGB").resize(size, Image.Resampling.BOX))


def difference(one, other):
    """How large a part of the pixels of two pictures differs."""
    assert one.shape == other.shape, (one.shape, other.shape)
    return float((np.abs(one.astype(int) - other).max(-1) > NEAR).mean())


def main():
    """Makes them anew, and says how much they changed."""
    from PIL import Image

    KEPT.mkdir(parents=True, exist_ok=True)
    for program in [p for p in PROGRAMS if not sys.argv[1:] or any(name in p for name in sys.argv[1:])]:
        found, file = draw(program, PROGRAMS[program]), kept(program)
        changed = ""
        if file.exists():
            with Image.open(file) as before:
                changed = f", {difference(found, np.asarray(before.convert('RGB'))):.2%} differ"
        Image.fromarray(found).save(file, optimize=True)
        print(f"{program}: {file.stat().st_size / 1000:.0f} kB{changed}", flush=True)


if __name__ == "__main__":
    main()
