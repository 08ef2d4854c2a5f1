"""Functions by one set of names, of this package and of JAX."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

import aerogel
from aerogel import nn, special, tensor, xp
from aerogel.tensor import programs
from aerogel.tensor._tensor import tracing


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

    def cast(self, x: Any, dtype: str) -> Any:
        return x.astype({"float32": "f32", "float64": "f64", "int32": "i32"}[dtype])

    def softsign(self, x: Any) -> Any:
        return nn.functional.soft_sign(x)

    def logsumexp(self, x: Any, axis: int) -> Any:
        return special.logsumexp(x, axis=axis)

    def fmax(self, x: Any, y: Any) -> Any:
        return xp.fmax(x, y)

    def fmin(self, x: Any, y: Any) -> Any:
        return xp.fmin(x, y)

    def largest(self, x: Any, k: int) -> Any:
        return tensor.topk(x, k)[0]

    def vmapped(self, function: Callable[[Any], Any], x: Any) -> Any:
        return aerogel.vmap(function)(x)

    def checkpointed(self, function: Callable[[Any], Any], x: Any) -> Any:
        return aerogel.checkpoint(function)(x)

    # In programs these are loops and branches; elsewhere they are written out.

    def looped(self, n: int, body: Callable[..., Any], *state: Any) -> Any:
        state = tuple(x * 1 for x in state)
        if tracing.program is None:
            for k in range(n):
                state = body(self, k, *state)
            return state[0] * 1
        with programs.loop(n) as k:
            for x, new in zip(state, [y * 1 for y in body(self, k, *state)]):
                x.val = new
        return state[0] * 1

    def looped_while(self, most: int, holds: Callable[[Any], Any], body: Callable[[Any], Any], x: Any) -> Any:
        if tracing.program is not None:
            x = x * 1
            with programs.loop(most):
                with programs.if_cond(tensor.logical_not(holds(x))):
                    programs.break_loop()
                x.val = body(x)
            return x * 1
        goes_on = tensor.asarray(True)
        for _ in range(most):
            goes_on = goes_on & holds(x)
            x = tensor.where(goes_on, body(x), x)
        return x

    def branched(self, holds: Any, then: Callable[[], Any], otherwise: Any) -> Any:
        if tracing.program is None:
            return tensor.where(holds, then(), otherwise)
        made = otherwise * 1
        with programs.if_cond(holds):
            made.val = then()
        return made * 1

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
