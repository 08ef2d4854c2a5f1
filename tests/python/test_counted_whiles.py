"""`while` loops that count, in all spellings: what they compute, and the counter after them."""

import itertools

import numpy as np
import pytest

import aerogel as ti

ROWS, N = 5, 77


@pytest.fixture(params=["f32", "f64", "i32"])
def dtype(request):
    return getattr(ti, request.param)


def test_spellings(arch, dtype, rng):
    a = rng.integers(-9, 10, (ROWS, N))
    x, out, ends = ti.field(dtype, (ROWS, N)), ti.field(dtype, (8, ROWS)), ti.field(ti.i32, (8, ROWS))
    x.from_numpy(a.astype(np.int32))
    lengths = ti.field(ti.i32, ROWS)
    lengths.from_numpy(np.array([N, 0, 3, N - 1, 8], np.int32))

    @ti.kernel
    def sums(n: ti.i32):
        for i in range(ROWS):
            s, j = ti.cast(0, dtype), 0
            while j < n:
                s += x[i, j]
                j += 1
            out[0, i], ends[0, i] = s, j
            s, j = ti.cast(0, dtype), n - 1
            while 0 <= j:
                s += x[i, j]
                j -= 1
            out[1, i], ends[1, i] = s, j
            s, j = ti.cast(0, dtype), 1
            while j <= 70:
                s += x[i, j]
                j += 3
            out[2, i], ends[2, i] = s, j
            s, j = ti.cast(0, dtype), 0
            while j < lengths[i]:
                j += 1
                if x[i, j - 1] < 0:
                    continue
                s += x[i, j - 1]
            out[3, i], ends[3, i] = s, j
            s, j = ti.cast(0, dtype), i
            while j < n:
                if x[i, j] > 8:
                    break
                s += x[i, j]
                j = j + 1
            out[4, i], ends[4, i] = s, j
            s, j, m = ti.cast(0, dtype), 0, n
            while j < m:
                s += x[i, j]
                j += 1
                m -= 1
            out[5, i], ends[5, i] = s, j
            s, j = ti.cast(0, dtype), 0
            while j < n:
                s += x[i, j]
                j += 2 if x[i, j] > 0 else 1
            out[6, i], ends[6, i] = s, j
            s, j = ti.cast(0, dtype), 10
            while j > 10:
                s += x[i, j]
                j -= 1
            out[7, i], ends[7, i] = s, j

    sums(N)
    expected = np.zeros((8, ROWS), np.int64)
    last = np.zeros((8, ROWS), np.int64)
    for i, row in enumerate(a):
        expected[0, i], last[0, i] = row.sum(), N
        expected[1, i], last[1, i] = row.sum(), -1
        expected[2, i], last[2, i] = row[1:71:3].sum(), 73
        length = lengths[i]
        expected[3, i], last[3, i] = row[:length][row[:length] >= 0].sum(), length
        end = next((j for j in range(i, N) if row[j] > 8), N)
        expected[4, i], last[4, i] = row[i:end].sum(), end
        expected[5, i], last[5, i] = row[: (N + 1) // 2].sum(), (N + 1) // 2
        j = 0
        while j < N:
            expected[6, i] += row[j]
            j += 2 if row[j] > 0 else 1
        last[6, i] = j
        last[7, i] = 10
    np.testing.assert_array_equal(out.to_numpy(), expected)
    np.testing.assert_array_equal(ends.to_numpy(), last)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "u32", "i64"])
def test_ends_of_the_range(arch, dtype):
    """Counters that reach the largest and the least number of their type."""
    ty = getattr(ti, dtype)
    info = np.iinfo({"i8": np.int8, "u8": np.uint8, "i32": np.int32, "u32": np.uint32, "i64": np.int64}[dtype])

    @ti.kernel
    def up(begin: ty, end: ty, most: ti.i32) -> ti.i32:
        n, j = 0, begin
        while j < end:
            j += ty(3)
            n += 1
            if n == most:
                break
        return n

    @ti.kernel
    def up_to(begin: ty, end: ty, most: ti.i32) -> ti.i32:
        n, j = 0, begin
        while j <= end:
            j += ty(1)
            n += 1
            if n == most:
                break
        return n

    @ti.kernel
    def down(begin: ty, end: ty, most: ti.i32) -> ti.i32:
        n, j = 0, begin
        while j > end:
            j -= ty(1)
            n += 1
            if n == most:
                break
        return n

    size, low, high = 1 << info.bits, int(info.min), int(info.max)

    def count(j, step, goes_on, most):
        n = 0
        while goes_on(j) and n != most:
            j = (j + step - low) % size + low
            n += 1
        return n

    for begin, end in itertools.product([high - 4, high - 1, high], repeat=2):
        assert up(begin, end, 9) == count(begin, 3, lambda j: j < end, 9)
        assert up_to(begin, end, 9) == count(begin, 1, lambda j: j <= end, 9)
    for begin, end in itertools.product([low, low + 1, low + 3], repeat=2):
        assert down(begin, end, 9) == count(begin, -1, lambda j: j > end, 9)


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize("n", [0, 1, 5, 64, 70000])
def test_loops_that_break_where_they_count(n, fast_math):
    ti.init(arch=ti.cpu, log_level="error", fast_math=fast_math)
    a = ti.field(ti.i32, max(n, 1))
    a.from_numpy(np.arange(max(n, 1), dtype=np.int32) % 7)
    stop = ti.field(ti.i32, ())

    @ti.kernel
    def first(n: ti.i32) -> ti.math.ivec2:
        s, j = 0, 0
        while True:
            if j >= n:
                break
            s += a[j]
            j += 1
        return ti.math.ivec2(s, j)

    @ti.kernel
    def first_or_else(n: ti.i32) -> ti.math.ivec2:
        s, j = 0, 0
        while True:
            if not j < n:
                break
            if j == stop[None]:
                s += 1000
                break
            s += a[j]
            j += 1
        return ti.math.ivec2(s, j)

    @ti.kernel
    def last(n: ti.i32) -> ti.math.ivec2:
        s, j = 0, 0
        while True:
            s += a[j]
            j += 1
            if j >= n:
                break
        return ti.math.ivec2(s, j)

    @ti.kernel
    def two_parts(n: ti.i32) -> ti.math.ivec2:
        s, j = 0, 0
        while j < n and j != stop[None]:
            s += a[j]
            j += 1
        return ti.math.ivec2(s, j)

    @ti.kernel
    def inside(n: ti.i32) -> ti.math.ivec2:
        s, j = 0, 0
        while j < n:
            if j == stop[None]:
                s += 1000
                break
            if a[j] == 3:
                j += 1
                continue
            s += a[j]
            j += 1
        return ti.math.ivec2(s, j)

    values = a.to_numpy()
    for at in (-1, 0, 3, 65536, 69999):
        stop[None] = at
        end = at if 0 <= at < n else n
        more = 1000 if 0 <= at < n else 0
        assert list(first(n)) == [values[:n].sum() if n else 0, n]
        assert list(first_or_else(n)) == [values[:end].sum() + more, end]
        assert list(last(n)) == [values[: max(n, 1)].sum(), max(n, 1)]
        assert list(two_parts(n)) == [values[:end].sum(), end]
        kept = values[:end]
        assert list(inside(n)) == [kept[kept != 3].sum() + more, end]
