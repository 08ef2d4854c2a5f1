#!/usr/bin/env python3
"""The ladder of matrix products: from lists of Python to a library, in GFLOP/s, under the roof of this machine.

    python roofline.py                             # a table, and docs/images/roofline.png
    python roofline.py --size 256 --plot ''        # the table only, of smaller matrices

The roof is measured as well: what memory delivers to a sum of two arrays, and multiply-adds in registers. A rung's
intensity is that of its algorithm: the operations for each byte that it reads or writes, if nothing but its own tiles
stays in a cache.
"""

import argparse
import functools
import os
import time

import numpy as np

import aerogel as ti

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS, COLUMNS = 4, 16
Matrix = ti.types.ndarray(dtype=ti.f32, ndim=2)
Vector = ti.types.ndarray(dtype=ti.f32, ndim=1)


def of_lists(a, b):
    """The definition in Python."""
    rows, columns = a.tolist(), b.T.tolist()
    return lambda: [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in rows]


@ti.kernel
def one_by_one(a: Matrix, b: Matrix, c: Matrix):
    """One core, one multiply-add after the other: a loop that may end early is neither reordered nor vectorised."""
    ti.loop_config(serialize=True)
    for i, j in c:
        total, k = 0.0, 0
        while k < a.shape[1]:
            total += a[i, k] * b[k, j]
            if total > 1e30:
                break
            k += 1
        c[i, j] = total


@ti.kernel
def on_all_cores(a: Matrix, b: Matrix, c: Matrix):
    """The same on all cores."""
    for i, j in c:
        total, k = 0.0, 0
        while k < a.shape[1]:
            total += a[i, k] * b[k, j]
            if total > 1e30:
                break
            k += 1
        c[i, j] = total


@ti.kernel
def in_tiles(a: Matrix, b: Matrix, c: Matrix):
    """Tiles of the result that stay in registers, written by hand."""
    for row, column in ti.ndrange(c.shape[0] // ROWS, c.shape[1] // COLUMNS):
        tile = ti.Matrix.zero(ti.f32, ROWS, COLUMNS)
        for k in range(a.shape[1]):
            for i, j in ti.static(ti.ndrange(ROWS, COLUMNS)):
                tile[i, j] += a[row * ROWS + i, k] * b[k, column * COLUMNS + j]
        for i, j in ti.static(ti.ndrange(ROWS, COLUMNS)):
            c[row * ROWS + i, column * COLUMNS + j] = tile[i, j]


@ti.kernel
def as_loops(a: Matrix, b: Matrix, c: Matrix):
    """The definition, which the compiler makes in tiles and blocks."""
    for i, j in c:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@ti.kernel
def added(x: Vector, y: Vector, z: Vector):
    """What memory delivers."""
    for i in x:
        z[i] = x[i] + y[i]


@ti.kernel
def multiplied(x: Vector, n: int):
    """What registers deliver: eight independent chains of multiply-adds."""
    for i in range(x.shape[0] // 8):
        v = ti.Vector([x[i + x.shape[0] // 8 * k] for k in ti.static(range(8))])
        for _ in range(n):
            v = v * 0.999 + 0.001
        for k in ti.static(range(8)):
            x[i + x.shape[0] // 8 * k] = v[k]


def least(call, repeat):
    """The least time of some calls after a first one, in seconds."""
    call()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def roof(repeat):
    """Bytes a second of memory, and operations a second of registers."""
    x, y, z = (np.ones(1 << 24, np.float32) for _ in range(3))
    v, n = np.ones(1 << 13, np.float32), 20_000
    return 12 * x.size / least(lambda: added(x, y, z), repeat), 2 * n * v.size / least(lambda: multiplied(v, n), repeat)


def measured(n, n_lists, repeat):
    """Name, operations a second and intensity of each rung; an assertion fails where a result is wrong."""
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (n, n)).astype(np.float32) for _ in range(2))
    few = a[:n_lists, :n_lists], b[:n_lists, :n_lists]
    assert np.allclose(of_lists(*few)(), few[0] @ few[1], atol=1e-3)
    rows = [("lists of Python", 2 * n_lists**3 / least(of_lists(*few), min(repeat, 3)), 0.25)]
    kernels = (
        (one_by_one, "a kernel, one element at a time", 0.25),
        (on_all_cores, "the same on all cores", 0.25),
        (in_tiles, "hand-written tiles", 2 * ROWS * COLUMNS / (4 * (ROWS + COLUMNS))),
        (as_loops, "loops that are compiled into tiles", n / 8),
    )
    for kernel, name, intensity in kernels:
        c = np.zeros_like(a)
        seconds = least(functools.partial(kernel, a, b, c), min(repeat, 3) if intensity < 1 else repeat)
        assert np.allclose(c, a @ b, atol=1e-5 * n), name
        rows.append((name, 2 * n**3 / seconds, intensity))
    # New tensors each time: a product of the same tensors is computed once.
    product = lambda: (ti.tensor.asarray(a) @ ti.tensor.asarray(b)).numpy()  # noqa: E731
    assert np.allclose(product(), a @ b, atol=1e-5 * n)
    rows.append(("`@` of tensors", 2 * n**3 / least(product, repeat), n / 8))
    return [*rows, ("`@` of NumPy", 2 * n**3 / least(lambda: a @ b, repeat), n / 8)]


def draw(path, rows, bandwidth, peak):
    """The rungs below the roof, by their intensities."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), dpi=100, layout="constrained")
    x = np.geomspace(0.1, 1000, 200)
    axes.loglog(x, np.minimum(bandwidth * x, peak) / 1e9, color="#333333")
    for k, (name, speed, intensity) in enumerate(rows):
        axes.loglog([intensity], [speed / 1e9], "o", color=f"C{k}", label=name.replace("`", ""))
    axes.set(xlabel="operations for each byte", ylabel="GFLOP/s", title="Products of matrices under the roof")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path)


def main():
    """Measures the roof and the rungs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1024, help="rows of the matrices, a multiple of 16 (%(default)s)")
    parser.add_argument("--size-of-lists", type=int, default=128, help="rows of the lists (%(default)s)")
    parser.add_argument("--repeat", type=int, default=7)
    picture = os.path.join(HERE, "..", "docs", "images", "roofline.png")
    parser.add_argument("--plot", default=picture, help="'' for none")
    args = parser.parse_args()
    if args.size % COLUMNS or args.size < args.size_of_lists:
        parser.error(f"--size is a multiple of {COLUMNS}, and not less than --size-of-lists")
    ti.init(arch=ti.cpu, log_level="error")
    bandwidth, peak = roof(args.repeat)
    rows = measured(args.size, args.size_of_lists, args.repeat)
    print(f"memory {bandwidth / 1e9:.1f} GB/s, registers {peak / 1e9:.0f} GFLOP/s\n")
    print("| rung | GFLOP/s | of the peak | speed-up over the previous rung |\n|---|---|---|---|")
    before = None
    for name, speed, _ in rows:
        factor = "" if before is None else f"{speed / before:.3g}"
        print(f"| {name} | {speed / 1e9:.3g} | {100 * speed / peak:.2g} % | {factor} |")
        before = speed
    if args.plot:
        draw(args.plot, rows, bandwidth, peak)


if __name__ == "__main__":
    main()
