"""What is on a tape, in the order in which it happened.

Values that an entry overwrites and others need are saved as snapshots. The backward pass restores these, so that each
gradient sees the memory of its own launch. The contents before its first write are noted, and restored at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from aerogel import _native
from aerogel.ad import _recorder
from aerogel.ad._gradients import (
    clear,
    derivative_of,
    gradient_of,
    has_gradient,
    is_tensor,
    numbers_of,
    set_numbers,
    shape_of,
)
from aerogel.ad._put_back import put_back


class Entry:
    """One thing that happened; ``kept`` is what it overwrote, as far as needed: snapshots of the time before."""

    __slots__ = ()

    kept: list[Any]
    #: What it writes of fields whose gradients are retained: which field, and the box of indices; all if there is none.
    written: list[tuple[int, Any]]

    def run_again(self) -> None:
        """Repeats it, with the same random numbers; what it reads may have changed."""
        raise NotImplementedError

    def back(self, present: Any) -> None:
        """Computes gradients at its beginning from those at its end, and puts back what it overwrote.

        What is there instead is noted in ``present``, if that is not None.
        """
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum(snapshot.nbytes for snapshot in self.kept)


class Launch(Entry):
    """A kernel that was launched."""

    __slots__ = (
        "args",
        "asked",
        "derivative",
        "kept",
        "kernel",
        "kinks",
        "kwargs",
        "n_own",
        "seed",
        "written",
    )

    def __init__(
        self,
        kernel: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        seed: int,
        kept: list[tuple[Any, bool]],
        derivative: str | None,
    ) -> None:
        self.kernel, self.args, self.kwargs, self.seed = kernel, _as_now(args), kwargs, seed
        if kwargs:
            self.kwargs = dict(zip(kwargs, _as_now(tuple(kwargs.values()))))
        self.derivative = derivative
        if kept:
            # What the kernel itself needs is put back before its gradient is computed, other things after that.
            kept.sort(key=_is_others)
            self.n_own = sum(own for _, own in kept)
            self.kept = [snapshot for snapshot, _ in kept]
        else:
            self.kept, self.n_own = _NOTHING, 0
        #: The tape's memory, and which active cells the launch has queried.
        self.asked: tuple[Any, Any] | None = None
        #: Where kinks that its gradient meets are counted, if they are.
        self.kinks: Counter[str] | None = None

    def objects(self) -> list[Any]:
        """The arguments that are no numbers."""
        given = self.args if self.kwargs is None else (*self.args, *self.kwargs.values())
        return [arg for arg in given if type(arg) not in _NUMBERS]

    def run_again(self) -> None:
        self.kernel._launch(self.args, self.kwargs, None, self.seed)

    def back(self, present: Any) -> None:
        for snapshot in self.kept[: self.n_own]:
            snapshot.back(present)
        if self.derivative is not None:
            put_back()
            past = None if self.asked is None else self.asked[0].past(self.asked[1])
            if self.kinks is None or self.derivative != "grad":
                self.kernel._launch(self.args, self.kwargs, self.derivative, self.seed, True, past)
            else:
                self.kinks.update(dict(self._count_kinks(past)))
        for snapshot in self.kept[self.n_own :]:
            snapshot.back(present)

    def _count_kinks(self, past: Any) -> Iterator[tuple[str, int]]:
        found = self.kernel._launch_counting_kinks(self.args, self.kwargs, self.seed, past)
        # A loop that is unrolled has the same place more than once.
        return ((text, sum(n for other, n in found if other == text)) for text, _ in found)

    @property
    def nbytes(self) -> int:
        return super().nbytes + (0 if self.asked is None else self.asked[1].nbytes)


_NUMBERS = frozenset((int, float, bool))
_NOTHING: list[Any] = []


def tensors_of(args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> list[Any]:
    """The tensors of PyTorch among the arguments."""
    # Most launches have no arguments, or numbers; this is what a tape costs.
    found = _NOTHING
    for arg in args if not kwargs else (*args, *kwargs.values()):
        if type(arg) not in _NUMBERS and is_tensor(arg):
            found = [*found, arg]
    return found


def _as_now(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments; of a tensor of ``ti.tensor``, which may become another one later, what it is now."""
    for arg in args:
        if type(arg) not in _NUMBERS and hasattr(type(arg), "_as_it_is"):
            return tuple(arg._as_it_is() if hasattr(type(arg), "_as_it_is") else arg for arg in args)
    return args


def _is_others(kept: tuple[Any, bool]) -> bool:
    return not kept[1]


class Write(Entry):
    """A write from Python: what is overwritten has no further influence."""

    __slots__ = ("_written", "component", "kept", "key", "source", "target", "written")

    def __init__(self, target: Any, where: tuple[Any, int | None], kept: list[Any], source: Any = None) -> None:
        self.target, self.kept, self.source = target, kept, source
        self.key, self.component = where
        self._written: Any = None

    def keep_written(self) -> None:
        """Keeps what has been written, so that it can be written again."""
        if self._written is None:
            self._written = self.target[self.key] if self.key is not None else self.target.to_numpy()

    def run_again(self) -> None:
        if self.source is not None and not is_tensor(self.source):
            self.target.copy_from(self.source)
        elif self.key is not None:
            self.target[self.key] = self._written
        else:
            self.target.from_numpy(self._written)

    def back(self, present: Any) -> None:
        gradient = derivative_of(self.target, "grad")
        if gradient is not None:
            source = self.source
            self._back(gradient, gradient_of(source) if source is not None and has_gradient(source) else None)
            # Of second derivatives; nobody looks at it otherwise.
            tangent = derivative_of(gradient, "dual")
            if tangent is not None:
                self._back(tangent, derivative_of(derivative_of(self.source, "grad"), "dual"))
        for snapshot in self.kept:
            snapshot.back(present)

    def _back(self, gradient: Any, to: Any) -> None:
        """A copy gives its gradient to what it is a copy of; what is overwritten has none."""
        if to is not None:
            set_numbers(to, numbers_of(to) + gradient.to_numpy().reshape(shape_of(to)))
        clear(gradient, self.key, self.component)


class Emptied(Entry):
    """Cells that Python makes inactive: what they held has no further influence."""

    __slots__ = ("fields", "kept", "node", "written")

    def __init__(self, node: Any, fields: list[Any]) -> None:
        self.node, self.fields = node, fields
        self.kept = []
        self.written = []

    def run_again(self) -> None:
        self.node.deactivate_all()

    def back(self, present: Any) -> None:
        for field in self.fields:
            gradient = derivative_of(field, "grad")
            for derivative in (gradient, derivative_of(gradient, "dual")):
                if derivative is not None:
                    derivative.fill(0)


class Replaced(Entry):
    """A function whose gradient another one computes."""

    __slots__ = ("args", "asked", "gradient", "kept", "kwargs", "undo")

    def __init__(
        self,
        gradient: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        undo: Any,
        asked: tuple[Any, list[Any]],
    ) -> None:
        self.gradient, self.args, self.kwargs = gradient, args, kwargs
        self.asked = asked
        self.undo = undo
        self.kept = []

    def run_again(self) -> None:
        """Nothing: the launches of the function are entries before this one."""

    def back(self, present: Any) -> None:
        recording, asked = self.asked
        for each in asked:
            recording.expect_same_cells(each)
        outer = _native.set_recorder(self.undo)
        try:
            self.gradient(*self.args, **self.kwargs)
        finally:
            _native.set_recorder(outer)
            self.undo.undo()


class Entries:
    """A list of entries that can be gone back and forth."""

    def __init__(self) -> None:
        self.all: list[Entry] = []
        self.nbytes = 0

    def back_and_forth(self, retained: Any = None) -> None:
        """Computes all gradients, from the last entry to the first; afterwards all else is as it was.

        What fails ends it, with all fields but the gradients as they were.
        """
        present = _native.NativePresent()
        try:
            self.back(retained, present)
        finally:
            present.restore()
            put_back()

    def back(self, retained: Any = None, present: Any = None) -> None:
        """Computes all gradients, from the last entry to the first, and leaves memory as it was before the first.

        What it changes is noted in ``present``, if that is not None.
        """
        with _recorder.unrecorded():
            for entry in reversed(self.all):
                if retained is not None:
                    retained.before(entry)
                put_back()
                entry.back(present)


__all__ = ["Emptied", "Entries", "Entry", "Launch", "Replaced", "Write", "tensors_of"]
