"""Products of matrices that are written as loops, in every order, give what the loops say."""

import numpy as np
import pytest

import aerogel as ti

N, M, K = 75, 133, 301


def nests(a, b, c, n=N, m=M, k_end=K):
    """Kernels that each make `c = a @ b`."""

    @ti.kernel
    def carried():
        for i, j in ti.ndrange(n, m):
            s = ti.cast(0.0, c.dtype)
            for k in range(k_end):
                s += a[i, k] * b[k, j]
            c[i, j] = s

    @ti.kernel
    def over_the_field():
        for i, j in c:
            s = ti.cast(0.0, c.dtype)
            for k in range(k_end):
                s += b[k, j] * a[i, k]
            c[i, j] = s

    @ti.kernel
    def nested():
        for i in range(n):
            for j in range(m):
                s = ti.cast(0.0, c.dtype)
                for k in range(k_end):
                    s += a[i, k] * b[k, j]
                c[i, j] = s

    @ti.kernel
    def column_by_column():
        for j in range(m):
            for i in range(n):
                s = ti.cast(0.0, c.dtype)
                for k in range(k_end):
                    s += a[i, k] * b[k, j]
                c[i, j] = s

    @ti.kernel
    def cleared_element():
        for i, j in c:
            c[i, j] = 0.0
            for k in range(k_end):
                c[i, j] += a[i, k] * b[k, j]

    @ti.kernel
    def row_by_row():
        for i in range(n):
            for j in range(m):
                c[i, j] = 0.0
            for k in range(k_end):
                x = a[i, k]
                for j in range(m):
                    c[i, j] += x * b[k, j]

    @ti.kernel
    def scattered():
        for i, j in c:
            c[i, j] = 0.0
        for i, k in ti.ndrange(n, k_end):
            for j in range(m):
                c[i, j] += a[i, k] * b[k, j]

    @ti.kernel
    def three_axes():
        for i in range(n):
            for j in range(m):
                c[i, j] = 0.0
        for k, i, j in ti.ndrange(k_end, n, m):
            c[i, j] += a[i, k] * b[k, j]

    @ti.kernel
    def flat():
        for t in range(n * m):
            i, j = t // m, t % m
            s = ti.cast(0.0, c.dtype)
            for k in range(k_end):
                s += a[i, k] * b[k, j]
            c[i, j] = s

    return [
        carried,
        over_the_field,
        nested,
        column_by_column,
        cleared_element,
        row_by_row,
        scattered,
        three_axes,
        flat,
    ]


def in_order(a, b):
    """The products added one after the other, each rounded."""
    total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        total += a[:, k : k + 1] * b[k]
    return total


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_orders_of_loops(cpu, rng, dtype):
    numpy_type = np.float32 if dtype is ti.f32 else np.float64
    left, right = (rng.standard_normal(s).astype(numpy_type) for s in ((N, K), (K, M)))
    for level in (False, True):
        ti.init(arch=ti.cpu, fast_math=level, log_level="error")
        a, b, c = (ti.field(dtype, s) for s in ((N, K), (K, M), (N, M)))
        a.from_numpy(left)
        b.from_numpy(right)
        for kernel in nests(a, b, c):
            c.fill(7.0)
            kernel()
            if level:
                tolerance = 1e-4 if dtype is ti.f32 else 1e-12
                np.testing.assert_allclose(c.to_numpy(), in_order(left, right), rtol=0, atol=tolerance)
            else:
                np.testing.assert_array_equal(c.to_numpy(), in_order(left, right), kernel.__name__)


def test_sizes(cpu, rng):
    """Also those that tiles and blocks do not divide, and products that are too small for them."""

    @ti.kernel
    def product(a: ti.types.ndarray(), b: ti.types.ndarray(), c: ti.types.ndarray()):
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                c[i, j] = 0.0
            for k in range(a.shape[1]):
                for j in range(c.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]

    @ti.kernel
    def carried(a: ti.types.ndarray(), b: ti.types.ndarray(), c: ti.types.ndarray()):
        ti.loop_config(fast_math=False)
        for i, j in c:
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s

    for n, m, k in [
        (1, 1, 1),
        (24, 24, 24),
        (25, 40, 31),
        (64, 64, 64),
        (12, 32, 256),
        (13, 33, 300),
        (96, 256, 80),
        (97, 257, 257),
        (500, 16, 100),
        (8, 700, 100),
        (100, 100, 0),
        (320, 330, 20),
    ]:
        a, b = (rng.standard_normal(s).astype(np.float32) for s in ((n, k), (k, m)))
        c = np.full((n, m), 5, np.float32)
        product(a, b, c)
        np.testing.assert_allclose(c, in_order(a, b), rtol=0, atol=1e-4)
        c[:] = 5
        carried(a, b, c)
        np.testing.assert_array_equal(c, in_order(a, b))


def test_sums_that_begin_elsewhere(cpu, rng):
    ti.init(arch=ti.cpu, fast_math=False, log_level="error")
    left, right, before = (rng.standard_normal(s).astype(np.float32) for s in ((N, K), (K, M), (N, M)))
    a, b, c = (ti.field(ti.f32, s) for s in ((N, K), (K, M), (N, M)))
    a.from_numpy(left)
    b.from_numpy(right)

    @ti.kernel
    def added():
        for i in range(N):
            for k in range(K):
                for j in range(M):
                    c[i, j] += a[i, k] * b[k, j]

    @ti.kernel
    def from_memory():
        for i, j in c:
            s = c[i, j]
            for k in range(K):
                s += a[i, k] * b[k, j]
            c[i, j] = s

    expected = before.copy()
    for k in range(K):
        expected += left[:, k : k + 1] * right[k]
    for kernel in (added, from_memory):
        c.from_numpy(before)
        kernel()
        np.testing.assert_array_equal(c.to_numpy(), expected)


def test_what_becomes_of_sums(cpu, rng):
    """Layers: bias and activation where the sums are stored, factors that are computed, transposed operands, a batch."""
    x, w, bias = (rng.standard_normal(s).astype(np.float32) for s in ((N, K), (M, K), M))
    out, mask = np.zeros((N, M), np.float32), np.zeros((N, M), np.int32)

    @ti.kernel
    def layer(
        x: ti.types.ndarray(),
        w: ti.types.ndarray(),
        bias: ti.types.ndarray(),
        out: ti.types.ndarray(),
        mask: ti.types.ndarray(),
        scale: ti.f32,
    ):
        for i, j in out:
            s = 0.0
            for k in range(x.shape[1]):
                s += (scale * x[i, k] + 1.0) * ti.max(w[j, k], 0.0)
            s += bias[j]
            mask[i, j] = 1 if s > 0.0 else 0
            out[i, j] = ti.max(s, 0.0)

    layer(x, w, bias, out, mask, 0.5)
    sums = (0.5 * x + 1).astype(np.float64) @ np.maximum(w, 0).T.astype(np.float64) + bias
    np.testing.assert_allclose(out, np.maximum(sums, 0), rtol=0, atol=2e-4)
    away = abs(sums) > 1e-3
    np.testing.assert_array_equal(mask[away], sums[away] > 0)

    @ti.kernel
    def batch(a: ti.types.ndarray(), b: ti.types.ndarray(), c: ti.types.ndarray()):
        for n, i, j in c:
            for k in range(a.shape[1]):
                c[n, i, j] += a[n, k, i] * b[n, k, j + 1]

    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((3, 70, 90), (3, 70, 81)))
    c = np.zeros((3, 90, 80), np.float32)
    batch(a, b, c)
    np.testing.assert_allclose(c, a.transpose(0, 2, 1) @ b[:, :, 1:], rtol=0, atol=1e-4)


def test_results_that_are_operands(cpu):
    """Loops that read what they have written are left alone."""
    n = 96
    start = np.linspace(-1, 1, n * n, dtype=np.float32).reshape(n, n)
    b = np.linspace(1, -0.5, n * n, dtype=np.float32).reshape(n, n) / n

    @ti.kernel
    def in_place(a: ti.types.ndarray(), b: ti.types.ndarray(), c: ti.types.ndarray()):
        ti.loop_config(serialize=True)
        for i in range(n):
            for j in range(n):
                s = 0.0
                for k in range(n):
                    s += a[i, k] * b[k, j]
                c[i, j] = s

    @ti.kernel
    def of_a_field():
        ti.loop_config(serialize=True)
        for i in range(n):
            for j in range(n):
                s = 0.0
                for k in range(n):
                    s += f[i, k] * g[k, j]
                f[i, j] = s

    expected = start.copy()
    for j in range(n):
        expected[:, j] = expected.astype(np.float64) @ b[:, j].astype(np.float64)
    a = start.copy()
    in_place(a, b, a)
    np.testing.assert_allclose(a, expected, rtol=1e-4, atol=1e-5)
    f, g = ti.field(ti.f32, (n, n)), ti.field(ti.f32, (n, n))
    f.from_numpy(start)
    g.from_numpy(b)
    of_a_field()
    np.testing.assert_allclose(f.to_numpy(), expected, rtol=1e-4, atol=1e-5)


def test_clearing_that_is_not_of_all_sums(cpu):
    n = 64

    @ti.kernel
    def half():
        for i, j in ti.ndrange(n // 2, n):
            c[i, j] = 0.0
        for i, j, k in ti.ndrange(n, n, n):
            c[i, j] += a[i, k] * b[k, j]

    @ti.kernel
    def each_time():
        for i in range(n):
            for k in range(n):
                for j in range(n):
                    c[i, j] = 0.0
                for j in range(n):
                    c[i, j] += a[i, k] * b[k, j]

    a, b, c = (ti.field(ti.f32, (n, n)) for _ in range(3))
    a.fill(1.0)
    b.fill(2.0)
    c.fill(5.0)
    half()
    expected = np.full((n, n), 128.0)
    expected[n // 2 :] += 5
    np.testing.assert_array_equal(c.to_numpy(), expected)
    each_time()
    np.testing.assert_array_equal(c.to_numpy(), np.full((n, n), 2.0))


def test_not_a_number_and_infinity(cpu, rng):
    """Elements outside of tiles touch nothing."""
    left, right = (rng.standard_normal(s).astype(np.float32) for s in ((N, K), (K, M)))
    left[3, 5], right[7, 11], left[-1, -1] = np.nan, np.inf, -np.inf
    a, b, c = (ti.field(ti.f32, s) for s in ((N, K), (K, M), (N, M)))
    a.from_numpy(left)
    b.from_numpy(right)
    for kernel in nests(a, b, c):
        kernel()
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(c.to_numpy(), in_order(left, right), rtol=0, atol=1e-4)


def test_little_memory(rng):
    """Where there is no room for blocks, loops make the sums."""
    ti.init(arch=ti.cpu, ad_memory="1 KiB", log_level="error")
    left, right = (rng.standard_normal(s).astype(np.float32) for s in ((N, K), (K, M)))
    a, b, c = (ti.field(ti.f32, s) for s in ((N, K), (K, M), (N, M)))
    a.from_numpy(left)
    b.from_numpy(right)
    for kernel in nests(a, b, c):
        c.fill(3.0)
        kernel()
        np.testing.assert_allclose(c.to_numpy(), in_order(left, right), rtol=0, atol=1e-4)
    ti.reset()
