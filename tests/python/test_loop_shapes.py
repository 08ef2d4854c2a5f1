"""Loops whose axes are reordered, split or cut at edges compute what is written."""

import numpy as np
import pytest

import aerogel as ti

SHAPES = [(40, 72), (33, 100), (1, 64), (64, 1), (16, 16), (3, 5)]


@pytest.mark.parametrize("n, m", SHAPES)
def test_columns_first(arch, n, m):
    ti.init(arch=arch)
    a, b = ti.field(ti.i32, (n, m)), ti.field(ti.i32, (n, m))
    values = np.random.default_rng(1).integers(0, 1000, (n, m)).astype(np.int32)
    a.from_numpy(values)

    @ti.kernel
    def by_ndrange():
        for j, i in ti.ndrange(m, n):
            b[i, j] = a[i, j] * 2 + i * 1000 + j

    @ti.kernel
    def by_ranges():
        for j in range(m):
            base = j * 3
            for i in range(n):
                if a[i, j] % 7 == 0:
                    continue
                b[i, j] = a[i, j] + i * 1000 + base

    i, j = np.mgrid[:n, :m]
    by_ndrange()
    first = values * 2 + i * 1000 + j
    np.testing.assert_array_equal(b.to_numpy(), first)
    by_ranges()
    np.testing.assert_array_equal(b.to_numpy(), np.where(values % 7 == 0, first, values + i * 1000 + j * 3))


def test_columns_first_with_loads_before_the_inner_loop(arch):
    ti.init(arch=arch, cpu_max_num_threads=1)
    n, m = 20, 50
    a, w, h = ti.field(ti.i32, (n, m)), ti.field(ti.i32, m), ti.field(ti.i32, ())
    w.from_numpy(np.arange(m, dtype=np.int32))
    h[None] = 3

    @ti.kernel
    def scaled():
        for j in range(m):
            factor = w[j] * h[None]
            for i in range(n):
                a[i, j] = factor + i

    @ti.kernel
    def summed_up():
        for j in range(m):
            first = a[0, j]
            for i in range(n):
                a[i, j] = a[i, j] + first

    i, j = np.mgrid[:n, :m]
    scaled()
    np.testing.assert_array_equal(a.to_numpy(), j * 3 + i)
    summed_up()
    np.testing.assert_array_equal(a.to_numpy(), j * 6 + i)


def test_columns_first_in_arrays_of_three_axes(arch):
    ti.init(arch=arch)

    @ti.kernel
    def weigh(a: ti.types.ndarray(dtype=ti.f32, ndim=3), b: ti.types.ndarray(dtype=ti.f32, ndim=3)):
        for k, j, i in ti.ndrange(a.shape[2], a.shape[1], a.shape[0]):
            b[i, j, k] = a[i, j, k] * (i + 10 * j + 100 * k)

    a = np.random.default_rng(2).random((5, 7, 40), dtype=np.float32)
    b = np.zeros_like(a)
    weigh(a, b)
    i, j, k = np.mgrid[:5, :7, :40].astype(np.float32)
    np.testing.assert_array_equal(b, a * (i + 10 * j + 100 * k))
    weigh(a, a)
    np.testing.assert_array_equal(a, b)


def test_a_sweep_in_place_keeps_its_order(arch):
    ti.init(arch=arch, cpu_max_num_threads=1)
    n = 48
    a = ti.field(ti.i32, (n, n))

    @ti.kernel
    def sweep():
        for j in range(n):
            for i in range(1, n):
                a[i, j] = a[i - 1, j] * 3 + a[i, j]

    @ti.kernel
    def last():
        for j in range(n):
            for i in range(n):
                a[0, j] = a[i, j]

    values = np.random.default_rng(3).integers(0, 9, (n, n)).astype(np.int32)
    a.from_numpy(values)
    sweep()
    with np.errstate(over="ignore"):
        for i in range(1, n):
            values[i] += values[i - 1] * 3
    np.testing.assert_array_equal(a.to_numpy(), values)
    last()
    np.testing.assert_array_equal(a.to_numpy()[0], values[-1])


@pytest.mark.parametrize("shape", [(6, 40), (5, 3), (4, 8, 16), (3, 10, 12), (2, 64, 8)])
def test_flat_indices(arch, shape):
    ti.init(arch=arch)
    x, y = ti.field(ti.i32, shape), ti.field(ti.i32, int(np.prod(shape)))

    @ti.kernel
    def two():
        for t in range(shape[0] * shape[1]):
            i, j = t // shape[1], t % shape[1]
            x[i, j] = t * 7 + i
            y[t] = j

    @ti.kernel
    def three():
        for t in range(shape[0] * shape[1] * shape[2]):
            i = t // (shape[1] * shape[2])
            j = t % (shape[1] * shape[2]) // shape[2]
            k = t % shape[2]
            x[i, j, k] = t * 7 + i
            y[t] = t % (shape[1] * shape[2]) + t // shape[2] % shape[1]

    (two if len(shape) == 2 else three)()
    at = np.arange(np.prod(shape)).reshape(shape)
    np.testing.assert_array_equal(x.to_numpy(), at * 7 + np.indices(shape)[0])
    flat = at.ravel()
    expected = flat % shape[1] if len(shape) == 2 else flat % (shape[1] * shape[2]) + flat // shape[2] % shape[1]
    np.testing.assert_array_equal(y.to_numpy(), expected)


SIZES = [(6, 40), (5, 3), (1, 64), (40, 1), (0, 16), (16, 0), (-3, 16), (16, -3), (-2, -9), (-9, -20)]


@pytest.mark.parametrize("n, m", SIZES)
def test_flat_indices_by_arguments(arch, n, m):
    ti.init(arch=arch)
    x = ti.field(ti.i32, 256)

    @ti.kernel
    def fill(n: ti.i32, m: ti.i32, total: ti.i32):
        for t in range(total):
            i = t // m
            j = t % m
            x[t] = i * 1000 + j + 1

    for total in (n * m, n * m + 5, 17):
        x.fill(0)
        fill(n, m, total)
        expected = np.zeros(256, np.int32)
        t = np.arange(max(total, 0))
        expected[: len(t)] = t // m * 1000 + t % m + 1 if m else x.to_numpy()[: len(t)]
        np.testing.assert_array_equal(x.to_numpy(), expected)


def test_flat_indices_by_sizes_whose_product_is_too_large(arch):
    ti.init(arch=arch)
    x = ti.field(ti.i32, (100, 3))

    @ti.kernel
    def fill(n: ti.i32, m: ti.i32, k: ti.i32):
        for t in range(n * m):
            x[t, 0] = t // m
            x[t, 1] = t % m
            x[t, 2] = t // (k * m)

    # 2^32 + 60 iterations are 60.
    n, m = 1073741839, 4
    fill(n, m, 1 << 30)
    t = np.arange(60)
    np.testing.assert_array_equal(x.to_numpy()[:60, :2], np.stack([t // m, t % m], axis=1))
    # 4294967328 and 2^31 + 16 do not fit; with 16 in a row there are 32 iterations.
    fill(268435458, 16, (1 << 27) + 1)
    t = np.arange(32)
    expected = np.stack([t // 16, t % 16, t // (-(1 << 31) + 16)], axis=1)
    np.testing.assert_array_equal(x.to_numpy()[:32], expected)


@pytest.mark.parametrize("shape", [(6, 40), (5, 3), (4, 8, 16), (3, 10, 12), (2, 64, 8), (2, 3, 5)])
def test_flat_indices_by_shapes(arch, shape):
    ti.init(arch=arch)

    @ti.kernel
    def two(x: ti.types.ndarray(dtype=ti.i32, ndim=2)):
        for t in range(x.shape[0] * x.shape[1]):
            i, j = t // x.shape[1], t % x.shape[1]
            x[i, j] = t * 7 + i

    @ti.kernel
    def three(x: ti.types.ndarray(dtype=ti.i32, ndim=3), m: ti.i32, k: ti.i32):
        for t in range(x.shape[0] * m * k):
            x[t // (m * k), t // k % m, t % k] = t * 7 + t // (k * m)

    @ti.kernel
    def by_rows(x: ti.types.ndarray(dtype=ti.i32, ndim=3), m: ti.i32, k: ti.i32):
        for t in range(x.shape[0] * (m * k)):
            rest = t % (m * k)
            x[t // (m * k), rest // k, rest % k] = t * 7 + t // (k * m)

    at = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    expected = at * 7 + np.indices(shape)[0]
    for kernel in [two] if len(shape) == 2 else [three, by_rows]:
        x = np.zeros(shape, np.int32)
        kernel(x, *shape[1:][: 2 * (len(shape) - 2)])
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("n, m", SHAPES)
def test_sums_in_any_order(arch, n, m):
    ti.init(arch=arch)
    a, rows, columns = ti.field(ti.i32, (n, m)), ti.field(ti.i32, n), ti.field(ti.i32, m)
    values = np.random.default_rng(5).integers(-1000, 1000, (n, m)).astype(np.int32)
    a.from_numpy(values)

    @ti.kernel
    def columns_first():
        for j, i in ti.ndrange(m, n):
            rows[i] += a[i, j]
            columns[j] -= a[i, j]

    @ti.kernel
    def nested():
        for j in range(m):
            for i in range(n):
                rows[i] += a[i, j] * (j + 1)

    @ti.kernel
    def own():
        for j in range(m):
            for i in range(n):
                columns[j] += a[i, j] * (i + 1)

    @ti.kernel
    def extremes():
        for j, i in ti.ndrange(m, n):
            ti.atomic_max(rows[i], a[i, j])
            ti.atomic_min(columns[j], a[i, j])

    @ti.kernel
    def running():
        for j in range(m):
            for i in range(n):
                rows[i] += a[i, j]
                columns[j] = rows[i]

    i, j = np.mgrid[:n, :m]
    columns_first()
    by_row, by_column = values.sum(axis=1), -values.sum(axis=0)
    np.testing.assert_array_equal(rows.to_numpy(), by_row)
    np.testing.assert_array_equal(columns.to_numpy(), by_column)
    nested()
    own()
    by_row, by_column = by_row + (values * (j + 1)).sum(axis=1), by_column + (values * (i + 1)).sum(axis=0)
    np.testing.assert_array_equal(rows.to_numpy(), by_row)
    np.testing.assert_array_equal(columns.to_numpy(), by_column)
    extremes()
    np.testing.assert_array_equal(rows.to_numpy(), np.maximum(by_row, values.max(axis=1)))
    np.testing.assert_array_equal(columns.to_numpy(), np.minimum(by_column, values.min(axis=0)))
    # What others add to is read: the order is that of the program, on one thread.
    ti.init(arch=arch, cpu_max_num_threads=1)
    a, rows, columns = ti.field(ti.i32, (n, m)), ti.field(ti.i32, n), ti.field(ti.i32, m)
    a.from_numpy(values)
    running()
    np.testing.assert_array_equal(columns.to_numpy(), values.cumsum(axis=1)[-1])


@pytest.mark.parametrize("n, m", SHAPES)
def test_transposed_copies_in_nests(arch, n, m):
    ti.init(arch=arch)
    a, b, c = ti.field(ti.i32, (n, m)), ti.field(ti.i32, (m, n)), ti.field(ti.i32, (m, n))

    @ti.kernel
    def rows():
        for i in range(m):
            for j in range(n):
                b[i, j] = a[j, i] + i

    @ti.kernel
    def columns():
        for i in range(n):
            for j in range(m):
                c[j, i] = a[i, j] + j

    values = np.random.default_rng(6).integers(0, 1000, (n, m)).astype(np.int32)
    a.from_numpy(values)
    rows()
    columns()
    expected = values.T + np.arange(m)[:, None]
    np.testing.assert_array_equal(b.to_numpy(), expected)
    np.testing.assert_array_equal(c.to_numpy(), expected)


def test_flat_indices_of_part_of_a_row(arch):
    ti.init(arch=arch)
    x = ti.field(ti.i32, (5, 16))

    @ti.kernel
    def fill():
        for t in range(70):
            x[t // 16, t % 16] = t

    fill()
    expected = np.arange(80)
    expected[70:] = 0
    np.testing.assert_array_equal(x.to_numpy().ravel(), expected)


@pytest.mark.parametrize("storage", ["field", "array"])
@pytest.mark.parametrize("n", [1, 2, 7, 64, 100, 257])
def test_neighbours_beyond_the_ends_of_a_row(arch, storage, n):
    ti.init(arch=arch)

    def around(at, edge):
        left, right = at - 1, at + 1
        if edge == "clamped":
            return np.maximum(left, 0), np.minimum(right, n - 1)
        return left % n, right % n

    annotation = ti.template() if storage == "field" else ti.types.ndarray(dtype=ti.i32, ndim=2)

    @ti.kernel
    def clamped(a: annotation, b: annotation):
        for i, j in a:
            b[i, j] = a[i, ti.max(j - 1, 0)] * 3 + a[i, ti.min(j + 1, n - 1)]

    @ti.kernel
    def selected(a: annotation, b: annotation):
        for i, j in ti.ndrange(3, n):
            b[i, j] = a[i, ti.select(j < 1, 0, j - 1)] * 3 + a[i, ti.select(j + 1 < n, j + 1, n - 1)]

    @ti.kernel
    def counted(a: annotation, b: annotation):
        for i, j in a:
            b[i, j] = a[i, j - ti.cast(j > 0, ti.i32)] * 3 + a[i, j + ti.cast(j < n - 1, ti.i32)]

    @ti.kernel
    def periodic(a: annotation, b: annotation):
        for i, j in ti.ndrange(3, n):
            b[i, j] = a[i, (j - 1) % n] * 3 + a[i, (j + 1) % n]

    @ti.kernel
    def moved_around(a: annotation, b: annotation, m: ti.i32):
        for i, j in a:
            b[i, j] = a[i, (j + m - 1) % m] * 3 + a[i, (j + n + 1) % n]

    values = np.random.default_rng(4).integers(0, 1000, (3, n)).astype(np.int32)
    kernels = {
        clamped: "clamped",
        selected: "clamped",
        counted: "clamped",
        periodic: "periodic",
        moved_around: "periodic",
    }
    for kernel, edge in kernels.items():
        a, b = values.copy(), np.zeros_like(values)
        if storage == "field":
            a, b = ti.field(ti.i32, (3, n)), ti.field(ti.i32, (3, n))
            a.from_numpy(values)
        kernel(a, b, *([n] if kernel is moved_around else []))
        left, right = around(np.arange(n), edge)
        result = b.to_numpy() if storage == "field" else b
        np.testing.assert_array_equal(result, values[:, left] * 3 + values[:, right], err_msg=str(kernel))


def test_remainders_far_outside(arch):
    ti.init(arch=arch)
    a, b = ti.field(ti.i32, 64), ti.field(ti.i32, 500)
    a.from_numpy(np.arange(64, dtype=np.int32))

    @ti.kernel
    def wrap(n: ti.i32, by: ti.i32):
        for i in range(500):
            b[i] = a[(i + by) % n] + 100 * a[(i + by) & 31] + 10000 * a[(i - 200) % 64]

    for n, by in ((64, 0), (64, 63), (50, -50), (50, 1000), (7, 3), (1, 5)):
        wrap(n, by)
        i = np.arange(500)
        np.testing.assert_array_equal(b.to_numpy(), (i + by) % n + 100 * ((i + by) & 31) + 10000 * ((i - 200) % 64))


def test_a_serial_loop_over_a_flat_axis_keeps_its_order():
    ti.init()
    seen, c = ti.field(ti.i32, 64), ti.field(ti.i32, ())

    @ti.kernel
    def run(n_rows: ti.i32, end: ti.i32, n: ti.i32):
        ti.loop_config(serialize=True)
        for a, t in ti.ndrange(n_rows, end):
            seen[c[None]] = a * 1000 + (t // n) * 100 + t % n
            c[None] += 1

    run(2, 20, 16)
    want = [a * 1000 + t // 16 * 100 + t % 16 for a in range(2) for t in range(20)]
    assert seen.to_numpy()[:40].tolist() == want


@pytest.mark.parametrize("m", [-1, -3, 0, 2])
def test_flat_axes_of_sizes_of_any_sign(m):
    ti.init()
    y = ti.field(ti.i32, 40)

    @ti.kernel
    def run(end: ti.i32, m: ti.i32, n: ti.i32):
        for t in range(end):
            y[t] = t // (m * n) * 1000 + t // n * 10 + t % n

    run(40, m, 16)
    quotient = [t // (m * 16) if m else 0 for t in range(40)]
    assert y.to_numpy().tolist() == [q * 1000 + t // 16 * 10 + t % 16 for t, q in enumerate(quotient)]
