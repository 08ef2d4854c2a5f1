"""The same functions of JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tensor_gradients.words import weights

jax.config.update("jax_enable_x64", True)


class _Linalg:
    def __getattr__(self, name: str) -> Any:
        return getattr(jnp.linalg, name)

    def vector_norm(self, x: Any, **options: Any) -> Any:
        return jnp.linalg.vector_norm(x, **options)


class Jax:
    """What tables call."""

    float64 = "float64"
    linalg, fft, xp, special, nn = _Linalg(), jnp.fft, jnp, jax.scipy.special, jax.nn

    def __getattr__(self, name: str) -> Any:
        for module in (jnp, jax.nn, jax.lax, jax.scipy.special):
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(name)

    sort = staticmethod(jnp.sort)
    complex = staticmethod(jax.lax.complex)

    def rsqrt(self, x: Any) -> Any:
        return jax.lax.rsqrt(x)

    def cummax(self, x: Any, axis: int = 0) -> Any:
        return jax.lax.cummax(x, axis=axis % x.ndim)

    def cummin(self, x: Any, axis: int = 0) -> Any:
        return jax.lax.cummin(x, axis=axis % x.ndim)

    def topk(self, x: Any, k: int) -> Any:
        return jax.lax.top_k(x, k)[0]

    def stored(self, x: Any, key: Any, value: Any) -> Any:
        return x.at[key].set(value)

    def stopped(self, x: Any) -> Any:
        return jax.lax.stop_gradient(x)

    def evaluated(self, x: Any) -> Any:
        return x

    def added(self, x: Any, key: Any, value: Any) -> Any:
        return x.at[key].set(x[key] + value)

    def scatter(self, x: Any, at: Any, value: Any, how: str = "set") -> Any:
        if how == "mul":
            return x.at[at].multiply(value, unique_indices=True)
        return getattr(x.at[at], how)(value)


JAX = Jax()


def leaves(y: Any) -> list[Any]:
    if isinstance(y, (tuple, list)):
        return [x for part in y for x in leaves(part)]
    if jnp.iscomplexobj(y):
        return [y.real, y.imag]
    return [y] if y.dtype.kind == "f" else []


def one_number(function: Any) -> Any:
    def summed(*x: Any) -> Any:
        total = 0.0
        for k, y in enumerate(leaves(function(JAX, *x))):
            total = total + (y * weights(y.shape, k)).sum()
        return total

    return summed


def gradients(function: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
    of = tuple(range(len(arrays)))
    return [np.asarray(g) for g in jax.grad(one_number(function), of)(*map(jnp.asarray, arrays))]


def stored() -> dict[str, float]:
    """For each function the derivative along the direction that tests take."""
    from tensor_gradients.cases import CASES

    out = {}
    for case in CASES.values():
        if case.in_jax:
            arrays = case.arrays()
            rng = np.random.default_rng(1)
            direction = [rng.normal(size=a.shape) for a in arrays]
            made = gradients(case.function, arrays)
            out[case.name] = float(f"{sum((g * d).sum() for g, d in zip(made, direction)):.12g}")
    return out


if __name__ == "__main__":
    # `python -m tensor_gradients.jax_words > tensor_gradients/jax.json` in `tests/python`.
    import json

    print(json.dumps(stored(), indent=0))
