"""Tensors of PyTorch: types, layouts, gradients, subclasses, and tensors that hold no plain memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from bridges.case import KINDS, Case, kind, numbers

import aerogel as ti

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()
#: Types that kernels do not have.
OTHERS = ["complex64", "float8_e4m3fn", "float8_e5m2"]


def seen(tensor: torch.Tensor) -> np.ndarray:
    """What PyTorch reads, as NumPy has it; its own conversions only."""
    plain = torch.Tensor.detach(tensor.as_subclass(torch.Tensor)).clone(memory_format=torch.contiguous_format)
    plain = plain.resolve_neg().resolve_conj()
    if plain.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        plain = plain.float()
    return plain.numpy().copy()


@ti.kernel
def weighed(x: ti.types.ndarray(), w: ti.types.ndarray(), y: ti.types.ndarray()):
    for I in ti.grouped(y):
        y[I] = w[I] * x[I] ** 2


def of(tensor: Any, *, is_read_only: bool = False, leaf: Any = None, at: Callable[[Any], Any] = lambda g: g) -> Case:
    """A tensor; with a leaf, its gradient is the part of the leaf's that `at` chooses."""
    case = Case(tensor, seen(tensor), lambda: seen(tensor), is_read_only, copies="from_torch")
    if leaf is not None:

        def gradient() -> Any:
            # That of a tensor that is no leaf lies in the tensor itself, if anything put it there.
            own = None if tensor is leaf or leaf.grad is not None else tensor.grad
            found = own if own is not None else None if leaf.grad is None else at(leaf.grad)
            return None if found is None else seen(found)

        def function(w: np.ndarray) -> Any:
            leaf.grad = None
            weights = torch.tensor(w, dtype=tensor.dtype)
            ti.ad.torch_function(weighed)(tensor, weights).sum().backward()
            return gradient()

        case.gradient, case.function = gradient, function
    return case


def _plain(name: str) -> Case:
    dtype = getattr(torch, name)
    if name == "bool":
        return of(torch.tensor(numbers() % 2 > 0))
    return of(torch.tensor(numbers()).to(dtype))


for _name in TYPES + [name for name in OTHERS if hasattr(torch, name)]:
    KINDS[f"torch {_name}"] = lambda act, name=_name: act(_plain(name))


def laid_out(name: str, view: Callable[[Any], Any], *, is_read_only: bool = False) -> None:
    """Kinds of one layout: without gradients, as a leaf, and as a view of a leaf."""

    def base() -> torch.Tensor:
        return torch.tensor(numbers(shape=(4, 6)))

    def leaf() -> Case:
        tensor = view(base()).detach().requires_grad_()
        return of(tensor, leaf=tensor, is_read_only=is_read_only)

    def view_of_leaf() -> Case:
        whole = base().requires_grad_()
        return of(view(whole), leaf=whole, at=view, is_read_only=is_read_only)

    KINDS[f"torch {name}"] = lambda act: act(of(view(base()), is_read_only=is_read_only))
    KINDS[f"torch {name}, a leaf"] = lambda act: act(leaf())
    if not is_read_only:
        KINDS[f"torch {name} of a leaf"] = lambda act: act(view_of_leaf())


laid_out("view", lambda a: a.view(2, 12)[1])
laid_out("strided", lambda a: a[::2, 1::2])
laid_out("transposed", lambda a: a.t())
laid_out("in another order", lambda a: a.view(2, 2, 6).permute(1, 2, 0))
laid_out("expanded", lambda a: a[:1].expand(4, 6), is_read_only=True)


@kind("torch 0-d")
def _zero_d() -> Case:
    return of(torch.tensor(3.0))


@kind("torch empty")
def _empty() -> Case:
    return of(torch.zeros(0, 3))


@kind("torch channels last")
def _channels_last() -> Case:
    return of(torch.tensor(numbers(shape=(2, 3, 2, 2))).to(memory_format=torch.channels_last))


@kind("torch shared memory", is_repeated=False)
def _shared() -> Case:
    return of(torch.tensor(numbers()).share_memory_())


@kind("torch over numpy")
def _over_numpy() -> Case:
    owner = numbers()
    return Case(torch.from_numpy(owner), numbers(), owner.copy, copies="from_torch")


def _leaf() -> torch.Tensor:
    return torch.tensor(numbers()).requires_grad_()


@kind("torch leaf")
def _requires_grad() -> Case:
    leaf = _leaf()
    return of(leaf, leaf=leaf)


@kind("torch leaf of float64")
def _leaf_of_doubles() -> Case:
    leaf = torch.tensor(numbers(np.float64)).requires_grad_()
    return of(leaf, leaf=leaf)


@kind("torch leaf of bfloat16")
def _leaf_of_bfloats() -> Case:
    leaf = torch.tensor(numbers()).bfloat16().requires_grad_()
    return of(leaf, leaf=leaf)


@kind("torch leaf with a transposed gradient")
def _leaf_with_transposed_gradient() -> Case:
    leaf = _leaf()
    leaf.grad = torch.zeros(3, 2).t()
    return of(leaf, leaf=leaf)


@kind("torch Parameter")
def _parameter() -> Case:
    leaf = torch.nn.Parameter(torch.tensor(numbers()))
    return of(leaf, leaf=leaf)


@kind("torch computed")
def _computed() -> Case:
    leaf = _leaf()
    return of(leaf * 1, leaf=leaf)


@kind("torch computed, retains its gradient")
def _retained() -> Case:
    leaf = _leaf()
    value = leaf * 1
    value.retain_grad()
    return of(value, leaf=leaf)


@kind("torch detached of a leaf")
def _detached() -> Case:
    return of(_leaf().detach())


class Tracked(torch.Tensor):
    """A subclass that copies where it is converted."""

    def detach(self) -> Any:
        return super().detach().clone()

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        return super().detach().clone().as_subclass(torch.Tensor).numpy()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.numpy()


@kind("torch subclass that copies")
def _tracked() -> Case:
    return of(torch.tensor(numbers()).as_subclass(Tracked))


@kind("torch subclass that copies, a leaf")
def _tracked_leaf() -> Case:
    leaf = torch.tensor(numbers()).as_subclass(Tracked).requires_grad_()
    return of(leaf, leaf=leaf)


class Functions(torch.Tensor):
    """A subclass in which functions of PyTorch compute with a copy."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            args = [arg.clone() if isinstance(arg, cls) and function is not torch.Tensor.clone else arg for arg in args]
            return function(*args, **(kwargs or {}))


@kind("torch subclass with __torch_function__")
def _functions() -> Case:
    value = torch.tensor(numbers()).as_subclass(Functions)
    with torch._C.DisableTorchFunctionSubclass():
        alias = value.as_subclass(torch.Tensor)
    return Case(value, numbers(), lambda: seen(alias), copies="from_torch")


class Wrapper(torch.Tensor):
    """A subclass without memory, around a tensor that has some."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Any:
        out = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        out.inner = inner
        return out

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args = [arg.inner if isinstance(arg, cls) else arg for arg in args]
        return function(*args, **(kwargs or {}))


@kind("torch subclass without memory")
def _wrapper() -> Case:
    inner = torch.tensor(numbers())
    return Case(Wrapper(inner), numbers(), lambda: seen(inner), copies="from_torch")


@kind("torch neg bit")
def _negative() -> Case:
    value = torch.tensor(numbers() - 1j * numbers()).conj().imag
    assert value.is_neg()
    return of(value)


@kind("torch neg bit, plain")
def _negative_plain() -> Case:
    return of(torch._neg_view(torch.tensor(numbers())))


@kind("torch conj bit")
def _conjugate() -> Case:
    return of(torch.tensor(numbers() * (1 + 1j)).conj())


def _without_memory(make: Callable[[], Any]) -> Case:
    value = make()
    return Case(value, None, lambda: None, copies="from_torch")


@kind("torch sparse COO")
def _coo() -> Case:
    dense = torch.tensor(numbers())
    value = dense.to_sparse()
    return Case(value, numbers(), lambda: seen(value.to_dense()), copies="from_torch")


@kind("torch sparse CSR")
def _csr() -> Case:
    value = torch.tensor(numbers()).to_sparse_csr()
    return Case(value, numbers(), lambda: seen(value.to_dense()), copies="from_torch")


@kind("torch quantised")
def _quantised() -> Case:
    return _without_memory(lambda: torch.quantize_per_tensor(torch.tensor(numbers()), 0.5, 0, torch.qint8))


@kind("torch nested")
def _nested() -> Case:
    return _without_memory(lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))


@kind("torch nested, jagged")
def _jagged() -> Case:
    parts = [torch.ones(2), torch.ones(3)]
    return _without_memory(lambda: torch.nested.nested_tensor(parts, layout=torch.jagged))


@kind("torch meta")
def _meta() -> Case:
    return _without_memory(lambda: torch.zeros(2, 3, device="meta"))


@kind("torch fake", is_repeated=False)
def _fake(act: Callable[[Case], None]) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        value = mode.from_tensor(torch.tensor(numbers()))
    act(Case(value, None, lambda: None, copies="from_torch"))


@kind("torch fake, in its mode", is_repeated=False)
def _fake_inside(act: Callable[[Case], None]) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        act(Case(torch.zeros(2, 3), None, lambda: None, copies="from_torch"))


@kind("torch inference tensor")
def _inference() -> Case:
    with torch.inference_mode():
        value = torch.tensor(numbers())

    def read() -> np.ndarray:
        with torch.inference_mode():
            return seen(value)

    return Case(value, numbers(), read, copies="from_torch")


@kind("torch in inference mode")
def _in_inference_mode(act: Callable[[Case], None]) -> None:
    with torch.inference_mode():
        act(of(torch.tensor(numbers())))


@kind("torch leaf without gradients on")
def _no_grad(act: Callable[[Case], None]) -> None:
    with torch.no_grad():
        act(of(_leaf()))


@kind("torch in vmap")
def _in_vmap(act: Callable[[Case], None]) -> None:
    def inside(x: torch.Tensor) -> torch.Tensor:
        act(Case(x, None, lambda: None, copies="from_torch"))
        return x

    torch.func.vmap(inside)(torch.tensor(numbers()))


@kind("torch in func.grad")
def _in_grad(act: Callable[[Case], None]) -> None:
    whole = torch.tensor(numbers())

    def inside(x: torch.Tensor) -> torch.Tensor:
        act(Case(x, numbers(), lambda: seen(whole), copies="from_torch"))
        return x.sum()

    torch.func.grad(inside)(whole)


@kind("torch in func.functionalize")
def _in_functionalize(act: Callable[[Case], None]) -> None:
    whole = torch.tensor(numbers())

    def inside(x: torch.Tensor) -> torch.Tensor:
        act(Case(x, numbers(), lambda: seen(whole), copies="from_torch"))
        return x

    torch.func.functionalize(inside)(whole)


@kind("torch dual of forward_ad")
def _dual(act: Callable[[Case], None]) -> None:
    with torch.autograd.forward_ad.dual_level():
        primal = torch.tensor(numbers())
        value = torch.autograd.forward_ad.make_dual(primal, torch.ones(2, 3))
        act(Case(value, numbers(), lambda: seen(primal), copies="from_torch"))


@kind("torch over ti.ndarray")
def _over_ndarray() -> Case:
    own = ti.ndarray(ti.f32, (2, 3))
    own.from_numpy(numbers())
    return Case(torch.from_dlpack(own), numbers(), own.to_numpy, copies="from_torch")


@kind("ti.from_dlpack of torch")
def _under_ndarray() -> Case:
    tensor = torch.tensor(numbers())
    return Case(ti.from_dlpack(tensor), numbers(), lambda: seen(tensor))
