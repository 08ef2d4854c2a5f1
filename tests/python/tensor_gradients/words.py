"""Functions by one set of names, of this package and of JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from aerogel import nn, special, tensor, xp


class Ours:
    """What tables call."""

    float64 = "f64"
    linalg, fft, xp, special, nn = tensor.linalg, tensor.fft, xp, special, nn.functional

    def __getattr__(self, name: str) -> Any:
        return getattr(tensor, name)

    def asarray(self, x: Any) -> Any:
        x = np.asarray(x)
        return tensor.asarray(x.astype("int32") if x.dtype.kind == "i" else x)

    def complex(self, a: Any, b: Any) -> Any:
        return tensor.ComplexTensor(a, b)

    def eye(self, n: int) -> Any:
        return tensor.eye(n, dtype="f64")

    def stored(self, x: Any, key: Any, value: Any) -> Any:
        x[key] = value
        return x

    def stopped(self, x: Any) -> Any:
        return tensor.stop_gradient(x)

    def evaluated(self, x: Any) -> Any:
        if x.is_numbers:
            x.realize()
        return x

    def added(self, x: Any, key: Any, value: Any) -> Any:
        x[key] += value
        return x


OURS = Ours()


def leaves(y: Any) -> list[Any]:
    """The real tensors of floats of a result."""
    if isinstance(y, (tuple, list)):
        return [x for part in y for x in leaves(part)]
    if isinstance(y, tensor.ComplexTensor):
        return [y.real, y.imag]
    return [y] if y.dtype.is_float else []


def weights(shape: Any, k: int) -> np.ndarray:
    """By what the elements of a result are multiplied, so that each counts."""
    return np.cos(1.0 + 0.7 * np.arange(int(np.prod(shape)))).reshape(shape) + 0.2 * k


def one_number(function: Any) -> Any:
    """The function that sums the elements of a result by weights."""

    def summed(*x: Any) -> Any:
        total = 0
        for k, y in enumerate(leaves(function(OURS, *x))):
            total = total + (y * tensor.asarray(weights(y.shape, k)).astype(y.dtype)).sum()
        return total

    return summed
