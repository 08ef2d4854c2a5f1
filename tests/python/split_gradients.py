"""Gradients of kernels over split fields: run by `test_mpi_gradients.py` in one process and on several ranks.

``python split_gradients.py FILE`` writes what each case computes.
"""

import sys

import numpy as np

import aerogel as ti

found = {}
random = np.random.default_rng(3)


def scalar():
    return ti.field(ti.f64, (), needs_grad=True)


def fields(n, grid, **kinds):
    made = [ti.field(ti.f64, shape=grid, **(kinds or {"needs_grad": True})) for _ in range(n)]
    made[0].from_numpy(random.random(grid.shape))
    return made


def heat_with_corners():
    """Neighbours of nine cells, inside of a grid that is not periodic; a rate that all ranks have."""
    nx, ny = 9, 7
    u = fields(4, ti.mpi.grid((nx, ny)))
    rate, loss = scalar(), scalar()

    @ti.kernel
    def step(a: ti.template(), b: ti.template()):
        for i, j in ti.ndrange((1, nx - 1), (1, ny - 1)):
            around = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4 * a[i, j]
            b[i, j] = a[i, j] + rate[None] * around + 0.1 * a[i - 1, j + 1] * a[i + 1, j + 1]

    @ti.kernel
    def cost(a: ti.template()):
        for i, j in a:
            loss[None] += (a[i, j] - 0.01 * (i + j)) ** 2

    rate[None] = 0.2
    with ti.ad.Tape(loss):
        for a, b in zip(u, u[1:]):
            step(a, b)
        cost(u[-1])
    return u[0].grad, u[2].grad, rate.grad, loss


def periodic_advection():
    """Upwind, with the velocity a field; the next step overwrites what the tape needs."""
    nx, ny = 8, 6
    grid = ti.mpi.grid((nx, ny), periodic=(True, True))
    old, new, speed = fields(3, grid)
    speed.from_numpy(random.random((nx, ny)) - 0.5)
    loss = scalar()

    @ti.kernel
    def step(a: ti.template(), b: ti.template()):
        for i, j in b:
            v = speed[i, j]
            upwind = a[(i - 1) % nx, j] if v > 0 else a[(i + 1) % nx, j]
            b[i, j] = a[i, j] - ti.abs(v) * (a[i, j] - upwind) + 0.1 * ti.sin(a[(i + 1) % nx, (j - 1 + ny) % ny])

    @ti.kernel
    def cost(a: ti.template()):
        for i, j in a:
            loss[None] += a[i, j] ** 3

    a, b = old, new
    with ti.ad.Tape(loss):
        for _ in range(5):
            step(a, b)
            a, b = b, a
        cost(a)
    return old.grad, speed.grad, loss


def what_only_a_neighbour_needs():
    """The first loop reads to the right alone; what the second one overwrites there only another rank needs."""
    n = 11
    x, y = fields(2, ti.mpi.grid(n))
    loss = scalar()

    @ti.kernel
    def square():
        for i in range(n - 1):
            y[i] += x[i + 1] ** 2 * (i + 1)

    @ti.kernel
    def overwrite():
        for i in x:
            x[i] = 7.0 + y[i] * 0.01

    @ti.kernel
    def cost():
        for i in y:
            loss[None] += y[i] * x[i]

    with ti.ad.Tape(loss):
        square()
        overwrite()
        square()
        cost()
    return x.grad, y.grad, loss


def sums():
    """A mean that the next loop reads, which is a variable of the kernel, and bins."""
    nx, ny = 7, 9
    x, y = fields(2, ti.mpi.grid((nx, ny)))
    bins = ti.field(ti.f64, 3, needs_grad=True)
    loss = scalar()

    @ti.kernel
    def measure():
        mean = 0.0
        for i, j in x:
            mean += x[i, j] / (nx * ny)
        for i, j in x:
            y[i, j] = (x[i, j] - mean) ** 2
            bins[(i + j) % 3] += x[i, j] * mean

    @ti.kernel
    def cost():
        for i, j in y:
            loss[None] += y[i, j] * (i + 1)
        for k in range(3):
            loss[None] += bins[k] ** 2

    with ti.ad.Tape(loss):
        measure()
        cost()
    return x.grad, bins.grad, loss


def additions_to_neighbours():
    """Deposits from cells to those around them, as particles make; vectors, a halo of two, and `kernel.grad`."""
    nx, ny = 12, 8
    grid = ti.mpi.grid((nx, ny), halo=2, periodic=(True, False))
    mass = ti.Vector.field(2, ti.f64, shape=grid, needs_grad=True)
    laid = ti.Vector.field(2, ti.f64, shape=grid, needs_grad=True)
    where = ti.field(ti.i32, shape=grid)
    mass.from_numpy(random.random((nx, ny, 2)))
    where.from_numpy(random.integers(-1, 2, (nx, ny)))

    @ti.kernel
    def deposit():
        for i, j in mass:
            for di, dj in ti.static(ti.ndrange((-1, 2), 2)):
                laid[(i + di) % nx, ti.min(j + dj, ny - 1)] += (di + 2) * mass[i, j] ** 2
            # How far this goes only the halo says.
            laid[i + where[i, j], j] += mass[i, j]

    deposit()
    values = laid.to_numpy()
    laid.grad.from_numpy(random.random((nx, ny, 2)))
    deposit.grad()
    return values, mass.grad, laid.grad


def forward_mode():
    nx = 13
    x, y = fields(2, ti.mpi.grid(nx, periodic=True), needs_grad=True, needs_dual=True)
    loss = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def step():
        for i in x:
            y[i] = x[(i + 1) % nx] * x[(i - 1) % nx]
        for i in y:
            loss[None] += y[i] ** 2 * y[(i + 1) % nx]

    with ti.ad.FwdMode(loss=loss, param=x, seed=list(range(nx))):
        step()
    return loss.dual, y.dual


def descent():
    """Kernels read gradients, also those of neighbours."""
    n = 10
    x, y = fields(2, ti.mpi.grid(n))
    loss = scalar()

    @ti.kernel
    def cost():
        for i in range(1, n - 1):
            loss[None] += (x[i + 1] - 2 * x[i] + x[i - 1] - 0.1 * i) ** 2

    @ti.kernel
    def smoothed():
        for i in range(1, n - 1):
            y[i] = x[i] - 0.05 * (x.grad[i - 1] + x.grad[i] + x.grad[i + 1])
        for i in range(1, n - 1):
            x[i] = y[i]

    for _ in range(3):
        with ti.ad.Tape(loss):
            cost()
        smoothed()
    return x, x.grad, loss


CASES = [
    heat_with_corners,
    periodic_advection,
    what_only_a_neighbour_needs,
    sums,
    additions_to_neighbours,
    forward_mode,
    descent,
]

if __name__ == "__main__":
    ti.init(arch=ti.cpu, log_level="error", default_fp=ti.f64, cpu_max_num_threads=1, opt_level=0)
    for case in CASES:
        for k, value in enumerate(case()):
            found[f"{case.__name__} {k}"] = value if isinstance(value, np.ndarray) else value.to_numpy()
    np.savez(f"{sys.argv[1]}.{ti.mpi.rank()}.npz", **found)
