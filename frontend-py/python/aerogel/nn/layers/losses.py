"""Losses as modules."""

from __future__ import annotations

from typing import Any

from aerogel.nn import _losses
from aerogel.nn._module import Module
from aerogel.tensor._tensor import Tensor, asarray


class _Loss(Module):
    """A function of ``nn.functional`` with settings."""

    _function: Any = None

    def _settings(self) -> dict[str, Any]:
        own = {name: value for name, value in self.__dict__.items() if not name.startswith("_") and name != "training"}
        return {**own, **self._buffers}

    def forward(self, x: Any, target: Any) -> Tensor:
        """The loss."""
        return type(self)._function(x, target, **self._settings())

    def extra_repr(self) -> str:
        """The settings."""
        return ", ".join(f"{name}={value!r}" for name, value in self._settings().items() if value is not None)


def _loss(name: str, function: Any, **usual: Any) -> Any:
    """The module of a loss; ``usual`` are the settings that it takes. Those that are tensors become buffers."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(usual) or not kwargs.keys() <= usual.keys():
            raise TypeError(f"`{name}` takes {', '.join(usual)}, not {(*args, *kwargs)}")
        for setting, value in {**usual, **dict(zip(usual, args)), **kwargs}.items():
            if setting in ("weight", "pos_weight"):
                self.register_buffer(setting, None if value is None else asarray(value), persistent=False)
            else:
                setattr(self, setting, value)

    text = f"``functional.{function.__name__}`` as a module. Settings: {', '.join(usual)}."
    own = {"_function": staticmethod(function), "__init__": __init__, "__doc__": text, "__module__": __name__}
    return type(name, (_Loss,), own)


MSELoss = _loss("MSELoss", _losses.mse_loss, reduction="mean")
L1Loss = _loss("L1Loss", _losses.l1_loss, reduction="mean")
HuberLoss = _loss("HuberLoss", _losses.huber_loss, reduction="mean", delta=1.0)
SmoothL1Loss = _loss("SmoothL1Loss", _losses.smooth_l1_loss, reduction="mean", beta=1.0)
BCELoss = _loss("BCELoss", _losses.binary_cross_entropy, weight=None, reduction="mean")
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss", _losses.binary_cross_entropy_with_logits, weight=None, reduction="mean", pos_weight=None
)
HingeLoss = _loss("HingeLoss", _losses.hinge_loss, margin=1.0, reduction="mean")
KLDivLoss = _loss("KLDivLoss", _losses.kl_div, reduction="mean", log_target=False)
NLLLoss = _loss("NLLLoss", _losses.nll_loss, weight=None, ignore_index=-100, reduction="mean")
CrossEntropyLoss = _loss(
    "CrossEntropyLoss",
    _losses.cross_entropy,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
)
CosineSimilarity = _loss("CosineSimilarity", _losses.cosine_similarity, axis=1, eps=1e-8)
