"""Back ends, which evaluate tensors. ``native`` compiles kernels; others are chosen by name, and written by users.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> x = ti.tensor.asarray([1.0, 2.0, 3.0]).to("numpy")
>>> (x * x).sum().backend, (x * x).sum().item()
('numpy', 14.0)
"""

from __future__ import annotations

from aerogel.backends._backend import DEFAULTS, REQUIRED, Backend
from aerogel.backends._checks import WrongResult
from aerogel.backends._extensions import (
    Autograd,
    Extension,
    Fft,
    JitOptimizer,
    Linalg,
    Random,
    extension,
    register_extension,
    unregister_extension,
)
from aerogel.backends._layers import tensor
from aerogel.backends._program import Buffer, Program
from aerogel.backends._registry import current, get, moved, names, register, storage, use

#: The operations of `Backend.unary`.
UNARY = (
    "neg not abs sign sqrt rsqrt floor ceil round trunc sin cos tan asin acos atan sinh cosh tanh exp exp2 log log2 "
    "popcnt clz"
).split()
#: The operations of `Backend.binary`.
BINARY = "add sub mul div rem floordiv mod pow atan2 min max and or xor shl shr ushr".split()
#: The comparisons of `Backend.compare`.
COMPARE = "eq ne lt le gt ge".split()

__all__ = [
    "BINARY",
    "COMPARE",
    "DEFAULTS",
    "REQUIRED",
    "UNARY",
    "Autograd",
    "Backend",
    "Buffer",
    "Extension",
    "Fft",
    "JitOptimizer",
    "Linalg",
    "Program",
    "Random",
    "WrongResult",
    "current",
    "extension",
    "get",
    "moved",
    "names",
    "register",
    "register_extension",
    "storage",
    "tensor",
    "unregister_extension",
    "use",
]
