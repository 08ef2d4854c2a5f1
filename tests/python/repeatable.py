"""Programs whose results may depend on the order in which threads work; `test_repeatable.py` and `benches/repeatable.py` run them.

Each function builds its fields and kernels and returns a function that runs them and returns arrays. Values have many
magnitudes, so that two orders of a sum round differently.
"""

from collections.abc import Callable, Iterator

import numpy as np

import aerogel as ti

Run = Callable[[], list[np.ndarray]]
N = 100_003


def values(n: int, seed: int = 1, dtype: type = np.float32) -> np.ndarray:
    """Numbers of many magnitudes and both signs."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3, n)).astype(dtype)


def _field(array: np.ndarray) -> ti.Field:
    x = ti.field(ti.f32 if array.dtype == np.float32 else ti.i32, array.shape)
    x.from_numpy(array)
    return x


def total() -> Run:
    """A sum, a product and a sum that a kernel returns: an accumulator for each chunk."""
    x = _field(values(N))
    s, p = ti.field(ti.f32, ()), ti.field(ti.f32, ())

    @ti.kernel
    def run() -> ti.f32:
        s[None], p[None] = 0.0, 1.0
        r = 0.0
        for i in x:
            s[None] += x[i]
            ti.atomic_mul(p[None], 1.0 + 1e-3 * ti.sin(x[i]))
        for i in x:
            r += x[i] * x[i]
        return r

    return lambda: [np.float32(run()), s.to_numpy(), p.to_numpy()]


def extrema() -> Run:
    """Minima and maxima that are zeros of either sign."""
    x = _field(np.where(np.random.default_rng(2).random(N) < 0.5, -0.0, 0.0).astype(np.float32))
    least, most = ti.field(ti.f32, 7), ti.field(ti.f32, 5000)

    @ti.kernel
    def run():
        for i in x:
            ti.atomic_min(least[0], x[i])
            ti.atomic_max(most[(i * 7919) % 5000], x[i])

    def both() -> list[np.ndarray]:
        least.fill(1.0)
        most.fill(-1.0)
        run()
        return [least.to_numpy(), most.to_numpy()]

    return both


def _scattered(n_bins: int, n: int) -> Run:
    x = _field(values(n))
    to = _field(np.random.default_rng(3).integers(0, n_bins, n).astype(np.int32))
    bins = ti.field(ti.f32, n_bins)

    @ti.kernel
    def run():
        for i in x:
            bins[to[i]] += x[i]

    def both() -> list[np.ndarray]:
        bins.fill(0.0)
        run()
        return [bins.to_numpy()]

    return both


def few_bins() -> Run:
    """Sums into a field of 16 elements: copies on the stack."""
    return _scattered(16, N)


def bins() -> Run:
    """Sums into a field of 1000 elements: copies for threads."""
    return _scattered(1000, 10 * N)


def many_bins() -> Run:
    """Sums into a field of 20 thousand elements: atomic operations."""
    return _scattered(20_000, 4 * N)


def arrays() -> Run:
    """Sums into an array, several to an element."""
    x, out = values(N), np.zeros(321, np.float32)

    @ti.kernel
    def run(x: ti.types.ndarray(), out: ti.types.ndarray()):
        for i in range(x.shape[0]):
            out[(i * 17) % 321] += x[i]

    def both() -> list[np.ndarray]:
        out.fill(0.0)
        run(x, out)
        return [out]

    return both


def products() -> Run:
    """Products, and sums of halves and of quantised numbers."""
    x = _field(values(N))
    p, h = ti.field(ti.f32, 100), ti.field(ti.f16, 100)
    q = ti.field(ti.types.quant.fixed(bits=16, max_value=4.0))
    word = ti.BitpackedFields(max_num_bits=32)
    word.place(q)
    ti.root.dense(ti.i, 100).place(word)

    @ti.kernel
    def run():
        for i in range(100):
            p[i], h[i], q[i] = 1.0, 0.0, 0.0
        for i in x:
            ti.atomic_mul(p[i % 100], 1.0 + 1e-3 * ti.sin(x[i]))
            h[i % 100] += ti.cast(ti.cos(x[i]), ti.f16)
        for i in x:
            q[i % 100] += 0.01 * ti.sin(x[i])

    def both() -> list[np.ndarray]:
        run()
        return [p.to_numpy(), h.to_numpy(), q.to_numpy()]

    return both


def slots() -> Run:
    """A list whose slots are the values that a counter had."""
    x = _field(values(N))
    n, out = ti.field(ti.i32, ()), ti.field(ti.f32, N)

    @ti.kernel
    def run():
        for i in x:
            s = x[i]
            for _ in range(int(abs(x[i])) % 20):
                s = ti.sin(s) + 0.1
            if s > 0:
                out[ti.atomic_add(n[None], 1)] = s

    def both() -> list[np.ndarray]:
        n.fill(0)
        out.fill(0.0)
        run()
        return [n.to_numpy(), out.to_numpy()]

    return both


def appended() -> Run:
    """Appends to lists, and a sum in the order of each list."""
    x = _field(values(N))
    y, s = ti.field(ti.f32), ti.field(ti.f32, 8)
    lists = ti.root.dense(ti.i, 8).dynamic(ti.j, 1 << 15, chunk_size=32)
    lists.place(y)

    @ti.kernel
    def run():
        for i in x:
            y[i % 8].append(x[i])
        for i in range(8):
            total = 0.0
            for j in range(y[i].length()):
                total += y[i, j]
            s[i] = total

    def both() -> list[np.ndarray]:
        lists.deactivate_all()
        run()
        return [s.to_numpy()]

    return both


def _sparse(kind: str) -> Run:
    x = _field(values(N))
    y, s, drawn = ti.field(ti.f32), ti.field(ti.f32, ()), ti.field(ti.f32, ())
    blocks = getattr(ti.root, kind)(ti.ij, 64)
    blocks.bitmasked(ti.ij, 8).place(y)

    @ti.kernel
    def run():
        for i in x:
            p, q = (i * 7919) % 509, (i * 104729) % 503
            y[p, q] += x[i]
        s[None], drawn[None] = 0.0, 0.0
        for i, j in y:
            s[None] += y[i, j]
            drawn[None] += y[i, j] * ti.random()

    def both() -> list[np.ndarray]:
        ti.root.deactivate_all()
        run()
        return [y.to_numpy(), s.to_numpy(), drawn.to_numpy()]

    return both


def pointers() -> Run:
    """Cells that several threads make active, sums in them, and a sum over them."""
    return _sparse("pointer")


def hashes() -> Run:
    """The same of hashed blocks."""
    return _sparse("hash")


def draws() -> Run:
    """Random numbers, each a function of the iteration."""
    out, s = ti.field(ti.f32, N), ti.field(ti.f32, ())

    @ti.kernel
    def run():
        s[None] = 0.0
        for i in out:
            out[i] = ti.random() + ti.randn()
            s[None] += out[i]

    def both() -> list[np.ndarray]:
        run()
        return [out.to_numpy(), s.to_numpy()]

    return both


def gradients() -> Run:
    """A gradient whose terms meet in elements."""
    x = ti.field(ti.f32, 5000, needs_grad=True)
    x.from_numpy(values(5000))
    to = _field(np.random.default_rng(3).integers(0, 5000, N).astype(np.int32))
    loss = ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def compute():
        for i in to:
            loss[None] += ti.sin(x[to[i]]) * x[(to[i] + 1) % 5000]

    def run() -> list[np.ndarray]:
        loss.fill(0.0)
        with ti.ad.Tape(loss):
            compute()
        return [loss.to_numpy(), x.grad.to_numpy()]

    return run


def particles() -> Run:
    """Particles to a grid and back, several steps."""
    n, size = 20_000, 64
    x, v = ti.Vector.field(2, ti.f32, n), ti.Vector.field(2, ti.f32, n)
    grid, mass = ti.Vector.field(2, ti.f32, (size, size)), ti.field(ti.f32, (size, size))
    start = np.random.default_rng(5).random((n, 2)).astype(np.float32)

    @ti.kernel
    def step():
        for i, j in mass:
            grid[i, j], mass[i, j] = [0.0, 0.0], 0.0
        for p in x:
            base = int(x[p] * (size - 2))
            f = x[p] * (size - 2) - base
            for a, b in ti.static(ti.ndrange(2, 2)):
                w = (a * f[0] + (1 - a) * (1 - f[0])) * (b * f[1] + (1 - b) * (1 - f[1]))
                grid[base[0] + a, base[1] + b] += w * v[p]
                mass[base[0] + a, base[1] + b] += w
        for p in x:
            base = int(x[p] * (size - 2))
            v[p] = grid[base] / ti.max(mass[base], 1e-6) + [0.0, -0.01]
            x[p] = ti.math.clamp(x[p] + 1e-2 * v[p], 0.0, 0.999)

    def run() -> list[np.ndarray]:
        x.from_numpy(start)
        v.from_numpy(start - 0.5)
        for _ in range(5):
            step()
        return [x.to_numpy(), v.to_numpy()]

    return run


def called() -> Run:
    """Sums in a function that is compiled once."""
    x = _field(values(N))
    s = ti.field(ti.f32, 300)

    @ti.real_func
    def add(i: ti.i32, by: ti.f32):
        s[i] += by

    @ti.kernel
    def run():
        for i in x:
            add(i % 300, x[i])

    def both() -> list[np.ndarray]:
        s.fill(0.0)
        run()
        return [s.to_numpy()]

    return both


def sums_of_both_kinds() -> Run:
    """A task that adds to one element and scatters to many."""
    x = _field(values(N))
    s, bins_ = ti.field(ti.f32, ()), ti.field(ti.f32, 1000)

    @ti.kernel
    def run():
        for i in x:
            s[None] += x[i]
            bins_[(i * 7919) % 1000] += x[i]

    def both() -> list[np.ndarray]:
        s.fill(0.0)
        bins_.fill(0.0)
        run()
        return [s.to_numpy(), bins_.to_numpy()]

    return both


def counted_and_added() -> Run:
    """A task that could count into copies of threads, and adds floats to one element: few iterations, and large copies."""
    x = _field(values(20_000))
    s, n = ti.field(ti.f32, ()), ti.field(ti.i32, 1_000_000)

    @ti.kernel
    def run():
        for i in x:
            s[None] += x[i]
            n[(i * 7919) % 1_000_000] += 1

    def both() -> list[np.ndarray]:
        s.fill(0.0)
        n.fill(0)
        run()
        return [s.to_numpy(), n.to_numpy()]

    return both


def tensors() -> Run:
    """Reductions, products, scattered sums, a scan and a gradient of tensors."""
    a, b = values(N), np.random.default_rng(3).integers(0, 999, N)
    m = values(300 * 200).reshape(300, 200)

    def run() -> list[np.ndarray]:
        x, to, t = ti.tensor.asarray(a), ti.tensor.asarray(b), ti.tensor.asarray(m)
        found = [x.sum(), (x * x).mean(), ti.tensor.cumsum(x), t @ t.T, t.sum(axis=0), t.std(axis=1)]
        scattered = ti.tensor.zeros(999).at[to].add(x)
        return [f.numpy() for f in [*found, scattered]]

    return run


def dense_algebra() -> Run:
    """Decompositions of dense matrices."""
    m = np.random.default_rng(1).standard_normal((400, 400)).astype(np.float32)

    def run() -> list[np.ndarray]:
        linalg, t = ti.tensor.linalg, ti.tensor.asarray(m)
        symmetric = t @ t.T + 400 * ti.tensor.eye(400)
        found = [linalg.solve(t, t[:, 0]), linalg.cholesky(symmetric), *linalg.qr(t), *linalg.eigh(symmetric)]
        return [f.numpy() for f in found]

    return run


def sparse_algebra() -> Run:
    """A factorisation and a product of a sparse matrix."""
    n = 90
    b = values(n * n)

    def run() -> list[np.ndarray]:
        builder = ti.linalg.SparseMatrixBuilder(n * n, n * n, max_num_triplets=5 * n * n)

        @ti.kernel
        def fill(k: ti.types.sparse_matrix_builder()):
            for i, j in ti.ndrange(n, n):
                row = i * n + j
                k[row, row] += 4.1
                if i > 0:
                    k[row, row - n] += -1.0
                    k[row - n, row] += -1.0
                if j > 0:
                    k[row, row - 1] += -1.0
                    k[row - 1, row] += -1.0

        fill(builder)
        matrix = builder.build()
        solver = ti.linalg.SparseSolver(solver_type="LLT")
        solver.compute(matrix)
        return [solver.solve(b), matrix @ b]

    return run


def algorithms() -> Run:
    """Sorting and scanning."""
    keys, places = ti.field(ti.f32, 1 << 14), ti.field(ti.i32, 1 << 14)
    start = np.round(values(1 << 14))
    scan = ti.field(ti.i32, 1 << 14)

    def run() -> list[np.ndarray]:
        keys.from_numpy(start)
        places.from_numpy(np.arange(1 << 14, dtype=np.int32))
        ti.algorithms.parallel_sort(keys, places)
        scan.from_numpy(np.arange(1 << 14, dtype=np.int32) % 7)
        ti.algorithms.PrefixSumExecutor(1 << 14).run(scan)
        return [keys.to_numpy(), places.to_numpy(), scan.to_numpy()]

    return run


#: By what makes results depend on an order.
PROGRAMS: dict[str, Callable[[], Run]] = {
    f.__name__: f
    for f in (
        total, extrema, few_bins, bins, many_bins, arrays, products, slots, appended, pointers, hashes, draws, gradients,
        particles, called, sums_of_both_kinds, counted_and_added, tensors, dense_algebra, sparse_algebra, algorithms,
    )
}  # fmt: skip


def results(make: Callable[[], Run], threads: int, times: int = 1, **settings: object) -> Iterator[bytes]:
    """The bytes of a program's results on so many threads, as often as it runs."""
    ti.init(arch=ti.cpu, cpu_max_num_threads=threads, random_seed=1, log_level="error", **settings)
    run = make()
    for _ in range(times):
        yield b"".join(np.ascontiguousarray(array).tobytes() for array in run())
