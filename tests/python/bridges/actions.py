"""What is done with an array, and whether the outcome is right."""

from __future__ import annotations

from typing import Any

import numpy as np
from bridges.case import Case

import aerogel as ti


class Silent(Exception):
    """What came out is wrong, and nothing said so."""


class Inapplicable(Exception):
    """There is nothing to be done with such an array."""


def expect(got: Any, wanted: np.ndarray | None, what: str) -> None:
    """Raises `Silent` unless two arrays are the same."""
    if wanted is None:
        raise Silent(f"{what}: there is nothing to see, and no error")
    got = np.asarray(got) if got is not None else np.zeros(0)
    has_nan = wanted.dtype.kind == got.dtype.kind == "f"
    if got.shape != wanted.shape or not np.array_equal(got, wanted, equal_nan=has_nan):
        raise Silent(f"{what}: {_short(got)}, not {_short(wanted)}")


def _short(array: np.ndarray) -> str:
    text = str(array.ravel()[:4].tolist())
    return text if array.size <= 4 else f"{text[:-1]}, ...]"


@ti.kernel
def copy_to(a: ti.types.ndarray(), out: ti.types.ndarray()):
    for I in ti.grouped(a):
        out[I] = a[I]


@ti.kernel
def set_to(a: ti.types.ndarray(), source: ti.types.ndarray()):
    for I in ti.grouped(a):
        a[I] = source[I]


@ti.kernel
def add_to(a: ti.types.ndarray(), source: ti.types.ndarray()):
    for I in ti.grouped(a):
        a[I] += source[I]


@ti.kernel
def weighed_sum(x: ti.types.ndarray(), w: ti.types.ndarray(), loss: ti.types.ndarray()):
    for I in ti.grouped(x):
        loss[0] += w[I] * x[I] ** 2


def _like(case: Case) -> np.ndarray:
    """Memory for what a kernel reads; where there is nothing to see, for anything."""
    return np.full(case.data.shape, 0, case.data.dtype) if case.data is not None else np.zeros((2, 3), np.float32)


def _others(data: np.ndarray | None) -> np.ndarray:
    """Other elements than those of an array."""
    if data is None:
        return np.ones((2, 3), np.float32)
    if data.dtype == bool:
        return ~data
    if data.dtype.kind not in "iuf":
        return data.copy()
    return (data % 3 + 6).astype(data.dtype)


def read(case: Case) -> None:
    """A kernel reads it."""
    out = _like(case)
    copy_to(case.value, out)
    expect(out, case.data, "read")
    expect(case.read(), case.data, "the array after it was read")


def write(case: Case) -> None:
    """A kernel writes to it, and the library that made it sees that."""
    source = _others(case.data)
    set_to(case.value, source)
    _expect_written(case, source)


def accumulate(case: Case) -> None:
    """A kernel adds to it."""
    if case.data is not None and case.data.dtype == bool:
        raise Inapplicable
    source = _others(case.data)
    add_to(case.value, source)
    _expect_written(case, source if case.data is None else case.data + source)


def _expect_written(case: Case, wanted: np.ndarray) -> None:
    if case.data is None:
        raise Silent("there is nothing to write to, and no error")
    if case.is_read_only:
        is_same = np.array_equal(case.read(), case.data)
        raise Silent("the write is lost" if is_same else "memory that must not be written was written")
    expect(case.read(), wanted, "written")


def gradient(case: Case) -> None:
    """A tape over the sum of weighted squares, by a kernel that takes it."""
    if case.gradient is None or case.data is None:
        raise Inapplicable
    weights = _others(case.data)
    loss = ti.ndarray(ti.f64, 1, needs_grad=True)
    with ti.ad.Tape(loss):
        weighed_sum(case.value, weights, loss)
    expect(loss[0], np.array((weights * case.data**2).sum(dtype=np.float64)), "the loss")
    expect(case.gradient(), 2 * weights * case.data, "the gradient")


def function(case: Case) -> None:
    """The same gradient by the library's own differentiation, through `torch_function` or `jax_function`."""
    if case.function is None:
        raise Inapplicable
    weights = _others(case.data)
    expect(case.function(weights), 2 * weights * case.data, "the gradient")


def copied(case: Case) -> None:
    """A field and an array copy from it."""
    data = case.data if case.data is not None else np.zeros((2, 3), np.float32)
    if data.size == 0:
        raise Inapplicable
    if data.dtype.kind not in "biuf" or data.dtype.itemsize > 8:
        raise Inapplicable
    dtype = ti.u1 if data.dtype == bool else data.dtype
    for make in (ti.field, ti.ndarray):
        own = make(dtype, data.shape)
        getattr(own, case.copies if hasattr(own, case.copies) else "from_numpy")(case.value)
        expect(own.to_numpy(), case.data, f"copied to ti.{make.__name__}")


def tensor(case: Case) -> None:
    """A tensor of it."""
    expect(np.array(ti.tensor.asarray(case.value)), case.data, "tensor")


def dlpack(case: Case) -> None:
    """An array over its memory, from which kernels read and to which they write."""
    own = ti.from_dlpack(case.value)
    out = _like(case)
    copy_to(own, out)
    expect(out, case.data, "read over the memory")
    source = _others(case.data)
    set_to(own, source)
    ti.sync()
    _expect_written(case, source)


ACTIONS = {action.__name__: action for action in (read, write, accumulate, gradient, function, copied, tensor, dlpack)}
