"""A back end over NumPy: an example of how to write one, and what the others are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aerogel._dtypes import DataType, numpy_dtype
from aerogel.backends._backend import Backend

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNARY = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "exp": np.exp, "exp2": np.exp2,
    "log": np.log, "log2": np.log2, "not": np.invert,
    "rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype),
    "round": lambda x: np.trunc(x + np.copysign(np.nextafter(x.dtype.type(0.5), x.dtype.type(0)), x)),
}  # fmt: skip
_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "atan2": np.arctan2, "rem": np.fmod, "mod": np.remainder,
    "floordiv": np.floor_divide, "min": np.fmin, "max": np.fmax, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip
_COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
            "ge": np.greater_equal}  # fmt: skip


class NumPy(Backend):
    """Storages are arrays of NumPy's."""

    name = "numpy"

    def supports(self, dtype: DataType) -> bool:
        """All but ``bf16``, which NumPy does not have."""
        return str(dtype) != "bf16"

    def from_host(self, array: Any, dtype: DataType) -> Any:
        """A copy."""
        return np.array(array, numpy_dtype(dtype))

    def to_host(self, x: Any) -> Any:
        """The array itself."""
        return x

    def full(self, shape: Sequence[int], value: Any, dtype: DataType) -> Any:
        """By ``np.full``; an integer takes its low bits."""
        if not dtype.is_float and str(dtype) != "u1":
            value = int(value) & ((1 << 8 * dtype.itemsize) - 1)
            unsigned = np.full(tuple(shape), value, f"u{dtype.itemsize}")
            return unsigned.view(numpy_dtype(dtype)) if unsigned.ndim else unsigned.astype(numpy_dtype(dtype))
        return np.full(tuple(shape), value, numpy_dtype(dtype))

    def iota(self, n: int, dtype: DataType) -> Any:
        """By ``np.arange``."""
        return np.arange(n, dtype=numpy_dtype(dtype))

    def unary(self, op: str, x: Any) -> Any:
        """By functions of NumPy; counts of bits by those of its words."""
        with np.errstate(all="ignore"):
            if op in ("popcnt", "clz"):
                return _bits(op, x)
            if x.dtype == bool and op in ("neg", "abs", "sign"):
                return x
            return np.asarray(_UNARY[op](x))

    def binary(self, op: str, a: Any, b: Any) -> Any:
        """By functions of NumPy, but for those of integers that mean something else there."""
        with np.errstate(all="ignore"):
            if a.dtype == bool:
                return np.asarray(_of_truth(op, a, b))
            if a.dtype.kind != "f" and op in _INTEGERS:
                return np.asarray(_INTEGERS[op](a, b)).astype(a.dtype)
            function = {"div": np.divide, "pow": np.power}.get(op) or _BINARY[op]
            return np.asarray(function(a, b))

    def compare(self, op: str, a: Any, b: Any) -> Any:
        """By functions of NumPy."""
        return np.asarray(_COMPARE[op](a, b))

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        """By ``np.where``."""
        return np.where(cond, a, b)

    def cast(self, x: Any, dtype: DataType) -> Any:
        """By ``astype``. Floats that an integer does not hold become the number that processors give."""
        to = numpy_dtype(dtype)
        if x.dtype.kind == "f" and to.kind in "iu":
            return _truncated(x, to)
        with np.errstate(all="ignore"):
            return np.asarray(x.astype(to))

    def gather(self, x: Any, indices: Sequence[Any], outside: str) -> Any:
        """By an index with arrays."""
        inside, where = _inside(x.shape, indices, outside)
        made = x[where]
        return np.asarray(made if inside is None else np.where(inside, made, np.zeros((), x.dtype)))

    def scatter(self, x: Any, indices: Sequence[Any], values: Any, accum: str | None, outside: str) -> Any:
        """By an index with arrays, and ``ufunc.at``."""
        inside, where = _inside(x.shape, indices, outside)
        if inside is not None:
            where, values = tuple(i[inside] for i in where), values[inside]
        out = x.copy()
        if accum is None:
            out[where] = values
        else:
            _accumulator(accum, x).at(out, where, values)
        return out

    def reduce(self, accum: str, x: Any, axes: Sequence[int]) -> Any:
        """By ``ufunc.reduce``."""
        return np.asarray(_accumulator(accum, x).reduce(x, axis=tuple(axes), **_in_own_dtype(accum, x)))

    # Faster than the defaults.

    def bitcast(self, x: Any, dtype: DataType) -> Any:
        """By ``view``."""
        return np.array(x).reshape(-1).view(numpy_dtype(dtype)).reshape(x.shape)

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """By ``np.reshape``."""
        return x.reshape(tuple(shape))

    def permute(self, x: Any, axes: Sequence[int]) -> Any:
        """By ``np.transpose``."""
        return x.transpose(tuple(axes))

    def expand(self, x: Any, shape: Sequence[int]) -> Any:
        """By ``np.broadcast_to``, without a copy."""
        return np.broadcast_to(x, tuple(shape))

    def slice(self, x: Any, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> Any:
        """By an index with slices."""
        parts = zip(starts, stops, steps, strict=True)
        return np.asarray(x[tuple(slice(a, None if b < 0 else b, step) for a, b, step in parts)])

    def scan(self, accum: str, x: Any) -> Any:
        """By ``ufunc.accumulate``."""
        return _accumulator(accum, x).accumulate(x, axis=-1, **_in_own_dtype(accum, x))

    def matmul(self, a: Any, b: Any) -> Any:
        """By ``np.matmul``."""
        return np.matmul(a, b)


def _inside(shape: tuple[int, ...], indices: Sequence[Any], outside: str) -> tuple[Any, tuple[Any, ...]]:
    """Which indices are inside, if others read or store nothing, and the indices as those inside."""
    if outside == "wrap":
        return None, tuple(np.mod(i, n) for i, n in zip(indices, shape, strict=True))
    clamped = tuple(np.clip(i, 0, n - 1) for i, n in zip(indices, shape, strict=True))
    if outside == "clamp":
        return None, clamped
    inside = np.logical_and.reduce([c == i for c, i in zip(clamped, indices, strict=True)])
    return np.asarray(inside), clamped


def _accumulator(accum: str, x: Any) -> Any:
    names = {"add": "or", "mul": "and", "max": "or", "min": "and"} if x.dtype == bool else {}
    return _BINARY[names.get(accum, accum)]


def _in_own_dtype(accum: str, x: Any) -> dict[str, Any]:
    """NumPy would add small integers as large ones."""
    return {"dtype": x.dtype} if accum in ("add", "mul") and x.dtype != bool else {}


def _of_truth(op: str, a: Any, b: Any) -> Any:
    names = {"mul": "and", "min": "and", "max": "or", "add": "xor", "sub": "xor"}
    if op in ("div", "floordiv"):
        return a & b
    if op in ("rem", "mod"):
        return np.zeros_like(a)
    if op == "pow":
        return a | ~b
    return _BINARY[names.get(op, op)](a, b)


def _bits(op: str, x: Any) -> Any:
    width = 1 if x.dtype == bool else 8 * x.dtype.itemsize
    words = x.astype(np.uint64) & np.uint64((1 << width) - 1)
    if op == "popcnt":
        counts = sum((words >> np.uint64(k)) & np.uint64(1) for k in range(width))
    else:
        counts = sum((words >> np.uint64(k)) == 0 for k in range(width))
    return np.asarray(counts).astype(x.dtype)


def _truncated(x: Any, to: Any) -> Any:
    """Floats towards zero; those out of range become the smallest integer of 32 bits, or of 64 for wider types."""
    wide = np.int32 if to.itemsize < 4 or to == np.int32 else np.int64
    x = x.astype(np.float64)
    is_high = (x >= 2.0**63) if to == np.uint64 else np.zeros(x.shape, bool)
    x = np.where(is_high, x - 2.0**63, x)
    low, high = float(np.iinfo(wide).min), -float(np.iinfo(wide).min)
    with np.errstate(all="ignore"):
        inside = (np.trunc(x) >= low) & (np.trunc(x) < high)
        whole = np.where(inside, x, 0).astype(wide)
    whole = np.where(inside, whole, np.iinfo(wide).min)
    return np.asarray(np.where(is_high, whole ^ np.iinfo(wide).min, whole).astype(to))


def _quotient(a: Any, b: Any) -> Any:
    """Towards zero; 0 for a divisor of 0."""
    down = np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b)))
    inexact = (b != 0) & (np.remainder(a, np.where(b == 0, 1, b)) != 0)
    return np.where(inexact & ((a < 0) != (b < 0)), down + 1, down)


def _by_count(function: Any) -> Any:
    """A shift by a count that is taken modulo the width."""
    return lambda a, b: function(a, b & b.dtype.type(8 * a.dtype.itemsize - 1))


def _power(a: Any, b: Any) -> Any:
    """Integers to powers; one below zero gives what the exact power is towards zero."""
    made = np.power(a, np.where(b < 0, 0, b).astype(a.dtype))
    odd = np.where(b % 2 == 0, 1, -1)
    below = np.where(a == 1, 1, np.where(a == -1, odd, 0)) if a.dtype.kind == "i" else made
    return np.where(b < 0, below, made)


_INTEGERS = {
    "div": _quotient,
    "rem": lambda a, b: np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b))),
    "floordiv": lambda a, b: np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b))),
    "mod": lambda a, b: np.where(b == 0, 0, np.remainder(a, np.where(b == 0, 1, b))),
    "pow": _power,
    "shl": _by_count(np.left_shift),
    "shr": _by_count(np.right_shift),
    "ushr": lambda a, b: np.right_shift(
        a.view(f"u{a.itemsize}"), (b & (8 * a.itemsize - 1)).astype(f"u{a.itemsize}")
    ).view(a.dtype),
}
