"""Two fronts that grow and merge: a level set in a narrow band of cells, whose blocks processes share.

python -m aerogel mpi -n 4 examples/mpi/level_set.py --out distance.npy

Only cells near the front are active, at most `band` away from it. The band moves with the front, from process to
process. The results are the same bits on every number of ranks.
"""

import argparse

import numpy as np

import aerogel as ti

# Cells of a block along each axis.
BLOCK = 8


def run(n: int, steps: int, band: float = 4.0):
    """Signed distances to the front after so many steps, in cells, and how many cells are in the band."""
    grid = ti.mpi.grid((n // BLOCK, n // BLOCK))
    old, new, near = ti.field(ti.f32), ti.field(ti.f32), ti.field(ti.i32)
    blocks = {}
    for field in (old, new, near):
        blocks[field] = ti.root.pointer(ti.ij, grid)
        blocks[field].bitmasked(ti.ij, BLOCK).place(field)

    @ti.kernel
    def begin(phi: ti.template()):
        for i, j in ti.ndrange(n, n):
            first = ti.math.length(ti.Vector([i - 0.3 * n, j - 0.45 * n])) - 0.08 * n
            second = ti.math.length(ti.Vector([i - 0.7 * n, j - 0.55 * n])) - 0.13 * n
            distance = ti.min(first, second)
            if abs(distance) < band:
                phi[i, j] = distance

    @ti.kernel
    def widen(phi: ti.template()):
        for i, j in phi:
            if 0 < i < n - 1 and 0 < j < n - 1:
                for a, b in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                    near[i + a, j + b] += 1

    @ti.func
    def distance(phi: ti.template(), i, j, beside):
        """The distance of a cell; where it is not in the band, one cell beyond that of the cell beside it."""
        value = beside + ti.math.sign(beside)
        if ti.is_active(phi.parent(), [i, j]):
            value = phi[i, j]
        return value

    @ti.kernel
    def grow(phi: ti.template(), out: ti.template(), dt: ti.f32):
        for i, j in near:
            if 0 < i < n - 1 and 0 < j < n - 1:
                here = phi[i, j]
                if not ti.is_active(phi.parent(), [i, j]):
                    here = 2 * band
                    for a, b in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                        if ti.is_active(phi.parent(), [i + a, j + b]):
                            other = phi[i + a, j + b]
                            guess = other + ti.math.sign(other) * ti.sqrt(ti.cast(a * a + b * b, ti.f32))
                            if abs(guess) < abs(here):
                                here = guess
                left = ti.max(here - distance(phi, i - 1, j, here), 0)
                right = ti.min(distance(phi, i + 1, j, here) - here, 0)
                below = ti.max(here - distance(phi, i, j - 1, here), 0)
                above = ti.min(distance(phi, i, j + 1, here) - here, 0)
                moved = here - dt * ti.sqrt(left**2 + right**2 + below**2 + above**2)
                if abs(moved) < band:
                    out[i, j] = moved

    @ti.kernel
    def count(phi: ti.template()) -> ti.i32:
        total = 0
        for _ in ti.grouped(phi):
            total += 1
        return total

    begin(old)
    for _ in range(steps):
        widen(old)
        grow(old, new, 0.5)
        for field in (old, near):
            blocks[field].deactivate_all()
        old, new = new, old
    return old.to_numpy(), count(old)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out")
    args = parser.parse_args()
    ti.init(arch=ti.cpu, deterministic=True)
    distances, n_active = run(args.size, args.steps)
    print(f"{ti.mpi.size()} ranks: {n_active} of {distances.size} cells are active, their sum is {distances.sum():.3f}")
    if args.out and ti.mpi.rank() == 0:
        np.save(args.out, distances)


if __name__ == "__main__":
    main()
