"""PyTorch's tensors as what fields and arrays are copied from and to, by their memory.

``tensor.numpy()`` would forbid PyTorch to resize the tensor from then on, and has no ``bfloat16``.
"""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel._dtypes import ALL, DataType, bf16, numpy_dtype, numpy_name


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """A tensor on the CPU for elements of a type."""
    import torch

    name = numpy_name(dtype)
    if not hasattr(torch, name):
        raise TypeError(f"this version of PyTorch does not have {name}")
    return torch.empty(shape, dtype=getattr(torch, name))


def on_cpu(tensor: Any) -> Any:
    """The tensor on the CPU, copied there if it is elsewhere."""
    if not _native.is_torch_tensor(tensor):
        raise TypeError(f"a PyTorch tensor is needed, not {type(tensor).__name__}")
    return tensor if tensor.device.type in ("cpu", "meta") else tensor.detach().cpu()


def _described(tensor: Any) -> tuple[str, tuple[int, ...]]:
    found = _native.foreign_array(tensor)
    assert found is not None
    return found


def converted(tensor: Any, dtype: Any) -> tuple[Any, bool]:
    """A tensor on the CPU, and whether its elements are of a type. Those of ``bf16`` are made here: NumPy has none."""
    tensor = on_cpu(tensor)
    name, _ = _described(tensor)
    if dtype is bf16 and name != "bf16":
        import torch

        return tensor.detach().to(torch.bfloat16), True
    return tensor, isinstance(dtype, DataType) and name == dtype._aerogel_dtype


def to_numpy(tensor: Any) -> Any:
    """The elements of a tensor on the CPU as a new NumPy array; those of ``bf16`` as ``float32``."""
    import numpy as np

    name, shape = _described(tensor)
    if name == "bf16":
        return to_numpy(tensor.detach().float())
    out = np.empty(shape, numpy_dtype(ALL[name]))
    _native.copy_array(tensor, out)
    return out
