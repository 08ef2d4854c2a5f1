"""The scalar types ``ti.f32``, ``ti.i32`` and so on, and their NumPy counterparts."""

from __future__ import annotations

from typing import Any, Protocol

from aerogel import _native
from aerogel.errors import AerogelDataTypeError

_BITS = {"u1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}
_NUMPY = {
    "u1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
}

#: The types of floats.
FLOATS = ("f16", "bf16", "f32", "f64")


class _Defaults(dict[str, str]):
    """What ``float`` and ``int`` mean in annotations and literals: ``fp`` and ``ip``, which ``ti.init`` sets."""

    def __missing__(self, key: str) -> str:
        from aerogel import _config

        # A child process may be at its first use of its parent's settings.
        _config.begin_as_parent()
        return self.get(key) or _config.type_by_default(f"default_{key}")._aerogel_dtype


defaults = _Defaults()


class DataType:
    """A scalar type of the kernel language.

    In a kernel ``ti.f32(x)`` converts ``x``; in Python it converts a number the same way.
    """

    __slots__ = ("_aerogel_dtype",)

    def __init__(self, name: str) -> None:
        self._aerogel_dtype = name

    def __repr__(self) -> str:
        return self._aerogel_dtype

    def __reduce__(self) -> tuple:
        return (dtype_of, (self._aerogel_dtype,))

    def __call__(self, value: Any) -> Any:
        made = _native.traced_call(self, (value,), {})
        return convert(self, value) if made is NotImplemented else made

    @property
    def is_float(self) -> bool:
        """Whether this is ``f16``, ``bf16``, ``f32`` or ``f64``."""
        return self._aerogel_dtype in FLOATS

    @property
    def is_signed_int(self) -> bool:
        """Whether this is a signed integer type."""
        return self._aerogel_dtype[0] == "i"

    @property
    def kind(self) -> str:
        """``b``, ``i``, ``u`` or ``f``, as NumPy's types have it."""
        return "b" if self._aerogel_dtype == "u1" else "f" if self.is_float else self._aerogel_dtype[0]

    @property
    def itemsize(self) -> int:
        """How many bytes an element takes."""
        return max(int(self._aerogel_dtype.lstrip("biuf")) // 8, 1)

    @property
    def __numpy_dtype__(self) -> Any:
        return numpy_dtype(self)

    def to_string(self) -> str:
        """The short name."""
        return self._aerogel_dtype


u1 = DataType("u1")
i8 = DataType("i8")
i16 = DataType("i16")
i32 = DataType("i32")
i64 = DataType("i64")
u8 = DataType("u8")
u16 = DataType("u16")
u32 = DataType("u32")
u64 = DataType("u64")
f16 = DataType("f16")
bf16 = DataType("bf16")
f32 = DataType("f32")
f64 = DataType("f64")
uint1, int8, int16, int32, int64 = u1, i8, i16, i32, i64
uint8, uint16, uint32, uint64 = u8, u16, u32, u64
float16, bfloat16, float32, float64 = f16, bf16, f32, f64

#: As ``ti.types.primitive_types`` has them: the kinds of types, with the Python types that stand for their defaults.
real_types = [f16, f32, f64, float]
integer_types = [i8, i16, i32, i64, u1, u8, u16, u32, u64, int, bool]
all_types = real_types + integer_types
real_type_ids = [id(t) for t in real_types]
integer_type_ids = [id(t) for t in integer_types]
type_ids = [id(t) for t in all_types]

ALL = {t._aerogel_dtype: t for t in (u1, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64)}


def dtype_of(spec: Any) -> DataType:
    """The scalar type that ``spec`` names: a type, its name or NumPy's, ``float``, ``int``, ``bool`` or a
    NumPy dtype.

    >>> dtype_of(float), dtype_of("u8")
    (f32, u8)
    """
    if isinstance(spec, DataType):
        return spec
    if spec is float:
        return ALL[defaults["fp"]]
    if spec is int:
        return ALL[defaults["ip"]]
    if spec is bool:
        return u1
    if isinstance(spec, str) and spec == "unsigned":
        # Unsigned, as wide as `int`: what `ti.math.uvec3` is made of.
        return ALL[defaults["ip"].replace("i", "u")]
    if isinstance(spec, str) and spec in ALL:
        return ALL[spec]
    name = spec if isinstance(spec, str) else getattr(spec, "name", None) or getattr(spec, "__name__", None)
    for short, long in _NUMPY.items():
        if name == long:
            return ALL[short]
    raise AerogelDataTypeError(f"{spec!r} is not a scalar type; use one of {', '.join(ALL)}")


class HasScalar(Protocol):
    """A type whose values travel as those of a scalar type: one itself, or a quantised one."""

    @property
    def _aerogel_dtype(self) -> str: ...


def numpy_name(dtype: HasScalar) -> str:
    """The name of the NumPy dtype with the same memory format."""
    return _NUMPY[dtype._aerogel_dtype]


def numpy_dtype(dtype: HasScalar) -> Any:
    """The NumPy dtype with the same memory format; that of ``bf16`` is of the package ``ml_dtypes``.

    Raises:
        ModuleNotFoundError: If that package is not installed.
    """
    import numpy as np

    if dtype._aerogel_dtype == "bf16":
        try:
            import ml_dtypes
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                "NumPy supports `bf16` only with the package `ml_dtypes`: install it, or convert to `f32`",
                name=missing.name,
            ) from None
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(_NUMPY[dtype._aerogel_dtype])


def _rounded_to_bf16(single: float, exact: float) -> float:
    """The nearest number with 8 bits of mantissa, ties to even; rounding to 24 bits first must not create a tie."""
    import struct

    if single != single:
        return single
    (word,) = struct.unpack("I", struct.pack("f", single))
    if word & 0xFFFF == 0x8000 and single != exact:
        # Beside the middle, on the side of zero or away from it.
        word += 1 if abs(exact) > abs(single) else -1
    word += 0x7FFF + (word >> 16 & 1)
    return struct.unpack("f", struct.pack("I", word & 0xFFFF0000))[0]


def convert(dtype: DataType, value: Any) -> Any:
    """Converts a Python number as a kernel does: truncation towards zero, then wrapping."""
    name = dtype._aerogel_dtype
    if name == "f64":
        return float(value)
    if name == "f32":
        import struct

        try:
            return struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if name == "f16":
        import struct

        try:
            return struct.unpack("e", struct.pack("e", value))[0]
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if name == "bf16":
        return _rounded_to_bf16(convert(f32, value), float(value))
    if name == "u1":
        return bool(value)
    bits = _BITS[name]
    wrapped = int(value) & ((1 << bits) - 1)
    if name[0] == "i" and wrapped >> (bits - 1):
        wrapped -= 1 << bits
    return wrapped
