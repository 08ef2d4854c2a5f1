"""Plays a Taichi example program for some frames and writes digests of its fields.

The same file runs under Taichi itself (to make the numbers in `digests/`) and under Aerogel (to test them):

    python play.py taichi PROGRAM.py FRAMES OUT.json
    python play.py aerogel PROGRAM.py FRAMES OUT.json

The program is not changed. Around it, everything that the two could do differently for no reason of their own is
replaced: loops run on one thread, random numbers come from a counter, and the GUI is a stand-in that moves the mouse
by a script and ends the program after so many frames.
"""

import builtins
import contextlib
import ctypes
import json
import os
import random
import sys
import tempfile
import time
from types import ModuleType

module, program, frames, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
stem = os.path.basename(program)[:-3]
if module == "aerogel":
    from aerogel import run

    run.install(program)

import numpy as np  # noqa: E402

import taichi as ti  # noqa: E402

real_init = ti.init
counter = None


def init(*args, **kwargs):
    """`ti.init` on one thread, without fast maths, with random numbers that count.

    With `PLAY_DEFAULTS` it is as users have it: all threads, and fast maths.
    """
    global counter
    kwargs.update(arch=os.environ.get("PLAY_ARCH", "x64") if module == "aerogel" else ti.cpu)
    if "PLAY_DEFAULTS" not in os.environ:
        kwargs.update(cpu_max_num_threads=1, fast_math=False)
    kwargs.pop("print_ir", None)
    if module == "taichi":
        kwargs.update(offline_cache=False)
    real_init(log_level="error", **kwargs)
    counter = ti.field(ti.u32, ())

    @ti.func
    def random():
        n = ti.atomic_add(counter[None], ti.u32(1))
        n = (n ^ ti.u32(61)) ^ (n >> ti.u32(16))
        n *= ti.u32(9)
        n = n ^ (n >> ti.u32(4))
        n *= ti.u32(668265261)
        n = n ^ (n >> ti.u32(15))
        return ti.cast(n >> ti.u32(8), ti.f32) * (1.0 / 16777216.0)

    @ti.func
    def randn():
        s = -6.0
        for _ in ti.static(range(12)):
            s += random()
        return s

    ti.random, ti.randn = random, randn


class Event:
    def __init__(self, key, pos):
        self.type, self.key, self.pos = "Press", key, pos


class GUI:
    """Draws nothing; the mouse moves along a line, and is pressed where the program waits for it."""

    ESCAPE, EXIT, SPACE, LMB, RMB, MMB = "Escape", "WMClose", " ", "LMB", "RMB", "MMB"
    PRESS, RELEASE, MOTION, UP, DOWN, LEFT, RIGHT = "Press", "Release", "Motion", "Up", "Down", "Left", "Right"
    event = None
    running = True

    def __init__(self, *args, **kwargs):
        self.frame = 0

    def get_events(self, *filters):
        if stem == "waterwave" and self.frame == 0:
            yield Event("LMB", (0.375, 0.5))

    def get_event(self, *filters):
        return False

    def is_pressed(self, *keys):
        return stem == "stable_fluid" and "LMB" in keys

    def get_cursor_pos(self):
        return (0.25 + 0.03125 * self.frame, 0.5)

    def slider(self, text, low, high, step=1):
        return type("Slider", (), {"value": low})

    def show(self, *args):
        self.frame += 1
        if self.frame >= frames:
            raise SystemExit(0)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def digest(a):
    """Shape, mean, root mean square and some elements of an array."""
    a = np.asarray(a, np.float64)
    flat = a.reshape(-1)
    step = max(1, flat.size // 29)
    return {
        "shape": list(a.shape),
        "mean": float(flat.mean()),
        "rms": float(np.sqrt((flat * flat).mean())),
        "samples": [float(f"{x:.8g}") for x in flat[::step][:29]],
    }


class Plots(ModuleType):
    """Matplotlib, which draws nothing."""

    def __getattr__(self, name):
        return Plots(name)

    def __call__(self, *args, **kwargs):
        return self

    def __getitem__(self, key):
        return self


real_kernel = ti.kernel


def kernel(function):
    """`ti.kernel` whose calls are the frames: `sdf_renderer` shows its picture only after 11 of them."""
    made = real_kernel(function)
    calls = 0

    def call(*args):
        nonlocal calls
        made(*args)
        calls += 1
        if calls >= frames:
            raise SystemExit(0)

    return call


def quarter(*args, shape, **kwargs):
    """`ti.Vector.field` of half the extents: a quarter of the picture is as good, and quicker."""
    return real_field(*args, shape=tuple(n // 2 for n in shape), **kwargs)


class Clock:
    """Time that passes by a tenth of a second whenever somebody looks."""

    now = 0.0

    def __call__(self):
        self.now += 0.1
        return self.now


if stem == "marching_squares":
    time.perf_counter = Clock()
if stem == "sdf_renderer":
    ti.kernel = kernel
    real_field, ti.Vector.field = ti.Vector.field, quarter
ti.init, ti.GUI = init, GUI
np.random.seed(0)
random.seed(0)
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = Plots("matplotlib")
main = ModuleType("__main__")
main.__file__, main.__builtins__ = program, builtins
sys.modules["__main__"] = main
sys.argv = [program]
# Kernels print past Python's standard output, so the file behind it is replaced.
with tempfile.TemporaryFile("w+") as printed:
    sys.stdout.flush()
    terminal = os.dup(1)
    os.dup2(printed.fileno(), 1)
    try:
        with open(program, "rb") as f, contextlib.suppress(SystemExit):
            exec(compile(f.read(), program, "exec"), main.__dict__)
        ti.sync()
    finally:
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)
        os.dup2(terminal, 1)
    printed.seek(0)
    lines = [line for line in printed.read().splitlines() if not line.startswith("[Taichi]")]


def found(name, value, depth=0):
    """The fields and arrays behind a name: in lists, and in the program's own objects."""
    if isinstance(value, (ti.Field, ti.Ndarray)) or type(value).__name__ == "StructField":
        members = value.to_numpy()
        if isinstance(members, dict):
            yield from ((f"{name}.{m}", a) for m, a in sorted(members.items()))
        else:
            yield name, members
            gradient = getattr(value, "grad", None) if isinstance(value, ti.Field) else None
            if gradient is not None and getattr(gradient.snode, "ptr", gradient) is not None:
                yield f"{name}.grad", gradient.to_numpy()
    elif isinstance(value, np.ndarray) and name.startswith("jacobian"):
        yield name, value
    elif isinstance(value, (list, tuple)) and depth < 2:
        for k, item in enumerate(value):
            yield from found(f"{name}[{k}]", item, depth + 1)
    elif depth == 0 and type(value).__module__ == "__main__":
        for attribute, item in sorted(vars(value).items()):
            yield from found(f"{name}.{attribute}", item, depth + 1)


fields = {n: digest(a) for name, v in sorted(vars(main).items()) for n, a in found(name, v)}
with open(out, "w") as f:
    json.dump({"frames": frames, "printed": lines, "fields": fields}, f, indent=1)
    f.write("\n")
