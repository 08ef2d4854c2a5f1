"""picograd's names over tensors: values that know the operations which made them, and their gradients.

>>> import aerogel as ti
>>> from aerogel import pico as pg
>>> ti.init(arch=ti.cpu, log_level="error")
>>> x, y = pg.Tensor(2.0, requires_grad=True), pg.Tensor(3.0, requires_grad=True)
>>> z = pg.exp(x) * y**2
>>> [op.code.name for op in z.op.toposort()]
['BUFFER', 'EXP', 'BUFFER', 'POW', 'MUL']
>>> _ = z.backward()
>>> y.grad
Tensor(44.334335)

``python -m aerogel run`` imports this module for ``import picograd``.
"""

from aerogel.pico import optim as optim
from aerogel.pico._op import Device, Op, OpCode
from aerogel.pico._rules import Pattern, PatternMatcher, chain_rules
from aerogel.pico._steps import Counts, Step, Steps, count, steps
from aerogel.pico._tensor import (
    Tensor,
    cos,
    cross_entropy,
    exp,
    exp2,
    log,
    log2,
    log10,
    matmul,
    maximum,
    mean,
    ones,
    randn,
    reciprocal,
    relu,
    sigmoid,
    sin,
    softmax,
    sqrt,
    tanh,
    zeros,
)
from aerogel.pico._tensor import max as max
from aerogel.pico._tensor import sum as sum

__all__ = [
    "Counts", "Device", "Op", "OpCode", "Pattern", "PatternMatcher", "Step", "Steps", "Tensor", "chain_rules", "cos",
    "count", "cross_entropy", "exp", "exp2", "log", "log2", "log10", "matmul", "max", "maximum", "mean", "ones",
    "optim", "randn", "reciprocal", "relu", "sigmoid", "sin", "softmax", "sqrt", "steps", "sum", "tanh", "zeros",
]  # fmt: skip
