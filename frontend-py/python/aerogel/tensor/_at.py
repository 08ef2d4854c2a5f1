"""Updates that return another tensor: ``x.at[key].add(values)``, as JAX has them.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> x = ti.tensor.zeros(3)
>>> x.at[[0, 2, 2]].add(1.0).tolist(), x.tolist()
([1.0, 0.0, 2.0], [0.0, 0.0, 0.0])

Keys are those of ``x[key]``. Where an index is repeated, ``add``, ``multiply``, ``min`` and related methods use all
of its values, and ``set`` one of them. Of a NaN and a number, ``min`` and ``max`` take the number. Indices outside
are an error, or handled as ``x.outside(...)`` states: ``x.outside("zero").at[i].add(v)`` drops them.
"""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import u1
from aerogel.tensor import _items
from aerogel.tensor._complex import ComplexTensor, is_complex, joined
from aerogel.tensor._complex import _planes as planes_of
from aerogel.tensor._creation import ones_like
from aerogel.tensor._searching import where
from aerogel.tensor._stored import kept
from aerogel.tensor._tensor import Tensor, asarray, binary, inside, tracing

#: How an element is made of the old one and a value.
_OPERATIONS = {how: binary(how) for how in ("add", "mul", "min", "max")}


class At:
    """``x.at``: indexing it by ``[key]`` selects a part of the tensor."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __getitem__(self, key: Any) -> Part:
        return Part(self._tensor, key)

    def __repr__(self) -> str:
        return f"{self._tensor!r}.at"


class Part:
    """A part of a tensor; its methods return copies of the tensor with that part updated."""

    __slots__ = ("_key", "_tensor")

    def __init__(self, tensor: Any, key: Any) -> None:
        self._tensor = tensor
        self._key = key

    def get(self) -> Any:
        """The part: ``x[key]``."""
        return self._tensor[self._key]

    def set(self, values: Any) -> Any:
        """A copy of the tensor with the part replaced by values."""
        return self._put("set", values)

    def add(self, values: Any) -> Any:
        """A copy of the tensor with values added to the part."""
        return self._put("add", values)

    def subtract(self, values: Any) -> Any:
        """A copy of the tensor with values subtracted from the part."""
        if isinstance(self._tensor, ComplexTensor):
            return self._put("add", -asarray(values))
        # In the dtype of the tensor, so that the values of an unsigned one wrap around.
        return self._put("add", -kept(values, self._tensor.dtype))

    def multiply(self, values: Any) -> Any:
        """A copy of the tensor with the part multiplied by values."""
        return self._put("mul", values)

    mul = multiply

    def divide(self, values: Any) -> Any:
        """A copy of the tensor, of floats, with the part divided by values."""
        x = self._real("divide")
        x = x if x.dtype.is_float else x / 1
        return x / Part(ones_like(x), self._key).multiply(values)

    def power(self, values: Any) -> Any:
        """A copy of the tensor with the part raised to the power of values."""
        x = self._real("power")
        return x ** Part(ones_like(x), self._key).multiply(values)

    def min(self, values: Any) -> Any:
        """A copy of the tensor with the minimum of the part and values."""
        return self._put("min", values)

    def max(self, values: Any) -> Any:
        """A copy of the tensor with the maximum of the part and values."""
        return self._put("max", values)

    def _real(self, name: str) -> Tensor:
        if isinstance(self._tensor, ComplexTensor):
            raise TypeError(f"`x.at[...].{name}` takes real tensors, not `{self._tensor.dtype}`: use `set` or `add`")
        return self._tensor

    def _put(self, how: str, values: Any) -> Any:
        if isinstance(self._tensor, ComplexTensor):
            if how not in ("set", "add"):
                self._real({"mul": "multiply"}.get(how, how))
            pairs = zip(planes_of(self._tensor), planes_of(values))
            return joined(*(Part(x, self._key)._put(how, part) for x, part in pairs))
        x = inside(self._tensor)
        if how != "set" and _items.takes_by_truth(self._key, values):
            return self._put_by_truth(x, how, values)
        if tracing.program is not None:
            return self._put_in_program(x, how, values)
        out = x.copy()
        if how == "set":
            out[self._key] = values
        else:
            _items.store(out, self._key, values, how)
        return out

    def _put_by_truth(self, x: Tensor, how: str, values: Any) -> Tensor:
        """Accumulates into all or none of the elements that the rest of a key names."""
        truths, rest, _ = _items._without_truths(self._key)
        out = Part(x, rest)._put(how, values)
        for truth in truths:
            out = where(asarray(truth), out, x)
        return out.outside(x._outside)  # type: ignore[no-any-return]

    def _put_in_program(self, x: Tensor, how: str, values: Any) -> Tensor:
        mask = self._mask(x)
        if mask is not None:
            value = kept(values, x.dtype)
            if value.ndim == 0:
                new = value if how == "set" else _OPERATIONS[how](x, value)
                return where(mask, new, x).outside(x._outside)
        out = x.copy()
        if how != "set" and _names_once(self._key):
            # Arithmetic with the old elements has more derivatives than an accumulating store.
            values, how = _OPERATIONS[how](x[self._key], kept(values, x.dtype)), "set"
        tracing.program.store(out, self._key, values, how)
        return out

    def _mask(self, x: Tensor) -> Tensor | None:
        """A boolean key, with the axes of the tensor."""
        key = self._key
        if isinstance(key, (tuple, int, slice)) or key is None or key is Ellipsis:
            return None
        mask = asarray(key)
        if is_complex(mask) or mask.dtype is not u1 or mask.ndim > x.ndim:
            return None
        shape = x.shape[: mask.ndim]
        if any(isinstance(m, int) and isinstance(n, int) and m != n for m, n in zip(mask.shape, shape)):
            raise IndexError(f"a mask of shape {mask.shape} for axes of shape {shape}")
        return mask.reshape((*mask.shape, *([1] * (x.ndim - mask.ndim))))


def _names_once(key: Any) -> bool:
    """Whether a key has no lists or arrays of indices, so that no element is named twice."""
    keys = key if isinstance(key, tuple) else (key,)
    return not any(isinstance(k, list) or getattr(k, "ndim", 0) for k in keys)
