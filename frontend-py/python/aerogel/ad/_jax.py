"""``ti.ad.jax_function``: kernels as functions of JAX, with a ``custom_vjp``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aerogel.ad import _recorder


def jax_function(kernel: Any, shape: Callable[..., Any] | None = None, dtype: Any = None) -> Callable[..., Any]:
    """Makes a function of JAX arrays from a kernel whose last parameter is the array of its results.

    JAX calls back into Python for it, inside of ``jax.jit`` as well.

    Args:
        kernel: Takes arrays, and last the array into which it writes.
        shape: The shape of the results, from the arguments; that of the first array if it is not given.
        dtype: The dtype of the results; that of the first array if it is not given.

    Returns:
        A function of all arguments but the last one, with gradients by all of them.

    >>> square_of = jax_function(square)  # doctest: +SKIP
    >>> jax.grad(lambda x: square_of(x).sum())(jax.numpy.ones(3))  # doctest: +SKIP
    """
    import jax
    import numpy as np

    def described(args: tuple[Any, ...]) -> Any:
        extents = shape(*args) if shape is not None else args[0].shape
        return jax.ShapeDtypeStruct(tuple(extents), dtype or args[0].dtype)

    def run(*args: Any) -> Any:
        wanted = described(args)
        result = np.zeros(wanted.shape, wanted.dtype)
        with _recorder.unrecorded():
            kernel(*(np.array(arg) for arg in args), result)
        return result

    def run_back(*args: Any) -> Any:
        *given, result, gradient = args
        arrays = [_with_gradient(np.array(arg)) for arg in given]
        output = _with_gradient(np.array(result))
        output.grad.from_numpy(np.array(gradient))
        with _recorder.unrecorded():
            kernel.grad(*arrays, output)
        return tuple(array.grad.to_numpy() for array in arrays)

    @jax.custom_vjp
    def call(*args: Any) -> Any:
        return jax.pure_callback(run, described(args), *args)

    def forward(*args: Any) -> Any:
        result = call(*args)
        return result, (args, result)

    def backward(kept: Any, gradient: Any) -> Any:
        args, result = kept
        shapes = tuple(jax.ShapeDtypeStruct(arg.shape, arg.dtype) for arg in args)
        return jax.pure_callback(run_back, shapes, *args, result, gradient)

    call.defvjp(forward, backward)
    return call


def _with_gradient(array: Any) -> Any:
    from aerogel.data.ndarray import ndarray

    out = ndarray(array.dtype, array.shape, needs_grad=True)
    out.from_numpy(array)
    return out


__all__ = ["jax_function"]
