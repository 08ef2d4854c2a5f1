"""What ``import TensorFrost`` gives under ``python -m aerogel run``: its words for programs of tensors.

Integers divided by integers stay integers, reductions are along the last axis unless one is named, and indices outside
are the nearest ones inside.
"""

# ruff: noqa: A001, N802
from __future__ import annotations

import builtins
import itertools
import math
import weakref
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import f32 as float32
from aerogel._dtypes import i32 as int32
from aerogel._dtypes import u1 as bool1
from aerogel._dtypes import u32 as uint32
from aerogel.tensor import _elementwise, _products, _reductions, _searching, _shapes, programs
from aerogel.tensor._frost_kernels import group_barrier, group_buffer, kernel, local_buffer
from aerogel.tensor._frost_missing import LEARNING, WINDOW, NotHere
from aerogel.tensor._tensor import Tensor, asarray, constant, operands, tracing
from aerogel.tensor.programs import (
    assert_tensor,
    assert_value,
    break_loop,
    buffer,
    const,
    continue_loop,
    if_cond,
    indices,
    input,
    loop,
    print_value,
)
from aerogel.tensor.programs._blocks import trace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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

    _numbers = itertools.count()

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(function, divides_integers=True)
        self._number = next(self._numbers)

    def compile(self) -> TensorProgram:
        """Traces and compiles it, which the first call does else."""
        super().compile()
        _COMPILED.add(self)
        return self

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


def _scattered(place: Any, key_and_value: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Memory, the indices in it, and what is put there."""
    *key, value = key_and_value
    if key:
        return place, key[0], value
    if not isinstance(place, Tensor) or not isinstance(place._made, tuple):
        raise TypeError("what is scattered to is memory at indices, as in `scatterAdd(memory[i, j], value)`")
    return (*place._made, value)


def _scatter(how: str, place: Any, key_and_value: tuple[Any, ...]) -> None:
    trace_of("scatterAdd").store(*_scattered(place, key_and_value), how)


def scatterAdd(place: Any, *key_and_value: Any) -> None:
    """Adds values to memory at computed indices: ``scatterAdd(memory[i, j], value)``."""
    _scatter("add", place, key_and_value)


def scatterMin(place: Any, *key_and_value: Any) -> None:
    """Keeps the smaller of memory and values at computed indices."""
    _scatter("min", place, key_and_value)


def scatterMax(place: Any, *key_and_value: Any) -> None:
    """Keeps the larger of memory and values at computed indices."""
    _scatter("max", place, key_and_value)


def scatterOr(place: Any, *key_and_value: Any) -> None:
    """Sets the bits of values in memory at computed indices."""
    _scatter("or", place, key_and_value)


def scatterAnd(place: Any, *key_and_value: Any) -> None:
    """Keeps the bits of values in memory at computed indices."""
    _scatter("and", place, key_and_value)


def scatterXor(place: Any, *key_and_value: Any) -> None:
    """Turns the bits of values in memory at computed indices."""
    _scatter("xor", place, key_and_value)


def scatterAddPrev(place: Any, *key_and_value: Any) -> Tensor:
    """Adds values to memory at computed indices, one point after the other: what was there before each."""
    return trace_of("scatterAddPrev").store_with_previous(*_scattered(place, key_and_value), "add")


#: Operations of the user's, by name.
_CUSTOM: dict[str, Callable[..., Any]] = {}


def register_custom_operation(
    name: str, overloads: Sequence[str], impl: Callable[..., Any], vjp: Callable[..., Any] | None = None
) -> None:
    """Gives a function a name, by which `custom` calls it; its derivative is for gradients, which are not here.

    Args:
        name: The name.
        overloads: The types that it takes, which follow from what it does here.
        impl: Called with a list of operands, the first of them, and a list of axes: a list of results.
        vjp: The derivative.
    """
    _CUSTOM[name] = impl


def custom(name: str, inputs: Sequence[Any], shape: Any = None) -> Any:
    """What an operation gives that `register_custom_operation` has named."""
    if name not in _CUSTOM:
        raise ValueError(f"no operation is registered as {name!r}")
    given = [asarray(x) for x in inputs]
    results = _CUSTOM[name](given, given[0], [])
    many = list(results) if isinstance(results, (list, tuple)) else [results]
    return many[0] if len(many) == 1 else many


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


def element_index(shape: Any) -> Tensor:
    """The number of each element, row by row."""
    return flat_index(indices(shape), shape)


def flat_index(index: Any, shape: Any) -> Tensor:
    """The number, row by row, of the element that has these indices."""
    out, *others = (asarray(i) for i in index)
    for i, n in zip(others, shape[1:]):
        out = out * n + i
    return out


def indices_from_flat_index(index: Any, shape: Any) -> tuple[Tensor, ...]:
    """The indices of the element that has a number, row by row."""
    rest, out = asarray(index), []
    for n in reversed(shape[1:]):
        out.append(rest % n)
        rest = rest // n
    return (rest, *reversed(out))


def index_grid(begin: Any, end: Any, step: Any = None) -> tuple[Tensor, ...]:
    """The indices from one corner to before another, at every point between them."""
    steps = [1] * len(begin) if step is None else step
    counts = [(e - b + s - 1) // s for b, e, s in zip(begin, end, steps)]
    return tuple(k * s + b for k, b, s in zip(indices(counts), begin, steps))


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


def hash(shape: Any, seed: Any) -> Tensor:
    """A hash of each element's number and a seed."""
    return pcg(uint(element_index(shape)) + pcg(seed))


def random_value(shape: Any, seed: Any) -> Tensor:
    """A number from 0 to 1 for each element and a seed."""
    return float(hash(shape, seed)) * (1.0 / 4294967296.0)


def allocated_memory() -> builtins.int:
    """The bytes of memory in use."""
    return _native.live_bytes()


def unused_allocated_memory() -> builtins.int:
    """The bytes that are kept between uses, which count as in use."""
    return 0


def current_backend() -> str:
    """The back end: every name of one is this compiler."""
    return cpu


# What became of programs.

#: Programs as long as somebody holds them, in the order in which they were compiled.
_COMPILED: weakref.WeakSet[TensorProgram] = weakref.WeakSet()


def _programs() -> list[TensorProgram]:
    return sorted(_COMPILED, key=lambda program: program._number)


def get_all_generated_main_functions() -> list[str]:
    """The statements of each program that has been compiled."""
    return [program.text for program in _programs()]


def get_all_generated_kernels() -> list[str]:
    """What became of the statements of each program that has been compiled: which share a kernel, and what is kept."""
    return [program.explain() for program in _programs()]


def get_cpp_implementation() -> str:
    """The statements of all programs: there is no C++, and none is needed."""
    return "\n".join(get_all_generated_main_functions())


def get_cpp_header() -> str:
    """The names of all programs and the types of their inputs, as comments of C++."""
    lines = []
    for program in _programs():
        kinds = ", ".join(x.dtype for x in program._any().inputs)
        lines.append(f"// {program.__name__}({kinds})\n")
    return "".join(lines)


def renderdoc_start_capture() -> None:
    """For a tool that looks at frames of a GPU: nothing is shown to it."""


def renderdoc_end_capture() -> None:
    """The end of what `renderdoc_start_capture` began."""


def strip_debug_info(strip: builtins.bool = True) -> None:
    """Kernels have no more than they need."""


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


get_copy = copy


def zeros_like(x: Any) -> Tensor:
    """Zeros of the shape and the type of a tensor."""
    x = asarray(x)
    return zeros(x.shape, x.dtype)


def ones_like(x: Any) -> Tensor:
    """Ones of the shape and the type of a tensor."""
    x = asarray(x)
    return ones(x.shape, x.dtype)


def eye(n: Any) -> Tensor:
    """The unit matrix."""
    i, j = indices([n, n])
    return float(i == j)


def eye_like(x: Any) -> Tensor:
    """The unit matrix of the shape of a matrix."""
    i, j = indices(asarray(x).shape)
    return float(i == j)


def split_dim(x: Any, split_size: builtins.int, axis: builtins.int = -1) -> Tensor:
    """An axis as rows of ``split_size`` elements, the last of which ends with zeros."""
    x = asarray(x)
    axis %= x.ndim
    shape = list(x.shape)
    rows = (shape[axis] + (split_size - 1)) // split_size
    at = list(indices([*shape[:axis], rows, split_size, *shape[axis + 1 :]]))
    row, column = at[axis : axis + 2]
    at[axis : axis + 2] = [row * split_size + column]
    return trace_of("split_dim").gather(x.outside("zero"), tuple(at)).outside(x._outside)


def merge_dim(x: Any, axis: builtins.int = -1, target_size: Any = None) -> Tensor:
    """An axis and the one before it as one, or its first ``target_size`` elements: what `split_dim` parts."""
    x = asarray(x)
    axis %= x.ndim
    if axis == 0:
        raise ValueError("`merge_dim`: there is no axis before axis 0")
    shape = list(x.shape)
    n = shape[axis]
    at = list(
        indices([*shape[: axis - 1], shape[axis - 1] * n if target_size is None else target_size, *shape[axis + 1 :]])
    )
    both = at[axis - 1]
    at[axis - 1 : axis] = [both // n, both % n]
    return trace_of("merge_dim").gather(x, tuple(at))


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


class sort:  # noqa: N801
    """Orders of keys, and of values that go with them."""

    @staticmethod
    def _sorted(keys: Any, values: Any = None) -> Any:
        keys = asarray(keys)
        if values is None:
            return _searching.sort(keys)
        order = _searching.argsort(keys)
        return tuple(trace_of("sort").gather(x, order) for x in (keys, asarray(values)))

    @staticmethod
    def bitonic(keys: Any, values: Any = None) -> Any:
        """The keys in order, and the values that go with them."""
        return sort._sorted(keys, values)

    @staticmethod
    def radix(keys: Any, values: Any = None, bits_per_pass: builtins.int = 6, max_bits: builtins.int = 32) -> Any:
        """The keys in order, and the values that go with them."""
        return sort._sorted(keys, values)


class random:  # noqa: N801
    """Numbers drawn by counting: a seed and an index make a number."""

    @staticmethod
    def rand(shape: Any, seed: Any = 0) -> Tensor:
        """Numbers from 0 to 1."""
        return random_value(shape, seed)

    @staticmethod
    def rand_like(x: Any, seed: Any = 0) -> Tensor:
        """Numbers from 0 to 1 in the shape of a tensor."""
        return random_value(asarray(x).shape, seed)

    @staticmethod
    def rand_int(seed: Any, max_value: Any) -> Tensor:
        """Whole numbers from 0 to before another, a seed for each."""
        return int(pcg(seed) % uint(max_value))

    @staticmethod
    def randn(shape: Any, seed: Any = 0) -> Tensor:
        """Numbers of the normal distribution."""
        return random.randn2(shape, seed)[0]

    @staticmethod
    def randn_like(x: Any, seed: Any = 0) -> Tensor:
        """Numbers of the normal distribution in the shape of a tensor."""
        return random.randn(asarray(x).shape, seed)

    @staticmethod
    def randn2(shape: Any, seed: Any = 0) -> tuple[Tensor, Tensor]:
        """Two numbers of the normal distribution at each point."""
        first, second = (random_value(shape, pcg(uint(seed) * _word(2) + _word(k))) for k in range(2))
        # Never the logarithm of zero.
        length, angle = sqrt(log(1.0 - first * (1.0 - 2.0**-24)) * -2.0), second * (2.0 * pi)
        return length * cos(angle), length * sin(angle)

    @staticmethod
    def reverse(idx: Any, n: Any) -> Tensor:
        """The index counted from the end of `n` elements."""
        return (n - 1) - asarray(idx)

    @staticmethod
    def xor_swap(idx: Any, n: Any, seed: Any) -> Tensor:
        """The index with some bits turned, the same ones for all, where that is another one below `n`."""
        idx = asarray(idx)
        bits = int(pcg(seed) % (uint(n) + _word(1)))
        other = idx ^ bits
        return select((other >= 0) & (other < n), other, idx)

    @staticmethod
    def shuffle(idx: Any, n: Any, seed: Any = 0, iters: builtins.int = 16) -> Tensor:
        """Where an index goes in a random order of the numbers from 0 to before `n`."""
        return trace_of("shuffle").gather(random.permutation(n, seed), asarray(idx))

    @staticmethod
    def permutation(n: Any, seed: Any = 0) -> Tensor:
        """The numbers from 0 to before ``n`` in another order."""
        return int(_searching.argsort(random_value([n], seed)))


grad = NotHere("grad", LEARNING)
Module, Parameter, ParameterArray = (NotHere(name, LEARNING) for name in ("Module", "Parameter", "ParameterArray"))
optimizers, regularizers, clipping = (NotHere(name, LEARNING) for name in ("optimizers", "regularizers", "clipping"))
window, imgui = NotHere("window", WINDOW), NotHere("imgui", WINDOW)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    raise AttributeError(f"TensorFrost's `{name}` is not here")


pi = math.pi

__all__ = [
    "assert_tensor", "break_loop", "buffer", "const", "continue_loop", "if_cond", "indices", "input", "kernel", "loop",
    "scatterAdd", "scatterMax", "scatterMin", "compile", "program", "tensor", "initialize", "assert_value",
    "group_barrier", "group_buffer", "local_buffer", "print_value",
]  # fmt: skip
