"""The functions of NumPy by the names that random statements call."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np


class Numpy:
    """The functions of NumPy by the names that steps call."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def stored(self, x: Any, key: Any, value: Any) -> Any:
        x = x.copy()
        x[key] = value
        return x

    def scatter(self, x: Any, at: Any, value: Any, how: str) -> Any:
        x = x.copy()
        if how == "set":
            x[at] = value
        else:
            named = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[how]
            named.at(x, at, value)
        return x

    def sigmoid(self, x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def softmax(self, x: Any, axis: int) -> Any:
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    def stopped(self, x: Any) -> Any:
        return x

    def evaluated(self, x: Any) -> Any:
        return x

    def asarray(self, x: Any) -> Any:
        return np.asarray(x)

    def relu(self, x: Any) -> Any:
        return np.maximum(x, 0)

    def rsqrt(self, x: Any) -> Any:
        return 1 / np.sqrt(x)

    def fract(self, x: Any) -> Any:
        return x - np.floor(x)

    def softsign(self, x: Any) -> Any:
        return x / (1 + abs(x))

    def erf(self, x: Any) -> Any:
        return np.vectorize(math.erf, otypes=[float])(x)

    def cast(self, x: Any, dtype: str) -> Any:
        return np.asarray(x).astype(dtype)

    def cummax(self, x: Any, axis: int) -> Any:
        return np.maximum.accumulate(x, axis=axis)

    def cummin(self, x: Any, axis: int) -> Any:
        return np.minimum.accumulate(x, axis=axis)

    def logsumexp(self, x: Any, axis: int) -> Any:
        return np.log(np.exp(x).sum(axis=axis))

    def norm(self, x: Any, axis: int) -> Any:
        return np.sqrt((x * x).sum(axis=axis))

    def largest(self, x: Any, k: int) -> Any:
        return np.flip(np.sort(x, axis=-1), axis=-1)[..., :k]

    def vmapped(self, function: Callable[[Any], Any], x: Any) -> Any:
        return np.stack([function(row) for row in x])

    def checkpointed(self, function: Callable[[Any], Any], x: Any) -> Any:
        return function(x)

    def looped(self, n: int, body: Callable[..., Any], *state: Any) -> Any:
        for k in range(n):
            state = body(self, k, *state)
        return state[0] * 1

    def looped_while(self, most: int, holds: Callable[[Any], Any], body: Callable[[Any], Any], x: Any) -> Any:
        for _ in range(most):
            if not holds(x):
                break
            x = body(x)
        return x * 1

    def branched(self, holds: Any, then: Callable[[], Any], otherwise: Any) -> Any:
        return np.where(holds, then(), otherwise)


NUMPY = Numpy()
