"""Operations as a graph, and the device that they run on."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

OpCode = enum.Enum(
    "OpCode",
    "BUFFER ADD SUB MUL DIV POW NEG RECIPROCAL EXP EXP2 LOG LOG2 LOG10 SIN COS SQRT TANH SIGMOID RELU MAXIMUM MATMUL "
    "SUM MEAN MAX SOFTMAX CROSS_ENTROPY RESHAPE TRANSPOSE INDEX DETACH",
)
OpCode.__doc__ = "What an operation computes; a ``BUFFER`` is a tensor that is given."


class Op:
    """An operation of the graph.

    Attributes:
        code: The `OpCode`.
        src: The operations whose results it takes.
        shape: The shape of its result.
        arg: What else it is given, such as the exponent of a power.
    """

    __slots__ = ("arg", "code", "shape", "src", "values")

    def __init__(self, code: OpCode, src: tuple[Op, ...] = (), values: Any = None, arg: Any = None) -> None:
        self.code, self.src, self.arg = code, src, arg
        #: Its result, a tensor of `aerogel.tensor`.
        self.values = values
        self.shape: tuple[int, ...] = () if values is None else values.shape

    def toposort(self) -> list[Op]:
        """This operation and all that it depends on, each once, and after those that it takes."""
        order: list[Op] = []
        seen: set[int] = set()
        # Depth first without recursion: graphs of long computations are deep.
        stack: list[tuple[Op, bool]] = [(self, False)]
        while stack:
            op, is_ready = stack.pop()
            if is_ready:
                order.append(op)
            elif id(op) not in seen:
                seen.add(id(op))
                stack.append((op, True))
                stack += [(source, False) for source in reversed(op.src)]
        return order

    def __repr__(self) -> str:
        return f"Op({self.code.name}, shape={self.shape})"


class Device(NamedTuple):
    """Where the values of tensors are: in the memory of ``"cpu"``, wherever they are computed."""

    name: str = "cpu"
