"""Gradient descent, and methods that divide by a running mean of squares."""

from __future__ import annotations

from typing import Any

from aerogel.optim._optimizer import Numbers, Optimizer, is_on, kept, wide
from aerogel.tensor._elementwise import maximum, sqrt
from aerogel.tensor._tensor import Tensor


class SGD(Optimizer):
    """Gradient descent, with momentum: ``v = momentum v + (1 - dampening) g``, ``p = p - lr v``.

    Args:
        params: A module, its parameters, or groups of parameters.
        lr: The learning rate.
        momentum: Which part of the last step is added to the next.
        dampening: Which part of the gradient momentum leaves out, from the second step on.
        weight_decay: How much of the parameter is added to its gradient.
        nesterov: Whether the gradient is taken ahead of the momentum.
        maximize: Whether to maximise the objective instead of minimising it.

    Raises:
        ValueError: If a setting has no meaning.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "nesterov": nesterov, "maximize": maximize})

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if group["nesterov"] and not (group["momentum"] > 0 and group["dampening"] == 0):
            raise ValueError("`SGD`: `nesterov` needs momentum, and no dampening")

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any], state: dict[str, Any], n: Numbers) -> Tensor:
        if is_on(group["weight_decay"]):
            g = g + n(group["weight_decay"]) * p
        if is_on(group["momentum"]):
            momentum, own = n(group["momentum"]), state.get("momentum_buffer")
            own = g if own is None else momentum * own + n(1.0 - wide(group["dampening"])) * g
            state["momentum_buffer"] = own
            g = g + momentum * own if group["nesterov"] else own
        return p - n(group["lr"]) * g


class RMSProp(Optimizer):
    """Steps divided by the root of a running mean of squares (Hinton).

    Args:
        params: A module, its parameters, or groups of parameters.
        lr: The learning rate.
        alpha: The decay rate of the running mean.
        eps: A small number that is added to the root.
        weight_decay: How much of the parameter is added to its gradient.
        momentum: Which part of the last step is added to the next.
        centered: Whether the variance is used in place of the mean of squares.
        maximize: Whether to maximise the objective instead of minimising it.

    Raises:
        ValueError: If a setting has no meaning.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, {**settings, "centered": centered, "maximize": maximize})

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any], state: dict[str, Any], n: Numbers) -> Tensor:
        alpha, rest = n(group["alpha"]), n(1.0 - wide(group["alpha"]))
        if is_on(group["weight_decay"]):
            g = g + n(group["weight_decay"]) * p
        squares = state["square_avg"] = kept(state, "square_avg", p) * alpha + rest * (g * g)
        if group["centered"]:
            means = state["grad_avg"] = kept(state, "grad_avg", p) * alpha + rest * g
            # A variance of zero may be rounded below.
            squares = maximum(squares - means * means, 0.0)
        step = g / (sqrt(squares) + n(group["eps"]))
        if is_on(group["momentum"]):
            own = kept(state, "momentum_buffer", p) * n(group["momentum"]) + step
            step = state["momentum_buffer"] = own
        return p - n(group["lr"]) * step


RMSprop = RMSProp


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squares so far (Duchi and others).

    Args:
        params: A module, its parameters, or groups of parameters.
        lr: The learning rate.
        lr_decay: By how much it is divided for each step.
        weight_decay: How much of the parameter is added to its gradient.
        initial_accumulator_value: The sum of squares before the first step.
        eps: A small number that is added to the root.
        maximize: Whether to maximise the objective instead of minimising it.

    Raises:
        ValueError: If a setting has no meaning.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps}
        first = {"initial_accumulator_value": initial_accumulator_value}
        super().__init__(params, {**settings, **first, "maximize": maximize})

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any], state: dict[str, Any], n: Numbers) -> Tensor:
        state["step"] = step = state.get("step", 0) + 1
        if is_on(group["weight_decay"]):
            g = g + n(group["weight_decay"]) * p
        total = kept(state, "sum", p, group["initial_accumulator_value"]) + g * g
        state["sum"] = total
        rate = wide(group["lr"]) / (1.0 + wide(step - 1) * wide(group["lr_decay"]))
        return p - n(rate) * g / (sqrt(total) + n(group["eps"]))


class Adadelta(Optimizer):
    """Steps as large as those before, by running means of squares (Zeiler).

    Args:
        params: A module, its parameters, or groups of parameters.
        lr: The factor of each step.
        rho: The decay rate of the running means.
        eps: A small number that is added under the roots.
        weight_decay: How much of the parameter is added to its gradient.
        maximize: Whether to maximise the objective instead of minimising it.

    Raises:
        ValueError: If a setting has no meaning.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, settings)

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any], state: dict[str, Any], n: Numbers) -> Tensor:
        rho, rest, eps = n(group["rho"]), n(1.0 - wide(group["rho"])), n(group["eps"])
        if is_on(group["weight_decay"]):
            g = g + n(group["weight_decay"]) * p
        squares = state["square_avg"] = kept(state, "square_avg", p) * rho + rest * (g * g)
        steps = kept(state, "acc_delta", p)
        step = sqrt(steps + eps) / sqrt(squares + eps) * g
        state["acc_delta"] = steps * rho + rest * (step * step)
        return p - n(group["lr"]) * step
