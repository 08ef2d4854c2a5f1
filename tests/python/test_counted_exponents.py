"""Powers whose exponent is the counter of a loop: as exact as powers by themselves, for all bases."""

import numpy as np
import pytest

import aerogel as ti

BASES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.75, 1.0000001, 0.9999999, 1.5, -3.25, 1e-30, -1e30, np.inf, -np.inf, np.nan]


def powers(bases, n, dtype, factor=1, offset=0, known=False):
    """`base ** (factor * k + offset)` for each base and each k below n, from a loop over k."""
    x = ti.field(dtype, shape=len(bases))
    y = ti.field(dtype, shape=(len(bases), n))

    @ti.kernel
    def run(n: ti.i32):
        for i in x:
            for k in range(n):
                y[i, k] = x[i] ** (factor * k + offset)

    @ti.kernel
    def run_known():
        for i in x:
            for k in range(ti.static(n)):
                y[i, k] = x[i] ** (factor * k + offset)

    x.from_numpy(bases)
    run_known() if known else run(n)
    return y.to_numpy()


def check(got, bases, exponents, ulps):
    """Compares with powers in longer floats."""
    with np.errstate(over="ignore", under="ignore"):
        exact = np.float128(bases)[:, None] ** exponents[None, :]
        want = exact.astype(got.dtype)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    assert np.all(np.signbit(got) == np.signbit(want), where=~np.isnan(want))
    with np.errstate(invalid="ignore"):
        error = np.abs(np.float128(got) - exact) / np.spacing(np.abs(want))
    assert np.all(error <= ulps, where=~same)


@pytest.mark.parametrize(("factor", "offset"), [(1, 0), (2, 1), (3, 2)])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("n", [5, 300])
def test_f32(factor, offset, known, n):
    ti.init()
    bases = np.array(BASES + list(np.random.default_rng(1).uniform(-2, 2, 50)), np.float32)
    got = powers(bases, n, ti.f32, factor, offset, known)
    exponents = factor * np.arange(n) + offset
    check(got, bases, exponents, 0.51 if exponents[-1] > 16 or not known else 16)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("n", [5, 300])
def test_f64(known, n):
    ti.init()
    bases = np.array(BASES + list(np.random.default_rng(1).uniform(-2, 2, 50)))
    got = powers(bases, n, ti.f64, known=known)
    exponents = np.arange(n)
    check(got[:, :17], bases, exponents[:17], 8)
    check(got[:, 17:], bases, exponents[17:], 1.01)


def test_exponents_beyond_those_that_are_carried():
    ti.init()
    x, n = ti.field(ti.f32, shape=1), (1 << 20) + 8
    last = ti.field(ti.f32, shape=16)

    @ti.kernel
    def run(n: ti.i32):
        for i in range(1):
            for k in range(n):
                y = x[i] ** k
                if k >= n - 16:
                    last[k - n + 16] = y

    x[0] = 1 + 2.0**-20
    run(n)
    exact = np.float128(1 + 2.0**-20) ** np.arange(n - 16, n)
    assert np.array_equal(last.to_numpy(), exact.astype(np.float32))


def test_integers_wrap():
    ti.init()
    got = np.zeros((3, 40), np.int32)

    @ti.kernel
    def run(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(3):
            for k in range(1, 41):
                y[i, k - 1] = x[i] ** k

    bases = np.array([3, -7, 2], np.int32)
    run(bases, got)
    want = [[((int(b) ** k + 2**31) % 2**32) - 2**31 for k in range(1, 41)] for b in bases]
    assert np.array_equal(got, want)


def test_without_fast_maths_powers_are_taken_by_themselves():
    ti.init(fast_math=False)
    bases = np.random.default_rng(2).uniform(0.5, 2, 100)
    got = powers(bases, 40, ti.f64)
    y = np.zeros(100)

    @ti.kernel
    def single(k: ti.i32, x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(100):
            y[i] = x[i] ** k

    for k in range(40):
        single(k, bases, y)
        assert np.array_equal(got[:, k], y)


def test_loops_that_are_left_or_go_on():
    ti.init()
    x, y = ti.field(ti.f32, shape=4), ti.field(ti.f32, shape=4)

    @ti.kernel
    def run(n: ti.i32):
        for i in x:
            s = 0.0
            for k in range(n):
                if k % 3 == 1:
                    continue
                if s > 20.0:
                    break
                s += x[i] ** k
            y[i] = s

    x.from_numpy(np.array([0.5, 1.0, 2.0, -3.0], np.float32))
    run(30)
    want = []
    for base in [0.5, 1.0, 2.0, -3.0]:
        s = 0.0
        for k in range(30):
            if k % 3 == 1:
                continue
            if s > 20.0:
                break
            s += base**k
        want.append(s)
    np.testing.assert_allclose(y.to_numpy(), want, rtol=1e-6)
