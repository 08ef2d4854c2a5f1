"""``ti.ad.torch_function``: kernels as functions of PyTorch, whose gradients flow through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aerogel.ad._function import KernelFunction
from aerogel.ad._gradients import is_tensor
from aerogel.errors import AerogelRuntimeError
from aerogel.kernel import BoundKernel, Kernel


def torch_function(kernel: Any, shape: Any = None, dtype: Any = None, n_outputs: int = 1) -> Callable[..., Any]:
    """Makes a function of PyTorch tensors from a kernel whose last parameters are the arrays of its results, or from a
    function or program of ``ti.tensor``'s tensors.

    Of a function of tensors there are derivatives of any order. Gradients by tensors with ``requires_grad`` that it
    uses are added to their ``grad``. The following applies to kernels.

    Values of fields, and of arrays that are not tensors, that the gradient needs are copied at each call, so they
    may change before the backward pass. Inputs that the kernel writes are changed in place, as by PyTorch's own
    functions.

    Args:
        kernel: Takes arrays and numbers, and last the arrays into which it writes, which begin as zeros.
        shape: The shape of the results, or a function that returns it for the arguments of a call, such as
            ``lambda x: x.shape[0]``; that of the first tensor if it is not given. Of several results, a list of shapes.
        dtype: The dtype of the results, PyTorch's or ``ti.f32``, or a list; that of the first tensor if it
            is not given.
        n_outputs: How many of the last parameters are results.

    Returns:
        A function of all other arguments, with gradients by all tensors, also such as are given for numbers. It returns
        a tensor, or a tuple of several.

    >>> import aerogel as ti
    >>> @ti.kernel
    ... def square(x: ti.types.ndarray(), y: ti.types.ndarray()):
    ...     for i in x:
    ...         y[i] = x[i] ** 2
    >>> square_of = torch_function(square)
    >>> square_of(torch.tensor([3.0], requires_grad=True)).backward()  # doctest: +SKIP
    """
    if isinstance(kernel, (Kernel, BoundKernel)) or not callable(kernel):
        return _TorchFunction(kernel, shape, dtype, n_outputs)
    from aerogel.tensor._bridges import torch_of

    return torch_of(kernel)


class _TorchFunction:
    """What ``torch_function`` returns; pickled as its arguments are."""

    def __init__(self, kernel: Any, shape: Any, dtype: Any, n_outputs: int) -> None:
        self.function = KernelFunction(kernel, n_outputs, "torch_function")
        self.made_of = (kernel, shape, dtype, n_outputs)
        #: Under which number graphs of ``torch.compile`` call it, if they may, and whether that has been looked at.
        self.number: int | None = None
        self.is_numbered = False
        self.__name__ = self.function.name
        self.__doc__ = getattr(kernel, "__doc__", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from aerogel.ad import _torch_autograd

        function = self.function
        given = function.arguments(args, kwargs)
        for (name, kind), arg in zip(function.inputs, given):
            if kind != "array" and _hides_gradient(arg, kind):
                raise AerogelRuntimeError(
                    f"the argument `{name}` of kernel `{function.name}` holds a tensor that requires a gradient, which "
                    "it would not get: make that a parameter of its own, an array or a number, or detach it"
                )
        n_outputs = self.made_of[3]
        found = _torch_autograd.call(self, given)
        return found[0] if n_outputs == 1 else tuple(found[:n_outputs])

    def __reduce__(self) -> tuple[Any, ...]:
        return torch_function, self.made_of

    def __repr__(self) -> str:
        return f"<function of PyTorch from kernel `{self.__name__}`>"


def _hides_gradient(arg: Any, kind: str) -> bool:
    """Whether an argument holds tensors that require gradients inside of something else."""
    if is_tensor(arg):
        return kind != "value" and bool(arg.requires_grad)
    if isinstance(arg, dict):
        return any(_hides_gradient(part, "") for part in arg.values())
    return isinstance(arg, (list, tuple)) and any(_hides_gradient(part, "") for part in arg)


def from_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function of tensors from one of PyTorch's: gradients go through it, second derivatives included.

    Gradients by tensors and modules of PyTorch that the function uses are added to their ``grad`` there.

    Args:
        function: It takes and returns tensors of PyTorch, or tuples, lists and dictionaries of them.

    Returns:
        The function of ``ti.tensor``'s tensors. Inside of a program it raises ``RuntimeError``: PyTorch needs numbers.

    >>> softplus = from_torch(torch.nn.functional.softplus)  # doctest: +SKIP
    >>> ti.grad(softplus)(1.0)  # doctest: +SKIP
    """
    from aerogel.tensor import _bridges

    return _bridges.from_torch(function)


__all__ = ["from_torch", "torch_function"]
