#!/usr/bin/env python3
"""Benchmarks on a GPU: shares of what the card copies and computes, beside Taichi and Warp, in one run.

    python benches/gpu.py [-m aerogel,taichi,warp] [-c triad,nbody] [-r rounds] [--quick] [--out folder]

Each kernel of each package lives in a process of its own; the runner asks them for one sample each in turn, so that
what disturbs the machine hits all alike. What the card copies and computes at most is measured in the same rotation.
Every package must compute the same numbers. Nothing but Python, NumPy and the packages is needed.
``AEROGEL_CUDA=machine`` and ``--quick`` try the script itself where there is no card. Results go to a file that is
named by date and card.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
QUICK = os.environ.get("BENCH_QUICK") == "1"


def size(full: int, quick: int) -> int:
    """A problem's size: tiny where only the script is tried."""
    return quick if QUICK else full


STREAM = size(1 << 27, 1 << 10)
SIDE = size(8192, 32)
BODIES = size(1 << 18, 1 << 7)
MATRIX = size(4096, 32)
PARTICLES = size(10_000_000, 200)
GRID = size(256, 16)
CHAIN = size(1 << 12, 1 << 4)
LANES = size(1 << 20, 1 << 7)
LAUNCHES = size(1000, 8)


@dataclass
class Case:
    """What one run moves and computes, and which share of the card's best is wanted."""

    n_bytes: int = 0
    flops: int = 0
    calls: int = 1
    goal: float = 0.0


CASES = {
    "copy": Case(n_bytes=8 * STREAM),
    "arithmetic": Case(flops=2 * 8 * CHAIN * LANES),
    "triad": Case(n_bytes=12 * STREAM, goal=0.9),
    "stencil": Case(n_bytes=8 * SIDE * SIDE, goal=0.9),
    "reduce": Case(n_bytes=4 * STREAM, goal=0.85),
    "histogram": Case(n_bytes=4 * STREAM),
    "nbody": Case(flops=19 * BODIES * BODIES, goal=0.6),
    "matmul": Case(flops=2 * MATRIX**3),
    "sparse_mpm": Case(),
    "launch": Case(calls=LAUNCHES),
}
# What others are measured by.
BEST = ("copy", "arithmetic")

Work = tuple[Callable[[], object], Callable[[], Any]]


def of_taichi(ti: Any, case: str) -> Work:
    """A case in the language of kernels: what runs it, and what it computes."""
    make: dict[str, Callable[[Any], Work]] = {
        "copy": _copy,
        "arithmetic": _arithmetic,
        "triad": _triad,
        "stencil": _stencil,
        "reduce": _reduce,
        "histogram": _histogram,
        "nbody": _nbody,
        "matmul": _matmul,
        "sparse_mpm": _sparse_mpm,
        "launch": _launch,
    }
    return make[case](ti)


def _copy(ti):
    x, y = ti.field(ti.f32, STREAM), ti.field(ti.f32, STREAM)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = i % 17

    @ti.kernel
    def run():
        for i in x:
            y[i] = x[i]

    fill()
    return run, lambda: [y[i] for i in range(0, STREAM, STREAM // 8)]


def _arithmetic(ti):
    y = ti.field(ti.f32, LANES)

    @ti.kernel
    def run():
        for i in y:
            a, b, c, d = i * 1e-6, i * 2e-6, i * 3e-6, i * 4e-6
            e, f, g, h = i * 5e-6, i * 6e-6, i * 7e-6, i * 8e-6
            for _ in range(CHAIN):
                a, b, c, d = a * 0.5 + 0.1, b * 0.5 + 0.2, c * 0.5 + 0.3, d * 0.5 + 0.4
                e, f, g, h = e * 0.5 + 0.5, f * 0.5 + 0.6, g * 0.5 + 0.7, h * 0.5 + 0.8
            y[i] = a + b + c + d + e + f + g + h

    return run, lambda: [y[i] for i in range(0, LANES, LANES // 8)]


def _triad(ti):
    x, y, z = (ti.field(ti.f32, STREAM) for _ in range(3))

    @ti.kernel
    def fill():
        for i in x:
            x[i], y[i] = i % 17, i % 5

    @ti.kernel
    def run():
        for i in x:
            z[i] = x[i] + 3.0 * y[i]

    fill()
    return run, lambda: [z[i] for i in range(0, STREAM, STREAM // 8)]


def _stencil(ti):
    x, y = ti.field(ti.f32, (SIDE, SIDE)), ti.field(ti.f32, (SIDE, SIDE))

    @ti.kernel
    def fill():
        for i, j in x:
            x[i, j] = i * 3 % 7 + j * 5 % 11

    @ti.kernel
    def run():
        for i, j in ti.ndrange((1, SIDE - 1), (1, SIDE - 1)):
            y[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])

    fill()
    return run, lambda: [y[i, SIDE // 2] for i in range(0, SIDE, SIDE // 8)]


def _reduce(ti):
    x, total = ti.field(ti.f32, STREAM), ti.field(ti.f32, ())

    @ti.kernel
    def fill():
        for i in x:
            x[i] = 1.0 / (1 + i % 3)

    @ti.kernel
    def run():
        for i in x:
            total[None] += x[i]

    def clean():
        total[None] = 0
        run()

    fill()
    return clean, lambda: [total[None]]


def _histogram(ti):
    x, bins = ti.field(ti.i32, STREAM), ti.field(ti.i32, 256)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = i * 7919 % 104729 % 256

    @ti.kernel
    def run():
        for i in bins:
            bins[i] = 0
        for i in x:
            bins[x[i]] += 1

    fill()
    return run, lambda: [bins[i] for i in range(0, 256, 32)]


def _nbody(ti):
    x, force = ti.Vector.field(3, ti.f32, BODIES), ti.Vector.field(3, ti.f32, BODIES)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = ti.Vector([i % 17 / 17.0, i % 19 / 19.0, i % 23 / 23.0])

    @ti.kernel
    def run():
        for i in x:
            own, f = x[i], ti.Vector([0.0, 0.0, 0.0])
            for j in range(BODIES):
                d = x[j] - own
                r = ti.rsqrt(d.dot(d) + 1e-3)
                f += d * (r * r * r)
            force[i] = f

    fill()
    return run, lambda: [force[i][k] for i in range(0, BODIES, BODIES // 4) for k in range(3)]


def _matmul(ti):
    a, b, c = (ti.field(ti.f32, (MATRIX, MATRIX)) for _ in range(3))

    @ti.kernel
    def fill():
        for i, j in a:
            a[i, j], b[i, j] = (i + 2 * j) % 7, (3 * i + j) % 5

    @ti.kernel
    def run():
        for i, j in c:
            s = 0.0
            for k in range(MATRIX):
                s += a[i, k] * b[k, j]
            c[i, j] = s

    fill()
    return run, lambda: [c[i, i] for i in range(0, MATRIX, MATRIX // 8)]


def _sparse_mpm(ti):
    """Particles give mass and momentum to a sparse grid, which gives velocities back."""
    block = 4
    x, v = ti.Vector.field(3, ti.f32, PARTICLES), ti.Vector.field(3, ti.f32, PARTICLES)
    momentum, mass = ti.Vector.field(3, ti.f32), ti.field(ti.f32)
    blocks = ti.root.pointer(ti.ijk, GRID // block)
    blocks.dense(ti.ijk, block).place(momentum, mass)

    @ti.kernel
    def fill():
        for p in x:
            at = ti.Vector([p * 7919 % 104729, p * 6007 % 99991, p * 4591 % 93557])
            x[p] = 0.2 + 0.6 * at / ti.Vector([104729.0, 99991.0, 93557.0])
            v[p] = ti.Vector([1.0, -1.0, 0.5])

    @ti.kernel
    def give():
        for p in x:
            base = ti.cast(x[p] * GRID - 0.5, ti.i32)
            fx = x[p] * GRID - ti.cast(base, ti.f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            for i, j, k in ti.static(ti.ndrange(3, 3, 3)):
                weight = w[i][0] * w[j][1] * w[k][2]
                momentum[base + ti.Vector([i, j, k])] += weight * v[p]
                mass[base + ti.Vector([i, j, k])] += weight

    @ti.kernel
    def divide():
        for i, j, k in mass:
            if mass[i, j, k] > 0:
                momentum[i, j, k] /= mass[i, j, k]

    @ti.kernel
    def take():
        for p in x:
            base = ti.cast(x[p] * GRID - 0.5, ti.i32)
            fx = x[p] * GRID - ti.cast(base, ti.f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            new = ti.Vector([0.0, 0.0, 0.0])
            for i, j, k in ti.static(ti.ndrange(3, 3, 3)):
                new += w[i][0] * w[j][1] * w[k][2] * momentum[base + ti.Vector([i, j, k])]
            v[p] = new

    def run():
        blocks.deactivate_all()
        give()
        divide()
        take()

    fill()
    return run, lambda: [v[p][k] for p in range(0, PARTICLES, PARTICLES // 4) for k in range(3)]


def _launch(ti):
    x = ti.field(ti.i32, 1)

    @ti.kernel
    def count():
        for i in x:
            x[i] += 1

    def run():
        for _ in range(LAUNCHES):
            count()

    return run, lambda: [x[0] % LAUNCHES]


def of_warp(case: str) -> Work | None:
    """The same for Warp, as far as it is there."""
    import warp as wp

    wp.config.quiet = True
    wp.init()
    if case == "triad":

        @wp.kernel
        def triad(x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32), z: wp.array(dtype=wp.float32)):
            i = wp.tid()
            z[i] = x[i] + 3.0 * y[i]

        import numpy as np

        i = np.arange(STREAM)
        x, y = (wp.array((i % n).astype(np.float32), device="cuda") for n in (17, 5))
        z = wp.empty(STREAM, dtype=wp.float32, device="cuda")

        def run():
            wp.launch(triad, dim=STREAM, inputs=[x, y, z], device="cuda")
            wp.synchronize()

        return run, lambda: z.numpy()[:: STREAM // 8].tolist()
    if case == "nbody":

        @wp.kernel
        def forces(x: wp.array(dtype=wp.vec3), force: wp.array(dtype=wp.vec3), n: int):
            i = wp.tid()
            own = x[i]
            f = wp.vec3(0.0, 0.0, 0.0)
            for j in range(n):
                d = x[j] - own
                r = 1.0 / wp.sqrt(wp.dot(d, d) + 1.0e-3)
                f = f + d * (r * r * r)
            force[i] = f

        import numpy as np

        i = np.arange(BODIES)
        places = np.stack([i % n / float(n) for n in (17, 19, 23)], 1).astype(np.float32)
        x = wp.array(places, dtype=wp.vec3, device="cuda")
        force = wp.zeros(BODIES, dtype=wp.vec3, device="cuda")

        def run():
            wp.launch(forces, dim=BODIES, inputs=[x, force, BODIES], device="cuda")
            wp.synchronize()

        return run, lambda: force.numpy()[:: BODIES // 4].ravel().tolist()
    return None


def worker(module: str, case: str) -> None:
    """Sets up, runs once, and then once for each line that comes: what it says are lines of JSON."""
    out = os.fdopen(os.dup(1), "w")
    # What libraries say must not come between.
    os.dup2(2, 1)

    def say(**words: Any) -> None:
        out.write(json.dumps(words) + "\n")
        out.flush()

    if module == "warp":
        work = of_warp(case)
        if work is None:
            return say(skip=True)
        run, numbers = work
    else:
        ti = importlib.import_module(module)
        ti.init(arch=ti.cuda, offline_cache=False, log_level=ti.ERROR, enable_fallback=False)
        launches, numbers = of_taichi(ti, case)

        def run() -> None:
            launches()
            ti.sync()

    begin = time.perf_counter()
    run()
    first = time.perf_counter() - begin
    say(first=first, numbers=[float(n) for n in numbers()])
    for _ in sys.stdin:
        begin = time.perf_counter()
        run()
        say(seconds=time.perf_counter() - begin)


class Sampler:
    """A case of a package, in a process."""

    def __init__(self, module: str, case: str, logs: Path) -> None:
        self.samples: list[float] = []
        self.log = (logs / f"{case}.{module}").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", module, case],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        self.first = self._line()

    def _line(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        self.log.seek(0)
        last = self.log.read().strip().splitlines()[-1:]
        return {"error": last[0] if last else f"it ended with {self.process.returncode}"}

    def sample(self) -> None:
        """Takes the time of one run."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self._line()
        if "seconds" in line:
            self.samples.append(line["seconds"])
        else:
            self.first = line

    def close(self) -> None:
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


def agree(a: list[float], b: list[float]) -> bool:
    """Whether two packages have computed the same, but for rounding."""
    scale = max((abs(n) for n in b), default=0.0)
    return len(a) == len(b) and all(abs(x - y) <= 2e-3 * scale for x, y in zip(a, b))


def measure(modules: list[str], cases: list[str], rounds: int, logs: Path) -> list[dict[str, Any]]:
    """Runs all cases: a row for each package and case."""
    rows = []
    best = {name: Sampler("aerogel", name, logs) for name in BEST}
    for name in cases:
        case = CASES[name]
        all_of_it = {module: Sampler(module, name, logs) for module in modules}
        running = {m: s for m, s in all_of_it.items() if "numbers" in s.first}
        for round_ in range(rounds):
            order = list(running)
            order = order[round_ % len(order) :] + order[: round_ % len(order)] if order else order
            for module in order:
                running[module].sample()
            for sampler in best.values():
                if "numbers" in sampler.first:
                    sampler.sample()
        expected = next((s.first["numbers"] for s in running.values()), [])
        for module, sampler in all_of_it.items():
            sampler.close()
            if sampler.first.get("skip"):
                continue
            row: dict[str, Any] = {"case": name, "package": module}
            if not sampler.samples:
                row["error"] = sampler.first.get("error", "no sample")
            else:
                seconds = statistics.median(sampler.samples)
                row["ms"] = 1e3 * seconds
                row["first_ms"] = 1e3 * sampler.first["first"]
                row["same"] = agree(sampler.first["numbers"], expected)
                row |= _rates(case, seconds, best)
            rows.append(row)
            print(_text(row), flush=True)
    for sampler in best.values():
        sampler.close()
    return rows


def _rates(case: Case, seconds: float, best: dict[str, Sampler]) -> dict[str, float]:
    rates: dict[str, float] = {}

    def best_rate(name: str, amount: int) -> float:
        return amount / statistics.median(best[name].samples) if best[name].samples else 0.0

    for key, amount, name, whole in [
        ("GB/s", case.n_bytes, "copy", CASES["copy"].n_bytes),
        ("GFLOP/s", case.flops, "arithmetic", CASES["arithmetic"].flops),
    ]:
        if amount:
            rates[key] = amount / seconds / 1e9
            most = best_rate(name, whole)
            if most:
                rates["share"] = amount / seconds / most
    if case.calls > 1:
        rates["us/call"] = 1e6 * seconds / case.calls
    if case.goal:
        rates["goal"] = case.goal
    return rates


COLUMNS = ("case", "package", "ms", "first_ms", "GB/s", "GFLOP/s", "share", "goal", "us/call", "same", "error")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


def _text(row: dict[str, Any]) -> str:
    return "  ".join(f"{key} {_cell(row[key])}" for key in COLUMNS if key in row)


def about() -> dict[str, str]:
    """The card, its driver, and what was measured."""
    code = "import aerogel as ti; ti.init(arch=ti.cuda, enable_fallback=False, log_level='error'); "
    code += "from aerogel import _native; print(_native.open_cuda(0)[0]); print(ti.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip().splitlines()[-1])
    card, version = done.stdout.strip().splitlines()[-2:]
    driver = Path("/proc/driver/nvidia/version")
    found = re.search(r"(\d+\.\d+(\.\d+)?)", driver.read_text()) if driver.exists() else None
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    return {
        "date": datetime.date.today().isoformat(),
        "card": card,
        "driver": found[1] if found else "none",
        "version": str(version),
        "commit": git.stdout.strip() or "unknown",
        "sizes": "tiny" if QUICK else "full",
    }


def write(folder: Path, what: dict[str, str], rows: list[dict[str, Any]]) -> Path:
    """Writes results as JSON and as a table."""
    name = re.sub(r"[^a-z0-9]+", "-", what["card"].lower()).strip("-")
    path = folder / f"{what['date']}-{name}.json"
    path.write_text(json.dumps({"about": what, "rows": rows}, indent=1) + "\n")
    columns = [key for key in COLUMNS if any(key in row for row in rows)]
    lines = [columns, ["---"] * len(columns)]
    lines += [[_cell(row.get(key)) for key in columns] for row in rows]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    words = ", ".join(f"{key} {value}" for key, value in what.items())
    path.with_suffix(".md").write_text(f"# {what['card']}\n\n{words}\n\n{table}")
    return path


def main() -> int:
    """Measures what the command line asks for."""
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:4])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    there = [m for m in ("aerogel", "taichi", "warp") if importlib.util.find_spec(m)]
    parser.add_argument("-m", "--modules", default=",".join(there))
    parser.add_argument("-c", "--cases", default=",".join(CASES))
    parser.add_argument("-r", "--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: whether the script works")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args()
    if args.quick and not QUICK:
        # Sizes are chosen when this file is read.
        os.environ["BENCH_QUICK"] = "1"
        return subprocess.run([sys.executable, *sys.argv]).returncode
    what = about()
    logs = HERE / ".cache" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    rows = measure(args.modules.split(","), args.cases.split(","), args.rounds, logs)
    args.out.mkdir(parents=True, exist_ok=True)
    print(write(args.out, what, rows))
    return 1 if any("error" in row or not row["same"] for row in rows if row["package"] == "aerogel") else 0


if __name__ == "__main__":
    sys.exit(main())
