"""The operators of tensors."""

from __future__ import annotations

from typing import Any

from aerogel.tensor import _arguments, _complex, _elementwise
from aerogel.tensor._backward import Backward
from aerogel.tensor._methods import Methods
from aerogel.tensor._tensor import (
    NOT_OF_TRUTH,
    Tensor,
    asarray,
    binary,
    expect_no_truth,
    of_torch,
    operands,
    tracing,
    unary,
)

#: Integers up to this one are exact as floats of 64 bits.
_MOST_EXACT = 2**53


def _operator(name: str, to_float: bool = False) -> tuple[Any, Any]:
    function = binary(name, to_float)
    is_refused = name in NOT_OF_TRUTH

    def is_operand(other: Any) -> bool:
        if isinstance(other, _complex.ComplexTensor):
            return False
        return isinstance(other, (Tensor, bool, int, float, complex, list, tuple)) or hasattr(other, "__array__")

    def beside_float(self: Tensor, other: Any, is_first: bool) -> Any:
        is_float = type(other) is float or type(other) is int and -_MOST_EXACT <= other <= _MOST_EXACT
        return self._native.binary_with_float(name, other, is_first) if is_float else None

    # Most operands need no conversion outside of programs. To find that out the long way takes longer than the rest.
    def forward(self: Tensor, other: Any) -> Any:
        if tracing.program is None:
            if type(other) is Tensor:
                made = self._native.binary_of_same(name, other._native, to_float)
                if is_refused and made is not None:
                    expect_no_truth(name, self)
            else:
                made = beside_float(self, other, False)
            if made is not None:
                return Tensor(made)
        return function(self, other) if is_operand(other) else NotImplemented

    def backward(self: Tensor, other: Any) -> Any:
        made = beside_float(self, other, True) if tracing.program is None else None
        if made is not None:
            return Tensor(made)
        return function(other, self) if is_operand(other) else NotImplemented

    return forward, backward


def _either(usual: tuple[Any, Any], whole: tuple[Any, Any]) -> tuple[Any, Any]:
    """One operator, or another where a program is written in words in which integers are divided as C has it."""

    def choose(k: int) -> Any:
        def divide(self: Tensor, other: Any) -> Any:
            is_whole = tracing.program is not None and tracing.program.divides_integers
            return (whole if is_whole else usual)[k](self, other)

        return divide

    return choose(0), choose(1)


class _Nothing:
    """What every class has."""

    __slots__ = ()


def _of_torch(given: Any) -> Tensor:
    from aerogel.tensor._bridges import from_torch

    return from_torch(lambda: given)()  # type: ignore[no-any-return]


_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "floordiv": "floor_divide",
    "pow": "power",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}


def define() -> None:
    """Gives the class of tensors its operators."""
    from aerogel.tensor._ufuncs import array_ufunc

    for name, method in vars(Methods).items():
        # What is there of every class is no method of tensors, and what these have by themselves stays.
        if name not in vars(_Nothing) and not any(name in vars(base) for base in (Tensor, Backward)):
            setattr(Tensor, name, method)
    of_torch.append(_of_torch)

    Tensor.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
    _complex.ComplexTensor.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
    for name, recorded in _OPERATORS.items():
        forward, backward = _operator(recorded)
        setattr(Tensor, f"__{name}__", forward)
        setattr(Tensor, f"__r{name}__", backward)
        # An operator with assignment gives another tensor to the same name.
        setattr(Tensor, f"__i{name}__", forward)
    for name, usual, whole in (
        ("truediv", _operator("div", to_float=True), _operator("div")),
        ("mod", _operator("remainder"), _operator("rem")),
    ):
        forward, backward = _either(usual, whole)
        for prefix, function in (("", forward), ("r", backward), ("i", forward)):
            setattr(Tensor, f"__{prefix}{name}__", function)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{name}__", _operator(name)[0])
    Tensor.__hash__ = object.__hash__
    own = {"neg": unary("neg"), "abs": unary("abs"), "invert": unary("not"), "pos": _elementwise.positive}
    for name, operator in own.items():
        setattr(Tensor, f"__{name}__", operator)
    for cls in (Backward, Tensor, _complex.ComplexTensor):
        _arguments.guard_methods(cls)

    def matmul(self: Tensor, other: Any) -> Any:
        if (
            isinstance(other, _complex.ComplexTensor)
            or not hasattr(other, "__array__")
            and not isinstance(other, Tensor)
        ):
            return NotImplemented
        a, b = operands(self, other)
        return Tensor(a._native.matmul(b._native))

    def turned(self: Tensor, other: Any) -> Any:
        return matmul(asarray(other), self)

    for name, function in {"__matmul__": matmul, "__imatmul__": matmul, "__rmatmul__": turned}.items():
        setattr(Tensor, name, function)
