"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from aerogel.nn import _checks, functional
from aerogel.nn._module import Module
from aerogel.nn._parameter import Parameter
from aerogel.nn.init import constant
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor


class _Activation(Module):
    """A function of ``nn.functional`` with settings, which are attributes."""

    _function: Any = None

    def _settings(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_") and name != "training"}

    def forward(self, x: Any) -> Tensor:
        """The function of each element."""
        return type(self)._function(x, **self._settings())

    def extra_repr(self) -> str:
        """The settings."""
        return ", ".join(f"{name}={value!r}" for name, value in self._settings().items())


def _plain(name: str, function: Any) -> Any:
    """The module of a function without settings."""
    text = f"``functional.{function.__name__}`` as a module."
    return type(name, (_Activation,), {"_function": staticmethod(function), "__doc__": text, "__module__": __name__})


ReLU = _plain("ReLU", functional.relu)
ReLU6 = _plain("ReLU6", functional.relu6)
Sigmoid = _plain("Sigmoid", functional.sigmoid)
LogSigmoid = _plain("LogSigmoid", functional.log_sigmoid)
Tanh = _plain("Tanh", functional.tanh)
SiLU = _plain("SiLU", functional.silu)
Mish = _plain("Mish", functional.mish)
SELU = _plain("SELU", functional.selu)
Softplus = _plain("Softplus", functional.softplus)
Softsign = _plain("Softsign", functional.soft_sign)
Hardtanh = _plain("Hardtanh", functional.hard_tanh)
Hardsigmoid = _plain("Hardsigmoid", functional.hard_sigmoid)
Hardswish = _plain("Hardswish", functional.hard_swish)


class GELU(_Activation):
    """``x`` times the probability that a standard normal variable is below ``x``.

    Args:
        approximate: ``"none"``, or ``"tanh"`` for the formula with ``tanh``.
    """

    _function = staticmethod(functional.gelu)

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate


class ELU(_Activation):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""

    _function = staticmethod(functional.elu)

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha


class CELU(ELU):
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``."""

    _function = staticmethod(functional.celu)


class LeakyReLU(_Activation):
    """``x`` where it is not negative, else ``negative_slope * x``."""

    _function = staticmethod(functional.leaky_relu)

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope


class GLU(_Activation):
    """The first half along an axis times the sigmoid of the second."""

    _function = staticmethod(functional.glu)

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis


class Softmax(GLU):
    """``exp(x)`` by its sum along an axis."""

    _function = staticmethod(functional.softmax)


class LogSoftmax(GLU):
    """The logarithm of ``Softmax``."""

    _function = staticmethod(functional.log_softmax)


class PReLU(Module):
    """``x`` where it is positive, else a parameter times ``x``.

    Args:
        num_parameters: 1, or the number of channels, which are the second axis.
        init: The first value of the parameter.
        dtype: Its dtype.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = None) -> None:
        draw = lambda shape, dtype: constant(shape, init, dtype=dtype)  # noqa: E731
        self.weight = Parameter(shape=(num_parameters,), init=draw, dtype=dtype)

    def forward(self, x: Any) -> Tensor:
        """The function of each element."""
        x, weight = _checks.floats(x, self._label()), self.weight
        if weight._native.shape[0] != 1:
            _checks.size(x, min(1, x.ndim - 1), weight._native.shape[0], self._label(), "weight", weight._native.shape)
            weight = weight.reshape(-1, *[1] * (x.ndim - 2))
        return where(x > 0, x, weight * x)
