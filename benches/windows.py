"""Frames a second of the wheel's programs with windows, beside Taichi's own windows on the same Vulkan.

    DISPLAY=:1 python benches/windows.py EXAMPLES [--taichi PYTHON] [--frames 30] [PART_OF_A_NAME...]

`EXAMPLES` is `taichi/examples` of `taichi==1.7.4`, `PYTHON` one that has it. No window is opened, and each frame's
picture is read; Taichi wants a display even so (an Xvfb will do). `image` is one of 1920 x 1080 that changes, `balls` a
million of them, `mesh` a million triangles, `waves` the same with vertices that move.
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
PROGRAMS += ["algorithm/poisson_disk_sampling.py", "real_func/algorithm/poisson_disk_sampling.py"]
PROGRAMS += ["real_func/rendering/cornell_box.py", "simulation/implicit_fem.py --gui ggui"]
PROGRAMS += ["simulation/implicit_mass_spring.py --use-ggui", "autodiff/diff_sph/diff_sph.py"]
OWN = ["image", "balls", "mesh", "waves"]


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
    program, *_ = sys.argv = program.split()
    if program == "image":
        image(ti)
    elif program in OWN:
        scene(ti, program)
    sys.path.insert(0, os.path.dirname(program))
    runpy.run_path(program, run_name="__main__")


def image(ti):
    """A picture that changes."""
    ti.init(arch=ti.cpu)
    window = ti.ui.Window("image", (1920, 1080))
    canvas = window.get_canvas()
    image = ti.Vector.field(3, float, (1920, 1080))

    @ti.kernel
    def paint(t: float):
        for i, j in image:
            image[i, j] = [i / 1920, j / 1080, t]

    for k in range(10**9):
        paint(k % 2)
        canvas.set_image(image)
        window.show()


def scene(ti, what):
    """Balls or triangles."""
    import numpy as np

    ti.init(arch=ti.cpu)
    window = ti.ui.Window(what, (640, 480))
    canvas, scene, camera = window.get_canvas(), window.get_scene(), ti.ui.Camera()
    n = 708
    balls = ti.Vector.field(3, float, 10**6)
    balls.from_numpy(np.random.default_rng(1).uniform(-1, 1, (10**6, 3)).astype("f4"))
    vertices, corners = ti.Vector.field(3, float, n * n), ti.field(int, (n - 1) ** 2 * 6)
    a = np.arange(n - 1)[:, None] * n + np.arange(n - 1)
    corners.from_numpy(np.stack([a, a + 1, a + n, a + 1, a + n + 1, a + n], -1).ravel().astype("i4"))

    @ti.kernel
    def wave(t: float):
        for i, j in ti.ndrange(n, n):
            u, v = 2 * i / n - 1, 2 * j / n - 1
            vertices[i * n + j] = [u, 0.1 * ti.sin(10 * u + t) * ti.cos(10 * v), v]

    wave(0)
    camera.position(0, 0 if what == "balls" else 2, 4 if what == "balls" else 2)
    camera.lookat(0, 0, 0)
    for k in range(10**9):
        scene.set_camera(camera)
        scene.ambient_light((0.5, 0.5, 0.5))
        scene.point_light((2, 2, 2), (0.5, 0.5, 0.5))
        if what == "balls":
            scene.particles(balls, radius=0.002, color=(0.9, 0.5, 0.2))
        else:
            if what == "waves":
                wave(k)
            scene.mesh(vertices, corners, color=(0.9, 0.5, 0.2))
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
