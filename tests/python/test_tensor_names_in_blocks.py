"""What blocks of a program bind beside names of its function: elements, attributes, variables of other functions."""

import contextlib
import dataclasses
from collections import namedtuple

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

t = ti.tensor
COUNTED = 0


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu, log_level="error")


def of_a_dictionary(s):
    d = {"x": s}
    with p.loop(3):
        d["x"] = d["x"] + 1
    return s


def of_a_list(s):
    values, total = [s, s * 2], p.const(0)
    with p.loop(3):
        total.val = total + values[1]
        values[1] = values[1] * 2
    return total


def of_lists_in_a_tuple(s):
    values = ([s], [s])
    with p.if_cond(s > 100):
        values[1][0] = s * 3
    return values[1][0]


def of_an_object_by_its_method(s):
    class Water:
        def __init__(self):
            self.u = s

        def step(self):
            self.u = self.u * 2

    water = Water()
    with p.loop(3):
        water.step()
    return water.u


def of_an_object_s_number(s):
    class Clock:
        now = 0.0

        def __init__(self):
            self.now = 0.0

        def tick(self):
            self.now += 0.5

    clock, total = Clock(), p.const(0.0)
    with p.loop(3):
        clock.tick()
        total.val = total + clock.now
    return total


def of_what_an_object_has_of_its_class(s):
    class Clock:
        now = 0

        def tick(self):
            self.now += 1

    clock, total = Clock(), p.const(0)
    with p.loop(5):
        clock.tick()
        total.val = total + clock.now
    return total


def of_an_object_with_slots(s):
    class Water:
        __slots__ = ("u",)

    water = Water()
    water.u = s
    with p.loop(3):
        water.u = water.u + 1
    return water.u


def by_nonlocal(s):
    x = s

    def step():
        nonlocal x
        x = x + 1

    with p.loop(3):
        step()
    return x


def by_nonlocal_of_a_number(s):
    k, total = 1, p.const(0)

    def step():
        nonlocal k
        total.val = total + k
        k = k * 2

    with p.loop(3):
        step()
    return total


def by_global(s):
    global COUNTED
    COUNTED = 0

    def step():
        global COUNTED
        COUNTED = COUNTED + s

    with p.loop(3):
        step()
    return COUNTED


def read_by_a_lambda(s):
    x, total = s, p.const(0)
    twice = lambda: x * 2  # noqa: E731
    with p.loop(3):
        total.val = total + twice()
        x = s + 5
    return total


def read_by_a_function_behind(s):
    x = s

    def read():
        return x

    with p.if_cond(s > 100):
        x = s + 5
    return read()


def by_an_exit_stack(s):
    x = s
    with contextlib.ExitStack() as stack:
        total = s + 1
        stack.enter_context(p.loop(3))
        x = x + total
    return x


@contextlib.contextmanager
def turns(n):
    with p.loop(n) as k:
        yield k


def by_a_helper(s):
    x = s
    with turns(3):
        x = x + 1
    return x


def by_a_helper_in_a_dictionary(s):
    d = {"x": s}
    with turns(3) as k:
        d["x"] = d["x"] + k
    return d["x"]


def in_the_next_turn_of_python_s_loop(s):
    x, total = s, p.const(0)
    for _ in range(2):
        total.val = total + x
        with p.if_cond(s > 100):
            x = s * 7
    return total


def a_number_in_the_next_turn_of_python_s_loop(s):
    x, total = 1, p.const(0)
    for _ in range(2):
        total.val = total + x
        with p.if_cond(s > 100):
            x = 7
    return total


def of_a_frozen_object(s):
    @dataclasses.dataclass(frozen=True)
    class State:
        u: object

    state = State(s)
    with p.if_cond(s > 100):
        state = dataclasses.replace(state, u=state.u * 2)
    return state.u


def of_a_named_tuple(s):
    state = namedtuple("State", "u, v")(s, s)
    with p.loop(3):
        state = state._replace(u=state.u + state.v)
    return state.u


def of_a_value_that_was_made_in_another_block(s):
    total = p.const(0)
    with p.loop(1):
        y = s * 2
    with p.loop(3):
        total.val = total + y
        y = s * 3
    return total


def of_nothing(s):
    before, total = None, p.const(0)
    with p.loop(3) as k:
        if before is not None:
            total.val = total + before
        before = k + s
    return total


def by_exchange(s):
    x, y = s * 2, s * 3
    with p.loop(2):
        x, y = y, x
    return x


def by_what_was_before(s):
    x, before = s * 2, s * 3
    with p.loop(3) as k:
        before = x
        x = k * s
    return before


def by_a_pattern(s):
    x, total = s, p.const(0)
    with p.loop(3):
        total.val = total + x
        match (s * 2, total):
            case (x, _):
                pass
    return total


OF_NAMES = [
    (by_exchange, "y"),
    (by_what_was_before, "before"),
    (by_a_pattern, "x"),
    (of_a_dictionary, "d['x']"),
    (of_a_list, "values[1]"),
    (of_lists_in_a_tuple, "values[1][0]"),
    (of_an_object_by_its_method, "water.u"),
    (of_an_object_s_number, "clock.now"),
    (of_what_an_object_has_of_its_class, "clock.now"),
    (of_an_object_with_slots, "water.u"),
    (by_nonlocal, "x"),
    (by_nonlocal_of_a_number, "k"),
    (by_global, "COUNTED"),
    (read_by_a_lambda, "x"),
    (read_by_a_function_behind, "x"),
    (by_an_exit_stack, "x"),
    (by_a_helper, "x"),
    (by_a_helper_in_a_dictionary, "d['x']"),
    (in_the_next_turn_of_python_s_loop, "x"),
    (a_number_in_the_next_turn_of_python_s_loop, "x"),
    (of_a_frozen_object, "state"),
    (of_a_named_tuple, "state"),
    (of_a_value_that_was_made_in_another_block, "y"),
    (of_nothing, "before"),
]


@pytest.mark.parametrize("function, name", OF_NAMES)
def test_what_is_bound_to_other_values(function, name):
    made = p.program(lambda: function(p.input([], ti.i32)) * 1)
    with pytest.raises(ValueError) as caught:
        made(2)
    assert f"`{name}` is bound to another value in a block" in str(caught.value)
    assert f"`{name}.val = ...`" in str(caught.value)
    if function is not by_an_exit_stack:
        assert "test_tensor_names_in_blocks.py:" in str(caught.value)


def appended(s):
    out = []
    with p.loop(3) as k:
        out.append(s + k)
    return t.stack(out)


def added(s):
    out = []
    with p.loop(3) as k:
        out += [s + k]
    return t.stack(out)


def taken(s):
    given = [1, 2, 3]
    total = p.const(0)
    with p.loop(3):
        total.val = total + given.pop() * s
    return total


def appended_in_a_branch(s):
    out = [s]
    with p.if_cond(s > 100):
        out.append(2)
    return s * len(out)


def appended_what_was_there(s):
    out = [s]
    with p.loop(3):
        out.append(out[-1])
    return s * len(out)


@pytest.mark.parametrize("function", [appended, added, taken, appended_in_a_branch, appended_what_was_there])
def test_lists_that_change_their_length(function):
    made = p.program(lambda: function(p.input([], ti.i32)))
    with pytest.raises(ValueError, match=r"`(out|given)` changes its length in a block \(.*:\d+\), once"):
        made(2)


def test_a_list_that_is_made_anew():
    def joined(s):
        out = []
        with p.loop(3) as k:
            out = [*out, s + k]
        return t.stack(out)

    with pytest.raises(ValueError, match=r"`out` is bound to another value"):
        p.program(lambda: joined(p.input([], ti.i32))).compile()


def test_arrays_that_change():
    def made():
        a, total = np.zeros(2), p.const(0.0)
        with p.loop(3):
            total.val = total + a[0]
            a[0] += 1
        return total

    with pytest.raises(ValueError, match=r"`a` is changed in a block \(.*:\d+\), once"):
        p.program(made).compile()


def test_what_a_block_uses_for_itself():
    """Elements and attributes that are bound before they are read, and lists that end as they were."""

    class Water:
        pass

    @p.program
    def made():
        s, total = p.input([], ti.i32), p.const(0)
        water, scratch, pile, cache = Water(), [s + 3, s + 4], [], {}
        water.tmp = s + 5
        with p.loop(4) as k:
            water.tmp = s * k
            scratch[0] = water.tmp + 1
            pile.append(scratch[0])
            total.val = total + pile.pop()
            cache["last"] = total * 2
        with p.if_cond(s > 0):
            cache["inner"] = total + 1
        return total, cache["last"], cache["inner"]

    turned = sum(2 * k + 1 for k in range(4))
    assert [r.item() for r in made(2)] == [turned, turned * 2, turned + 1]


def test_what_a_method_keeps_for_itself():
    """It was there before the first block, is another tensor in each, and is read where it has been made."""

    class Water:
        def __init__(self, u):
            self.u = u

        def step(self):
            self.change = self.u * 2
            self.u.val = self.u + self.change

    @p.program
    def made(reads_it=False):
        water = Water(p.const(p.input([], ti.i32)))
        water.step()
        for n in (3, 2):
            with p.loop(n):
                water.step()
        with p.if_cond(water.u > 0):
            water.step()
        if reads_it:
            return water.change
        water.step()
        return water.u, water.change

    assert [r.item() for r in made(1)] == [3**8, 2 * 3**7]
    with pytest.raises(ValueError, match="`water.change` is bound to another value in a block"):
        p.program(lambda: made._function(True)).compile()


def test_what_a_loop_binds_that_runs_in_any_case():
    def made(leaves, n):
        s, total = p.input([], ti.i32), p.const(0)
        kept, x, k = {"y": s * 100}, s * 100, 100
        with p.loop(3 if n is None else n) as turn:
            if leaves:
                with p.if_cond(s > 5):
                    p.break_loop()
            kept["y"] = s * turn
            x = kept["y"] + 1
            k = 4
            total.val = total + x
        return total + k, x, kept["y"]

    assert [r.item() for r in p.program(lambda: made(False, None))(2)] == [9 + 4, 5, 4]
    for leaves, n in ((True, None), (False, 0), (False, p)):
        with pytest.raises(ValueError, match="is bound to another value in a block"):
            p.program(lambda leaves=leaves, n=n: made(leaves, p.input([], ti.i32) if n is p else n)).compile()


def test_what_a_loop_has_bound_is_there_for_the_next_block():
    def made():
        s = p.input([], ti.i32)
        with p.loop(3) as turn:
            x = s * turn
        with p.if_cond(s > 5):
            x = s * 7
        return x

    with pytest.raises(ValueError, match="`x` is bound to another value in a block"):
        p.program(made).compile()


def test_another_name_of_what_is_bound():
    """What a block makes has other names, which are read as what it has made."""

    @p.program
    def made():
        s = p.input([], ti.i32)
        x, out = s + 1, {}
        with p.if_cond(s > 0):
            x = s * 2
            out["x"] = x
        return out["x"]

    assert made(3).item() == 6 and made(-3).item() == 0


def test_a_name_is_bound_before_it_is_read_in_a_turn():
    @p.program
    def made():
        s, total = p.input([], ti.i32), p.const(0)
        x = s + 1
        with p.loop(3) as k:
            for n in range(2):
                if n == 1:
                    total.val = total + x
                x = s * k
        return total

    assert made(5).item() == 15


def test_a_text_that_is_not_there():
    names = {"p": p, "ti": ti}
    text = """
def made():
    s = p.input([], ti.i32)
    x = s
    with p.loop(3):
        x = x + 1
    return s

def fine():
    s, total = p.input([], ti.i32), p.const(0)
    k = 5
    with p.loop(3) as turn:
        for k in range(2):
            y = s * k
            total.val = total + y
    return total
"""
    exec(text, names)
    with pytest.raises(ValueError, match="`x` is bound to another value in a block, and"):
        p.program(names["made"]).compile()
    assert p.program(names["fine"])(2).item() == 6


def test_an_error_of_a_block_that_is_caught_around_it():
    def caught(begin):
        s = p.input([], ti.i32)
        x = s
        with contextlib.suppress(ValueError):
            begin(x)
        return s

    def bound(x):
        with p.loop(3):
            x = x + 1

    def left(x):
        for _ in range(2):
            with p.loop(3):
                break

    for begin in (bound, left):
        with pytest.raises(RuntimeError, match="an exception left a block of the program"):
            p.program(lambda begin=begin: caught(begin)).compile()


def test_dictionaries_whose_keys_are_attributes():
    class Dot(dict):
        def __getattr__(self, name):
            return self[name]

        __setattr__ = dict.__setitem__

    @p.program
    def made():
        d = Dot()
        d.u, d.dt = p.const(0.0), 0.5
        with p.loop(3):
            d.u.val = d.u + d.dt
        return d.u

    assert made().item() == 1.5


def test_objects_that_answer_as_they_like():
    class Odd:
        __slots__ = ("__dict__", "__weakref__", "unset")

        def __getattr__(self, name):
            raise RuntimeError(name)

    @p.program
    def made():
        x, odd, deep = p.const(0), Odd(), []
        deep.append(deep)
        for _ in range(3_000):
            deep = [deep]
        with p.loop(3):
            x.val = x + (odd is not deep)
        return x

    assert made().item() == 3


def test_attributes_are_as_they_were_behind_an_error():
    """What is watched is itself again."""

    @p.program
    def made():
        s = p.input([], ti.i32)
        kept = {"x": s}
        try:
            with p.loop(3):
                raise KeyError("mine")
        except KeyError:
            pass
        assert type(kept["x"]) is t.Tensor
        return s

    with pytest.raises(RuntimeError, match="an exception left a block"):
        made(1)
