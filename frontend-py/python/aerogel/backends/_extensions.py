"""Extensions: what some back ends do by code of their own, where others record statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aerogel._dtypes import DataType
    from aerogel.backends._backend import Backend
    from aerogel.backends._program import Program


class Extension:
    """Functions that a back end implements itself. Methods take and return its storages; functions that are not
    defined record statements.

    Derive a class from one of the classes below, and `register_extension` an object for a back end.
    """

    def supports(self, dtype: DataType) -> bool:
        """Whether it takes tensors of a dtype; others record statements."""
        return dtype.is_float


class Autograd(Extension):
    """Layers with gradients of their own.

    Each function returns its result and a payload, which its gradient is given: ``conv2d_backward(gradient, payload)``
    returns the gradients of the tensors that ``conv2d`` took, in their order.

    Registering one without the gradient of a function that it has is an error.

    * ``conv2d(x, weight, bias, stride, padding, dilation, groups)``: ``bias`` may be ``None``; it has no gradient then.
    * ``pool2d(x, kernel, stride, padding, mode)``: ``mode`` is ``"max"`` or ``"mean"``.
    * ``batchnorm(x, weight, bias, mean, variance, eps)``: channels are axis 1.

    ``padding`` is the number of elements before and after each axis.
    """


class Linalg(Extension):
    """Functions of matrices in the last two axes, by the names that programs have: ``cholesky``, ``solve``, ``inv``,
    ``qr``, ``svd`` and so on. Each takes the storages and returns a list, or ``None`` for those that it does not do."""


class Fft(Extension):
    """Fourier transforms of rows: ``fft``, ``fft_back``, ``fft_of_real``, ``fft_to_real``, as `Linalg`."""


class Random(Extension):
    """Random numbers: ``uniform(key, shape, dtype)`` in [0, 1), as a storage, from two words ``key`` of 32 bits."""


class JitOptimizer(Extension):
    """Programs as a whole: ``compile(program)`` returns a function of the inputs, or ``None`` to run them as usual."""


_E = TypeVar("_E", bound=Extension)
KINDS: tuple[type[Extension], ...] = (Autograd, Linalg, Fft, Random, JitOptimizer)
#: The functions of `Autograd`.
LAYERS = ("conv2d", "pool2d", "batchnorm")
_registered: dict[tuple[type[Extension], str], Extension] = {}


def _kind_of(extension: Extension) -> type[Extension]:
    for kind in KINDS:
        if isinstance(extension, kind):
            return kind
    names = ", ".join(kind.__name__ for kind in KINDS)
    raise TypeError(f"an extension is an object of a class derived from {names} of `ti.backends`, not {extension!r}")


def register_extension(extension: Extension, backend: str) -> Extension:
    """Registers an extension for a back end, which has one of each type.

    Raises:
        TypeError: It is no extension, lacks the gradient of a layer that it has, or the back end has no storages.
        ValueError: The back end has one of this type, or there is no such back end.
    """
    from aerogel.backends import _registry

    kind = _kind_of(extension)
    for layer in LAYERS if kind is Autograd else ():
        own = type(extension).__name__
        if hasattr(extension, layer) and not hasattr(extension, f"{layer}_backward"):
            raise TypeError(
                f"`{own}` has `{layer}` and no gradient of it: define `{layer}_backward(gradient, payload)`"
            )
    if _registry.entry(backend).backend is None:
        raise TypeError(f"the back end `{backend}` is a part of Aerogel and takes no extensions")
    old = _registered.get((kind, backend))
    if old is not None:
        raise ValueError(
            f"the back end `{backend}` has an extension of type `{kind.__name__}` already: {type(old).__name__}"
        )
    _registered[kind, backend] = extension
    return extension


def unregister_extension(kind: type[Extension], backend: str) -> None:
    """Removes the extension of a type from a back end.

    Raises:
        KeyError: It has none.
    """
    del _registered[kind, backend]


def extension(kind: type[_E], backend: str) -> _E | None:
    """The extension of a type that a back end has."""
    return _registered.get((kind, backend))  # type: ignore[return-value]


def are_any() -> bool:
    """Whether any extension is registered."""
    return bool(_registered)


def optimised(backend: Backend, program: Program) -> Callable[[list[Any]], list[Any]] | None:
    """What an extension makes of a program, if there is one."""
    found = _registered.get((JitOptimizer, backend.name))
    if found is None:
        return None
    key = ("optimised", id(found))
    if key not in program.memo:
        program.memo[key] = found.compile(program)  # type: ignore[attr-defined]
    return program.memo[key]


_TRANSFORMS = ("fft", "fft_back", "fft_of_real", "fft_to_real")


def library(backend: Backend, name: str, given: Sequence[Any], likes: Sequence[Any]) -> list[Any] | None:
    """What an extension makes of a function of matrices or rows; nothing if none has it."""
    found = _registered.get((Fft if name in _TRANSFORMS else Linalg, backend.name))
    function = getattr(found, name, None)
    if found is None or function is None or not all(found.supports(backend.describe(x)[0]) for x in given):
        return None
    from aerogel.backends import _checks

    made = function(*given)
    if made is not None:
        _checks.expect(backend, f"{type(found).__name__}.{name}", made, likes)
    return made


def uniform(key: Any, shape: Any, dtype: DataType) -> Any:
    """What a tensor of a `Random` extension of the key's back end is made by; nothing if it has none."""
    if not _registered:
        return None
    from aerogel.backends import _checks, _registry

    found = _registered.get((Random, key.backend))
    if found is None or not found.supports(dtype):
        return None
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    made = found.uniform(tuple(key.tolist()), shape, dtype)  # type: ignore[attr-defined]
    _checks.expect(_registry.get(key.backend), f"{type(found).__name__}.uniform", [made], [(dtype, shape)])
    return _registry.native_of(made, key.backend)
