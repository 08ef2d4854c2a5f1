"""Names of NumPy's and PyTorch's that are others here: what asks for one is told ours."""

from __future__ import annotations

import importlib
from typing import Any

#: Functions there, and what does the same here.
FUNCTIONS = {
    "jacfwd": "jacobian", "jacrev": "jacobian",
    "absolute": "abs(x)", "amax": "max(x)", "amin": "min(x)", "append": "concat([x, y], axis=None)",
    "arccos": "acos(x)", "arccosh": "acosh(x)", "arcsin": "asin(x)", "arcsinh": "asinh(x)", "arctan": "atan(x)",
    "arctan2": "atan2(x, y)", "arctanh": "atanh(x)", "around": "round(x)", "array_equal": "(x == y).all()",
    "array_split": "split(x, n)", "as_tensor": "asarray(x)", "average": "mean(x)",
    "bincount": 'scatter(zeros(n, ti.i32), i, 1, how="add")', "bitwise_not": "bitwise_invert(i)",
    "bmm": "matmul(x, y)", "cat": "concat([x, y])", "choice": "x[random.integers(0, n, shape)]",
    "chunk": "split(x, n)", "clamp": "clip(x, low, high)", "column_stack": "stack([a, b], axis=-1)",
    "convolve": 'accum("i+k; k => i", a, flip(b))',
    "cov": "(x - mean(x, axis=1, keepdims=True)) @ (x - mean(x, axis=1, keepdims=True)).T / (n - 1)",
    "deg2rad": "radians(x)", "diag": "diagonal(x)", "digitize": 'searchsorted(bins, x, side="right")',
    "div": "divide(x, y)", "dstack": "stack([x, y], axis=-1)", "expand": "broadcast_to(x, shape)", "fabs": "abs(x)",
    "fix": "trunc(x)", "flatnonzero": "nonzero(x.reshape(-1))[0]", "fliplr": "flip(x, axis=1)",
    "flipud": "flip(x, axis=0)", "float_power": "pow(x, y)", "from_numpy": "asarray(x)",
    "histogram": 'scatter(zeros(n, ti.i32), ((x - low) / (high - low) * n).astype(ti.i32), 1, how="add")',
    "hsplit": "split(x, n, axis=1)", "hstack": "concat([x, y], axis=-1)", "index_select": "take(x, i, axis=0)",
    "inner": "matmul(x, y.T)", "invert": "bitwise_invert(i)",
    "kron": "(x[:, None, :, None] * y[:, None]).reshape(len(x) * len(y), -1)",
    "left_shift": "bitwise_left_shift(i, n)", "logspace": "10 ** linspace(0, 1, n)",
    "logsumexp": "log(sum(exp(x - max(x)))) + max(x)", "manual_seed": "random.seed(n)",
    "masked_fill": "where(mask, value, x)", "mm": "matmul(x, y)", "mod": "remainder(x, y)", "mul": "multiply(x, y)",
    "nan_to_num": "where(isnan(x), 0, x)", "nansum": "sum(where(isnan(x), 0, x))", "ndarray": "asarray(x)",
    "neg": "negative(x)", "permute": "permute_dims(x, axes)", "power": "pow(x, y)", "ptp": "max(x) - min(x)",
    "rad2deg": "degrees(x)", "randint": "random.integers(0, n, shape)", "range": "arange(n)",
    "ravel": "x.reshape(-1)", "right_shift": "bitwise_right_shift(i, n)", "rint": "round(x)",
    "scatter_add": 'scatter(x, i, values, how="add")', "select": "where(mask, x, y)",
    "shuffle": "x[random.permutation(n)]", "silu": "x * sigmoid(x)", "sub": "subtract(x, y)",
    "swapaxes": "x.swapaxes(0, 1)", "true_divide": "divide(x, y)", "unbind": "unstack(x)",
    "unique": "unique_values(x)", "view": "reshape(x, shape)", "vsplit": "split(x, n, axis=0)",
    "vstack": "concat([x, y], axis=0)",
}  # fmt: skip

#: Types there.
TYPES = {
    "bool_": "u1", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip

#: Methods there, and what does the same here.
METHODS = {
    "add_": "x = x + y", "amax": "x.max()", "amin": "x.min()", "bool": "x.astype(ti.u1)",
    "chunk": "ti.tensor.split(x, n)", "clamp": "x.clip(low, high)", "clone": "x.copy()", "contiguous": "x",
    "cpu": "x", "dim": "x.ndim", "div": "x / y", "double": "x.astype(ti.f64)", "eq": "x == y",
    "expand": "ti.tensor.broadcast_to(x, shape)", "fill_": "x.fill(value)", "flat": "x.reshape(-1)",
    "float": "x.astype(ti.f32)", "ge": "x >= y", "gt": "x > y", "H": "x.mT.conj()", "half": "x.astype(ti.f16)",
    "index_select": "ti.tensor.take(x, i, axis=0)", "int": "x.astype(ti.i32)", "le": "x <= y",
    "long": "x.astype(ti.i64)", "lt": "x < y", "masked_fill": "ti.tensor.where(mask, value, x)", "mm": "x @ y",
    "mul": "x * y", "mul_": "x = x * y", "ne": "x != y", "neg": "-x", "nelement": "x.size", "numel": "x.size",
    "ptp": "x.max() - x.min()", "strides": "x.numpy().strides", "sub": "x - y", "sub_": "x = x - y", "t": "x.T",
    "to": "x.astype(dtype)", "tobytes": "x.numpy().tobytes()", "type": "x.astype(dtype)",
    "unbind": "ti.tensor.unstack(x)", "view": "x.reshape(shape)", "view_as": "x.reshape(y.shape)",
    "zero_": "x.fill(0)",
}  # fmt: skip


def function(name: str) -> str:
    """What is written here for a name of a module, as the end of a message; nothing if that is not known."""
    from aerogel import tensor

    if name in FUNCTIONS:
        return f": write `{FUNCTIONS[name]}`"
    if name in TYPES:
        return f": the type is `ti.{TYPES[name]}`"
    for module in ("linalg", "fft", "random", "programs"):
        if hasattr(importlib.import_module(f"aerogel.tensor.{module}"), name) and not name.startswith("_"):
            return f": it is in `ti.tensor.{module}`"
    own = getattr(tensor.Tensor, name, None)
    if own is not None and not name.startswith("_"):
        return f": tensors have it, `x.{name}{'(...)' if callable(own) else ''}`"
    return ""


def method(name: str) -> str:
    """What is written here for a name of a tensor, as the end of a message; nothing if that is not known."""
    from aerogel import tensor

    if name in METHODS:
        return f": write `{METHODS[name]}`"
    own: Any = vars(tensor).get(name)
    if callable(own) and not isinstance(own, type) and not name.startswith("_"):
        return f": it is a function, `ti.tensor.{name}`"
    return f": of the functions in `ti.tensor` write `{FUNCTIONS[name]}`" if name in FUNCTIONS else ""
