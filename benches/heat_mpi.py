"""Heat on a torus by Aerogel's split fields and by hand with mpi4py and NumPy: time and lines.

python -m aerogel mpi -n 2 benches/heat_mpi.py --size 1024 --steps 500
"""

import argparse
import ast
import inspect
import time

import numpy as np

import aerogel as ti


def by_aerogel(n, steps):
    grid = ti.mpi.grid((n, n), periodic=True)
    old, new = ti.field(ti.f32, shape=grid), ti.field(ti.f32, shape=grid)

    @ti.kernel
    def begin():
        for i, j in old:
            old[i, j] = (i * 7 + j * 3) % 11

    @ti.kernel
    def step(a: ti.template(), b: ti.template()):
        for i, j in b:
            around = a[(i - 1) % n, j] + a[(i + 1) % n, j] + a[i, (j - 1) % n] + a[i, (j + 1) % n]
            b[i, j] = a[i, j] + 0.2 * (around - 4 * a[i, j])

    begin()
    for _ in range(steps):
        step(old, new)
        old, new = new, old
    return old.to_numpy


def by_hand(n, steps):
    from mpi4py import MPI

    comm = MPI.COMM_WORLD.Create_cart(MPI.Compute_dims(MPI.COMM_WORLD.size, 2), periods=(True, True))
    (px, py), (x, y) = comm.dims, comm.coords
    x0, x1, y0, y1 = x * n // px, (x + 1) * n // px, y * n // py, (y + 1) * n // py
    i, j = np.meshgrid(np.arange(x0 - 1, x1 + 1), np.arange(y0 - 1, y1 + 1), indexing="ij")
    old = ((i % n * 7 + j % n * 3) % 11).astype(np.float32)
    new = np.zeros_like(old)
    below, above = comm.Shift(0, 1)
    left, right = comm.Shift(1, 1)

    def exchange(a):
        comm.Sendrecv(a[-2, 1:-1].copy(), above, recvbuf=(top := np.empty(a.shape[1] - 2, a.dtype)), source=below)
        a[0, 1:-1] = top
        comm.Sendrecv(a[1, 1:-1].copy(), below, recvbuf=top, source=above)
        a[-1, 1:-1] = top
        comm.Sendrecv(a[1:-1, -2].copy(), right, recvbuf=(side := np.empty(a.shape[0] - 2, a.dtype)), source=left)
        a[1:-1, 0] = side
        comm.Sendrecv(a[1:-1, 1].copy(), left, recvbuf=side, source=right)
        a[1:-1, -1] = side

    for _ in range(steps):
        exchange(old)
        around = old[:-2, 1:-1] + old[2:, 1:-1]
        around += old[1:-1, :-2]
        around += old[1:-1, 2:]
        new[1:-1, 1:-1] = old[1:-1, 1:-1] + np.float32(0.2) * (around - 4 * old[1:-1, 1:-1])
        old, new = new, old

    def gather():
        whole = np.empty((n, n), np.float32)
        for at, box in comm.allgather(((x0, x1, y0, y1), old[1:-1, 1:-1])):
            whole[at[0] : at[1], at[2] : at[3]] = box
        return whole

    return gather


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    ti.init(arch=ti.cpu)
    results = []
    for run in (by_aerogel, by_hand):
        # The first run compiles.
        run(args.size, 2)
        begin = time.perf_counter()
        gather = run(args.size, args.steps)
        seconds = time.perf_counter() - begin
        results.append(gather())
        lines = len([1 for line in ast.unparse(ast.parse(inspect.getsource(run))).splitlines() if line.strip()])
        print(f"{run.__name__:12} {seconds / args.steps * 1e3:8.3f} ms a step, {lines} lines")
    print(f"the largest difference is {abs(results[0] - results[1]).max():.2e}")


if __name__ == "__main__":
    main()
