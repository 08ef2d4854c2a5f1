"""Heat that spreads on a torus, on as many processes as run it.

python -m aerogel mpi -n 4 examples/mpi/heat.py --out heat.npy
"""

import argparse

import aerogel as ti


def run(shape: tuple[int, int], steps: int):
    """The temperatures after so many steps, and their sum, on every process."""
    grid = ti.mpi.grid(shape, periodic=True)
    old, new = ti.field(ti.f32, shape=grid), ti.field(ti.f32, shape=grid)
    nx, ny = shape

    @ti.kernel
    def begin():
        for i, j in old:
            inside = abs(i - nx / 2) < nx / 5 and abs(j - ny / 3) < ny / 7
            old[i, j] = 1.0 + 0.01 * (i % 7) if inside else 0.0

    @ti.kernel
    def step(a: ti.template(), b: ti.template()):
        for i, j in b:
            around = a[(i - 1) % nx, j] + a[(i + 1) % nx, j] + a[i, (j - 1) % ny] + a[i, (j + 1) % ny]
            b[i, j] = a[i, j] + 0.2 * (around - 4 * a[i, j])

    @ti.kernel
    def heat() -> ti.f32:
        total = 0.0
        for i, j in old:
            total += old[i, j]
        return total

    begin()
    for _ in range(steps):
        step(old, new)
        old, new = new, old
    return old.to_numpy(), heat()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--out")
    args = parser.parse_args()
    ti.init(arch=ti.cpu)
    values, total = run((args.size, args.size // 2 + 3), args.steps)
    print(f"{ti.mpi.size()} ranks: the heat is {total:.3f}, the largest temperature {values.max():.4f}")
    if args.out and ti.mpi.rank() == 0:
        import numpy as np

        np.save(args.out, values)


if __name__ == "__main__":
    main()
