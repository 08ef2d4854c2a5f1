"""``ti.ad``: gradients, which are not supported yet."""

from __future__ import annotations

from typing import Any

from aerogel.errors import AerogelNotSupportedError


def _not_yet(*args: Any, **kwargs: Any) -> Any:
    raise AerogelNotSupportedError("gradients are not supported yet")


Tape = FwdMode = clear_all_gradients = grad_replaced = grad_for = no_grad = _not_yet
