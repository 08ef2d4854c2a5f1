"""Objects of Python, and objects that offer one protocol only: over their own memory, or over a copy."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
from bridges.case import Case, kind, numbers


@kind("python list")
def _list() -> Case:
    value = numbers().tolist()
    return Case(value, numbers(np.float64), lambda: np.array(value))


@kind("python tuple")
def _tuple() -> Case:
    value = (1.0, 2.0)
    return Case(value, np.array(value), lambda: np.array(value), is_read_only=True)


@kind("python list of whole numbers")
def _ints() -> Case:
    value = [1, 2, 3]
    return Case(value, np.array(value), lambda: np.array(value))


@kind("python float")
def _float() -> Case:
    return Case(3.0, np.array(3.0), lambda: np.array(3.0), is_read_only=True)


@kind("python memoryview")
def _memoryview() -> Case:
    owner = numbers()
    return Case(memoryview(owner), numbers(), lambda: owner.copy())


@kind("python memoryview of bytes")
def _memoryview_of_bytes() -> Case:
    owner = bytes([1, 2, 3])
    return Case(
        memoryview(owner), np.array([1, 2, 3], np.uint8), lambda: np.frombuffer(owner, np.uint8), is_read_only=True
    )


@kind("python bytearray")
def _bytearray() -> Case:
    value = bytearray([1, 2, 3])
    return Case(value, np.array([1, 2, 3], np.uint8), lambda: np.array(list(value), np.uint8))


@kind("python bytes")
def _bytes() -> Case:
    value = bytes([1, 2, 3])
    return Case(value, np.array([1, 2, 3], np.uint8), lambda: np.frombuffer(value, np.uint8), is_read_only=True)


@kind("python array.array")
def _array() -> Case:
    value = array.array("d", [1, 2, 3])
    return Case(value, np.array([1.0, 2.0, 3.0]), lambda: np.array(value.tolist()))


class Offers:
    """An object that has an array, and shows it or a copy of it."""

    def __init__(self, copies: bool) -> None:
        self.owned = numbers()
        self.copies = copies
        # Of an interface the memory must live on.
        self.shown: list[np.ndarray] = []

    def shows(self) -> np.ndarray:
        if not self.copies:
            return self.owned
        self.shown = [*self.shown[-3:], self.owned.copy()]
        return self.shown[-1]


class OffersArray(Offers):
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.copies and copy is False:
            raise ValueError("a copy is needed")
        return self.shows() if dtype is None else self.shows().astype(dtype)


class OffersOldArray(Offers):
    def __array__(self, dtype: Any = None) -> np.ndarray:
        return self.shows() if dtype is None else self.shows().astype(dtype)


class OffersInterface(Offers):
    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.shows().__array_interface__


class OffersStruct(Offers):
    @property
    def __array_struct__(self) -> Any:
        return self.shows().__array_struct__


class OffersDlpack(Offers):
    def __dlpack__(self, **options: Any) -> Any:
        return self.shows().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class OffersSequence(Offers):
    def __len__(self) -> int:
        return len(self.owned)

    def __getitem__(self, at: int) -> np.ndarray:
        return self.shows()[at]


_OFFERS = {
    "__array__": OffersArray,
    "__array__ before NumPy 2": OffersOldArray,
    "__array_interface__": OffersInterface,
    "__array_struct__": OffersStruct,
    "__dlpack__": OffersDlpack,
    "__len__ and __getitem__": OffersSequence,
}


def _offer(name: str, cls: type[Offers], copies: bool) -> None:
    def make() -> Case:
        value = cls(copies)
        return Case(value, value.owned.copy(), lambda: value.owned.copy(), is_read_only=copies)

    kind(f"object with {name}, {'a copy' if copies else 'its memory'}")(make)


for _name, _cls in _OFFERS.items():
    for _copies in (False, True):
        _offer(_name, _cls, _copies)
