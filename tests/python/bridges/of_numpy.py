"""Arrays of NumPy: types, layouts, what may not be written, and subclasses."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Callable

import numpy as np
from bridges.case import KINDS, TYPES, Case, kind, numbers

#: Types that kernels do not have.
OTHERS = {
    "longdouble": lambda: numbers(np.longdouble),
    "complex64": lambda: numbers(np.complex64),
    "object": lambda: numbers().astype(object),
    "text": lambda: np.array(["a", "bc"]),
    "bytes": lambda: np.array([b"a", b"bc"]),
    "datetime64": lambda: np.array(["2000-01-01", "2000-01-02"], "datetime64[s]"),
    "timedelta64": lambda: np.array([1, 2], "timedelta64[s]"),
    "void": lambda: np.zeros(3, "V4"),
    "structured": lambda: np.zeros(3, [("x", "f4"), ("y", "f4")]),
}


def of(array: np.ndarray, *, is_read_only: bool = False) -> Case:
    """An array that NumPy reads itself."""
    return Case(array, np.array(array, subok=False), lambda: np.array(array, subok=False), is_read_only)


def laid_out(name: str, view: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...] = (4, 6)) -> None:
    """A kind that is a view of an array; the rest of the array must stay as it is."""

    def make() -> Case:
        whole = numbers(shape=shape)
        untouched = np.ones(shape, bool)
        view(untouched)[...] = False
        before, seen = whole.copy(), view(whole)

        def read() -> np.ndarray:
            assert (whole[untouched] == before[untouched]).all(), "memory beside the view was written"
            return np.array(seen)

        return Case(seen, np.array(seen), read)

    KINDS[f"numpy {name}"] = lambda act: act(make())


for _name in TYPES:
    KINDS[f"numpy {_name}"] = lambda act, name=_name: act(
        of(numbers(name) % 2 > 0 if name == "bool" else numbers(name))
    )
for _name, _make in OTHERS.items():
    KINDS[f"numpy {_name}"] = lambda act, make=_make: act(of(make()))

laid_out("plain view", lambda a: a[1:3])
laid_out("strided", lambda a: a[::2, 1::2])
laid_out("negative steps", lambda a: a[::-1, ::-2])
laid_out("transposed", lambda a: a.T)
laid_out("axes in another order", lambda a: a.reshape(2, 2, 6).transpose(1, 2, 0))
laid_out("column", lambda a: a[:, 2])
laid_out("one row of several axes", lambda a: a[1:2, None, ::3])


@kind("numpy 0-d")
def _zero_d() -> Case:
    return of(np.array(3.0, np.float32))


@kind("numpy empty")
def _empty() -> Case:
    return of(np.zeros((0, 3), np.float32))


@kind("numpy empty strided")
def _empty_strided() -> Case:
    return of(np.zeros((4, 0, 3), np.float32)[::2, :, ::-1])


@kind("numpy Fortran")
def _fortran() -> Case:
    return of(np.asfortranarray(numbers()))


@kind("numpy broadcast")
def _broadcast() -> Case:
    return of(np.broadcast_to(numbers(shape=(3,)), (2, 3)), is_read_only=True)


@kind("numpy overlapping")
def _overlapping() -> Case:
    base = numbers(shape=(6,))
    return of(np.lib.stride_tricks.as_strided(base, (4, 3), (4, 4)), is_read_only=True)


@kind("numpy stretched, writable")
def _stretched() -> Case:
    base = numbers(shape=(3,))
    return of(np.lib.stride_tricks.as_strided(base, (2, 3), (0, 4)), is_read_only=True)


@kind("numpy read-only")
def _read_only() -> Case:
    array = numbers()
    array.flags.writeable = False
    return of(array, is_read_only=True)


@kind("numpy read-only strided")
def _read_only_strided() -> Case:
    array = numbers(shape=(4, 6))
    array.flags.writeable = False
    return of(array[::2, ::2], is_read_only=True)


@kind("numpy of bytes")
def _of_bytes() -> Case:
    return of(np.frombuffer(numbers().tobytes(), np.float32), is_read_only=True)


@kind("numpy unaligned")
def _unaligned() -> Case:
    array = np.frombuffer(bytearray(25), np.float32, 6, offset=1)
    array[...] = numbers(shape=(6,))
    return of(array)


@kind("numpy byte-swapped")
def _swapped() -> Case:
    return of(numbers().astype(np.dtype("f4").newbyteorder()))


@kind("numpy member")
def _member() -> Case:
    array = np.zeros(4, [("x", "f4"), ("y", "f4")])
    array["y"] = numbers(shape=(4,))

    def read() -> np.ndarray:
        assert not array["x"].any(), "another member was written"
        return array["y"].copy()

    return Case(array["y"], array["y"].copy(), read)


@kind("numpy member of a packed struct")
def _packed_member() -> Case:
    array = np.zeros(4, [("x", "i1"), ("y", "f4")])
    array["y"] = numbers(shape=(4,))

    def read() -> np.ndarray:
        assert not array["x"].any(), "another member was written"
        return array["y"].copy()

    return Case(array["y"], array["y"].copy(), read)


@kind("numpy record array")
def _records() -> Case:
    array = np.rec.fromarrays([numbers(shape=(4,)), numbers("i4", (4,))], names="x,y")
    return Case(array.x, numbers(shape=(4,)), lambda: np.array(array.x))


@kind("numpy masked")
def _masked() -> Case:
    array = np.ma.array(numbers(), mask=numbers() == 2)
    return Case(array, np.array(array.data), lambda: np.array(array.data))


@kind("numpy matrix")
def _matrix() -> Case:
    return of(numbers().view(np.matrix))


class _Plain(np.ndarray):
    """A subclass that adds nothing."""


class _Copying(np.ndarray):
    """A subclass whose conversion is a copy."""

    def __array__(self, *args, **kwargs):
        return np.array(self.view(np.ndarray))


@kind("numpy subclass")
def _subclass() -> Case:
    return of(numbers().view(_Plain))


@kind("numpy subclass, strided")
def _subclass_strided() -> Case:
    return of(numbers(shape=(4, 6)).view(_Plain)[:, ::2])


@kind("numpy subclass, __array__ copies")
def _subclass_copying() -> Case:
    array = numbers().view(_Copying)
    return Case(array, numbers(), lambda: np.array(array.view(np.ndarray)))


def _file() -> str:
    path = tempfile.NamedTemporaryFile(delete=False).name  # noqa: SIM115
    atexit.register(os.unlink, path)
    numbers().tofile(path)
    return path


@kind("numpy memmap", is_repeated=False)
def _memmap() -> Case:
    path = _file()
    array = np.memmap(path, np.float32, "r+", shape=(2, 3))

    def read() -> np.ndarray:
        array.flush()
        return np.fromfile(path, np.float32).reshape(2, 3)

    return Case(array, numbers(), read)


@kind("numpy memmap, read-only", is_repeated=False)
def _memmap_read_only() -> Case:
    return of(np.memmap(_file(), np.float32, "r", shape=(2, 3)), is_read_only=True)


@kind("numpy memmap, copy on write", is_repeated=False)
def _memmap_private() -> Case:
    return of(np.memmap(_file(), np.float32, "c", shape=(2, 3)))


@kind("numpy scalar")
def _scalar() -> Case:
    array = numbers()
    scalar = array[1, 1]
    return Case(scalar, np.array(scalar), lambda: np.array(scalar), is_read_only=True)


@kind("numpy bool scalar")
def _bool_scalar() -> Case:
    scalar = np.bool_(True)
    return Case(scalar, np.array(scalar), lambda: np.array(scalar), is_read_only=True)


@kind("numpy large", is_repeated=False)
def _large() -> Case:
    return of(numbers(shape=(2048, 1024)))


@kind("numpy large, transposed", is_repeated=False)
def _large_transposed() -> Case:
    return of(numbers(shape=(2048, 1024)).T)


@kind("numpy of 20 axes")
def _many_axes() -> Case:
    return of(numbers(shape=(1,) * 17 + (2, 1, 3)))
