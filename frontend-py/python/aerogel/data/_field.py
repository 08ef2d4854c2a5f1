"""What every field is, whether its elements are numbers, matrices or structs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def outside_kernels(function: F) -> F:
    """Marks what changes the program: the compiler refuses a kernel that calls it, and would else call it once."""
    function.__aerogel_outside_kernels__ = True  # type: ignore[attr-defined]
    return function


class Field:
    """A grid of elements, placed in a layout. :func:`field` and the ``field`` methods of types make them."""

    grad: Any = None
    dual: Any = None
    _name: str

    @property
    def name(self) -> str:
        """The name given when the field was made."""
        return self._name

    @property
    def snode(self) -> Any:
        """The node in which the field is placed; of structs, the first member's."""
        raise NotImplementedError

    def parent(self, n: int = 1) -> Any:
        """The layout node ``n`` levels up."""
        return self.snode.parent(n)

    def __copy__(self) -> NoReturn:
        raise NotImplementedError("a field cannot be copied; make another and use copy_from")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise NotImplementedError("a field cannot be copied; make another and use copy_from")

    def __iter__(self) -> NoReturn:
        raise NotImplementedError("looping over a field is possible inside kernels only")


__all__ = ["Field", "outside_kernels"]
