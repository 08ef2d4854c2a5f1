"""Operands of one dtype, and the functions of one and of two operands that are recorded by a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel._dtypes import u1
from aerogel.tensor import _complex, _types
from aerogel.tensor._tensor import GivenNumber, Tensor, asarray, constant, inside, is_number, tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from aerogel._dtypes import DataType


def operands(*values: Any, to_float: bool = False) -> list[Tensor]:
    """Operands of one type: numbers of Python's take the type of the tensors beside them."""
    if tracing.program is None and type(values[0]) is Tensor and all(type(value) is Tensor for value in values):
        dtype = values[0].dtype
        # Most are, and nothing is to be done then.
        if (dtype.is_float or not to_float) and all(value.dtype is dtype for value in values):
            return list(values)
    dtype: DataType | None = None
    made: list[Any] = []
    for value in values:
        if isinstance(value, Tensor) or is_number(value):
            made.append(value if is_number(value) else inside(value))
        else:
            made.append(asarray(value))
            if isinstance(made[-1], _complex.ComplexTensor):
                raise TypeError(f"this takes real numbers, not `{made[-1].dtype}`")
        if isinstance(made[-1], Tensor) and not isinstance(made[-1], GivenNumber):
            dtype = made[-1].dtype if dtype is None else _types.promote(dtype, made[-1].dtype)
    for value in made:
        if not isinstance(value, Tensor) or isinstance(value, GivenNumber):
            kind = _types.of_number(value.sample if isinstance(value, GivenNumber) else value, dtype)
            dtype = kind if dtype is None or dtype is not kind else dtype
    assert dtype is not None
    if to_float and not dtype.is_float:
        dtype = _types.default_float()
    return [_of_type(x, dtype) for x in made]


def _of_type(x: Any, dtype: DataType) -> Tensor:
    if not isinstance(x, Tensor):
        return constant(x, dtype)
    return x if x.dtype is dtype and not isinstance(x, GivenNumber) else x.astype(dtype)


def unary(name: str, to_float: bool = False) -> Callable[[Any], Tensor]:
    """The function of one operand that is recorded by a name."""

    def function(x: Any, /) -> Tensor:
        if _complex.is_complex(x):
            return _complex.unary(name, asarray(x))  # type: ignore[arg-type]
        (x,) = operands(x, to_float=to_float)
        if name == "neg":
            expect_no_truth(name, x)
        return Tensor(x._native.unary(name), x._outside)

    return function


#: Sums and products of booleans are booleans.
_OF_TRUTH = {"add": "or", "mul": "and"}
#: Operations that booleans do not have: NumPy refuses some, and makes integers of 8 bits for others.
NOT_OF_TRUTH = {
    "neg": "use `~x`", "positive": "use `x.copy()`", "sub": "use `x ^ y`", "floor_divide": "", "remainder": "",
    "rem": "", "power": "", "left_shift": "", "right_shift": "",
}  # fmt: skip


def expect_no_truth(name: str, x: Tensor) -> None:
    """Refuses an operation of booleans, which is recorded by a name.

    Raises:
        TypeError: With what to write.
    """
    if x.dtype is u1:
        remedy = NOT_OF_TRUTH[name] and f"{NOT_OF_TRUTH[name]}, or "
        called = {"neg": "negative", "sub": "subtract", "power": "pow"}.get(name, name)
        raise TypeError(f"`{called}` takes numbers, not booleans: {remedy}convert them by `x.astype(ti.i32)`")


def binary(name: str, to_float: bool = False) -> Callable[[Any, Any], Tensor]:
    """The function of two operands that is recorded by a name."""

    def function(x1: Any, x2: Any, /) -> Tensor:
        if _complex.is_complex(x1) or _complex.is_complex(x2):
            return _complex.binary(name, x1, x2)
        recorded = name
        if name in _types.COMPARISONS and (known := _types.beyond(name, x1, x2)) is not None:
            # A tensor equals itself: integers have no NaN.
            x1 = x2 = x1 if isinstance(x1, Tensor) else x2
            recorded = "eq" if known else "ne"
        a, b = operands(x1, x2, to_float=to_float)
        if a.dtype is u1 and name in _OF_TRUTH:
            recorded = _OF_TRUTH[name]
        elif name in NOT_OF_TRUTH:
            expect_no_truth(name, a)
        return Tensor(a._native.binary(recorded, b._native))

    return function
