"""Random functions of tensors for any module of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensor_gradients.random_steps import Steps


class Random:
    """A random function of some arrays."""

    def __init__(self, seed: int, n_steps: int = 14, steps: type[Steps] = Steps) -> None:
        made = steps(seed, n_steps)
        self.arrays, self.steps = made.arrays, made.steps
        rng = np.random.default_rng(seed + 1)
        #: The weight of each tensor of the pool in the result.
        self.weights = [np.asarray(rng.uniform(-1, 1, x.shape)) for x in made.pool]
        self.value = sum(float((x * w).sum()) for x, w in zip(made.pool, self.weights))

    def __call__(self, w: Any, *arrays: Any) -> Any:
        pool = [x * 1 for x in arrays]
        for step in self.steps:
            made = step.function(w, *(pool[k] for k in step.operands))
            if step.to >= 0:
                pool[step.to] = made
            else:
                pool.append(made)
        total: Any = 0.0
        for x, weight in zip(pool, self.weights):
            total = total + (x * w.asarray(weight)).sum()
        return total
