"""Sorting, prefix sums, selection, reductions and histograms, against NumPy."""

import numpy as np
import pytest

import aerogel as ti

TYPES = {
    "bool": ti.u1,
    "int8": ti.i8,
    "int16": ti.i16,
    "int32": ti.i32,
    "int64": ti.i64,
    "uint8": ti.u8,
    "uint16": ti.u16,
    "uint32": ti.u32,
    "uint64": ti.u64,
    "float16": ti.f16,
    "float32": ti.f32,
    "float64": ti.f64,
}
NUMBERS = [name for name in TYPES if name != "bool"]


def some(rng, name, n):
    """Numbers of all sizes; among floats equal ones of both signs, infinities and NaNs."""
    if name == "bool":
        return rng.random(n) > 0.5
    if not name.startswith("float"):
        limits = np.iinfo(name)
        return rng.integers(limits.min, limits.max, n, dtype=name, endpoint=True)
    x = rng.standard_normal(n).astype(name)
    for special in (np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf):
        x[rng.integers(0, n, n // 10)] = special
    return x


def made(make, array):
    x = make(TYPES[array.dtype.name], array.shape)
    x.from_numpy(array)
    return x


def same_bits(a, b):
    return a.tobytes() == b.tobytes()


def test_what_rounding_loses_does_not_grow_with_the_length(cpu, rng):
    """Prefix sums of many floats are each as if most of the sum had been made exactly."""
    n = 5_000_000
    x = rng.random(n).astype(np.float32)
    field = made(ti.field, x)
    ti.algorithms.PrefixSumExecutor(n).run(field)
    exact = np.cumsum(x, dtype=np.float64)
    assert (np.abs(field.to_numpy() - exact) <= 2e-6 * exact).all()
    # One sum after the other loses more.
    assert (np.abs(np.cumsum(x, dtype=np.float32) - exact) > 1e-5 * exact).any()


@pytest.mark.parametrize("name", TYPES)
def test_sort(cpu, rng, name):
    # Fields and arrays by turns: each is a kernel of its own to load and store.
    make = ti.ndarray if list(TYPES).index(name) % 2 else ti.field
    for n in (1, 2, 7, 1000, 140001):
        keys = some(rng, name, n)
        order = np.argsort(keys, kind="stable")
        x, values = made(make, keys), made(make, np.arange(n, dtype=np.int32))
        assert (ti.algorithms.argsort(x).to_numpy() == order).all()
        assert same_bits(x.to_numpy(), keys)
        ti.algorithms.parallel_sort(x, values)
        assert (values.to_numpy() == order).all()
        assert same_bits(x.to_numpy(), keys[order])
        x = made(make, keys)
        ti.algorithms.parallel_sort(x)
        assert same_bits(x.to_numpy(), keys[order])


@pytest.mark.parametrize("name", ["uint32", "float32", "int64"])
def test_sort_of_so_many_that_they_go_into_buckets(cpu, rng, name):
    n = (1 << 20) + 12345
    for keys in (some(rng, name, n), np.sort(some(rng, name, n))[::-1].copy(), np.full(n, 3, name)):
        keys[: n // 100] = keys[-1]
        order = np.argsort(keys, kind="stable")
        x, values = made(ti.field, keys), made(ti.field, np.arange(n, dtype=np.int32))
        ti.algorithms.parallel_sort(x, values)
        assert (values.to_numpy() == order).all()
        assert same_bits(x.to_numpy(), keys[order])


@pytest.mark.parametrize("n", [3, 300])
def test_sort_in_the_interpreter(arch, rng, n):
    keys = some(rng, "float32", n)
    x, values = made(ti.field, keys), made(ti.ndarray, rng.random(n))
    want = values.to_numpy()[np.argsort(keys, kind="stable")]
    ti.algorithms.parallel_sort(x, values)
    assert (values.to_numpy() == want).all()


@pytest.mark.parametrize("options", [{"default_ip": ti.i64, "default_fp": ti.f64}, {"debug": True}])
def test_the_program_s_options_change_nothing(rng, options):
    ti.init(arch=ti.cpu, log_level="error", **options)
    keys = some(rng, "int32", 1000)
    x = made(ti.field, keys)
    ti.algorithms.parallel_sort(x)
    assert (x.to_numpy() == np.sort(keys)).all()
    x = made(ti.field, np.arange(1000, dtype=np.int32))
    ti.algorithms.PrefixSumExecutor(1000).run(x)
    assert (x.to_numpy() == np.cumsum(np.arange(1000))).all()
    assert ti.algorithms.histogram(x, 4).to_numpy().sum() == 1000
    ti.reset()


def test_fields_with_an_offset(cpu):
    x = ti.field(ti.i32, 5, offset=-2)
    x.from_numpy(np.array([3, 1, 2, 5, 4], np.int32))
    ti.algorithms.PrefixSumExecutor(5).run(x)
    assert x.to_numpy().tolist() == [3, 4, 6, 11, 15]
    x[-2] = 100
    ti.algorithms.parallel_sort(x)
    assert x[2] == 100 and x[-2] == 4


def test_nothing_to_sort(cpu):
    x = ti.from_dlpack(np.zeros(0, np.float32))
    ti.algorithms.parallel_sort(x)
    assert ti.algorithms.argsort(x).shape == (0,)
    ti.algorithms.PrefixSumExecutor(0).run(x)
    assert ti.algorithms.select(x, x).shape == (0,)
    assert ti.algorithms.reduce_add(x) == 0
    with pytest.raises(ValueError, match="no elements"):
        ti.algorithms.reduce_min(x)


@pytest.mark.parametrize("name", NUMBERS)
def test_prefix_sums(cpu, rng, name):
    make = ti.ndarray if NUMBERS.index(name) % 2 else ti.field
    for n in (1, 127, 128, 5000, 300001):
        keys = (rng.integers(0, 2, n) if name == "float16" else rng.integers(0, 9, n)).astype(name)
        if name == "float16":
            keys[1000:] = 0
        sums = np.cumsum(keys, dtype=name)
        executor = ti.algorithms.PrefixSumExecutor(n)
        x = made(make, keys)
        executor.run(x)
        assert (x.to_numpy() == sums).all()
        x = made(make, keys)
        executor.run(x, inclusive=False)
        assert (x.to_numpy() == sums - keys).all()


@pytest.mark.parametrize("make", [ti.field, ti.ndarray], ids=["field", "ndarray"])
def test_select(cpu, rng, make):
    for n in (1, 100, 70001):
        values, mask = rng.random(n), rng.integers(0, 3, n).astype(np.int32)
        other = ti.ndarray if make is ti.field else ti.field
        found = ti.algorithms.select(made(make, values), made(other, mask))
        assert (found.to_numpy() == values[mask != 0]).all()
    assert ti.algorithms.select(made(make, values), made(make, mask * 0)).shape == (0,)


@pytest.mark.parametrize("name", TYPES)
def test_reductions(arch, rng, name):
    keys = some(rng, name, 60).reshape(5, 12)
    keys[~np.isfinite(keys)] = 1
    x = made(ti.field, keys)
    if name.startswith("float"):
        assert ti.algorithms.reduce_add(x) == pytest.approx(keys.astype(np.float64).sum())
    else:
        assert ti.algorithms.reduce_add(x) == keys.sum()
    assert ti.algorithms.reduce_min(x) == keys.min()
    assert ti.algorithms.reduce_max(x) == keys.max()


def test_extremes_of_nan(cpu):
    x = made(ti.ndarray, np.array([[1.0, np.nan], [np.inf, 3.0]]))
    assert np.isnan(ti.algorithms.reduce_min(x)) and np.isnan(ti.algorithms.reduce_max(x))
    x[0, 1] = 2.0
    assert (ti.algorithms.reduce_min(x), ti.algorithms.reduce_max(x)) == (1.0, np.inf)


def test_reductions_of_sparse_fields_are_of_active_cells(arch):
    x = ti.field(ti.i32)
    ti.root.pointer(ti.i, 8).place(x)
    with pytest.raises(ValueError, match="no elements"):
        ti.algorithms.reduce_max(x)
    x[3] = -5
    assert ti.algorithms.reduce_max(x) == -5 and ti.algorithms.reduce_add(x) == -5


@pytest.mark.parametrize("name", ["int32", "float32", "float64", "uint8"])
def test_histogram(cpu, rng, name):
    keys = rng.integers(0, 100, 10000).astype(name)
    x = made(ti.field, keys)
    for bins, limits in ((10, None), (7, None), (100, (0, 100)), (13, (20.5, 60))):
        want, _ = np.histogram(keys, bins, limits)
        assert (ti.algorithms.histogram(x, bins, limits).to_numpy() == want).all()
    x.fill(3)
    assert ti.algorithms.histogram(x, 4).to_numpy().tolist() == [0, 0, 10000, 0]


def test_histogram_of_nan(cpu):
    x = made(ti.ndarray, np.array([0.5, np.nan, 2.0, -1.0]))
    assert ti.algorithms.histogram(x, 2, (0, 2)).to_numpy().tolist() == [1, 1]
    with pytest.raises(ValueError, match="finite range"):
        ti.algorithms.histogram(x, 2)


@pytest.mark.parametrize(
    "keys,limits",
    [
        (np.array([2**62, 2**62 + 3]), None),
        (np.array([1.7e308, -1.7e308]), None),
        (np.array([0.0, 1.0]), (0.0, 5e-324)),
        (np.array([1.0, 1.0]), (1.0, 1.0 + 1e-15)),
    ],
)
def test_histogram_of_intervals_that_are_none(cpu, keys, limits):
    with pytest.raises(ValueError, match="floats cannot represent 10 distinct intervals"):
        ti.algorithms.histogram(made(ti.field, keys), 10, limits)


@pytest.mark.parametrize(
    "call,error,text",
    [
        (lambda a: a.parallel_sort(np.zeros(3)), TypeError, "a field or a ti.ndarray of numbers, not ndarray"),
        (lambda a: a.parallel_sort(ti.field(ti.f32, (2, 2))), ValueError, r"one axis; its shape is \(2, 2\)"),
        (lambda a: a.parallel_sort(ti.field(ti.f32, 3), ti.field(ti.i32, 4)), ValueError, "not 3 and 4"),
        (lambda a: a.parallel_sort(ti.field(ti.f32, 3), [1, 2, 3]), TypeError, "`values` must be a field"),
        (lambda a: a.argsort(ti.Vector.field(2, ti.f32, 3)), TypeError, "`keys` must be a field"),
        (lambda a: a.PrefixSumExecutor(-1), ValueError, "an integer"),
        (lambda a: a.PrefixSumExecutor(3).run(ti.field(ti.i32, 4)), ValueError, "4 elements; .* made for 3"),
        (lambda a: a.PrefixSumExecutor(3).run(ti.field(ti.u1, 3)), TypeError, "not u1"),
        (lambda a: a.select(ti.field(ti.i32, 3), ti.field(ti.i32, 4)), ValueError, "not 3 and 4"),
        (lambda a: a.histogram(ti.field(ti.i32, 3), 0), ValueError, "`bins`"),
        (lambda a: a.histogram(ti.field(ti.i32, 3), 3, (1, 0)), ValueError, "finite range"),
        (lambda a: a.reduce_add(3), TypeError, "`x` must be a field"),
    ],
)
def test_bad_arguments(cpu, call, error, text):
    with pytest.raises(error, match=text):
        call(ti.algorithms)
