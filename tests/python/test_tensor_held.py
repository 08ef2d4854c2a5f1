"""Stores that nobody would see, what one statement sets, and what chains of steps leave behind."""

import gc
import operator

import aerogel as ti
import numpy as np
import pytest
from aerogel import _native
from aerogel.tensor import programs as p

t = ti.tensor


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu, log_level="error")


def of_a_part(x):
    x[0][1] = 7


def of_a_turned_one(x):
    x.T[0] = 7


def in_another_shape(x):
    x.reshape(-1)[0] = 7


def by_outside(x):
    x.outside("clamp")[t.asarray([5]), 0] = 7


STORES = [of_a_part, of_a_turned_one, in_another_shape, by_outside]


@pytest.mark.parametrize("store", STORES, ids=lambda f: f.__name__)
def test_a_store_that_nobody_would_see_is_an_error(store):
    x = t.zeros((3, 4))
    with pytest.raises(ValueError, match="nobody holds"):
        store(x)
    assert not x.numpy().any()

    @p.program
    def one():
        x = p.buffer([3, 4], ti.f32)
        store(x)
        return x

    with pytest.raises(ValueError, match="nobody holds"):
        one()


def test_what_has_a_name_or_a_place_is_stored_to():
    x = t.zeros((3, 4))
    row = x[0]
    row[1] = 7
    rows = [x[1], {"a": x[2]}]
    rows[0][0] = 8
    rows[1]["a"][0] += 9
    (lambda: rows[0].__setitem__(3, 1))()
    operator.setitem(x[1], 0, 2)

    class Water:
        u = x[0]

        @property
        def height(self):
            return self.u

    Water().height[0] = 3

    def made():
        return row

    made()[2] = 5
    assert row.tolist() == [0, 7, 5, 0] and rows[0].tolist() == [8, 0, 0, 1] and rows[1]["a"].tolist() == [9, 0, 0, 0]
    assert Water.u.tolist() == [3, 0, 0, 0] and not x.numpy().any()

    @p.program
    def one():
        x = p.buffer([3], ti.f32)
        x.val[1] = 4
        clamped = x.outside("clamp")
        clamped[7] = 2
        return x, clamped

    assert [r.tolist() for r in one()] == [[0, 4, 0], [0, 4, 2]]


def test_one_statement_takes_no_value_that_it_has_set():
    def swapped(copy):
        u, v = p.const(1) + 0, p.const(2) + 0
        with p.loop(3):
            old = u.copy() if copy else u
            u.val, v.val = v, old
        return u, v

    with pytest.raises(ValueError, match=r"old = u.copy\(\)"):
        p.program(lambda: swapped(False))()
    assert [r.item() for r in p.program(lambda: swapped(True))()] == [2, 1]

    def exchange(u, v):
        u.val, v.val = v, u.copy()

    @p.program
    def twice():
        a, b, c = p.const(1) + 0, p.const(2) + 0, p.const(3) + 0
        exchange(a, b)
        exchange(b, c)
        return a, b, c

    assert [r.item() for r in twice()] == [2, 3, 1]

    @p.program
    def shifted():
        values = [p.const(k) + 0 for k in range(4)]
        with p.loop(2):
            for k in range(3):
                values[k].val = values[k + 1]
        return tuple(values)

    assert [r.item() for r in shifted()] == [2, 3, 3, 3]


def test_long_chains_of_steps_are_one_program_each_time():
    def steps(n):
        x = t.asarray(np.arange(8, dtype="float32"))
        for _ in range(n):
            x = x + 0.01 * (t.roll(x, 1) + t.roll(x, -1) - 2 * x)
        return x.sum().item()

    first = steps(700)
    gc.collect()
    made = _native.tensor_counts()[3]
    assert all(steps(700) == first for _ in range(8))
    # What the session drops on the way stands at another step each time.
    assert _native.tensor_counts()[3] <= made + 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "bool"])
def test_large_parts_of_numbers_that_are_there(dtype):
    rng = np.random.default_rng(3)
    ours = np.arange(6000).reshape(50, 40, 3).astype(dtype)
    x = t.asarray(ours).realize()
    values = rng.integers(0, 2, (48, 40, 3)).astype(dtype)
    for key, value in [
        ((slice(1, -1), slice(1, -1)), 1),
        (slice(1, -1), values),
        ((slice(None), slice(None, None, 2), 1), values[:1, ::2, 0]),
        ((slice(None, None, -3), Ellipsis), values[0]),
        ((7, slice(3, 30), slice(0, 2)), values[0, :27, :1]),
        ((3, 4, 2), 0),
        ((slice(0, 0),), 1),
    ]:
        x[key] = t.asarray(value).realize() if isinstance(value, np.ndarray) else value
        ours[key] = value
        assert np.array_equal(x.numpy(), ours)


def test_inputs_take_numbers_of_python_and_say_how_others_are_converted():
    @p.program
    def scaled():
        x, by = p.input([-1], ti.f64), p.input([], ti.i32)
        return x * by

    assert scaled([0.1, 2], 3).tolist() == [0.1 * 3, 6]
    with pytest.raises(TypeError, match="input 1 of `scaled`: elements of `i32` take no `f32`"):
        scaled([1], 1.5)
    with pytest.raises(TypeError, match=r"elements of `f64`, not of `f32`: .*asarray\(x, ti.f64\)"):
        scaled(np.ones(3, "float32"), 1)
    with pytest.raises(ValueError, match="takes 1 axes, not 2"):
        scaled([[1]], 1)


def test_inputs_have_no_names():
    @p.program
    def same():
        return p.input([], ti.f32)

    with pytest.raises(TypeError, match=r"have no names, and `x` were given so: `same\(a, b\)`"):
        same(x=1)


def test_lists_of_tensors_of_a_program_are_tensors():
    @p.program
    def one():
        x = p.input([3], ti.f32)
        matrix = t.asarray([[x[0], 2], [3, x[2]]])
        return t.asarray([x[1], 7.5]), matrix, t.asarray([x, x], ti.i32), [[x[0], x[1]], [1, x[2]]]

    pair, matrix, whole, result = one(np.array([1.5, 2, 4], "float32"))
    assert pair.tolist() == [2, 7.5] and matrix.tolist() == [[1.5, 2], [3, 4]]
    assert whole.tolist() == [[1, 2, 4]] * 2 and whole.dtype is ti.i32 and result.tolist() == [[1.5, 2], [1, 4]]
    with pytest.raises(ValueError, match="shape"):
        p.program(lambda: t.asarray([t.zeros(3), [p.const(1), 2]]))()


@pytest.mark.parametrize("shape", [[4, 3], [-1, 3], [-1, -1]])
def test_stores_at_known_indices_below_zero_beside_parts(shape):
    @p.program
    def stored():
        x = p.input(shape, ti.f32)
        y = p.buffer([x.shape[0], x.shape[1]], ti.f32)
        y.val = x
        y[[3, 0, -2], :] = 7
        y[:, np.array([-1, 0])] = y[:, [0, 1]] * 2
        y[1:, [[-1], [0]]] = np.ones((2, 1), "float32") * 5
        y[..., -1] = 9
        return y

    ours = np.arange(12, dtype="float32").reshape(4, 3)
    result = stored(ours)
    ours[[3, 0, -2], :] = 7
    ours[:, [-1, 0]] = ours[:, [0, 1]] * 2
    ours[1:, [[-1], [0]]] = 5
    ours[..., -1] = 9
    assert np.array_equal(result.numpy(), ours)


def test_lists_of_tensors_of_a_program_lose_no_digits():
    @p.program
    def one():
        x = p.input([2], ti.f32)
        return t.asarray([x[0], 0.1], ti.f64), t.asarray([[p.const(1)], [2**40]], ti.i64)

    floats, whole = one(np.ones(2, "float32"))
    assert floats.tolist() == [1, 0.1] and whole.tolist() == [[1], [2**40]]


FUNCTIONS = "sin cos tan asin acos tanh exp log sqrt floor ceil abs".split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_kernels_take_tensors(name):
    ours = np.array([0.25, 0.5, 1], "float32")
    other = {"asin": "arcsin", "acos": "arccos"}.get(name, name)
    result = getattr(ti, name)(t.asarray(ours))
    assert isinstance(result, t.Tensor)
    assert np.allclose(result.numpy(), getattr(np, other)(ours), rtol=1e-5)
    one = getattr(ti, name)(t.asarray(ours[:1]))
    assert isinstance(one, t.Tensor) and one.shape == (1,)


def test_functions_of_kernels_of_several_take_tensors():
    x, y = np.array([1.0, -2, 3], "float32"), np.array([2.0, -3, 1], "float32")
    a, b = t.asarray(x), t.asarray(y)
    assert np.array_equal(ti.max(a, b, 0).numpy(), np.maximum(np.maximum(x, y), 0))
    assert np.array_equal(ti.min(2.5, a).numpy(), np.minimum(x, 2.5))
    assert np.allclose(ti.atan2(a, b).numpy(), np.arctan2(x, y))
    assert np.array_equal(ti.select(a > 0, a, b).numpy(), np.where(x > 0, x, y))
    assert np.array_equal(ti.pow(a, 2).numpy(), x**2) and ti.cast(a, ti.i32).tolist() == [1, -2, 3]
    assert np.allclose(ti.rsqrt(t.abs(a)).numpy(), 1 / np.sqrt(abs(x)))
    assert np.allclose(t.vmap(lambda v: ti.sin(v))(a).numpy(), np.sin(x))
    with pytest.raises(TypeError, match="halves to even"):
        ti.round(a)
    assert ti.max(1, 2) == 2 and ti.sqrt(4.0) == 2
