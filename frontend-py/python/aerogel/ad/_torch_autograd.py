"""The ``torch.autograd.Function`` of a kernel, and that of its gradient; imported where PyTorch is.

The second one is a function of its own so that PyTorch can go through the gradient under ``torch.func``: it unpacks
tensors for both alike, and hears that there are no second derivatives.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from aerogel import _native
from aerogel._dtypes import DataType, numpy_name
from aerogel.ad._function import KernelFunction
from aerogel.errors import AerogelRuntimeError

torch: Any
try:
    import torch
except ImportError:
    # Tests import all modules, also where PyTorch is not.
    torch = None
_Function: Any = object if torch is None else torch.autograd.Function


def call(owner: Any, given: list[Any]) -> Any:
    """The results of what ``torch_function`` has returned, and what else ``KernelForward`` returns."""
    global _uncompiled
    # Its import takes seconds, and is under way where something is compiled.
    if "torch._dynamo" in sys.modules:
        if owner.number is not None and torch.compiler.is_compiling() and _are_tensors(given):
            return torch.ops.aerogel.kernel(owner.number, given)
        if _uncompiled is None:
            _uncompiled = torch.compiler.disable(_call_and_number)
        return _uncompiled(owner, given)
    return _call(owner, given)[0]


def _are_tensors(given: list[Any]) -> bool:
    return all(isinstance(arg, torch.Tensor) for arg in given)


def _call(owner: Any, given: list[Any]) -> Any:
    _, shape, dtype, _ = owner.made_of
    made = Call(owner.function, given, shape, dtype)
    return KernelForward.apply(made, *made.tensors(given)), made


def _call_and_number(owner: Any, given: list[Any]) -> Any:
    results, made = _call(owner, given)
    if not owner.is_numbered and not made.is_transformed:
        owner.is_numbered = True
        if _are_tensors(given):
            from aerogel.ad import _torch_operator

            owner.number = _torch_operator.number_of(owner, made, given)
    return results


#: The same for ``torch.compile``, whose graphs end before it and begin again behind it.
_uncompiled: Any = None


class Call:
    """One call: the kernel, and all arguments that are no tensors."""

    def __init__(self, function: KernelFunction, given: list[Any], shape: Any, dtype: Any) -> None:
        self.function = function
        self.shape, self.dtype = shape, dtype
        #: What is no tensor, with holes for those.
        self.rest = [None if isinstance(arg, torch.Tensor) else arg for arg in given]
        self.at = [k for k, arg in enumerate(given) if isinstance(arg, torch.Tensor)]
        if not any(function.inputs[k][1] == "array" for k in self.at):
            types = ", ".join(type(arg).__name__ for arg in given)
            raise TypeError(f"`{function.name}` as a function of PyTorch takes a tensor for an array, got {types}")
        tensors = self.tensors(given)
        self.is_transformed = any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in tensors)
        is_wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        #: Of each tensor, whether there may be a gradient by it.
        self.active = [
            (self.is_transformed or (is_wanted and tensor.requires_grad)) and tensor.is_floating_point()
            for tensor in tensors
        ]
        # Known when the kernel runs:
        #: The tensors that it writes, the dtypes of all, and the shapes and dtypes of the results.
        self.written: list[int] = []
        #: Whether it is one of a batch.
        self.is_mapped = False
        self.dtypes: list[Any] = []
        self.results: list[tuple[Any, Any]] = []

    def tensors(self, given: list[Any]) -> list[Any]:
        """The tensors among the arguments."""
        return [given[k] for k in self.at]

    def is_array(self, n: int) -> bool:
        """Whether a tensor is given for an array."""
        return self.function.inputs[self.at[n]][1] == "array"

    @property
    def is_whole(self) -> bool:
        """Whether whole fields are saved: what numbers select could be of another size for each element of a batch."""
        return self.is_mapped and not all(map(self.is_array, range(len(self.at))))

    def filled(self, tensors: Iterable[Any]) -> list[Any]:
        """All inputs, with tensors that are given for numbers as numbers."""
        args = list(self.rest)
        for n, tensor in enumerate(tensors):
            args[self.at[n]] = tensor if self.is_array(n) else tensor.tolist()
        return args

    def described(self, args: list[Any]) -> list[Any]:
        """Arguments that share memory with the given ones, with gradients where the backward pass has them."""
        out = list(args)
        for n, k in enumerate(self.at):
            if self.is_array(n) and self.active[n]:
                out[k] = _with_grad(args[k], args[k].detach())
        for k in range(len(self.rest), len(args)):
            if args[k].is_floating_point():
                out[k] = _with_grad(args[k], args[k].detach())
        return out

    def describe(self, tensors: list[Any], given: list[Any]) -> None:
        """Notes what the results will be like."""
        function = self.function
        first = next(tensor for n, tensor in enumerate(tensors) if self.is_array(n))
        shapes = function.shapes(self.shape, given, first.shape)
        dtypes = [_dtype(one) for one in function.each(self.dtype, first.dtype, "dtype")]
        self.dtypes = [tensor.dtype for tensor in tensors]
        self.results = list(zip(shapes, dtypes))

    @property
    def apart(self) -> list[str]:
        """The parameters whose tensors PyTorch keeps."""
        kept = (n for n in range(len(self.at)) if self.is_array(n) and n not in self.written)
        return [self.function.inputs[self.at[n]][0] for n in kept]


def _dtype(given: Any) -> Any:
    """PyTorch's dtype for one of its own, or of Aerogel's."""
    if isinstance(given, torch.dtype):
        return given
    found = getattr(torch, numpy_name(given), None) if isinstance(given, DataType) else None
    if found is None:
        raise TypeError(f"`dtype` is one of PyTorch's, such as torch.float32, or ti.f32 and the like, not {given!r}")
    return found


def _with_grad(tensor: Any, grad: Any) -> Any:
    out = tensor.detach().requires_grad_()
    out.grad = grad
    return out


class KernelForward(_Function):
    """A kernel: takes a call and its tensors, and returns the results, the tensors that it has written, and bytes."""

    @staticmethod
    def forward(call: Call, *tensors: Any) -> Any:
        function = call.function
        device = _device(call, tensors)
        plain = [tensor.detach() for tensor in tensors]
        given = call.filled(plain)
        call.describe(plain, given)
        results = [torch.zeros(size, dtype=dtype, device=device) for size, dtype in call.results]
        written = function.written([*given, *results])
        call.written = [n for n, k in enumerate(call.at) if function.inputs[k][0] in written]
        if call.written and call.is_mapped:
            raise AerogelRuntimeError(
                f"kernel `{function.name}` writes to its inputs, which torch.vmap cannot map: make them results of the "
                "kernel (n_outputs=), or loop over the batch"
            )
        needs_gradient = any(call.active)
        for n in call.written:
            if needs_gradient:
                _expect_changeable(call, tensors, n)
            call.active[n] = needs_gradient and tensors[n].is_floating_point()
            if needs_gradient:
                # Its own memory, which is copied back: PyTorch hears of that.
                given[call.at[n]] = plain[n].clone(memory_format=torch.contiguous_format)
        args = [*given, *results]
        blob = function.forward(args, call.described(args) if needs_gradient else None, call.apart, call.is_whole)
        for n in call.written if needs_gradient else ():
            tensors[n].copy_(given[call.at[n]])
        saved = torch.frombuffer(bytearray(blob), dtype=torch.uint8) if blob else torch.empty(0, dtype=torch.uint8)
        return (*results, *(tensors[n] for n in call.written), saved)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        call, *tensors = inputs
        ctx.call = call
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(*(tensors[n] for n in call.written))
        ctx.mark_non_differentiable(*(one for one in output if not one.is_floating_point()))
        if any(call.active):
            ctx.written = [tensors[n].shape for n in call.written]
            kept = [tensor for n, tensor in enumerate(tensors) if n not in call.written]
            ctx.save_for_backward(output[-1], *kept)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        call = ctx.call
        wanted = [active and needed for active, needed in zip(call.active, ctx.needs_input_grad[1:])]
        if all(gradient is None for gradient in gradients) or not any(wanted):
            return (None,) * (1 + len(wanted))
        found = iter(KernelBackward.apply(call, wanted, ctx.written, *ctx.saved_tensors, *gradients[:-1]))
        return (None, *(next(found) if one else None for one in wanted))

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _one_by_one(KernelForward, info, in_dims, args)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise _no_forward(ctx.call)


class KernelBackward(_Function):
    """The gradient of a kernel: takes what ``forward`` has saved and the gradients of its results, and returns those by
    the tensors that are wanted."""

    @staticmethod
    def forward(call: Call, wanted: list[bool], shapes: list[Any], saved: Any, *rest: Any) -> Any:
        function = call.function
        kept = iter(rest[: len(call.at) - len(call.written)])
        gradients = rest[len(call.at) - len(call.written) :]
        of_results, of_written = gradients[: len(call.results)], iter(gradients[len(call.results) :])
        device = next(gradient.device for gradient in gradients if gradient is not None)
        tensors: list[Any] = []
        for n in range(len(call.at)):
            if n not in call.written:
                tensors.append(next(kept).detach())
                continue
            # What the kernel has written: its memory at the time is among what is saved.
            gradient = next(of_written)
            dtype = call.dtypes[n]
            tensors.append(torch.zeros(shapes[call.written.index(n)], dtype=dtype, device=device))
            if call.active[n]:
                tensors[n] = _with_grad(tensors[n], _own(gradient, tensors[n]))
        args = call.filled(tensors)
        for k, arg in enumerate(args):
            # In private memory, into which what is saved is written.
            if _is_foreign(arg):
                args[k] = _like(arg)
        for (size, dtype), gradient in zip(call.results, of_results):
            result = torch.zeros(size, dtype=dtype, device=device)
            args.append(_with_grad(result, _own(gradient, result)) if dtype.is_floating_point else result)
        described = call.described(args)
        for n, k in enumerate(call.at):
            if wanted[n] and call.is_array(n) and n not in call.written:
                args[k] = _with_grad(args[k], torch.zeros_like(args[k]))
        of_numbers = any(one and not call.is_array(n) for n, one in enumerate(wanted))
        blob = saved.numpy().tobytes()
        numbers = function.backward(args, (blob, described, call.apart, call.is_whole), of_numbers)
        found = []
        for n, k in enumerate(call.at):
            if not wanted[n]:
                continue
            if call.is_array(n):
                found.append(args[k].grad)
            else:
                found.append(torch.tensor(numbers[k], dtype=tensors[n].dtype).reshape(tensors[n].shape))
        return tuple(found)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.call = inputs[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise ctx.call.function.no_second()

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _one_by_one(KernelBackward, info, in_dims, args)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise ctx.call.function.no_second()


def _own(gradient: Any, like: Any) -> Any:
    """A gradient in memory of its own, since the kernel consumes those of what it writes; zero if there is none."""
    if gradient is None:
        return torch.zeros_like(like)
    if gradient.layout != torch.strided:
        gradient = gradient.to_dense()
    return gradient.detach().to(like.dtype).clone(memory_format=torch.contiguous_format)


def _is_foreign(arg: Any) -> bool:
    """Whether something is an array of another package."""
    if isinstance(arg, (torch.Tensor, np.generic, _native.NativeNdarray, _native.NativeTensor)):
        return False
    return hasattr(arg, "__dlpack__") and not hasattr(arg, "_aerogel_field")


def _like(arg: Any) -> Any:
    array = np.asarray(arg)
    return np.zeros(array.shape, array.dtype)


def _device(call: Call, tensors: Any) -> Any:
    """Where all tensors are that are given for arrays."""
    found = None
    for n, tensor in enumerate(tensors):
        name = call.function.inputs[call.at[n]][0]
        if tensor.layout != torch.strided:
            raise TypeError(
                f"the tensor for argument `{name}` of kernel `{call.function.name}` is sparse: pass `{name}.to_dense()`"
            )
        if not call.is_array(n):
            continue
        if tensor.device.type not in ("cpu", "cuda"):
            raise TypeError(
                f"the tensor for argument `{name}` of kernel `{call.function.name}` lies on {tensor.device}: kernels "
                "take tensors on the CPU, or on CUDA devices after ti.init(arch=ti.cuda)"
            )
        found = tensor.device if found is None else found
        if tensor.device != found:
            raise ValueError(
                f"the tensors for kernel `{call.function.name}` lie on {found} and {tensor.device}: move them to one "
                "device"
            )
    return found


def _expect_changeable(call: Call, tensors: Any, n: int) -> None:
    """That a kernel may write a tensor while there are gradients."""
    function, tensor = call.function, tensors[n]
    name, code = function.inputs[call.at[n]][0], function.kernel.__wrapped__.__code__
    where = f"kernel `{function.name}` ({code.co_filename}:{code.co_firstlineno}) writes to its argument `{name}`"
    if tensor.requires_grad and tensor.is_leaf:
        raise AerogelRuntimeError(f"{where}, a leaf that requires a gradient: pass `{name}.clone()`")
    if tensor._base is not None:
        raise AerogelRuntimeError(f"{where}, a view of another tensor: pass `{name}.clone()`")
    memory = tensor.untyped_storage().data_ptr()
    for k, other in enumerate(tensors):
        if k != n and call.is_array(k) and memory and other.untyped_storage().data_ptr() == memory:
            other_name = function.inputs[call.at[k]][0]
            raise AerogelRuntimeError(f"{where}, which shares memory with `{other_name}`: pass `{name}.clone()`")


def _no_forward(call: Call) -> AerogelRuntimeError:
    return AerogelRuntimeError(
        f"kernel `{call.function.name}` as a function of PyTorch has gradients and no tangents: use torch.func.vjp or "
        "jacrev in place of jvp or jacfwd, or ti.ad.jvp with fields"
    )


def _one_by_one(function: Any, info: Any, in_dims: Any, args: Any) -> Any:
    """Runs a function for each element of a batch."""
    call = args[0]
    call.is_mapped = True
    found = []
    for k in range(info.batch_size):
        of_one = (
            arg.select(dim, k) if isinstance(arg, torch.Tensor) and dim is not None else arg
            for arg, dim in zip(args, in_dims)
        )
        found.append(function.apply(*of_one))
    if not found:
        raise ValueError(f"kernel `{call.function.name}` cannot be mapped over an empty batch")
    return tuple(torch.stack(parts) for parts in zip(*found)), (0,) * len(found[0])


__all__ = ["Call", "KernelBackward", "KernelForward", "call"]
