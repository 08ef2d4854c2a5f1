"""Seeds of random numbers: integers of 64 bits, with a sign or without one."""

from __future__ import annotations

import operator
from typing import Any


def seed_of(value: Any, name: str = "a seed") -> int:
    """A seed as an integer from 0 to 2**64 - 1; negative ones count from 2**64.

    Raises:
        TypeError: It is not an integer.
        ValueError: It has more than 64 bits, so that another seed would draw the same numbers.

    >>> seed_of(7), seed_of(-1) == 2**64 - 1
    (7, True)
    """
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} is an integer, not {value!r}")
    seed = operator.index(value)
    if not -(1 << 63) <= seed < 1 << 64:
        raise ValueError(f"{name} has at most 64 bits: {seed} is not between -2**63 and 2**64 - 1")
    return seed % (1 << 64)
