"""What tensors have as methods: the functions of the package with the tensor as their first operand."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aerogel.tensor._tensor import Tensor


def _none(out: Any) -> None:
    if out is not None:
        raise TypeError("results cannot be written to a tensor: `out` exists for NumPy's functions, and must be None")


class Methods:
    """Functions of a tensor, and its operators' types for checkers; ``out`` is what NumPy's functions hand over."""

    __slots__ = ()

    # Methods that TensorFrost programs use.

    @property
    def indices(self: Any) -> tuple[Tensor, ...]:
        """In a program: the index along each axis, at every element."""
        from aerogel.tensor import programs

        return programs.indices(self.shape)  # type: ignore[no-any-return]

    def index(self: Any, axis: builtins.int) -> Tensor:
        """In a program: the index along an axis, at every element."""
        return self.indices[axis]  # type: ignore[no-any-return]

    def stop_fusion(self: Any) -> Tensor:
        """The tensor: the compiler decides about fusion itself."""
        return self  # type: ignore[no-any-return]

    def hint_range(self: Any, min: Any, max: Any) -> None:  # noqa: A002
        """The tensor: the compiler needs no hint about the range of its values."""

    def set_debug_name(self: Any, name: str) -> None:
        """A name that tools may show."""

    def detach_grad(self: Any) -> Tensor:
        """As ``detach``: the same values, on which no gradient depends."""
        return self.detach()  # type: ignore[no-any-return]

    def pass_grad(self: Any) -> Tensor:
        """In a program of `frost`: the result of a function of one operand, which gets the gradient unchanged.

        Raises:
            TypeError: If the tensor is no result of such a function.
            RuntimeError: If the operand has been set to another value since.
        """
        if not hasattr(self._made, "passing_gradient"):
            raise TypeError(
                "`pass_grad` is for results of functions of one operand in a program, as in `tf.floor(x).pass_grad()`"
            )
        return self._made.passing_gradient(self)  # type: ignore[no-any-return]

    # Of many numbers one.

    def sum(
        self: Any, axis: Any = None, dtype: Any = None, out: None = None, *, keepdims: builtins.bool = False
    ) -> Tensor:
        """The sum along some axes, or of all."""
        from aerogel.tensor import _reductions

        _none(out)
        return _reductions.sum(self, axis, dtype=dtype, keepdims=keepdims)

    def prod(
        self: Any, axis: Any = None, dtype: Any = None, out: None = None, *, keepdims: builtins.bool = False
    ) -> Tensor:
        """The product along some axes, or of all."""
        from aerogel.tensor import _reductions

        _none(out)
        return _reductions.prod(self, axis, dtype=dtype, keepdims=keepdims)

    def mean(
        self: Any, axis: Any = None, dtype: Any = None, out: None = None, *, keepdims: builtins.bool = False
    ) -> Tensor:
        """The mean along some axes, or of all."""
        from aerogel.tensor import _reductions

        _none(out)
        return _reductions.mean(self if dtype is None else self.astype(dtype), axis, keepdims=keepdims)

    def min(self: Any, axis: Any = None, out: None = None, *, keepdims: builtins.bool = False) -> Tensor:
        """The minimum along some axes, or of all elements."""
        from aerogel.tensor import _reductions

        _none(out)
        return _reductions.min(self, axis, keepdims=keepdims)

    def max(self: Any, axis: Any = None, out: None = None, *, keepdims: builtins.bool = False) -> Tensor:
        """The maximum along some axes, or of all elements."""
        from aerogel.tensor import _reductions

        _none(out)
        return _reductions.max(self, axis, keepdims=keepdims)

    def var(
        self: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0.0,
        *,
        correction: float | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The variance along some axes, divided by the count less ``correction`` (NumPy's ``ddof``)."""
        from aerogel.tensor import _reductions

        _none(out)
        x = self if dtype is None else self.astype(dtype)
        return _reductions.var(x, axis, correction=ddof if correction is None else correction, keepdims=keepdims)

    def std(
        self: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0.0,
        *,
        correction: float | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The root of the variance."""
        from aerogel.tensor import _reductions

        _none(out)
        x = self if dtype is None else self.astype(dtype)
        return _reductions.std(x, axis, correction=ddof if correction is None else correction, keepdims=keepdims)

    def norm(self: Any, axis: Any = None, *, ord: float = 2, keepdims: builtins.bool = False) -> Tensor:  # noqa: A002
        """The ``ord``-norm of vectors along some axes, or of all numbers."""
        from aerogel.tensor import _reductions

        return _reductions.norm(self, axis, ord=ord, keepdims=keepdims)

    def softmax(self: Any, axis: Any = -1) -> Tensor:
        """``exp(x) / sum(exp(x))`` along an axis, without overflow."""
        from aerogel.tensor import _reductions

        return _reductions.softmax(self, axis)

    def log_softmax(self: Any, axis: Any = -1) -> Tensor:
        """The logarithm of ``softmax``, accurate where ``softmax`` is small."""
        from aerogel.tensor import _reductions

        return _reductions.log_softmax(self, axis)

    def any(self: Any, axis: Any = None, out: None = None, *, keepdims: builtins.bool = False) -> Tensor:
        """Whether any element is nonzero."""
        from aerogel.tensor import _reductions

        _none(out)
        return _reductions.any(self, axis, keepdims=keepdims)

    def all(self: Any, axis: Any = None, out: None = None, *, keepdims: builtins.bool = False) -> Tensor:
        """Whether all elements are nonzero."""
        from aerogel.tensor import _reductions

        _none(out)
        return _reductions.all(self, axis, keepdims=keepdims)

    def argmin(self: Any, axis: int | None = None, out: None = None, *, keepdims: builtins.bool = False) -> Tensor:
        """The index of the first minimum along an axis, or its row-major index among all elements."""
        from aerogel.tensor import _reductions

        _none(out)
        return _reductions.argmin(self, axis, keepdims=keepdims)

    def argmax(self: Any, axis: int | None = None, out: None = None, *, keepdims: builtins.bool = False) -> Tensor:
        """The index of the first maximum along an axis, or its row-major index among all elements."""
        from aerogel.tensor import _reductions

        _none(out)
        return _reductions.argmax(self, axis, keepdims=keepdims)

    # Along an axis.

    def cumsum(self: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Tensor:
        """The cumulative sum along an axis, or of all elements in row-major order."""
        from aerogel.tensor import _reductions

        _none(out)
        x = self.reshape(-1) if axis is None else self
        return _reductions.cumulative_sum(x, 0 if axis is None else axis, dtype=dtype)

    def cumprod(self: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Tensor:
        """The cumulative product along an axis, or of all elements in row-major order."""
        from aerogel.tensor import _reductions

        _none(out)
        x = self.reshape(-1) if axis is None else self
        return _reductions.cumulative_prod(x, 0 if axis is None else axis, dtype=dtype)

    def sort(self: Any, axis: int = -1, *, descending: builtins.bool = False) -> Tensor:
        """A copy sorted along an axis; this tensor stays the same."""
        from aerogel.tensor import _searching

        return _searching.sort(self, axis, descending=descending)

    def argsort(self: Any, axis: int = -1, *, descending: builtins.bool = False) -> Tensor:
        """The indices that sort the tensor along an axis."""
        from aerogel.tensor import _searching

        return _searching.argsort(self, axis, descending=descending)

    def take(self: Any, indices: Any, axis: int | None = None) -> Tensor:
        """The slices at these indices along an axis, or the elements at these row-major indices."""
        from aerogel.tensor import _searching

        x = self.reshape(-1) if axis is None else self
        return _searching.take(x, indices, 0 if axis is None else axis)

    def nonzero(self: Any) -> tuple[Tensor, ...]:
        """The indices of the nonzero elements, one tensor for each axis."""
        from aerogel.tensor import _searching

        return _searching.nonzero(self)

    def repeat(self: Any, repeats: Any, axis: int | None = None) -> Tensor:
        """Each element repeated in place."""
        from aerogel.tensor import _shapes

        return _shapes.repeat(self, repeats, axis)

    # Of each number another.

    def clip(self: Any, min: Any = None, max: Any = None, out: None = None) -> Tensor:  # noqa: A002
        """The elements clipped to the range from ``min`` to ``max``."""
        from aerogel.tensor import _searching

        _none(out)
        return _searching.clip(self, min, max)

    def round(self: Any, decimals: int = 0, out: None = None) -> Tensor:
        """Each element rounded to the nearest, halves to the even one; ``decimals`` behind the point."""
        from aerogel.tensor import _elementwise

        _none(out)
        if decimals == 0:
            return _elementwise.round(self)
        if not self.dtype.is_float:
            if decimals > 0:
                return self.copy()
            raise ValueError("integers are rounded to ones; convert them to floats for fewer digits")
        scale = 10.0 ** builtins.abs(decimals)
        if decimals > 0:
            return _elementwise.round(self * scale) / scale
        return _elementwise.round(self / scale) * scale

    def conj(self: Any) -> Tensor:
        """The same numbers, which are real."""
        return self.copy()

    @property
    def real(self: Any) -> Tensor:
        """The same numbers, which are real."""
        return self.copy()

    @property
    def imag(self: Any) -> Tensor:
        """Zeros: the tensor is real."""
        from aerogel.tensor import _creation

        return _creation.zeros_like(self)

    def dot(self: Any, other: Any) -> Tensor:
        """The product of matrices or vectors, as ``tensor.dot``."""
        from aerogel.tensor import _products

        return _products.dot(self, other)

    @property
    def at(self: Any) -> Any:
        """Functional updates, as ``x.at[i].add(value)``, which return a copy; see ``tensor._at``."""
        from aerogel.tensor._at import At

        return At(self)

    # Shapes.

    def ravel(self: Any) -> Tensor:
        """The elements in row-major order along one axis."""
        return self.reshape(-1)

    def swapaxes(self: Any, axis1: int, axis2: int) -> Tensor:
        """Two axes exchanged."""
        from aerogel.tensor import _types

        first, second = (_types.axis(a, self.ndim, "swapaxes") for a in (axis1, axis2))
        order = list(range(self.ndim))
        order[first], order[second] = second, first
        return self.permute(order)

    def diagonal(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """The elements whose indices along two axes are equal, as the last axis."""
        from aerogel.tensor import _shapes

        return _shapes.diagonal(self, offset=offset, axis1=axis1, axis2=axis2)

    def trace(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """The sum on a diagonal."""
        return self.diagonal(offset, axis1, axis2).sum(axis=-1)

    # Gradients.

    def backward(
        self: Any, grad: Any = None, retain_graph: bool = True, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Adds the gradients of this tensor to ``grad`` of all tensors with ``requires_grad`` that it depends on.

        Nothing is computed yet: gradients are tensors like others.

        Args:
            grad: The weight of each element's gradient, of the same shape; for a scalar 1 by default.
            retain_graph: Accepted; recorded operations are stored as long as a tensor that needs them exists.
            create_graph: Whether the gradients may be differentiated again.
            inputs: The tensors that get their gradient, if not all do.

        Raises:
            ValueError: If there are several numbers and no ``grad``, or nothing it depends on has ``requires_grad``.
        """
        from aerogel.tensor import _gradients

        _gradients.backward(self, grad, create_graph, inputs)

    # Itself.

    def copy(self: Any) -> Tensor:
        """A copy of the tensor: stores to one do not change the other."""
        return type(self)._like(self)

    def fill(self: Any, value: Any) -> None:
        """Sets every element to one number."""
        self[...] = value

    __copy__ = copy

    def __deepcopy__(self: Any, memo: Any) -> Tensor:
        from aerogel.tensor import _backward

        return self.detach().copy().requires_grad_() if _backward.is_parameter(self) else self.copy()

    def __reduce__(self: Any) -> Any:
        from aerogel.tensor import _backward, _tensor

        self._expect_numbers("`pickle` takes")
        return (_tensor._restored, (self._copied(), self._outside, _backward.is_parameter(self)))

    def __format__(self: Any, spec: str) -> str:
        if spec and self.size != 1:
            raise TypeError(f"a tensor of shape {self.shape} is not a scalar, and cannot be formatted as {spec!r}")
        return format(self.item(), spec) if spec else str(self)

    def __round__(self: Any, ndigits: int | None = None) -> Any:
        return builtins.round(self.item(), ndigits) if self.ndim == 0 else self.round(ndigits or 0)

    def __divmod__(self: Any, other: Any) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __rdivmod__(self: Any, other: Any) -> tuple[Tensor, Tensor]:
        return other // self, other % self

    @property
    def nbytes(self: Any) -> int:
        """The number of bytes of all elements."""
        return self.size * self.itemsize

    @property
    def itemsize(self: Any) -> int:
        """The number of bytes of an element."""
        return self.dtype.itemsize

    if not TYPE_CHECKING:  # For a type checker every name would be one.

        def __getattr__(self, name: str) -> Any:
            ours = ""
            if not name.startswith("_"):
                from aerogel.tensor import _elsewhere

                ours = _elsewhere.method(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{ours}")

    if TYPE_CHECKING:
        # Written in `_operators`, from tables.
        def permute(self, *axes: Any) -> Tensor: ...
        def reshape(self, *shape: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Any) -> Tensor: ...
        def __rlshift__(self, other: Any) -> Tensor: ...
        def __rshift__(self, other: Any) -> Tensor: ...
        def __rrshift__(self, other: Any) -> Tensor: ...
        def __iadd__(self, other: Any) -> Tensor: ...
        def __isub__(self, other: Any) -> Tensor: ...
        def __imul__(self, other: Any) -> Tensor: ...
        def __itruediv__(self, other: Any) -> Tensor: ...
        def __ifloordiv__(self, other: Any) -> Tensor: ...
        def __imod__(self, other: Any) -> Tensor: ...
        def __ipow__(self, other: Any) -> Tensor: ...
        def __imatmul__(self, other: Any) -> Tensor: ...
        def __iand__(self, other: Any) -> Tensor: ...
        def __ior__(self, other: Any) -> Tensor: ...
        def __ixor__(self, other: Any) -> Tensor: ...
        def __ilshift__(self, other: Any) -> Tensor: ...
        def __irshift__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __hash__(self) -> int: ...
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]


__all__: Sequence[str] = ["Methods"]
