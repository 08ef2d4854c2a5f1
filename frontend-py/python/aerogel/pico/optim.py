"""Optimizers by picograd's names: those of `aerogel.optim` over its tensors."""

from __future__ import annotations

from typing import Any

from aerogel.optim import SGD, Adam


def _values(params: Any) -> list[Any]:
    return [getattr(p, "_values", p) for p in params]


def sgd(params: Any, lr: float = 0.001, **settings: Any) -> SGD:
    """Gradient descent: `aerogel.optim.SGD` of a list of tensors with ``requires_grad``."""
    return SGD(_values(params), lr=lr, **settings)


def adam(params: Any, lr: float = 0.001, **settings: Any) -> Adam:
    """Adam: `aerogel.optim.Adam` of a list of tensors with ``requires_grad``."""
    return Adam(_values(params), lr=lr, **settings)
