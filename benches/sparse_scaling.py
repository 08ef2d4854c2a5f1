#!/usr/bin/env python3
"""How sparse trees scale: time and memory of activating, summing, a Laplacian and deactivation, by active cells.

    python sparse_scaling.py                                # 10 thousand to 50 million cells, and a dense field
    python sparse_scaling.py --cells 10000,1000000 --plot ''

A ball of cells in the middle of 2048^3 (pointer 64 - pointer 4 - dense 8), two fields of f32; medians of `--repeat` runs, for this
machine's other work is in them. The dense field beside them has the extents of a cube that is active as a whole.
"""
import argparse, json, os, statistics, time
import numpy as np
import aerogel as ti

HERE = os.path.dirname(os.path.abspath(__file__))
DOMAIN, LEAF = 2048, 8


def place(kind, n, leaf):
    """Two fields of n^3 cells, of which a block of leaf^3 holds one after the other."""
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    top = blocks = ti.root
    if kind == "flat":
        leaf = n
    else:
        top = getattr(ti.root, kind)(ti.ijk, n // (4 * leaf))
        blocks = getattr(top, kind)(ti.ijk, 4)
    for field in (x, y):
        blocks.dense(ti.ijk, leaf).place(field)
    return x, y, top


def kernels(x, y):
    @ti.kernel
    def ball(radius: ti.f32):
        r, middle = int(ti.ceil(radius)), ti.static(x.shape[0] // 2)
        for i, j, k in ti.ndrange((-r, r + 1), (-r, r + 1), (-r, r + 1)):
            if i * i + j * j + k * k <= radius * radius:
                x[i + middle, j + middle, k + middle] = 1.0

    @ti.kernel
    def cube():
        for I in ti.grouped(ti.ndrange(*x.shape)):
            x[I] = I[0] * 0.5

    @ti.kernel
    def total() -> ti.f64:
        s = ti.cast(0, ti.f64)
        for I in ti.grouped(x):
            s += x[I]
        return s

    @ti.kernel
    def laplacian():
        for i, j, k in x:
            y[i, j, k] = (x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k]
                          + x[i, j, k - 1] + x[i, j, k + 1] - 6 * x[i, j, k])

    @ti.kernel
    def inner():
        n = ti.static(x.shape[0])
        for i, j, k in ti.ndrange((1, n - 1), (1, n - 1), (1, n - 1)):
            y[i, j, k] = (x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k]
                          + x[i, j, k - 1] + x[i, j, k + 1] - 6 * x[i, j, k])

    @ti.kernel
    def scale():
        for I in ti.grouped(x):
            y[I] = 2 * x[I]

    return ball, cube, total, laplacian, inner, scale


def timed(f, *args):
    begin = time.perf_counter()
    f(*args)
    ti.sync()
    return 1e3 * (time.perf_counter() - begin)


def scaling(sizes, repeat):
    x, y, top = place("pointer", DOMAIN, LEAF)
    ball, _, total, laplacian, _, _ = kernels(x, y)
    ball(2.0), total(), laplacian(), top.deactivate_all()
    rows = []
    for n in sizes:
        radius = (n / (4 / 3 * np.pi)) ** (1 / 3)
        samples = {k: [] for k in ("activate", "write again", "first sum", "sum", "laplacian", "deactivate")}
        for _ in range(repeat):
            samples["activate"].append(timed(ball, radius))
            samples["write again"].append(timed(ball, radius))
            samples["first sum"].append(timed(total))
            samples["sum"].append(timed(total))
            samples["laplacian"].append(timed(laplacian))
            stats, cells = top.stats(), total()
            samples["deactivate"].append(timed(top.deactivate_all))
            assert all(s["cells"] == 0 for s in top.stats())
        row = {k: statistics.median(v) for k, v in samples.items()}
        swept = stats[1]["cells"] * LEAF**3
        rows.append({"cells": int(cells), "swept": swept, "MiB": sum(s["used_bytes"] for s in stats) / 2**20, **row})
        print(f"| {int(cells):,} | {swept:,} | {rows[-1]['MiB']:.1f} | "
              + " | ".join(f"{row[k]:.3g}" for k in samples) + " |", flush=True)
    return rows


def domains(cells, sizes):
    """The same matter in larger and larger domains."""
    for n in sizes:
        x, y, top = place("pointer", n, LEAF)
        ball, _, total, laplacian, _, _ = kernels(x, y)
        before = ti._native.live_bytes()
        ball((cells / (4 / 3 * np.pi)) ** (1 / 3))
        times = [timed(laplacian) for _ in range(6)][1:]
        stats = top.stats()
        print(f"| {n}^3 | {int(total()):,} | {stats[1]['cells']} | {sum(s['held_bytes'] for s in stats) / 2**20:.2f} | "
              f"{(ti._native.live_bytes() - before) / 2**20:.2f} | {statistics.median(times):.3g} |", flush=True)


def against_dense(n, leaf, repeat):
    """The sweeps of a whole cube, in turns: the ratio of each round hides what else the machine does.

    The dense field is one node, or has the blocks of the sparse one.
    """
    kinds = ("pointer", "flat", "dense")
    ops = {"total": "sum", "scale": "scale", "inner": "laplacian"}
    run = {}
    for kind in kinds:
        x, y, top = place(kind, n, leaf)
        _, cube, total, laplacian, inner, scale = kernels(x, y)
        cube()
        # Outside the domain a sparse tree reads as zero; in a dense one only what has all neighbours is visited.
        run[kind] = {"total": total, "scale": scale, "inner": laplacian if kind == "pointer" else inner}
    for op, name in ops.items():
        rounds = [[timed(run[kind][op]) for kind in kinds] for _ in range(repeat + 1)][1:]
        medians = " | ".join(f"{statistics.median(t):.3g}" for t in zip(*rounds))
        ratios = " | ".join(f"{statistics.median(t[0] / t[k] for t in rounds):.2f}" for k in (1, 2))
        print(f"| {name} of {n}^3, blocks of {leaf}^3 | {medians} | {ratios} |", flush=True)


def plot(rows, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    cells = [r["cells"] for r in rows]
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for k in ("activate", "first sum", "sum", "laplacian", "deactivate"):
        left.loglog(cells, [r[k] for r in rows], "o-", label=k)
    left.set(xlabel="active cells", ylabel="milliseconds", title=f"time, {os.cpu_count()} threads")
    left.legend()
    right.loglog(cells, [r["MiB"] for r in rows], "o-", label="used")
    right.loglog(cells, [c * 8 / 2**20 for c in cells], "k--", label="8 bytes a cell")
    right.set(xlabel="active cells", ylabel="MiB", title=f"memory, of a domain of {DOMAIN}$^3$")
    right.legend()
    fig.tight_layout()
    fig.savefig(path, dpi=110)


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cells", default="10000,100000,1000000,10000000,50000000")
    p.add_argument("--repeat", type=int, default=7)
    p.add_argument("--cube", type=int, default=256)
    p.add_argument("--plot", default=os.path.join(HERE, "../docs/images/sparse-scaling.png"))
    p.add_argument("--json", default="")
    args = p.parse_args()
    ti.init(arch=ti.cpu)
    print("| cells | swept | MiB | activate ms | write again | first sum | sum | laplacian | deactivate |\n|---|---|---|---|---|---|---|---|---|")
    rows = scaling([int(n) for n in args.cells.split(",")], args.repeat)
    print("| domain | cells | blocks | held MiB | all MiB | laplacian ms |\n|---|---|---|---|---|---|")
    domains(1e6, (512, 1024, 2048, 4096))
    print("| whole cube | pointer ms | dense ms | dense in blocks ms | x dense | x dense in blocks |\n|---|---|---|---|---|---|")
    for leaf in (8, 16):
        against_dense(args.cube, leaf, args.repeat)
    if args.json:
        json.dump(rows, open(args.json, "w"))
    if args.plot:
        plot(rows, args.plot)
