"""Blocks of a program: loops and branches, by ``with``."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import ALL
from aerogel.tensor import _types
from aerogel.tensor._tensor import Tensor, asarray, tracing
from aerogel.tensor.programs._bounds import Bounds
from aerogel.tensor.programs._lint import look_at_block
from aerogel.tensor.programs._trace import OutsideProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aerogel.tensor.programs._trace import Trace


def trace_of(what: str) -> Trace:
    """The program that is traced.

    Raises:
        OutsideProgram: If none is.
    """
    if tracing.program is None:
        raise OutsideProgram(what)
    return tracing.program


#: Packages between `with` and a block's function.
_NOT_THE_USERS = ("aerogel", "contextlib")


def users_frame() -> Any:
    """The innermost frame of the user's code."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USERS:
        frame = frame.f_back
    return frame


def here() -> str:
    """The current source location in the user's code."""
    frame = users_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Block:
    """A block of a program, which ``with`` begins and ends."""

    __slots__ = ("_begin", "_trace", "called")

    def __init__(self, word: str, begin: Callable[[Trace], Any]) -> None:
        self._trace = trace_of(word)
        self._begin = begin
        #: Its name in error messages.
        self.called = f"`{word}` ({here()})"
        self._trace.not_begun[self] = f"{self.called} does not begin a block: write `with {word}(...):`"

    def __enter__(self) -> Any:
        trace = self._trace
        if trace.not_begun.pop(self, None) is None:
            raise RuntimeError(f"{self.called} can begin only once: write `with` and its name for each block")
        frame = users_frame()
        look_at_block(frame, binds_once=not trace.divides_integers)
        value = self._begin(trace)
        trace.open.append(self)
        return value

    def __exit__(self, kind: Any, *_: Any) -> None:
        trace = self._trace
        if kind is not None:
            # The rest of the block has not been traced.
            trace.is_broken = True
            del trace.open[trace.open.index(self) :]
            return
        last = trace.open.pop()
        if last is not self:
            raise RuntimeError(
                f"{self.called} ends before {last.called}, which begins in it: close inner blocks first; `with` does "
                "this"
            )
        trace.native.end_block()

    def __iter__(self) -> Any:
        raise TypeError(f"{self.called} begins a block by `with`, not by `for`: write `with loop(...) as k:`")


def loop(begin: Any = None, end: Any = None, step: int = 1) -> Block:
    """Repeats a block for each number from ``begin`` (default 0) to before ``end``: ``with loop(10) as k:``.

    Args:
        begin: The first number, or the end if it is the only one.
        end: The number before which the loop ends.
        step: The distance from one number to the next; known when the program is traced.

    Raises:
        TypeError: If the bounds are not integers.
        OverflowError: If there are more than 2^31 - 1 iterations; raised by the call if it is known only then.
    """
    if begin is None:
        raise TypeError(
            "`loop` takes the number of iterations, as in `loop(10)`, `loop(n)` or `loop(begin, end, step)`; "
            "`break_loop()` leaves it earlier"
        )
    if isinstance(begin, (range, list, tuple)):
        raise TypeError(f"`loop` takes the numbers that `range` takes, as in `loop(0, 10, 2)`, not {begin!r}")
    first, last = (0, begin) if end is None else (begin, end)

    def start(trace: Trace) -> Tensor:
        bounds = Bounds(trace, first, last, step)
        counter = Tensor(trace.native.begin_loop(bounds.first._native, bounds.last._native, bounds.step))
        at, is_there = bounds.seen(counter)
        if is_there is not None:
            trace.native.add_mask(is_there._native)
        return at

    return Block("loop", start)


def if_cond(condition: Any) -> Block:
    """Runs a block where a condition is true: ``with if_cond(x > 0):``.

    Args:
        condition: A scalar for a branch; a tensor with axes for a mask on the assignments and stores of the block.
    """

    def start(trace: Trace) -> None:
        holds = condition if isinstance(condition, Tensor) else asarray(condition)
        trace.native.begin_branch((holds if holds.dtype is ALL["u1"] else holds.astype("u1"))._native)

    return Block("if_cond", start)


def break_loop() -> None:
    """Leaves the innermost loop; under a mask, at its points only."""
    _leave("break_loop", False)


def continue_loop() -> None:
    """Continues with the next iteration of the innermost loop; under a mask, at its points only."""
    _leave("continue_loop", True)


def _leave(what: str, is_iteration: bool) -> None:
    native = trace_of(what).native
    if not native.is_in_loop:
        raise RuntimeError(f"`{what}` is outside of a loop: it stands inside `with loop(...)`, in the same function")
    native.leave_loop(is_iteration)


@contextlib.contextmanager
def kernel(shape: Any) -> Iterator[Any]:
    """Runs a block at every index of a shape, or at every active cell of a field; returns the indices."""
    yield indices_at(trace_of("kernel"), shape, "kernel")


def indices_at(trace: Trace, shape: Any, called: str) -> Any:
    """The index along each axis, at every index of a shape, or at every active cell of a field."""
    if isinstance(shape, _native.NativeField):
        natives = trace.cell_indices(shape)
        return One(natives[0]) if len(natives) == 1 else tuple(map(Tensor, natives))
    _types.counts(shape, called, "shape")
    sizes = trace.extents(shape)
    natives = [_native.NativeTensor.iota(sizes, k, "i32", tracing.trace) for k in range(len(sizes))]
    return One(natives[0]) if len(natives) == 1 else tuple(map(Tensor, natives))


class One(Tensor):
    """The index along the only axis, which also unpacks like a tuple: ``(i,) = indices([n])``."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Tensor]:
        # Without this class, so that `[0]` of the index is its first element.
        return iter((Tensor(self._native),))

    def __len__(self) -> int:
        return 1

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, slice)):
            return tuple(self)[key]
        return super().__getitem__(key)
