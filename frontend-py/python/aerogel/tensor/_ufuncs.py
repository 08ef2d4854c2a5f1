"""What NumPy's functions of each element do with tensors: operators beside arrays, and results in arrays.

>>> import numpy as np
>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> a = b = np.array([1.0, 2.0])
>>> a += ti.tensor.asarray([1.0, 1.0])
>>> b.tolist(), np.exp(ti.tensor.zeros(2)).tolist(), a + ti.tensor.ones(2)
([2.0, 3.0], [1.0, 1.0], tensor([3., 4.], dtype=f64))
"""

from __future__ import annotations

from typing import Any

from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._tensor import Tensor, tracing

#: The operators of a tensor on the right of an array, by the names of the functions that NumPy calls for them.
_OPERATORS = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "divmod": "__rdivmod__", "power": "__rpow__",
    "matmul": "__rmatmul__", "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__",
    "left_shift": "__rlshift__", "right_shift": "__rrshift__", "equal": "__eq__", "not_equal": "__ne__",
    "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__",
}  # fmt: skip


def _operator(ufunc: Any) -> str:
    """The name of an operator's method, if this is an operator of NumPy's."""
    import numpy as np

    name = ufunc.__name__
    return _OPERATORS.get(name, "") if getattr(np, name, None) is ufunc else ""


def _is_tensor(x: Any) -> bool:
    return isinstance(x, (Tensor, ComplexTensor))


def _array(x: Any) -> Any:
    return x.__array__() if _is_tensor(x) else x


def _is_other(x: Any) -> bool:
    """Whether this is another package's array, which has its own rules for NumPy's functions."""
    import numpy as np

    own = getattr(type(x), "__array_ufunc__", None)
    return not _is_tensor(x) and own is not None and own is not np.ndarray.__array_ufunc__


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """What NumPy calls where one of its functions of each element is given a tensor.

    An operator between an array and a tensor, ``array + x``, gives a tensor, as ``x + array`` does. Others compute with
    the numbers of tensors and give arrays. ``out``, which is the array in ``array += x``, is stored to by NumPy itself,
    with its rules of types.

    Raises:
        TypeError: If a tensor is to be stored to, or, by NumPy, if ``out`` has a type that does not hold the results.
        RuntimeError: If an array is to be stored to in a program, or in a function that ``vmap`` calls.
    """
    out = kwargs.get("out", ())
    if any(_is_other(x) for x in (*inputs, *out)):
        return NotImplemented
    if any(_is_tensor(x) for x in out) or (method == "at" and _is_tensor(inputs[0])):
        raise TypeError(f"`{ufunc.__name__}`: NumPy cannot write results to a tensor: write `x[...] = value`")
    is_traced = tracing.program is not None or tracing.mapped is not None
    if is_traced and (method == "at" or any(x is not None for x in out)):
        where = "a program is traced" if tracing.program is not None else "`vmap` calls a function"
        raise RuntimeError(
            f"a NumPy array is modified by `{ufunc.__name__}` while {where}, when nothing is computed: write "
            "`x = array + tensor` for `array += tensor`"
        )
    if method == "__call__" and not kwargs and not _is_tensor(inputs[0]):
        operator = getattr(inputs[-1], _operator(ufunc), None)
        if operator is not None:
            return operator(inputs[0])
    kwargs = {name: _array(value) for name, value in kwargs.items()}
    return getattr(ufunc, method)(*map(_array, inputs), **kwargs)
