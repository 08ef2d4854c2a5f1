"""Programs on split fields, and the same by hand with mpi4py and NumPy: lines, times, and a model of many ranks.

python -m aerogel mpi -n 2 benches/many_machines.py             # times and lines
python benches/many_machines.py --overhead                      # one rank: a grid against plain fields
python -m aerogel mpi -n 2 benches/many_machines.py --messages  # times of messages
python benches/many_machines.py --model out.png                 # weak and strong scaling to 10,000 ranks

By hand, three programs share `Halo`, whose lines count in each of them. Times are those of the fastest of rounds, in
which both take turns: a rank that waits for another whose core is busy says nothing. `--json FILE` keeps what
`--messages` measures, and `--model` reads it.
"""

import argparse
import ast
import inspect
import json
import math
import statistics
import time

import numpy as np

import aerogel as ti

VELOCITIES = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
WEIGHTS = (4 / 9,) + (1 / 9,) * 4 + (1 / 36,) * 4


def heat(shape, n):
    """Heat on a torus."""
    old, new = ti.field(ti.f32, shape=shape), ti.field(ti.f32, shape=shape)

    @ti.kernel
    def begin():
        for i, j in old:
            old[i, j] = (i * 7 + j * 3) % 11

    @ti.kernel
    def step(a: ti.template(), b: ti.template()):
        for i, j in b:
            around = a[(i - 1) % n, j] + a[(i + 1) % n, j] + a[i, (j - 1) % n] + a[i, (j + 1) % n]
            b[i, j] = a[i, j] + 0.2 * (around - 4 * a[i, j])

    def run(steps):
        nonlocal old, new
        for _ in range(steps):
            step(old, new)
            old, new = new, old

    begin()
    return run, lambda: old.to_numpy()


def boltzmann(shape, n):
    """The lattice Boltzmann method on a torus."""
    old, new = ti.Vector.field(9, ti.f32, shape=shape), ti.Vector.field(9, ti.f32, shape=shape)

    @ti.kernel
    def begin():
        for i, j in old:
            for q in ti.static(range(9)):
                old[i, j][q] = WEIGHTS[q] * (1 + 0.01 * ((i * 7 + j * 3) % 11))

    @ti.kernel
    def step(a: ti.template(), b: ti.template()):
        for i, j in b:
            f = ti.Vector([0.0] * 9)
            for q in ti.static(range(9)):
                f[q] = a[(i - VELOCITIES[q][0]) % n, (j - VELOCITIES[q][1]) % n][q]
            density = f.sum()
            u = ti.Vector([f[1] - f[3] + f[5] - f[6] - f[7] + f[8], f[2] - f[4] + f[5] + f[6] - f[7] - f[8]]) / density
            for q in ti.static(range(9)):
                along = u.dot(ti.Vector(VELOCITIES[q]))
                at_rest = WEIGHTS[q] * density * (1 + 3 * along + 4.5 * along * along - 1.5 * u.dot(u))
                b[i, j][q] = f[q] - 1.2 * (f[q] - at_rest)

    def run(steps):
        nonlocal old, new
        for _ in range(steps):
            step(old, new)
            old, new = new, old

    begin()
    return run, lambda: old.to_numpy()


def jacobi(shape, n):
    """Jacobi's method on a torus, with the largest change of each iteration on every rank."""
    old, new, charge = (ti.field(ti.f32, shape=shape) for _ in range(3))

    @ti.kernel
    def begin():
        for i, j in charge:
            charge[i, j] = ((i * 7 + j * 3) % 11) - 5.0

    @ti.kernel
    def step(a: ti.template(), b: ti.template()) -> ti.f32:
        largest = 0.0
        for i, j in b:
            around = a[(i - 1) % n, j] + a[(i + 1) % n, j] + a[i, (j - 1) % n] + a[i, (j + 1) % n]
            b[i, j] = 0.25 * (around + charge[i, j])
            ti.atomic_max(largest, abs(b[i, j] - a[i, j]))
        return largest

    def run(steps):
        nonlocal old, new
        for _ in range(steps):
            step(old, new)
            old, new = new, old

    begin()
    return run, lambda: old.to_numpy()


class Halo:
    """A box of a torus by hand, and its halo of one cell."""

    def __init__(self, n):
        from mpi4py import MPI

        self.n, self.MPI = n, MPI
        self.comm = MPI.COMM_WORLD.Create_cart(MPI.Compute_dims(MPI.COMM_WORLD.size, 2), periods=(True, True))
        (px, py), (x, y) = self.comm.dims, self.comm.coords
        self.box = x * n // px, (x + 1) * n // px, y * n // py, (y + 1) * n // py
        x0, x1, y0, y1 = self.box
        self.indices = np.meshgrid(np.arange(x0 - 1, x1 + 1) % n, np.arange(y0 - 1, y1 + 1) % n, indexing="ij")

    def exchange(self, a):
        """Sets the cells of the halo."""
        for axis in (0, 1):
            cells = np.moveaxis(a, axis, 0)
            below, above = self.comm.Shift(axis, 1)
            for own, halo, to, source in ((-2, 0, above, below), (1, -1, below, above)):
                got = np.empty(cells[halo].shape, a.dtype)
                self.comm.Sendrecv(np.ascontiguousarray(cells[own]), to, recvbuf=got, source=source)
                cells[halo] = got

    def gather(self, a):
        """The whole, on every rank."""
        whole = np.empty((self.n, self.n, *a.shape[2:]), a.dtype)
        for at, box in self.comm.allgather((self.box, a[1:-1, 1:-1])):
            whole[at[0] : at[1], at[2] : at[3]] = box
        return whole


def heat_by_hand(n):
    """The same as `heat`."""
    halo = Halo(n)
    i, j = halo.indices
    old = ((i * 7 + j * 3) % 11).astype(np.float32)
    new = np.zeros_like(old)

    def run(steps):
        nonlocal old, new
        for _ in range(steps):
            halo.exchange(old)
            around = old[:-2, 1:-1] + old[2:, 1:-1]
            around += old[1:-1, :-2]
            around += old[1:-1, 2:]
            new[1:-1, 1:-1] = old[1:-1, 1:-1] + np.float32(0.2) * (around - 4 * old[1:-1, 1:-1])
            old, new = new, old

    return run, lambda: halo.gather(old)


def boltzmann_by_hand(n):
    """The same as `boltzmann`."""
    halo = Halo(n)
    i, j = halo.indices
    weights = np.array(WEIGHTS, np.float32)
    old = weights * (1 + np.float32(0.01) * ((i * 7 + j * 3) % 11).astype(np.float32))[..., None]
    new = np.zeros_like(old)

    def run(steps):
        nonlocal old, new
        nx, ny = old.shape[0] - 2, old.shape[1] - 2
        for _ in range(steps):
            halo.exchange(old)
            f = [old[1 - x : 1 - x + nx, 1 - y : 1 - y + ny, q] for q, (x, y) in enumerate(VELOCITIES)]
            density = sum(f)
            ux = (f[1] - f[3] + f[5] - f[6] - f[7] + f[8]) / density
            uy = (f[2] - f[4] + f[5] + f[6] - f[7] - f[8]) / density
            square = np.float32(1.5) * (ux * ux + uy * uy)
            for q, (x, y) in enumerate(VELOCITIES):
                along = x * ux + y * uy
                at_rest = weights[q] * density * (1 + 3 * along + np.float32(4.5) * along * along - square)
                new[1:-1, 1:-1, q] = f[q] - np.float32(1.2) * (f[q] - at_rest)
            old, new = new, old

    return run, lambda: halo.gather(old)


def jacobi_by_hand(n):
    """The same as `jacobi`."""
    halo = Halo(n)
    i, j = halo.indices
    charge = (((i * 7 + j * 3) % 11) - 5).astype(np.float32)[1:-1, 1:-1]
    old, new = np.zeros(i.shape, np.float32), np.zeros(i.shape, np.float32)

    def run(steps):
        nonlocal old, new
        for _ in range(steps):
            halo.exchange(old)
            around = old[:-2, 1:-1] + old[2:, 1:-1]
            around += old[1:-1, :-2]
            around += old[1:-1, 2:]
            new[1:-1, 1:-1] = np.float32(0.25) * (around + charge)
            halo.comm.allreduce(float(abs(new - old)[1:-1, 1:-1].max()), op=halo.MPI.MAX)
            old, new = new, old

    return run, lambda: halo.gather(old)


PROGRAMS = ((heat, heat_by_hand), (boltzmann, boltzmann_by_hand), (jacobi, jacobi_by_hand))


def lines(*objects):
    """Lines of code without comments, docstrings and line breaks of style."""
    text = "\n".join(ast.unparse(ast.parse(inspect.getsource(each))) for each in objects)
    return len([line for line in text.splitlines() if line.strip() and '"""' not in line])


def fastest(runs, steps, rounds):
    """The times of a step in ms, the fastest of rounds, of programs that take turns."""
    times = [[] for _ in runs]
    for _ in range(rounds):
        for own, run in zip(times, runs):
            begin = time.perf_counter()
            run(steps)
            own.append((time.perf_counter() - begin) / steps * 1e3)
    return [min(own) for own in times]


def compare(args):
    """Ours and by hand."""
    print("| program | ranks | ours ms | by hand ms | times faster | lines | lines by hand | largest difference |")
    print("|---|---|---|---|---|---|---|---|")
    for ours, hand in PROGRAMS:
        grid = ti.mpi.grid((args.size, args.size), periodic=True)
        (run, whole), (run_hand, whole_hand) = ours(grid, args.size), hand(args.size)
        run(2), run_hand(2)
        a, b = fastest([run, run_hand], args.steps, args.rounds)
        apart = abs(whole() - whole_hand()).max()
        n_lines = lines(ours), lines(Halo, hand)
        times = f"{a:.3f} | {b:.3f} | {b / a:.1f}"
        print(f"| {ours.__name__} | {ti.mpi.size()} | {times} | {n_lines[0]} | {n_lines[1]} | {apart:.0e} |")


def overhead(args):
    """One rank: a program on a grid against plain fields."""
    print("| program | plain fields ms | grid ms | periodic grid ms |")
    print("|---|---|---|---|")
    n = args.size
    for ours, _ in PROGRAMS:
        kinds = ((n, n), ti.mpi.grid((n, n)), ti.mpi.grid((n, n), periodic=True))
        runs = [ours(kind, n)[0] for kind in kinds]
        for run in runs:
            run(2)
        print(f"| {ours.__name__} | {' | '.join(f'{ms:.3f}' for ms in fastest(runs, args.steps, args.rounds))} |")


def messages(args):
    """The least time of a message between two ranks, by its size, and of the check that all ranks do the same."""
    from mpi4py import MPI

    comm, found = MPI.COMM_WORLD, []
    for k in range(3, 23):
        buffer, times = np.zeros(1 << k, np.uint8), []
        for _ in range(200):
            comm.Barrier()
            begin = time.perf_counter()
            comm.Sendrecv(buffer.copy(), 1 - comm.rank, recvbuf=buffer, source=1 - comm.rank)
            times.append(time.perf_counter() - begin)
        found.append((1 << k, min(times)))
    both, times = np.zeros(2, np.int64), []
    for _ in range(300):
        begin = time.perf_counter()
        comm.Allreduce(MPI.IN_PLACE, both, op=MPI.MIN)
        times.append(time.perf_counter() - begin)
    latency = statistics.median(t for size, t in found if size <= 1024)
    rate = found[-1][0] / (found[-1][1] - latency)
    measured = {"latency": latency, "bytes_per_second": rate, "check": min(times)}
    if comm.rank == 0:
        print(", ".join(f"{size} bytes {t * 1e6:.1f} us" for size, t in found[::3]))
        print(measured)
        if args.json:
            with open(args.json, "w") as file:
                json.dump(measured, file)


#: Seconds of a message without content, and bytes a second. These are not measured here.
NETWORKS = {"100 Gbit/s, 2 us": (2e-6, 12.5e9), "10 Gbit/s, 20 us": (20e-6, 1.25e9)}
RANKS = [1, 2, 4, 10, 30, 100, 300, 1000, 3000, 10000]


def step_seconds(ranks, cells, args, network):
    """The time of a step of heat in two dimensions by a model.

    Args:
        ranks: How many there are.
        cells: Cells of each rank.
        args: Seconds that a rank computes for a cell, and that an exchange takes besides messages.
        network: Latency and rate.
    """
    computes = cells * args.per_cell
    if ranks == 1:
        return computes
    latency, rate = network
    # Axis by axis; both faces of four bytes a cell travel at once.
    exchanges = args.python + 2 * (latency + 2 * 4 * math.sqrt(cells) / rate)
    # The check of all ranks, a tree up and down, is under way during a step.
    return max(computes + exchanges, 2 * latency * math.ceil(math.log2(ranks)))


def model(args):
    """Draws efficiencies to 10,000 ranks."""
    networks = dict(NETWORKS)
    if args.json:
        with open(args.json) as file:
            found = json.load(file)
        networks["as measured between two processes"] = found["latency"], found["bytes_per_second"]
    curves = {}
    print("| network | weak, 10,000 ranks | strong, 100 | strong, 1,000 | strong, 10,000 | cells a rank for 90 % |")
    print("|---|---|---|---|---|---|")
    for name, network in networks.items():

        def efficiency(n, cells, network=network):
            return step_seconds(1, cells, args, network) / step_seconds(n, cells, args, network)

        weak = [efficiency(n, args.cells) for n in RANKS]
        strong = dict(zip(RANKS, (efficiency(n, args.whole / n) for n in RANKS)))
        enough = next(c for c in (1 << k for k in range(8, 40)) if efficiency(10000, c) >= 0.9)
        rows = weak[-1], strong[100], strong[1000], strong[10000]
        print(f"| {name} | {' | '.join(f'{value:.2f}' for value in rows)} | {enough:,} |")
        if name in NETWORKS:
            curves |= {f"weak, {name}": weak, f"strong, {name}": [*strong.values()]}
    title = f"efficiency by log10 of ranks: weak {args.cells:,} cells a rank, strong {args.whole:,} in all"
    ti.plot(curves, args.model, x=[math.log10(n) for n in RANKS], title=title, size=(1000, 500))


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--messages", action="store_true")
    parser.add_argument("--json", help="a file for what --messages measures")
    parser.add_argument("--model", metavar="PICTURE")
    parser.add_argument("--cells", type=int, default=1 << 20, help="cells of a rank in the model of weak scaling")
    parser.add_argument("--whole", type=int, default=1 << 30, help="all cells in the model of strong scaling")
    parser.add_argument("--per-cell", type=float, default=0.5e-9, help="seconds that a rank computes for a cell")
    parser.add_argument("--python", type=float, default=30e-6, help="seconds that an exchange takes besides messages")
    args = parser.parse_args()
    ti.init(arch=ti.cpu, log_level="error")
    (model if args.model else messages if args.messages else overhead if args.overhead else compare)(args)


if __name__ == "__main__":
    main()
