"""What holds values otherwise, and what a block makes first: functions, deques, bytes, keys that it asks for."""

import array
import collections
import functools

import aerogel as ti
import pytest
from aerogel.tensor import programs as p

t = ti.tensor


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu, log_level="error")


def test_what_a_block_may_not_bind_is_refused_by_every_trace():
    d = {"n": 4}

    @p.program
    def one():
        x = p.const(0)
        with p.if_cond(p.const(0) == 1):
            x.val = 1  # What is learned here has the function traced again, and then `d` is otherwise.
            d["n"] = 3
        return p.const(d["n"])

    with pytest.raises(ValueError, match="is bound to another value"):
        one()


def of_a_key_with_another_name(s):
    d = {"a": s}
    with p.if_cond(s > 100):
        d["b"] = d.pop("a")
    return d["b"]


def of_nothing(s):
    m = None
    with p.if_cond(s > 100):
        m = 3
    return p.const(5 if m is None else m)


def of_nothing_to_a_tensor(s):
    m = None
    with p.if_cond(s > 100):
        m = p.const(3)
    return p.const(5) if m is None else m + 0


def of_text(s):
    m = "five"
    with p.if_cond(s > 100):
        m = "three"
    return p.const(5 if m == "five" else 3)


def of_text_in_a_loop(s):
    state, n = "a", p.const(0)
    with p.loop(3):
        if state == "a":
            state = "b"
        else:
            n.val = n + 1
    return n


@pytest.mark.parametrize(
    "function",
    [of_a_key_with_another_name, of_nothing, of_nothing_to_a_tensor, of_text, of_text_in_a_loop],
    ids=lambda f: f.__name__,
)
def test_what_is_no_number_is_bound_too(function):
    with pytest.raises(ValueError, match="is bound to another value"):
        p.program(lambda: function(p.const(1) + 0))()


def test_what_is_no_number_has_advice_of_its_own():
    with pytest.raises(ValueError, match="let a number of the program say what holds"):
        p.program(lambda: of_text_in_a_loop(p.const(1) + 0))()


def test_an_object_that_answers_by_an_error_leaves_no_tensor_watched():
    class Bad(list):
        def __len__(self):
            raise RuntimeError("no length")

    kept = []

    @p.program
    def one():
        x = p.const(1)
        kept.append(x)
        bad = Bad()
        with p.loop(2):
            x.val += 1 if isinstance(bad, list) else 2
        return x

    with pytest.raises(RuntimeError, match="no length"):
        one()
    assert all(type(x) is t.Tensor for x in kept)


def of_an_attribute_of_a_function(s):
    def f():
        f.n = f.n + 1

    f.n = s
    with p.loop(3):
        f()
    return f.n


def of_a_default(s):
    def f(acc=[s]):  # noqa: B006
        acc[0] = acc[0] + 1
        return acc[0]

    with p.loop(3):
        f()
    return f.__defaults__[0][0]


def of_a_default_by_name(s):
    def f(*, acc=[s]):  # noqa: B006
        acc[0] = acc[0] + 1

    with p.loop(3):
        f()
    return f.__kwdefaults__["acc"][0]


def of_a_partial_function(s):
    def g(acc):
        acc[0] = acc[0] + 1

    values = [s]
    f = functools.partial(g, values)
    del values
    with p.loop(3):
        f()
    return f.args[0][0]


def of_bytes(s):
    n = bytearray([1])
    with p.loop(3):
        n[0] += 1
    return s + n[0]


def of_an_array_of_python_s(s):
    n = array.array("i", [1])
    with p.loop(3):
        n[0] += 1
    return s + n[0]


def of_a_deque(s):
    last = collections.deque([s, s * 2], maxlen=2)
    with p.loop(3):
        last.append(last[0] + last[1])
    return last[1]


def of_a_set(s):
    seen = {1}
    with p.loop(3):
        seen.add(len(seen) + 1)
    return s + len(seen)


OTHERS = [
    of_an_attribute_of_a_function,
    of_a_default,
    of_a_default_by_name,
    of_a_partial_function,
    of_bytes,
    of_an_array_of_python_s,
    of_a_deque,
    of_a_set,
]


@pytest.mark.parametrize("function", OTHERS, ids=lambda f: f.__name__)
def test_what_holds_others_otherwise_is_watched(function):
    with pytest.raises(ValueError, match="is bound to another value|is changed"):
        p.program(lambda: function(p.const(1) + 0))()


def test_what_notes_names_alone_is_left():
    seen, order = set(), collections.deque()

    @p.program
    def one():
        x = p.const(0)
        with p.loop(3):
            seen.add("x")
            order.append("x")
            x.val += 1
        return x

    assert one().item() == 3 and seen == {"x"} and set(order) == {"x"}


def of_a_key_that_it_gets(s):
    d = {}
    with p.loop(3):
        d["a"] = d.get("a", p.const(0)) + 1
    return d["a"] + s


def of_a_key_that_it_sets_if_it_is_not_there(s):
    d = {}
    with p.loop(3):
        d["a"] = d.setdefault("a", 0) + 1
    return s + d["a"]


def of_a_key_in_a_dictionary(s):
    d = {}
    with p.loop(3):
        d["a"] = d["a"] + 1 if "a" in d else s
    return d["a"]


def of_an_attribute_that_it_asks_for(s):
    class Sums:
        pass

    sums = Sums()
    with p.loop(3):
        sums.n = getattr(sums, "n", p.const(0)) + 1
    return sums.n + s


def of_a_key_that_two_branches_get(s):
    d = {}
    for _ in range(2):
        with p.if_cond(s > 100):
            d["a"] = d.get("a", p.const(0)) + 1
    return d["a"] + s


ASKED = [
    of_a_key_that_two_branches_get,
    of_a_key_that_it_gets,
    of_a_key_that_it_sets_if_it_is_not_there,
    of_a_key_in_a_dictionary,
    of_an_attribute_that_it_asks_for,
]


@pytest.mark.parametrize("function", ASKED, ids=lambda f: f.__name__)
def test_what_a_loop_makes_and_asks_for_is_refused(function):
    with pytest.raises(ValueError, match=r"is made in a block that asks whether it is there \(.*_blocks.py:\d+\)"):
        p.program(lambda: function(p.const(1) + 0))()


def test_other_keys_than_those_that_it_asks_for_are_its_own():
    @p.program
    def one():
        x, options, d = p.const(0), {"scale": 2}, {}
        with p.loop(3):
            options["kept"] = x + options.get("scale", 1)
            if "b" not in d:
                d["a"] = options["kept"]
            x.val = d["a"]
        return x

    assert one().item() == 6


def test_what_a_loop_makes_and_reads_in_the_same_turn_is_no_error():
    class Steps:
        pass

    @p.program
    def one():
        x, steps, d = p.const(0), Steps(), {}
        with p.loop(3):
            steps.k = x + 1
            d["a"] = steps.k * 2
            x.val = d["a"]
        return x

    assert one().item() == 14
