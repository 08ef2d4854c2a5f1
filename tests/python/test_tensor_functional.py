"""Loops and branches as functions of functions: in programs, outside of them, in each other and under masks."""

import aerogel as ti
import aerogel.tensor as T
import numpy as np
import pytest
from aerogel.tensor import programs as p

X = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu, log_level="error")


def test_fori_loop():
    @ti.program
    def power(x, *, n: int):
        return p.fori_loop(0, n, lambda k, c: {"y": c["y"] * x, "k": c["k"] + k}, {"y": T.ones_like(x), "k": 0})

    out = power(X, n=4)
    assert out["y"].tolist() == (X**4).tolist() and out["k"].item() == 6
    eager = p.fori_loop(0, 4, lambda k, y: y * T.asarray(X), T.ones(3))
    assert eager.tolist() == (X**4).tolist()


def test_fibonacci_takes_both_old_values():
    @ti.program
    def fibonacci(n):
        return p.fori_loop(0, n, lambda _, c: (c[1], c[0] + c[1]), (0, 1))[0]

    assert [fibonacci(n).item() for n in range(10)] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


def test_while_loop():
    @ti.program
    def collatz(x):
        def body(carried):
            x, n = carried
            return T.where(x % 2 == 1, 3 * x + 1, x // 2), n + 1

        return p.while_loop(lambda c: c[0] != 1, body, (x, T.zeros_like(x)))[1]

    assert collatz(6).item() == 8
    assert collatz(np.array([1, 6, 27], np.int32)).tolist() == [0, 8, 111]


def test_cond():
    ran = []

    @ti.program
    def chosen(c, x):
        def first(x):
            p.print_value("first", x.sum())
            return {"a": x * 2, "n": 1}

        return p.cond(c, first, lambda x: {"a": x - 1, "n": 2}, x)

    out = chosen(True, X)
    assert out["a"].tolist() == (X * 2).tolist() and out["n"].item() == 1
    out = chosen(False, X)
    assert out["a"].tolist() == (X - 1).tolist() and out["n"].item() == 2
    assert ran == []

    @ti.program
    def pointwise(x):
        return p.cond(x > 1.5, lambda x: x * 10, lambda x: x, x)

    assert pointwise(X).tolist() == [1, 20, 30]
    assert p.cond(True, lambda x: x, lambda x: -x, T.asarray(X)).tolist() == X.tolist()


def test_cond_runs_one_branch(capfd):
    @ti.program
    def chosen(c, x):
        def first(x):
            p.print_value("first", x.sum())
            return x

        return p.cond(c, first, lambda x: -x, x)

    chosen(False, X)
    assert "first" not in capfd.readouterr().out
    chosen(True, X)
    assert "first: 6" in capfd.readouterr().out


def test_scan_of_no_parts_gives_results_of_no_parts():
    def program(x):
        return p.scan(lambda total, row: (total + row, {"total": total + row, "row": row.sum()}), x[0] * 0, x[1:])

    none = np.ones((1, 3), np.float32)
    for last, rows in (program(T.asarray(none)), p.program(program)(none)):
        assert last.tolist() == [0, 0, 0]
        assert rows["total"].shape == (0, 3) and rows["row"].shape == (0,)
    last, rows = p.scan(lambda c, _: (c * 2, c), T.asarray(1), None, length=0)
    assert last.item() == 1 and rows.shape == (0,) and rows.dtype == T.asarray(1).dtype
    assert p.scan(lambda c, _: (c * 2, None), T.asarray(1), None, length=0)[1] is None


def test_scan():
    @ti.program
    def sums(x):
        return p.scan(lambda total, row: (total + row, {"total": total + row, "row": row.sum()}), x[0] * 0, x)

    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    last, rows = sums(x)
    assert last.tolist() == x.sum(axis=0).tolist() and rows["total"].tolist() == x.cumsum(axis=0).tolist()
    assert rows["row"].tolist() == x.sum(axis=1).tolist()
    last, rows = sums(x[:1])
    assert rows["total"].tolist() == x[:1].tolist()
    last, none = p.scan(lambda c, _: (c * 2, None), T.asarray(1.0), None, length=5)
    assert last.item() == 32 and none is None

    @ti.program
    def doubled():
        return p.scan(lambda c, _: (c * 2, c), T.asarray(1), None, length=5)

    last, all_ = doubled()
    assert last.item() == 32 and all_.tolist() == [1, 2, 4, 8, 16]


def test_loops_that_carry_on_something_else():
    @ti.program
    def structure(x):
        return p.fori_loop(0, 3, lambda _, c: (c[0], c[1], x), (x, x))

    with pytest.raises(TypeError, match=r"the body of `fori_loop` returns \(\*, \*, \*\) for \(\*, \*\)"):
        structure(X)

    @ti.program
    def axes(x):
        return p.while_loop(lambda c: c.sum() < 10, lambda c: c[None] + 1, x)

    with pytest.raises(ValueError, match="returns a tensor with 2 axes for one with 1"):
        axes(X)

    @ti.program
    def no_pair(x):
        return p.scan(lambda c, row: c + row, x[0], x)

    with pytest.raises(TypeError, match=r"the body of `scan` returns the carried values and the results, not \*"):
        no_pair(np.ones((2, 2), np.float32))


def test_what_a_branch_gives_may_become_larger():
    @ti.program
    def grown(c, x):
        r = p.cond(c > 0, lambda: 1.0, lambda: 0.0)
        with p.if_cond(c > 5):
            r.val = r + x
        return r

    assert grown(1, X).tolist() == [1, 1, 1] and grown(7, X).tolist() == (X + 1).tolist()
    assert grown(-1, X).tolist() == [0, 0, 0]

    @ti.program
    def wider(c, x):
        return p.cond(c, lambda: T.ones(1), lambda: x)

    assert wider(True, X).tolist() == [1, 1, 1] and wider(False, X).tolist() == X.tolist()

    @ti.program
    def rows(x):
        _, all_ = p.scan(lambda c, row: (c + row, row), 0.0, x)
        with p.loop(2):
            all_.val = all_[None] + 1 if False else all_ + x
        return all_

    assert rows(X).tolist() == (X * 3).tolist()


def test_signs_of_zeros_stay():
    @ti.program
    def signed(c, x):
        return 1 / p.cond(c, lambda: x, lambda: -x)

    zero = np.zeros(2, np.float32)
    assert signed(True, zero).tolist() == [np.inf] * 2 and signed(False, zero).tolist() == [-np.inf] * 2


def test_values_that_do_not_fit_are_refused():
    @ti.program
    def halves():
        return p.fori_loop(0, 3, lambda _, c: c + 0.5, 0)

    @ti.program
    def types(c):
        return p.cond(c, lambda: 1, lambda: 2.5)

    for program, given in ((halves, ()), (types, (True,))):
        with pytest.raises(TypeError):
            program(*given)


def test_a_loop_under_a_mask_ends():
    @ti.program
    def counted(x):
        y, n = p.const(0), p.const(0)
        with p.if_cond(x > 1):
            y.val = p.while_loop(lambda v: v < 7, lambda v: v + 3, T.zeros_like(x).astype(ti.i32))
        with p.if_cond(x > 2):
            with p.loop(10**9) as k:
                with p.if_cond(x < k):
                    p.break_loop()
                n.val += 1
        return y, n

    y, n = counted(X)
    assert y.tolist() == [0, 9, 9] and n.tolist() == [0, 0, 4]


def test_branches_and_loops_under_masks():
    @ti.program
    def nested(x):
        out = p.const(0.0)
        with p.if_cond(x > 1):
            out.val = p.cond(x > 2, lambda: 1.0, lambda: -1.0)
            out.val += p.fori_loop(0, 3, lambda k, c: c + x * k, T.zeros_like(x))
            last, rows = p.scan(lambda c, k: (c + k, c * 2), T.zeros_like(x), T.arange(3.0))
            out.val += last + rows.sum(axis=0)
        return out

    expected = [0, -1 + 3 * 2 + 3 + 2, 1 + 3 * 3 + 3 + 2]
    assert nested(X).tolist() == expected


def test_chains_of_many_values():
    @ti.program
    def chain(x):
        values = [p.const(0.0) for _ in range(90)]
        with p.loop(90):
            for one, other in zip(values[:0:-1], values[-2::-1]):
                one.val = other + 1
            values[0].val = x
        return values[-1]

    assert chain(X).tolist() == (X + 89).tolist()


def test_parts_of_other_lengths():
    @ti.program
    def two(x, y):
        return p.scan(lambda c, xy: (c + xy[0] * xy[1], c), 0.0, (x, y))

    with pytest.raises(ValueError):
        two(X, np.ones(5, np.float32))
    with pytest.raises(ValueError, match="has 3 iterations, and the first axis of a tensor of `xs` has size 5"):
        p.scan(lambda c, xy: (c, None), 0.0, (X, np.ones(5, np.float32)))
