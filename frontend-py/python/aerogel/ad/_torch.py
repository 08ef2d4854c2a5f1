"""``ti.ad.torch_function``: kernels as functions of PyTorch, whose gradients flow through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aerogel.ad import _recorder


def torch_function(kernel: Any, shape: Callable[..., Any] | None = None, dtype: Any = None) -> Callable[..., Any]:
    """Makes a function of PyTorch tensors from a kernel whose last parameter is the array of its results.

    Args:
        kernel: Takes arrays and numbers, and last the array into which it writes.
        shape: The shape of the results, from the arguments; that of the first tensor if it is not given.
        dtype: The dtype of the results; that of the first tensor if it is not given.

    Returns:
        A function of all arguments but the last one, with gradients by all tensors.

    >>> import aerogel as ti
    >>> @ti.kernel
    ... def square(x: ti.types.ndarray(), y: ti.types.ndarray()):
    ...     for i in x:
    ...         y[i] = x[i] ** 2
    >>> square_of = torch_function(square)
    >>> square_of(torch.tensor([3.0], requires_grad=True)).backward()  # doctest: +SKIP
    """
    made: list[Any] = []

    def call(*args: Any) -> Any:
        import torch

        if not made:
            made.append(_function(torch, kernel, shape, dtype))
        return made[0].apply(*args)

    call.__name__ = getattr(kernel, "__name__", "call")
    call.__doc__ = getattr(kernel, "__doc__", None)
    return call


def _function(torch: Any, kernel: Any, shape: Callable[..., Any] | None, dtype: Any) -> Any:
    """The ``torch.autograd.Function`` of a kernel."""

    class KernelFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            first = next((arg for arg in args if isinstance(arg, torch.Tensor)), None)
            if first is None:
                raise TypeError(f"`{kernel.__name__}` as a function of PyTorch takes a tensor, got {args!r}")
            given = [arg.detach() if isinstance(arg, torch.Tensor) else arg for arg in args]
            extents = shape(*given) if shape is not None else first.shape
            result = torch.zeros(extents, dtype=dtype or first.dtype)
            with _recorder.unrecorded():
                kernel(*given, result)
            ctx.rest = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
            ctx.save_for_backward(*(arg for arg in args if isinstance(arg, torch.Tensor)), result)
            return result

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            *tensors, result = ctx.saved_tensors
            saved = iter(tensors)
            args, found = [], []
            for rest, needed in zip(ctx.rest, ctx.needs_input_grad):
                arg = rest
                if rest is None:
                    arg = next(saved).detach()
                    if needed:
                        arg.requires_grad_()
                        arg.grad = torch.zeros_like(arg)
                args.append(arg)
                found.append(arg if needed else None)
            # Its own memory: the kernel consumes the gradient of what it wrote.
            result = result.detach().requires_grad_()
            result.grad = gradient.detach().to(result.dtype).clone(memory_format=torch.contiguous_format)
            with _recorder.unrecorded():
                kernel.grad(*args, result)
            return tuple(None if arg is None else arg.grad for arg in found)

    return KernelFunction


__all__ = ["torch_function"]
