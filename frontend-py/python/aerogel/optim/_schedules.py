"""Learning rates that follow a schedule. Each is a function of the number of steps so far."""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING, Any

from aerogel.optim._optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Schedule:
    """Sets the learning rates of an optimizer; ``step()`` is called after those of the optimizer.

    Schedules define ``lr_at(step, base)``. Another learning rate compiles nothing again.

    Args:
        optimizer: The optimizer, whose learning rates are those at the beginning.

    Raises:
        TypeError: If it is no optimizer.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"`{type(self).__name__}` takes an optimizer, not {type(optimizer).__name__}")
        self.optimizer = optimizer
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]
        self.last_epoch = -1
        self.step()

    def lr_at(self, step: int, base: float) -> float:
        """The learning rate after a number of steps; ``base`` is the initial one."""
        raise NotImplementedError

    def step(self) -> None:
        """Advances to the next learning rate."""
        self.last_epoch += 1
        self._set()

    def _set(self) -> None:
        for group, base in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = self.lr_at(self.last_epoch, base)

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """How many steps there have been, and the learning rates at the beginning."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores a state that ``state_dict`` returned."""
        self.last_epoch, self.base_lrs = state["last_epoch"], list(state["base_lrs"])
        self._set()


class LambdaLR(Schedule):
    """The first learning rate times a function of the number of steps.

    Args:
        optimizer: The optimizer.
        lr_lambda: The function, or one for each group.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Any]) -> None:
        groups = getattr(optimizer, "param_groups", ())
        self._functions: list[Any] = (
            list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * len(groups)
        )
        if len(self._functions) != len(groups):
            raise ValueError(f"`LambdaLR`: there are {len(self._functions)} functions for {len(groups)} groups")
        super().__init__(optimizer)

    def lr_at(self, step: int, base: float) -> float:
        """The learning rate of the first group."""
        return base * self._functions[0](step)

    def _set(self) -> None:
        for group, base, function in zip(self.optimizer.param_groups, self.base_lrs, self._functions):
            group["lr"] = base * function(self.last_epoch)


class StepLR(Schedule):
    """The learning rate times ``gamma`` after every ``step_size`` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        if step_size < 1:
            raise ValueError(f"`StepLR`: `step_size` is at least 1, not {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def lr_at(self, step: int, base: float) -> float:
        """The learning rate after a number of steps."""
        return base * self.gamma ** (step // self.step_size)


class MultiStepLR(Schedule):
    """The learning rate times ``gamma`` after each number of steps in ``milestones``."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def lr_at(self, step: int, base: float) -> float:
        """The learning rate after a number of steps."""
        return base * self.gamma ** bisect.bisect_right(self.milestones, step)


class ExponentialLR(Schedule):
    """The learning rate times ``gamma`` after every step."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def lr_at(self, step: int, base: float) -> float:
        """The learning rate after a number of steps."""
        return base * self.gamma**step


class CosineAnnealingLR(Schedule):
    """Half a wave of a cosine from the first learning rate to ``eta_min`` in ``T_max`` steps, and back."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:  # noqa: N803
        if T_max < 1:
            raise ValueError(f"`CosineAnnealingLR`: `T_max` is at least 1, not {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def lr_at(self, step: int, base: float) -> float:
        """The learning rate after a number of steps."""
        return self.eta_min + (base - self.eta_min) * (1.0 + math.cos(math.pi * step / self.T_max)) / 2.0


class LinearLR(Schedule):
    """The learning rate times a factor from ``start_factor`` to ``end_factor`` over ``total_iters`` steps."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5
    ) -> None:
        if total_iters < 1:
            raise ValueError(f"`LinearLR`: `total_iters` is at least 1, not {total_iters}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def lr_at(self, step: int, base: float) -> float:
        """The learning rate after a number of steps."""
        part = min(step, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * part)


class WarmupLR(Schedule):
    """Learning rates that rise from near zero in the first steps, and then are those of another schedule.

    Args:
        optimizer: The optimizer.
        steps: In how many steps the learning rate rises: the first is ``lr / steps``.
        after: The schedule that follows, of the same optimizer, whose first step is where the rise ends; without one
            the learning rate stays.
    """

    def __init__(self, optimizer: Optimizer, steps: int, after: Schedule | None = None) -> None:
        if steps < 1:
            raise ValueError(f"`WarmupLR`: there must be at least one step, not {steps}")
        self.steps, self.after = steps, after
        if after is not None and isinstance(optimizer, Optimizer):
            if after.optimizer is not optimizer:
                raise ValueError("`WarmupLR`: the next schedule belongs to another optimizer")
            for group, base in zip(optimizer.param_groups, after.base_lrs):
                group["lr"] = base
        super().__init__(optimizer)

    def lr_at(self, step: int, base: float) -> float:
        """The learning rate after a number of steps."""
        if step < self.steps:
            return base * (step + 1) / self.steps
        return base if self.after is None else self.after.lr_at(step - self.steps, base)


class OneCycleLR(Schedule):
    """Up to ``max_lr`` and down to almost zero in ``total_steps``, while momentum decreases and increases (Smith,
    Topin).

    Args:
        optimizer: The optimizer.
        max_lr: The largest learning rate.
        total_steps: How many steps there are.
        pct_start: Which part of them the learning rate rises.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: Whether momentum (or the first of ``betas``) changes, too, if the optimizer has such.
        base_momentum: The smallest momentum.
        max_momentum: The largest momentum.
        div_factor: The divisor of ``max_lr`` for the initial learning rate.
        final_div_factor: The divisor of the initial learning rate for the final one.

    Raises:
        ValueError: If there are fewer than two steps, ``pct_start`` is not from 0 to 1, or there is no such strategy;
            from ``step``, if there have been ``total_steps``.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        total_steps: int,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"`OneCycleLR`: the strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        if total_steps < 2 or not 0 <= pct_start <= 1:
            raise ValueError(f"`OneCycleLR`: {total_steps} steps with `pct_start` {pct_start} are no cycle")
        self.max_lr, self.total_steps, self.pct_start = max_lr, total_steps, pct_start
        self.strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        self.base_momentum, self.max_momentum = base_momentum, max_momentum
        self.div_factor, self.final_div_factor = div_factor, final_div_factor
        super().__init__(optimizer)

    def _between(self, step: int, first: float, middle: float, last: float) -> float:
        # A loop over all steps reads one more rate after its last step, which nothing uses.
        if step > self.total_steps:
            raise ValueError(f"`OneCycleLR` has {self.total_steps} steps, this is step {step}")
        peak, end = self.pct_start * self.total_steps - 1.0, self.total_steps - 1.0
        if step <= peak or peak >= end:
            a, b, part = first, middle, step / peak if peak > 0 else 1.0
        else:
            a, b, part = middle, last, (step - peak) / (end - peak)
        if self.strategy == "linear":
            return a + (b - a) * part
        return b + (a - b) * (1.0 + math.cos(math.pi * part)) / 2.0

    def lr_at(self, step: int, base: float) -> float:
        """The learning rate after a number of steps."""
        first = self.max_lr / self.div_factor
        return self._between(step, first, self.max_lr, first / self.final_div_factor)

    def _set(self) -> None:
        super()._set()
        if not self.cycle_momentum:
            return
        momentum = self._between(self.last_epoch, self.max_momentum, self.base_momentum, self.max_momentum)
        for group in self.optimizer.param_groups:
            if "betas" in group:
                group["betas"] = (momentum, group["betas"][1])
            elif "momentum" in group:
                group["momentum"] = momentum


class ReduceLROnPlateau:
    """The learning rate times ``factor`` when a measure has not become better for some time.

    Args:
        optimizer: The optimizer.
        mode: Whether a smaller (``"min"``) or a larger (``"max"``) measure is better.
        factor: The factor of the learning rate.
        patience: For how many steps the measure may not become better.
        threshold: By how much it has to be better.
        threshold_mode: Whether that is a part of the best measure (``"rel"``) or a difference (``"abs"``).
        cooldown: For how many steps after a change nothing is done.
        min_lr: The smallest learning rate.
        eps: Smaller changes are not made.

    Raises:
        ValueError: If ``mode``, ``threshold_mode`` or ``factor`` has no meaning.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"`ReduceLROnPlateau` takes an optimizer, not {type(optimizer).__name__}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs") or not factor < 1:
            raise ValueError(
                f"`ReduceLROnPlateau`: the mode is 'min' or 'max', the threshold 'rel' or 'abs', the factor below 1; "
                f"they are {mode!r}, {threshold_mode!r} and {factor}"
            )
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lr, self.eps = min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    def step(self, metrics: Any) -> None:
        """Takes the next measure: a number, or a tensor that has one."""
        value = float(metrics)
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                new = max(group["lr"] * self.factor, self.min_lr)
                if group["lr"] - new > self.eps:
                    group["lr"] = new
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _is_better(self, value: float) -> bool:
        down = self.mode == "min"
        if self.threshold_mode == "rel":
            bound = self.best * (1.0 - self.threshold if down else 1.0 + self.threshold)
        else:
            bound = self.best - self.threshold if down else self.best + self.threshold
        return value < bound if down else value > bound

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The best measure, and since when there was none better."""
        return {n: getattr(self, n) for n in ("best", "num_bad_epochs", "cooldown_counter")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores a state that ``state_dict`` returned."""
        for name, value in state.items():
            setattr(self, name, value)
