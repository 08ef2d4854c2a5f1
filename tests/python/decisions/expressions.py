"""The text of a pattern: as the source of a kernel, and its value operation by operation.

    (x - y) / d    ->    (X[i] - self.y) / 0.1    and    numpy.divide(numpy.subtract(x, y), d)

Constants are Python's: what is computed of them alone is computed in double, and rounded once where it meets a value of a
kernel, to the type of literals (`default_fp`) or to that value's type if it is wider.
"""

import ast
import functools
import math
import operator

import numpy as np

from decisions.formats import WORK, convert, from_double, promote, rounded

# Names in patterns, and what they are in a kernel.
NAMES = {name: f"ti.{name}" for name in ("floor", "ceil", "round", "sqrt", "rsqrt", "abs", "min", "max", "select")}
NAMES |= {name: f"ti.math.{name}" for name in ("clamp", "mix", "fract", "mod", "isnan")} | {"sign": "ti.math.sign"}
# Functions that are other functions; each parameter is used as it is given.
MACROS = {
    "clamp": ("v, lo, hi", "min(hi, max(lo, v))"),
    "mix": ("v, u, t", "v * (1.0 - t) + u * t"),
    "fract": ("v", "v - floor(v)"),
    "mod": ("v, m", "v % m"),
}
# Functions of scalars by vectors and matrices; the elements of one are of one type.
VECTORS = {
    "cross": ("a, b, c, e", "ti.Vector([a, b]).cross(ti.Vector([c, e]))"),
    "det": ("a, b, c, e", "ti.Matrix([[a, b], [c, e]]).determinant()"),
    "over": ("a, b, c", "(ti.Vector([a, b]) / c)[0]"),
    "times": ("a, b, c", "(ti.Vector([a, b]) * c)[1]"),
}
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARISONS = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class ConstantFails(Exception):
    """Python raises an error where it computes the constants of a pattern."""


@functools.cache
def parsed(text):
    """The tree of a text."""
    return ast.parse(text, mode="eval").body


class _Names(ast.NodeTransformer):
    def __init__(self, names):
        self.names = names

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in VECTORS:
            params, body = VECTORS[node.func.id]
            given = [ast.unparse(self.visit(arg)) for arg in node.args]
            return ast.parse(render(body, dict(zip(params.split(", "), given))), mode="eval").body
        return self.generic_visit(node)

    def visit_Name(self, node):
        return parsed(self.names.get(node.id) or NAMES.get(node.id, node.id))


def render(text, names):
    """The text of a pattern as kernel source, with the sources of its operands."""
    return ast.unparse(_Names(names).visit(ast.parse(text, mode="eval").body))


def operands(text):
    """The operands that a pattern names."""
    return {n.id for n in ast.walk(parsed(text)) if isinstance(n, ast.Name)} & {"x", "y", "d", "w"}


class Value:
    """Numbers of a kernel: a kind (`f32`, or `i32` and `u1` of decisions) and an array."""

    __slots__ = ("array", "kind")

    def __init__(self, kind, array):
        self.kind, self.array = kind, array


class Evaluator:
    """The value of patterns on operands, which are Python's numbers or `Value`s; `literal` is the kind of Python's floats."""

    def __init__(self, literal, flavour="kernel"):
        self.literal, self.flavour = literal, flavour

    def of(self, text, env):
        """The value of a text; parts that texts share are computed once for each `env`."""
        with np.errstate(all="ignore"):
            return self._node(parsed(text), env)

    def _node(self, node, env):
        if isinstance(node, ast.Name):
            return env[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        parts = env.setdefault("parts", {})
        key = ast.dump(node)
        if key not in parts:
            parts[key] = self._computed(node, env)
        return parts[key]

    def _computed(self, node, env):
        if isinstance(node, ast.BinOp):
            return self._binary(type(node.op), self._node(node.left, env), self._node(node.right, env))
        if isinstance(node, ast.UnaryOp):
            value = self._node(node.operand, env)
            return Value(value.kind, -value.array) if isinstance(value, Value) else -value
        if isinstance(node, ast.Compare):
            a, b = self._node(node.left, env), self._node(node.comparators[0], env)
            compare = COMPARISONS[type(node.ops[0])]
            if not isinstance(a, Value) and not isinstance(b, Value):
                return compare(a, b)
            _, a, b = self.met(a, b)
            return Value("u1", compare(a, b))
        assert isinstance(node, ast.Call), ast.dump(node)
        name, given = node.func.id, [self._node(arg, env) for arg in node.args]
        if name in MACROS and self.flavour == "kernel":
            params, body = MACROS[name]
            # Parameters are values of the kernel; an integer meets floats as a constant does.
            given = [self.value(v) if isinstance(v, float) else v for v in given]
            return self._node(parsed(body), dict(zip(params.split(", "), given)))
        return getattr(self, name)(*given)

    def value(self, a, kind=None):
        """A constant as a value of a kernel."""
        if isinstance(a, Value):
            return a
        literal = kind if kind is not None and (isinstance(a, int) or self.flavour == "tensor") else self.literal
        return Value(literal, from_double(literal, float(a)))

    def met(self, a, b):
        """Two operands as arrays of one kind."""
        a, b = self.value(a, getattr(b, "kind", None)), self.value(b, getattr(a, "kind", None))
        kind = promote(a.kind, b.kind)
        return kind, convert(kind, a.kind, a.array), convert(kind, b.kind, b.array)

    def _binary(self, op, a, b):
        if not isinstance(a, Value) and not isinstance(b, Value):
            try:
                return OPERATORS[op](a, b)
            except ArithmeticError as error:
                raise ConstantFails(str(error)) from None
        if op is ast.Div and self.flavour == "kernel":
            # Integers are divided as floats of the type of literals.
            a, b = (float(v) if isinstance(v, int) else v for v in (a, b))
        kind, a, b = self.met(a, b)
        if op in (ast.FloorDiv, ast.Mod):
            # NumPy has the algorithm of Python's floats.
            return Value(kind, rounded(kind, (np.floor_divide if op is ast.FloorDiv else np.remainder)(a, b)))
        return Value(kind, rounded(kind, OPERATORS[op](a, b)))

    def _unary(self, function, a):
        a = self.value(a)
        return Value(a.kind, rounded(a.kind, function(a.array)))

    def floor(self, a):
        return self._unary(np.floor, a)

    def ceil(self, a):
        return self._unary(np.ceil, a)

    def sqrt(self, a):
        """The root of a constant is Python's."""
        if isinstance(a, Value):
            return self._unary(np.sqrt, a)
        if a < 0:
            raise ConstantFails("a root of a negative constant")
        return math.sqrt(a)

    def rsqrt(self, a):
        a = self.value(a)
        root = rounded(a.kind, np.sqrt(a.array))
        return Value(a.kind, rounded(a.kind, root.dtype.type(1) / root))

    def abs(self, a):
        return self._unary(np.abs, a) if isinstance(a, Value) else abs(a)

    def round(self, a):
        """Halves go away from zero; the tensors' to even."""

        def away(v):
            whole = np.trunc(v)
            return np.copysign(whole + np.copysign(v.dtype.type(1), v) * (np.abs(v - whole) >= 0.5), v)

        return self._unary(np.rint if self.flavour == "tensor" else away, a)

    def sign(self, a):
        return self._unary(lambda v: np.where((v > 0) | (v < 0), np.copysign(v.dtype.type(1), v), v), a)

    def min(self, a, b):
        kind, a, b = self.met(a, b)
        if self.flavour == "tensor":
            return Value(kind, np.minimum(a, b))
        return Value(kind, np.where(np.isnan(b) | (a < b), a, b))

    def max(self, a, b):
        kind, a, b = self.met(a, b)
        if self.flavour == "tensor":
            return Value(kind, np.maximum(a, b))
        return Value(kind, np.where(np.isnan(b) | (a > b), a, b))

    def select(self, condition, a, b):
        kind, a, b = self.met(a, b)
        return Value(kind, np.where(condition.array, a, b))

    def elements(self, *given):
        """Numbers as elements of one vector or matrix."""
        kinds = [self.value(v).kind for v in given if not isinstance(v, int)]
        if not kinds:
            raise ConstantFails("a vector of integers")
        kind = functools.reduce(promote, kinds)
        found = [self.value(v, kind) for v in given]
        return [Value(kind, convert(kind, v.kind, v.array)) for v in found]

    def cross(self, a, b, c, e):
        (a, b), (c, e) = self.elements(a, b), self.elements(c, e)
        return self._binary(ast.Sub, self._binary(ast.Mult, a, e), self._binary(ast.Mult, b, c))

    def det(self, a, b, c, e):
        return self.cross(*self.elements(a, b, c, e))

    def over(self, a, b, c):
        return self._binary(ast.Div, self.elements(a, b)[0], c)

    def times(self, a, b, c):
        return self._binary(ast.Mult, self.elements(a, b)[1], c)

    def isnan(self, a):
        return Value("u1", np.isnan(self.value(a).array))

    def int(self, a):
        """NaN and what is out of range become the smallest `i32`."""
        wide = np.asarray(self.value(a).array, np.float64)
        inside = (wide > -2147483649.0) & (wide < 2147483648.0)
        return Value(
            "i32", np.where(inside, np.where(inside, wide, 0), -2147483648.0).astype(np.int64).astype(np.int32)
        )


def scalar(kind, number):
    """A value of a kernel that is one number."""
    return Value(kind, from_double(kind, number).astype(WORK[kind]))
