"""Arrays of JAX, which nothing may write to, and what stands for them inside of transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from bridges.case import KINDS, Case, kind, numbers

import aerogel as ti

TYPES = "bool int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32".split()


def seen(array: Any) -> np.ndarray:
    """What JAX reads, as NumPy has it."""
    if array.dtype == jnp.bfloat16:
        array = array.astype(jnp.float32)
    return np.array(array)


@ti.kernel
def weighed(x: ti.types.ndarray(), w: ti.types.ndarray(), y: ti.types.ndarray()):
    for I in ti.grouped(y):
        y[I] = w[I] * x[I] ** 2


CALL = ti.ad.jax_function(weighed)
GRADIENT = jax.grad(lambda x, w: CALL(x, w).sum())
COMPILED = jax.jit(GRADIENT)


def of(array: Any) -> Case:
    """An array of numbers."""
    case = Case(array, seen(array), lambda: seen(array), is_read_only=True)
    if jnp.issubdtype(array.dtype, jnp.floating):

        def function(w: np.ndarray) -> Any:
            weights = jnp.asarray(w, array.dtype)
            found = GRADIENT(array, weights)
            assert (COMPILED(array, weights) == found).all(), "jit changes the gradient"
            return seen(found)

        case.function = function
    return case


for _name in TYPES:
    KINDS[f"jax {_name}"] = lambda act, name=_name: act(of(jnp.asarray(numbers()).astype(name)))
KINDS["jax bool"] = lambda act: act(of(jnp.asarray(numbers() % 2 > 0)))


@kind("jax 0-d")
def _zero_d() -> Case:
    return of(jnp.float32(3))


@kind("jax empty")
def _empty() -> Case:
    return of(jnp.zeros((0, 3), jnp.float32))


@kind("jax complex64")
def _complex() -> Case:
    return of(jnp.asarray(numbers(np.complex64)))


@kind("jax keys of random numbers")
def _keys() -> Case:
    return Case(jax.random.key(0), None, lambda: None)


@kind("jax deleted")
def _deleted() -> Case:
    array = jnp.asarray(numbers())
    array.delete()
    return Case(array, None, lambda: None)


@kind("jax donated")
def _donated() -> Case:
    array = jnp.asarray(numbers()) + 0
    _DONATE(array)
    return Case(array, None, lambda: None) if array.is_deleted() else of(array)


_DONATE = jax.jit(lambda x: x + 1, donate_argnums=0)


def inside(name: str, transform: Callable[[Any], Any], data: np.ndarray | None) -> None:
    """A kind that is what stands for an array while a transformation traces a function."""

    def run(act: Callable[[Case], None]) -> None:
        def traced(x: Any) -> Any:
            act(Case(x, data, lambda: data, is_read_only=True))
            return x.sum()

        transform(traced)(jnp.asarray(numbers()))

    kind(f"jax in {name}", is_repeated=False)(run)


inside("jit", jax.jit, None)
inside("vmap", jax.vmap, None)
inside("grad", jax.grad, numbers())
inside("jvp", lambda f: lambda x: jax.jvp(f, (x,), (x,)), numbers())
inside("jit of grad", lambda f: jax.jit(jax.grad(f)), None)
inside("eval_shape", lambda f: lambda x: jax.eval_shape(f, x), None)


@kind("ti.from_dlpack of jax")
def _under_ndarray() -> Case:
    array = jnp.asarray(numbers())
    return Case(ti.from_dlpack(array), numbers(), lambda: seen(array), is_read_only=True)


@kind("jax over ti.ndarray")
def _over_ndarray() -> Case:
    own = ti.ndarray(ti.f32, (2, 3))
    own.from_numpy(numbers())
    return Case(jnp.from_dlpack(own), numbers(), own.to_numpy, is_read_only=True)
