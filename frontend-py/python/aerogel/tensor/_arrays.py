"""Tensors of NumPy arrays, of lists, and of arrays of other packages."""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel._dtypes import bf16, dtype_of, numpy_dtype, u1
from aerogel.tensor import _complex, _lists, _types
from aerogel.tensor._tensor import Tensor, asarray, is_number, of_torch, tracing


def tensor_of(obj: Any, dtype: Any) -> Tensor:
    """A tensor of an array or a list, with a copy of the values.

    Raises:
        TypeError: If there is something else than numbers, or a mask.
        OverflowError: If a number of a list does not fit the dtype.
    """
    import numpy as np

    if _native.is_torch_tensor(obj):
        from aerogel.data import _torch

        if obj.requires_grad and not _native.are_gradients_off() and tracing.program is None:
            # Gradients by values computed from it continue in PyTorch.
            out: Tensor = of_torch[0](obj)
            return out if dtype is None else out.astype(dtype)

        obj = _torch.on_cpu(obj)
        if not obj.is_complex():
            out = Tensor(_native.NativeTensor.of_numpy(obj))
            return out if dtype is None else out.astype(dtype)
        obj = obj.detach().clone().resolve_conj().numpy()
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array_struct__") and not hasattr(obj, "__array__"):
        obj = np.from_dlpack(obj)
    if isinstance(obj, range) or hasattr(obj, "to_list") and not hasattr(obj, "__array_interface__"):
        # Python's numbers in a row, whatever holds them.
        obj = list(obj) if isinstance(obj, range) else obj.to_list()
    if isinstance(obj, np.ma.MaskedArray):
        raise TypeError("a tensor has no mask: take `array.filled(value)`, or `array.data`")
    is_list = isinstance(obj, (list, tuple))
    # Numbers of Python's have no type of their own.
    is_plain = False
    if is_list:
        kinds = _lists.kinds(obj)
        is_plain = all(issubclass(k, (int, float, complex)) and not hasattr(k, "dtype") for k in kinds)
        if any(issubclass(k, (Tensor, _complex.ComplexTensor)) for k in kinds):
            if tracing.program is not None:
                from aerogel.tensor._shapes import nested

                return nested(obj, dtype)
            obj = without_tensors(obj)
    array = _lists.array_of(obj)
    if array.dtype.kind == "c":
        kind = dtype if dtype is not None or not is_plain else _complex.of_part(_types.default_float())
        return _complex.of_numpy(array, kind)  # type: ignore[return-value]
    if is_plain and array.size and (array.dtype.kind == "O" or array.dtype.kind == "f" and abs(array).max() >= 2.0**63):
        array = _lists.whole(obj, array, dtype is None or not (dtype_of(dtype).is_float or dtype_of(dtype) is u1))
    if dtype is None and is_plain:
        dtype = _lists.type_of_list(array)
    if array.dtype.kind == "O" or array.dtype.kind in "SU" and not hasattr(obj, "dtype") and dtype is None:
        raise TypeError(f"elements of a tensor are numbers, not {type(obj).__name__}" + _what_is_no_number(obj))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.name == "bfloat16":
        out = Tensor(_native.NativeTensor.of_numpy(np.ascontiguousarray(array).reshape(array.shape)))
        return out if dtype is None else out.astype(dtype)
    if dtype is not None and dtype_of(dtype) is bf16:
        return asarray(array).astype(bf16)
    if dtype is not None:
        wanted = numpy_dtype(dtype_of(dtype))
        if is_plain and array.size and array.dtype.kind in "iuf" and np.dtype(wanted).kind in "iu":
            limits = np.iinfo(wanted)
            least, most = array.min(), array.max()
            if not (limits.min <= least and most <= limits.max):
                raise OverflowError(f"{least if least < limits.min else most} does not fit {dtype_of(dtype)}")
        array = array.astype(wanted)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"tensors do not support NumPy's dtype {array.dtype}")
    # Where elements lie is looked up by rows; NumPy makes an array of one axis of a single number here.
    return Tensor(_native.NativeTensor.of_numpy(np.ascontiguousarray(array).reshape(array.shape)))


def _what_is_no_number(obj: Any) -> str:
    if isinstance(obj, (list, tuple)):
        for part in obj:
            if isinstance(part, (list, tuple)):
                if found := _what_is_no_number(part):
                    return found
            elif not is_number(part) and not hasattr(part, "dtype"):
                return f" with {part!r} in it"
    return ""


def without_tensors(obj: Any) -> Any:
    """A list with arrays in the place of its tensors."""
    if isinstance(obj, (list, tuple)):
        return [without_tensors(x) for x in obj]
    return obj.numpy() if isinstance(obj, (Tensor, _complex.ComplexTensor)) else obj
