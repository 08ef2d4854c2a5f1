"""The module that ``import TensorFrost`` imports under ``python -m aerogel run``: its names for programs of tensors.

Integers divided by integers stay integers, reductions are along the last axis unless one is named, and indices out of
bounds are clamped.
"""

# ruff: noqa: A004, F403
from __future__ import annotations

import math
from typing import Any

from aerogel._dtypes import f32, i32, u1, u32
from aerogel.tensor._tensor import Tensor as Tensor
from aerogel.tensor.frost import clipping as clipping
from aerogel.tensor.frost import imgui as imgui
from aerogel.tensor.frost import optimizers as optimizers
from aerogel.tensor.frost import random as random
from aerogel.tensor.frost import regularizers as regularizers
from aerogel.tensor.frost import sort as sort
from aerogel.tensor.frost import window as window
from aerogel.tensor.frost._custom import *
from aerogel.tensor.frost._functions import *
from aerogel.tensor.frost._gradients import *
from aerogel.tensor.frost._indices import *
from aerogel.tensor.frost._kernels import *
from aerogel.tensor.frost._memory import *
from aerogel.tensor.frost._modules import *
from aerogel.tensor.frost._programs import *
from aerogel.tensor.frost._reductions import *
from aerogel.tensor.frost._scatter import *
from aerogel.tensor.frost._shapes import *
from aerogel.tensor.programs import assert_tensor as assert_tensor
from aerogel.tensor.programs import assert_value as assert_value
from aerogel.tensor.programs import break_loop as break_loop
from aerogel.tensor.programs import buffer as buffer
from aerogel.tensor.programs import const as const
from aerogel.tensor.programs import continue_loop as continue_loop
from aerogel.tensor.programs import if_cond as if_cond
from aerogel.tensor.programs import indices as indices
from aerogel.tensor.programs import input as input
from aerogel.tensor.programs import loop as loop
from aerogel.tensor.programs import print_value as print_value

float32, int32, uint32, bool1 = f32, i32, u32, u1
pi = math.pi


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    raise AttributeError(f"TensorFrost's `{name}` is not supported")
