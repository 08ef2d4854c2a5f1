"""NumPy's and PyTorch's names that differ here: the error for such a name states Aerogel's."""

from __future__ import annotations

import importlib
from typing import Any

from aerogel import _dtypes

#: Functions there, and what does the same here.
FUNCTIONS = {
    "jacfwd": "jacobian", "jacrev": "jacobian",
    "as_tensor": "asarray(x)", "bmm": "matmul(x, y)", "cat": "concat([x, y])",
    "choice": "x[random.integers(0, n, shape)]", "chunk": "split(x, n)", "clamp": "clip(x, low, high)",
    "div": "divide(x, y)", "expand": "broadcast_to(x, shape)", "from_numpy": "asarray(x)",
    "index_select": "take(x, i, axis=0)", "manual_seed": "random.seed(n)", "masked_fill": "where(mask, value, x)",
    "mm": "matmul(x, y)", "mul": "multiply(x, y)", "ndarray": "asarray(x)", "neg": "negative(x)",
    "permute": "permute_dims(x, axes)", "randint": "random.integers(0, n, shape)", "range": "arange(n)",
    "interpolate": "repeat(x, n, axis=-1)",
    "trapz": "ti.xp.trapezoid(y, x)",
    "scatter_add": 'scatter(x, i, values, how="add")', "shuffle": "x[random.permutation(n)]", "sub": "subtract(x, y)",
    "unbind": "unstack(x)", "view": "reshape(x, shape)",
}  # fmt: skip

#: Types there.
TYPES = {
    "bool_": "u1", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip

_CUDA = "ti.init(arch=ti.cuda)` before tensors are made: they are on the device of `ti.init"

#: Methods there, and what does the same here.
METHODS = {
    "add_": "x = x + y", "amax": "x.max()", "amin": "x.min()", "bool": "x.astype(ti.u1)",
    "chunk": "ti.tensor.split(x, n)", "clamp": "x.clip(low, high)", "clone": "x.copy()", "contiguous": "x",
    "cpu": "x", "cuda": _CUDA,
    "dim": "x.ndim", "div": "x / y", "double": "x.astype(ti.f64)", "eq": "x == y",
    "expand": "ti.tensor.broadcast_to(x, shape)", "fill_": "x.fill(value)", "flat": "x.reshape(-1)",
    "float": "x.astype(ti.f32)", "ge": "x >= y", "gt": "x > y", "H": "x.mT.conj()", "half": "x.astype(ti.f16)",
    "index_select": "ti.tensor.take(x, i, axis=0)", "int": "x.astype(ti.i32)", "le": "x <= y",
    "long": "x.astype(ti.i64)", "lt": "x < y", "masked_fill": "ti.tensor.where(mask, value, x)", "mm": "x @ y",
    "mul": "x * y", "mul_": "x = x * y", "ne": "x != y", "neg": "-x", "nelement": "x.size", "numel": "x.size",
    "ptp": "x.max() - x.min()", "strides": "x.numpy().strides", "sub": "x - y", "sub_": "x = x - y", "t": "x.T",
    "tobytes": "x.numpy().tobytes()", "type": "x.astype(dtype)",
    "unbind": "ti.tensor.unstack(x)", "view": "x.reshape(shape)", "view_as": "x.reshape(y.shape)",
    "zero_": "x.fill(0)",
}  # fmt: skip


#: Modules with functions of tensors besides `aerogel.tensor`, and how they are written.
_MODULES = {
    "tensor.linalg": "ti.tensor.linalg", "tensor.fft": "ti.tensor.fft", "tensor.random": "ti.tensor.random",
    "tensor.programs": "ti.tensor.programs", "xp": "ti.xp", "special": "ti.special",
    "nn.functional": "aerogel.nn.functional",
}  # fmt: skip


def _place(name: str) -> str:
    """Where a function of this name is; nothing if there is none."""
    for module, written in _MODULES.items():
        # Their `__getattr__` leads here, so the names that they have are read from the dictionary.
        own = vars(importlib.import_module(f"aerogel.{module}")).get(name)
        if not name.startswith("_") and callable(own):
            return f"{written}.{name}"
    return ""


def function(name: str) -> str:
    """What is written here for a name of a module, as the end of a message; nothing if that is not known."""
    tensor = importlib.import_module("aerogel.tensor")
    if name in FUNCTIONS:
        return f": write `{FUNCTIONS[name]}`"
    if name in TYPES or name in _dtypes.ALL:
        return f": the type is `ti.{TYPES.get(name, name)}`"
    own = getattr(tensor.Tensor, name, None)
    if own is not None and not name.startswith("_"):
        return f": tensors have it, `x.{name}{'(...)' if callable(own) else ''}`"
    place = _place(name)
    return f": it is `{place}`" if place else ""


def of_package(name: str) -> str:
    """What is written for a name of NumPy or PyTorch that `aerogel` itself does not have, as the end of a message."""
    own: Any = vars(importlib.import_module("aerogel.tensor")).get(name)
    if callable(own) and not isinstance(own, type):
        return f": it is a function of tensors, `ti.tensor.{name}`"
    if name in FUNCTIONS:
        return f": of the functions in `ti.tensor` write `{FUNCTIONS[name]}`"
    if name in TYPES:
        return f": the type is `ti.{TYPES[name]}`"
    place = _place(name)
    return f": it is a function of tensors, `{place}`" if place else ""


def method(name: str) -> str:
    """What is written here for a name of a tensor, as the end of a message; nothing if that is not known."""
    tensor = importlib.import_module("aerogel.tensor")
    if name in METHODS:
        return f": write `{METHODS[name]}`"
    own: Any = vars(tensor).get(name)
    if callable(own) and not isinstance(own, type) and not name.startswith("_"):
        return f": it is a function, `ti.tensor.{name}`"
    if name in FUNCTIONS:
        return f": of the functions in `ti.tensor` write `{FUNCTIONS[name]}`"
    place = _place(name)
    return f": it is a function, `{place}`" if place else ""
