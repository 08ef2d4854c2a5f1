"""Optimizers: modules that hold another one, and change its parameters by their gradients."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import f32
from aerogel.tensor import _elementwise
from aerogel.tensor._creation import zeros
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor, tracing
from aerogel.tensor.frost import clipping, regularizers
from aerogel.tensor.frost._gradients import grad
from aerogel.tensor.frost._modules import Module, Parameter, ParameterArray
from aerogel.tensor.programs import assert_tensor

#: Keeps quotients finite where gradients are zero.
_EPSILON = 1e-8


class ModuleOptimizer(Module):
    """A module that changes the parameters of ``net``; `sgd`, `adam` and `rmsprop` make it.

    Its settings are numbers, tensors of the program that makes it, or of type `Parameter`, which makes them inputs.
    """

    #: The moments that are stored for each parameter.
    _moments: tuple[str, ...] = ()
    net: Any
    learning_rate: Any
    clip: Any
    reg: Any
    t: Any

    def __init__(self, net: Module, reg_type: int, **settings: Any) -> None:
        super().__init__(requires_grad=False)
        self.net, self.reg_type = net, reg_type
        self.clipping_type = clipping.clamp
        for name, value in settings.items():
            setattr(self, name, value)
        self.t = Parameter([1], f32, random_scale=0.0, optimize=False)
        for name in self._moments:
            array = ParameterArray()
            for k, place in self._trained():
                array[k] = Parameter(place.declared.shape, place.declared.dtype, random_scale=0.0, optimize=False)
            setattr(self, name, array)

    def set_clipping_type(self, kind: int) -> None:
        """Sets how gradients are clipped: one of `clipping`."""
        self.clipping_type = kind

    def _trained(self) -> list[tuple[int, Any]]:
        return [(k, place) for k, place in enumerate(self.net._places()) if place.is_trained]

    def assert_parameters(self) -> None:
        """Has each moment the shape of its parameter."""
        for array in self._arrays():
            for k, place in self._trained():
                array[k] = assert_tensor(array[k], place.value.shape, place.declared.dtype)

    def _arrays(self) -> list[ParameterArray]:
        return [getattr(self, name) for name in self._moments]

    def _complete(self) -> None:
        """Makes moments zeros whose shapes are known since their parameters have values."""
        for array in self._arrays():
            for k, place in self._trained():
                if isinstance(array[k], Parameter) and not isinstance(place.value, Parameter):
                    array[k] = zeros(tuple(place.value.shape), dtype=place.declared.dtype)

    def step(self, *args: Any) -> Tensor:
        """In a program: changes the parameters of ``net`` once, and returns the loss.

        Args:
            args: The loss; or the arguments of ``net.loss``.

        Raises:
            RuntimeError: If parameters are no inputs of a program.
        """
        trained = self._trained()
        if tracing.program is None or isinstance(self.t, Parameter):
            raise RuntimeError("`step` is for programs, after `initialize_input()` of the optimizer")
        loss = args[0] if len(args) == 1 else self.net.loss(*args)
        self.t = self.t + 1
        parameters = [place.value for _, place in trained]
        for (k, place), parameter, gradient in zip(trained, parameters, grad(loss, parameters)):
            change = self._change(k, self._clipped(gradient))
            if self.reg_type == regularizers.l2:
                change = change + self.reg * parameter
            elif self.reg_type == regularizers.l1:
                change = change + self.reg * _elementwise.sign(parameter)
            place.assign(parameter - self.learning_rate * change)
        return loss

    def _clipped(self, gradient: Tensor) -> Tensor:
        if self.clipping_type == clipping.none or not isinstance(self.clip, Tensor) and self.clip <= 0:
            return gradient
        if self.clipping_type == clipping.norm:
            norm = _elementwise.sqrt((gradient * gradient).sum())
            return gradient * where(norm > self.clip, self.clip / norm, 1.0)
        return _elementwise.minimum(_elementwise.maximum(gradient, -self.clip), self.clip)

    def _change(self, k: int, gradient: Tensor) -> Tensor:
        """What is subtracted from the parameter of a number, but for the learning rate."""
        return gradient


class _Adam(ModuleOptimizer):
    _moments = ("m", "v")
    beta1: Any
    beta2: Any
    m: Any
    v: Any

    def _change(self, k: int, gradient: Tensor) -> Tensor:
        self.m[k] = self.beta1 * self.m[k] + (1 - self.beta1) * gradient
        self.v[k] = self.beta2 * self.v[k] + (1 - self.beta2) * gradient * gradient
        mean = self.m[k] / (1 - self.beta1**self.t)
        return mean / (_elementwise.sqrt(self.v[k] / (1 - self.beta2**self.t)) + _EPSILON)


class _RMSProp(ModuleOptimizer):
    _moments = ("v",)
    decay: Any
    v: Any

    def _change(self, k: int, gradient: Tensor) -> Tensor:
        self.v[k] = self.decay * self.v[k] + (1 - self.decay) * gradient * gradient
        return gradient / (_elementwise.sqrt(self.v[k]) + _EPSILON)


def sgd(
    net: Module,
    reg_type: int = regularizers.none,
    learning_rate: Any = 0.001,
    clip: Any = 0.0,
    reg: Any = 0.0,
    *,
    grad_clip: Any = None,
) -> ModuleOptimizer:
    """Gradient descent.

    Args:
        net: The module whose parameters are changed.
        reg_type: One of `regularizers`.
        learning_rate: The length of a step.
        clip: The bound of gradients, as `clipping` says; 0 for none. ``grad_clip`` is the same.
        reg: The weight of the regularizer.
    """
    clip = clip if grad_clip is None else grad_clip
    return ModuleOptimizer(net, reg_type, learning_rate=learning_rate, clip=clip, reg=reg)


def adam(
    net: Module,
    reg_type: int = regularizers.none,
    learning_rate: Any = 0.001,
    beta1: Any = 0.9,
    beta2: Any = 0.999,
    clip: Any = 0.0,
    reg: Any = 0.0,
    *,
    grad_clip: Any = None,
) -> ModuleOptimizer:
    """Adam (Kingma and Ba, 2015); the regularizer is added after the moments (Loshchilov and Hutter, 2019).

    ``beta1`` and ``beta2`` are the decays of the moments; the others are those of `sgd`.
    """
    clip = clip if grad_clip is None else grad_clip
    return _Adam(net, reg_type, learning_rate=learning_rate, beta1=beta1, beta2=beta2, clip=clip, reg=reg)


def rmsprop(
    net: Module,
    reg_type: int = regularizers.none,
    learning_rate: Any = 0.001,
    decay: Any = 0.9,
    clip: Any = 0.0,
    reg: Any = 0.0,
    *,
    grad_clip: Any = None,
) -> ModuleOptimizer:
    """RMSProp (Tieleman and Hinton, 2012): ``decay`` is that of the mean square; the others are those of `sgd`."""
    clip = clip if grad_clip is None else grad_clip
    return _RMSProp(net, reg_type, learning_rate=learning_rate, decay=decay, clip=clip, reg=reg)
