"""Stores that nobody would see, and what one assignment sets."""

import operator

import aerogel as ti
import pytest
from aerogel.tensor import programs as p

t = ti.tensor


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu, log_level="error")


def of_a_part(x):
    x[0][1] = 7


def of_a_turned_one(x):
    x.T[0] = 7


def in_another_shape(x):
    x.reshape(-1)[0] = 7


def by_outside(x):
    x.outside("clamp")[t.asarray([5]), 0] = 7


STORES = [of_a_part, of_a_turned_one, in_another_shape, by_outside]


@pytest.mark.parametrize("store", STORES, ids=lambda f: f.__name__)
def test_a_store_that_nobody_would_see_is_an_error(store):
    x = t.zeros((3, 4))
    with pytest.raises(ValueError, match="modifies a temporary copy"):
        store(x)
    assert not x.numpy().any()

    @p.program
    def one():
        x = p.buffer([3, 4], ti.f32)
        store(x)
        return x

    with pytest.raises(ValueError, match="modifies a temporary copy"):
        one()


def test_what_has_a_name_or_a_place_is_stored_to():
    x = t.zeros((3, 4))
    row = x[0]
    row[1] = 7
    rows = [x[1], {"a": x[2]}]
    rows[0][0] = 8
    rows[1]["a"][0] += 9
    (lambda: rows[0].__setitem__(3, 1))()
    operator.setitem(x[1], 0, 2)

    class Water:
        u = x[0]

        @property
        def height(self):
            return self.u

    Water().height[0] = 3

    def made():
        return row

    made()[2] = 5
    assert row.tolist() == [0, 7, 5, 0] and rows[0].tolist() == [8, 0, 0, 1] and rows[1]["a"].tolist() == [9, 0, 0, 0]
    assert Water.u.tolist() == [3, 0, 0, 0] and not x.numpy().any()

    @p.program
    def one():
        x = p.buffer([3], ti.f32)
        x.val[1] = 4
        clamped = x.outside("clamp")
        clamped[7] = 2
        return x, clamped

    assert [r.tolist() for r in one()] == [[0, 4, 0], [0, 4, 2]]


def test_one_statement_takes_no_value_that_it_has_set():
    def swapped():
        u, v = p.const(1) + 0, p.const(2) + 0
        with p.loop(3):
            old = u.copy()
            u.val, v.val = v, old
        return u, v

    assert [r.item() for r in p.program(swapped)()] == [2, 1]

    def exchange(u, v):
        u.val, v.val = v, u.copy()

    @p.program
    def twice():
        a, b, c = p.const(1) + 0, p.const(2) + 0, p.const(3) + 0
        exchange(a, b)
        exchange(b, c)
        return a, b, c

    assert [r.item() for r in twice()] == [2, 3, 1]

    def several_lines():
        u, v = p.const(1) + 0, p.const(2) + 0
        (
            u.val,
            v.val,
        ) = v, u
        return u

    with pytest.raises(ValueError, match=r"`u.val` is set before `u` is read by the same statement"):
        p.program(several_lines)()

    @p.program
    def one_after_the_other():
        u, v = p.const(1) + 0, p.const(2) + 0
        u.val = u + 1; v.val = u  # fmt: skip  # noqa: E702
        u.val = v.val = u
        a, b = [p.const(k) + 0 for k in range(4)], [p.const(10 * k) + 0 for k in range(4)]
        for k in range(1, 4):
            a[k].val, b[k].val = b[k - 1], a[k - 1]
        return u, v, a[3], b[3]

    assert [r.item() for r in one_after_the_other()] == [2, 2, 0, 0]

    @p.program
    def shifted():
        values = [p.const(k) + 0 for k in range(4)]
        with p.loop(2):
            for k in range(3):
                values[k].val = values[k + 1]
        return tuple(values)

    assert [r.item() for r in shifted()] == [2, 3, 3, 3]
