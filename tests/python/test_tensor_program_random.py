"""Made-up programs over extents that only the run knows, beside NumPy: parts, stores, numbers that follow from extents.

A program is a list of steps that hold for each of several sets of extents. It is traced once and run with all of them.
`AEROGEL_N_PROGRAMS` and `AEROGEL_FIRST_SEED` choose which.
"""

import os
import random

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

t = ti.tensor
N_PROGRAMS = int(os.environ.get("AEROGEL_N_PROGRAMS", "40"))
FIRST = int(os.environ.get("AEROGEL_FIRST_SEED", "0"))


class Host:
    """The steps by NumPy."""

    xp = np

    @staticmethod
    def memory(x):
        return x.copy()

    @staticmethod
    def zeros(shape):
        return np.zeros(shape, np.int32)

    @staticmethod
    def small(x):
        return (x % 17).astype(np.int32)

    @staticmethod
    def loop(n, body):
        for k in range(n):
            body(k)


class Traced:
    """The steps of a program."""

    xp = t

    @staticmethod
    def memory(x):
        return x + 0

    @staticmethod
    def zeros(shape):
        return p.buffer(shape, ti.i32)

    @staticmethod
    def small(x):
        return (x % 17).astype(ti.i32)

    @staticmethod
    def loop(n, body):
        with p.loop(n) as k:
            body(k)


def bound(x, axis, b):
    """A bound of a part: a number, none, or one that follows from the extent."""
    return b(x.shape[axis]) if callable(b) else b


def key_of(x, parts):
    out, axis = [], 0
    for part in parts:
        if isinstance(part, tuple):
            lo, hi, step = part
            out.append(slice(bound(x, axis, lo), bound(x, axis, hi), step))
        else:
            out.append(part)
        axis += part is not None
    return tuple(out)


class Maker:
    """Makes up steps, of which each is tried on arrays of all sets of extents before it is taken."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.sets = [[self.random.choice([1, 2, 3, 4, 6, 9]) for _ in range(2)] for _ in range(3)]
        if self.random.random() < 0.3:
            self.sets[2] = [self.random.choice([0, 1]), 5]
        self.states = [[self.given(e, k) for k in range(3)] for e in self.sets]
        self.inputs = [[x.copy() for x in state] for state in self.states]
        self.steps = []
        self.said = []

    def given(self, extents, k):
        n, m = extents
        shape = [(n,), (n, m), (m,)][k]
        numbers = random.Random(k)
        return np.array([numbers.randint(0, 16) for _ in range(int(np.prod(shape)))], np.int32).reshape(shape)

    def part(self, fits):
        choose = self.random.choice
        if fits and self.random.random() < 0.2:
            return choose([0, -1, 1, -2])
        bounds = [
            None, None, 0, 1, 2, 3, -1, -2, -3, 7, -7,
            lambda n: n // 2, lambda n: n - 1, lambda n: n * 2 - 3, lambda n: n % 3,
        ]  # fmt: skip
        return (choose(bounds), choose(bounds), choose([None, None, None, 1, 2, 3, -1, -2]))

    def key(self, ndim):
        parts = [self.part(True) for _ in range(self.random.randint(1, ndim))]
        if self.random.random() < 0.1:
            parts.insert(0, None)
        return parts

    def propose(self):
        choose = self.random.choice
        a, b = choose(range(len(self.states[0]))), choose(range(len(self.states[0])))
        x = self.states[0][a]
        kind = choose(
            ["part", "part", "part", "store", "store", "store", "number", "add", "sum", "zeros", "move", "loop"]
        )
        k = self.random.randint(-5, 5)
        if kind == "part" and x.ndim:
            parts = self.key(x.ndim)
            return f"v{a}[{parts}]", lambda on, v: v.append(v[a][key_of(v[a], parts)])
        if kind == "store" and x.ndim:
            parts = [q for q in self.key(x.ndim) if q is not None]
            of = choose([None, b])

            def store(on, v):
                y = v[a] = on.memory(v[a])
                y[key_of(y, parts)] = k if of is None else v[b]
                v[a] = y

            def fits(v):
                shape = v[a][key_of(v[a], parts)].shape
                return of is None or shape[len(shape) - v[b].ndim :] == v[b].shape

            return f"v{a}[{parts}] = {'number' if of is None else b}", store, fits
        if kind == "number" and x.ndim:
            axis = self.random.randrange(x.ndim)
            how = choose(
                [lambda n: n * 3 - 2, lambda n: (n + 5) // 2, lambda n: 7 - n, lambda n: n * n % 5, lambda n: -n // 2]
            )
            return f"v{a} + number", lambda on, v: v.append(on.small(v[a] + how(v[a].shape[axis])))
        if kind == "add":
            added = lambda on, v: v.append(on.small(v[a] + v[b]))  # noqa: E731
            return f"v{a} + v{b}", added, lambda v: v[a].shape == v[b].shape
        if kind == "sum" and x.ndim:
            axis, keeps = self.random.randrange(x.ndim), self.random.random() < 0.5
            return f"sum v{a}", lambda on, v: v.append(on.small(on.xp.sum(v[a], axis=axis, keepdims=keeps)))
        if kind == "zeros" and x.ndim:
            how = choose([lambda n: n * 2 + 1, lambda n: (n + 1) // 2, lambda n: n % 4])
            return f"zeros of v{a}", lambda on, v: v.append(on.zeros([how(v[a].shape[0])]))
        if kind == "move" and x.ndim:
            axis = self.random.randrange(x.ndim)
            how = choose(["flip", "concat", "repeat", "roll"])

            def move(on, v):
                made = {
                    "flip": lambda: on.xp.flip(v[a], axis=axis),
                    "concat": lambda: getattr(on.xp, "concat", np.concatenate)([v[a], v[b]], axis=axis),
                    "repeat": lambda: on.xp.repeat(v[a], 2, axis=axis),
                    "roll": lambda: on.xp.roll(v[a], 1, axis),
                }[how]()
                v.append(made)

            return f"{how} v{a} v{b} along {axis}", move
        if kind == "loop" and x.ndim:

            def loop(on, v):
                y = v[a] = on.memory(v[a])

                def body(turn):
                    y[1:-1] = y[:-2] + turn

                on.loop(2, body)
                v[a] = on.small(y)

            return f"loop over v{a}", loop
        return None

    def holds(self, state, step, fits):
        """Whether a step has a meaning for arrays, without an axis of one stretched to another extent."""
        try:
            if not fits(state):
                return False
            step(Host, state)
        except (IndexError, ValueError):
            return False
        return max(x.size for x in state) < 400

    def make(self, n):
        for _ in range(n):
            proposed = self.propose()
            if proposed is None:
                continue
            text, step, *fits = proposed
            tried = [[x.copy() for x in state] for state in self.states]
            if all(self.holds(state, step, *(fits or [lambda v: True])) for state in tried):
                if len({tuple(x.ndim for x in state) for state in tried}) == 1:
                    self.states = tried
                    self.steps.append(step)
                    self.said.append(text)
        return self


@pytest.mark.parametrize("seed", range(FIRST, FIRST + N_PROGRAMS))
def test_programs_of_any_extents_are_what_arrays_are(seed):
    ti.init(arch=ti.cpu, log_level="error")
    made = Maker(seed).make(14)

    @p.program
    def program():
        n = p.input([-1], ti.i32)
        both = p.input([n.shape[0], -1], ti.i32)
        v = [n, both, p.input([both.shape[1]], ti.i32)]
        for step in made.steps:
            step(Traced, v)
        return tuple(v)

    for given, expected in zip(made.inputs, made.states):
        try:
            got = program(*given)
        except Exception as e:
            raise AssertionError("\n".join([str([x.shape for x in given]), *made.said])) from e
        for k, (x, y) in enumerate(zip(got, expected)):
            text = "\n".join([f"v{k} of {[x.shape for x in given]}: {x.tolist()} is not {y.tolist()}", *made.said])
            assert x.shape == y.shape, text
            assert np.array_equal(x.numpy(), y), text
