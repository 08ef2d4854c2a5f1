"""Which type operands of different types meet at."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import ALL, DataType, defaults, dtype_of, f32, i32, i64, u1

_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}


def name_of(dtype: Any) -> str:
    """The short name of a scalar type, however it is given."""
    given = dtype_of(dtype)
    if not hasattr(given, "_aerogel_dtype"):
        raise TypeError(f"this takes a real dtype, not `{given}`")
    return given._aerogel_dtype


def default_float() -> DataType:
    """What a ``float`` of Python's becomes."""
    return ALL[defaults["fp"]]


def default_int() -> DataType:
    """What an ``int`` of Python's becomes."""
    return ALL[defaults["ip"]]


def kind(dtype: DataType) -> str:
    """``b``, ``i``, ``u`` or ``f``."""
    return dtype.kind


def promote(a: DataType, b: DataType) -> DataType:
    """The type that two types meet at, without losing numbers of integers.

    Integers of both signs meet at the signed type that holds both; ``u64`` and a signed type at none. A float and an
    integer meet at the float, ``f16`` and ``bf16`` at ``f32``.
    """
    if a is b:
        return a
    ka, kb = kind(a), kind(b)
    if "b" in (ka, kb):
        return b if ka == "b" else a
    if "f" in (ka, kb):
        if ka != kb:
            return a if ka == "f" else b
        if _width(a) == _width(b):
            return f32
        return a if _width(a) > _width(b) else b
    if ka == kb:
        return a if _width(a) >= _width(b) else b
    signed, unsigned = (a, b) if ka == "i" else (b, a)
    bits = max(_width(signed), 2 * _width(unsigned))
    if bits > 64:
        raise TypeError(f"no dtype holds all values of `{a}` and `{b}`: convert one, as in `x.astype(ti.i64)`")
    return ALL[f"i{bits}"]


COMPARISONS = frozenset(["eq", "ne", "lt", "le", "gt", "ge"])


def _width(dtype: DataType) -> int:
    return int(dtype._aerogel_dtype.lstrip("biuf"))


def of_number(value: Any, beside: DataType | None) -> DataType:
    """The type of a Python number beside a tensor of a type: that type, if the number is of its kind or a lesser."""
    if isinstance(value, bool):
        return u1 if beside is None else beside
    if isinstance(value, int):
        if beside is None or kind(beside) == "b":
            limit = 1 << (_BITS[default_int()._aerogel_dtype] - 1)
            return default_int() if -limit <= value < limit else i64
        return beside
    if beside is not None and kind(beside) == "f":
        return beside
    return default_float()


def checked(value: Any, dtype: DataType) -> Any:
    """A Python number that is one of a type."""
    name = dtype._aerogel_dtype
    if name in _BITS and isinstance(value, int) and not isinstance(value, bool):
        lo, hi = _limits(name)
        if not lo <= value <= hi:
            raise OverflowError(f"{shown(value)} is not a number of type `{name}`: its values are {lo} to {hi}")
    elif type(value) is int:
        try:
            float(value)
        except OverflowError:
            raise OverflowError(f"{shown(value)} is too large for a number of type `{name}`") from None
    return value


def shown(value: int) -> str:
    """An integer as messages have it: of one with many digits only how many bits it has."""
    return str(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"


def _limits(name: str) -> tuple[int, int]:
    bits, is_signed = _BITS[name], name[0] == "i"
    return -(1 << (bits - 1)) if is_signed else 0, (1 << (bits - is_signed)) - 1


def beyond(name: str, x1: Any, x2: Any) -> bool | None:
    """The result of a comparison with a Python integer outside the other's dtype; None for other cases."""
    less, greater = ("lt", "le", "ne"), ("gt", "ge", "ne")
    for x, n, low, high in ((x1, x2, greater, less), (x2, x1, less, greater)):
        own = getattr(getattr(x, "dtype", None), "_aerogel_dtype", None)
        if type(n) is int and own in _BITS:
            lo, hi = _limits(own)
            if not lo <= n <= hi:
                return name in (low if n < lo else high)
    return None


def index_type() -> DataType:
    """The type of indices that operations give."""
    return i32


def several(value: Any, called: str, argument: str) -> list[Any]:
    """The integers of an argument that takes several; a program may compute them.

    Raises:
        TypeError: With the names of the function and its argument.
    """
    if not hasattr(value, "__iter__") or isinstance(value, (dict, set, str)):
        raise TypeError(f"`{called}`: `{argument}` takes integers, not {value!r}")
    return list(value)


def whole_numbers(value: Any, what: str) -> list[int]:
    """One integer or several: axes, sizes."""
    given = [value] if hasattr(value, "__index__") and getattr(value, "ndim", 0) == 0 else value
    try:
        if isinstance(value, (dict, set, str)):
            raise TypeError
        return [n.__index__() for n in given]
    except (AttributeError, TypeError):
        raise TypeError(f"`{what}` takes integers, not {value!r}") from None


def counts(given: Any, called: str, argument: str) -> None:
    """Refuses negative sizes; sizes known only at run time are checked when the program runs.

    Raises:
        ValueError: With the names of the function and its argument.
    """
    if hasattr(given, "_native"):
        return
    is_one = not isinstance(given, (list, tuple)) and getattr(given, "ndim", 0) == 0
    every: list[Any] = [given] if is_one else list(given)
    for n in every:
        if hasattr(n, "__index__") and not hasattr(n, "_native") and n.__index__() < 0:
            raise ValueError(f"`{called}`: `{argument}` {'is' if is_one else 'has'} {n}, below zero")


def axis(n: Any, rank: int, what: str) -> int:
    """An axis counted from the front."""
    (at,) = whole_numbers([n], what)
    if not -rank <= at < rank:
        raise IndexError(f"`{what}`: there is no axis {at}: the tensor has {rank}")
    return at % rank


def axes(given: list[int] | None, rank: int, what: str) -> list[int] | None:
    """Axes counted from the front, in the order in which they are given; none are all.

    Raises:
        IndexError: If there is no such axis.
        ValueError: If one is named twice.
    """
    if given is None:
        return None
    out: list[int] = []
    for n in given:
        if not -rank <= n < rank:
            has = f"has axes 0 to {rank - 1}" if rank else "is a single number"
            raise IndexError(f"`{what}`: there is no axis {n}: the tensor {has}")
        if n % rank in out:
            raise ValueError(f"`{what}`: axis {n} is named twice")
        out.append(n % rank)
    return out


def kept(value: Any, dtype: DataType, what: str) -> None:
    """Refuses what a type would lose the fraction of: a number of Python's, or the type of a tensor."""
    if dtype.is_float:
        return
    if isinstance(value, DataType):
        if value.is_float:
            raise TypeError(f"{what} of `{dtype}` take no `{value}`: write `value.astype(ti.{dtype})`")
    elif isinstance(value, float) and value != int(value if abs(value) < float("inf") and value == value else 0):
        raise TypeError(f"{what} of `{dtype}` take no {value}, which is not an integer")
