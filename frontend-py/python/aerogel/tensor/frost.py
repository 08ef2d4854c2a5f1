"""What ``import TensorFrost`` gives under ``python -m aerogel run``: its words for programs of tensors.

Integers divided by integers stay integers, reductions are along the last axis unless one is named, and indices outside
are the nearest ones inside.
"""

# ruff: noqa: A001, N802
from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import f32 as float32
from aerogel._dtypes import i32 as int32
from aerogel._dtypes import u1 as bool1
from aerogel._dtypes import u32 as uint32
from aerogel.tensor import _elementwise, _products, _reductions, _searching, _shapes, programs
from aerogel.tensor._tensor import Tensor, asarray, constant, operands, tracing
from aerogel.tensor.programs import (
    assert_tensor,
    break_loop,
    buffer,
    const,
    if_cond,
    indices,
    input,
    kernel,
    loop,
)
from aerogel.tensor.programs import (
    scatter_add as scatterAdd,
)
from aerogel.tensor.programs import (
    scatter_max as scatterMax,
)
from aerogel.tensor.programs import (
    scatter_min as scatterMin,
)

if TYPE_CHECKING:
    from collections.abc import Callable

cpu, opengl, vulkan, codegen = "cpu", "opengl", "vulkan", "codegen"
cpp_lang, glsl_lang, hlsl_lang = "cpp", "glsl", "hlsl"


def initialize(backend: str = cpu, flags: str = "", kernel_lang: Any = None) -> None:
    """Begins: every back end is this compiler, which needs no flags."""
    import aerogel

    if backend == codegen:
        raise NotImplementedError("the source of kernels in other languages is not made; see `Program.text`")
    aerogel.init(arch=aerogel.cpu, log_level="error")


class TensorMemory(Tensor):
    """Numbers that a program takes and gives."""

    __slots__ = ()

    @property
    def numpy(self) -> Any:  # type: ignore[override]
        """The numbers as a NumPy array."""
        return Tensor.numpy(self)


def tensor(array: Any, dtype: Any = None) -> TensorMemory:
    """The numbers of an array; whole ones in 32 bits."""
    import numpy as np

    array = np.asarray(array)
    if dtype is None and array.dtype.kind in "iuf" and array.dtype.itemsize > 4:
        array = array.astype({"i": np.int32, "u": np.uint32, "f": np.float32}[array.dtype.kind])
    return TensorMemory(asarray(array, dtype=dtype)._native)


class TensorProgram(programs.Program):
    """A compiled function."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(function, divides_integers=True)

    def _result(self, native: Any) -> Tensor:
        return TensorMemory(native)


def compile(function: Callable[[], Any]) -> TensorProgram:
    """Traces and compiles a function."""
    out = TensorProgram(function)
    out.compile()
    return out


def program(function: Callable[[], Any]) -> TensorProgram:
    """A program of a function, traced at its first call."""
    return TensorProgram(function)


def scatterOr(target: Tensor, key: Any, value: Any) -> None:
    """Sets the bits of values in memory at computed indices."""
    programs._trace().store(target, key, value, "or")


def scatterAnd(target: Tensor, key: Any, value: Any) -> None:
    """Keeps the bits of values in memory at computed indices."""
    programs._trace().store(target, key, value, "and")


def scatterXor(target: Tensor, key: Any, value: Any) -> None:
    """Turns the bits of values in memory at computed indices."""
    programs._trace().store(target, key, value, "xor")


def index(axis: builtins.int, shape: Any) -> Tensor:
    """The index along an axis, at every point of a shape."""
    return indices(shape)[axis]


def region_begin(name: str) -> None:
    """A name for what follows, which tools show."""


def region_end(name: str) -> None:
    """The end of what has a name."""


def stop_fusion(x: Tensor) -> Tensor:
    """The tensor: what is fused needs no advice."""
    return x


# Other types.


def float(x: Any) -> Tensor:
    """As ``float32``."""
    return asarray(x).astype(float32)


def int(x: Any) -> Tensor:
    """As ``int32``, towards zero."""
    return asarray(x).astype(int32)


def uint(x: Any) -> Tensor:
    """As ``uint32``."""
    return asarray(x).astype(uint32)


def bool(x: Any) -> Tensor:
    """As a truth value."""
    return asarray(x).astype(bool1)


def asfloat(x: Any) -> Tensor:
    """The bits as ``float32``."""
    return asarray(x).bitcast(float32)


def asint(x: Any) -> Tensor:
    """The bits as ``int32``."""
    return asarray(x).bitcast(int32)


def asuint(x: Any) -> Tensor:
    """The bits as ``uint32``."""
    return asarray(x).bitcast(uint32)


# Functions of numbers.

abs, sign, ceil, floor, trunc = (getattr(_elementwise, n) for n in ("abs", "sign", "ceil", "floor", "trunc"))
sin, cos, tan, asin, acos, atan = (getattr(_elementwise, n) for n in ("sin", "cos", "tan", "asin", "acos", "atan"))
sinh, cosh, tanh, exp, exp2, log, log2 = (
    getattr(_elementwise, n) for n in ("sinh", "cosh", "tanh", "exp", "exp2", "log", "log2")
)
sqrt, rsqrt, rcp, frac, sqr = (getattr(_elementwise, n) for n in ("sqrt", "rsqrt", "reciprocal", "fract", "square"))
round, pow, atan2, smoothstep, lerp, fma = (
    getattr(_elementwise, n) for n in ("round", "pow", "atan2", "smoothstep", "lerp", "fma")
)
modf = _elementwise.fmod


def clamp(x: Any, low: Any, high: Any) -> Tensor:
    """The number, but no less than ``low`` and no more than ``high``."""
    return _elementwise.minimum(_elementwise.maximum(x, low), high)


def select(condition: Any, a: Any, b: Any) -> Tensor:
    """One of two values."""
    return _searching.where(condition, a, b)


def min(x: Any, y: Any = None, *, axis: Any = -1) -> Tensor:
    """The smaller of two numbers, or the smallest along an axis."""
    return _elementwise.minimum(x, y) if y is not None else _reductions.min(x, axis=axis)


def max(x: Any, y: Any = None, *, axis: Any = -1) -> Tensor:
    """The larger of two numbers, or the largest along an axis."""
    return _elementwise.maximum(x, y) if y is not None else _reductions.max(x, axis=axis)


def pcg(x: Any) -> Tensor:
    """A hash of 32 bits (PCG, O'Neill)."""
    x = asarray(x).astype(uint32)
    state = x * _word(747796405) + _word(2891336453)
    word = ((state >> ((state >> _word(28)) + _word(4))) ^ state) * _word(277803737)
    return (word >> _word(22)) ^ word


def pcgf(x: Any) -> Tensor:
    """A hash as a number from 0 to 1."""
    return float(pcg(x)) * (1.0 / 4294967296.0)


def _word(n: builtins.int) -> Tensor:
    return constant(n, uint32)


# Reductions, along the last axis.


def sum(x: Any, axis: Any = -1) -> Tensor:
    """The sum along an axis; truth values are counted."""
    x = asarray(x)
    x = x.astype(int32) if x.dtype is bool1 else x
    return Tensor(x._native.reduce("sum", _reductions._axes(axis), False))


def mean(x: Any, axis: Any = -1) -> Tensor:
    """The mean along an axis."""
    return _reductions.mean(x, axis=axis)


def norm(x: Any, axis: Any = -1) -> Tensor:
    """The length of vectors along an axis."""
    return _reductions.norm(x, axis=axis)


def any(x: Any, axis: Any = -1) -> Tensor:
    """Whether some number is other than zero along an axis."""
    return _reductions.any(x, axis=axis)


def all(x: Any, axis: Any = -1) -> Tensor:
    """Whether every number is other than zero along an axis."""
    return _reductions.all(x, axis=axis)


def dot(a: Any, b: Any, axis: Any = -1) -> Tensor:
    """The sum of products along an axis."""
    a, b = operands(a, b)
    return sum(a * b, axis)


matmul = _products.matmul


def prefix_sum(x: Any, axis: Any = -1) -> Tensor:
    """The sum of the numbers up to each along an axis."""
    return _reductions.prefix_sum(x, axis=axis)


# Shapes.


def unsqueeze(x: Any, axis: builtins.int = -1) -> Tensor:
    """With an axis of extent 1 more."""
    return _shapes.unsqueeze(x, axis)


def squeeze(x: Any, axis: builtins.int = -1) -> Tensor:
    """Without an axis of extent 1."""
    return _shapes.squeeze(x, axis)


def reshape(x: Any, shape: Any) -> Tensor:
    """The elements row by row in another shape."""
    return _shapes.reshape(x, shape)


def transpose(x: Any, axis1: builtins.int = -1, axis2: builtins.int = -2) -> Tensor:
    """Two axes exchanged."""
    x = asarray(x)
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return x.permute(*order)


def reverse(x: Any, axis: builtins.int = -1) -> Tensor:
    """The elements in the opposite order along an axis."""
    return _shapes.flip(x, axis=axis)


def _filled(shape: Any, value: Any, dtype: Any) -> Tensor:
    kind = float32 if dtype is None else dtype
    shape = tracing.program.extents(shape) if tracing.program is not None else list(shape)
    return Tensor(_native.NativeTensor.full(shape, kind._aerogel_dtype, value, tracing.trace))


def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """Zeros."""
    return _filled(shape, 0, dtype)


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Ones."""
    return _filled(shape, 1, dtype)


def copy(x: Any) -> Tensor:
    """A tensor with the same numbers."""
    return asarray(x).copy()


def repeat(x: Any, repeats: builtins.int, axis: builtins.int = -1) -> Tensor:
    """The tensor so many times one after the other along an axis."""
    x = asarray(x)
    times = [1] * x.ndim
    times[axis] = repeats
    return _shapes.tile(x, times)


def step(edge: Any, x: Any) -> Tensor:
    """0 below an edge, else 1."""
    return _elementwise.step(edge, x)


def reversebits(x: Any) -> Tensor:
    """The bits of 32 in the opposite order."""
    x = asarray(x).astype(uint32)
    for bits, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        x = ((x >> _word(bits)) & _word(mask)) | ((x & _word(mask)) << _word(bits))
    return x


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    raise AttributeError(f"TensorFrost's `{name}` is not here")


pi = math.pi

__all__ = [
    "assert_tensor", "break_loop", "buffer", "const", "if_cond", "indices", "input", "kernel", "loop", "scatterAdd",
    "scatterMax", "scatterMin", "compile", "program", "tensor", "initialize",
]  # fmt: skip
