"""Arrays of other lengths and constants of other values need no other plan, and change no number."""

import aerogel as ti
import numpy as np
import pytest
from aerogel import _native, xp


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu)


def n_plans():
    return _native.tensor_counts()[3]


def softmax(np, x, **kw):
    e = np.exp(x - np.max(x, **kw))
    return e / np.sum(e, **kw)


#: By name what is computed, of what shape, in NumPy's words.
PROGRAMS = {
    "normalised": (lambda np, x: (x - np.mean(x)) / np.std(x), lambda n: (n,)),
    "softmax": (softmax, lambda n: (n,)),
    "softmax of rows": (lambda np, x: softmax(np, x, axis=1, keepdims=True), lambda n: (30, n)),
    "differences": (lambda np, x: x[1:-1] * 2 - x[:-2] - x[2:], lambda n: (n,)),
    "pairs": (lambda np, x: np.sum(np.abs(x[:, None] - x[None, :]), axis=1), lambda n: (n,)),
    "sums of columns": (lambda np, x: np.sum(x, axis=0), lambda n: (n, 30)),
    "sums in the middle": (lambda np, x: np.sum(x, axis=1), lambda n: (6, n, 7)),
    "largest": (lambda np, x: np.max(x, axis=0), lambda n: (n, 7)),
    "products": (lambda np, x: np.prod(0.5 + x, axis=-1), lambda n: (3, n)),
    "running sums": (lambda np, x: np.cumsum(x) if np.__name__ == "numpy" else np.cumulative_sum(x), lambda n: (n,)),
    "matrices": (lambda np, x: x @ x.T, lambda n: (n // 7, 70)),
    "matrix and vector": (lambda np, x: x @ x[0], lambda n: (n // 7, 50)),
    "turned": (lambda np, x: np.roll(x, 1) - np.roll(x, -1) + np.flip(x), lambda n: (n,)),
    "joined": (lambda np, x: np.concat([x, x[:100]])[::3], lambda n: (n,)),
    "reshaped": (lambda np, x: np.reshape(x, (-1, 6)).T, lambda n: (n, 6)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lengths_share_a_plan(name, dtype):
    compute, shape = PROGRAMS[name]
    rng = np.random.default_rng(1)
    counts = []
    for n in [1000, 1001, *range(1002, 1050, 6)]:
        x = rng.random(shape(n)).astype(dtype)
        found = np.asarray(compute(xp, xp.asarray(x)))
        np.testing.assert_allclose(found, compute(np, x), rtol=2e-5 if dtype == "float32" else 1e-12, atol=1e-6)
        counts.append(n_plans())
    assert counts[1:] == counts[1:2] * (len(counts) - 1), counts


# How a launch over pairs is divided, and with it the last digits, depends on the time that the last ones took.
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "pairs"])
def test_numbers_do_not_depend_on_what_came_before(name):
    """The same bits, whether an array is the first of its length or many others have been."""
    compute, shape = PROGRAMS[name]
    lengths = [9, 100, 513, 2048, 5000, 40000]
    if name == "matrices":
        lengths = lengths[:4]
    arrays = [np.random.default_rng(n).random(shape(n), dtype="float32") for n in lengths]

    def bits(x):
        return np.asarray(compute(xp, xp.asarray(x))).tobytes()

    first = []
    for x in arrays:
        ti.init(arch=ti.cpu)
        first.append(bits(x))
    ti.init(arch=ti.cpu)
    for n in lengths:
        bits(np.ones(shape(n - 1 if n > 9 else 10), "float32"))
    assert [bits(x) for x in arrays] == first


def test_constants_share_a_plan():
    x = np.random.default_rng(2).random(50)
    counts = []
    for k in range(20):
        a, b, c = 0.31 + k * 0.37, 17 + k, -3.25 - k
        found = xp.where(xp.asarray(x) > 0.11 + 0.04 * k, xp.asarray(x) * a + b, c) / a
        np.testing.assert_array_equal(np.asarray(found), np.where(x > 0.11 + 0.04 * k, x * a + b, c) / a)
        counts.append(n_plans())
    assert counts[1:] == counts[1:2] * 19, counts


def test_constants_of_whole_numbers_share_a_plan():
    x = np.arange(-40, 40)
    counts = []
    for k in range(4, 10):
        found = xp.maximum(xp.asarray(x) * k + 7 * k, -5 * k) // 3
        np.testing.assert_array_equal(np.asarray(found), np.maximum(x * k + 7 * k, -5 * k) // 3)
        counts.append(n_plans())
    assert counts[1:] == counts[1:2] * 5, counts


def test_exponents_are_known():
    """A power by a known exponent is a product: one whose exponent is a variable would have other bits."""
    x = np.random.default_rng(3).random(300)
    for n in (2, 3, 5, 7):
        expected = x.copy()
        for _ in range(n - 1):
            expected *= x
        np.testing.assert_allclose(np.asarray(xp.asarray(x) ** n), expected, rtol=1e-15)


def test_equal_extents_and_constants_are_told_apart():
    """A program in which a constant happens to be an extent does not run for one in which it is not."""
    for n in (20, 21, 22):
        for by in (20.0, 21.0, 25.0):
            x = np.random.default_rng(n).random((n, 22))
            found = xp.mean(xp.asarray(x) * by, axis=0) - by
            np.testing.assert_allclose(np.asarray(found), np.mean(x * by, axis=0) - by, rtol=1e-12)


def test_places_near_an_end_are_right():
    for n in (30, 31, 64):
        x = np.random.default_rng(n).random(n)
        for k in (1, 2, 5, n - 1, n - 2, n - 6):
            t = xp.asarray(x)
            np.testing.assert_array_equal(np.asarray(t[k:] * 2), x[k:] * 2)
            np.testing.assert_array_equal(np.asarray(xp.roll(t, k) + t[n - 1 - k]), np.roll(x, k) + x[n - 1 - k])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_stay_when_code_is_made_anew(dtype):
    """What runs for long is compiled again, with more effort: the same bits."""
    x = np.random.default_rng(4).random(60_000).astype(dtype) * 9

    def bits():
        t = xp.asarray(x)
        y = xp.exp(-xp.sqrt(t * t + t)) * xp.sin(t) / (1.7 + t) + xp.where(t > 4, t**3, xp.log(t + 0.3)) - t**-1.5
        return np.asarray(y).tobytes()

    assert len({bits() for _ in range(60)}) == 1
