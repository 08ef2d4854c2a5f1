"""The potential around two charged plates by Jacobi's method, on as many processes as run it.

python -m aerogel mpi -n 4 examples/mpi/jacobi.py
"""

import argparse

import aerogel as ti


def run(n: int, tolerance: float, most: int = 10_000):
    """The potential on every process, and how many iterations it took."""
    grid = ti.mpi.grid((n, n))
    old, new = ti.field(ti.f64, shape=grid), ti.field(ti.f64, shape=grid)
    charge = ti.field(ti.f64, shape=grid)

    @ti.kernel
    def begin():
        for i, j in charge:
            is_plate = n // 4 <= j < 3 * n // 4
            charge[i, j] = 1.0 * (is_plate and i == n // 3) - 1.0 * (is_plate and i == 2 * n // 3)

    @ti.kernel
    def iterate(a: ti.template(), b: ti.template()) -> ti.f64:
        largest = 0.0
        for i, j in ti.ndrange((1, n - 1), (1, n - 1)):
            around = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
            b[i, j] = 0.25 * (around + charge[i, j])
            ti.atomic_max(largest, abs(b[i, j] - a[i, j]))
        return largest

    begin()
    count, change = 0, tolerance
    while change >= tolerance and count < most:
        change = iterate(old, new)
        old, new = new, old
        count += 1
    return old.to_numpy(), count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--tolerance", type=float, default=1e-5)
    args = parser.parse_args()
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    potential, count = run(args.size, args.tolerance)
    print(f"{ti.mpi.size()} ranks: {count} iterations, potentials from {potential.min():.6f} to {potential.max():.6f}")


if __name__ == "__main__":
    main()
