"""Programs by chance that bind names, elements and attributes in blocks: a trace gives what Python gives, or an error."""

import linecache
import random
import re
from collections import deque

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

PLACES = ["x", "y", "k", "d['a']", "d['b']", "values[0]", "values[1]", "o.a", "o.b"]
READ = [*PLACES, "pair[0]", "pair[1]", "values[-1]", "read()", "s", "q[0]", "q[1]", "(7 if m is None else m)", "f.n"]
BEGIN = """
def made(s, n, total):
    x, y, k = s * 2, s + 1, 1
    d, values, o, pair = {'a': s + 2, 'b': 2}, [s + 3, 3], Held(s), (s + 4, s + 5)
    m, q = None, deque([s, 5], maxlen=2)
    def f(most=[s + 7, 4]): return most[0] + most[1]
    f.n = s + 8
    def read(): return x + d['a']
    def bump():
        nonlocal y
        y = y + 1
"""
END = "    return total + len(values) * 37" + "".join(
    f" + {place} * {3 + 2 * n}" for n, place in enumerate([*PLACES, *READ[-4:], "f()", "pair[0]", "pair[1]"])
)


REFUSED = "is bound to another value|changes its length|is changed in a block|is made in a block that asks"


class Held:
    def __init__(self, s):
        self.a, self.b = s + 6, 4

    def step(self):
        self.a = self.a + self.b
        self.kept = self.a


class Set:
    """What `const` is without a trace."""

    val = 0

    def __add__(self, other):
        return self.val + other


def value(r):
    kind = r.random()
    if kind < 0.6:
        return r.choice(READ)
    return str(r.randint(1, 3)) if kind < 0.75 else f"({value(r)} {r.choice('+-')} {value(r)})"


def statements(r, depth=1, leaves=""):
    """Lines of Python's; `LOOP` and `IF` are blocks, `break` and `continue` leave a loop of the program."""
    before = "    " * depth
    for _ in range(r.randint(1, 4)):
        kind = r.random()
        if kind < 0.4:
            yield f"{before}{r.choice(PLACES)} = {value(r)}"
        elif leaves and kind < 0.45:
            yield f"{before}IF {value(r)} > {r.randint(0, 4)}:"
            yield f"{before}    {r.choice(leaves.split())}"
        elif kind < 0.6 or depth > 3:
            yield f"{before}total.val = total + {value(r)}"
        elif kind < 0.75:
            other = [
                f"m = {value(r)}",
                f"q.append({value(r)})",
                f"f.n = {value(r)}",
                f"f.__defaults__[0][1] = {value(r)}",
            ]
            other += [f"d['c'] = d.get('c', 1) + {value(r)}", "m = None"]
            other += [
                "o.step()",
                "bump()",
                "x, y = y, x",
                f"values.append({value(r)})",
                f"pair = ({value(r)}, pair[0])",
            ]
            yield before + r.choice(other)
        else:
            head = [f"LOOP {r.choice('0123n')}:", f"IF {value(r)} > {r.randint(0, 4)}:", "for _ in range(2):"]
            own = r.choice(head)
            yield before + own
            within = {"LOOP": "break continue", "IF": leaves, "for": ""}[own.split()[0]]
            yield from statements(r, depth + 1, within)


def function(lines, seed, is_traced):
    words = {
        "LOOP": ("with p.loop(%s):", "for _ in range(%s):"),
        "IF": ("with p.if_cond(condition(%s)):", "if %s:"),
        "break": ("p.break_loop()", "break"),
        "continue": ("p.continue_loop()", "continue"),
    }
    text = BEGIN
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        before = line[: len(line) - len(line.lstrip())]
        if word in words:
            line = before + words[word][not is_traced].replace("%s", rest[:-1])
        text += line + "\n"
    text += END + "\n"
    # The text is looked at where it is run.
    file = f"names {seed} {is_traced}"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {
        "p": p,
        "deque": deque,
        "Held": Held,
        "condition": lambda c: p.const(int(c)) > 0 if isinstance(c, bool) else c,
    }
    exec(compile(text, file, "exec"), scope)
    return scope["made"], text


@pytest.fixture(scope="module")
def seen():
    """How many were computed, and how many refused."""
    return {"computed": 0, "refused": 0}


N_PROGRAMS, N_AT_ONCE = 300, 50


@pytest.mark.parametrize("first", range(0, N_PROGRAMS, N_AT_ONCE))
def test_a_trace_gives_what_python_gives_or_an_error(first, seen):
    ti.init(arch=ti.cpu, log_level="error")
    for seed in range(first, first + N_AT_ONCE):
        lines = list(statements(random.Random(seed)))
        traced, text = function(lines, seed, True)
        plain, _ = function(lines, seed, False)
        made = p.program(lambda f=traced: f(p.input([], ti.i64), p.input([], ti.i32), p.const(0, ti.i64)))
        try:
            made.compile()
        except ValueError as e:
            assert re.search(REFUSED, str(e)), text
            seen["refused"] += 1
            continue
        seen["computed"] += 1
        for s, n in ((1, 0), (2, 1), (-3, 2), (4, 3)):
            assert made(np.int64(s), np.int32(n)).item() == plain(s, n, Set()), f"s = {s}, n = {n}{text}"


def test_that_neither_is_the_rule(seen):
    if seen["computed"] + seen["refused"] == N_PROGRAMS:
        assert min(seen.values()) > N_PROGRAMS / 5, seen
