"""How exact the decompositions of small matrices are, measured against LAPACK.

    python tests/oracle/linalg.py [N] > docs/linalg-accuracy.md

``N`` is how many random matrices each function gets, a million by default. ``tests/python/test_linalg.py`` does the
same with fewer, and holds the limits.
"""

import sys

import numpy as np

import aerogel as ti

EPS = {np.float32: 2.0**-23, np.float64: 2.0**-52}
#: What is computed with to check what was computed.
WIDER = {np.float32: np.float64, np.float64: np.longdouble}


def orthogonal(rng, count, n):
    """Random orthogonal matrices."""
    return np.linalg.qr(rng.standard_normal((count, n, n)))[0]


def hard(rng, count, n, dtype):
    """Matrices that are hard, by the name of what is hard about them; singular values from 1 to 1e-12 and 0."""
    u, v = orthogonal(rng, count, n), orthogonal(rng, count, n)

    def of(*sigma):
        return u * np.stack(np.broadcast_arrays(*sigma), -1).reshape(-1, 1, n) @ v.swapaxes(1, 2)

    middle = 10 ** rng.uniform(-12, 0, (n - 2, count))
    plain = rng.standard_normal((count, n, n))
    big, small = (1e30, 1e-30) if dtype == np.float32 else (1e150, 1e-150)
    found = {
        "condition up to 1e12": of(np.ones(count), *middle, 10 ** rng.uniform(-12, 0, count)),
        "rank 1": of(np.ones(count), *np.zeros((n - 1, count))),
        "zero": np.zeros((count, n, n)),
        "identity": np.tile(np.eye(n), (count, 1, 1)),
        "diagonal": np.eye(n) * rng.integers(-2, 3, (count, n, 1)),
        "small integers": rng.integers(-1, 2, (count, n, n)).astype(float),
        "orthogonal": u,
        "nearly orthogonal": u + 1e-6 * plain,
        "nearly symmetric": plain + plain.swapaxes(1, 2) + 1e-7 * rng.standard_normal((count, n, n)),
        "columns of far different lengths": plain * 10.0 ** rng.uniform(-20, 0, (count, 1, n)),
        "rows of far different lengths": plain * 10.0 ** rng.uniform(-20, 0, (count, n, 1)),
        "triangular": np.triu(plain) * 10.0 ** rng.uniform(-6, 0, (count, n, n)),
        "large": big * plain,
        "small": small * plain,
        "denormal": np.finfo(dtype).tiny * plain / 50,
        "near the largest": np.finfo(dtype).max / 4 * (plain / np.abs(plain).max((1, 2), keepdims=True)),
    }
    if n == 3:
        found |= {
            "rank 2": of(np.ones(count), rng.uniform(0.1, 1, count), np.zeros(count)),
            "two largest equal": of(np.ones(count), np.ones(count), rng.uniform(0, 1, count)),
            "two smallest equal": of(np.ones(count), *([rng.uniform(0, 1, count)] * 2)),
            "all nearly equal": of(*(1 + 1e-7 * rng.standard_normal((3, count)))),
        }
    return {name: values.astype(dtype) for name, values in found.items()}


def families(rng, n_random, n_hard, n, dtype):
    """Random matrices first, then the hard ones."""
    yield "random", rng.standard_normal((n_random, n, n)).astype(dtype)
    yield from hard(rng, n_hard, n, dtype).items()


def kernels(n, dtype):
    """A function for each decomposition, from arrays of matrices to arrays."""
    mat = ti.types.matrix(n, n, ti.f32 if dtype == np.float32 else ti.f64)
    vec = ti.types.vector(n, mat.dtype)
    mats, vecs = ti.types.ndarray(dtype=mat, ndim=1), ti.types.ndarray(dtype=vec, ndim=1)
    numbers = ti.types.ndarray(dtype=mat.dtype, ndim=1)

    @ti.kernel
    def svd(a: mats, u: mats, s: mats, v: mats):
        for i in a:
            u[i], s[i], v[i] = ti.svd(a[i])

    @ti.kernel
    def polar(a: mats, u: mats, p: mats):
        for i in a:
            u[i], p[i] = ti.polar_decompose(a[i])

    @ti.kernel
    def sym_eig(a: mats, w: vecs, v: mats):
        for i in a:
            w[i], v[i] = ti.sym_eig(a[i])

    @ti.kernel
    def eig(a: mats, w: mats, v: ti.types.ndarray(dtype=ti.types.matrix(4, 2, mat.dtype), ndim=1)):
        for i in a:
            w[i], v[i] = ti.eig(a[i])

    @ti.kernel
    def solve(a: mats, b: vecs, x: vecs):
        for i in a:
            x[i] = ti.solve(a[i], b[i])

    @ti.kernel
    def inverse(a: mats, x: mats):
        for i in a:
            x[i] = a[i].inverse()

    @ti.kernel
    def determinant(a: mats, d: numbers):
        for i in a:
            d[i] = a[i].determinant()

    return {"svd": svd, "polar": polar, "sym_eig": sym_eig, "eig": eig, "solve": solve} | {
        "inverse": inverse,
        "determinant": determinant,
    }


def norm(x):
    """The Frobenius norm of each matrix or vector, without overflow."""
    axes = tuple(range(1, x.ndim))
    scale = np.abs(x).max(axes, keepdims=True)
    scale = np.where(scale > 0, scale, 1)
    return np.sqrt(((x / scale) ** 2).sum(axes)) * scale.reshape(len(x))


def product(*factors):
    """The product of matrices, which NumPy does not have for long doubles but by sums."""
    out = factors[0]
    for factor in factors[1:]:
        out = (out[:, :, :, None] * factor[:, None, :, :]).sum(2)
    return out


def transposed(x):
    """Each matrix transposed."""
    return x.swapaxes(1, 2)


class Check:
    """Errors of one kind of number, in units of its last place relative to the norm of the matrix."""

    def __init__(self, n, dtype):
        self.n, self.dtype, self.eps = n, dtype, EPS[dtype]
        self.kernels = kernels(n, dtype)

    def wide(self, *arrays):
        return [x.astype(WIDER[self.dtype]) for x in arrays]

    def new(self, count, *shape):
        return np.full((count, *shape), np.nan, self.dtype)

    def worst(self, error, size=1.0):
        """The largest error; whatever is no number counts as infinite. What is denormal is exact to its last place."""
        error = np.asarray(error)
        size = np.maximum(np.broadcast_to(size, error.shape), np.finfo(self.dtype).tiny)
        ratio = np.where(np.isfinite(error), error / size, np.inf)
        return float(ratio.max(initial=0) / self.eps)

    def from_identity(self, x):
        return self.worst(np.abs(product(transposed(x), x) - np.eye(self.n)).max((1, 2)))

    def svd(self, a):
        u, s, v = (self.new(len(a), self.n, self.n) for _ in range(3))
        self.kernels["svd"](a, u, s, v)
        values = np.abs(np.diagonal(s, axis1=1, axis2=2))
        scale = np.maximum(np.abs(a.astype(np.float64)).max((1, 2), keepdims=True), np.finfo(self.dtype).tiny)
        want = np.linalg.svd(a / scale)[1] * scale[:, 0]
        off = s - np.eye(self.n, dtype=self.dtype) * np.diagonal(s, axis1=1, axis2=2)[:, None]
        ordered = (values[:, :-1] >= values[:, 1:] - 4 * self.eps * want[:, :1]).all() and (off == 0).all()
        wa, wu, ws, wv = self.wide(a, u, s, v)
        return {
            "U from orthogonal": self.from_identity(wu),
            "V from orthogonal": self.from_identity(wv),
            "U S Vᵀ": self.worst(norm(product(wu, ws, transposed(wv)) - wa), norm(wa)),
            "S": self.worst(np.abs(values - want).max(1), want[:, 0]) if ordered else np.inf,
        }

    def polar_decompose(self, a):
        u, p = (self.new(len(a), self.n, self.n) for _ in range(2))
        self.kernels["polar"](a, u, p)
        wa, wu, wp = self.wide(a, u, p)
        return {
            "U from orthogonal": self.from_identity(wu),
            "U P": self.worst(norm(product(wu, wp) - wa), norm(wa)),
            "P from symmetric": self.worst(norm(wp - transposed(wp)), norm(wa)),
        }

    def sym_eig(self, a):
        a = np.tril(a) + np.tril(a, -1).swapaxes(1, 2)
        w, v = self.new(len(a), self.n), self.new(len(a), self.n, self.n)
        self.kernels["sym_eig"](a, w, v)
        scale = np.maximum(np.abs(a.astype(np.float64)).max((1, 2), keepdims=True), np.finfo(self.dtype).tiny)
        want = np.linalg.eigvalsh(a / scale) * scale[:, 0]
        wa, ww, wv = self.wide(a, w, v)
        ordered = w if self.n == 3 else w[:, ::-1]
        return {
            "V from orthogonal": self.from_identity(wv),
            "A V - V L": self.worst(norm(product(wa, wv) - wv * ww[:, None]), norm(wa)),
            "eigenvalues": self.worst(np.abs(ordered - want).max(1), norm(wa)),
        }

    def eig(self, a):
        w, v = self.new(len(a), 2, 2), self.new(len(a), 4, 2)
        self.kernels["eig"](a, w, v)
        wa, ww, wv = self.wide(a, w, v)
        real, imaginary = wv[:, ::2], wv[:, 1::2]
        lr, li = ww[:, None, :, 0], ww[:, None, :, 1]
        off = np.concatenate(
            [product(wa, real) - real * lr + imaginary * li, product(wa, imaginary) - real * li - imaginary * lr]
        )
        return {
            "A v - l v": self.worst(norm(off), np.tile(norm(wa), 2)),
            "v from length 1": self.worst(np.abs((wv**2).sum(1) - 1)),
        }

    def solve(self, a):
        # What is divided by may be of any size, as long as the quotient is not denormal.
        a = a[self.regular(a, np.finfo(self.dtype).tiny / self.eps, np.finfo(self.dtype).max * self.eps)]
        b = np.random.default_rng(1).standard_normal((len(a), self.n)).astype(self.dtype)
        x = self.new(len(a), self.n)
        self.kernels["solve"](a, b, x)
        wa, wb, wx = self.wide(a, b, x)
        return {"A x": self.worst(norm((wa * wx[:, None]).sum(2) - wb), norm(wa) * norm(wx))}

    def inverse(self, a):
        low, high = (float(x) ** (1 / (2 * self.n)) for x in (np.finfo(self.dtype).tiny, np.finfo(self.dtype).max))
        a = a[self.regular(a, low, high)]
        x = self.new(len(a), self.n, self.n)
        self.kernels["inverse"](a, x)
        wa, wx = self.wide(a, x)
        values = np.linalg.svd(a.astype(np.float64))[1]
        condition = values[:, 0] / values[:, -1]
        return {"A X": self.worst(norm(product(wa, wx) - np.eye(self.n)), condition ** (self.n - 1))}

    def determinant(self, a):
        d = self.new(len(a))
        self.kernels["determinant"](a, d)
        wa, wd = self.wide(a, d)
        want = exact_determinant(wa)
        # Hadamard's bound.
        bound = np.sqrt((wa**2).sum(2)).prod(1)
        inside = (bound < np.finfo(self.dtype).max / 100) & (bound > np.finfo(self.dtype).tiny / self.eps)
        return {
            "the determinant, relative to the product of the rows' lengths": self.worst(
                np.abs(wd - want)[inside], bound[inside]
            )
        }

    def regular(self, a, low, high):
        """Which matrices are not singular to rounding, and have their largest element between two limits."""
        scale = np.abs(a).max((1, 2)).astype(np.float64)
        values = np.linalg.svd(a / np.where(scale > 0, scale, 1)[:, None, None])[1]
        return (values[:, -1] > 1e3 * self.eps * values[:, 0]) & (scale > low) & (scale < high)


def exact_determinant(a):
    """By cofactors, in the wider numbers."""
    if a.shape[1] == 1:
        return a[:, 0, 0]
    rest = range(a.shape[1])
    minors = [exact_determinant(np.delete(a[:, 1:], k, axis=2)) for k in rest]
    return sum((-1) ** k * a[:, 0, k] * minors[k] for k in rest)


FUNCTIONS = {
    "svd": (2, 3),
    "polar_decompose": (2, 3),
    "sym_eig": (2, 3),
    "eig": (2,),
    "solve": (2, 3),
    "inverse": (2, 3, 4),
    "determinant": (2, 3, 4),
}


def measure(n, dtype, functions, n_random, n_hard, seed=0):
    """Yields function, family and errors."""
    check = Check(n, dtype)
    for family, a in families(np.random.default_rng(seed), n_random, n_hard, n, dtype):
        for name in functions:
            if n in FUNCTIONS[name]:
                for begin in range(0, len(a), 100_000):
                    part = a[begin : begin + 100_000]
                    yield name, family, getattr(check, name)(part)


HEAD = """# Accuracy of decompositions of small matrices

This page lists the errors of `ti.svd`, `ti.polar_decompose`, `ti.sym_eig`, `ti.eig`, `ti.solve`, `inverse()` and
`determinant()`. `python tests/oracle/linalg.py > docs/linalg-accuracy.md` measured them, and
`tests/python/test_linalg.py` asserts the limits.

* **Matrices.** {n} random matrices of normally distributed elements, and {n_hard} of each of the hard kinds that the
  table names: singular values down to 1e-12 of the largest, ranks 1 and 2, zero, equal singular values, elements of far
  different sizes, elements close to the largest number and below the smallest normal one.
* **Unit.** Each figure is the largest error in units in the last place (2^-23 or 2^-52) of the norm of the matrix. For
  rotations it is in units in the last place of 1.
* **Reference.** Singular values and eigenvalues are compared with LAPACK's in f64. Everything else is checked in a wider
  type.
* **`inverse()`** divides cofactors by the determinant, as Taichi does. Its error grows with the condition number to the
  power of the size minus 1, and the figures are in units of that. Matrices whose cofactors leave the range of the type,
  and those that are singular up to rounding, are excluded.
* **`ti.solve`** eliminates with pivots. Its figure is the error of `A x` relative to the norms of `A` and `x`.

| function | size | error of | f32, random | f32, hard | f64, random | f64, hard |
|---|---|---|---|---|---|---|
"""


def table(n_random, n_hard):
    """The page."""
    worst = {}
    for dtype in (np.float32, np.float64):
        for n in (2, 3, 4):
            for name, family, errors in measure(n, dtype, FUNCTIONS, n_random, n_hard):
                for what, error in errors.items():
                    kinds = worst.setdefault((name, n, what), {np.float32: {}, np.float64: {}})[dtype]
                    kinds[family] = max(error, kinds.get(family, 0))
    lines = []
    for (name, n, what), types in sorted(worst.items(), key=lambda row: (list(FUNCTIONS).index(row[0][0]), row[0][1])):
        line = f"| `{name}` | {n} | {what} |"
        for kinds in types.values():
            hardest = max((k for k in kinds if k != "random"), key=lambda k: kinds[k])
            line += f" {kinds['random']:.1f} | {kinds[hardest]:.1f} ({hardest}) |"
        lines.append(line)
    return HEAD.format(n=f"{n_random:,}", n_hard=f"{n_hard:,}") + "\n".join(lines)


if __name__ == "__main__":
    ti.init(arch=ti.cpu, log_level="error", offline_cache=False)
    np.seterr(all="ignore")
    print(table(int((sys.argv[1:] or [10**6])[0]), 1000))
