"""A gradient step by step, as pictures, and the operations that forward and reverse mode take."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel.pico._op import Op, OpCode
from aerogel.pico._rules import chain_rules
from aerogel.pico._tensor import Tensor, summed_to
from aerogel.tensor._backward import no_grad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np


class Step(NamedTuple):
    """A step: the operation whose value or gradients are computed, and the values known then.

    Attributes:
        is_forward: Whether its result is computed, and not the gradients by its operands.
        op: The operation.
        values: The results so far.
        gradients: The gradients so far, by the results of operations.
        order: All operations.
    """

    is_forward: bool
    op: Op
    values: dict[Op, np.ndarray]
    gradients: dict[Op, np.ndarray]
    order: list[Op]

    def __str__(self) -> str:
        if self.is_forward:
            return f"forward  {self.op.code.name:12} {_short(self.values[self.op])}"
        parts = [f"{op.code.name} {_short(self.gradients[op])}" for op in dict.fromkeys(self.op.src)]
        return f"backward {self.op.code.name:12} {', '.join(parts)}"

    def _repr_svg_(self) -> str:
        return _picture(self)


class Steps:
    """The steps of a computation and of its gradient; a notebook shows them one by one."""

    def __init__(self, made: list[Step]) -> None:
        self._steps = made

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, k: int) -> Step:
        return self._steps[k]

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def __str__(self) -> str:
        return "\n".join(map(str, self._steps))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = (
            f"<details{' open' if k == 0 else ''}><summary><code>{html.escape(str(step))}</code></summary>"
            f"{step._repr_svg_()}</details>"
            for k, step in enumerate(self._steps)
        )
        return "".join(parts)


def steps(result: Tensor) -> Steps:
    """The steps of a computation forwards, and of its gradient backwards by the table `chain_rules`.

    >>> import aerogel as ti
    >>> from aerogel import pico as pg
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> print(pg.steps(pg.exp(pg.Tensor(0.0)) * pg.Tensor(3.0)))
    forward  BUFFER       0
    forward  EXP          1
    forward  BUFFER       3
    forward  MUL          3
    backward MUL          EXP 3, BUFFER 1
    backward EXP          BUFFER 3

    Args:
        result: A tensor with one element.

    Raises:
        ValueError: If it has several.
        NotImplementedError: If no chain rule matches an operation.
    """
    if result.shape != ():
        raise ValueError(f"`steps` differentiates a scalar, and the result has the shape {result.shape}: take its sum")
    order, made = result.op.toposort(), []
    values: dict[Op, np.ndarray] = {}
    for op in order:
        values = {**values, op: op.values.detach().numpy()}
        made.append(Step(True, op, values, {}, order))
    with no_grad():
        gradients = {result.op: Tensor(1.0, dtype=result.dtype)}
        for op in reversed(order):
            if not op.src or op not in gradients or op.code is OpCode.DETACH:
                continue
            _go_back(op, gradients)
            shown = {op: gradient.value for op, gradient in gradients.items()}
            made.append(Step(False, op, values, shown, order))
    return Steps(made)


def _go_back(op: Op, gradients: dict[Op, Tensor]) -> None:
    """Adds the gradients by an operation's operands."""
    parts = chain_rules.rewrite(_given(op), gradients[op])
    if parts is None:
        raise NotImplementedError(f"no chain rule matches {op.code.name}: add one by `chain_rules.add`")
    for source, part in zip(op.src, parts):
        part = Tensor(summed_to(Tensor(0.0 if part is None else part)._values, source.shape))
        gradients[source] = gradients[source] + part if source in gradients else part


def _given(op: Op) -> Tensor:
    return Tensor._of(op.values.detach(), op)


class Counts(NamedTuple):
    """How many operations a function takes, and its derivatives beside it.

    Attributes:
        function: The function itself.
        reverse: From the result to all arguments.
        forward: From each argument to the result.
    """

    function: int
    reverse: int
    forward: tuple[int, ...]

    def __str__(self) -> str:
        each = " + ".join(map(str, self.forward))
        return f"function {self.function}, reverse mode {self.reverse}, forward mode {each} = {sum(self.forward)}"


def count(function: Callable[..., Tensor], *args: Any) -> Counts:
    """Counts the operations of a function of numbers, of its gradient, and of its derivative by each argument.

    Both modes apply the same table `chain_rules`; forward mode passes through the operations once for each argument.

    >>> import aerogel as ti
    >>> from aerogel import pico as pg
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> print(pg.count(lambda x1, x2: pg.exp(x1) * pg.sin(x2) ** 2, 9.0, 10.0))
    function 4, reverse mode 8, forward mode 2 + 6 = 8

    Args:
        function: It takes tensors and returns one, by elementwise operations.
        args: The numbers to call it with.

    Raises:
        NotImplementedError: If no chain rule matches an operation, or it is not elementwise.
    """
    given = [Tensor(x) for x in args]
    with no_grad():
        order = function(*given).op.toposort()
        reverse = _operations(_reverse(order, [x.op for x in given]), order)
        forward = tuple(_operations([_forward(order, x.op)], order) for x in given)
    return Counts(sum(bool(op.src) for op in order), reverse, forward)


def _operations(results: list[Tensor], besides: list[Op]) -> int:
    """How many operations results depend on, besides those of the function."""
    needed = {op for x in results for op in x.op.toposort() if op.src}
    return len(needed.difference(besides))


def _dependent(order: list[Op], on: set[Op]) -> set[Op]:
    """The operations whose results depend on some."""
    found: set[Op] = set(on)
    for op in order:
        if op.code is not OpCode.DETACH and any(source in found for source in op.src):
            found.add(op)
    return found


def _parts(op: Op, gradient: Tensor) -> tuple[Any, ...]:
    if any(source.shape != op.shape for source in op.src):
        raise NotImplementedError(f"`count` counts elementwise operations on numbers, and {op.code.name} is not one")
    parts = chain_rules.rewrite(_given(op), gradient)
    if parts is None:
        raise NotImplementedError(f"no chain rule matches {op.code.name}: add one by `chain_rules.add`")
    return parts


def _reverse(order: list[Op], wanted: list[Op]) -> list[Tensor]:
    """The gradients by some operations."""
    on_path, gradients = _dependent(order, set(wanted)), {order[-1]: Tensor(1.0)}
    for op in reversed(order):
        if not op.src or op not in gradients:
            continue
        for source, part in zip(op.src, _parts(op, gradients[op])):
            if source in on_path and part is not None:
                gradients[source] = gradients[source] + part if source in gradients else part
    return [gradients[op] for op in wanted if op in gradients]


def _forward(order: list[Op], by: Op) -> Tensor:
    """The derivative of the result by one operation."""
    on_path, changes = _dependent(order, {by}), {by: Tensor(1.0)}
    for op in order:
        if op is by or op not in on_path:
            continue
        total = None
        for k, source in enumerate(op.src):
            # Operands are numbers, so the rule of the gradient, applied to the change of one, is that of the result.
            if source in on_path and (part := _parts(op, changes[source])[k]) is not None:
                total = part if total is None else total + part
        changes[op] = Tensor(0.0) if total is None else total
    return changes.get(order[-1], Tensor(0.0))


def _short(values: np.ndarray) -> str:
    return f"{values.item():.4g}" if values.size == 1 else "×".join(map(str, values.shape))


def _picture(step: Step) -> str:
    """The graph of a step: a box for each operation, with its value above and its gradient below."""
    depth: dict[Op, int] = {}
    for op in step.order:
        depth[op] = 1 + max((depth[source] for source in op.src), default=-1)
    rows: dict[int, int] = {}
    at = {}
    for op in step.order:
        at[op] = (90 + 150 * depth[op], 50 + 80 * rows.setdefault(depth[op], 0))
        rows[depth[op]] += 1
    width, height = 180 + 150 * max(depth.values()), 30 + 80 * max(rows.values())
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">']
    for op in step.order:
        for source in op.src:
            (x1, y1), (x2, y2) = at[source], at[op]
            parts.append(f'<line x1="{x1 + 50}" y1="{y1}" x2="{x2 - 50}" y2="{y2}" stroke="#999999"/>')
    for op in step.order:
        parts.append(_box(step, op, *at[op]))
    return "".join(parts) + "</svg>"


def _box(step: Step, op: Op, x: int, y: int) -> str:
    fill = ("#cfe3f5" if step.is_forward else "#f7d7c8") if op is step.op else "#f4f4f4"
    value = _short(step.values[op]) if op in step.values else ""
    gradient = f"grad {_short(step.gradients[op])}" if op in step.gradients else ""
    return (
        f'<rect x="{x - 50}" y="{y - 28}" width="100" height="56" rx="6" fill="{fill}" stroke="#666666"/>'
        f'<text x="{x}" y="{y - 10}" font-size="13" text-anchor="middle">{op.code.name}</text>'
        f'<text x="{x}" y="{y + 6}" font-size="12" text-anchor="middle" fill="#0072b2">{value}</text>'
        f'<text x="{x}" y="{y + 21}" font-size="12" text-anchor="middle" fill="#d55e00">{gradient}</text>'
    )
