"""Programs as back ends see them: statements over index spaces, as tuples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aerogel._dtypes import ALL, DataType


class Buffer(NamedTuple):
    """An array of a program: what it is called, its dtype and shape, and whether the program is given it."""

    name: str
    dtype: DataType
    shape: tuple[int, ...]
    is_input: bool


@dataclass(eq=False)
class Program:
    """A program to evaluate: the tuple ``inputs`` names buffers that are given, ``results`` those that are wanted.

    ``text`` shows the statements as they are printed elsewhere. A back end may cache compiled code of a program in
    ``memo``. Equal programs are one object.
    """

    buffers: tuple[Buffer, ...]
    exprs: tuple[tuple[Any, ...], ...]
    dtypes: tuple[DataType, ...]
    variables: tuple[DataType, ...]
    body: tuple[tuple[Any, ...], ...]
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    text: str
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.buffers = tuple(
            Buffer(name, ALL[str(dtype)], shape, is_input) for name, dtype, shape, is_input in self.buffers
        )
        self.dtypes = tuple(ALL[str(name)] for name in self.dtypes)
        self.variables = tuple(ALL[str(name)] for name in self.variables)

    def operands(self, e: int) -> tuple[int, ...]:
        """The expressions that an expression is computed from."""
        kind, *rest = self.exprs[e]
        if kind == "load":
            return rest[1]
        if kind in ("binary", "compare"):
            return (rest[1], rest[2])
        if kind == "select":
            return tuple(rest)
        if kind == "unary":
            return (rest[1],)
        return (rest[0],) if kind in ("cast", "bitcast") else ()

    def needed(self, root: int) -> list[int]:
        """All that an expression is computed from, and itself: operands come first."""
        found = self.memo.get(("needed", root))
        if found is None:
            seen, stack = {root}, [root]
            while stack:
                for operand in self.operands(stack.pop()):
                    if operand not in seen:
                        seen.add(operand)
                        stack.append(operand)
            found = self.memo["needed", root] = sorted(seen)
        return found

    def checks(self, root: int) -> bool:
        """Whether computing an expression may find an index outside, which is an error."""
        return any(self.exprs[e][0] == "load" and self.exprs[e][3] == "error" for e in self.needed(root))

    def affine(self, e: int) -> tuple[dict[int, int], int] | None:
        """An index as whole multiples of axes and a constant; nothing if it is no such sum."""
        kind, *rest = self.exprs[e]
        if kind == "axis":
            return {rest[0]: 1}, 0
        if kind == "const":
            return {}, int(rest[0])
        if kind != "binary" or rest[0] not in ("add", "sub", "mul"):
            return None
        a, b = self.affine(rest[1]), self.affine(rest[2])
        if a is None or b is None:
            return None
        if rest[0] == "mul":
            if a[0] and b[0]:
                return None
            (axes, n), k = (b, a[1]) if not a[0] else (a, b[1])
            return {axis: c * k for axis, c in axes.items() if c * k}, n * k
        sign = 1 if rest[0] == "add" else -1
        axes = {axis: a[0].get(axis, 0) + sign * b[0].get(axis, 0) for axis in {**a[0], **b[0]}}
        return {axis: c for axis, c in axes.items() if c}, a[1] + sign * b[1]
