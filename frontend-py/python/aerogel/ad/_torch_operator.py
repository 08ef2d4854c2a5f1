"""One operator of PyTorch for all kernels that are functions, so that ``torch.compile`` need not break its graphs.

A graph calls the operator with the number of a function. Graphs drop, repeat and reorder operators, so only functions
have a number whose kernel reads and writes nothing but its arguments, and whose gradient needs nothing but the inputs.
That is known once the kernel has been compiled: the first call breaks the graph, and PyTorch recompiles the next
one.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from aerogel.ad._torch_autograd import Call, KernelBackward, KernelForward

torch: Any
try:
    import torch
except ImportError:
    # Tests import all modules, also where PyTorch is not.
    torch = None

#: What ``torch_function`` has returned, by number.
_numbered: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_numbers = itertools.count()
#: The bytes that a gradient needs of a call that saves nothing: the seed of its random numbers, and a digest.
_N_BYTES = 16


def number_of(owner: Any, call: Call, tensors: list[Any]) -> int | None:
    """The number of what ``torch_function`` has returned, after a call; nothing if graphs must not move its calls."""
    function = call.function
    # A graph does not know the numbers of which a shape is computed.
    if call.written or (callable(call.shape) and not all(map(call.is_array, range(len(tensors))))):
        return None
    call.active = [tensor.is_floating_point() for tensor in tensors]
    results = [torch.zeros(size, dtype=dtype) for size, dtype in call.results]
    args = [*call.filled([tensor.detach() for tensor in tensors]), *results]
    if not function.kernel._is_pure((*function.bound, *args)):
        return None
    if function.n_saved(call.described(args), call.apart) != _N_BYTES:
        return None
    number = next(_numbers)
    _numbered[number] = owner
    return number


def _call(number: int, tensors: list[Any]) -> Call:
    owner = _numbered[number]
    _, shape, dtype, _ = owner.made_of
    call = Call(owner.function, list(tensors), shape, dtype)
    # Which gradients there will be a graph does not say.
    call.active = [tensor.is_floating_point() for tensor in tensors]
    return call


def _forward(number: int, tensors: list[Any]) -> list[Any]:
    return list(KernelForward.forward(_call(number, tensors), *tensors))


def _forward_fake(number: int, tensors: list[Any]) -> list[Any]:
    call = _call(number, tensors)
    call.describe(tensors, list(tensors))
    like = tensors[0]
    results = [like.new_empty(size, dtype=dtype) for size, dtype in call.results]
    return [*results, torch.empty(_N_BYTES, dtype=torch.uint8)]


def _gradient(number: int, tensors: list[Any], saved: Any, gradients: list[Any]) -> list[Any]:
    call = _call(number, tensors)
    call.describe(tensors, list(tensors))
    given = (gradient if dtype.is_floating_point else None for gradient, (_, dtype) in zip(gradients, call.results))
    return list(KernelBackward.forward(call, call.active, [], saved, *tensors, *given))


def _gradient_fake(number: int, tensors: list[Any], saved: Any, gradients: list[Any]) -> list[Any]:
    return [torch.empty_like(tensor) for tensor in tensors if tensor.is_floating_point()]


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.number, tensors = inputs
    ctx.n_tensors = len(tensors)
    ctx.save_for_backward(*tensors, *output)


def _backward(ctx: Any, gradients: list[Any]) -> Any:
    tensors, (*results, saved) = ctx.saved_tensors[: ctx.n_tensors], ctx.saved_tensors[ctx.n_tensors :]
    given = [torch.zeros_like(result) if gradient is None else gradient for result, gradient in zip(results, gradients)]
    found = iter(torch.ops.aerogel.kernel_gradient(ctx.number, list(tensors), saved, given))
    return None, [next(found) if tensor.is_floating_point() else None for tensor in tensors]


def _register() -> None:
    """Makes the operators."""

    def made(name: str, function: Any, fake: Any, schema: str) -> Any:
        # A graph must not merge two calls: kernels may draw random numbers.
        tags = (torch.Tag.nondeterministic_seeded,)
        operator = torch.library.custom_op(name, function, mutates_args=(), schema=schema, tags=tags)
        operator.register_fake(fake)
        return operator

    forward = "(int number, Tensor[] tensors) -> Tensor[]"
    backward = "(int number, Tensor[] tensors, Tensor saved, Tensor[] gradients) -> Tensor[]"
    kernel = made("aerogel::kernel", _forward, _forward_fake, forward)
    made("aerogel::kernel_gradient", _gradient, _gradient_fake, backward)
    kernel.register_autograd(_backward, setup_context=_setup_context)


if torch is not None:
    _register()

__all__ = ["number_of"]
