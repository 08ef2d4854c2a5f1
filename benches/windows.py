"""Frames a second of the wheel's programs with windows, beside Taichi's own windows on the same Vulkan.

    DISPLAY=:1 python benches/windows.py EXAMPLES [--taichi PYTHON] [--frames 30] [PART_OF_A_NAME...]

`EXAMPLES` is `taichi/examples` of `taichi==1.7.4`, `PYTHON` one that has it. No window is opened, and each frame's
picture is read; Taichi wants a display even so (an Xvfb will do). `image` is one of 1920 x 1080 that changes, `balls` a
million of them.
On a machine that does other things as well, the time of the processor says more than the frames a second.
"""

import argparse
import os
import runpy
import subprocess
import sys
import time

PROGRAMS = [f"ggui_examples/{p}_ggui.py" for p in ("fem128", "fractal3d", "mass_spring_3d", "mass_spring_game")]
PROGRAMS += [f"ggui_examples/{p}_ggui.py" for p in ("mpm128", "mpm3d", "stable_fluid")]
PROGRAMS += ["rendering/simple_texture.py", "graph/texture_graph.py", "rendering/cornell_box.py"]
OWN = ["image", "balls"]


def child(module, program, frames):
    """Plays a program, and prints the seconds of the wall and of the processor that a frame takes."""
    if module == "aerogel":
        from aerogel import run

        run.install(program)
    import taichi as ti

    class Window(ti.ui.Window):
        event = None

        def __init__(self, name, res, vsync=False, show_window=True, fps_limit=1000, pos=(100, 100)):
            super().__init__(name, res, show_window=False)
            self.n = 0

        running = property(lambda self: True)

        # What Taichi has for windows on a desktop only.
        def get_event(self, tag=None):
            return False

        def get_events(self, tag=None):
            return []

        def is_pressed(self, *keys):
            return False

        def get_cursor_pos(self):
            return 0.5, 0.5

        def show(self):
            self.get_image_buffer_as_numpy()
            self.n += 1
            if self.n == 3:
                self.begin = time.perf_counter(), time.process_time()
            if self.n == frames + 3:
                wall, busy = (now - begin for now, begin in zip((time.perf_counter(), time.process_time()), self.begin))
                print(f"\nresult {wall / frames} {busy / frames}", flush=True)
                os._exit(0)

    ti.ui.Window = Window
    sys.argv = [program]
    if program in OWN:
        own(ti, program)
    sys.path.insert(0, os.path.dirname(program))
    runpy.run_path(program, run_name="__main__")


def own(ti, what):
    """A picture that changes, or balls that stay where they are."""
    import numpy as np

    ti.init(arch=ti.cpu)
    res = (1920, 1080) if what == "image" else (640, 480)
    window = ti.ui.Window(what, res)
    canvas = window.get_canvas()
    if what == "image":
        image = ti.Vector.field(3, float, res)

        @ti.kernel
        def paint(t: float):
            for i, j in image:
                image[i, j] = [i / 1920, j / 1080, t]

        for k in range(10**9):
            paint(k % 2)
            canvas.set_image(image)
            window.show()
    balls = ti.Vector.field(3, float, 10**6)
    balls.from_numpy(np.random.default_rng(1).uniform(-1, 1, (10**6, 3)).astype("f4"))
    scene, camera = ti.ui.Scene(), ti.ui.Camera()
    camera.position(0, 0, 4)
    camera.lookat(0, 0, 0)
    while True:
        scene.set_camera(camera)
        scene.ambient_light((0.5, 0.5, 0.5))
        scene.point_light((2, 2, 2), (0.5, 0.5, 0.5))
        scene.particles(balls, radius=0.002, color=(0.9, 0.5, 0.2))
        canvas.scene(scene)
        window.show()


def measured(python, module, program, frames):
    """Seconds of wall and processor for a frame, or nothing."""
    command = [python, os.path.abspath(__file__), "--play", module, program, "--frames", str(frames)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return None
    found = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("result ")]
    return tuple(map(float, found[0])) if found else None


def main():
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--taichi", help="a Python that has taichi==1.7.4")
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("--play", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        child(*options.play, options.frames)
    chosen = [p for p in PROGRAMS + OWN if not options.names or any(name in p for name in options.names)]
    print("| program | Aerogel: frames/s | processor | Taichi: frames/s | processor |\n|---|---|---|---|---|")
    for program in chosen:
        path = program if program in OWN else os.path.join(options.examples, program)
        cells = [program]
        for python, module in ((sys.executable, "aerogel"), (options.taichi, "taichi")):
            found = measured(python, module, path, options.frames) if python else None
            cells += [f"{1 / found[0]:.1f}", f"{found[1] * 1e3:.1f} ms"] if found else ["", ""]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
