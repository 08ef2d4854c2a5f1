"""Where Taichi keeps what ``ti.ad`` has: programs import from here as well."""

from aerogel.ad._custom import grad_for, grad_replaced, no_grad
from aerogel.ad._forward import FwdMode
from aerogel.ad._gradients import clear_all_gradients
from aerogel.ad._tape import Tape
from aerogel.data._derivatives import SNodeGradType

__all__ = ["FwdMode", "SNodeGradType", "Tape", "clear_all_gradients", "grad_for", "grad_replaced", "no_grad"]
