#!/usr/bin/env python3
"""How sparse trees scale: time and memory of activating, summing, a Laplacian and deactivation, by active cells.

    python sparse_scaling.py                                # 10 thousand to 50 million cells, and a dense field
    python sparse_scaling.py --cells 10000,1000000 --plot ''

A ball of cells in the middle of 2048^3 (pointer 64 - pointer 4 - dense 8), f32; medians of `--repeat` runs, for this
machine's other work is in them. The dense field beside them has the extents of a cube that is active as a whole.
"""
import argparse, json, os, statistics, time
import numpy as np
import aerogel as ti

HERE = os.path.dirname(os.path.abspath(__file__))
DOMAIN = 2048


def place(kind, outer):
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    top = getattr(ti.root, kind)(ti.ijk, outer)
    getattr(top, kind)(ti.ijk, 4).dense(ti.ijk, 8).place(x, y)
    return x, y, top


def kernels(x, y):
    @ti.kernel
    def ball(radius: ti.f32):
        r = int(ti.ceil(radius))
        for i, j, k in ti.ndrange((-r, r + 1), (-r, r + 1), (-r, r + 1)):
            if i * i + j * j + k * k <= radius * radius:
                x[i + DOMAIN // 2, j + DOMAIN // 2, k + DOMAIN // 2] = 1.0

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
        for i, j, k in x:
            if 0 < i < n - 1 and 0 < j < n - 1 and 0 < k < n - 1:
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
    x, y, top = place("pointer", DOMAIN // 32)
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
        swept = stats[1]["cells"] * 8**3
        rows.append({"cells": int(cells), "swept": swept, "MiB": sum(s["used_bytes"] for s in stats) / 2**20, **row})
        print(f"| {int(cells):,} | {swept:,} | {rows[-1]['MiB']:.1f} | "
              + " | ".join(f"{row[k]:.3g}" for k in samples) + " |", flush=True)
    return rows


def against_dense(n, repeat):
    """The sweeps of a whole cube, in turns: the ratio of each round hides what else the machine does."""
    ops = ("total", "scale", "inner")
    run = {}
    for kind in ("pointer", "dense"):
        x, y, top = place(kind, n // 32)
        _, cube, total, _, inner, scale = kernels(x, y)
        cube()
        run[kind] = {"total": total, "scale": scale, "inner": inner}
    for op in ops:
        pairs = []
        for k in range(repeat + 1):
            pair = [timed(run[kind][op]) for kind in ("pointer", "dense")]
            if k:
                pairs.append(pair)
        sparse, dense = (statistics.median(t) for t in zip(*pairs))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"| {n}^3 {op} | {sparse:.3g} | {dense:.3g} | {ratio:.2f} |", flush=True)


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
    print("| whole cube | pointer ms | dense ms | x |\n|---|---|---|---|")
    against_dense(args.cube, args.repeat)
    if args.json:
        json.dump(rows, open(args.json, "w"))
    if args.plot:
        plot(rows, args.plot)
