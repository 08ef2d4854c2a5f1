"""``ti.ad``: gradients of kernels, in reverse mode (:class:`Tape`) and forward mode (:class:`FwdMode`)."""

from __future__ import annotations

from aerogel.ad import _ad as _ad
from aerogel.ad._arguments import value_and_grad
from aerogel.ad._check import check_grad
from aerogel.ad._checkpoint import checkpoint
from aerogel.ad._custom import grad_for, grad_replaced, no_grad
from aerogel.ad._forward import FwdMode
from aerogel.ad._gradients import clear_all_gradients
from aerogel.ad._jax import from_jax, jax_function
from aerogel.ad._products import jvp, vjp
from aerogel.ad._second import hvp
from aerogel.ad._tape import Tape
from aerogel.ad._torch import from_torch, torch_function
from aerogel.data._derivatives import SNodeGradType

__all__ = [
    "FwdMode",
    "SNodeGradType",
    "Tape",
    "check_grad",
    "checkpoint",
    "clear_all_gradients",
    "from_jax",
    "from_torch",
    "grad_for",
    "grad_replaced",
    "hvp",
    "jax_function",
    "jvp",
    "no_grad",
    "torch_function",
    "value_and_grad",
    "vjp",
]
