"""What the kernels of the benchmarks take on a GPU, counted where there is none: a table in Markdown.

    python scripts/gpu_counts.py            # writes benches/results/gpu-counts.md

Each kernel runs on the machine that runs PTX (``AEROGEL_CUDA=machine``), which counts what its warps do, and NVIDIA's
assembler says how many registers its code takes and whether it spills. "Needed" are the bytes that any program has to
read or write once; what is moved more is what caches have to catch, or what is wasted.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURES = (80, 90)


@dataclass
class Row:
    """A kernel: the bytes that it needs to move, and what is counted and reported of it."""

    kernel: str
    needed: int
    counts: dict[str, int]
    registers: int = 0
    spilled: int = 0

    @property
    def moved(self) -> int:
        """Bytes of the sectors that warps touched."""
        return 32 * self.counts["sectors"]


def _programs(ti) -> dict[str, tuple[Callable[[], object], int]]:
    """What runs each kernel, and the bytes that it needs to move."""
    n, side = 1 << 14, 128
    x, y, z = (ti.field(ti.f32, n) for _ in range(3))
    a, b = (ti.field(ti.f32, (side, side)) for _ in range(2))
    vectors, forces = (ti.Vector.field(3, ti.f32, 256) for _ in range(2))
    counts = ti.field(ti.i32, 64)
    total = ti.field(ti.f32, ())
    cells, lap = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.pointer(ti.ij, 8).dense(ti.ij, 16).place(cells, lap)
    n_particles, grid = 1024, 32
    where, speed = (ti.Vector.field(2, ti.f32, n_particles) for _ in range(2))
    momentum, mass = ti.Vector.field(2, ti.f32, (grid, grid)), ti.field(ti.f32, (grid, grid))
    grains, pid = ti.field(ti.f32), ti.field(ti.i32)
    lists = ti.root.pointer(ti.ij, 8)
    lists.dense(ti.ij, 8).place(grains)
    lists.dynamic(ti.k, 512, chunk_size=64).place(pid)
    n_grains = 2048
    tiles = [ti.field(ti.f32, (64, 64)) for _ in range(3)]

    @ti.kernel
    def fill():
        for i in x:
            x[i], y[i] = i % 17, i % 5
        for i, j in a:
            a[i, j] = i * j % 7
        for i in vectors:
            vectors[i] = [ti.sin(0.1 * i), ti.cos(0.1 * i), i % 3]
        for i, j in ti.ndrange(64, 64):
            cells[i + 16, j + 16] = i * j % 7
        for p in where:
            where[p] = [0.2 + 0.6 * ti.random(), 0.2 + 0.6 * ti.random()]
            speed[p] = [1, -1]
        for p in range(n_grains):
            ti.append(pid.parent(), [1 + p % 32 // 8, 1 + p // 128 % 16 // 8], p)

    @ti.kernel
    def triad():
        for i in x:
            z[i] = x[i] + 3 * y[i]

    @ti.kernel
    def stencil():
        for i, j in ti.ndrange((1, side - 1), (1, side - 1)):
            b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])

    @ti.kernel
    def reduce():
        for i in x:
            total[None] += x[i]

    @ti.kernel
    def histogram():
        for i in x:
            counts[ti.cast(x[i], ti.i32)] += 1

    @ti.kernel
    def nbody():
        for i in vectors:
            force = ti.Vector([0.0, 0.0, 0.0])
            for j in range(256):
                d = vectors[j] - vectors[i]
                r = ti.rsqrt(d.dot(d) + 1e-3)
                force += d * (r * r * r)
            forces[i] = force

    @ti.kernel
    def laplacian():
        for i, j in cells:
            sides = cells[i - 1, j] + cells[i + 1, j] + cells[i, j - 1] + cells[i, j + 1]
            lap[i, j] = 4 * cells[i, j] - sides

    @ti.kernel
    def scatter():
        for p in where:
            base = ti.cast(where[p] * grid - 0.5, ti.i32)
            fx = where[p] * grid - ti.cast(base, ti.f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            for i, j in ti.static(ti.ndrange(3, 3)):
                weight = w[i][0] * w[j][1]
                momentum[base + ti.Vector([i, j])] += weight * speed[p]
                mass[base + ti.Vector([i, j])] += weight

    @ti.kernel
    def particles():
        ti.block_local(grains)
        for i, j, k in pid:
            p = pid[i, j, k]
            at = ti.Vector([8 + p % 32 - 1, 8 + p // 128 % 16 - 1])
            for a, b in ti.static(ti.ndrange(3, 3)):
                grains[at + [a, b]] += 1

    @ti.kernel
    def matmul():
        ti.loop_config(block_dim=256)
        for k in range(64 * 64):
            left = ti.simt.block.SharedArray((16, 16), ti.f32)
            right = ti.simt.block.SharedArray((16, 16), ti.f32)
            thread = ti.simt.block.thread_idx()
            ti_, tj = thread // 16, thread % 16
            tile = k // 256
            i, j = tile // 4 * 16 + ti_, tile % 4 * 16 + tj
            value = 0.0
            for step in range(4):
                left[ti_, tj] = tiles[0][i, step * 16 + tj]
                right[ti_, tj] = tiles[1][step * 16 + ti_, j]
                ti.simt.block.sync()
                for m in range(16):
                    value += left[ti_, m] * right[m, tj]
                ti.simt.block.sync()
            tiles[2][i, j] = value

    fill()
    return {
        "triad": (triad, 12 * n),
        "stencil": (stencil, 8 * side * side),
        "reduce": (reduce, 4 * n),
        "histogram": (histogram, 4 * n),
        "nbody": (nbody, 24 * 256),
        "laplacian": (laplacian, 8 * 64 * 64),
        "scatter": (scatter, 16 * n_particles + 12 * grid * grid),
        "particles": (particles, 4 * n_grains + 8 * 8 * 8 * 8),
        "matmul": (matmul, 12 * 64 * 64),
    }


def _run(log: Path) -> None:
    """Runs each kernel; in a process of its own, whose environment says that launches are counted."""
    import aerogel as ti

    ti.init(arch=ti.cuda, log_level="error", offline_cache=False, random_seed=1)
    programs = _programs(ti)
    needed = {}
    for name, (run, n_bytes) in programs.items():
        run()
        needed[name] = n_bytes
    log.write_text(json.dumps(needed))


def _registers(ptxas: Path, folder: Path, rows: dict[str, Row]) -> None:
    """Reads what the assembler reports of each kernel: of its tasks the most."""
    entry = re.compile(r"Compiling entry function '(\w+?)(?:\$|_)\w*' for")
    for text in sorted(folder.glob("*.ptx")):
        for sm in ARCHITECTURES:
            command = [ptxas, "-v", f"-arch=sm_{sm}", "-o", os.devnull, text]
            report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
            row = None
            for line in report.splitlines():
                if found := entry.search(line):
                    row = rows.get(found[1])
                if row and (found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)):
                    row.spilled = max(row.spilled, int(found[1]) + int(found[2]))
                if row and (found := re.search(r"Used (\d+) registers", line)):
                    row.registers = max(row.registers, int(found[1]))


def measure(ptxas: Path) -> list[Row]:
    """Runs and assembles all kernels.

    Raises:
        subprocess.CalledProcessError: A kernel fails, or the assembler does not take its code.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = os.environ | {
            "AEROGEL_CUDA": "machine",
            "AEROGEL_COUNT": str(folder / "counts"),
            "AEROGEL_KEEP_PTX": name,
            "AEROGEL_OFFLINE_CACHE": "0",
        }
        subprocess.run([sys.executable, __file__, "--run", folder / "needed"], env=env, check=True)
        needed = json.loads((folder / "needed").read_text())
        rows = {kernel: Row(kernel, n, {}) for kernel, n in needed.items()}
        for line in (folder / "counts").read_text().splitlines():
            counts = json.loads(line)
            row = rows.get(counts.pop("kernel").split("$")[0])
            if row is not None:
                for key, value in counts.items():
                    row.counts[key] = row.counts.get(key, 0) + value
        _registers(ptxas, folder, rows)
        return list(rows.values())


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    columns = ["kernel", "instructions of warps", "bytes moved / needed", "atomics", "divergent branches"]
    columns += ["bank conflicts", "registers", "spilled bytes"]
    lines = [columns, ["---"] * len(columns)]
    for row in rows:
        counts = [f"{row.counts[name]:,}" for name in ("instructions", "atomics", "divergent", "conflicts")]
        counts.insert(1, f"{row.moved / row.needed:.2f}")
        lines.append([row.kernel, *counts, str(row.registers), str(row.spilled)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def assembler() -> Path | None:
    """NVIDIA's assembler, if it is installed beside this Python."""
    found = Path(sys.prefix).glob("lib/python3*/site-packages/nvidia/cuda_nvcc/bin/ptxas")
    return next(found, None)


def main() -> int:
    """Writes the table, or runs the kernels where it is asked to."""
    if sys.argv[1:2] == ["--run"]:
        _run(Path(sys.argv[2]))
        return 0
    ptxas = assembler()
    if ptxas is None:
        print("no ptxas beside this Python; `make setup` installs it", file=sys.stderr)
        return 1
    text = table(measure(ptxas))
    out = ROOT / "benches" / "results" / "gpu-counts.md"
    out.parent.mkdir(exist_ok=True)
    title = "# Kernels on a GPU, counted by the machine that runs PTX"
    out.write_text(f"{title}\n\n`python scripts/gpu_counts.py` writes this.\n\n{text}")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
