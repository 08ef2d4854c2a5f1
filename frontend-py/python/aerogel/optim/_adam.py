"""Adam and methods like it: steps by running means of gradients."""

from __future__ import annotations

from typing import Any

from aerogel.optim._optimizer import Numbers, Optimizer, is_on, kept, power, wide
from aerogel.tensor._elementwise import maximum, sign, sqrt
from aerogel.tensor._tensor import Tensor


class Adam(Optimizer):
    """Steps by running means of gradients and of their squares (Kingma and Ba).

    Args:
        params: A module, its parameters, or groups of parameters.
        lr: The learning rate.
        betas: The decay rates of both running means.
        eps: A small number that is added to the root of the squares.
        weight_decay: How much of the parameter is added to its gradient.
        amsgrad: Whether the largest mean of squares so far is used.
        maximize: Whether to maximise the objective instead of minimising it.

    Raises:
        ValueError: If a setting has no meaning.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, {**settings, "maximize": maximize})

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any], state: dict[str, Any], n: Numbers) -> Tensor:
        if is_on(group["weight_decay"]):
            g = g + n(group["weight_decay"]) * p
        return self._stepped(p, g, group, state, n)

    def _stepped(self, p: Tensor, g: Tensor, group: dict[str, Any], state: dict[str, Any], n: Numbers) -> Tensor:
        state["step"] = step = state.get("step", 0) + 1
        b1, b2 = group["betas"]
        means = state["exp_avg"] = kept(state, "exp_avg", p) * n(b1) + n(1.0 - wide(b1)) * g
        squares = state["exp_avg_sq"] = kept(state, "exp_avg_sq", p) * n(b2) + n(1.0 - wide(b2)) * (g * g)
        if group["amsgrad"]:
            squares = state["max_exp_avg_sq"] = maximum(kept(state, "max_exp_avg_sq", p), squares)
        # Both means begin at zero: early ones are too small.
        first, second = (1.0 - power(b, step) for b in (b1, b2))
        root = sqrt(squares) * n(second**-0.5) + n(group["eps"])
        return p - n(wide(group["lr"]) / first) * means / root


class AdamW(Adam):
    """``Adam`` with weight decay of its own: parameters are multiplied by ``1 - lr weight_decay`` (Loshchilov, Hutter).

    Args:
        params: A module, its parameters, or groups of parameters.
        lr: The learning rate.
        betas: The decay rates of both running means.
        eps: A small number that is added to the root of the squares.
        weight_decay: By how much parameters are made smaller.
        amsgrad: Whether the largest mean of squares so far is used.
        maximize: Whether to maximise the objective instead of minimising it.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any], state: dict[str, Any], n: Numbers) -> Tensor:
        p = p * n(1.0 - wide(group["lr"]) * wide(group["weight_decay"]))
        return self._stepped(p, g, group, state, n)


class AMSGrad(Adam):
    """``Adam`` with the largest mean of squares so far (Reddi and others); arguments as for ``Adam``."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, True, maximize=maximize)


class NovoGrad(Optimizer):
    """Steps by gradients divided by a running mean of their length, one for each parameter (Ginsburg and others).

    Args:
        params: A module, its parameters, or groups of parameters.
        lr: The learning rate.
        betas: The decay rates of the running means of gradients and of their norms.
        eps: A small number that is added to norms.
        weight_decay: How much of the parameter is added to its gradient.
        grad_averaging: Whether gradients are multiplied by ``1 - betas[0]``.
        maximize: Whether to maximise the objective instead of minimising it.

    Raises:
        ValueError: If a setting has no meaning.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.95, 0.98),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        grad_averaging: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "grad_averaging": grad_averaging, "maximize": maximize})

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any], state: dict[str, Any], n: Numbers) -> Tensor:
        b1, b2 = group["betas"]
        total, own = (g * g).sum(), state.get("exp_avg_sq")
        total = state["exp_avg_sq"] = total if own is None else own * n(b2) + n(1.0 - wide(b2)) * total
        g = g / (sqrt(total) + n(group["eps"]))
        if is_on(group["weight_decay"]):
            g = g + n(group["weight_decay"]) * p
        if group["grad_averaging"]:
            g = n(1.0 - wide(b1)) * g
        means = state["exp_avg"] = kept(state, "exp_avg", p) * n(b1) + g
        return p - n(group["lr"]) * means


class Lion(Optimizer):
    """Steps by the sign of a running mean (Chen and others).

    Args:
        params: A module, its parameters, or groups of parameters.
        lr: The learning rate: how far each element moves.
        betas: The weight of the running mean in a step, and the decay rate of the running mean.
        weight_decay: By how much parameters are made smaller, times ``lr``.
        maximize: Whether to maximise the objective instead of minimising it.

    Raises:
        ValueError: If a setting has no meaning.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize})

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any], state: dict[str, Any], n: Numbers) -> Tensor:
        b1, b2 = group["betas"]
        means = kept(state, "exp_avg", p)
        state["exp_avg"] = means * n(b2) + n(1.0 - wide(b2)) * g
        p = p * n(1.0 - wide(group["lr"]) * wide(group["weight_decay"]))
        return p - n(group["lr"]) * sign(means * n(b1) + n(1.0 - wide(b1)) * g)
