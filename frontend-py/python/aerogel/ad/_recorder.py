"""Recorders, which receive launches and writes in place of the device; see ``recorder.rs``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from aerogel import _native
from aerogel.errors import AerogelRuntimeError


class Recorder:
    """The base class of tapes and forward mode."""

    #: How a message calls it.
    called = "a recorder"
    #: In how many functions that count as constant the program is, and in how many whose gradient is given.
    constant = 0
    replaced_within = 0
    #: What is being copied.
    source: Any = None
    #: Whether a tape may begin inside, and for a tape what it has begun in.
    may_hold_a_tape = False
    around: Any = None

    def launch(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Takes the place of ``kernel(*args, **kwargs)``."""
        raise NotImplementedError

    def write(self, target: Any, key: Any, component: int | None = None) -> None:
        """Is told that Python is about to write to a field or an array: to all of it if there is no key, else to an
        element, or to a component of one."""

    def deactivate(self, node: Any) -> None:
        """Is told that Python is about to make the cells of a node inactive."""

    @contextlib.contextmanager
    def copying(self, source: Any) -> Iterator[None]:
        """Inside the block, writes are copies of another field or array."""
        self.source = source
        try:
            yield
        finally:
            self.source = None


class Again(Recorder):
    """Launches with the random numbers of earlier ones, and without recording them."""

    called = "a check of gradients"

    def __init__(self, seeds: list[int]) -> None:
        self._seeds = iter(seeds)

    def launch(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Launches a kernel with the next seed."""
        with unrecorded():
            return kernel._launch(args, kwargs, None, next(self._seeds, None))


def current() -> Any:
    """The recorder of this thread, if there is one."""
    return _native.recorder()


def begin(recorder: Recorder) -> None:
    """Makes a recorder that of this thread.

    Raises:
        AerogelRuntimeError: There is one already.
    """
    other = _native.set_recorder(recorder)
    recorder.around = other if getattr(other, "may_hold_a_tape", False) else None
    if other is not recorder.around:
        _native.set_recorder(other)
        raise AerogelRuntimeError(
            f"{recorder.called} cannot begin inside {other.called}: end that first, or use one for both"
        )


def end() -> None:
    """Ends the recorder of this thread; the one around it continues, if there is one."""
    _native.set_recorder(getattr(current(), "around", None))


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Launches and writes inside are not recorded."""
    recorder = _native.set_recorder(None)
    try:
        yield
    finally:
        _native.set_recorder(recorder)


__all__ = ["Again", "Recorder", "begin", "current", "end", "unrecorded"]
