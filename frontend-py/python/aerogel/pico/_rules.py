"""The table of chain rules: for each operation, the gradients by its operands from the gradient by its result."""

from __future__ import annotations

import ast
import inspect
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel.pico._op import OpCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aerogel.pico._op import Op


class Pattern(NamedTuple):
    """The operations that a rule is for.

    Attributes:
        code: Their `OpCode`.
        name: The name by which the rule takes the operation's result; ``None`` if it needs only the gradient.
        sources: How many operands they have; ``None`` for any number.
    """

    code: OpCode
    name: str | None = None
    sources: int | None = None

    def matches(self, op: Op) -> bool:
        """Whether the rule is for an operation."""
        return op.code is self.code and self.sources in (None, len(op.src))


class PatternMatcher:
    """Chain rules, of which the first that matches an operation is applied.

    >>> from aerogel import pico as pg
    >>> print(pg.PatternMatcher([(pg.Pattern(pg.OpCode.NEG), lambda output_grad: (-output_grad,))]))
    NEG          lambda output_grad: (-output_grad,)

    Args:
        rules: Pairs of a `Pattern` and a function. That takes ``output_grad``, the gradient by the operation's result,
            and by the pattern's name the result, whose ``src`` are the operands. It returns a tuple: for each
            operand the gradient, or ``None``. Where an operand was broadcast, its gradient is summed.
    """

    def __init__(self, rules: Iterable[tuple[Pattern, Callable[..., Any]]]) -> None:
        self.rules = list(rules)

    def add(self, pattern: Pattern, rule: Callable[..., Any]) -> None:
        """Adds a rule, which comes before the others: it replaces those that match the same operations."""
        self.rules.insert(0, (pattern, rule))

    def remove(self, rule: Callable[..., Any]) -> None:
        """Takes a rule out of the table.

        Raises:
            ValueError: If it is not in the table.
        """
        kept = [row for row in self.rules if row[1] is not rule]
        if len(kept) == len(self.rules):
            raise ValueError("the rule is not in the table")
        self.rules = kept

    def find(self, op: Op) -> tuple[Pattern, Callable[..., Any]] | None:
        """The row that matches an operation, or ``None``."""
        return next((row for row in self.rules if row[0].matches(op)), None)

    def rewrite(self, input: Any, output_grad: Any) -> tuple[Any, ...] | None:  # noqa: A002
        """The gradients by the operands of a tensor's operation, or ``None`` if no rule matches.

        Raises:
            ValueError: If the number of gradients that the rule returns is not that of the operands.
        """
        row = self.find(input.op)
        if row is None:
            return None
        pattern, rule = row
        made = rule(output_grad, **({} if pattern.name is None else {pattern.name: input}))
        if not isinstance(made, tuple) or len(made) != len(input.op.src):
            n = len(made) if isinstance(made, tuple) else "no tuple of"
            raise ValueError(
                f"the chain rule of {input.op.code.name} returns {n} gradients, and the operation has "
                f"{len(input.op.src)} operands"
            )
        return made

    def __str__(self) -> str:
        rows = [(p.code.name + (f" of {p.sources}" if p.sources else ""), _text(rule)) for p, rule in self.rules]
        return "\n".join(f"{name:12} {text}" for name, text in rows)

    __repr__ = __str__


def _text(rule: Callable[..., Any]) -> str:
    """The text of a rule that is written on one line."""
    try:
        line = inspect.getsourcelines(rule)[0][0]
    except (OSError, TypeError):
        return getattr(rule, "__name__", repr(rule))
    if "lambda" not in line:
        return getattr(rule, "__name__", repr(rule))
    text = line[line.index("lambda") :].strip()
    # Without the brackets of the table, which close behind it.
    while text:
        try:
            return ast.unparse(ast.parse(text.rstrip(", "), mode="eval"))
        except SyntaxError:
            text = text[:-1]
    return getattr(rule, "__name__", repr(rule))


def _power(x: Any, exponent: float) -> Any:
    """The derivative of a power, which is zero for the exponent 0 at 0, too."""
    return x * 0.0 if exponent == 0 else exponent * x ** (exponent - 1)


def _positive(x: Any) -> Any:
    """1 where a tensor is positive, else 0."""
    from aerogel.pico._tensor import Tensor
    from aerogel.tensor._elementwise import greater

    return Tensor(greater(x._values, 0.0).astype(x.dtype))


def _products(output_grad: Any, input: Any) -> tuple[Any, Any]:  # noqa: A002
    """The gradients of a product of matrices; a vector is one with a single row or column."""
    a, b = input.src
    rows, columns = a.reshape(1, -1) if len(a.shape) == 1 else a, b.reshape(-1, 1) if len(b.shape) == 1 else b
    shape = [*input.shape, 1] if len(b.shape) == 1 else [*input.shape]
    if len(a.shape) == 1:
        shape.insert(len(shape) - 1, 1)
    grad = output_grad.reshape(*shape)
    by_a, by_b = grad @ columns.T, rows.T @ grad
    if len(a.shape) == 1:
        by_a = by_a.reshape(*by_a.shape[:-2], *a.shape)
    return by_a, by_b.reshape(*by_b.shape[:-2], *b.shape) if len(b.shape) == 1 else by_b


def _spread(output_grad: Any, input: Any) -> tuple[Any]:  # noqa: A002
    """The gradient of a sum: the gradient by the result, for each element that was added."""
    from aerogel.pico._tensor import Tensor
    from aerogel.tensor._creation import zeros

    (x,), axis = input.src, input.op.arg
    axes = range(len(x.shape)) if axis is None else [axis] if isinstance(axis, int) else axis
    summed = {k % len(x.shape) for k in axes}
    kept = [1 if k in summed else n for k, n in enumerate(x.shape)]
    return (output_grad.reshape(*kept) + Tensor(zeros(x.shape, output_grad.dtype)),)


def _averaged(output_grad: Any, input: Any) -> tuple[Any]:  # noqa: A002
    """The gradient of a mean: that of a sum by the number of elements in it."""
    return _spread(output_grad * (math.prod(input.shape) / math.prod(input.src[0].shape)), input)


def _scattered(output_grad: Any, input: Any) -> tuple[Any]:  # noqa: A002
    """The gradient of chosen elements: zero for those that are not chosen, a sum for those chosen several times."""
    from aerogel.pico._tensor import Tensor
    from aerogel.tensor._creation import zeros

    (x,) = input.src
    return (Tensor(zeros(x.shape, output_grad.dtype).at[input.op.arg].add(output_grad._values)),)


#: The rules that ``Tensor.backward`` applies. Operations without one have the gradient of tensors.
chain_rules = PatternMatcher([
    (Pattern(OpCode.MATMUL, name="input"), _products),
    (Pattern(OpCode.RECIPROCAL, name="input"), lambda output_grad, input: (-output_grad * input * input,)),
    (Pattern(OpCode.SIN, name="input"), lambda output_grad, input: (output_grad * input.src[0].cos(),)),
    (Pattern(OpCode.COS, name="input"), lambda output_grad, input: (-output_grad * input.src[0].sin(),)),
    (Pattern(OpCode.EXP, name="input"), lambda output_grad, input: (output_grad * input,)),
    (Pattern(OpCode.EXP2, name="input"), lambda output_grad, input: (output_grad * input * math.log(2),)),
    (Pattern(OpCode.LOG, name="input"), lambda output_grad, input: (output_grad / input.src[0],)),
    (Pattern(OpCode.LOG2, name="input"), lambda output_grad, input: (output_grad / (input.src[0] * math.log(2)),)),
    (Pattern(OpCode.LOG10, name="input"), lambda output_grad, input: (output_grad / (input.src[0] * math.log(10)),)),
    (Pattern(OpCode.SQRT, name="input"), lambda output_grad, input: (output_grad / (input * 2),)),
    (Pattern(OpCode.TANH, name="input"), lambda output_grad, input: (output_grad * (1 - input * input),)),
    (Pattern(OpCode.SIGMOID, name="input"), lambda output_grad, input: (output_grad * input * (1 - input),)),
    (Pattern(OpCode.RELU, name="input"), lambda output_grad, input: (output_grad * _positive(input),)),
    (Pattern(OpCode.POW, "input", 1), lambda output_grad, input: (output_grad * _power(input.src[0], input.op.arg),)),
    (Pattern(OpCode.NEG), lambda output_grad: (-output_grad,)),
    (Pattern(OpCode.ADD), lambda output_grad: (output_grad, output_grad)),
    (Pattern(OpCode.SUB), lambda output_grad: (output_grad, -output_grad)),
    (Pattern(OpCode.MUL, "input"), lambda output_grad, input: (input.src[1] * output_grad, input.src[0] * output_grad)),
    (Pattern(OpCode.DIV, "input"), lambda output_grad, input: (each := output_grad / input.src[1], -each * input)),
    (Pattern(OpCode.SUM, name="input"), _spread),
    (Pattern(OpCode.MEAN, name="input"), _averaged),
    (Pattern(OpCode.RESHAPE, name="input"), lambda output_grad, input: (output_grad.reshape(*input.src[0].shape),)),
    (Pattern(OpCode.TRANSPOSE, name="input"), lambda output_grad, input: (output_grad.transpose(*input.op.arg),)),
    (Pattern(OpCode.INDEX, name="input"), _scattered),
])  # fmt: skip
