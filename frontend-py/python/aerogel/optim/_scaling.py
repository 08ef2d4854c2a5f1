"""Scaling of losses, so that gradients of half precision do not become zero."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import f16
from aerogel.nn._parameter import data_of
from aerogel.tensor._backward import no_grad
from aerogel.tensor._elementwise import isfinite
from aerogel.tensor._tensor import asarray

if TYPE_CHECKING:
    from aerogel.optim._optimizer import Optimizer


#: The factor stays within the range of ``f32``.
_LEAST, _MOST = 2.0**-126, 2.0**127


class GradScaler:
    """Multiplies a loss by a factor, and divides the gradients by it before a step, as PyTorch's.

    Gradients below the smallest number of ``f16`` are zero. The factor moves them into its range. A step whose
    gradients overflow is skipped, and the factor becomes smaller; it becomes larger after many steps without an
    overflow.
    Parameters are ``f32``, and converted where they are used.

    >>> import aerogel as ti
    >>> from aerogel import nn, optim
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> w = nn.Parameter([1.0])
    >>> sgd, scaler = optim.SGD([w], lr=0.5), optim.GradScaler(1024.0)
    >>> half = w.astype(ti.f16)
    >>> scaler.scale((half * half).astype(ti.f32).sum()).backward()
    >>> scaler.step(sgd)
    >>> scaler.update()
    >>> w.item(), scaler.get_scale()
    (0.0, 1024.0)

    Args:
        init_scale: The first factor.
        growth_factor: The multiplier of the factor after ``growth_interval`` steps without an overflow.
        backoff_factor: The multiplier of the factor after an overflow.
        growth_interval: A number of steps.
        enabled: Without it, losses and gradients stay as they are.

    Gradients are averaged over several processes (``optimizer.average``) before they are examined, so that all
    processes skip the same steps.

    Raises:
        ValueError: If the factor is not positive, ``growth_factor`` not above 1, ``backoff_factor`` not between 0 and
            1, or ``growth_interval`` no integer of at least 1.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if not growth_factor > 1 or not 0 < backoff_factor < 1 or growth_interval < 1 or growth_interval % 1:
            raise ValueError(
                "`GradScaler`: `growth_factor` must be above 1, `backoff_factor` between 0 and 1, and "
                "`growth_interval` an integer of at least 1, not "
                f"{growth_factor}, {backoff_factor} and {growth_interval}"
            )
        self._scale, self._n_good = _checked(init_scale, "init_scale"), 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._enabled = growth_interval, enabled
        #: The optimizers whose gradients are divided already, by their ids.
        self._unscaled: dict[int, _Unscaled] = {}

    def scale(self, outputs: Any) -> Any:
        """The loss, or each of a list or tuple, times the factor.

        Raises:
            TypeError: If one is ``f16``, which the factor does not fit in: convert it, as by ``loss.astype(ti.f32)``.
        """
        if isinstance(outputs, (list, tuple)):
            scaled = [self.scale(x) for x in outputs]
            return scaled if isinstance(outputs, list) else tuple(scaled)
        if not self._enabled:
            return outputs
        outputs = asarray(outputs)
        if outputs.dtype == f16:
            raise TypeError(
                "`GradScaler.scale` takes losses of f32, since the factor does not fit in f16: pass "
                "`loss.astype(ti.f32)`"
            )
        return outputs * self._scale

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer's parameters by the factor: to clip them, say, before ``step``.

        Raises:
            RuntimeError: If they have been divided since the last ``update``.
            TypeError: If a parameter is ``f16``, in which small gradients become zero.
        """
        if not self._enabled:
            return
        if id(optimizer) in self._unscaled:
            raise RuntimeError("`GradScaler.unscale_`: the gradients have been divided since the last `update`")
        params = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if (half := next((p for p in params if p.dtype == f16), None)) is not None:
            raise TypeError(
                f"`GradScaler`: a parameter of shape {half.shape} is f16, in which small gradients become zero: keep "
                "it in f32, and convert it where it is used, as by `w.astype(ti.f16)`"
            )
        with no_grad():
            means = optimizer._averaged({id(p): data_of(p.grad) for p in params})
            for p in params:
                if (mean := means[id(p)]) is not None:
                    p.grad = mean * (1.0 / self._scale)
            found = [isfinite(data_of(p.grad)).all() for p in params]
            is_finite = bool(functools.reduce(lambda a, b: a & b, found)) if found else True
        self._unscaled[id(optimizer)] = _Unscaled(optimizer, is_finite)

    def step(self, optimizer: Optimizer) -> None:
        """A step of the optimizer, unless a gradient is infinite or NaN.

        Raises:
            RuntimeError: If there was one since the last ``update``.
            TypeError: As ``unscale_``.
        """
        if not self._enabled:
            optimizer.step()
            return
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer)
        state = self._unscaled[id(optimizer)]
        if state.has_stepped:
            raise RuntimeError("`GradScaler.step`: call `update` before the next step of an optimizer")
        state.has_stepped = True
        if state.is_finite:
            # They have been averaged already.
            average, optimizer.average = optimizer.average, None
            try:
                optimizer.step()
            finally:
                optimizer.average = average

    def update(self, new_scale: float | None = None) -> None:
        """Chooses the factor of the next steps.

        Args:
            new_scale: The factor, if not the one that follows from the last steps.

        Raises:
            RuntimeError: If there was no step since the last time.
            ValueError: If the factor is not positive and finite.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = _checked(new_scale, "new_scale")
        elif not self._unscaled:
            raise RuntimeError("`GradScaler.update`: there was no `step` since the last `update`")
        elif not all(state.is_finite for state in self._unscaled.values()):
            self._scale, self._n_good = max(self._scale * self._backoff_factor, _LEAST), 0
        else:
            self._n_good += 1
            if self._n_good >= self._growth_interval:
                self._scale, self._n_good = min(self._scale * self._growth_factor, _MOST), 0
        self._unscaled.clear()

    def get_scale(self) -> float:
        """The factor."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, float]:
        """The factor, and the number of steps since it changed."""
        return {"scale": self._scale, "growth_tracker": self._n_good}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restores a state that ``state_dict`` returned.

        Raises:
            ValueError: If the factor is not positive and finite.
        """
        self._scale, self._n_good = _checked(state["scale"], "scale"), int(state["growth_tracker"])


class _Unscaled:
    """An optimizer whose gradients are divided, whether all are finite, and whether it made its step."""

    def __init__(self, optimizer: Optimizer, is_finite: bool) -> None:
        self.optimizer, self.is_finite, self.has_stepped = optimizer, is_finite, False


def _checked(scale: float, name: str) -> float:
    if not 0 < scale < math.inf:
        raise ValueError(f"`GradScaler`: `{name}` must be positive and finite, not {scale}")
    return float(scale)


__all__ = ["GradScaler"]
