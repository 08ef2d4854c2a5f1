"""Optimizers, schedules of learning rates, clipping and regularisers.

>>> import aerogel as ti
>>> from aerogel import nn, optim
>>> ti.init(arch=ti.cpu, log_level="error")
>>> w = nn.Parameter([1.0, -2.0])
>>> adam = optim.Adam([w], lr=0.1)
>>> w.grad = ti.tensor.asarray([0.5, -3.0])
>>> adam.step()
>>> w
Parameter([ 0.9, -1.9], dtype=f32)
"""

from aerogel.optim._adam import Adam, AdamW, AMSGrad, Lion, NovoGrad
from aerogel.optim._gradients import clip_grad_norm_, clip_grad_value_, l1, l2
from aerogel.optim._optimizer import Optimizer
from aerogel.optim._scaling import GradScaler
from aerogel.optim._schedules import (
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    OneCycleLR,
    ReduceLROnPlateau,
    Schedule,
    StepLR,
    WarmupLR,
)
from aerogel.optim._sgd import SGD, Adadelta, Adagrad, RMSProp, RMSprop
from aerogel.optim._update import grad_update

__all__ = [
    "AMSGrad",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "CosineAnnealingLR",
    "ExponentialLR",
    "GradScaler",
    "LambdaLR",
    "LinearLR",
    "Lion",
    "MultiStepLR",
    "NovoGrad",
    "OneCycleLR",
    "Optimizer",
    "RMSProp",
    "RMSprop",
    "ReduceLROnPlateau",
    "SGD",
    "Schedule",
    "StepLR",
    "WarmupLR",
    "clip_grad_norm_",
    "clip_grad_value_",
    "grad_update",
    "l1",
    "l2",
]
