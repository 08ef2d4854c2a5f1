"""The patterns on `ti.tensor`: constants, scalars and arrays as operands, compared with NumPy's own arithmetic.

`min`, `max`, `round`, `%` and `//` are NumPy's there: NaN goes through, halves go to even, a remainder is exact.
"""

import ast
import math

import numpy as np

import aerogel.tensor as T
from decisions import inputs, patterns
from decisions.expressions import ConstantFails, Evaluator, Value, operands, parsed, scalar
from decisions.formats import bits_of, from_double, stored
from decisions.programs import SLOTS, Failure


def _or_python(function, of_numbers):
    """A function of tensors that leaves constants to Python."""
    return lambda v: of_numbers(v) if isinstance(v, (int, float)) else function(v)


FUNCTIONS = {"floor": T.floor, "ceil": T.ceil, "sqrt": _or_python(T.sqrt, math.sqrt), "abs": _or_python(T.abs, abs)}
FUNCTIONS |= {"isnan": T.isnan}
FUNCTIONS |= {"min": T.minimum, "max": T.maximum, "round": T.round, "select": T.where}
# Kernels' own functions, and operations that NumPy computes otherwise.
LEFT_OUT = {"clamp", "mix", "fract", "mod", "rsqrt", "sign", "int", "cross", "det", "over", "times"}
DECISIONS = [
    "floor({v})",
    "ceil({v})",
    "round({v})",
    "{v} < 0",
    "{v} == 0",
    "{v} <= y",
    "{v} == x",
    "isnan(sqrt({v}))",
    "{v}",
]


def fitting():
    """The expressions that mean the same for tensors."""
    found = []
    for text in patterns.expressions():
        nodes = list(ast.walk(parsed(text)))
        names = {n.func.id for n in nodes if isinstance(n, ast.Call)}
        if not names & LEFT_OUT:
            found.append(text)
    return found


def check(rng, kind, n, n_patterns):
    """How many decisions tensors took, and those that differ."""
    sources, constants = {"x": "array"}, {}
    for slot in ("d", "y", "w"):
        sources[slot] = ("constant", "array", "element")[rng.integers(3)]
        if sources[slot] != "array":
            constants[slot] = inputs.constant(kind, rng, slot, constants.get("d", 0.1))
    fixed = {s: np.broadcast_to(from_double(kind, c), n) for s, c in constants.items()}
    rows = inputs.operands(kind, rng, n, fixed)
    env, given = {}, {}
    for slot, source in sources.items():
        if source == "constant":
            env[slot] = given[slot] = constants[slot]
        elif source == "element":
            env[slot] = scalar(kind, constants[slot])
            given[slot] = T.asarray(stored(kind, rows[slot][:1]))
        else:
            env[slot] = Value(kind, rows[slot])
            given[slot] = T.asarray(stored(kind, rows[slot]))
    texts, decided, failures = fitting(), 0, []
    for _ in range(n_patterns):
        text = patterns.whole(texts[rng.integers(len(texts))], DECISIONS[rng.integers(len(DECISIONS))])
        if "x" not in operands(text):
            continue
        try:
            right = Evaluator(kind, "tensor").of(text, dict(env))
        except ConstantFails:
            continue
        got = eval(compile(ast.Expression(parsed(text)), text, "eval"), FUNCTIONS | given)  # noqa: S307
        wanted = np.broadcast_to(right.array, n)
        found = np.broadcast_to(got.numpy().astype(wanted.dtype), n)
        differs = found != wanted
        if right.kind == kind:
            differs = bits_of(kind, np.where(found == 0, 0, found)) != bits_of(kind, np.where(wanted == 0, 0, wanted))
        decided += n
        if differs.any():
            at = int(np.nonzero(differs)[0][0])
            values = {s: constants.get(s, float(rows[s][at])) for s in SLOTS if s in operands(text)}
            shape = f"tensor, {differs.sum()} of {n} rows"
            failures.append(Failure(text, kind, shape, sources, values, found[at], wanted[at]))
    return decided, failures
