"""The memory that programs of `aerogel.tensor.frost` take and return."""

from __future__ import annotations

from typing import Any

from aerogel.tensor._tensor import Tensor, asarray


class TensorMemory(Tensor):
    """Values that a program takes and returns."""

    __slots__ = ()

    @property
    def numpy(self) -> Any:  # type: ignore[override]
        """The values as a NumPy array."""
        return Tensor.numpy(self)


def tensor(array: Any, dtype: Any = None) -> TensorMemory:
    """The values of an array; numbers of 64 bits become 32."""
    import numpy as np

    array = np.asarray(array)
    if dtype is None and array.dtype.kind in "iuf" and array.dtype.itemsize > 4:
        array = array.astype({"i": np.int32, "u": np.uint32, "f": np.float32}[array.dtype.kind])
    return TensorMemory(asarray(array, dtype=dtype)._native)


__all__ = ["TensorMemory", "tensor"]
