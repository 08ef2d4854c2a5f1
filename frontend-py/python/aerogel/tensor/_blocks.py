"""Blocks of a program while it is traced, and what is noted of its tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aerogel.tensor._tensor import Tensor


class Named:
    """An extent of a trace; the same in words is the same."""

    __slots__ = ("dim", "key", "native")

    def __init__(self, native: Any, dim: Any) -> None:
        self.native = native
        self.dim = dim
        self.key = native.dim_key(dim)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def of(self, native: Any) -> Any:
        """The same extent of another trace.

        Raises:
            ValueError: If there is none yet.
        """
        try:
            return native.dim_like(self.native, self.dim)
        except ValueError:
            raise ValueError(
                "what a block sets or leaves has the extents of an input that is made after it: make the inputs first, "
                "at the start of the function, before `const`, `buffer` and blocks"
            ) from None


class Made:
    """How a tensor of a program came about."""

    __slots__ = ("activations", "element", "is_memory", "key", "scopes")

    def __init__(self, key: Any, scopes: tuple[Scope, ...], activations: Any) -> None:
        #: What is the same in each trace.
        self.key = key
        #: The blocks in which it was made, outermost first.
        self.scopes = scopes
        self.is_memory = False
        #: How often stores may have made cells active by then.
        self.activations = activations
        #: Of what it is the elements, and at which indices, if it is.
        self.element: Any = None


class Left:
    """The points that have left a loop, or a turn of it."""

    def __init__(self, memory: Any, cells: Any) -> None:
        #: True where a point has.
        self.memory = memory
        #: Truth at the active cells of a field, if the points are these.
        self.cells = cells

    def others(self) -> Any:
        """Where a point is still there."""
        return self.memory.unary("logical_not") if self.cells is None else self.cells.binary("ne", self.memory)


class Scope:
    """A block: what is true at the points that are in it."""

    def __init__(self, is_loop: bool = False, is_map: bool = False) -> None:
        self.is_loop = is_loop
        #: Whether all of it is done once at least.
        self.is_sure = False
        #: In a function of one of many, which knows nothing of what is around it.
        self.is_map = is_map
        #: Conditions that are other at each point.
        self.conditions: list[Any] = []
        #: In a loop that points leave one by one.
        self.left: Left | None = None
        #: In a loop some turns of which points leave one by one.
        self.skipped: Left | None = None
        self.number = -1
        #: What a loop counts.
        self.turn: Tensor | None = None


class Begun:
    """The blocks that have begun and not ended, outermost first, as errors say it."""

    def __init__(self) -> None:
        self._blocks: dict[Any, str] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, block: Any, called: str) -> None:
        """A block begins."""
        self._blocks[block] = called

    def end(self, block: Any, by_error: bool) -> None:
        """A block ends: the innermost, unless an error ends those in it as well.

        Raises:
            RuntimeError: If a block in it has not ended.
        """
        if block not in self._blocks:
            return
        if not by_error and (last := next(reversed(self._blocks))) is not block:
            raise RuntimeError(
                f"{self._blocks[block]} ends before {self._blocks[last]}, which begins in it: close inner blocks "
                "first; `with` does this"
            )
        while self._blocks.popitem()[0] is not block:
            pass

    def expect_ended(self, n: int = 0) -> None:
        """Refuses blocks behind the first ``n``.

        Raises:
            RuntimeError: If there is one.
        """
        if len(self._blocks) > n:
            raise RuntimeError(
                f"{list(self._blocks.values())[n]} opens a block that is never closed in its function: use `with`, "
                "and exhaust generators that contain one"
            )
