"""What blocks of programs leave: values that they make, and blocks that are written wrongly."""

import aerogel as ti
import numpy as np
import pytest

from aerogel import tensor as t
from aerogel.tensor import programs as p


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu)


def _negated(x):
    with p.if_cond(x > 0):
        return x * 10
    return -x


def test_loops_of_python_in_a_block_are_left():
    @p.program
    def made():
        x = p.const(0.0)
        with p.loop(3):
            for k in range(5):
                if k == 1:
                    continue
                if k == 3:
                    break
                x.val = x + k
        return x

    assert made().item() == 6


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

    with pytest.raises(RuntimeError, match=rf"`{word}` \(.*test_tensor_blocks.py:\d+\) does not begin a block"):
        made()


def test_a_block_that_is_kept_is_refused():
    kept = []

    @p.program
    def made():
        y = p.const(0)
        kept.append(p.loop(3))
        return y + 1

    with pytest.raises(RuntimeError, match=r"`loop` \(.*test_tensor_blocks.py:\d+\) does not begin a block"):
        made()


def test_a_block_begins_once():
    @p.program
    def made():
        y = p.const(0)
        block = p.loop(3)
        with block:
            y.val = y + 1
        with block:
            y.val = y + 1
        return y

    with pytest.raises(RuntimeError, match=r"can begin only once: write `with` and its name for each block"):
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


@pytest.mark.parametrize(
    "begin, end, step",
    [(2**33, 2**33 + 5, 1), (2**33 + 5, 2**33, -2), (-(2**40), -(2**40) + 9, 4), (2**33, 0, 1), (0, 0, 1), (-3, 2, 2)],
)
def test_loops_over_large_numbers(begin, end, step):
    @p.program
    def made():
        lo, hi = p.input([], ti.i64), p.input([], ti.i64)
        turns, total = p.const(0), p.const(0, ti.i64)
        with p.loop(lo, hi, step) as k:
            turns.val = turns + 1
            total.val = total + k
        return turns, total

    turns, total = made(np.int64(begin), np.int64(end))
    assert [turns.item(), total.item()] == [len(range(begin, end, step)), sum(range(begin, end, step))]


def test_loops_over_large_numbers_at_points():
    @p.program
    def made():
        lo, n = p.input([-1], ti.i64), p.input([-1], ti.u32)
        total = t.zeros_like(lo)
        with p.loop(lo, lo + n) as k:
            total.val = total + k
        return total

    lo, n = np.array([2**40, -5, 7], np.int64), np.array([3, 2, 0], np.uint32)
    expected = [sum(range(a, a + int(b))) for a, b in zip(lo.tolist(), n)]
    assert made(lo, n).tolist() == expected


def test_a_loop_of_more_turns_than_are_counted():
    @p.program
    def made():
        n, x = p.input([], ti.i64), p.const(0)
        with p.if_cond(n > 5):
            with p.loop(n) as k:
                with p.if_cond(k > 2):
                    p.break_loop()
                x.val = x + 1
        return x

    assert made(np.int64(6)).item() == 3 and made(np.int64(2)).item() == 0
    with pytest.raises(OverflowError, match="a loop of 2147483648 iterations"):
        made(np.int64(2**31))
    assert made(np.int64(7)).item() == 3


@pytest.mark.parametrize("dtype", [ti.i32, ti.i64])
def test_a_loop_that_sets_its_bounds(dtype):
    @p.program
    def made():
        lo, hi, turns = p.const(2, dtype), p.const(6, dtype), p.const(0)
        with p.loop(lo, hi) as k:
            lo.val = lo + 10
            hi.val = hi + 10
            turns.val = turns + k
        return turns

    assert made().item() == 2 + 3 + 4 + 5


def test_a_loop_at_points_that_sets_its_bounds():
    @p.program
    def made():
        lo, hi = p.input([-1], ti.i32), p.input([-1], ti.i32)
        lo, hi = lo + 0, hi + 0
        total = t.zeros_like(lo)
        with p.loop(lo, hi) as k:
            lo.val = lo + 10
            hi.val = hi + 10
            total.val = total + k
        return total

    assert made([2, 0], [6, 1]).tolist() == [14, 0]


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


@pytest.mark.parametrize("limit", [0.0, 10.0])
def test_an_index_outside_is_an_error_where_a_block_that_does_not_run_reads(limit):
    @p.program
    def made():
        x, ix, c = p.input([-1], ti.f32), p.input([-1], ti.i32), p.input([], ti.f32)
        y = x[ix]
        r = p.const(0.0)
        with p.if_cond(c > 5):
            r.val = y.sum()
        return r

    assert made([1.0, 2.0], [0, 1, 1], limit).item() == (5 if limit > 5 else 0)
    with pytest.raises(IndexError):
        made([1.0, 2.0], [0, 5], limit)


def test_an_index_outside_is_an_error_where_cells_read():
    f = ti.field(ti.f32)
    ti.root.pointer(ti.i, 4).dense(ti.i, 4).place(f)
    f[5] = 3

    @p.program
    def made():
        x, ix = p.input([-1], ti.f32), p.input([-1], ti.i32)
        (i,) = p.indices(f)
        y = x[ix] * 2
        return p.dense(f[i] + y[i])

    x, ix = np.arange(16, dtype=np.float32), np.arange(16, dtype=np.int32)[::-1].copy()
    assert made(x, ix).tolist() == [0] * 4 + [20 + 2, 23, 18, 16] + [0] * 8
    ix[0] = 99
    with pytest.raises(IndexError):
        made(x, ix)


def test_what_a_block_asks_for_is_asked_where_it_runs():
    @p.program
    def made():
        x, c = p.input([-1], ti.f32), p.input([], ti.f32)
        out = p.const(0.0)
        with p.if_cond(c > 0):
            out.val = t.pad(x, 1, mode="edge").sum() + x.max()
        return out

    assert made([1.0, 2.0], 1.0).item() == 8 and made(np.zeros(0, np.float32), -1.0).item() == 0
    with pytest.raises(ValueError):
        made(np.zeros(0, np.float32), 1.0)


def test_inputs_that_are_made_too_late_are_to_be_made_first():
    def value():
        x = p.const(0.0)
        y = p.input([-1], ti.f32)
        with p.loop(2):
            x.val = x + y
        return x

    def left():
        n = p.const(0)
        with p.loop(10) as k:
            x = p.input([-1], ti.i32)
            with p.if_cond(x > k):
                p.break_loop()
            n.val += 1
        return n

    def first():
        y = p.input([-1], ti.f32)
        x = p.const(0.0)
        with p.loop(2):
            x.val = x + y
        return x

    for function in (value, left):
        with pytest.raises(
            ValueError, match="an input which is created after it: create the inputs first, at the start"
        ):
            p.program(function).compile()
    assert p.program(first)(np.ones(3, np.float32)).tolist() == [2, 2, 2]


@pytest.mark.parametrize("extents", ["known", "unknown"])
@pytest.mark.parametrize(
    "key",
    [
        ([0, 1], [1, 2]),
        (0, [1, 2]),
        ([0, -1], [-2, 1]),
        (np.array([0, 1]), np.array([1, 1])),
        ([[0], [1]], [0, 2]),
        (np.array([0, 1], np.uint8), 2),
        ([], []),
    ],
)
def test_stores_at_lists_and_arrays(extents, key):
    given = np.arange(12, dtype=np.float32).reshape(3, 4)

    @p.program
    def made():
        x = p.input([3, 4] if extents == "known" else [-1, -1], ti.f32)
        x[key] = 7
        x[key] += 1
        return x

    want = given.copy()
    want[key] = 8
    assert np.array_equal(made(given).numpy(), want)


@pytest.mark.parametrize(
    "key, says", [(([0, 5], [0, 0]), "5 is outside axis 0"), (([0.5], [1]), "an integer"), ([True], "mask")]
)
def test_lists_at_which_nothing_is_stored(key, says):
    def made():
        x = p.input([3, 4] if isinstance(key, tuple) else [3], ti.f32)
        x[key] = 7
        return x

    with pytest.raises(IndexError, match=says):
        p.program(made).compile()
