"""``ti.perf_dispatch``: one of several functions that do the same, chosen by time."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

import aerogel as ti

if TYPE_CHECKING:
    from collections.abc import Callable


class _Trials:
    """The times of the functions for one geometry."""

    def __init__(self, n_warmup: int) -> None:
        self.begin(n_warmup)

    def begin(self, n_warmup: int) -> None:
        """Measures again."""
        self.n_warmup = n_warmup
        #: The number of the fastest function, when it is known.
        self.chosen: int | None = None
        #: By the number of a function, how often it ran, and the shortest time that counts.
        self.n_runs: dict[int, int] = {}
        self.times: dict[int, float] = {}
        self.n_since, self.since = 0, time.monotonic()


class PerformanceDispatcher:
    """A function that stands for several: the first calls measure each in turn, the others run the fastest."""

    def __init__(self, function: Callable[..., Any], geometry: Callable[..., Any], how: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._name = function.__name__
        self._geometry, self._how = geometry, how
        self._all: list[tuple[Callable[..., Any], Callable[..., bool] | None]] = []
        self._trials: dict[Any, _Trials] = {}

    def register(
        self, implementation: Callable[..., Any] | None = None, *, is_compatible: Callable[..., bool] | None = None
    ) -> Any:
        """Adds a function; a decorator, also with arguments.

        Args:
            implementation: A kernel or a function with the parameters of the others.
            is_compatible: Says, for the arguments of a call, whether the function can run with them.
        """
        if implementation is None:
            return functools.partial(self.register, is_compatible=is_compatible)
        self._all.append((implementation, is_compatible))
        return implementation

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        able = [k for k, (_, can) in enumerate(self._all) if can is None or can(*args, **kwargs)]
        if not able:
            raise RuntimeError(f"`{self._name}`: no function is registered that can run with these arguments")
        geometry = self._geometry(*args, **kwargs)
        if (trials := self._trials.get(geometry)) is None:
            trials = self._trials[geometry] = _Trials(self._how["first_warmup"])
        if trials.chosen in able:
            trials.n_since += 1
            if not self._is_due(trials):
                return self._all[trials.chosen][0](*args, **kwargs)
            trials.begin(self._how["warmup"])
        return self._measured(trials, able, args, kwargs)

    def _is_due(self, trials: _Trials) -> bool:
        """Whether it is time to measure again."""
        count, seconds = self._how["repeat_after_count"], self._how["repeat_after_seconds"]
        return 0 < count <= trials.n_since or 0 < seconds <= time.monotonic() - trials.since

    def _measured(self, trials: _Trials, able: list[int], args: Any, kwargs: Any) -> Any:
        """A call of the function that ran least; the fastest is chosen when all have run often enough."""
        number = min(able, key=lambda k: trials.n_runs.get(k, 0))
        ti.sync()
        begin = time.perf_counter()
        result = self._all[number][0](*args, **kwargs)
        ti.sync()
        took = time.perf_counter() - begin
        ran = trials.n_runs[number] = trials.n_runs.get(number, 0) + 1
        if ran > trials.n_warmup:
            trials.times[number] = min(took, trials.times.get(number, took))
        if all(trials.n_runs.get(k, 0) >= trials.n_warmup + self._how["active"] for k in able):
            trials.chosen = min(able, key=lambda k: trials.times[k])
            trials.n_since, trials.since = 0, time.monotonic()
        return result


def perf_dispatch(
    *,
    get_geometry_hash: Callable[..., Any],
    first_warmup: int = 1,
    warmup: int = 0,
    active: int = 1,
    repeat_after_count: int | None = None,
    repeat_after_seconds: float | None = None,
) -> Callable[[Callable[..., Any]], PerformanceDispatcher]:
    """Chooses the fastest of several functions that do the same, by measuring them in the first calls.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> @ti.perf_dispatch(get_geometry_hash=lambda x: x.shape)
    ... def double(x): ...
    >>> @double.register
    ... def by_numbers(x):
    ...     return [2 * v for v in x.tolist()]
    >>> @double.register(is_compatible=lambda x: x.ndim == 1)
    ... def by_tensors(x):
    ...     return (2 * x).tolist()
    >>> [double(ti.tensor.asarray([1.0, 2.0])) for _ in range(5)][-1]
    [2.0, 4.0]

    The decorated function itself is not called. Each call runs one function, so they may have effects.

    Args:
        get_geometry_hash: Of the arguments, something hashable: calls with equal values are measured together.
        first_warmup: How many runs of each function are not counted at first: they compile it.
        warmup: The same when it is measured again.
        active: How many runs of each function are counted; the shortest one decides.
        repeat_after_count: After so many calls it is measured again; never if 0. 300 if neither is given.
        repeat_after_seconds: The same by time.

    Raises:
        ValueError: If a number of runs is negative, or ``active`` is 0.
        RuntimeError: When called, if no function can run with the arguments.
    """
    if first_warmup < 0 or warmup < 0 or active < 1:
        raise ValueError(
            f"`perf_dispatch`: `first_warmup` and `warmup` are at least 0 and `active` at least 1, not {first_warmup}, "
            f"{warmup} and {active}"
        )
    if repeat_after_count is None:
        repeat_after_count = 300 if repeat_after_seconds is None else 0
    how = {
        "first_warmup": first_warmup,
        "warmup": warmup,
        "active": active,
        "repeat_after_count": repeat_after_count,
        "repeat_after_seconds": repeat_after_seconds or 0.0,
    }
    return lambda function: PerformanceDispatcher(function, get_geometry_hash, how)


__all__ = ["PerformanceDispatcher", "perf_dispatch"]
