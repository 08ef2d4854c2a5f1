"""Loops of Python's that store to tensors: what they cost, and who sees what."""

import itertools
import operator
import subprocess
import sys

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

T = None


@pytest.fixture(autouse=True)
def started():
    global T
    ti.init(arch=ti.cpu)
    T = ti.tensor


def made():
    from aerogel import _native

    return _native.tensor_counts()[3]


@pytest.mark.parametrize("n", [300, 2000, 20000])
def test_a_loop_fills_a_tensor(n):
    x = T.zeros(n, dtype=ti.i32)
    before = made()
    for i in range(n):
        x[i] = i
    assert np.array_equal(x.numpy(), np.arange(n))
    # No program for each number.
    assert made() - before <= 2


def test_a_loop_reads_what_it_stores():
    n = 500
    x, expected = T.zeros(n), np.zeros(n, np.float32)
    before = made()
    for i in range(2, n):
        x[i] = x[i - 1] * 0.5 + x[i - 2] * 0.25 + 1
        expected[i] = expected[i - 1] * np.float32(0.5) + expected[i - 2] * np.float32(0.25) + 1
    assert np.allclose(x.numpy(), expected, rtol=1e-6)
    assert made() - before <= 16


def test_a_loop_scatters():
    n = 200
    x, at = T.zeros(n, dtype=ti.i32), T.arange(n)
    before = made()
    for i in range(n):
        x[at[i : i + 1]] = at[i : i + 1] * 2
    assert np.array_equal(x.numpy(), np.arange(n) * 2)
    assert made() - before <= 40


def test_stores_between_other_operations():
    x, expected = T.zeros(8), np.zeros(8, np.float32)
    before = made()
    for i in range(200):
        x = x * 0.5
        x[i % 8] = i
        expected = expected * np.float32(0.5)
        expected[i % 8] = i
    assert np.array_equal(x.numpy(), expected)
    assert made() - before <= 40


def test_who_holds_the_old_numbers_keeps_them():
    x = T.asarray([1, 2, 3])
    later, other, turned = x + 1, x.outside("clamp"), x[::-1]
    seen = np.asarray(x)
    shared = x.to_ndarray()
    x[0] = 5
    assert x.tolist() == [5, 2, 3]
    assert later.tolist() == [2, 3, 4]
    assert other.tolist() == [1, 2, 3]
    assert turned.tolist() == [3, 2, 1]
    assert seen.tolist() == [1, 2, 3]
    assert shared.to_numpy().tolist() == [1, 2, 3]
    other[1] = 7
    assert (x.tolist(), other.tolist()) == ([5, 2, 3], [1, 7, 3])


def test_what_reads_later_sees_the_store():
    x = T.asarray([1.0, 2.0, 3.0])
    for k in range(20):
        before = x * 2
        x[1] = float(k)
        after = x * 2
        assert after.tolist() == [2.0, 2.0 * k, 6.0]
        assert before.tolist()[1] == (4.0 if k == 0 else 2.0 * (k - 1))


@pytest.mark.parametrize("dtype", ["u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"])
def test_parts_of_every_shape(dtype):
    kind = getattr(ti, dtype)
    for shape in [(1,), (5,), (2, 3), (1, 1), (3, 1, 2), (2, 0)]:
        start = T.ones(shape, dtype=kind).numpy()
        for key in [..., 0, -1, slice(None, None, 2), slice(None, None, -1), slice(3, 1), (0, ...), (..., -1)]:
            if shape[-1] == 0 and key in ((..., -1),):
                continue
            x, expected = T.asarray(start), start.copy()
            for _ in range(2):
                x[key] = 0
                expected[key] = 0
                values = np.ones(expected[key].shape, start.dtype)
                x[key] = T.asarray(values)
                expected[key] = values
                x[key] = 0
                expected[key] = 0
            assert np.array_equal(x.numpy(), expected), (shape, key)


def test_values_that_overlap_what_they_replace():
    x = T.asarray([1, 2, 3, 4])
    x.numpy()
    x[1:] = x[:-1]
    assert x.tolist() == [1, 1, 2, 3]
    x[::-1] = x
    assert x.tolist() == [3, 2, 1, 1]


@pytest.mark.parametrize("n", [3, 1000])
def test_of_several_values_for_one_place_the_last_stays(n):
    x = T.zeros(4, dtype=ti.i32)
    x[[2] * n] = T.arange(n)
    assert x.tolist() == [0, 0, n - 1, 0]
    m = T.zeros((2, 3), dtype=ti.i32)
    m[[1, 1]] = T.asarray([[1, 2, 3], [4, 5, 6]])
    assert m.tolist() == [[0, 0, 0], [4, 5, 6]]


def test_rows_at_computed_indices():
    t, table = ti.tensor, np.arange(12, dtype=np.float32).reshape(4, 3)
    row = np.array([1, 2, 3], np.float32)

    def stored(body, x=table):
        @p.program
        def program():
            m = p.input([-1] * x.ndim, ti.f32) + 0
            body(m)
            return m

        return program(x).numpy()

    def changed(key, value, x=table):
        out = x.copy()
        out[key] = value
        return out

    def some(m):
        (i,) = p.indices([4])
        with p.if_cond(i > 1):
            m[i] = row

    def columns(m):
        (i,) = p.indices([4])
        with p.if_cond(i > 1):
            m[:, i % 3] = 5

    def turns(m):
        with p.loop(3) as k:
            m[k] = row * (k + 1)

    def one(m):
        m[p.const(1)] = row

    def listed(m):
        m[t.asarray(np.array([2, 0], np.int32))] = np.stack([row, 2 * row])

    def added(m):
        m[p.const(3)] += row

    cubes = np.zeros((3, 4, 2), np.float32)

    def planes(m):
        i, j = p.indices([3, 2])
        with p.if_cond(i + j > 1):
            m[i, j] = np.array([7, 8], np.float32)

    assert (stored(some) == changed(slice(2, 4), row)).all()
    assert (stored(columns) == changed((slice(None), [2, 0]), 5)).all()
    assert (stored(turns) == changed(slice(0, 3), row * np.array([[1], [2], [3]]))).all()
    assert (stored(one) == changed(1, row)).all()
    assert (stored(listed) == changed([2, 0], [row, 2 * row])).all()
    assert (stored(added) == changed(3, table[3] + row)).all()
    assert (stored(planes, cubes) == changed(([1, 2, 2], [1, 0, 1]), [7, 8], cubes)).all()
    with pytest.raises(IndexError, match="index 7 is outside axis 0 with 4"):
        stored(lambda m: m.__setitem__(p.const(7), row))


def test_only_points_at_hand_ask_for_elements():
    """An index that a condition rules out is no error, behind other stores too."""

    @p.program
    def bumped():
        x, i = p.input([-1], ti.f32), p.input([-1], ti.i32)
        y = T.zeros((10,))
        with p.if_cond(i < x.shape[0]):
            y[i] = 1.0
            x[i] = x[i] + 1
        return x, y

    x = np.zeros(5, np.float32)
    out, y = bumped(x, np.array([0, 2, 7, 4], np.int32))
    assert out.tolist() == [1, 0, 1, 0, 1] and y.tolist() == [1, 0, 1, 0, 1] + [0] * 5
    with pytest.raises(IndexError, match="index -1 is outside axis 0 with 10"):
        bumped(x, np.array([0, -1], np.int32))[0].tolist()


def test_rows_and_functions_ask_at_points_at_hand():
    @p.program
    def rows():
        m, i = p.input([-1, 3], ti.f32), p.input([-1], ti.i32)
        out = T.zeros((10, 3))
        with p.if_cond(i < m.shape[0]):
            there, taken, gathered = m[i], T.take(m, i, axis=0), T.gather(m, i)
            out[i] = there + 10 * taken + 100 * gathered
        at = T.stack([i, i, i], axis=1)
        row, along = T.zeros_like(at) * 1.0, T.zeros_like(at) * 1.0
        with p.if_cond(at < m.shape[0]):
            along.val = T.take_along_axis(m, at, axis=0)
        with p.if_cond(i < m.shape[0]):
            row[T.arange(i.shape[0])] = m[i]
        return out, row, along

    m = np.arange(6, dtype=np.float32).reshape(2, 3)
    out, row, along = rows(m, np.array([0, 5, 1], np.int32))
    assert (out.numpy()[:2] == 111 * m).all() and not out.numpy()[2:].any()
    assert row.tolist() == along.tolist() == [[0, 1, 2], [0, 0, 0], [3, 4, 5]]


def test_points_that_have_left_a_loop_ask_for_nothing():
    @p.program
    def summed():
        x = p.input([-1], ti.f32)
        (i,) = p.indices([6])
        s = p.const(0.0)
        with p.loop(0, 9) as k:
            with p.if_cond(i + k >= x.shape[0]):
                p.break_loop()
            s.val += x[i + k]
        return s

    assert summed(np.arange(5, dtype=np.float32)).tolist() == [10, 10, 9, 7, 4, 0]


def test_indices_of_other_axes_are_asked_where_any_point_is():
    @p.program
    def other():
        x, a, i = p.input([-1], ti.f32), p.input([-1, -1], ti.f32), p.input([-1], ti.i32)
        s = a * 0.0
        with p.if_cond(a > 0):
            s.val = x[i].sum() + a
        return s

    x, ones = np.arange(5, dtype=np.float32), np.ones((2, 3), np.float32)
    assert other(x, ones, np.array([1, 3], np.int32)).tolist() == [[5] * 3] * 2
    with pytest.raises(IndexError, match="index 9"):
        other(x, ones, np.array([0, 9], np.int32)).tolist()
    assert other(x, -ones, np.array([0, 9], np.int32)).tolist() == [[0] * 3] * 2


def test_what_is_read_where_nothing_is_done_is_zero_at_cells():
    field = ti.field(ti.i32)
    ti.root.pointer(ti.i, 8).dense(ti.i, 4).place(field)
    field[9], field[10] = 3, 30

    @p.program
    def looked_up():
        table = p.input([-1], ti.i32)
        (i,) = p.indices(field)
        with p.if_cond(field[i] < table.shape[0]):
            field[i] = table[field[i]]
        return p.const(0) + 0

    looked_up(np.array([5, 6, 7, 8], np.int32))
    # The block's other cells are active too, and zero.
    assert [field[k] for k in (8, 9, 10, 11)] == [5, 8, 30, 5]


# NumPy's arrays as places of results.

IN_PLACE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
    "<<=": operator.ilshift, ">>=": operator.irshift, "@=": operator.imatmul,
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("kinds", list(itertools.product(["?", "i2", "i4", "f4", "f8", "c8"], repeat=2)), ids=" ".join)
def test_arrays_are_changed_in_place_as_by_arrays(name, kinds):
    change = IN_PLACE[name]
    given, value = (np.arange(1, 10).reshape(3, 3).astype(kind) for kind in kinds)
    want, array = given.copy(), given.copy()
    other = array
    try:
        want = change(want, value)
    except TypeError as error:
        # What NumPy refuses of its own arrays, it refuses of tensors in the same words.
        with pytest.raises(type(error)) as caught:
            change(array, T.asarray(value))
        assert str(caught.value) == str(error)
    else:
        array = change(array, T.asarray(value))
    assert array is other and array.dtype == given.dtype and np.array_equal(other, want)


def test_results_of_numpys_functions():
    t = T.asarray([1.0, 2.0, 3.0])
    a, held = np.ones((2, 3)), np.zeros(3)
    b = a
    a += t
    assert b is a and a.tolist() == [[2, 3, 4]] * 2
    assert np.exp(t, out=held) is held and np.allclose(held, np.exp([1, 2, 3]))
    np.add.at(held, [0, 0], t[:2])
    assert held[0] == pytest.approx(np.e + 3)
    for kind, text, function in (
        (ValueError, "could not be broadcast", lambda: operator.iadd(np.ones(2), t)),
        (TypeError, "`add`: NumPy cannot write results to a tensor", lambda: np.add(a, t, out=t)),
        (TypeError, "`add`: NumPy cannot write results to a tensor", lambda: np.add.at(t, [0], 1)),
    ):
        with pytest.raises(kind, match=text):
            function()
    # What is a number is no place: the name is given to the tensor.
    s = np.float64(1)
    s += t
    assert s.tolist() == [2, 3, 4]
    # Operators give tensors, other functions arrays.
    assert [type(x) for x in (a + t, np.float32(2) * t, a @ t, a < t)] == [ti.tensor.Tensor] * 4
    assert all(isinstance(x, T.ComplexTensor) for x in (a + t * 1j, np.complex64(1j) * (t * 1j)))
    assert (a < t).tolist() == (a < t.numpy()).tolist() and divmod(a, t)[1].tolist() == (a % t.numpy()).tolist()
    assert type(np.sin(t)) is np.ndarray and np.add.reduce(t) == 6 and np.multiply.outer(t, t).shape == (3, 3)


def test_arrays_are_not_changed_where_nothing_is_computed():
    a = np.ones(3)

    def change(x):
        operator.iadd(a, x)
        return x

    def add(x):
        return a + x

    def in_a_program(function):
        return p.program(lambda: function(p.input([-1], ti.f64)))(np.arange(3.0))

    with pytest.raises(RuntimeError, match="is modified by `add` while a program is traced.*`x = array"):
        in_a_program(change)
    with pytest.raises(RuntimeError, match="is modified by `add` while `vmap` calls a function"):
        ti.vmap(change)(np.ones((2, 3)))
    assert a.tolist() == [1, 1, 1]
    assert in_a_program(add).tolist() == [1, 2, 3]
    assert ti.vmap(add)(np.ones((2, 3))).tolist() == [[2, 2, 2]] * 2


def test_a_store_outside_changes_nothing():
    x = T.asarray([1.0, 2.0, 3.0])
    for at in (T.asarray([7]), T.asarray([0, -4]), np.array([3]), [3]):
        with pytest.raises(IndexError, match="is outside axis 0 with 3 elements"):
            x[at] = 9
        assert (x + 1).tolist() == [2.0, 3.0, 4.0]
    x[T.asarray([0, -1])] = 5
    assert x.tolist() == [5.0, 2.0, 5.0]
    z = T.asarray([1 + 2j, 3j])
    with pytest.raises(IndexError, match="index 2 is outside axis 0"):
        z[T.asarray([2])] = 0
    assert z.tolist() == [1 + 2j, 3j]


def test_integers_hold_no_complex_numbers():
    x = T.asarray([1, 2, 3])
    with pytest.raises(TypeError, match="cannot hold complex numbers"):
        x[0] = 1 + 2j
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "bool"])
def test_large_parts_of_numbers_that_are_there(dtype):
    rng = np.random.default_rng(3)
    ours = np.arange(6000).reshape(50, 40, 3).astype(dtype)
    x = T.asarray(ours).realize()
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
        x[key] = T.asarray(value).realize() if isinstance(value, np.ndarray) else value
        ours[key] = value
        assert np.array_equal(x.numpy(), ours)


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


def test_stores_between_sums_take_no_memory():
    code = """
import resource
import aerogel as ti
ti.init(arch=ti.cpu, log_level="error")
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
x = (ti.tensor.zeros((4096, 8192)) + 1.0).realize()
x.sum().item()
before = peak()
for k in range(4):
    x[0, k] = 2.0
    assert abs(x.sum().item() / (4096 * 8192) - 1) < 1e-3
assert peak() - before < 64 << 10, (before, peak())
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_stores_after_what_was_made_before():
    x = ti.tensor.asarray(np.ones((256, 256), np.float32))
    total = x.sum()
    total.item()
    more, part = x + 1, x[0]
    x[0, 0] = 5.0
    assert (x[0, 0].item(), more[0, 0].item(), part[0].item(), total.item()) == (5, 2, 1, 65536)
    assert x.sum().item() == 65540
    more.numpy()
    x[0, 1] = 7.0
    assert (x[0, 1].item(), more[0, 1].item(), x.sum().item()) == (7, 2, 65546)


def test_values_with_more_axes_than_a_part_in_a_program():
    @ti.program
    def stored(x):
        y = x + 0
        y[..., 1] = ti.tensor.asarray(np.ones((1, 1, 3), np.int32))
        return y

    with pytest.raises(ValueError, match="does not broadcast"):
        stored(ti.tensor.arange(3))


def test_the_number_of_indices_is_looked_at_before_their_sizes():
    x = ti.tensor.zeros((0, 3), ti.i32)
    with pytest.raises(IndexError, match="3 indices for a tensor with 2 axes"):
        x[[5], 0, 0]
    with pytest.raises(IndexError, match="index 5 is outside axis 1"):
        x[..., [5]]
