"""The two rules of programs: what a block makes stays in it, and a name that is bound before a block is not bound in it."""

import re

import aerogel as ti
import aerogel.tensor as T
import numpy as np
import pytest
from aerogel.tensor import programs as p

X = np.array([1.0, -2.0, 3.0], np.float32)


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu, log_level="error")


def test_a_function_is_traced_once():
    seen = []

    @p.program
    def grown(x):
        seen.append(x.ndim)
        n, total = p.const(0), p.const(0.0)
        with p.loop(5):
            with p.if_cond(x * 2.0**n > 10):
                p.break_loop()
            with p.if_cond(x < 0):
                p.continue_loop()
            n.val += 1
            total.val += x * n
        return n, total

    n, total = grown(X)
    assert n.tolist() == [4, 0, 2] and total.tolist() == [10, 0, 9]
    assert seen == [1] and grown.trace_count == 1


def test_memory_that_grows_in_blocks_of_blocks():
    @ti.program
    def nested(x, y):
        a = p.const(1.0)
        with p.loop(2):
            b = a + 1
            with p.loop(2):
                b.val += y
                with p.if_cond(x > 0):
                    a.val += b * x[:, None]
        return a

    def expected(x, y):
        a = np.ones(())
        for _ in range(2):
            b = a + 1
            for _ in range(2):
                b = b + y
                a = a + np.where(x > 0, b * x[:, None], 0)
        return a

    x = np.array([[1.0], [-1.0]], np.float32)[:, 0]
    y = np.array([1.0, 2.0], np.float32)
    with pytest.raises(ValueError, match="axis|extents|shape"):
        # A condition of two points is none of four.
        nested(np.ones(3, np.float32), y)
    column = np.array([1.0, 1.0], np.float32)
    assert np.allclose(nested(column, y).numpy(), expected(column, y))
    assert nested(x, y).shape == (2, 2)


@pytest.mark.parametrize(
    "block",
    [lambda x: p.loop(2), lambda x: p.if_cond(x[0] > 0), lambda x: p.if_cond(x > 0)],
    ids=["loop", "if", "mask"],
)
def test_what_a_block_makes_stays_in_it(block):
    @p.program
    def leaks(x):
        with block(x):
            y = x + 1
        return x * y

    text = r"made in a block that has ended \(.*test_tensor_rules.py:\d+\).* create it before the block, as by `x = const\(0.0\)`"
    with pytest.raises(ValueError, match=text):
        leaks(X)


def test_what_a_list_keeps_of_a_block_stays_in_it():
    @p.program
    def leaks(x):
        kept = []
        with p.loop(3):
            kept.append(x + 1)
        return kept[0]

    with pytest.raises(ValueError, match="made in a block that has ended"):
        leaks(X)


def test_what_a_program_makes_stays_in_it():
    kept = []

    @p.program
    def keeps(x):
        kept.append(x + 1)
        return x

    keeps(X)

    @p.program
    def other(x):
        return x + kept[0]

    with pytest.raises(ValueError, match="tensors of two programs"):
        other(X)


def _once(x):
    y = x * 0
    with p.loop(3):
        y = y + x
    return y


def _augmented(x):
    n = 0
    with p.loop(3):
        n += 1
    return x + n


def _by_walrus(x):
    y = x
    with p.if_cond((y := x + 1) > 0):
        y.val = y + 1
    with p.loop(2):
        (y := y + 1)
    return y


def _unpacked(u):
    v = u + 1
    with p.loop(2):
        a, (v, b) = u, (u, u)
        v.val = a + b
    return v


def _parameter(x):
    with p.loop(2):
        x = x + 1
    return x


def _in_a_python_loop(x):
    y = p.const(0.0)
    for _ in range(2):
        with p.loop(2):
            z = x + 1
            y.val = z
        z = y + 1
    return z


def _function(x):
    def f(a):
        return a

    with p.loop(2):

        def f(a):
            return a + 1

        x.set(f(x))
    return f(x)


@pytest.mark.parametrize(
    "function", [_once, _augmented, _by_walrus, _unpacked, _parameter, _in_a_python_loop, _function]
)
def test_a_name_is_not_bound_again_in_a_block(function):
    name = {"_augmented": "n", "_unpacked": "v", "_parameter": "x", "_in_a_python_loop": "z", "_function": "f"}
    own = name.get(function.__name__, "y")
    text = (
        rf"`{own}` is bound in line \d+ and again in a block \(.*test_tensor_rules.py:\d+\).* write `{own}.val = ...`"
    )
    with pytest.raises(ValueError, match=text):
        p.program(function)(X)


def test_a_name_of_another_function_is_not_bound_in_a_block():
    n = 0

    @p.program
    def changes(x):
        nonlocal n
        with p.loop(3):
            n = n + 1
        return x

    with pytest.raises(ValueError, match="`n` is bound outside of the function and again in a block"):
        changes(X)
    assert n == 0


def test_temporaries_of_blocks_that_have_ended_are_free():
    @p.program
    def sums(x):
        a, b = p.const(0.0), p.const(0.0)
        with p.loop(3) as k:
            part = x * k
            a.val += part
        with p.loop(2) as k:
            part = x + k
            b.val += part
            with p.if_cond(part > 3):
                part2 = part * 2
                b.val += part2
        for _ in range(2):
            with p.loop(2):
                part = a + 1
                for k in range(2):
                    a.val = part + k
        return a, b

    a, b = sums(X)
    assert a.tolist() == (X * 3 + 8).tolist()
    expected = np.zeros(3)
    for k in range(2):
        expected += np.where(X + k > 3, 3 * (X + k), X + k)
    assert b.tolist() == expected.tolist()


def test_what_python_keeps_it_keeps_once():
    calls = []

    class Counter:
        n = 0

    @p.program
    def counts(x):
        y = p.const(0.0)
        with p.loop(4):
            calls.append(1)
            Counter.n += 1
            y.val += x
        return y

    assert counts(X).tolist() == (X * 4).tolist()
    assert len(calls) == 1 and Counter.n == 1


def test_values_of_one_statement_are_copied_first():
    @p.program
    def wrong(x):
        u, v = x + 0, x + 1
        u.val, v.val = v, u
        return u, v

    with pytest.raises(
        ValueError, match=r"`u.val` is set before `u` is read by the same statement \(.*:\d+\): copy it"
    ):
        wrong(X)

    @p.program
    def right(x):
        u, v = x + 0, x + 1
        u.val, v.val = v, u.copy()
        return u, v

    u, v = right(X)
    assert u.tolist() == (X + 1).tolist() and v.tolist() == X.tolist()


@pytest.mark.parametrize("word", ["return", "break", "continue"])
def test_blocks_are_left_at_their_end(word):
    def leaves(x):
        for _ in range(1):
            with p.loop(2):
                if word == "return":
                    return x
                if word == "break":
                    break
                continue
        return x

    with pytest.raises(ValueError, match=r"`return` in a block \(.*\) would skip the statements after it"):
        p.program(leaves)(X)


def test_the_shape_of_what_a_block_makes_larger_is_not_asked_for_before():
    @p.program
    def asks(x):
        y = p.const(1.0)
        with p.loop(2):
            n = y.size
            y.val = y + x / n
        return y

    text = (
        re.escape("reads the shape of a tensor that a block sets to another shape") + r"(.|\n)*test_tensor_rules.py:\d+"
    )
    with pytest.raises(ValueError, match=text):
        asks(X)

    @p.program
    def knows(x):
        y = x * 0 + 1
        with p.loop(2):
            y.val = y + x / y.size
        return y

    assert np.allclose(knows(X).numpy(), 1 + 2 * X / 3)


def test_a_program_settles_where_blocks_teach_about_each_other():
    @p.program
    def chain(x):
        a, b, c, d = (p.const(0.0) for _ in range(4))
        with p.loop(4):
            d.val = c + 1
            c.val = b + 1
            b.val = a + 1
            a.val = x
        return a, b, c, d

    assert [v.tolist() for v in chain(X)] == [(X + k).tolist() for k in range(4)]
    assert chain.trace_count == 1


def test_errors_of_later_knowledge_name_the_line():
    @p.program
    def mixed(x, y):
        a = p.const(0.0)
        with p.loop(2):
            b = a + y
            a.val = x + b * 0
        return a

    assert mixed(X, np.float32(1)).tolist() == X.tolist()
    with pytest.raises(ValueError, match=r"`add`: sizes 3 and 4 along one axis(.|\n)*test_tensor_rules.py"):
        mixed(X, np.ones(4, np.float32))


def test_vmap_in_blocks():
    @p.program
    def many(x):
        total = p.const(0.0)
        with p.loop(3) as k:
            total.val += ti.vmap(lambda row: (row * k).sum())(x)
        return total

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert many(x).tolist() == (x.sum(axis=1) * 3).tolist()
    assert T.asarray(x).shape == (2, 3)


@ti.kernel
def bump(a: ti.types.ndarray()):
    for i in a:
        a[i] += 1.0


@ti.kernel
def scaled_by(a: ti.types.ndarray(), c: ti.f32):
    for i in a:
        a[i] *= c


def test_kernels_are_not_called_at_some_points():
    @p.program
    def masked_later(x):
        y, c = x * 0, p.const(0.0)
        with p.loop(3):
            with p.if_cond(c > 0):
                bump(y)
            c.val = c + x
        return y

    @p.program
    def left_later(x):
        y = x * 0
        with p.loop(3) as k:
            bump(y)
            with p.if_cond(x > k):
                p.break_loop()
        return y

    for program in (masked_later, left_later):
        with pytest.raises(RuntimeError, match=r"kernel `bump` is called in a block that runs for some points only"):
            program(X)

    @p.program
    def number(x):
        y, c = x * 1, p.const(1.0)
        with p.loop(3):
            scaled_by(y, c)
            c.val = c + x
        return y

    with pytest.raises(ValueError, match="takes one number, and gets a tensor to which a block adds axes"):
        number(X)


def test_rows_are_stored_where_their_elements_are():
    @p.program
    def rows(x):
        b, c, d = (T.zeros((2, 3)) for _ in range(3))
        with p.loop(2) as k:
            with p.if_cond(x > 0):
                b[k] = x + k
                p.scatter_add(c, (k, ...), x)
                d[1] = x
        return b, c, d

    b, c, d = rows(X)
    assert b.tolist() == [[1, 0, 3], [2, 0, 4]] and c.tolist() == [[1, 0, 3]] * 2
    assert d.tolist() == [[0, 0, 0], [1, 0, 3]]

    @p.program
    def chosen(x, at):
        b = T.zeros((4, 3))
        with p.if_cond(at > 0):
            b[at] = x
        return b

    b = chosen(X, np.array([0, 2, 3], np.int32))
    assert b.tolist() == [[0, 0, 0], [0, 0, 0], X.tolist(), X.tolist()]


def test_what_depends_on_axes_does_so_before_they_grow():
    @p.program
    def stored(x):
        r = T.ones(1)
        r[0] = 5.0
        with p.loop(1):
            r.val = r + x
        return r

    @p.program
    def summed(x):
        s, n = p.const(0.0), p.const(1.0)
        with p.loop(3):
            s.val += n.sum()
            n.val = n * x
        return s

    @p.program
    def asked(x):
        n = p.const(1.0)
        with p.loop(3):
            n.val = n * x if n.ndim == 0 else n
        return n

    for program in (stored, summed, asked):
        with pytest.raises(ValueError, match=r"block sets(.|\n)*shape(.|\n)*test_tensor_rules.py:\d+"):
            program(X)


def test_names_of_two_branches_of_python():
    def chosen(n):
        @p.program
        def program(x):
            if n == 0:
                y = x + 1
            else:
                out = p.const(0.0)
                with p.loop(2):
                    y = x * 2
                    out.val = y
                y = out + 0
            return y

        return program

    assert chosen(0)(X).tolist() == (X + 1).tolist() and chosen(1)(X).tolist() == (X * 2).tolist()
