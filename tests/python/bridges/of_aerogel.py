"""Arrays, tensors and fields of Aerogel, where kernels take arrays."""

from __future__ import annotations

import numpy as np
from bridges.case import KINDS, TYPES, Case, kind, numbers

import aerogel as ti


def _ndarray(dtype: str, needs_grad: bool = False) -> Case:
    data = numbers(dtype) % 2 > 0 if dtype == "bool" else numbers(dtype)
    value = ti.ndarray(ti.u1 if dtype == "bool" else dtype, (2, 3), needs_grad=needs_grad)
    value.from_numpy(data)
    return Case(value, data, value.to_numpy, gradient=value.grad.to_numpy if needs_grad else None)


for _name in TYPES:
    KINDS[f"ti.ndarray {_name}"] = lambda act, name=_name: act(_ndarray(name))


@kind("ti.ndarray bf16")
def _bf16() -> Case:
    value = ti.ndarray(ti.bf16, 4)
    for i in range(4):
        value[i] = i + 1
    return Case(value, numbers(shape=(4,)), lambda: np.array([value[i] for i in range(4)], np.float32))


@kind("ti.ndarray with a gradient")
def _with_gradient() -> Case:
    return _ndarray("float32", needs_grad=True)


@kind("ti.ndarray 0-d")
def _zero_d() -> Case:
    value = ti.ndarray(ti.f32, ())
    value[None] = 3
    return Case(value, np.array(3, np.float32), value.to_numpy)


@kind("ti.from_dlpack of numpy")
def _over_numpy() -> Case:
    array = numbers()
    return Case(ti.from_dlpack(array), numbers(), array.copy)


@kind("numpy over ti.ndarray")
def _numpy_over() -> Case:
    case = _ndarray("float32")
    return Case(np.asarray(case.value), case.data, case.read)


@kind("numpy over ti.ndarray, strided")
def _numpy_over_strided() -> Case:
    case = _ndarray("float32")
    return Case(np.asarray(case.value)[:, ::2], numbers()[:, ::2], lambda: case.read()[:, ::2])


@kind("ti.field")
def _field() -> Case:
    value = ti.field(ti.f32, (2, 3))
    value.from_numpy(numbers())
    return Case(value, numbers(), value.to_numpy)


@kind("ti.field with a gradient")
def _field_with_gradient() -> Case:
    value = ti.field(ti.f32, (2, 3), needs_grad=True)
    value.from_numpy(numbers())
    return Case(value, numbers(), value.to_numpy, gradient=value.grad.to_numpy)


@kind("ti.Vector")
def _vector() -> Case:
    value = ti.Vector([1.0, 2.0, 3.0])
    return Case(value, np.array([1, 2, 3], np.float32), value.to_numpy)


@kind("ti.tensor")
def _tensor() -> Case:
    value = ti.tensor.asarray(numbers())
    return Case(value, numbers(), lambda: np.array(value))


@kind("ti.tensor, deferred")
def _deferred() -> Case:
    base = ti.tensor.asarray(numbers())
    value = base * 2 - base
    return Case(value, numbers(), lambda: np.array(value))


@kind("ti.tensor, a slice")
def _slice() -> Case:
    value = ti.tensor.asarray(numbers(shape=(4, 6)))[::2, 1::2]
    return Case(value, numbers(shape=(4, 6))[::2, 1::2].copy(), lambda: np.array(value))


@kind("ti.tensor, complex")
def _complex() -> Case:
    value = ti.tensor.asarray(numbers(np.complex64))
    return Case(value, numbers(np.complex64), lambda: np.array(value))
