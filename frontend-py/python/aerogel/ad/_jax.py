"""``ti.ad.jax_function``: kernels as functions of JAX, with a ``custom_vjp``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from aerogel._dtypes import DataType, numpy_dtype
from aerogel.ad._function import KernelFunction
from aerogel.errors import AerogelRuntimeError
from aerogel.kernel import BoundKernel, Kernel


def jax_function(kernel: Any, shape: Any = None, dtype: Any = None, n_outputs: int = 1) -> Callable[..., Any]:
    """Makes a function of JAX arrays from a kernel whose last parameters are the arrays of its results, or from a
    function or program of ``ti.tensor``'s tensors.

    Of a function of tensors there are derivatives of any order, by ``jax.vjp``. The following applies to kernels.

    JAX calls back into Python for it, inside of ``jax.jit`` as well; ``jax.vmap`` calls once for each element. The
    fields that the gradient needs are copied at each call, as a whole, so that they may change before the backward
    pass.

    Args:
        kernel: Takes arrays and numbers, and last the arrays into which it writes, which begin as zeros.
        shape: The shape of the results, or a function that returns it for the arguments of a call, such as
            ``lambda x: x.shape[0]``; that of the first array if it is not given. Of several results, a list of shapes.
        dtype: The dtype of the results, NumPy's or ``ti.f32``, or a list; that of the first array if it is
            not given.
        n_outputs: How many of the last parameters are results.

    Returns:
        A function of all other arguments, with gradients by all arrays of JAX and NumPy among them, also by such as are
        given for numbers. It returns an array, or a tuple of several.

    >>> square_of = jax_function(square)  # doctest: +SKIP
    >>> jax.grad(lambda x: square_of(x).sum())(jax.numpy.ones(3))  # doctest: +SKIP
    """
    import jax
    import numpy as np

    if callable(kernel) and not isinstance(kernel, (Kernel, BoundKernel)):
        from aerogel.tensor._bridges import jax_of

        return jax_of(kernel)
    function = KernelFunction(kernel, n_outputs, "jax_function")

    # JAX compiles each function that it calls back once.
    @functools.lru_cache(maxsize=64)
    def made(static: _Static) -> _Vjp:
        return _Vjp(function, static, shape, dtype)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = function.arguments(args, kwargs)
        at = tuple(
            k
            for k, ((_, kind), arg) in enumerate(zip(function.inputs, given))
            if isinstance(arg, jax.Array) or (kind == "array" and isinstance(arg, np.ndarray))
        )
        static = _Static(at, [None if k in at else arg for k, arg in enumerate(given)])
        found = made(static)(*(given[k] for k in at))
        return found[0] if n_outputs == 1 else found

    call.__name__ = function.name
    call.__doc__ = getattr(kernel, "__doc__", None)
    return call


class _Static:
    """The arguments that are no arrays of JAX, with holes for those.

    Numbers are compared by value, others by identity.
    """

    def __init__(self, at: tuple[int, ...], rest: list[Any]) -> None:
        self.at, self.rest = at, rest
        by_value = (int, bool, str, type(None))
        # The text of a float tells 0.0 from -0.0.
        keys = (repr(arg) if type(arg) is float else arg if type(arg) in by_value else id(arg) for arg in rest)
        self._key = (at, tuple(map(type, rest)), tuple(keys))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class _Vjp:
    """A kernel with some arguments given, as a ``custom_vjp`` of the others."""

    def __init__(self, function: KernelFunction, static: _Static, shape: Any, dtype: Any) -> None:
        self._function, self._static = function, static
        self._shape, self._dtype = shape, dtype
        self._names = [function.inputs[k][0] for k in static.at]
        self._checked: set[Any] = set()
        self._call = self._made()

    def __call__(self, *arrays: Any) -> Any:
        if not any(self._is_array(n) for n in range(len(arrays))):
            types = ", ".join(type(arg).__name__ for arg in self._static.rest if arg is not None)
            raise TypeError(
                f"`{self._function.name}` as a function of JAX takes an array of JAX or NumPy, got {types}: convert by "
                "jax.numpy.asarray"
            )
        key = tuple((array.shape, str(array.dtype)) for array in arrays)
        if key not in self._checked:
            self._expect_unwritten(arrays)
            self._checked.add(key)
        try:
            return _there(self._call(*arrays))
        except TypeError as error:
            if "jvp" not in str(error) or "custom_vjp" not in str(error):
                raise
            raise AerogelRuntimeError(
                f"kernel `{self._function.name}` as a function of JAX has gradients and no tangents: use jax.vjp or "
                "jacrev in place of jvp or jacfwd, or ti.ad.jvp with fields"
            ) from error

    def _is_array(self, n: int) -> bool:
        return self._function.inputs[self._static.at[n]][1] == "array"

    def _made(self) -> Any:
        import jax

        def forward(*arrays: Any) -> Any:
            arrays = tuple(map(jax.numpy.asarray, arrays))
            *results, saved = _there(saving(*arrays))
            return tuple(results), (arrays, saved)

        def backward(kept: Any, gradients: Any) -> Any:
            arrays, saved = kept
            found = iter(pulled(*arrays, saved, *gradients))
            return tuple(next(found) if _is_float(array) else None for array in arrays)

        @jax.custom_vjp
        def call(*arrays: Any) -> Any:
            arrays = tuple(map(jax.numpy.asarray, arrays))
            return jax.pure_callback(self._run, self._results(arrays), *arrays, vmap_method="sequential")

        @jax.custom_jvp
        def saving(*arrays: Any) -> Any:
            args, _ = self._filled([_zeros(array) for array in arrays], self._results(arrays))
            n = self._function.n_saved(args, self._names)
            kinds = (*self._results(arrays), jax.ShapeDtypeStruct((n,), "uint8"))
            return jax.pure_callback(self._run_saving, kinds, *arrays, vmap_method="sequential")

        @jax.custom_jvp
        def pulled(*arrays: Any) -> Any:
            kinds = tuple(
                jax.ShapeDtypeStruct(array.shape, array.dtype)
                for array in arrays[: len(self._names)]
                if _is_float(array)
            )
            return jax.pure_callback(self._run_back, kinds, *arrays, vmap_method="sequential")

        def second(primals: Any, tangents: Any) -> Any:
            raise self._function.no_second()

        saving.defjvp(second)
        pulled.defjvp(second)
        call.defvjp(forward, backward)
        return call

    def _results(self, arrays: Any) -> tuple[Any, ...]:
        """What the results are like."""
        import jax

        function, given = self._function, list(self._static.rest)
        for k, array in zip(self._static.at, arrays):
            given[k] = array
        first = next(array for n, array in enumerate(arrays) if self._is_array(n))
        shapes = function.shapes(self._shape, given, first.shape)
        dtypes = map(_dtype, function.each(self._dtype, first.dtype, "dtype"))
        return tuple(jax.ShapeDtypeStruct(size, dtype) for size, dtype in zip(shapes, dtypes))

    def _filled(self, arrays: Any, results: Any) -> tuple[list[Any], list[Any]]:
        """All arguments, arrays of floats with gradients; and the results among them."""
        args = list(self._static.rest)
        for n, (k, array) in enumerate(zip(self._static.at, arrays)):
            args[k] = _with_gradient(array) if self._is_array(n) else array.tolist()
        outputs = [_with_gradient(_zeros(result)) for result in results]
        return [*args, *outputs], outputs

    def _expect_unwritten(self, arrays: Any) -> None:
        function = self._function
        args, _ = self._filled([_zeros(array) for array in arrays], self._results(arrays))
        for name in sorted(function.written(args) & set(self._names)):
            code = function.kernel.__wrapped__.__code__
            raise AerogelRuntimeError(
                f"kernel `{function.name}` ({code.co_filename}:{code.co_firstlineno}) writes to its argument `{name}`, "
                "and arrays of JAX do not change: make it a result (n_outputs=), or write to a copy"
            )

    def _run(self, *arrays: Any) -> Any:
        args, outputs = self._filled(_copies(arrays), self._results(arrays))
        self._function.forward(args, None, [], True)
        return tuple(output.to_numpy() for output in outputs)

    def _run_saving(self, *arrays: Any) -> Any:
        import numpy as np

        args, outputs = self._filled(_copies(arrays), self._results(arrays))
        blob = self._function.forward(args, args, self._names, True)
        return (*(output.to_numpy() for output in outputs), np.frombuffer(blob, np.uint8))

    def _run_back(self, *given: Any) -> Any:
        import numpy as np

        n = len(self._names)
        arrays, saved, gradients = given[:n], np.asarray(given[n]).tobytes(), given[n + 1 :]
        args, outputs = self._filled(_copies(arrays), self._results(arrays))
        for output, gradient in zip(outputs, gradients):
            if output.grad is not None:
                output.grad.from_numpy(np.array(gradient))
        for k, arg in enumerate(self._static.rest):
            if k not in self._static.at and isinstance(arg, np.ndarray):
                args[k] = np.zeros_like(arg, order="C")
        floats = [k for k, array in enumerate(arrays) if _is_float(array)]
        of_numbers = any(not self._is_array(k) for k in floats)
        numbers = self._function.backward(args, (saved, args, self._names, True), of_numbers)
        found = []
        for k in floats:
            at, like = self._static.at[k], arrays[k]
            of = args[at].grad.to_numpy() if self._is_array(k) else np.asarray(numbers[at])
            found.append(of.astype(like.dtype).reshape(like.shape))
        return tuple(found)


def _dtype(given: Any) -> Any:
    return numpy_dtype(given) if isinstance(given, DataType) else given


def _copies(arrays: Any) -> list[Any]:
    import numpy as np

    return [np.array(array) for array in arrays]


def _zeros(like: Any) -> Any:
    import numpy as np

    return np.zeros(like.shape, like.dtype)


def _is_float(array: Any) -> bool:
    import jax

    return bool(jax.numpy.issubdtype(array.dtype, jax.numpy.floating))


def _there(arrays: Any) -> Any:
    """Arrays of which those are computed that can be: the program may change fields then."""
    import jax

    for array in arrays:
        if not isinstance(array, jax.core.Tracer):
            array.block_until_ready()
    return arrays


def _with_gradient(array: Any) -> Any:
    from aerogel.data.ndarray import ndarray

    out = ndarray(array.dtype, array.shape, needs_grad=_is_float(array))
    out.from_numpy(array)
    return out


def from_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function of tensors from one of JAX's, also a compiled one: gradients go through it, to any order.

    Args:
        function: It takes and returns arrays of JAX, or tuples, lists and dictionaries of them.

    Returns:
        The function of ``ti.tensor``'s tensors. Inside of a program it raises ``RuntimeError``: JAX needs numbers.

    >>> tanh = from_jax(jax.numpy.tanh)  # doctest: +SKIP
    >>> ti.grad(tanh)(1.0)  # doctest: +SKIP
    """
    from aerogel.tensor import _bridges

    return _bridges.from_jax(function)


__all__ = ["from_jax", "jax_function"]
