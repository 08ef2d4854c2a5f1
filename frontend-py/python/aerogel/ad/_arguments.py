"""``ti.ad.value_and_grad``: gradients of a kernel's results by its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aerogel import _native
from aerogel.ad import _recorder
from aerogel.errors import AerogelRuntimeError
from aerogel.kernel import BoundKernel, Kernel


def value_and_grad(kernel: Any, seed: Any = None) -> Callable[..., tuple[Any, tuple[Any, ...]]]:
    """Makes a function that returns a kernel's result, and its gradient by each argument.

    Gradients of fields and arrays that the kernel reads grow as well.

    Args:
        kernel: Returns floats.
        seed: The weight of each returned number; 1 for a single one if it is not given.

    Returns:
        A function of the kernel's arguments. The gradient of a float is a float, that of a vector or matrix a list of
        its components, row by row; that of anything else is None.

    Raises:
        AerogelRuntimeError: Something that is no kernel, or one that returns nothing.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> @ti.kernel
    ... def power(x: float, n: int) -> float:
    ...     y = 1.0
    ...     ti.loop_config(serialize=True)
    ...     for _ in range(n):
    ...         y *= x
    ...     return y
    >>> value_and_grad(power)(3.0, 2)
    (9.0, (6.0, None))
    """
    if not isinstance(kernel, (Kernel, BoundKernel)):
        raise AerogelRuntimeError(f"value_and_grad takes a kernel, not {type(kernel).__name__}")
    own, bound = (kernel.__func__, (kernel.__self__,)) if isinstance(kernel, BoundKernel) else (kernel, ())

    def call(*args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
        with _recorder.unrecorded():
            drawn = _native.next_seed()
            given = (*bound, *args)
            value = own._launch(given, kwargs, None, drawn)
            if value is None:
                raise AerogelRuntimeError(f"kernel `{own.__name__}` returns nothing, so it has no gradient")
            numbers = _flat(seed) if seed is not None else [1.0]
            found = own._pull_back(given, kwargs, numbers, drawn)
        return value, tuple(_value(numbers) for numbers in found[len(bound) :])

    return call


def _flat(seed: Any) -> list[float]:
    import numpy as np

    return np.asarray(seed, dtype=np.float64).reshape(-1).tolist()


def _value(numbers: list[float] | None) -> Any:
    return numbers[0] if numbers is not None and len(numbers) == 1 else numbers


__all__ = ["value_and_grad"]
