"""Scattered sums, which threads gather in memory of their own where that pays (docs/decisions/0024-private-copies.md)."""

import threading

import numpy as np
import pytest

import aerogel as ti

N, BINS = 300_000, 20_000


@pytest.fixture(params=[1, 2, 4])
def threads(request):
    ti.init(arch=ti.cpu, cpu_max_num_threads=request.param, log_level="error")
    yield request.param
    ti.reset()


@pytest.fixture
def keys(rng):
    return rng.integers(0, BINS, N, dtype=np.int32)


def field_of(keys):
    field = ti.field(ti.i32, N)
    field.from_numpy(keys)
    return field


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_integers_are_equal_bit_by_bit(threads, keys, dtype):
    k = field_of(keys)
    h = ti.field(getattr(ti, dtype), BINS)

    @ti.kernel
    def histogram(n: ti.i32):
        for i in range(n):
            h[k[i]] += i + 1

    @ti.kernel
    def less(n: ti.i32):
        for i in range(n):
            h[k[i]] -= 3 * i

    expected = np.zeros(BINS, np.int64)
    for n in [N, 50, N, 10_000, N]:
        histogram(n)
        less(n)
        i = np.arange(n)
        np.add.at(expected, keys[:n], i + 1 - 3 * i)
    got = h.to_numpy()
    np.testing.assert_array_equal(got, expected.astype(got.dtype))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_floats_differ_in_their_last_digits(threads, keys, dtype):
    k = field_of(keys)
    h = ti.field(getattr(ti, dtype), BINS)
    untouched = BINS - 1
    keys[keys == untouched] = 0
    k.from_numpy(keys)
    h[untouched] = -0.0

    @ti.kernel
    def add():
        for i in k:
            h[k[i]] += 0.1 * (i % 7)

    for _ in range(3):
        add()
    expected = np.zeros(BINS)
    np.add.at(expected, keys, 3 * (np.float32(0.1) * (np.arange(N) % 7).astype(np.float32)).astype(np.float64))
    got = h.to_numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5 if dtype == "f32" else 1e-13)
    assert np.signbit(got[untouched])


def test_the_least_the_greatest_and_bits(threads, keys):
    k = field_of(keys)
    least, greatest = ti.field(ti.f32, BINS), ti.field(ti.i16, BINS)
    union, common, parity = (ti.field(ti.u32, BINS) for _ in range(3))
    least.fill(5.0)
    greatest.fill(-7)
    common.fill(0xFFFFFFF0)

    @ti.kernel
    def scatter():
        for i in k:
            x = i % 1000 * 919 % 1000
            ti.atomic_min(least[k[i]], x - 500.0)
            ti.atomic_max(greatest[k[i]], ti.cast(x - 800, ti.i16))
            ti.atomic_or(union[k[i]], ti.cast(x, ti.u32))
            ti.atomic_and(common[k[i]], ti.cast(x | 0xF0F0, ti.u32))
            ti.atomic_xor(parity[k[i]], ti.cast(x, ti.u32))

    scatter()
    scatter()
    scatter()
    x = np.arange(N) % 1000 * 919 % 1000
    for field, op, first, values in [
        (least, np.minimum, 5.0, x - 500),
        (greatest, np.maximum, -7, x - 800),
        (union, np.bitwise_or, 0, x),
        (common, np.bitwise_and, 0xFFFFFFF0, x | 0xF0F0),
        (parity, np.bitwise_xor, 0, x),
    ]:
        expected = np.full(BINS, first, np.int64)
        op.at(expected, keys, values)
        np.testing.assert_array_equal(field.to_numpy().astype(np.int64), expected)


def test_layouts(threads, keys):
    """Vectors, members of structs beside others, blocks of blocks, two axes with an offset."""
    k = field_of(keys)
    v = ti.Vector.field(3, ti.f32, BINS)
    cell = ti.types.struct(mass=ti.f32, tag=ti.i32, momentum=ti.types.vector(2, ti.f32))
    s = cell.field(BINS)
    blocks = ti.field(ti.i64)
    ti.root.dense(ti.ij, (25, 50)).dense(ti.ij, (4, 4)).place(blocks)
    shifted = ti.field(ti.i32, (100, 200), offset=(-50, 7))
    s.tag.fill(3)

    @ti.kernel
    def scatter():
        for i in k:
            at = k[i]
            v[at] += ti.Vector([1.0, 2.0, 4.0])
            s[at].mass += 2.0
            s[at].momentum += ti.Vector([1.0, -1.0])
            blocks[at // 200, at % 200] += at
            shifted[at // 200 - 50, at % 200 + 7] -= 1

    for _ in range(2):
        scatter()
    times = 2 * np.bincount(keys, minlength=BINS)
    np.testing.assert_array_equal(v.to_numpy(), times[:, None] * np.float32([1, 2, 4]))
    np.testing.assert_array_equal(s.mass.to_numpy(), 2 * times)
    np.testing.assert_array_equal(s.momentum.to_numpy(), times[:, None] * np.float32([1, -1]))
    np.testing.assert_array_equal(s.tag.to_numpy(), 3)
    np.testing.assert_array_equal(blocks.to_numpy().ravel(), times * np.arange(BINS))
    np.testing.assert_array_equal(shifted.to_numpy().ravel(), -times)


def test_arrays(threads, keys):
    """NumPy's, which lie where they like, those of the package, vectors, and one array under two names."""

    @ti.kernel
    def scatter(h: ti.types.ndarray(ti.i32, 1), v: ti.types.ndarray(ti.math.vec3, 2), k: ti.types.ndarray(ti.i32, 1)):
        for i in k:
            h[k[i]] += 1
            v[k[i] // 200, k[i] % 200] += ti.Vector([1.0, 2.0, 4.0])

    @ti.kernel
    def both(a: ti.types.ndarray(ti.i32, 1), b: ti.types.ndarray(ti.i32, 1), k: ti.types.ndarray(ti.i32, 1)):
        for i in k:
            a[k[i]] += 1
            b[k[i]] += 2

    times = np.bincount(keys, minlength=BINS)
    h, v = np.zeros(BINS, np.int32), ti.ndarray(ti.math.vec3, (100, 200))
    for n in (N, 100, N, 20_000):
        h[:] = 7
        v.fill(0)
        scatter(h, v, keys[:n])
        some = np.bincount(keys[:n], minlength=BINS)
        np.testing.assert_array_equal(h, 7 + some)
        np.testing.assert_array_equal(v.to_numpy().reshape(-1, 3), some[:, None] * np.float32([1, 2, 4]))
    apart, h[:] = np.zeros(BINS, np.int32), 0
    both(h, apart, keys)
    np.testing.assert_array_equal([h, apart], [times, 2 * times])
    both(h, h, keys)
    np.testing.assert_array_equal(h, 4 * times)


def test_a_field_that_is_read_is_shared(threads, keys):
    k = field_of(keys)
    h, seen = ti.field(ti.i32, BINS), ti.field(ti.i32, N)

    @ti.kernel
    def numbered():
        for i in k:
            seen[i] = ti.atomic_add(h[k[i]], 1)

    numbered()
    np.testing.assert_array_equal(h.to_numpy(), np.bincount(keys, minlength=BINS))
    order = np.lexsort((seen.to_numpy(), keys))
    first = np.searchsorted(keys[order], keys[order])
    np.testing.assert_array_equal(seen.to_numpy()[order], np.arange(N) - first)


def test_matrix_products(threads, rng):
    n = 96
    a, b, c = (ti.field(ti.f64, (n, n)) for _ in range(3))
    a.from_numpy(rng.random((n, n)))
    b.from_numpy(rng.random((n, n)))

    @ti.kernel
    def over_rows():
        for i, k in ti.ndrange(n, n):
            for j in range(n):
                c[i, j] += a[i, k] * b[k, j]

    @ti.kernel
    def over_columns():
        for k, i in ti.ndrange(n, n):
            for j in range(n):
                c[i, j] += a[i, k] * b[k, j]

    @ti.kernel
    def over_all():
        for i, k, j in ti.ndrange(n, n, n):
            c[i, j] += a[i, k] * b[k, j]

    for product in (over_rows, over_columns, over_all):
        c.fill(0)
        product()
        np.testing.assert_allclose(c.to_numpy(), a.to_numpy() @ b.to_numpy(), rtol=1e-12)


def test_an_assertion_that_fails_leaves_sums_that_were_made(keys):
    ti.init(arch=ti.cpu, debug=True, cpu_max_num_threads=2, log_level="error")
    k, h = field_of(keys), ti.field(ti.i32, BINS)

    @ti.kernel
    def histogram(last: ti.i32):
        for i in k:
            assert i < last
            h[k[i]] += 1

    with pytest.raises(AssertionError):
        histogram(N - 1)
    assert 0 < h.to_numpy().sum() < N
    h.fill(0)
    histogram(N)
    np.testing.assert_array_equal(h.to_numpy(), np.bincount(keys, minlength=BINS))


def test_launches_of_several_threads_add_up(cpu):
    h = ti.field(ti.i32, 1000)

    @ti.kernel
    def add(n: ti.i32):
        for i in range(n):
            h[i * 17 % 1000] += 1

    @ti.kernel
    def count(n: ti.i32) -> ti.i32:
        most = 0
        for i in range(n):
            ti.atomic_max(most, ti.atomic_add(h[i * 17 % 1000], 1))
        return most

    add(1)
    count(1)
    work = [
        threading.Thread(target=lambda k=k: [(add, count)[k % 2](n) for n in (2000, 200_000) * 20]) for k in range(4)
    ]
    [t.start() for t in work]
    [t.join() for t in work]
    assert h.to_numpy().sum() == 2 + 4 * 20 * 202_000
