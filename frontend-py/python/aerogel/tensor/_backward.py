"""``backward`` of tensors: which tensors have ``requires_grad``, and their gradients."""

from __future__ import annotations

import weakref
from contextlib import ContextDecorator
from typing import Any

from aerogel import _native


class no_grad(ContextDecorator):  # noqa: N801
    """A context manager, or decorator, inside which results have no gradients.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x = ti.tensor.asarray([1.0, 2.0]).requires_grad_()
    >>> with ti.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _is_off = True

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> no_grad:
        self._before.append(_native.set_gradients_off(self._is_off))
        return self

    def __exit__(self, *_: object) -> None:
        _native.set_gradients_off(self._before.pop())


class enable_grad(no_grad):  # noqa: N801
    """A context manager, or decorator, inside which results have gradients, even inside ``no_grad``."""

    _is_off = False


class _Leaf:
    """The gradient of a tensor with ``requires_grad``."""

    __slots__ = ("__weakref__", "grad", "is_retained", "number")

    def __init__(self, is_retained: bool = False) -> None:
        self.number = 0
        #: Of a tensor that is computed of others.
        self.is_retained = is_retained
        self.grad: Any = None


#: By its number.
_LEAVES: weakref.WeakValueDictionary[int, _Leaf] = weakref.WeakValueDictionary()


class Backward:
    """The gradient interface of tensors."""

    __slots__ = ()
    _native: Any
    _leaf: Any
    _outside: str

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor has a gradient, or passes gradients to other tensors; may be set for float tensors."""
        x: Any = self
        return x.dtype.is_float and _native.has_history(x._native)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, value: bool = True) -> Any:
        """Sets whether ``backward`` computes the gradient by this tensor; returns the tensor.

        Raises:
            TypeError: If the elements are no floats.
            RuntimeError: In a program, or to ``False`` for a tensor that is computed from other such tensors.
        """
        x: Any = self
        from aerogel.tensor import _tensor

        if _tensor.tracing.program is not None:
            raise RuntimeError("`requires_grad` is for tensors outside of programs: take `ti.grad` in a program")
        if not x.dtype.is_float:
            raise TypeError(f"only floats have gradients, not {x.dtype}: convert it by `astype`")
        leaf = leaf_of(x)
        if value and not x.requires_grad:
            x._leaf = leaf or _Leaf()
            renew(x)
        elif not value and is_parameter(x):
            x._native = _native.detached_tensor(x._native)
            x._leaf = None
        elif not value and x.requires_grad:
            raise RuntimeError("the result of tensors with `requires_grad` has it too: take `detach()` of it")
        return x

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor is not computed from tensors with ``requires_grad``."""
        return is_parameter(self) or not self.requires_grad

    @property
    def grad(self) -> Any:
        """The sum of the gradients that ``backward`` has computed; ``None`` before. May be set."""
        leaf = leaf_of(self)
        return None if leaf is None else leaf.grad

    @grad.setter
    def grad(self, value: Any) -> None:
        x: Any = self
        leaf = leaf_of(self)
        if leaf is None:
            if value is None:
                return
            raise RuntimeError("a tensor without `requires_grad` has no gradient")
        if value is not None:
            from aerogel.tensor import _tensor

            value = _tensor.asarray(value)
            if value.shape != x.shape:
                raise ValueError(f"a gradient has the shape of its tensor, {x.shape}, not {value.shape}")
            if value.dtype is not x.dtype:
                raise TypeError(f"a gradient has the dtype of its tensor, {x.dtype}, not {value.dtype}")
        leaf.grad = value

    def retain_grad(self) -> None:
        """Makes ``backward`` store the gradient by this tensor, which is computed from others, in ``grad``.

        Raises:
            RuntimeError: If no gradient passes through it.
        """
        if leaf_of(self) is None:
            if not self.requires_grad:
                raise RuntimeError("`retain_grad`: no gradient goes through this tensor")
            self._leaf = _Leaf(is_retained=True)
            RETAINED[id(self)] = self

    def _stored(self) -> None:
        """A kernel has given the tensor other numbers."""
        renew(self)

    def detach(self) -> Any:
        """A tensor with the same values, through which no gradient passes."""
        from aerogel.tensor import _tensor

        return _tensor.Tensor(_native.detached_tensor(self._native), self._outside)

    @property
    def data(self) -> Any:
        """The same values, through which no gradient passes. Setting them is not recorded for gradients either."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        from aerogel.tensor import _tensor

        x: Any = self
        value = _tensor.asarray(value)
        if value.shape != x.shape or value.dtype is not x.dtype:
            raise ValueError(
                f"`data` is of {x.dtype} and shape {x.shape}, not of {value.dtype} and shape {value.shape}"
            )
        x._native = _native.detached_tensor(value._native)
        renew(x)


#: Tensors that are computed, and keep their gradient, by their identity.
RETAINED: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def leaf_of(x: Any) -> _Leaf | None:
    return getattr(x, "_leaf", None)


def leaf_with(number: int) -> _Leaf | None:
    """The gradient that has a number."""
    return _LEAVES.get(number)


def is_parameter(x: Any) -> bool:
    """Whether a tensor has ``requires_grad`` by itself, not because of others."""
    leaf = leaf_of(x)
    return leaf is not None and not leaf.is_retained


def expect_free(x: Any) -> None:
    """Refuses to store to a tensor with ``requires_grad`` where that would not count for gradients."""
    if is_parameter(x) and not _native.are_gradients_off():
        raise RuntimeError(
            "a store to a tensor with `requires_grad` would be invisible to its gradient: store in "
            "`with ti.no_grad():`, set its `data`, or store to a copy, which has gradients"
        )


def renew(x: Any) -> None:
    """Makes a tensor with a gradient a leaf again, whose numbers have been set."""
    leaf = leaf_of(x)
    if leaf is None or leaf.is_retained:
        return
    x._native, number = _native.variable_of_tensor(x._native, True, leaf.number or None)
    leaf.number = number or 0
    _LEAVES[leaf.number] = leaf
