"""Which states of a sequence of steps are saved, so that few steps are rerun: binomial checkpointing.

Griewank and Walther, Algorithm 799: revolve (2000). With `s` states saved at a time, of which the first is that before
the first step, and every step run at most `r` times besides, `C(s + r, s)` steps can be reversed.

Where nobody knows how many steps there will be, states are chosen as these are made: Stumm and Walther, New algorithms
for optimal online checkpointing (2010).
"""

from __future__ import annotations

import math


def n_advances(n: int, s: int) -> int:
    """How many steps are run, besides the recorded ones, to reverse ``n`` steps with ``s`` saved states.

    >>> n_advances(10, 1), n_advances(10, 3), n_advances(10, 10)
    (45, 15, 9)
    """
    if n <= 1:
        return 0
    r = 0
    while math.comb(s + r, s) < n:
        r += 1
    return r * n - math.comb(s + r, r - 1)


def first_leg(n: int, s: int) -> int:
    """After how many of ``n`` steps the next state is saved, so that the fewest are rerun.

    >>> first_leg(10, 3)
    4
    """
    if s <= 1 or n <= 1:
        return n
    r = 0
    while math.comb(s + r, s) < n:
        r += 1
    # Any number that leaves both legs to be reversed by as few repetitions as can be is as good.
    most = min(math.comb(s + r - 1, s), n - math.comb(s + r - 2, s - 1))
    least = max(math.comb(s + r - 2, s) if r >= 2 else 0, n - math.comb(s + r - 1, s - 1), 1)
    return max(most, least)


def first_states(n: int, s: int) -> list[int]:
    """Before which of ``n`` steps states are saved during the first run.

    >>> first_states(10, 3)
    [0, 4, 7]
    """
    states, at = [0], 0
    while s > 1 and n - at > 1:
        at += first_leg(n - at, s)
        s -= 1
        if at >= n:
            break
        states.append(at)
    return states


def dropped(kept: list[int], n: int, s: int) -> int | None:
    """Which of ``s`` states is dropped so that the one after ``n`` steps can be saved; None if that one is not saved.

    The fewest steps are run again if there are less than ``C(s + 2, 2)`` of them; if there are more, at each number of
    steps the fewest for those states that are left.

    Args:
        kept: Before which steps states are saved, including the one before the first step.
        n: How many steps have been run.
        s: How many states are saved.

    >>> dropped([0, 1, 2], 3, 3), dropped([0, 4, 7], 8, 3)
    (1, None)
    """
    ends = [*kept[1:], n]
    lengths = [end - begin for begin, end in zip(kept, ends)]
    if n + 1 < math.comb(s + 2, 2):
        # A segment of so many steps is reversed with the states that are left while each is run once more.
        joined = (j for j in range(1, s) if lengths[j - 1] + lengths[j] <= s - j + 2)
        return next(joined, None)
    # What the segments before and behind cost, those behind with one state more if one before them goes.
    before, behind = [0], [0]
    for k in range(s):
        before.append(before[-1] + n_advances(lengths[k], s - k))
        at = s - 1 - k
        behind.append(behind[-1] + n_advances(lengths[at], s - at + 1))
    choices: list[tuple[int, int]] = [(before[s - 1] + n_advances(lengths[-1] + 1, 1), 0)]
    for j in range(1, s):
        joined_cost = n_advances(lengths[j - 1] + lengths[j], s - j + 1)
        choices.append((before[j - 1] + joined_cost + behind[s - 1 - j], -j))
    return -min(choices)[1] or None


__all__ = ["dropped", "first_leg", "first_states", "n_advances"]
