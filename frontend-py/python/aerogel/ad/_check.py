"""``ti.ad.check_grad``: gradients beside differences, in a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from aerogel import _log
from aerogel.ad import _recorder
from aerogel.ad._entries import Launch
from aerogel.ad._gradients import (
    all_fields,
    expect_differentiable,
    gradient_of,
    is_tensor,
    name_of,
    numbers_of,
    set_numbers,
)
from aerogel.ad._tape import Tape
from aerogel.data.ndarray import Ndarray

#: How many elements of one input are looked at.
MOST = 64


@dataclass
class Row:
    """One element: its gradient, and what differences say."""

    name: str
    index: tuple[int, ...]
    reverse: float
    difference: float
    error: float
    ok: bool


class GradientCheck(list[Row]):
    """Rows that print as a table; true if all gradients agree with the differences."""

    @property
    def ok(self) -> bool:
        """Whether all agree."""
        return all(row.ok for row in self)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        head = ("element", "reverse", "difference", "relative error", "")
        lines = [
            (
                f"{row.name}[{', '.join(map(str, row.index))}]",
                f"{row.reverse:.7g}",
                f"{row.difference:.7g}",
                f"{row.error:.1e}" if row.error >= 1e-9 else "< 1e-9",
                "ok" if row.ok else "WRONG",
            )
            for row in self
        ]
        widths = [max(len(line[k]) for line in [head, *lines]) for k in range(len(head))]

        def text(line: tuple[str, ...]) -> str:
            cells = [line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:]))]
            return "  ".join(cells).rstrip()

        n_wrong = sum(not row.ok for row in self)
        end = f"{len(self)} gradients agree" if n_wrong == 0 else f"{n_wrong} of {len(self)} gradients are wrong"
        return "\n".join([text(head), *map(text, lines), end])

    __repr__ = __str__


def check_grad(
    fn: Callable[[], Any],
    inputs: Any,
    loss: Any,
    eps: float | None = None,
    tolerance: float | None = None,
    most: int = MOST,
) -> GradientCheck:
    """Compares the gradients of a loss with central differences.

    Afterwards all fields, except gradients, have their previous values.

    Args:
        fn: A function that launches the kernels that compute the loss.
        inputs: The fields or arrays by which is derived, or one.
        loss: A field without axes.
        eps: How far elements are moved; 1e-5 for ``ti.f64``, 1e-2 for other floats, and more where they are large.
        tolerance: The largest relative error that is no mistake; 1e-5 for ``ti.f64``, 1e-2 for other floats.
        most: How many elements of each input are looked at, spread over it.

    Returns:
        A row for each element; true if all agree, and printed a table.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x = ti.field(ti.f64, shape=2, name="x", needs_grad=True)
    >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def energy():
    ...     for i in x:
    ...         loss[None] += x[i] ** 2 / 2
    >>> x.from_numpy([1, 3])
    >>> print(check_grad(energy, x, loss))
    element  reverse  difference  relative error
    x[0]           1           1          < 1e-9  ok
    x[1]           3           3          < 1e-9  ok
    2 gradients agree
    """
    params = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    for param in params:
        expect_differentiable(param, "grad", "an input")
        if isinstance(param, Ndarray):
            param.grad.fill(0)
        elif is_tensor(param):
            gradient_of(param).zero_()
    before = [(held, numbers_of(held)) for held in _everything(params)]
    tape = Tape(loss)
    with tape:
        fn()
    seeds = [entry.seed for entry in tape.entries.all if isinstance(entry, Launch)]
    found = [numbers_of(gradient_of(param)) for param in params]

    def run() -> None:
        recorder = _recorder.Again(seeds)
        _recorder.begin(recorder)
        try:
            fn()
        finally:
            _recorder.end()

    return _compared(run, params, found, loss, before, eps, tolerance, most)


def compare_on_tape(tape: Tape, params: list[Any], before: list[tuple[Any, Any]]) -> None:
    """Compares the gradients that a tape has computed, and warns of those that are wrong."""
    found = [numbers_of(gradient_of(param)) for param in params]

    def run() -> None:
        for entry in tape.entries.all:
            entry.run_again()

    after = [(held, numbers_of(held)) for held, _ in before]
    try:
        check = _compared(run, params, found, tape.losses[0], before, None, None, MOST)
    finally:
        _set_all(after)
    if not check:
        _log.warn(f"gradients do not agree with differences:\n{check}")


def _everything(params: list[Any]) -> list[Any]:
    """All fields and arrays that a run may change, gradients excepted."""
    fields = all_fields()
    gradients = {id(getattr(field, kind)) for field in fields for kind in ("grad", "dual")}
    own = [field for field in fields if id(field) not in gradients]
    known = {id(field) for field in own}
    return [*own, *(param for param in params if id(param) not in known)]


def _set_all(numbers: list[tuple[Any, Any]]) -> None:
    for held, array in numbers:
        set_numbers(held, array)


def _compared(
    run: Callable[[], None],
    params: list[Any],
    found: list[Any],
    loss: Any,
    before: list[tuple[Any, Any]],
    eps: float | None,
    tolerance: float | None,
    most: int,
) -> GradientCheck:
    import numpy as np

    def value(param: Any, moved: Any) -> float:
        with _recorder.unrecorded():
            _set_all(before)
            set_numbers(param, moved)
            set_numbers(loss, np.zeros_like(numbers_of(loss)))
        run()
        return float(numbers_of(loss).sum())

    check = GradientCheck()
    try:
        for param, gradient in zip(params, found):
            start = next(array for held, array in before if held is param)
            is_double = start.dtype == np.float64
            step = eps if eps is not None else (1e-5 if is_double else 1e-2)
            most_error = tolerance if tolerance is not None else (1e-5 if is_double else 1e-2)
            scale = max(1e-3, float(np.abs(gradient).max(initial=0.0)))
            for index in _spread(start.shape, most):
                ends = []
                by = step * max(1.0, abs(float(start[index])))
                for sign in (1, -1):
                    moved = start.copy()
                    moved[index] += sign * by
                    ends.append((value(param, moved), float(moved[index])))
                (high, right), (low, left) = ends
                difference = (high - low) / (right - left)
                reverse = float(gradient[index])
                error = abs(reverse - difference) / max(abs(reverse), abs(difference), 1e-3 * scale)
                ok = bool(error <= most_error)
                check.append(Row(name_of(param).strip("`"), index, reverse, difference, error, ok))
    finally:
        with _recorder.unrecorded():
            _set_all(before)
    return check


def _spread(shape: tuple[int, ...], most: int) -> Iterator[tuple[int, ...]]:
    """Indices of an array, all of them or some that are far from each other."""
    import numpy as np

    n = int(np.prod(shape, dtype=np.int64))
    step = max(1, -(-n // max(most, 1)))
    # Along the last axis as well: a step that divides its size would always select the same column.
    while len(shape) > 1 and math.gcd(step, shape[-1]) > 1:
        step += 1
    for flat in range(0, n, step):
        yield tuple(int(i) for i in np.unravel_index(flat, shape)) if shape else ()


__all__ = ["GradientCheck", "check_grad"]
