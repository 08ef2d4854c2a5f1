"""Layers that extensions compute, and tensors of their storages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel.backends import _extensions

if TYPE_CHECKING:
    from aerogel.tensor import Tensor as AnyTensor


def tensor(made: Any, name: str) -> AnyTensor:
    """A tensor of a storage of a back end, without a copy."""
    from aerogel.backends import _registry
    from aerogel.tensor._tensor import Tensor

    return Tensor(_registry.native_of(made, name))


def layer(method: str, tensors: tuple[Any, ...], *rest: Any) -> Any:
    """What an `Autograd` extension makes of tensors of one back end; nothing if none has it.

    One lookup in an empty dictionary where nothing is registered.
    """
    if not _extensions.are_any():
        return None
    from aerogel.tensor._tensor import Tensor, tracing

    if tracing.trace is not None or tracing.mapped is not None:
        return None
    if method == "conv2d" and rest[0] is not None:
        from aerogel.tensor import asarray

        tensors, rest = (*tensors, asarray(rest[0], dtype=tensors[0].dtype)), rest[1:]
    own = {x.backend for x in tensors}
    found = _extensions.extension(_extensions.Autograd, own.pop()) if len(own) == 1 else None
    function = getattr(found, method, None)
    if found is None or function is None or not all(found.supports(x.dtype) for x in tensors):
        return None
    made = _differentiable(function, getattr(found, f"{method}_backward"), tensors, rest)
    assert isinstance(made, Tensor)
    return made


def _differentiable(function: Any, backward: Any, tensors: tuple[Any, ...], rest: tuple[Any, ...]) -> Any:
    """The result of a function of an extension, whose gradient is that of the extension."""
    from aerogel.backends import _checks, _registry
    from aerogel.tensor._rules import custom_vjp

    backend = _registry.get(tensors[0].backend)
    what = f"{type(function.__self__).__name__}.{function.__name__}"
    likes = [(x.dtype, x.shape) for x in tensors]

    def forward(*operands: Any) -> Any:
        made, payload = function(*[_registry.storage(x) for x in operands], *rest)
        _checks.expect(backend, what, [made], [(likes[0][0], backend.describe(made)[1])])
        return tensor(made, backend.name), payload

    def pulled(payload: Any, gradient: Any) -> Any:
        # A seed of ones belongs to no back end.
        made = backward(_registry.storage(gradient.to(backend.name)), payload)
        _checks.expect(backend, f"{what}_backward", made, likes)
        return tuple(tensor(m, backend.name) for m in made)

    def whole(*operands: Any) -> Any:
        return forward(*operands)[0]

    whole.__name__ = what
    whole = custom_vjp(whole)
    whole.defvjp(forward, pulled)
    return whole(*tensors)
