"""What blocks of programs leave: values that they make, and blocks that are written wrongly."""

import aerogel as ti
import numpy as np
import pytest

from aerogel import tensor as t
from aerogel.tensor import programs as p


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu)


def test_what_a_branch_makes_is_zero_where_it_has_not_run():
    @p.program
    def made():
        x = p.input([-1], ti.f32)
        with p.if_cond(x.sum() > 0):
            y, m, n = x * 10, t.argmax(x), t.norm(x)
        return y, m, n, y + 1

    for _ in range(2):
        assert [r.tolist() for r in made([3.0, 4.0])] == [[30, 40], 1, 5, [31, 41]]
        assert [r.tolist() for r in made([-3.0, -4.0])] == [[0, 0], 0, 0, [1, 1]]
        assert [r.tolist() for r in made([-3.0, -4.0, 1.0])] == [[0, 0, 0], 0, 0, [1, 1, 1]]


def test_what_a_loop_without_turns_makes_is_zero():
    @p.program
    def made():
        x = p.input([-1], ti.f32)
        with p.loop(x.shape[0] - 2) as k:
            y = x * (k + 1)
            total = x.sum()
        return y, total

    for _ in range(2):
        assert [r.tolist() for r in made([1.0, 2.0, 3.0, 4.0])] == [[2, 4, 6, 8], 10]
        assert [r.tolist() for r in made([1.0, 2.0])] == [[0, 0], 0]


def test_what_one_branch_makes_another_reads_as_zero():
    @p.program
    def made():
        x = p.input([-1], ti.f32)
        r = p.const(-1.0)
        positive = x.sum() > 0
        with p.if_cond(positive):
            y = t.sqrt(x)
            r.val = y.sum()
        with p.if_cond(~positive):
            r.val = y.sum()
        return r

    for _ in range(2):
        assert made([4.0, 9.0]).item() == 5
        assert made([-4.0, -9.0]).item() == 0


def test_what_a_kernel_in_a_branch_returns_is_zero_where_it_has_not_run():
    @ti.kernel
    def total(x: ti.types.ndarray(ti.f32, 1)) -> ti.f32:
        out = 0.0
        for i in x:
            out += x[i]
        return out

    @p.program
    def made():
        x = p.input([-1], ti.f32)
        with p.if_cond(x.sum() > 0):
            y = total(x)
        return y

    assert [made([3.0, 4.0]).item(), made([-1.0, -1.0]).item(), made([1.0, 0.0]).item()] == [7, 0, 1]


def test_what_is_made_at_cells_in_a_branch_is_zero_where_it_has_not_run():
    x = ti.field(ti.f32)
    ti.root.pointer(ti.i, 8).dense(ti.i, 4).place(x)
    x[5], x[17] = 1, 2

    @p.program
    def made():
        limit = p.input([], ti.f32)
        (i,) = p.indices(x)
        v = x[i]
        with p.if_cond(v.sum() > limit):
            y = t.exp(v) - 1
        return y.sum(), p.dense(y)

    expected = np.expm1(1) + np.expm1(2)
    for _ in range(2):
        assert np.isclose(made(1.0)[0].item(), expected, rtol=1e-5) and made(1.0)[1].shape == (32,)
        assert made(5.0)[0].item() == 0 and not made(5.0)[1].numpy().any()


def test_a_return_in_a_branch_is_refused():
    @p.program
    def made():
        x = p.input([-1], ti.f32)
        with p.if_cond(x > 0):
            return x * 10
        return -x

    with pytest.raises(ValueError, match=r"`return` in a branch \(.*test_tensor_blocks.py:\d+\) would end the program"):
        made([1.0, 2.0])


def test_a_function_in_a_branch_returns():
    @p.program
    def made():
        x = p.input([-1], ti.f32)
        y = p.const(0.0)
        with p.if_cond(x > 0):

            def double(v):
                return v * 2

            y.val = double(x)
        return y

    assert made([1.0, -2.0]).tolist() == [2, 0]


@pytest.mark.parametrize("word", ["loop", "if_cond"])
def test_a_block_that_is_not_begun_is_refused(word):
    @p.program
    def made():
        y = p.const(0)
        p.loop(3) if word == "loop" else p.if_cond(y == 0)
        y.val = y + 1
        return y

    with pytest.raises(RuntimeError, match=rf"`{word}` \(.*test_tensor_blocks.py:\d+\) begins no block"):
        made()


def test_blocks_are_of_programs():
    with pytest.raises(RuntimeError, match="`loop` is for functions under `program`"):
        p.loop(3)
    with pytest.raises(RuntimeError, match="`if_cond` is for functions under `program`"):
        p.if_cond(True)


def test_loops_where_whole_numbers_are_of_64_bits():
    ti.init(arch=ti.cpu, default_ip=ti.i64)

    @p.program
    def made():
        x = p.input([-1], ti.f32)
        with p.loop(3) as k:
            x.val = x + k
        with p.loop(t.asarray(1, dtype=ti.i64), x.shape[0]):
            x.val = x + 10
        with p.loop(2**31 - 1) as k:
            with p.if_cond(k > 3):
                p.break_loop()
            x.val = x + 100
        return x

    assert made([0.0, 1.0]).tolist() == [413, 414]


def test_a_loop_beyond_what_counts_its_turns():
    @p.program
    def made():
        x = p.const(0)
        with p.loop(2**31):
            x.val = x + 1
        return x

    with pytest.raises(OverflowError, match="a loop up to 2147483648"):
        made()


def test_one_number_is_stored_to():
    @p.program
    def made():
        a, b = p.const(0.0), p.const(1)
        a[...] = 3.0
        b[()] = 5
        return a, b

    assert [r.item() for r in made()] == [3, 5]


def test_the_indices_of_a_tensor():
    @p.program
    def made():
        u = p.input([-1, -1], ti.i32)
        i, j = u.indices
        return u[i, u.shape[1] - 1 - j], u.index(1)

    x = np.arange(6, dtype="i4").reshape(2, 3)
    flipped, index = made(x)
    assert np.array_equal(flipped.numpy(), x[:, ::-1]) and np.array_equal(index.numpy(), np.indices(x.shape)[1])


def test_a_value_of_one_block_is_set_in_another():
    @p.program
    def chosen():
        x, c = p.input([-1], ti.f32), p.input([], ti.i32)
        with p.if_cond(c > 0):
            y = x * 10
        with p.if_cond(c <= 0):
            y.val = -x
        return y

    @p.program
    def stored():
        x = p.input([-1], ti.f32)
        with p.if_cond(x.sum() > 0):
            y = t.ones((3,))
        with p.loop(2) as k:
            y[k] = x[0]
        return y

    @p.program
    def turned():
        x, s = p.input([-1], ti.f32), p.const(0.0)
        with p.loop(2):
            y = x * 10
            with p.loop(2):
                s = p.const(0.0)
        with p.loop(3) as k:
            y.val = y + 1
            with p.if_cond(k < 2):
                s.val = s + k + 1
        return y, s

    for _ in range(2):
        assert chosen([1.0, 2.0], np.int32(1)).tolist() == [10, 20]
        assert chosen([1.0, 2.0], np.int32(0)).tolist() == [-1, -2]
        assert stored([5.0]).tolist() == [5, 5, 1]
        assert stored([-5.0]).tolist() == [-5, -5, 0]
        assert [r.tolist() for r in turned([1.0, 2.0])] == [[13, 23], 3]


def _part(x, y):
    y[1] = 5.0


def _masked(x, y):
    with p.if_cond(x > 150):
        y.val = 5.0


def _previous(x, y):
    p.scatter_add_previous(y, t.asarray([1, 1]), t.asarray([2.0, 3.0]))


@ti.kernel
def _stores_five(y: ti.types.ndarray(ti.f32, 1)):
    y[1] = 5


def _by_kernel(x, y):
    _stores_five(y)


@pytest.mark.parametrize("change", [_part, _masked, _previous, _by_kernel])
def test_parts_of_what_has_not_been_made_are_stored(change):
    @p.program
    def made():
        x, c = p.input([-1], ti.f32), p.input([], ti.i32)
        with p.if_cond(c > 0):
            y = x * 10
            y[0] = 4.0
        change(x, y)
        return y

    for _ in range(2):
        first = made([7.0, 14, 21], np.int32(1)).tolist()
        assert first == {_masked: [4, 140, 210], _previous: [4, 145, 210]}.get(change, [4, 5, 210])
        assert made([1.0, 2, 3], np.int32(0)).tolist() == [0, 0 if change is _masked else 5, 0]


def test_what_is_stored_at_cells_and_everywhere():
    x = ti.field(ti.f32)
    ti.root.pointer(ti.i, 8).dense(ti.i, 4).place(x)
    x[5], x[17] = 1, 2

    @p.program
    def made():
        c, v = p.input([], ti.i32), p.input([], ti.f32)
        (q,) = p.indices(x)
        with p.if_cond(c > 0):
            y = t.zeros((32,)) + v
            y[q] = x[q] + 1
        return y * 1

    expected = np.full(32, 103.0)
    expected[4:8] = expected[16:20] = 1
    expected[5], expected[17] = 2, 3
    for _ in range(2):
        assert np.array_equal(made(np.int32(1), 103.0).numpy(), expected)
        assert not made(np.int32(0), 7.0).numpy().any()
