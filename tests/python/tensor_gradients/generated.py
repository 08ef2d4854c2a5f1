"""Which random functions are drawn, and how gradients are compared.

``AEROGEL_N_GRADIENTS`` says how many functions, ``AEROGEL_FIRST_SEED`` which is the first.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tensor_gradients.more_steps import MoreSteps
from tensor_gradients.random_programs import Random
from tensor_gradients.words import OURS

N = int(os.environ.get("AEROGEL_N_GRADIENTS", "2000"))
FIRST = int(os.environ.get("AEROGEL_FIRST_SEED", "0"))
#: For tests of many functions each.
N_PARTS = 20


def seeds(part: int, each: int = 1, n: int = N) -> range:
    return range(FIRST + part * each, FIRST + n, N_PARTS * each)


def made(seed: int) -> Any:
    r = Random(seed, 9, MoreSteps)
    return r, (lambda *x: r(OURS, *x)), tuple(range(len(r.arrays)))


def numbers(all: Any) -> list[np.ndarray]:
    return [g.detach().numpy() for g in all]


def are_close(all: Any, wanted: Any, tolerance: float) -> bool:
    return all and np.all(
        [np.allclose(a, b, rtol=tolerance, atol=tolerance * (1 + np.abs(b).max())) for a, b in zip(all, wanted)]
    )


def along(parts: Any, others: Any) -> float:
    return sum(float((a * b).sum()) for a, b in zip(parts, others))


def directions(r: Random, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=a.shape) for a in r.arrays]


def has(r: Random, name: str) -> bool:
    return any(step.name.startswith(name) for step in r.steps)
