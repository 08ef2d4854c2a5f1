"""Loops of programs: bounds and steps of all kinds, and how blocks are left."""

import functools
import contextlib

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

t = ti.tensor


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu, log_level="error")


def test_names_of_python_s_own_loops():
    @p.program
    def made():
        s, total = p.input([], ti.i32), p.const(0)
        for v in (s, s + 1):
            total.val = total + v
        with p.loop(3) as k:
            for v in (s * k, s + k):
                total.val = total + v
            total.val = total + sum(v * 2 for v in (s, k))
        return total

    assert made(1).item() == 3 + (0 + 1 + 1 + 2 + 2 + 3) + 2 * (3 + 3)


def test_loops_between_large_numbers_of_python_s():
    @p.program
    def made():
        turns, total = p.const(0), p.const(0, ti.i64)
        for bounds in ((2**33, 2**33 + 5), (2**40, 0, -(2**39)), (-(2**63), -(2**63) + 1)):
            with p.loop(*bounds) as k:
                turns.val = turns + 1
                total.val = total + k % 7
        return turns, total

    given = [*range(2**33, 2**33 + 5), 2**40, 2**39, -(2**63)]
    assert [out.item() for out in made()] == [len(given), sum(k % 7 for k in given)]

    def beyond(*bounds):
        with p.loop(*bounds):
            p.const(0)

    for bounds in ((2**63,), (-(2**63) - 1, 0)):
        with pytest.raises(OverflowError, match="bounds are of `i64`"):
            p.program(functools.partial(beyond, *bounds))()


def test_blocks_by_other_names_are_left_at_their_end():
    def by_else():
        with p.if_cond(p.const(1.0) > 0):
            for _ in range(2):
                pass
            else:
                return 1.0
        return 0.0

    def by_name():
        block = p.if_cond(p.const(1.0) > 0)
        with block:
            return p.const(1.0)

    def by_alias():
        where = p.if_cond
        with where(p.const(1.0) > 0):
            return p.const(1.0)

    def broken():
        for _ in range(3):
            with p.if_cond(p.const(1.0) > 0):
                for _ in range(2):
                    pass
                else:
                    break
        return p.const(1.0)

    for function in (by_else, by_name, by_alias, broken):
        with pytest.raises(ValueError, match="in a block .* would skip the statements after it"):
            p.program(function)()


def test_blocks_of_others_are_left_as_they_like():
    class Mine:
        loop = if_cond = staticmethod(contextlib.nullcontext)

    def two():
        with Mine.loop(), Mine.if_cond():
            return 2.0

    @p.program
    def made():
        x = p.const(0.0)
        with p.loop(3):
            x.val = x + two()
        return x

    assert made().item() == 6


def counted(lo, hi, step, dtype):
    first, last = np.asarray(lo), np.asarray(hi)

    @p.program
    def made():
        a, b = p.input([-1], dtype), p.input([-1], dtype)
        turns = p.buffer(a.shape, ti.i32)
        with p.loop(a, b, step):
            turns.val = turns + 1
        return turns

    kind = {ti.i32: np.int32, ti.i64: np.int64}[dtype]
    return made(first.astype(kind), last.astype(kind)).tolist()


@pytest.mark.parametrize(
    "lo, hi, step, dtype",
    [
        ([2**31 - 3, 0], [2**31 - 1, 10], 1, ti.i32),
        ([0, 2_000_000_000], [2_000_000_000, 2_100_000_000], 100_000_000, ti.i32),
        ([-2_000_000_000], [2_000_000_000], 100_000_000, ti.i32),
        ([2**31 - 1, 0], [-(2**31) + 1, 3], 1, ti.i32),
        ([2**31 - 1, 5], [-(2**31), 0], -(2**30), ti.i32),
        ([0, 7], [10, 7], 2**31, ti.i32),
        ([2**63 - 4, 0], [2**63 - 1, 10], 1, ti.i64),
        ([-(2**63), 1], [2**63 - 1, 0], 2**61, ti.i64),
    ],
)
def test_turns_at_the_ends_of_a_type(lo, hi, step, dtype):
    assert counted(lo, hi, step, dtype) == [len(range(a, b, step)) for a, b in zip(lo, hi)]


def test_more_turns_than_are_counted():
    with pytest.raises(OverflowError, match="a loop of 4294967294 iterations"):
        counted([-(2**31) + 1], [2**31 - 1], 1, ti.i32)
    with pytest.raises(OverflowError, match="a loop of 18446744073709551615 iterations"):
        counted([-(2**63)], [2**63 - 1], 1, ti.i64)

    @p.program
    def made():
        n, x = p.input([], ti.u64), p.const(0)
        with p.loop(0, n, 2**30):
            x.val = x + 1
        return x

    assert made(np.uint64(2**32)).item() == 4
    with pytest.raises(OverflowError, match="a loop up to 9223372036854775813: bounds are of `i64`"):
        made(np.uint64(2**63 + 5))


@pytest.mark.parametrize("step", [0, 1.5, "2", None])
def test_what_is_no_step(step):
    with pytest.raises(ValueError, match="a loop's step is an integer other than zero"):
        counted([0], [3], step, ti.i32)


def test_a_step_of_numpy_s():
    assert counted([0], [5], np.int64(2), ti.i32) == [3]


@pytest.mark.parametrize("dtype", [ti.i16, ti.i32, ti.u32, ti.i64])
def test_loops_of_one_of_many(dtype):
    def one(n):
        turns = p.const(0)
        with p.loop(n) as k:
            turns.val = turns + k.astype(ti.i32) + 1
        return turns

    made = p.program(lambda: ti.vmap(one)(p.input([-1], dtype)))
    assert made(t.asarray([1, 2, 0, 3], dtype=dtype)).tolist() == [1, 3, 0, 6]


def test_bounds_of_one_of_many_that_nobody_looks_at():
    def one(n):
        with p.loop(n):
            p.const(0)
        return n

    with pytest.raises(TypeError, match="not of `u64`: make them `i64`"):
        p.program(lambda: ti.vmap(one)(p.input([-1], ti.u64))).compile()


@pytest.mark.parametrize("function", [t.max, t.argmin, t.min, lambda x: t.pad(x, 1, mode="edge")])
def test_what_asks_for_elements_of_one_of_many(function):
    made = p.program(lambda: ti.vmap(function)(p.input([-1, -1], ti.f32)))
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    expected = [function(t.asarray(row)).numpy() for row in x]
    assert np.array_equal(made(x).numpy(), np.stack(expected))


def test_a_window_in_a_branch_that_does_not_run():
    @p.program
    def made():
        x, w, c = p.input([-1], ti.f32), p.input([3], ti.f32), p.input([], ti.f32)
        out = p.const(0.0)
        with p.if_cond(c > 0):
            out.val = t.accum("i+k; k => i", x, w).sum()
        return out

    w = np.ones(3, np.float32)
    assert made(np.ones(4, np.float32), w, 1.0).item() == 6 and made(np.ones(1, np.float32), w, 0.0).item() == 0
    with pytest.raises(ValueError, match="fewer than the window of 3"):
        made(np.ones(1, np.float32), w, 1.0)


class State:
    pass


def test_attributes_that_are_set():
    @p.program
    def made():
        state = State()
        state.u, state.v = p.const(1), p.const(0)
        with p.loop(p.input([], ti.i32)):
            state.u.val = state.u * 2
            state.v.val = state.v + state.u
        return state.u, state.v

    assert [r.item() for r in made(3)] == [8, 14]


@pytest.mark.parametrize("turns", [range(3), [0, 3], (1, 2)])
def test_what_python_goes_through_is_no_number_of_turns(turns):
    made = p.program(lambda: p.loop(turns))
    with pytest.raises(TypeError, match="`loop` takes the numbers that `range` takes"):
        made()


def test_a_block_by_for():
    @p.program
    def made():
        for _ in p.loop(3):
            pass

    with pytest.raises(TypeError, match="write `with loop"):
        made()


def test_what_a_block_with_a_condition_at_each_point_asks_for():
    @p.program
    def made():
        x, m, s = p.input([-1], ti.f32), p.input([-1], ti.i32), p.const(0.0)
        s.val = x * 0
        with p.if_cond(m > 0):
            s.val = t.topk(x, 5)[0][0] + x
        return s

    assert made(t.arange(6.0), t.asarray([0, 1, 0, 0, 0, 0])).tolist() == [0, 6, 0, 0, 0, 0]
    with pytest.raises(ValueError, match="`topk`"):
        made(t.arange(2.0), t.asarray([0, 0]))


def test_extents_that_follow_from_others_in_blocks():
    @p.program
    def made():
        x = p.input([-1], ti.i32)
        n, s = x.shape[0], p.const(0)
        with p.loop(2):
            s.val = s + t.tile(x, n).sum() + t.topk(x, n // 2)[0].sum()
        k = n // 2
        p.print_value("k", k)
        return s, t.arange(k)

    total, counted = made(t.arange(6))
    assert total.item() == 2 * (90 + 12) and counted.tolist() == [0, 1, 2]


def test_the_same_text_in_two_files_names_each(tmp_path):
    text = "def f(p):\n    x, n = p.const(1) + 0, 0\n    with p.loop(3):\n        n += 1\n    return x + n\n"
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(text)
        space = {}
        exec(compile(text, str(tmp_path / name), "exec"), space)  # noqa: S102
        with pytest.raises(ValueError, match=rf"{name}:4"):
            p.program(functools.partial(space["f"], p))()
