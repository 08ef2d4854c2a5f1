"""Where tensors could say another number than NumPy without a word."""

import operator
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


def same(found, expected):
    found = found.numpy()
    assert found.shape == np.shape(expected)
    assert np.array_equal(found, expected, equal_nan=np.asarray(expected).dtype.kind == "f")


@pytest.mark.parametrize("index", [2**32 + 1, 2**33 + 1, -(2**32)])
def test_indices_beyond_what_an_index_holds(index):
    x = T.arange(6)
    with pytest.raises(IndexError):
        x[T.asarray(np.array([index]))].numpy()
    same(T.gather(x.outside("clamp"), T.asarray(np.array([index]))), [5 if index > 0 else 0])


def test_unsigned_indices_do_not_count_from_the_end():
    with pytest.raises(IndexError):
        T.arange(6)[T.asarray(np.array([2**32 - 1], dtype=np.uint32))].numpy()


@pytest.mark.parametrize("how", ["sum", "max"])
@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_an_index_outside_is_an_error_where_its_element_is_not_chosen(how, chosen):
    x, at = T.asarray([1.0, 2.0, 3.0]), T.asarray([0, 7, 1])
    with pytest.raises(IndexError, match="index 7 is outside"):
        getattr(T.where(T.arange(3) == chosen, x[at], 0.0), how)().item()
    with pytest.raises(IndexError, match="index 7 is outside"):
        (x[at] + 1)[chosen:].numpy() if chosen < 2 else (x[at] + 1)[chosen].item()


@pytest.mark.parametrize("key", [True, False])
def test_truth_values_take_all_or_nothing(key):
    same(T.arange(5)[key], np.arange(5)[key])


def test_lists_keep_the_types_of_what_has_some():
    assert T.asarray([np.float64(0.1)]).dtype is ti.f64
    same(T.asarray([T.asarray(np.array([1e300]))]), np.array([[1e300]]))
    assert T.asarray([0.1]).dtype is ti.f32


@pytest.mark.parametrize("numbers, dtype", [([-1, 300], "u8"), ([1e300], "i32"), ([[0, 2**40]], "i32")])
def test_lists_of_numbers_that_a_type_does_not_hold(numbers, dtype):
    with pytest.raises(OverflowError, match=f"does not fit {dtype}"):
        T.asarray(numbers, dtype=getattr(ti, dtype))


def test_counting_beyond_32_bits():
    same(T.arange(2**31 - 2, 2**31 + 2), np.arange(2**31 - 2, 2**31 + 2))
    same(T.arange(-4096, 0, dtype=ti.f16)[-4:], np.float16([-4, -3, -2, -1]))
    same(T.arange(-20000000, 0, dtype=ti.f32)[-2:], np.float32([-2, -1]))


def test_whole_numbers_between_two():
    same(T.linspace(-5, 5, 4, dtype=ti.i32), np.linspace(-5, 5, 4, dtype=np.int32))


@pytest.mark.parametrize("numbers", [[np.inf, 1.0, np.inf], [1.0, 2.0, np.inf], [np.nan, 1.0], [-np.inf, np.inf]])
def test_medians_beside_infinity(numbers):
    with np.errstate(invalid="ignore"):
        same(T.median(T.asarray(numbers)), np.median(np.float32(numbers)))


def test_bounds_between_integers():
    x = T.asarray([1, 2, 3, 4])
    same(T.clip(x, 2.5), [3, 3, 3, 4])
    same(T.clip(x, None, 2.5), [1, 2, 2, 2])
    same(T.clip(x, float("-inf"), float("inf")), [1, 2, 3, 4])
    same(T.clip(T.asarray([1, 200], dtype=ti.u8), -1, 300), [1, 200])
    with pytest.raises(TypeError, match="convert one"):
        T.clip(x, T.asarray([2.5, 2.5, 2.5, 2.5]))


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_zeros_of_both_signs_are_one_number(dtype):
    for numbers in ([-0.0, 0.0], [0.0, -0.0]):
        x = T.asarray(numbers, dtype=getattr(ti, dtype))
        assert (T.argmax(x).item(), T.argmin(x).item()) == (0, 0)


def test_steps_of_a_loop_that_no_neighbour_sees():
    """A loop of the host that becomes one of each point."""

    from aerogel.tensor import frost as tf

    tf.initialize(tf.cpu)

    def iterate():
        x = tf.input([-1], tf.float32)
        y, n = tf.const(0.0), tf.const(0)
        with tf.loop(9) as k:
            y.val = y * x + tf.float(k)
            n.val += 1
        return y + 0.0 * x

    x = np.linspace(0, 1, 7, dtype=np.float32)
    expected = np.zeros_like(x)
    for k in range(9):
        expected = expected * x + k
    found = tf.compile(iterate)(tf.tensor(x)).numpy
    assert np.allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "key",
    [
        (0, slice(None), [0, 1]),
        (0, slice(None, None, -1), [0, 1]),
        (slice(None), 0, [1, 0]),
        (0, slice(1, 2), [[0], [1]]),
    ],
)
def test_stores_at_a_number_beside_computed_indices(key):
    x = np.arange(8).reshape(2, 2, 2)
    y = T.asarray(x)
    values = np.arange(x[key].size).reshape(x[key].shape) + 10
    x[key] = values
    y[key] = values
    same(y, x)


def test_products_over_axes():
    a, b = np.arange(4.0).reshape(2, 2), np.arange(4.0, 8.0).reshape(2, 2)
    same(T.dot(T.asarray(a), T.asarray(b)), np.dot(a, b))
    same(T.dot(T.asarray(a), T.asarray(b[0])), np.dot(a, b[0]))
    c = np.arange(12.0).reshape(3, 2, 2)
    same(T.dot(T.asarray(a), T.asarray(c)), np.dot(a, c))
    same(T.tensordot(T.asarray(a), T.asarray(b), axes=(1, 0)), np.tensordot(a, b, axes=(1, 0)))
    with pytest.raises(IndexError, match="of a tensor with 2"):
        T.tensordot(T.asarray(a), T.asarray(b), axes=([5], [0]))
    with pytest.raises(ValueError, match="twice"):
        T.tensordot(T.asarray(a), T.asarray(b), axes=([0, 0], [0, 1]))
    with pytest.raises(ValueError, match="twice"):
        T.moveaxis(T.asarray(c), (0, 1), (2, 2))
    with pytest.raises(TypeError, match="not booleans"):
        T.matmul(T.asarray([[True, True]]), T.asarray([[True], [True]]))


def test_lists_are_operands():
    x = T.asarray([1, 2, 3])
    same(x == [1, 0, 3], [True, False, True])
    same(x + [1, 1, 1], [2, 3, 4])
    same([1, 1, 1] - x, [0, -1, -2])


def test_a_tensor_outlives_the_array_whose_memory_it_reads():
    import gc

    x = T.asarray(ti.from_dlpack(np.ones(1_000_000)))
    gc.collect()
    np.zeros(1_000_000)
    assert x.sum().item() == 1_000_000


def test_threads_trace_programs_of_their_own():
    import threading

    from aerogel.tensor import frost as tf

    found = []

    def work(k):
        def add():
            return tf.input([-1], tf.float32) + float(k)

        eager = T.arange(3).sum().item()
        found.append((tf.compile(add)(tf.tensor(np.zeros(2, dtype=np.float32))).numpy[0] == k, eager == 3))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert found == [(True, True)] * 4


def test_threads_that_ask_for_one_tensor_see_the_same_memory():
    import threading

    x = T.arange(300_000, dtype=ti.f32) * 2.0 + 1.0
    views = []
    threads = [threading.Thread(target=lambda: views.append(np.asarray(x))) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    expected = np.arange(300_000, dtype=np.float32) * 2 + 1
    assert len(views) == 4 and all(np.array_equal(v, expected) for v in views)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_seeds_of_another_length(n):
    with pytest.raises(TypeError, match="two `u32`"):
        T.random.uniform(T.zeros(n, dtype=ti.u32), (2,))


def test_sums_of_nothing_are_zero():
    for x in (T.zeros(0), T.zeros(3)):
        assert not np.signbit(x.sum().item())


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_quotients_rounded_down_beside_infinity(dtype):
    numbers = np.array([2.0, -2.0, 0.0, -0.0, np.inf, 1.0], dtype={"f32": np.float32, "f64": np.float64}[dtype])
    for by in (np.inf, -np.inf):
        found = T.asarray(numbers) // numbers.dtype.type(by)
        with np.errstate(invalid="ignore"):
            # As the Array API has it; NumPy rounds -0.5 down to -1 where the other is infinite.
            expected = np.floor(numbers / numbers.dtype.type(by))
        same(found, expected)
        assert np.array_equal(np.signbit(found.numpy()), np.signbit(expected))


def test_norms_of_half_precision():
    same(T.norm(T.asarray(np.full(10, 300, np.float16))), np.float16(np.sqrt(10 * 300.0**2)))


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_sums_of_zeros_and_of_nothing_have_no_sign(dtype):
    kind = getattr(ti, dtype)
    for x in (T.zeros(3, kind), T.asarray([], kind), T.zeros((2, 0), kind), T.zeros(100000, kind)):
        for out in (x.sum(), T.norm(x), T.cumulative_sum(x.reshape(-1))):
            assert not np.signbit(out.numpy()).any()
    assert repr(T.zeros(3).sum()) == "tensor(0., dtype=f32)"


@pytest.mark.parametrize("mode", ["edge", "wrap"])
def test_margins_of_elements_that_there_are_not(mode):
    with pytest.raises(ValueError, match="an axis that has none"):
        T.pad(T.zeros((2, 0)), ((0, 0), (1, 0)), mode)
    assert T.pad(T.zeros((0, 2)), ((0, 0), (1, 1)), mode).shape == (0, 4)


def test_sums_of_truth_values():
    x = T.asarray([True, True, False])
    assert x.sum().item() == 2 and x.sum(dtype=bool).item() is True
    assert T.prefix_sum(x).tolist() == [1, 2, 2]
    assert T.vecdot(x, x).item() is True
    from aerogel.tensor import frost

    assert frost.sum(x).item() == 2 and frost.prefix_sum(x).tolist() == [1, 2, 2]


def test_python_numbers_take_the_default_wherever_they_are():
    assert T.asarray(range(3)).dtype is ti.i32
    assert T.asarray(ti.Vector([1.0, 2.0])).dtype is ti.f32
    assert T.arange(T.asarray(3)).dtype is ti.i32
    from aerogel import xp

    assert xp.result_type(np.float64(1), xp.float32) is xp.float64


def test_fractions_are_not_cut():
    x = T.asarray([1, 2, 3])
    for f in (
        lambda: T.pad(x, 1, value=1.5),
        lambda: T.scatter(x, T.asarray([0]), 2.7),
        lambda: T.scatter(x, T.asarray([0]), T.asarray([2.0])),
        lambda: x.__setitem__(0, T.asarray(2.5)),
    ):
        with pytest.raises(TypeError, match="of `i32` take no"):
            f()
    assert T.pad(x, 1, value=2.0).tolist() == [2, 1, 2, 3, 2]


def test_arrays_of_other_machines_and_masks():
    same(T.asarray(np.array([1, 2], dtype=">i4")), [1, 2])
    with pytest.raises(TypeError, match="no mask"):
        T.asarray(np.ma.array([1, 2], mask=[True, False]))


def test_keys_of_lists():
    x = T.arange(6).reshape(2, 3)
    assert x[[]].shape == (0, 3)
    same(x[[[True, False, True], [False, False, True]]], [0, 2, 5])
    with pytest.raises(IndexError, match="index 5 is outside axis 0 with 2"):
        x[[0, 5]]
    y = T.zeros((3, 4))
    y[:, None] = np.arange(12.0).reshape(3, 1, 4)
    same(y, np.arange(12.0).reshape(3, 4))
    y[0, None] = 7
    same(y[0], [7.0] * 4)


def test_close_numbers_and_nan():
    x = T.asarray([1.0, float("nan")])
    assert T.isclose(x, x).tolist() == [True, False]
    assert T.allclose(x, x, equal_nan=True)


def test_sums_of_many_numbers_keep_their_digits():
    for n in (3000, 20000):
        x = T.arange(n) * 1.0
        exact = (n * (n - 1) / 2) ** 2
        assert abs((x[:, None] * x[None, :]).sum().item() / exact - 1) < 2e-5
    ones = T.asarray(np.full(1 << 24, 0.1, np.float32))
    assert abs(ones.sum().item() / (0.1 * (1 << 24)) - 1) < 2e-5
    assert abs(ones.reshape(64, 64, 4096).mean().item() / 0.1 - 1) < 2e-5


def test_lists_of_large_whole_numbers_keep_them():
    large = [2**64 - 1, 7]
    assert T.asarray(large, dtype=ti.u64).tolist() == large
    assert T.asarray([2**63 + 1, 2**63, 1], dtype=ti.u64).tolist() == [2**63 + 1, 2**63, 1]
    assert T.asarray([[2**63 + 1, 1]]).dtype is ti.u64
    x = T.asarray([1, 2], dtype=ti.u64)
    assert (x + [2**64 - 2, 7]).tolist() == [2**64 - 1, 9]
    x[1:] = [2**64 - 2]
    assert x.tolist() == [1, 2**64 - 2]
    assert T.asarray([1e20, 1.0]).dtype is ti.f32
    with pytest.raises(OverflowError, match=f"{2**70} does not fit an integer of 64 bits"):
        T.asarray([2**70, 1])


def test_lists_that_no_type_of_integers_holds_are_no_floats_by_themselves():
    with pytest.raises(OverflowError, match=f"no integer dtype holds both -1 and {2**63 + 4096}"):
        T.asarray([2**63 + 4096, -1])
    assert T.asarray([2**63, -1], ti.f64).tolist() == [2.0**63, -1]


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "i64"])
def test_shifts_by_more_than_there_are_bits_and_by_less_than_none(dtype):
    kind = getattr(np, {"i": "int", "u": "uint"}[dtype[0]] + dtype[1:])
    x = np.array([1, 2, 3, -3], np.int8).astype(kind)
    bits = np.iinfo(kind).bits
    for counts in ([bits, bits + 8, 1, 0], [-1, -8, -120, -2]):
        n = np.array(counts, np.int8).astype(kind)
        assert (T.asarray(x) << T.asarray(n)).tolist() == (x << n).tolist()
        assert (T.asarray(x) >> T.asarray(n)).tolist() == (x >> n).tolist()


def test_divisions_by_zero_are_named_with_their_lines():
    ti.init(arch=ti.cpu, debug=True, log_level="error")
    a, b = T.asarray([3, 4]), T.asarray([1, 0])
    with pytest.raises(
        ti.AerogelZeroDivisionError, match=r"integer division by zero: 4 // 0\n  --> .*test_tensor_edges.py:\d+"
    ):
        (a // b).numpy()

    @p.program
    def divides():
        x = p.input([-1], ti.i32)
        return (x + 1) // x

    with pytest.raises(ti.AerogelZeroDivisionError, match=r"1 // 0\n(.*\n)*.*return \(x \+ 1\) // x"):
        divides([1, 0])


def test_a_program_takes_no_complex_numbers_for_real_ones():
    @p.program
    def twice():
        return p.input([-1], ti.f32) * 2

    with pytest.raises(TypeError, match="input 0 of `twice` takes elements of `f32`, not of `complex64`"):
        twice(np.ones(3, np.complex64))


def test_means_of_integers_lose_nothing():
    """As NumPy's, which are in double precision, in the default float."""
    rng = np.random.default_rng(0)
    for dtype in (np.int32, np.int64, np.uint8):
        x = (rng.integers(0, 200, (300, 400)) + (2**30 if dtype != np.uint8 else 0)).astype(dtype)
        for axis in (None, 0, 1):
            for name in ("mean", "std", "var"):
                out = getattr(T, name)(T.asarray(x), axis=axis)
                assert out.dtype is ti.f32
                np.testing.assert_allclose(out.numpy(), getattr(np, name)(x, axis=axis), rtol=2e-7)


def test_extents_that_indices_do_not_count():
    most, one = 2**31 - 1, T.ones(1)
    for make in (
        lambda: T.concat([T.zeros((most,)), one]),
        lambda: T.concat([one] * 3 + [T.zeros((most,))] * 2),
        lambda: T.tile(T.ones(2**16), 2**16),
        lambda: T.repeat(T.ones(2**16), 2**16),
        lambda: T.pad(T.zeros((most,)), 1),
        lambda: T.broadcast_to(one, (2**31,)),
        lambda: T.ones((2**16, 2**16)).reshape(-1),
    ):
        with pytest.raises(ValueError, match="indices go up to 2147483647|at most 2147483647 elements"):
            make()


def test_more_elements_than_indices_count():
    """Sums and means of them are made without keeping any."""
    x = T.ones((46400, 46400)) + 0.5
    assert T.mean(x).item() == pytest.approx(1.5, rel=1e-6)
    assert T.sum(x > 1, dtype=ti.i64).item() == 46400**2
    with pytest.raises(ValueError, match="count_nonzero.*more than 2147483647"):
        T.count_nonzero(x)
    with pytest.raises(ValueError, match="indices go up to"):
        T.argmax(x)

    @p.program
    def averaged():
        n, m = (p.input([-1], ti.u1).shape[0] for _ in range(2))
        return T.mean(T.zeros((n, m)) + 2)

    assert averaged(np.zeros(46400, bool), np.zeros(46400, bool)).item() == pytest.approx(2, rel=1e-6)


KEYS = [
    np.s_[1:2, [1, 0, 2], ..., 2], np.s_[None, [0, 1], ..., 0], np.s_[[0, 1], ..., None, 0], np.s_[..., [0, 1], [1, 2]],
    np.s_[:, None, [0, 2]], np.s_[0, ..., [1, 2]], np.s_[[0, 1], None, :, [1, 2]], np.s_[:, [0, 1], None, [1, 2]],
    np.s_[[1, 0], ..., [0, 1], [1, 2]], np.s_[..., 1, [0, 2]], np.s_[None, [[0], [1]], [1, 2], None], np.s_[[1], :, [2]],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_computed_indices_beside_dots_and_new_axes(key):
    x = np.arange(30).reshape(2, 3, 5)
    same(T.asarray(x)[key], x[key])
    values = np.random.default_rng(0).integers(0, 99, x[key].shape)
    stored, expected = T.asarray(x, copy=True), x.copy()
    stored[key], expected[key] = T.asarray(values), values
    same(stored, expected)
    stored[key] += 1
    expected[key] += 1
    same(stored, expected)


def test_parts_whose_ends_are_tensors():
    x = T.arange(6)
    same(x[T.asarray(1) :], np.arange(1, 6))
    same(x[: T.asarray(-1)], np.arange(5))


@pytest.mark.parametrize("n", [3, 8, 9, 40])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_extremes_of_halves(n, dtype):
    x = (np.arange(3 * n).reshape(3, n) * 7 % 31 - 15).astype("f")
    x[1, n // 2] = np.nan
    h = T.asarray(x).astype(dtype).realize()
    for how in ("max", "min"):
        for axis in (None, 0, 1):
            found = getattr(T, how)(h, axis=axis).astype(ti.f32).numpy()
            assert np.array_equal(found, getattr(np, how)(x, axis=axis), equal_nan=True)


def test_inverse_hyperbolic_functions_outside_of_their_domain():
    for dtype, x in (("f4", [-1e30, -2, 0.5, 1, 2, 1e30]), ("f8", [-1e200, -1e10, 0.999, 1, 1e10, 1e300])):
        x = np.array(x, dtype)
        with np.errstate(invalid="ignore"):
            assert np.allclose(T.acosh(T.asarray(x)).numpy(), np.arccosh(x), equal_nan=True)


def test_norms_of_matrices_as_numpy_has_them():
    a, norm = np.arange(12.0).reshape(3, 4) - 5, T.linalg.norm
    for order in (None, 1, 2, -1, -2, np.inf, -np.inf, "fro", "nuc"):
        for axis in (None, (0, 1), (1, 0)):
            for keepdims in (False, True):
                found, expected = norm(T.asarray(a), order, axis, keepdims), np.linalg.norm(a, order, axis, keepdims)
                assert np.allclose(found.numpy(), expected, atol=1e-12) and found.shape == np.shape(expected)
    for order in (None, 1, 2, 3, np.inf):
        assert np.allclose(norm(T.asarray(a), order, 1).numpy(), np.linalg.norm(a, order, 1))
        assert np.allclose(norm(T.asarray(a[0]), order).numpy(), np.linalg.norm(a[0], order))
    with pytest.raises(ValueError, match="name one or two axes"):
        norm(T.zeros((2, 2, 2)), 1)


def test_what_is_drawn_is_of_its_type():
    with pytest.raises(ValueError, match="not all integers from 0 to below 1000 fit `u8`"):
        T.random.integers(0, 1000, (5,), dtype=ti.u8)
    with pytest.raises(TypeError, match="`low` is an integer, not 3.5"):
        T.random.integers(3.5, 7, (5,))
    with pytest.raises(ValueError, match="there are 1099511627776"):
        T.random.integers(0, 2**40, (2,))
    with pytest.raises(TypeError, match="`seed`: `value` takes an integer, not 1.5"):
        T.random.seed(1.5)
    assert T.random.integers(0, 256, (50,), dtype=ti.u8).max().item() > 100


def test_extents_of_labels_that_are_not_there():
    with pytest.raises(ValueError, match="`sizes` names 'z', which is not in 'i,j=>i'"):
        T.accum("i,j=>i", T.zeros((2, 3)), sizes={"z": 7})


def test_long_chains_of_single_numbers():
    y, n = T.asarray(1.0), T.asarray(1)
    for _ in range(1000):
        y, n = y * 0.5 + 1, n * 3 + 1
    x = 1.0
    k = 1
    for _ in range(1000):
        x, k = x * 0.5 + 1, (k * 3 + 1) % 2**32
    assert y.item() == x and n.item() % 2**32 == k


def test_whole_numbers_of_numpy_bound_what_is_drawn():
    drawn = T.random.integers(np.int8(-100), np.int8(100), (99,)).numpy()
    assert drawn.min() < -50 < 50 < drawn.max()
    assert set(T.random.integers(0, 2, (50,), dtype=ti.u1).tolist()) == {True, False}


def test_sums_of_products_of_single_numbers():
    assert T.einsum(",,->", T.asarray(2.0), T.asarray(3.0), T.asarray(4.0)).item() == 24


def test_between_a_number_and_infinity():
    same(T.interp(np.array([1.0, 1.5]), [0.0, 1, 2], np.array([1, 2, np.inf])), np.array([2, np.inf]))


def test_rows_at_lists_are_stored_where_only_the_run_knows_how_many():
    @p.program
    def stored():
        a = p.input([-1, -1], ti.f32)
        a[[0, 1]] = 5.0
        a[:, [0, 1]] = 6.0
        return a

    x = np.zeros((3, 4), "f")
    found = stored(x.copy())
    x[[0, 1]], x[:, [0, 1]] = 5, 6
    same(found, x)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_comparisons_with_numbers_beyond_a_type(dtype):
    ours = np.array([0, 1, 100], dtype)
    x = T.asarray(ours)
    info = np.iinfo(dtype)
    for n in (info.min - 1, info.min, info.max, info.max + 1, 2**70, -(2**70)):
        for f in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
            assert np.array_equal(f(x, n).numpy(), [f(int(k), n) for k in ours]), (f, n)
            assert np.array_equal(f(n, x).numpy(), [f(n, int(k)) for k in ours]), (f, n)
        assert T.less(n, x).tolist() == [n < int(k) for k in ours]
    with pytest.raises(OverflowError, match="is not a number of type"):
        x + 2**70
