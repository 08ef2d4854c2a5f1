"""Tensors as arguments of kernels, among what is recorded of them."""

import numpy as np
import pytest

import aerogel as ti
from aerogel import _native

t = ti.tensor


@ti.kernel
def add(a: ti.types.ndarray(), by: ti.types.ndarray()):
    for i, j in a:
        a[i, j] += by[i, j]


@ti.kernel
def total(a: ti.types.ndarray(dtype=ti.f32, ndim=2)) -> ti.f64:
    s = 0.0
    for i, j in a:
        s += a[i, j]
    return s


@pytest.fixture(autouse=True)
def program(arch):
    ti.init(arch=arch, default_fp=ti.f64)


def numbers(n=3, m=4):
    return np.arange(n * m, dtype=np.float32).reshape(n, m)


def test_a_kernel_reads_what_is_pending():
    x = t.asarray(numbers())
    y = t.sqrt(x * x) + 1
    assert total(y) == numbers().sum() + 12
    assert np.array_equal(y.numpy(), numbers() + 1)


def test_what_a_kernel_writes_is_the_tensor_afterwards():
    x = t.asarray(numbers())
    y = x * 2
    add(x, y)
    assert np.array_equal(x.numpy(), 3 * numbers())
    assert np.array_equal(y.numpy(), 2 * numbers())
    z = x.sum(axis=0)
    add(x, x)
    assert np.array_equal(z.numpy(), 3 * numbers().sum(axis=0)), "recorded before the kernel"
    assert np.array_equal(x.numpy(), 6 * numbers())
    assert np.array_equal((x + 1).numpy(), 6 * numbers() + 1)


def test_others_who_hold_the_numbers_keep_them():
    x = t.asarray(numbers())
    x.realize()
    same, shown, array = x.copy(), np.asarray(x), x.to_ndarray()
    view = x[1:]
    add(x, t.ones((3, 4)))
    for other in (same.numpy(), shown, array.to_numpy()):
        assert np.array_equal(other, numbers())
    assert np.array_equal(view.numpy(), numbers()[1:])
    assert np.array_equal(x.numpy(), numbers() + 1)


def test_numbers_that_nobody_else_holds_are_written_where_they_lie():
    x = t.asarray(numbers(64, 64)) * 1.0
    one = t.ones((64, 64)).realize()
    x.realize()
    add(x, one)
    shown = _native.tensor_counts()
    for _ in range(50):
        add(x, one)
    assert _native.tensor_counts() == shown, "a copy would be another buffer"
    assert np.array_equal(x.numpy(), numbers(64, 64) + 51)


def test_one_tensor_for_two_parameters_is_one():
    @ti.kernel
    def both(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i, j in a:
            a[i, j] += 1
        for i, j in b:
            b[i, j] *= 2

    x = t.asarray(numbers())
    both(x, x)
    assert np.array_equal(x.numpy(), 2 * (numbers() + 1))


def test_a_kernel_that_fails_leaves_what_others_hold():
    @ti.kernel
    def fail(a: ti.types.ndarray(), at: int):
        for i, j in a:
            a[i, j] = -1
        assert at < 3

    ti.init(arch=ti.cpu, debug=True)
    x = t.asarray(numbers())
    same = x.copy()
    with pytest.raises(AssertionError):
        fail(x, 5)
    assert np.array_equal(same.numpy(), numbers())
    fail(x, 1)
    assert np.all(x.numpy() == -1)
    assert np.array_equal(same.numpy(), numbers())


def test_types_and_axes_have_to_be_those_of_the_parameter():
    with pytest.raises(TypeError, match="an array of f32 is required, this one has f64"):
        total(t.asarray(numbers().astype(np.float64)))
    with pytest.raises((TypeError, ValueError), match="2 axes are required, the array has 1"):
        total(t.asarray(numbers()[0]))


def test_no_elements():
    x = t.asarray(np.zeros((0, 4), np.float32))
    add(x, x)
    assert total(x) == 0
    assert x.shape == (0, 4)


def test_under_a_tape_tensors_are_constants():
    loss = ti.field(ti.f64, (), needs_grad=True)
    w = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def weigh(a: ti.types.ndarray()):
        for i, j in a:
            loss[None] += w[None] * a[i, j]

    @ti.kernel
    def write(a: ti.types.ndarray()):
        for i, j in a:
            a[i, j] = w[None]

    x = t.asarray(numbers().astype(np.float64))
    w[None] = 2
    with ti.ad.Tape(loss):
        weigh(x)
        x[0, 0] = 100.0  # A name for another tensor from here on.
        weigh(a=x)
    assert w.grad[None] == 2 * numbers().sum() + 100
    with pytest.raises(RuntimeError, match="kernel `write` writes to a ti.tensor"), ti.ad.Tape(loss):
        write(x)
    assert x.numpy()[0, 1] == 1


def test_a_program_of_both():
    """Heat that a kernel brings in and tensors spread, as one kernel alone would do it."""

    @ti.kernel
    def heat(a: ti.types.ndarray(), at: int):
        for i in range(2):
            a[at + i, 3] += 1.0

    x = t.zeros((8, 8), dtype=ti.f64)
    expected = np.zeros((8, 8))
    for step in range(5):
        heat(x, step)
        expected[step : step + 2, 3] += 1
        x = x + 0.1 * (t.roll(x, 1, 0) + t.roll(x, -1, 0) - 2 * x)
        expected = expected + 0.1 * (np.roll(expected, 1, 0) + np.roll(expected, -1, 0) - 2 * expected)
    assert np.allclose(x.numpy(), expected, rtol=1e-15)


def test_what_is_written_in_place_is_not_taken_for_what_it_was():
    """Equal statements have one tensor; one that has been written to is that no longer."""
    x = t.zeros((4,), dtype=ti.f64).realize()
    x[0] = 5
    assert np.array_equal(t.zeros((4,), dtype=ti.f64).numpy(), np.zeros(4))
    assert np.array_equal(x.numpy(), [5, 0, 0, 0])
    y = (x + 1).realize()
    y[1] = 9
    assert np.array_equal((x + 1).numpy(), [6, 1, 1, 1])
    z = t.ones((3, 4))
    add(z, z)
    assert np.array_equal(t.ones((3, 4)).numpy(), np.ones((3, 4)))
    assert np.array_equal(z.numpy(), np.full((3, 4), 2))


def test_one_tensor_to_read_and_to_write_is_one():
    """As an array is that is given for two parameters."""

    @ti.kernel
    def shift(source: ti.types.ndarray(), target: ti.types.ndarray()):
        ti.loop_config(serialize=True)
        for i in range(1, 6):
            target[i] = source[i - 1] + 1

    @ti.kernel
    def thrice(a: ti.types.ndarray(), b: ti.types.ndarray(), c: ti.types.ndarray()):
        for i in b:
            b[i] = 1
        for i in c:
            c[i] = a[i]

    x = t.zeros((6,))
    shift(x, x)
    assert np.array_equal(x.numpy(), np.arange(6))
    x, y = t.zeros((6,)), t.zeros((6,))
    thrice(x, x, y)
    assert np.array_equal(y.numpy(), np.ones(6))
    shown = np.asarray(x)
    shift(x, x)
    assert np.array_equal(x.numpy(), np.arange(6) + 1)
    assert np.array_equal(shown, np.ones(6))
    shift(x, x)  # What was looked at is copied once more.
    held = _native.tensor_counts()
    for _ in range(20):
        shift(source=x, target=x)
    assert _native.tensor_counts() == held, "a copy would be another buffer"


def test_what_was_compiled_for_another_program_goes():
    def n_threads():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("Threads:"))

    def use(k):
        ti.init(arch=ti.cpu, cpu_max_num_threads=2 + k % 2)
        x = t.asarray(numbers(90, 90))
        assert ((x @ x + 1).sum() > 0).item()

    use(0), use(1)
    before = n_threads()
    for k in range(12):
        use(k)
    assert n_threads() <= before + 4
