"""Functions whose gradient is given, or that have none: ``grad_replaced``, ``grad_for``, ``no_grad``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from aerogel.ad import _recorder
from aerogel.errors import AerogelRuntimeError

F = TypeVar("F", bound=Callable[..., Any])


def no_grad(func: F) -> F:
    """Makes a function that counts as constant: a tape computes no gradients of the kernels that it launches.

    >>> @no_grad
    ... def show():
    ...     pass
    """

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        recorder = _recorder.current()
        if recorder is None:
            return func(*args, **kwargs)
        recorder.constant += 1
        try:
            return func(*args, **kwargs)
        finally:
            recorder.constant -= 1

    return decorated  # type: ignore[return-value]


def grad_replaced(func: F) -> F:
    """Makes a Python function whose gradient another one computes, the one under ``@grad_for(func)``.

    Called under a tape, its kernels are launched and nothing is recorded of them; in the backward pass the other
    function is called with the same arguments, when all gradients of later launches are computed.

    >>> @grad_replaced
    ... def forward(n):
    ...     pass
    >>> @grad_for(forward)
    ... def backward(n):
    ...     pass
    """

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        recorder = _recorder.current()
        record = getattr(recorder, "replaced", None)
        if recorder is None or record is None or recorder.constant or recorder.replaced_within:
            return func(*args, **kwargs)
        gradient = decorated.grad  # type: ignore[attr-defined]
        if gradient is None:
            raise AerogelRuntimeError(
                f"`{func.__name__}` has @ti.ad.grad_replaced and no gradient: write a function under "
                f"@ti.ad.grad_for({func.__name__})"
            )
        recorder.replaced_within += 1
        try:
            result = func(*args, **kwargs)
        finally:
            recorder.replaced_within -= 1
        record(gradient, args, kwargs)
        return result

    decorated.grad = None  # type: ignore[attr-defined]
    return decorated  # type: ignore[return-value]


def grad_for(primal: Callable[..., Any]) -> Callable[[F], F]:
    """Makes a function the gradient of another one, which has ``@grad_replaced``.

    Raises:
        AerogelRuntimeError: The other one is a kernel, or has no ``@grad_replaced``.
    """
    from aerogel.kernel import Kernel

    name = getattr(primal, "__name__", repr(primal))
    if isinstance(primal, Kernel):
        raise AerogelRuntimeError(
            f"`{name}` is a kernel: put it into a Python function under @ti.ad.grad_replaced, and write the gradient "
            "of that"
        )
    if not hasattr(primal, "grad"):
        raise AerogelRuntimeError(f"`{name}` must be decorated by @ti.ad.grad_replaced")

    def decorator(func: F) -> F:
        @functools.wraps(func)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            return func(*args, **kwargs)

        primal.grad = decorated  # type: ignore[attr-defined]
        return decorated  # type: ignore[return-value]

    return decorator


__all__ = ["grad_for", "grad_replaced", "no_grad"]
