"""Tensors that a program takes over from its caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel.tensor._tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


#: The slot that a donated tensor hides.
_NATIVE: Any = Tensor.__dict__["_native"]


class DonatedTensor(Tensor):
    """A tensor whose memory a program has taken over: every use of it is an error."""

    __slots__ = ()

    @property
    def _native(self) -> Any:
        raise RuntimeError(f"this tensor was donated to {self._outside}: use what the program returned, or pass a copy")

    @property
    def requires_grad(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<tensor donated to {self._outside}>"


class Donated:
    """The tensors among the arguments of a call, and which of them are donated."""

    def __init__(self) -> None:
        #: The argument of each tensor.
        self._names: dict[int, str] = {}
        #: Two arguments that are one tensor.
        self._same: list[tuple[str, str]] = []
        self._names_given: set[str] = set()
        self._places: list[int] = []
        self._tensors: list[Tensor] = []
        self._shapes: list[Any] = []

    def add(self, name: str, planes: Sequence[Tensor], place: int, *, is_given: bool) -> None:
        """Adds an argument.

        Args:
            name: Its name.
            planes: Its tensor, or its real and its imaginary part.
            place: The number of the first of them among the inputs of the program.
            is_given: Whether it is donated.
        """
        for k, plane in enumerate(planes):
            if (other := self._names.setdefault(id(plane), name)) != name:
                self._same.append((other, name))
            # Its history keeps the values of a tensor through which gradients are taken.
            if is_given and not plane.requires_grad:
                self._names_given.add(name)
                self._places.append(place + k)
                self._tensors.append(plane)
                self._shapes.append(plane._native.shape)

    def expect_apart(self, program: str) -> list[int]:
        """The numbers of the donated inputs.

        Raises:
            ValueError: If one of them is passed twice.
        """
        for one, other in self._same:
            if {one, other} & self._names_given:
                raise ValueError(f"`{program}`: `{one}` and `{other}` are one tensor, which is donated: pass a copy")
        return self._places

    def end(self, program: str, *, only_taken: bool = False) -> None:
        """Makes the next use of each donated tensor an error that names the program.

        With ``only_taken``, of those tensors alone whose values are gone, since the program failed while it ran.
        """
        for tensor, shape in zip(self._tensors, self._shapes):
            # Another thread may have donated it at the same time.
            if type(tensor) is Tensor and not (only_taken and tensor._native.shape == shape):
                tensor._outside = program
                tensor.__class__ = DonatedTensor
                _NATIVE.__set__(tensor, None)
