"""What every field is, whether its elements are numbers, matrices or structs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

#: The operators that tensors have and fields have not, as they are written.
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_SIGNS = {"neg": "-", "pos": "+", "abs": "abs", "invert": "~"}

C = TypeVar("C", bound=type)


def without_operators(cls: C) -> C:
    """A class of fields whose operators say how a tensor is made of one; beside tensors and arrays these have them."""

    def refused(symbol: str) -> Callable[..., Any]:
        def operator(self: Any, other: Any = None) -> Any:
            is_number = isinstance(other, (int, float, complex)) and not hasattr(other, "dtype")
            if not (other is None or is_number or isinstance(other, Field)):
                return NotImplemented
            raise TypeError(
                f"`{symbol}` is not defined for fields: in a kernel index the field, `x[i, j]`; elsewhere "
                "`ti.tensor.asarray(x)` is a tensor of all elements, and in a program `x[i, j]` with "
                "`i, j = indices(x)` one at its active cells"
            )

        return operator

    if not TYPE_CHECKING:
        for name, symbol in {**_OPERATORS, **_SIGNS}.items():
            setattr(cls, f"__{name}__", refused(symbol))
        for name, symbol in _OPERATORS.items():
            setattr(cls, f"__r{name}__", refused(symbol))
    return cls


def _older(old: str, new: str, value: Any) -> Any:
    """A value under an old name, with a warning that says the new one."""
    from aerogel._taichi import older

    older.warn(f"x.{old}", new)
    return value


class Field:
    """A grid of elements, placed in a layout. :func:`field` and the ``field`` methods of types make them."""

    grad: Any = None
    dual: Any = None
    _name: str

    if not TYPE_CHECKING:  # Names of older versions of Taichi.

        def dim(self) -> int:
            """The number of axes: ``len(x.shape)``."""
            return len(_older("dim()", "len(x.shape)", self.shape))

        def data_type(self) -> Any:
            """The dtype: ``x.dtype``."""
            return _older("data_type()", "x.dtype", self.dtype)

        def loop_range(self) -> Any:
            """What loops run over: the field itself."""
            return _older("loop_range()", "x", self)

    @property
    def name(self) -> str:
        """The name given when the field was made."""
        return self._name

    @property
    def snode(self) -> Any:
        """The node in which the field is placed; of structs, the first member's."""
        raise NotImplementedError

    def has_grad(self) -> bool:
        """Whether there is a field for the gradient, ``x.grad``, as in Quadrants."""
        return self.grad is not None

    def parent(self, n: int = 1) -> Any:
        """The layout node ``n`` levels up."""
        return self.snode.parent(n)

    def __copy__(self) -> NoReturn:
        raise NotImplementedError("a field cannot be copied; make another and use copy_from")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise NotImplementedError("a field cannot be copied; make another and use copy_from")

    def __len__(self) -> int:
        """The size of the first axis, as of an array."""
        shape: tuple[int, ...] = getattr(self, "shape")  # noqa: B009
        if not shape:
            raise TypeError("`len` of a field without axes")
        return shape[0]

    def __bool__(self) -> bool:
        # A field is no list: `if x` tests whether there is one.
        return True

    def __iter__(self) -> NoReturn:
        raise NotImplementedError("looping over a field is possible inside kernels only")


__all__ = ["Field", "without_operators"]
