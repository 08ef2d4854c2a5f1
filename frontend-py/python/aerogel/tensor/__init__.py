"""Tensors: code in NumPy's notation, evaluated lazily by a few compiled kernels.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> x = ti.tensor.linspace(0, 1, 5)
>>> (ti.tensor.sin(x) ** 2 + ti.tensor.cos(x) ** 2).sum().item()
5.0

Operations record statements, which run when values are needed (``numpy``, ``item``, ``print``). The functions have
the names of the Array API standard, whose own module is ``aerogel.xp``.
"""

from __future__ import annotations

import importlib
import math
import sys
import types
from typing import TYPE_CHECKING, Any

from aerogel import _at_import
from aerogel.tensor import (
    _arguments,
    _creation,
    _einops,
    _elementwise,
    _gradients,
    _operators,
    _products,
    _reductions,
    _searching,
    _shapes,
    fft,
    linalg,
    random,
)
from aerogel.tensor._accum import accum, accum_gradients
from aerogel.tensor._complex import ComplexTensor, complex64, complex128, conj, imag, real
from aerogel.tensor._complex_arithmetic import angle
from aerogel.tensor._creation import *  # noqa: F403
from aerogel.tensor._elementwise import *  # noqa: F403
from aerogel.tensor._gradients import *  # noqa: F403
from aerogel.tensor._products import *  # noqa: F403
from aerogel.tensor._reductions import *  # noqa: F403
from aerogel.tensor._rules import checkpoint, custom_jvp, custom_vjp
from aerogel.tensor._searching import *  # noqa: F403
from aerogel.tensor._shapes import *  # noqa: F403
from aerogel.tensor._tensor import Tensor, asarray
from aerogel.tensor._vmap import vmap

__all__ = [
    "ComplexTensor", "Tensor", "accum", "accum_gradients", "angle", "array", "asarray", "checkpoint", "complex64",
    "complex128", "conj", "custom_jvp", "custom_vjp", "e", "explain", "fft", "imag", "inf", "linalg", "nan", "newaxis",
    "pi", "random", "real", "realize", "tensor", "top_k", "vmap",
]  # fmt: skip
__all__ += _creation.__all__
__all__ += _elementwise.__all__
__all__ += _gradients.__all__
__all__ += _products.__all__
__all__ += _reductions.__all__
__all__ += _searching.__all__
__all__ += _shapes.__all__

_operators.define()
_at_import.at_import("einops._backends", _einops.offer)

tensor = array = asarray
e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi
top_k = topk  # noqa: F405


def explain(*tensors: Tensor) -> str:
    """The kernels that would evaluate these tensors together, as text.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x = ti.tensor.asarray([1.0, 2.0, 3.0])
    >>> print(ti.tensor.explain((x * x + x).sum()).splitlines()[0])
    3 statements became 1 kernel; 1 of 3 temporaries is materialised
    """
    if not tensors:
        raise TypeError("`explain` takes at least one tensor")
    natives = []
    for t in tensors:
        if not isinstance(t, (Tensor, ComplexTensor)):
            raise TypeError(f"`explain` takes tensors, not {type(t).__name__}")
        natives += [plane._native for plane in ((t.real, t.imag) if isinstance(t, ComplexTensor) else (t,))]
    first, *others = natives
    return first.explain(others)


def realize(*tensors: Tensor) -> None:
    """Computes several tensors together, in one program."""
    from aerogel import _native

    _native.realise_tensors([t._native for t in tensors])


_arguments.guard(globals())

if not TYPE_CHECKING:  # For a type checker every name would be one, and a module is not called.

    class _Module(types.ModuleType):
        """The module, which programs for Quadrants call to make a field or an array."""

        def __call__(
            self, dtype: Any, shape: Any = None, *, backend: Any = 1, layout: Any = None, **kwargs: Any
        ) -> Any:
            import aerogel
            from aerogel._taichi.storage import allocate

            if shape is None:
                raise TypeError("`ti.tensor` is a module: `ti.tensor.asarray(x)` makes a tensor")
            return allocate(aerogel, (dtype,), shape, backend, layout, **kwargs)

    sys.modules[__name__].__class__ = _Module

    def __dir__() -> list[str]:
        return sorted([*__all__, "programs"])

    def __getattr__(name: str) -> Any:
        if name == "programs":
            return importlib.import_module("aerogel.tensor.programs")
        ours = ""
        if not name.startswith("_"):
            from aerogel.tensor import _elsewhere

            ours = _elsewhere.function(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{ours}")
