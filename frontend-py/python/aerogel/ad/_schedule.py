"""Which states of a sequence of steps are kept, so that few steps are run again: binomial checkpointing.

Griewank and Walther, Algorithm 799: revolve (2000). With `s` states kept at a time, of which the first is that before
the first step, and every step run at most `r` times besides, `C(s + r, s)` steps can be reversed.
"""

from __future__ import annotations

import math


def n_advances(n: int, s: int) -> int:
    """How many steps are run, besides those that are recorded, to reverse ``n`` with ``s`` states kept.

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
    """After how many of ``n`` steps the next state is kept, so that the fewest are run again.

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
    """Before which of ``n`` steps states are kept while all are run for the first time.

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


__all__ = ["first_leg", "first_states", "n_advances"]
