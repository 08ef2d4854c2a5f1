"""Random numbers as a module, whose state is saved, loaded and passed around with the others."""

from __future__ import annotations

from typing import Any

from aerogel._seeds import seed_of
from aerogel.nn._module import Module
from aerogel.tensor import random
from aerogel.tensor._tensor import Tensor, asarray


class Random(Module):
    """Draws random numbers (Threefry). Its state is a buffer: two words of ``u32``, which each draw changes.

    ``state_dict`` has the state, so a training that is resumed draws the same numbers. A program that has
    the module as an argument, or a module with it inside, continues where the last call ended, in loops too.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> a, b = ti.nn.Random(seed=7), ti.nn.Random(seed=7)
    >>> bool((a.uniform(2.0, 3.0, (2, 4)) == b.uniform(2.0, 3.0, (2, 4))).all())
    True
    >>> bool((a.normal(0.0, 1.0, 4) == a.normal(0.0, 1.0, 4)).any())
    False

    Args:
        seed: A number; equal seeds draw equal numbers.

    Raises:
        TypeError: If the seed is not an integer.
        ValueError: If it has more than 64 bits.
    """

    state: Tensor

    def __init__(self, seed: int = 0) -> None:
        number = seed_of(seed, "the seed of `Random`")
        self.register_buffer("state", asarray([number & 0xFFFFFFFF, number >> 32], "u32"))

    def key(self) -> Tensor:
        """The key of the next draw, as functions of ``ti.tensor.random`` take it."""
        words = random.bits(self.state, (4,))
        self.state[:] = words[:2]
        return words[2:]

    def bits(self, shape: Any) -> Tensor:
        """32 random bits for each element, as ``u32``."""
        return random.bits(self.key(), shape)

    def uniform(self, low: float = 0.0, high: float = 1.0, shape: Any = (), *, dtype: Any = None) -> Tensor:
        """Numbers from ``low`` (inclusive) to ``high`` (exclusive, except for rounding)."""
        return random.uniform(self.key(), shape, dtype=dtype) * (high - low) + low

    def normal(self, mean: float = 0.0, std: float = 1.0, shape: Any = (), *, dtype: Any = None) -> Tensor:
        """Numbers of the normal distribution with a mean and a standard deviation."""
        return random.normal(self.key(), shape, dtype=dtype) * std + mean

    def integers(self, low: int, high: int, shape: Any = (), *, dtype: Any = None) -> Tensor:
        """Integers from ``low`` (inclusive) to ``high`` (exclusive)."""
        return random.integers(self.key(), low, high, shape, dtype=dtype)

    def permutation(self, n: int) -> Tensor:
        """The integers below ``n`` in random order."""
        return random.permutation(self.key(), n)


__all__ = ["Random"]
