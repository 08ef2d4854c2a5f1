"""`ti.algorithms`: sort of 16M keys (i32, f32, i64) and of keys with values; prefix sums and a sum of 16M; and what a copy of
the same numbers takes, beside which the sums are seen.  The reset is not timed."""
from common import *
N = size(16 << 20, 1 << 14)
KINDS = {"sort_i32": np.int32, "sort_f32": np.float32, "sort_i64": np.int64, "sort_pairs": np.int32, "scan_i32": np.int32, "scan_f32": np.float32, "scan_f64": np.float64, "sum_f32": np.float32, "copy_f32": np.float32}
CASES = {c: dict(bytes=2 * N * np.dtype(t).itemsize, tol=0 if c.startswith("sort") or t is np.int32 else 1e-5) for c, t in KINDS.items()}
V = np.arange(N, dtype=np.int32)


def keys(case):
    t = KINDS[case]
    if not case.startswith("sort"): return rng(9).integers(0, 7, N).astype(t)
    return rng(9).random(N, dtype=t) if t is np.float32 else rng(9).integers(0, 1 << 31, N, dtype=t)


@impl("ti")
def _(ti, case):
    K = keys(case)
    x, v = ti.field(getattr(ti, K.dtype.name.replace("int", "i").replace("float", "f")), N), ti.field(ti.i32, N)
    reset = lambda: (x.from_numpy(K), v.from_numpy(V))
    if case == "sort_pairs": return lambda: (ti.algorithms.parallel_sort(x, v), ti.sync()), v.to_numpy, reset
    if case.startswith("sort"): return lambda: (ti.algorithms.parallel_sort(x), ti.sync()), x.to_numpy, reset
    if case.startswith("scan"):
        # Taichi has none for the CPU, and says so.
        total = ti.algorithms.PrefixSumExecutor(N)
        return lambda: (total.run(x), ti.sync()), x.to_numpy, reset
    if case == "copy_f32":
        y = ti.field(ti.f32, N)

        @ti.kernel
        def copy():
            for i in x: y[i] = x[i]
        return lambda: (copy(), ti.sync()), y.to_numpy, reset
    if not hasattr(ti.algorithms, "reduce_add"): raise Skip
    reset()
    out = [0]
    return lambda: out.__setitem__(0, ti.algorithms.reduce_add(x)), lambda: out[0]


@impl("numpy")
def _(case):
    K = keys(case)
    a, out = K.copy(), [0]
    reset = lambda: np.copyto(a, K)
    if case == "sort_pairs": return lambda: out.__setitem__(0, np.argsort(a, kind="stable")), lambda: out[0], reset
    if case.startswith("sort"): return a.sort, lambda: a, reset
    # What is checked is the exact sum: that of NumPy in f32 has lost most of its digits after 16M elements.
    exact = lambda: np.cumsum(K, dtype=np.float64) if case != "scan_i32" else a
    if case == "copy_f32": return lambda: np.copyto(a, K), lambda: a
    if case.startswith("scan"): return lambda: np.cumsum(a, out=a) is None, exact, reset
    return lambda: out.__setitem__(0, a.sum(dtype=np.float64)), lambda: out[0]
