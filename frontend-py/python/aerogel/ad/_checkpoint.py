"""``ti.ad.checkpoint``: many steps on a tape that saves few states and recomputes the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from aerogel import _native
from aerogel.ad import _recorder
from aerogel.ad._entries import Entry
from aerogel.ad._gradients import gradients
from aerogel.ad._put_back import put_back
from aerogel.ad._record import Record
from aerogel.ad._schedule import dropped, first_leg, first_states
from aerogel.errors import AerogelMemoryError, AerogelRuntimeError


def checkpoint(
    step: Callable[[int], Any],
    steps: int | None = None,
    memory: int | str | None = None,
    *,
    snapshots: int | None = None,
    until: Callable[[int], Any] | None = None,
    state: Any = None,
) -> Checkpointed | None:
    """Calls ``step(0)``, ``step(1)``, ... under a tape that keeps the state of few steps and computes others again.

    The state is the memory that the steps both write and read. With ``s`` states kept, of ``n`` steps each is run again
    ``(r n - C(s + r, r - 1)) / n`` times, where ``r`` is the least number with ``C(s + r, s) >= n``: 3.4 times for
    10,000 steps and 30 states.

    Args:
        step: Launches kernels; takes the number of the step.
        steps: How many steps.
        memory: The most that states take, bytes or text such as ``"2GB"``; that of ``ti.init(ad_memory=...)`` by
            default.
        snapshots: The most states.
        until: Instead of ``steps``: called with the number of steps done, returns whether to stop. It is called
            after each step, and at least one is done. As few steps are run again as if their number had been known if
            there are less than ``(s + 1) (s + 2) / 2``, and few more otherwise.
        state: The fields and arrays that a step needs from the one before, where that is less than it writes and reads.

    Returns:
        An object that describes the schedule: its ``n_steps``, ``n_states`` and ``n_advanced``, the steps that were
        run without being recorded. Nothing outside of a tape, where the steps are run and nothing else.

    Raises:
        AerogelRuntimeError: The steps are not given, or by two of ``steps`` and ``until``, or memory does not hold one
            state.

    >>> with ti.ad.Tape(loss):  # doctest: +SKIP
    ...     ti.ad.checkpoint(substep, steps=10_000, memory="2GB")
    ...     compute_loss()
    """
    if (steps is None) == (until is None):
        raise AerogelRuntimeError(
            "ti.ad.checkpoint takes the number of `steps`, or `until`, a function that returns when to stop"
        )
    if steps is not None and (isinstance(steps, bool) or not hasattr(steps, "__index__") or steps < 0):
        raise AerogelRuntimeError(f"the number of steps is at least 0, not {steps!r}")
    if snapshots is not None and snapshots < 1:
        raise AerogelRuntimeError(f"at least one state is saved, not {snapshots}")
    record = _recorder.current()
    if not isinstance(record, Record) or record.constant or record.replaced_within:
        _run_all(step, steps, until)
        return None
    from aerogel._config import ad_memory, n_bytes

    most = ad_memory() if memory is None else n_bytes(memory, "memory")
    if steps == 0:
        return None
    entry = Checkpointed(step, record, state, most, snapshots)
    entry.run(steps, until)
    record.add(entry)
    return entry


def _run_all(step: Callable[[int], Any], steps: int | None, until: Callable[[int], Any] | None) -> None:
    at = 0
    while at < steps if steps is not None else True:
        step(at)
        at += 1
        if until is not None and until(at):
            return


class _Advance(_recorder.Recorder):
    """Steps that are run without being recorded; for the first time, or again with the same random numbers."""

    called = "a checkpointed sequence of steps"

    def __init__(self, owner: Checkpointed, run: _Run, is_first: bool) -> None:
        self._owner, self._run, self._is_first = owner, run, is_first
        self._n_launches = 0

    def launch(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Launches a kernel."""
        with _recorder.unrecorded():
            if self._is_first:
                self._owner.before_first(kernel, args, kwargs)
                self._run.seeds.append(self._owner.first_seed())
            at = self._n_launches
            seed = self._run.seed(at)
            self._n_launches += 1
            with self._run.asking(at, kernel, args, kwargs):
                return kernel._launch(args, kwargs, None, seed)

    def deactivate(self, node: Any) -> None:
        """Notes that cells go, and what they hold."""
        if self._is_first:
            with _recorder.unrecorded():
                self._owner.before_first_deactivate(node)

    def write(self, target: Any, key: Any, component: int | None = None) -> None:
        """Keeps what earlier gradients need of what Python overwrites."""
        if self._is_first:
            with _recorder.unrecorded():
                self._owner.before_first_write(target)


class _Step(Record):
    """A step that is recorded, with the random numbers of its first run."""

    def __init__(self, run: _Run, around: Record) -> None:
        super().__init__()
        self.retained, self.kinks = around.retained, around.kinks
        self._run = run
        self._n_launches = 0

    def seed(self) -> int:
        """The seed of the next launch."""
        drawn = self._run.seed(self._n_launches)
        self._n_launches += 1
        return drawn

    def launch(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Launches a kernel and keeps what it takes to go back."""
        with self._run.asking(self._n_launches, kernel, args, kwargs):
            return super().launch(kernel, args, kwargs)


class _Run:
    """What the first run of a step leaves for those that come after it."""

    def __init__(self, steps: Any) -> None:
        self.seeds: list[int] = []
        self._steps = steps
        # For each launch a hash of the active cells that it has queried.
        self._asked: list[int | None] = []

    def seed(self, at: int) -> int:
        """The seed of a launch."""
        if at >= len(self.seeds):
            raise AerogelRuntimeError("a checkpointed step launches more kernels when it is rerun than the first time")
        return self.seeds[at]

    @contextlib.contextmanager
    def asking(self, at: int, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Iterator[None]:
        """Notes the hash of the cells that a launch queries, or compares it with that of the first run."""
        is_first = at == len(self._asked)
        asked = self._steps.asked(kernel, args, kwargs) if is_first or self._asked[at] is not None else None
        yield
        found = None if asked is None else self._steps.digest(asked)
        if is_first:
            self._asked.append(found)
        elif found != self._asked[at]:
            raise AerogelRuntimeError(
                f"kernel `{kernel.__name__}` queries which cells are active, and the answer differs when the "
                "checkpointed step is rerun: begin each step with `deactivate_all()`, or activate all cells "
                "before the first"
            )


class _Held:
    """Gradients in cells that steps make inactive when they are run again."""

    def __init__(self) -> None:
        self.is_needed = False
        self._kept: list[Any] = []

    def keep(self) -> None:
        """Keeps what they hold."""
        if self.is_needed:
            found = [*gradients("grad"), *gradients("dual")]
            cells = [_native.keep_cells(gradient) for gradient in found]
            self._kept = [kept for kept in cells if kept is not None]

    def put_back(self) -> None:
        """Puts it back."""
        for snapshot in self._kept:
            snapshot.restore()
        self._kept = []
        put_back()


class _State:
    """What a step begins with."""

    def __init__(self, at: int, kept: dict[int, Any]) -> None:
        self.at, self.kept = at, kept

    def restore(self) -> None:
        for snapshot in self.kept.values():
            snapshot.restore()
        put_back()


class Checkpointed(Entry):
    """Steps of which some states are saved.

    What can be saved is numbered: whole fields and arrays, in the order in which steps first write them.
    """

    def __init__(
        self, step: Callable[[int], Any], record: Record, state: Any, most_bytes: int, most_states: int | None
    ) -> None:
        self.n_steps = 0
        self.n_states = 0
        self.n_advanced = 0
        self.kept = []
        self._step, self._record_around = step, record
        self._most_bytes, self._most_states = most_bytes, most_states
        self._given = None if state is None else list(state) if isinstance(state, (list, tuple)) else [state]
        self._steps = _native.NativeSteps()
        self._whole: list[Any] = []
        # What all that is written held before the first step. The state after that is less.
        self._states = [_State(0, {})]
        self._in_state: list[int] = []
        self._runs: list[_Run] = []
        self.held = _Held()

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum({id(kept): kept.nbytes for state in self._states for kept in state.kept.values()}.values())

    def run(self, steps: int | None, until: Callable[[int], Any] | None) -> None:
        """Runs all steps for the first time."""
        wanted: list[int] = []
        while steps is None or self.n_steps < steps:
            at = self.n_steps
            if at == 1 and steps is not None:
                wanted = first_states(steps, self._room())
            if at > 0 and (at in wanted if steps is not None else self._makes_room(at)):
                self._states.append(self._state_now(at))
            self._runs.append(_Run(self._steps))
            self._steps.begin()
            self._advance(at, is_first=True)
            self.n_steps += 1
            if until is not None and until(self.n_steps):
                break
        self.n_states = len(self._states)
        self._record_around.recording.add_steps(self._steps)

    def _makes_room(self, at: int) -> bool:
        """Whether the state after ``at`` steps is saved, while the total number of steps is not known.

        If memory is full, another state is dropped for it.
        """
        room = self._room()
        while len(self._states) >= room:
            # More states than fit are saved if a state turned out to be larger than estimated.
            which = dropped([state.at for state in self._states], at, len(self._states))
            if which is None and len(self._states) == room:
                return False
            if len(self._states) == 1:
                return False
            del self._states[which or -1]
        return True

    def _room(self) -> int:
        """How many states may be saved."""
        each = self._bytes_of_state()
        if each > self._most_bytes:
            raise AerogelMemoryError(
                f"one state of the checkpointed steps takes {each} bytes, more than the {self._most_bytes} that are "
                "allowed: give more `memory`, or name the `state` if the steps need less"
            )
        n = self._most_bytes // each if each else self.n_steps + 1
        return max(1, min(n, self._most_states or n))

    def _bytes_of_state(self) -> int:
        if self._given is not None:
            with _recorder.unrecorded():
                return sum(_native.keep(target).nbytes for target in self._given)
        first = self._states[0].kept
        return sum(first[number].nbytes for number in self._in_state)

    def _advance(self, at: int, is_first: bool = False) -> None:
        outer = _native.set_recorder(_Advance(self, self._runs[at], is_first))
        try:
            self._step(at)
        finally:
            _native.set_recorder(outer)
        self.n_advanced += 1

    def first_seed(self) -> int:
        """The seed of a launch of the first run."""
        return self._record_around.seed()

    def before_first(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> None:
        """Notes a launch of the first run, and what is overwritten for the first time."""
        first_written, first_read = self._steps.note(kernel, args, kwargs)
        self._keep_first(first_written)
        if self._given is None and any(number not in state.kept for state in self._states for number in first_read):
            raise AerogelRuntimeError(
                "a checkpointed step reads data that only earlier steps have written: name the `state` of the steps"
            )

    def before_first_write(self, target: Any) -> None:
        """The same for a write of Python's."""
        number = self._steps.note_write(target)
        self._keep_first([] if number is None else [number])

    def before_first_deactivate(self, node: Any) -> None:
        """The same for cells that become inactive."""
        self._keep_first(self._steps.note_deactivated(node, [*gradients("grad"), *gradients("dual")]))

    def _keep_first(self, numbers: list[int]) -> None:
        """Adds to all states what no step so far has changed."""
        self._whole, self._in_state = self._steps.written()
        for number in numbers:
            kept = self._whole[number].keep()
            for state in self._states if self._given is None else self._states[:1]:
                state.kept[number] = kept

    def _state_now(self, at: int) -> _State:
        with _recorder.unrecorded():
            if self._given is not None:
                return _State(at, {number: _native.keep(target) for number, target in enumerate(self._given)})
            kept = {number: self._whole[number].keep() for number in self._in_state}
            return _State(at, kept)

    def run_again(self) -> None:
        for at in range(self.n_steps):
            outer = _native.set_recorder(_recorder.Again(self._runs[at].seeds))
            try:
                self._step(at)
            finally:
                _native.set_recorder(outer)

    def back(self, present: Any) -> None:
        with _recorder.unrecorded():
            if present is not None:
                for whole in self._whole:
                    present.note_whole(whole)
            self.held.is_needed |= self._steps.deactivates
            self.held.keep()
            room = self._room() if self.n_steps > 1 else 1
            end = self.n_steps
            for k in reversed(range(len(self._states))):
                state = self._states[k]
                state.restore()
                # Gradients of the later steps are done; their states make space for those saved meanwhile.
                del self._states[k + 1 :]
                self._reverse(state, end, max(1, room - k))
                end = state.at
            self._states[0].restore()
            self.held.put_back()

    def _reverse(self, state: _State, end: int, room: int) -> None:
        """Computes gradients from step ``end`` back to a state in memory, with ``room`` saved states at a time."""
        begin = state.at
        while end - begin > 1:
            leg = first_leg(end - begin, room)
            if leg >= end - begin:
                # There is this state alone: each step is reached from it.
                for at in range(begin, end - 1):
                    self._advance(at)
                end -= 1
                self._gradient_of(end)
            else:
                for at in range(begin, begin + leg):
                    self._advance(at)
                self._reverse(self._state_now(begin + leg), end, room - 1)
                end = begin + leg
            state.restore()
        self._gradient_of(begin)

    def _gradient_of(self, at: int) -> None:
        """Records a step and computes its gradients."""
        record = _Step(self._runs[at], self._record_around)
        outer = _native.set_recorder(record)
        try:
            self._step(at)
        finally:
            _native.set_recorder(outer)
        with _recorder.unrecorded():
            self.held.put_back()
            record.expect_same_tensors()
            record.entries.back(self._record_around.retained)
            self.held.keep()


__all__ = ["Checkpointed", "checkpoint"]
