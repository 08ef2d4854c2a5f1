"""What a 1080p image that changes in every frame costs: `set_image`, and the frame with its picture read back.

    DISPLAY=:1 python benches/images.py [--taichi PYTHON] [--frames 30]

`PYTHON` is one that has `taichi==1.7.4`, which wants a display even though no window is opened (an Xvfb will do).
Times are milliseconds of the processor, on all cores; the least and the median of all frames, which say more on a machine
that does other things as well.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

IMAGES = ["f32", "vec3 f32", "u8", "vec3 u8", "numpy f32", "numpy u8"]
RES = (1920, 1080)


def child(module, frames):
    """Prints for each kind of image the times of `set_image` and of the frame."""
    import importlib

    import numpy as np

    ti = importlib.import_module(module)
    ti.init(arch=ti.cpu, log_level="error")
    window = ti.ui.Window("images", RES, show_window=False)
    canvas = window.get_canvas()
    for kind in IMAGES:
        dtype = ti.f32 if "f32" in kind else ti.u8
        name, most = (np.float32, 1) if "f32" in kind else (np.uint8, 255)
        shape = (*RES, 3) if "vec3" in kind or "numpy" in kind else RES
        values = [(np.random.default_rng(k).random(shape) * most).astype(name) for k in range(2)]
        image = ti.Vector.field(3, dtype, RES) if "vec3" in kind else ti.field(dtype, RES)
        set_image, frame = [], []
        for k in range(frames + 3):
            if "numpy" in kind:
                image = values[k % 2]
            else:
                image.from_numpy(values[k % 2])
            begin = time.process_time()
            canvas.set_image(image)
            middle = time.process_time()
            window.get_image_buffer_as_numpy()
            end = time.process_time()
            if k >= 3:
                set_image.append((middle - begin) * 1e3)
                frame.append((end - begin) * 1e3)
        times = [min(set_image), statistics.median(set_image), min(frame), statistics.median(frame)]
        print("result", kind, *(f"{t:.1f}" for t in times), sep="|", flush=True)
    os._exit(0)


def measured(python, module, frames):
    """The times of each kind of image, as far as the program came."""
    command = [python, os.path.abspath(__file__), "--play", module, "--frames", str(frames)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    rows = [line.split("|")[1:] for line in run.stdout.splitlines() if line.startswith("result")]
    return {kind: times for kind, *times in rows}


def main():
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taichi", help="a Python that has taichi==1.7.4")
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("--play", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        child(options.play, options.frames)
    print("| image | Aerogel: set_image, least | median | frame, least | median | Taichi: set_image, least | median | frame, least | median |")
    print("|" + "---|" * 9)
    found = [
        measured(python, module, options.frames) if python else {}
        for python, module in ((sys.executable, "aerogel"), (options.taichi, "taichi"))
    ]
    for kind in IMAGES:
        cells = [cell for times in found for cell in times.get(kind, [""] * 4)]
        print("| " + " | ".join([kind, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
