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
