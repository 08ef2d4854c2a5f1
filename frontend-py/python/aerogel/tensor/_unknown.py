"""Sizes that are known only when a program runs: checks at run time, and errors for what is impossible."""

from __future__ import annotations

from typing import Any

from aerogel.tensor._tensor import Tensor, tracing


def all_known(extents: Any) -> bool:
    """Whether all sizes are Python integers."""
    return all(isinstance(n, int) for n in extents)


def differ(n: Any, m: Any) -> bool:
    """Whether two sizes are known to be different."""
    return isinstance(n, int) and isinstance(m, int) and n != m


def stretches(shape: Any, whole: Any) -> bool:
    """Whether a tensor of a shape is known to be broadcast to another one."""
    both = zip(reversed(shape), reversed(whole))
    return len(shape) <= len(whole) and all(n == m or n == 1 for n, m in both)


def outside_of_programs(what: str, why: str) -> None:
    """Refuses, while a program is traced, what has to know numbers.

    Raises:
        ValueError: In a program.
    """
    if tracing.program is not None:
        raise ValueError(f"`{what}` cannot be part of a program: {why}")


def demand(x: Tensor, axis: int, n: Any) -> None:
    """Checks, when the program runs, that an axis has a size."""
    wanted: list[Any] = [None] * x.ndim
    wanted[axis] = n if isinstance(n, int) else tracing.program.extents([n])[0]
    if not tracing.trace.assert_shape(x._native, wanted, f"axis {axis} has {{}} elements where {{}} are needed"):
        raise ValueError(f"axis {axis} has {x.shape[axis]} elements where {n} are needed")


def least(n: Any, m: Any) -> Any:
    """The smaller of two sizes."""
    if isinstance(n, int) and isinstance(m, int):
        return min(n, m)
    from aerogel.tensor._elementwise import minimum

    return minimum(n, m)


def at_least(n: Any, count: int, message: str) -> None:
    """Checks, when the program runs, that a size is at least ``count``; ``{}`` in the message is the size."""
    # It is the same for the whole batch.
    if not tracing.program.is_in_block or tracing.program.is_in_vmap:
        tracing.trace.ask_at_least(tracing.program.extents([n])[0], count, message)
        return

    # A block may not run, so its checks are inside it; a block with a condition at each point always runs.
    def look(extent: Tensor, where: Any = None) -> None:
        if extent.item() < count:
            raise ValueError(message.format(extent.item()))

    tracing.program.watch(look, "at_least", n, (count, message))


def extent_at_least(dim: Any, count: int, message: str) -> None:
    """Like :func:`at_least`, for the handle of a size."""
    at_least(tracing.program.numbers((dim,))[0], count, message)


def expect(holds: Tensor, message: str) -> None:
    """Refuses values for which a condition is false at some point: at once, or, in a program, when it runs.

    In a function that ``vmap`` calls there are no values, and nothing is checked.

    Raises:
        ValueError: With the message.
    """
    if tracing.program is None:
        if not (tracing.mapped is not None or holds._native.is_one_of_many()) and not holds.numpy().all():
            raise ValueError(message)
        return
    if tracing.program.is_in_vmap:
        return

    def look(found: Tensor, where: Any = None) -> None:
        fails = ~found.numpy()
        if where is not None:
            fails = fails & where.numpy()
        if fails.any():
            raise ValueError(message)

    tracing.program.watch(look, "expect", holds)
