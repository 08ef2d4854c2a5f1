"""Quantised types, ``ti.types.quant``, and the words in which fields of them lie: ``ti.BitpackedFields``."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from aerogel import _native
from aerogel._dtypes import DataType, dtype_of
from aerogel.errors import AerogelSyntaxError, AerogelTypeError


class QuantType:
    """The type of a field whose elements take fewer bits than those they are computed with.

    It reads and writes as its ``compute`` type, and is placed in ``ti.BitpackedFields`` or below ``quant_array``.
    """

    __slots__ = ("_aerogel_quant", "compute")

    def __init__(self, text: str, compute: DataType) -> None:
        self._aerogel_quant, self.compute = text, compute
        try:
            _native.check_quant(text)
        except ValueError as e:
            raise AerogelTypeError(str(e)) from None

    @property
    def _aerogel_dtype(self) -> str:
        return self.compute._aerogel_dtype

    @property
    def is_float(self) -> bool:
        """Whether it is computed with a floating-point type."""
        return self.compute.is_float

    @property
    def is_signed_int(self) -> bool:
        """Whether it is computed with a signed integer type."""
        return self.compute.is_signed_int

    def to_string(self) -> str:
        """The short name."""
        return self._aerogel_quant

    def __repr__(self) -> str:
        return self._aerogel_quant

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantType) and other._aerogel_quant == self._aerogel_quant

    def __hash__(self) -> int:
        return hash(self._aerogel_quant)


def _kind(signed: bool, bits: Any) -> str:
    import operator

    try:
        return f"q{'i' if signed else 'u'}{operator.index(bits)}"
    except TypeError:
        raise AerogelTypeError(f"a number of bits is an integer, not {bits!r}") from None


def _int(bits: int, signed: bool = True, compute: Any = None) -> QuantType:
    """Integers of so many bits; larger ones keep their low bits.

    Args:
        bits: How many bits.
        signed: Whether one of them is the sign.
        compute: The integer type in which it is read and written; that of ``ti.init`` if left out.

    >>> quant.int(5)
    qi5/i32
    """
    ty = dtype_of(int if compute is None else compute)
    return QuantType(f"{_kind(signed, bits)}/{ty}", ty)


def _fixed(
    bits: int, signed: bool = True, max_value: float = 1.0, compute: Any = None, scale: float | None = None
) -> QuantType:
    """Multiples of a number: factors of so many bits, which are rounded, half away from zero.

    Args:
        bits: How many bits the factor has.
        signed: Whether one of them is the sign.
        max_value: The first number that is too large.
        compute: The floating-point type in which it is read and written; that of ``ti.init`` if left out.
        scale: What the factors are multiplied with, instead of ``max_value``.

    >>> quant.fixed(8, max_value=32.0)
    qi8*0.25/f32
    """
    ty = dtype_of(float if compute is None else compute)
    kind = _kind(signed, bits)
    step = max_value / 2.0 ** min(bits - bool(signed), 1000) if scale is None else scale
    return QuantType(f"{kind}*{float(step)!r}/{ty}", ty)


def _float(exp: int, frac: int, signed: bool = True, compute: Any = None) -> QuantType:
    """Floating-point numbers, which are rounded, half away from zero; too large ones become the largest.

    Args:
        exp: Bits of the exponent, from 1 to 8.
        frac: Bits of the fraction, with the sign.
        signed: Whether there is a sign.
        compute: The type in which it is read and written: ``ti.f32``.

    >>> quant.float(5, 10)
    qi10^5/f32
    """
    ty = dtype_of(float if compute is None else compute)
    return QuantType(f"{_kind(signed, frac)}^{_kind(False, exp)[2:]}/{ty}", ty)


class _Makers(ModuleType):
    """Makers of quantised types."""

    int = staticmethod(_int)
    fixed = staticmethod(_fixed)
    float = staticmethod(_float)


# A module, so that `import aerogel.types.quant` finds it as well.
quant = _Makers("aerogel.types.quant", _Makers.__doc__)
sys.modules[quant.__name__] = quant


class BitpackedFields:
    """Fields of quantised types that lie side by side in words of memory.

    Args:
        max_num_bits: Bits of a word: 8, 16, 32 or 64.

    >>> word = BitpackedFields(max_num_bits=32)
    """

    def __init__(self, max_num_bits: int) -> None:
        self._bits = max_num_bits
        self._groups: list[tuple[list[Any], bool]] = []
        self._scratch = _native.TreeBuilder()
        self._word = self._scratch.root().bit_struct(max_num_bits)

    def place(self, *args: Any, shared_exponent: bool = False) -> None:
        """Adds fields.

        Args:
            args: Fields of quantised types, made without a shape.
            shared_exponent: Whether their numbers, which are floating-point, have one exponent: that of the
                greatest.
        """
        fields = []
        for a in args:
            fields.extend(a._leaves() if hasattr(a, "_aerogel_struct_field") else [a])
        for a in fields:
            if not isinstance(a, _native.NativeField):
                raise ValueError(f"{a!r} cannot be placed; only fields can")
        if shared_exponent and any(getattr(a, "_component_of", None) is not None for a in fields):
            raise ValueError("components that share an exponent are placed together: place the field itself")
        if shared_exponent and sum(a._n_components for a in fields) < 2:
            raise AerogelSyntaxError("At least 2 fields need to be placed when shared_exponent=True")
        # What does not fit is refused here, where it is written.
        self._word.try_bits(fields, shared_exponent)
        self._groups.append((fields, shared_exponent))


__all__ = ["BitpackedFields", "QuantType", "quant"]
