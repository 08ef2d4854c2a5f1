"""The kinds of arguments by which programs are found, and the places of results."""

from __future__ import annotations

from typing import Any, NamedTuple

from aerogel import _native
from aerogel._dtypes import ALL
from aerogel.tensor import _types
from aerogel.tensor._tensor import Tensor


class Leaf:
    """The place of a tensor in the tree of results; a complex tensor takes two outputs."""

    def __init__(self, is_complex: bool) -> None:
        self.is_complex = is_complex


class StaticKind:
    """A value that is part of the program. Equal numbers of different types are different values."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def _key(self) -> Any:
        # 0.0 and -0.0 differ, and a NaN equals itself.
        return self.value.hex() if isinstance(self.value, float) else self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticKind) and type(other.value) is type(self.value) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash((type(self.value), self._key()))


class SharedKind(NamedTuple):
    """A tensor that several of the arguments have: the one with this number."""

    at: int


class NumberKind(NamedTuple):
    """The kind of a Python number: its Python type, and its dtype where no tensor stands beside it."""

    python: type
    dtype: Any

    @classmethod
    def of(cls, value: Any) -> NumberKind:
        """The kind of a number."""
        python = next(kind for kind in (bool, int, float) if isinstance(value, kind))
        return cls(python, _types.of_number(value, None))

    @property
    def sample(self) -> Any:
        """A number of this type."""
        return self.python(1)

    @property
    def wide_dtype(self) -> str:
        """The dtype of the input, which holds (almost) every Python number exactly."""
        return {bool: "u1", int: "i64", float: "f64"}[self.python]

    def wide(self, value: Any, whose: str = "") -> Tensor:
        """The number as an input; ``whose`` begins the error for one that does not fit."""
        try:
            return number_input(value, ALL[self.wide_dtype])
        except OverflowError as e:
            raise OverflowError(f"{whose}{e}") from None


def number_input(value: Any, dtype: Any) -> Tensor:
    """A number as an input. It is a value, not a recorded operation that had to be evaluated."""
    return Tensor(_native.NativeTensor.of_number(dtype._aerogel_dtype, _types.checked(value, dtype)))
