"""Fingerprints of the gallery's programs: `python -m decisions.gallery NAME ...` prints one JSON object a line.

A program runs small and on one thread, where sums of threads have one order. Its fingerprints are hashes of the numbers
and the picture that it returns, and of every field that it holds at its end.
"""

import gc
import hashlib
import importlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[3]
MOST_CELLS = 1 << 22
# Programs in which the lanes of a level add the terms of a parallel loop's sum: these differ whatever `fast_math` is.
PARALLEL_SUMS = {
    "stable_fluid": "the mean square of the divergence, a number that it returns",
    "smoke3d": "the mean square of the divergence; by default the light, too, a sum along each ray",
    "diff_wave": "the loss, a sum over the field",
    "diff_smoke": "the loss, a sum over the field, and the gradient of the sources, a sum of adjoints",
}
# Programs that differ by default only, by accumulations of loops in which lanes take part; all others are equal bit by bit.
ACCUMULATIONS: dict[str, str] = {
    "nbody": "the force on a body, a sum over all others",
    "tensor_fluid": "the mean of the vorticity, which is subtracted from it",
    "sph": "the density of a particle and its acceleration, sums over the neighbours",
    "poisson": "the inner products of conjugate gradients",
    "mpm": "products of matrices",
    "snow3d": "products of matrices",
    "fit": "the loss, and its gradient, sums over the picture and the spots",
    "diff_mass_spring": "the loss and its gradient, and sums of a network's layer",
    "diff_mpm": "products of matrices, and the gradient of the loss",
    "diff_electric": "the force on a body, a sum over the electrodes, and its gradient",
    "diff_rigid": "sums of a network's layer, and the gradient of the loss",
    "diff_water": "the loss, a sum over the field, and its gradient",
    "diff_mpm3d": "products of matrices, and the gradient of the loss",
    "diff_liquid": "products of matrices, and the gradient of the loss",
}
# Programs that are short: all of them in half a minute.
SHORT = ["stable_fluid", "smoke3d", "path_tracer", "mpm", "sph", "cloth", "voxels", "playground", "nbody", "mandelbrot"]
SHORT += [
    "reaction_diffusion",
    "tensor_fluid",
    "waves",
    "life",
    "marching_squares",
    "poisson",
    "diff_wave",
    "diff_smoke",
]


def digest(array):
    """A short hash of values, their type and shape; one NaN stands for all."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    head = f"{array.dtype} {array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()[:12]


def fields():
    """The hashes of all fields and arrays that live, sorted."""
    import aerogel as ti

    found = []
    for thing in gc.get_objects():
        if isinstance(thing, (ti.Field, ti.Ndarray)):
            # Sparse fields may be larger than memory.
            if np.prod(thing.shape, dtype=float) > MOST_CELLS:
                continue
            try:
                array = thing.to_numpy()
            except (ti.AerogelRuntimeError, RuntimeError):
                # Its tree is gone, or has not been made.
                continue
            found += map(digest, array.values()) if isinstance(array, dict) else [digest(array)]
    return sorted(found)


def fingerprints(name):
    """The hashes of one program, run here."""
    module = importlib.import_module(name)
    held = []

    def at_end(frame, event, _):
        if event == "return" and frame.f_code is module.main.__code__:
            sys.setprofile(None)
            held.extend(fields())

    sys.setprofile(at_end)
    try:
        image, numbers = module.main(small=True)
    finally:
        sys.setprofile(None)
    exact = {key: float(value).hex() for key, value in numbers.items()}
    return {"name": name, "picture": digest(np.asarray(image)), "fields": held, "numbers": exact}


def run(level, names, seconds=1800):
    """The fingerprints of programs at a level of x86-64, each program's by its name; another process computes them."""
    env = os.environ | {
        "AEROGEL_CPU": level,
        "AEROGEL_CPU_MAX_NUM_THREADS": "1",
        "AEROGEL_OFFLINE_CACHE": "0",
        "AEROGEL_LOG_LEVEL": "error",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "python"), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "decisions.gallery", *names]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stderr[-4000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {each["name"]: each for each in found}


def difference(a, b):
    """What of two runs of a program differs; nothing if they are equal bit by bit."""
    parts = [part for part in ("picture", "fields") if a[part] != b[part]]
    parts += [
        f"{key}: {float.fromhex(a['numbers'][key])!r}, {float.fromhex(b['numbers'][key])!r}"
        for key in a["numbers"]
        if a["numbers"][key] != b["numbers"][key]
    ]
    return "; ".join(parts)


def may_differ():
    """The programs that may differ, and why, as the environment sets `fast_math`."""
    return PARALLEL_SUMS | ({} if os.environ.get("AEROGEL_FAST_MATH") in ("0", "false") else ACCUMULATIONS)


def compared(levels, names):
    """For each program that differs between levels: what differs from the first of them."""
    with ThreadPoolExecutor(2) as pool:
        first, *others = pool.map(lambda level: run(level, names), levels)
    found = {}
    for level, results in zip(levels[1:], others):
        for name in names:
            what = difference(first[name], results[name])
            if what:
                found.setdefault(name, []).append(f"{level} from {levels[0]}: {what}")
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "examples"))
    for program in sys.argv[1:]:
        print("\n" + json.dumps(fingerprints(program)), flush=True)
