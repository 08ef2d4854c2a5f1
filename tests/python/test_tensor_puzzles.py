"""The tensor puzzles: functions of NumPy's as one expression each, and how many buffers it takes.

What goes in and what comes out lies in memory; what lies between is computed where it is read.
"""

import json
import re
import subprocess
import sys

import aerogel as ti
import numpy as np
import pytest

T = ti.tensor


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu)


def upper(n):
    return T.where(T.arange(n)[:, None] <= T.arange(n), 1, 0)


def where(q, a, b):
    return T.accum("i; i => i", q, a) + T.accum("i; i => i", 1 - q, b)


def diff(a):
    return a - T.gather(a.outside("zero"), T.arange(a.shape[0]) - 1)


def compress(g, v):
    place = T.accum("i; ij => j", g, upper(g.shape[0])) - 1
    return T.where((g[:, None] == 1) & (place[:, None] == T.arange(g.shape[0])), v[:, None], 0).sum(axis=0)


def pad_to(a, n):
    return T.gather(a.outside("zero"), T.arange(n))


def one_hot(a, n):
    return T.where(a[:, None] == T.arange(n), 1, 0)


RNG = np.random.default_rng(3)
A, B, C = (RNG.integers(-9, 10, n).astype("i") for n in (6, 6, 4))
M = RNG.integers(-9, 10, (5, 5)).astype("i")
Q = np.array([1, 0, 0, 1, 1, 0], "i")
LINK = np.array([2, 0, 2, 3, 1, 2], "i")
LENGTHS = np.array([3, 0, 5, 1, 2], "i")
BOUNDS = np.array([-5, 0, 4], "i")

# The inputs, the expression, what NumPy has, and how many temporaries are kept: the result is one of them.
PUZZLES = {
    "arange": ([], lambda: T.accum("ij => j", upper(6)) - 1, np.arange(6), 1),
    "where": ([Q, A, B], where, np.where(Q, A, B), 1),
    "ones": ([], lambda: T.accum("=> i", 1, sizes={"i": 6}), np.ones(6), 1),
    "sum": ([A], lambda a: T.accum("i =>", a), A.sum(), 1),
    "outer": ([A, C], lambda a, b: T.accum("i; j => ij", a, b), np.outer(A, C), 1),
    "diag": ([M], lambda m: T.accum("ii => i", m), np.diag(M), 1),
    "eye": ([], lambda: T.accum("i => ii", T.ones(5, ti.i32)), np.eye(5), 1),
    "triu": ([], lambda: upper(5), np.triu(np.ones((5, 5))), 1),
    "cumsum": ([A], lambda a: T.accum("i; ij => j", a, upper(6)), np.cumsum(A), 1),
    "diff": ([A], diff, np.concatenate([A[:1], np.diff(A)]), 1),
    "vstack": ([A, B], lambda a, b: T.stack([a, b]), np.vstack([A, B]), 1),
    "roll": ([A], lambda a: T.gather(a.outside("wrap"), T.arange(6) + 1), np.roll(A, -1), 1),
    "flip": ([A], lambda a: T.gather(a, 5 - T.arange(6)), A[::-1], 1),
    "compress": ([Q, A], compress, np.concatenate([A[Q == 1], [0, 0, 0]]), 2),
    "pad_to": ([C], lambda a: pad_to(a, 7), np.concatenate([C, [0, 0, 0]]), 1),
    "sequence_mask": (
        [M, LENGTHS],
        lambda m, n: T.where(T.arange(5) < n[:, None], m, 0),
        np.where(np.arange(5) < LENGTHS[:, None], M, 0),
        1,
    ),
    "bincount": ([LINK], lambda a: T.accum("ij => j", one_hot(a, 5)), np.bincount(LINK, minlength=5), 1),
    "scatter_add": (
        [A, LINK],
        lambda v, a: T.accum("i; ij => j", v, one_hot(a, 5)),
        np.bincount(LINK, A, minlength=5),
        1,
    ),
    "flatten": ([M], lambda m: T.accum("ij => 5*i+j", m), M.ravel(), 1),
    "linspace": ([], lambda: T.arange(5) * 0.25 + 1, np.linspace(1, 2, 5), 1),
    "heaviside": ([A, B], lambda a, b: T.where(a == 0, b, T.where(a > 0, 1, 0)), np.heaviside(A, B), 1),
    "repeat": ([C], lambda a: T.accum("i => di", a, sizes={"d": 3}), np.tile(C, (3, 1)), 1),
    "bucketize": (
        [A, BOUNDS],
        lambda v, b: T.accum("ij => i", T.where(v[:, None] >= b, 1, 0)),
        np.digitize(A, BOUNDS),
        1,
    ),
}


@pytest.fixture(scope="module")
def solved():
    """What each puzzle gives, and what is said of it, in a process of its own: equal numbers that somebody holds count."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def solve(inputs, expression):
    made = expression(*map(T.asarray, inputs))
    return T.explain(made), made.tolist()


@pytest.mark.parametrize("puzzle", PUZZLES)
def test_puzzle(puzzle, solved):
    *_, expected, kept = PUZZLES[puzzle]
    text, result = solved[puzzle]
    assert np.array_equal(result, expected)
    found = re.search(r"; (\d+) of \d+ temporar", text)
    assert found and int(found[1]) == kept, text


if __name__ == "__main__":
    ti.init(arch=ti.cpu, log_level="error")
    print(json.dumps({name: solve(*puzzle[:2]) for name, puzzle in PUZZLES.items()}))
