"""Extents that only the run knows: numbers of any size, parts and single indices, and what goes wrong, in whose words."""

import inspect
import re

import aerogel as ti
import numpy as np
import pytest
from aerogel import xp
from aerogel.tensor import programs as p

T = ti.tensor
HERE = re.escape(__file__)


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


def line():
    """The line that this is called from, which a program notes."""
    return inspect.currentframe().f_back.f_lineno


def ints(n):
    return np.arange(n, dtype=np.int32)


def raises(kind, text, function, *inputs):
    """That a program of a function ends so, whole text and all."""
    with pytest.raises(kind) as caught:
        p.program(function)(*inputs)
    got = str(caught.value).replace(__file__, "FILE")
    assert got == text


# Numbers that follow from extents.


def test_extents_are_counted_exactly():
    @p.program
    def program():
        n = p.input([-1], ti.i32).shape[0]
        big = n * 70000 * 70000
        there_and_back = big // 70000 // 70000
        sizes = [there_and_back + 1, big % 1000 + 2, T.minimum(big, n * 2), T.maximum(-big, 3), (-n) // 2 + n * 1]
        return tuple(p.buffer([s], ti.i32) for s in sizes)

    for n in (1, 3, 5):
        big = n * 70000 * 70000
        want = [n + 1, big % 1000 + 2, n * 2, 3, -n // 2 + n]
        assert [r.shape[0] for r in program(ints(n))] == want


def test_extents_that_are_too_large():
    at = []

    def large():
        n = p.input([-1], ti.i32).shape[0]
        at.append(line() + 1)
        return p.buffer([n * 70000 * 70000])

    with pytest.raises(ValueError) as caught:
        p.program(large)(ints(5))
    assert str(caught.value).startswith(
        "the size of an axis, ((input 0.shape[0] * 70000) * 70000), is 24500000000, and indices are at most 2147483647\n"
        f"  --> {__file__}:{at[0]}:16\n"
    )


def test_constants_do_not_wrap_in_extents():
    def folded():
        return p.buffer([p.const(70000) * 70000])

    with pytest.raises(
        ValueError, match=r"the size of an axis.* is 4900000000, and indices are at most 2147483647\n  --> .*:\d+:16\n"
    ):
        p.program(folded)()

    def added():
        n = p.input([-1], ti.i32).shape[0]
        return p.buffer([n + 2147483647 + 2147483647])

    with pytest.raises(ValueError, match="is 4294967299, and"):
        p.program(added)(ints(5))


@pytest.mark.parametrize("n, says", [(-3, "`buffer`: `shape` has -3, below zero"), (p, None)])
def test_extents_below_zero_while_tracing(n, says):
    def program():
        return p.buffer([n if n is not p else p.const(2) - 5])

    with pytest.raises(ValueError, match=says or "the size of an axis is -3, below zero"):
        p.program(program)()


def test_extents_below_zero():
    x = ti.field(ti.i32, shape=1)

    @p.program
    def program():
        n = p.input([-1], ti.i32).shape[0]
        x[p.const(0)] = 1
        return p.buffer([n - 10])

    assert program(ints(12)).shape == (2,)
    x[0] = 0
    with pytest.raises(
        ValueError,
        match=rf"the size of an axis, \(input 0.shape\[0\] - 10\), is -5, below zero\n  --> {HERE}:\d+:\d+\n",
    ):
        program(ints(5))
    # Nothing is half done.
    assert x[0] == 0


def test_extents_of_a_branch_that_is_not_taken():
    @p.program
    def program():
        x = p.input([-1], ti.i32)
        total = p.const(0)
        with p.if_cond(x.shape[0] > 3):
            total.val += x[3] + p.indices([x.shape[0] - 3])[0].sum()
        return total

    assert program(ints(2)).item() == 0 and program(ints(6)).item() == 3 + 0 + 1 + 2


def test_extents_as_values():
    @p.program
    def program():
        x = p.input([-1], ti.i32)
        n = x.shape[0]
        return x * n, x - (n * 2 + 1), n - 7, T.astype(n, ti.i64) * 70000 * 70000, x + n * 30000 * 30000

    x = ints(2)
    got = [r.numpy() for r in program(x)]
    want = [x * 2, x - 5, np.int32(-5), np.int64(2 * 70000 * 70000), x + 2 * 30000 * 30000]
    assert all(np.array_equal(g, w) and g.dtype == w.dtype for g, w in zip(got, want))

    def too_large():
        x = p.input([-1], ti.i32)
        return x * (x.shape[0] * 70000 * 70000)

    with pytest.raises(
        ValueError,
        match=rf"the number \(\(input 0.shape\[0\] \* 70000\) \* 70000\) is 24500000000, which does not fit `i32`\n  --> {HERE}:\d+:\d+\n",
    ):
        p.program(too_large)(ints(5))


def test_bounds_of_loops_do_not_wrap():
    @p.program
    def program():
        n = p.input([-1], ti.i32).shape[0]
        count = p.const(0)
        with p.loop(n * 70000 * 70000 // 70000 // 70000):
            count.val += 1
        return count

    assert program(ints(4)).item() == 4


def test_memory_that_does_not_suffice():
    def program():
        n = p.input([-1], ti.i32).shape[0]
        return p.buffer([n * 100000, n * 100000]) + 1

    with pytest.raises(MemoryError, match=rf"out of memory for f32\[500000, 500000\]\n  --> {HERE}:\d+:\d+\n"):
        p.program(program)(ints(5))


# Parts.

KEYS = [
    np.s_[0], np.s_[-1], np.s_[1:3], np.s_[:3], np.s_[1:], np.s_[::2], np.s_[:-1], np.s_[-2:], np.s_[::-1],
    np.s_[5:1:-2], np.s_[-1:-9:-3], np.s_[3:1], np.s_[-20:20], np.s_[None, 1:], np.s_[..., -1], np.s_[1:, 0], np.s_[-1, ::2],
    np.s_[:, None, 1:], np.s_[0, 1], np.s_[:-1, 1:],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_parts(key):
    @p.program
    def program():
        x = p.input([-1, -1], ti.i32)
        y, z = x + 0, x + 0
        y[key] = 70
        z[key] = x[key] * 2
        return x[key], y, z

    for n, m in [(4, 3), (7, 2), (1, 5), (9, 9)]:
        x = ints(n * m).reshape(n, m)
        y, z = x.copy(), x.copy()
        y[key] = 70
        z[key] = x[key] * 2
        got = [r.numpy() for r in program(x)]
        assert all(np.array_equal(g, w) for g, w in zip(got, [x[key], y, z]))


def test_parts_whose_ends_follow_from_extents():
    @p.program
    def program():
        x = p.input([-1], ti.i32)
        n = x.shape[0]
        k = p.input([-1], ti.i32).shape[0]
        return x[: n // 2], x[n // 2 :], x[k:], x[-k:], x[k : n - k], x[n - k : 0 : -1], x[k - 3 :]

    for n, k in [(8, 2), (5, 1), (3, 5), (1, 3), (6, 3)]:
        x = ints(n)
        want = [x[: n // 2], x[n // 2 :], x[k:], x[-k:], x[k : n - k], x[n - k : 0 : -1], x[k - 3 :]]
        assert [r.tolist() for r in program(x, ints(k))] == [w.tolist() for w in want]


def test_parts_beside_computed_indices():
    @p.program
    def program():
        x = p.input([-1, -1], ti.i32)
        at = p.input([-1], ti.i32)
        y, z = x + 0, x + 0
        y[at, 1:] = -1
        z[:-1, at] = T.asarray(5)
        return x[at, 1:], x[-1, at], x[1:, at], y, z

    x, at = ints(20).reshape(5, 4), np.array([0, 2, 3], np.int32)
    y, z = x.copy(), x.copy()
    y[at, 1:] = -1
    z[:-1, at] = 5
    got = [r.numpy() for r in program(x, at)]
    assert all(np.array_equal(g, w) for g, w in zip(got, [x[at, 1:], x[-1, at], x[1:, at], y, z]))


@pytest.mark.parametrize("key, n", [(3, 3), (-4, 3), (0, 0)])
def test_one_index_of_an_axis_that_turns_out_too_short(key, n):
    @p.program
    def program():
        return p.input([-1], ti.i32)[key]

    assert program(ints(5)).item() == ints(5)[key]
    with pytest.raises(IndexError, match=rf"^index {key} is outside axis 0 with {n} elements\n  --> {HERE}:\d+:\d+\n"):
        program(ints(n))


def test_values_that_do_not_fit_a_part():
    def program():
        x = p.input([-1], ti.i32)
        x[1:3] = p.input([3], ti.i32)
        return x

    with pytest.raises(ValueError, match=rf"sizes 3 and 2 along one axis\n  --> {HERE}:\d+:\d+\n"):
        p.program(program)(ints(5), ints(3))

    def known():
        x = p.input([5], ti.i32)
        x[1:3] = p.input([3], ti.i32)
        return x

    with pytest.raises(ValueError, match="axis 0 of operand 0 has 3 elements, axis 0 of operand 1 has 2"):
        p.program(known)(ints(5), ints(3))


def test_masks_and_parts():
    @p.program
    def program():
        x = p.input([-1, -1], ti.i32)
        y = x + 0
        with p.if_cond(x[:, 1:] % 2 == 0):
            y[:, 1:] = -1
        return y

    x = ints(12).reshape(3, 4)
    y = x.copy()
    y[:, 1:][x[:, 1:] % 2 == 0] = -1
    assert np.array_equal(program(x).numpy(), y)


# What goes wrong, and where.


def test_shapes_that_do_not_agree_when_the_program_runs():
    at = []

    def program():
        x, y = p.input([-1], ti.i32), p.input([-1], ti.i32)
        at.append(line() + 1)
        return x + y

    with pytest.raises(ValueError) as caught:
        p.program(program)(ints(5), ints(3))
    assert str(caught.value).splitlines() == [
        "`add`: sizes 5 and 3 along one axis",
        f"  --> {__file__}:{at[0]}:16",
        "    |",
        f"{at[0]} |         return x + y",
        "    |                ^^^^^",
    ]


def test_shapes_that_do_not_agree_when_it_is_traced():
    def program():
        x = p.input([5, 2], ti.i32)
        y = p.input([4, 2], ti.i32)
        doubled = x * 2
        return doubled + y

    first = inspect.getsourcelines(program)[1]
    raises(
        ValueError,
        "`add`: axis 0 of operand 0 has 5 elements, axis 0 of operand 1 has 4; the shapes are (5, 2) and (4, 2); "
        f"operand 0 is made in FILE:{first + 3}; operand 1 is made in FILE:{first + 2}",
        program,
        np.zeros((5, 2), np.int32),
        np.zeros((4, 2), np.int32),
    )


def test_an_index_outside():
    def program():
        x, at = p.input([-1], ti.i32), p.input([-1], ti.i32)
        doubled = x * 2
        return doubled[at] + 1

    first = inspect.getsourcelines(program)[1]
    with pytest.raises(IndexError) as caught:
        p.program(program)(ints(5), np.array([1, 7], np.int32))
    assert str(caught.value).replace(__file__, "FILE").splitlines() == [
        "index 7 is outside axis 0 with 5 elements",
        f"  --> FILE:{first + 3}:16",
        "    |",
        f"{first + 3} |         return doubled[at] + 1",
        "    |                ^^^^^^^^^^^",
        f"   = note: the tensor is made in FILE:{first + 2}",
    ]


def test_a_window_longer_than_what_turns_up():
    def program():
        x = p.input([-1], ti.i32)
        return T.accum("o+k, ; k => o", x, p.input([3], ti.i32))

    made = p.program(program)
    window = np.array([1, -1, 1], np.int32)
    assert made(ints(3), window).tolist() == [1]
    for n in (2, 1, 0):
        text = f"`accum`: {n} elements along axis 0 of tensor 0 are fewer than the window of 3"
        with pytest.raises(ValueError, match=re.escape(text)):
            made(ints(n), window)


def test_arrays_of_vectors_are_given_by_tensors_of_any_extents():
    @ti.kernel
    def double(a: ti.types.ndarray(ti.math.vec3, 1)):
        for i in a:
            a[i] = a[i] * 2

    @p.program
    def program():
        y = p.input([-1, -1], ti.f32) + 0
        double(y)
        return y

    assert program(np.ones((4, 3), np.float32)).tolist() == [[2.0] * 3] * 4
    text = "argument `a` of kernel `double` has elements of shape (3,): a last axis of the tensor has 2, not 3"
    with pytest.raises(ValueError, match=re.escape(text)):
        program(np.ones((4, 2), np.float32))

    def known():
        y = p.input([-1, 2], ti.f32) + 0
        double(y)
        return y

    with pytest.raises(ValueError, match=re.escape("has elements of shape (3,), not the last axes of")):
        p.program(known)(np.ones((4, 2), np.float32))


def test_an_extent_of_one_that_only_the_run_knows_is_not_stretched():
    @p.program
    def program():
        x = p.input([-1], ti.f32)
        return x - x[:1]

    assert program(np.ones(1, np.float32)).tolist() == [0]
    with pytest.raises(
        ValueError, match=r"sizes 4 and 1 along one axis: an axis whose size is known only at run time .*`x\[0, None\]`"
    ):
        program(np.ones(4, np.float32))


# What is made for so many elements.

MADE = {
    "linspace": lambda m, n: m.linspace(0, 1, n),
    "linspace without its end": lambda m, n: m.linspace(-2.5, 1, n, endpoint=False),
    "linspace of whole numbers": lambda m, n: m.linspace(0, 10, n, dtype=m.int32),
    "linspace in double precision": lambda m, n: m.linspace(5, 0.1, n + 1, dtype=m.float64),
    "linspace to an extent": lambda m, n: m.linspace(-n, n, n // 2),
    "linspace of a known number": lambda m, n: m.linspace(1, n, 7),
    "arange": lambda m, n: m.arange(n),
    "arange of floats": lambda m, n: m.arange(0.0, n),
    "arange back": lambda m, n: m.arange(n, 0, -2.0),
    "arange of a type": lambda m, n: m.arange(1, n + 1, dtype=m.float32),
    "full": lambda m, n: m.full((n,), 2.5),
    "full of an extent": lambda m, n: m.full((n, 3), n),
    "full of truth": lambda m, n: m.full((2, n), True),
    "full of complex numbers": lambda m, n: m.full((n,), 1 + 2j),
    "eye": lambda m, n: m.eye(n),
    "eye beside": lambda m, n: m.eye(n, 3, k=-1),
    "eye of a diagonal": lambda m, n: m.eye(3, k=n - 2),
    "tril": lambda m, n: m.tril(m.ones((n, n)), k=n - 3),
    "tril of many": lambda m, n: m.tril(m.ones((2, n, n)), k=1),
    "tril of complex numbers": lambda m, n: m.tril(m.full((n, n), 1 + 2j), k=n - 1),
    "triu": lambda m, n: m.triu(m.full((n, n + 1), 7), k=2 - n),
    "triu of truth": lambda m, n: m.triu(m.full((n, n), True), k=-n),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_for_so_many_elements(name):
    make = MADE[name]
    program = p.program(lambda: make(xp, p.input([-1], ti.i32).shape[0]))
    for n in (0, 1, 2, 5, 40):
        got, want = program(ints(n)).numpy(), make(np, n)
        assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
        np.testing.assert_allclose(got, want, rtol=1e-14 if got.dtype == np.float64 else 1e-6)
        assert got.dtype == make(xp, n).numpy().dtype


def test_numbers_that_count_are_of_the_default_type():
    ti.init(arch=ti.cpu, log_level="error", default_ip=ti.i64)
    counted = p.program(lambda: T.arange(p.input([-1], ti.i32).shape[0]))(ints(3))
    assert counted.dtype is ti.i64 and counted.tolist() == [0, 1, 2]


def test_what_cannot_be_made_for_so_many_elements():
    def few():
        return T.linspace(0, 1, p.input([-1], ti.i32).shape[0] - 3)

    with pytest.raises(ValueError, match=r"the size of an axis, \(input 0.shape\[0\] - 3\), is -1, below zero"):
        p.program(few)(ints(2))
    for wrong, kind, text in (
        (lambda x: T.linspace(0, 1, x.sum()), ValueError, "a size must be computed from the shapes of inputs"),
        (lambda x: T.linspace(0, 1, -1), ValueError, "`linspace`: `num` is -1, below zero"),
        (lambda x: T.arange(0.5, x.shape[0]), TypeError, "`arange`: in a program the bounds are integers"),
        (lambda x: T.tril(x, x.shape[0]), ValueError, "`tril` takes a tensor of at least two axes"),
    ):
        with pytest.raises(kind, match=text):
            p.program(lambda: wrong(p.input([-1], ti.i32)))(ints(2))  # noqa: B023


#: How many numbers each takes at least.
TRANSFORMS = {"fft": 1, "ifft": 1, "rfft": 1, "ihfft": 1, "irfft": 2, "hfft": 2}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_there_are_no_transforms_of_no_numbers(name):
    function, n = getattr(T.fft, name), TRANSFORMS[name]
    transform = p.program(lambda: function(p.input([-1, 3], ti.f64), axis=0))
    x = np.ones((n, 3))
    np.testing.assert_allclose(transform(x).numpy(), getattr(np.fft, name)(x, axis=0), atol=1e-12)
    for call in (transform, lambda x: function(x, axis=0)):
        with pytest.raises(ValueError, match=f"`{name}` of 0 elements"):
            call(x[1:])
        with pytest.raises(ValueError, match="`hfft` of -2 elements|`irfft` of -2|is -2, below zero|of 0 elements"):
            call(x[:0])


def test_transforms_along_several_axes_go_along_none_without_numbers():
    transform = p.program(lambda: T.fft.fftn(p.input([-1, -1], ti.f32)))
    with pytest.raises(ValueError, match="`fft` of 0 elements"):
        transform(np.ones((0, 3), np.float32))


def test_transforms_of_no_rows_are_no_rows():
    rows = p.program(lambda: T.fft.rfft(p.input([-1, 4], ti.f32)))
    assert rows(np.ones((0, 4), np.float32)).shape == (0, 3)
    frequencies = p.program(lambda: T.fft.fftfreq(p.input([-1], ti.i32).shape[0]))
    with pytest.raises(ValueError, match="`fftfreq` of 0 elements"):
        frequencies(ints(0))


def test_long_chains_of_extents():
    @p.program
    def made():
        x = p.input([-1], ti.f32)
        k = n = x.shape[0]
        for i in range(3000):
            # Written out, each would be twice as long as the one before.
            k = (k + k + i) % 1000
            n = (n * 3 + 1) % 7
        return x[:n], x + k, p.buffer([k]).sum()

    k, n = 8, 8
    for i in range(3000):
        k, n = (k + k + i) % 1000, (n * 3 + 1) % 7
    x = np.arange(8, dtype=np.float32)
    part, moved, zero = made(x)
    assert part.tolist() == x[:n].tolist() and moved.tolist() == (x + k).tolist() and zero.item() == 0
    assert len(made.text) < 3_000_000


def test_what_is_told_of_a_long_extent_is_short():
    @p.program
    def made():
        k = p.input([-1], ti.f32).shape[0]
        for _ in range(60):
            k = (k + k) % 1000
        return t.cumulative_sum(p.buffer([k + 1]) + 1)

    t = T
    assert made([1.0, 2.0]).shape == (953,)
    assert "% 1000" in made.explain() and len(made.explain()) < 5000


def test_memory_of_inputs_with_one_name():
    """Extents are told apart by which input they are of."""

    @p.program
    def made():
        x, y = p.input([-1], ti.f32), p.input([-1], ti.f32)
        x.set_debug_name("both")
        y.set_debug_name("both")
        z, w = p.const(0.0), p.const(0.0)
        with p.loop(2):
            z.val = x * 0
            w.val = y * 0
            with p.if_cond(x > 1):
                z.val = z + 1
            with p.if_cond(y > 1):
                w.val = w + 1
        return z, w

    z, w = made([1.0, 2.0], [2.0, 1.0, 3.0])
    assert z.tolist() == [0, 1] and w.tolist() == [1, 0, 1]


def test_normal_numbers_for_extents_that_the_run_knows():
    key = np.array([1, 2], np.uint32)

    @p.program
    def made():
        key, x = p.input([2], ti.u32), p.input([-1], ti.f32)
        n = x.shape[0]
        return (
            T.random.normal(key, x.shape),
            T.random.normal(key, n),
            T.random.normal(key, (n, 3)),
            T.random.randn(n, 2),
        )

    for n in (1, 5):
        line, again, rows, drawn = made(key, np.zeros(n, np.float32))
        for got, shape in ((line, n), (again, (n,)), (rows, (n, 3))):
            want = T.random.normal(T.asarray(key), shape).numpy()
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)
        assert drawn.shape == (n, 2)
