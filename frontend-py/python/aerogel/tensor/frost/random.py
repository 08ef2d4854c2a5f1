"""Random numbers by counting: a seed and an index make a number."""

from __future__ import annotations

import math
from typing import Any

from aerogel.tensor import _searching
from aerogel.tensor._elementwise import cos, log, sin, sqrt
from aerogel.tensor._tensor import Tensor, asarray
from aerogel.tensor.frost._functions import _word, pcg, random_value, select, uint
from aerogel.tensor.frost._functions import int as as_int
from aerogel.tensor.programs._blocks import trace_of


def rand(shape: Any, seed: Any = 0) -> Tensor:
    """Numbers from 0 to 1."""
    return random_value(shape, seed)


def rand_like(x: Any, seed: Any = 0) -> Tensor:
    """Numbers from 0 to 1 in the shape of a tensor."""
    return random_value(asarray(x).shape, seed)


def rand_int(seed: Any, max_value: Any) -> Tensor:
    """Random integers from 0 to below ``max_value``, one for each seed."""
    return as_int(pcg(seed) % uint(max_value))


def randn(shape: Any, seed: Any = 0) -> Tensor:
    """Numbers of the normal distribution."""
    return randn2(shape, seed)[0]


def randn_like(x: Any, seed: Any = 0) -> Tensor:
    """Numbers of the normal distribution in the shape of a tensor."""
    return randn(asarray(x).shape, seed)


def randn2(shape: Any, seed: Any = 0) -> tuple[Tensor, Tensor]:
    """Two numbers of the normal distribution at each point."""
    first, second = (random_value(shape, pcg(uint(seed) * _word(2) + _word(k))) for k in range(2))
    # Never the logarithm of zero.
    length, angle = sqrt(log(1.0 - first * (1.0 - 2.0**-24)) * -2.0), second * (2.0 * math.pi)
    return length * cos(angle), length * sin(angle)


def reverse(idx: Any, n: Any) -> Tensor:
    """The index counted from the end of `n` elements."""
    return (n - 1) - asarray(idx)


def xor_swap(idx: Any, n: Any, seed: Any) -> Tensor:
    """The index with some bits turned, the same ones for all, where that is another one below `n`."""
    idx = asarray(idx)
    bits = as_int(pcg(seed) % (uint(n) + _word(1)))
    other = idx ^ bits
    return select((other >= 0) & (other < n), other, idx)


def shuffle(idx: Any, n: Any, seed: Any = 0, iters: int = 16) -> Tensor:
    """Where an index goes in a random order of the numbers from 0 to before `n`."""
    return trace_of("shuffle").gather(permutation(n, seed), asarray(idx))


def permutation(n: Any, seed: Any = 0) -> Tensor:
    """The numbers from 0 to before ``n`` in another order."""
    return as_int(_searching.argsort(random_value([n], seed)))


def rng_module(type: str = "threefry", seed: int = 0) -> Any:
    """A module that draws random numbers, and has its state among its tensors: an ``nn.Random``.

    Raises:
        ValueError: If there is no such type.
    """
    from aerogel.nn import Random

    if type != "threefry":
        raise ValueError(f"rng_module: `type` is 'threefry', not {type!r}")
    return Random(seed)
