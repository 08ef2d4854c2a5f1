"""Tensors that know the operations which made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel._dtypes import dtype_of, f32
from aerogel.nn import functional
from aerogel.pico._op import Device, Op, OpCode
from aerogel.pico._rules import chain_rules
from aerogel.tensor import _creation, _elementwise, _products, _reductions, random
from aerogel.tensor._backward import no_grad
from aerogel.tensor._rules import custom_vjp
from aerogel.tensor._tensor import Tensor as Values
from aerogel.tensor._tensor import asarray

if TYPE_CHECKING:
    from collections.abc import Callable


class Tensor:
    """Values, the operation that made them, and their gradient.

    Args:
        value: A number, lists of numbers, an array, or a tensor of `aerogel.tensor`.
        dtype: The dtype; ``f32`` for floats of Python.
        device: The `Device`, of which there is one.
        requires_grad: Whether ``backward`` computes the gradient by this tensor.

    Raises:
        TypeError: If integers require a gradient.
        ValueError: If there is no such device.
    """

    __slots__ = ("_values", "op")
    __array_priority__ = 2000

    def __init__(self, value: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> None:
        if device is not None and (device if isinstance(device, str) else device.name) != Device().name:
            raise ValueError(f"there is no device {device!r}; tensors are on {Device()}")
        value = value._values if isinstance(value, Tensor) else value
        self._values = asarray(value, dtype=None if dtype is None else dtype_of(dtype)).detach()
        if requires_grad:
            self._values.requires_grad_()
        #: The operation.
        self.op = Op(OpCode.BUFFER, (), self._values)

    @classmethod
    def _of(cls, values: Values, op: Op) -> Tensor:
        out = cls.__new__(cls)
        out._values, out.op = values, op
        return out

    # What it is.

    @property
    def uop(self) -> Op:
        """As ``op``."""
        return self.op

    @property
    def src(self) -> tuple[Tensor, ...]:
        """The operands of the operation."""
        return tuple(Tensor._of(op.values, op) for op in self.op.src)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self._values.shape

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self._values.dtype

    @property
    def device(self) -> Device:
        """Where the values are."""
        return Device()

    @property
    def value(self) -> Any:
        """The values as a NumPy array. May be set, which no gradient knows of."""
        return self._values.detach().numpy()

    @value.setter
    def value(self, value: Any) -> None:
        self.data = value

    @property
    def data(self) -> Tensor:
        """The same values, on which no gradient depends. May be set."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        value = value._values if isinstance(value, Tensor) else asarray(value, dtype=self.dtype)
        with no_grad():
            self._values.data = value

    def item(self) -> Any:
        """The only element, as a number of Python."""
        return self._values.detach().item()

    def is_floating_point(self) -> bool:
        """Whether the elements are floats."""
        return self.dtype.is_float

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        import numpy as np

        return f"Tensor({np.array2string(self.value, separator=', ', prefix='Tensor(')})"

    # Gradients.

    @property
    def requires_grad(self) -> bool:
        """Whether gradients go through it. May be set for a tensor that is given."""
        return self._values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values.requires_grad_(value)

    @property
    def grad(self) -> Tensor | None:
        """The sum of the gradients that ``backward`` has computed; ``None`` before. May be set."""
        grad = self._values.grad
        return None if grad is None else Tensor(grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._values.grad = value._values if isinstance(value, Tensor) else value

    def retain_grad(self) -> None:
        """Has ``backward`` keep the gradient by this tensor, which an operation made."""
        self._values.retain_grad()

    def backward(self, grad: Any = None) -> Tensor:
        """Adds the gradients of this tensor to ``grad`` of all tensors with ``requires_grad`` that it depends on.

        Args:
            grad: The weight of the gradient of each element; 1 for a single number.

        Raises:
            ValueError: If there are several elements and no ``grad``.
        """
        self._values.backward(grad._values if isinstance(grad, Tensor) else grad)
        return self

    def detach(self) -> Tensor:
        """The same values, on which no gradient depends."""
        return Tensor._of(self._values.detach(), Op(OpCode.DETACH, (self.op,), self._values.detach()))

    # Operations.

    def __add__(self, other: Any) -> Tensor:
        return _made(OpCode.ADD, lambda a, b: a + b, self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _made(OpCode.ADD, lambda a, b: a + b, other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _made(OpCode.SUB, lambda a, b: a - b, self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _made(OpCode.SUB, lambda a, b: a - b, other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _made(OpCode.MUL, lambda a, b: a * b, self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _made(OpCode.MUL, lambda a, b: a * b, other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _made(OpCode.DIV, lambda a, b: a / b, self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _made(OpCode.DIV, lambda a, b: a / b, other, self)

    def __pow__(self, other: Any) -> Tensor:
        if isinstance(other, (int, float)):
            return _made(OpCode.POW, lambda a: a**other, self, arg=other)
        return _made(OpCode.POW, lambda a, b: a**b, self, other)

    def __matmul__(self, other: Any) -> Tensor:
        return _made(OpCode.MATMUL, _products.matmul, self, other)

    def __neg__(self) -> Tensor:
        return _made(OpCode.NEG, lambda a: -a, self)

    def __getitem__(self, key: Any) -> Tensor:
        key = tuple(_values(k) for k in key) if isinstance(key, tuple) else _values(key)
        return _made(OpCode.INDEX, lambda a: a[key], self, arg=key)

    def exp(self) -> Tensor:
        """The exponential."""
        return exp(self)

    def log10(self) -> Tensor:
        """The decimal logarithm."""
        return log10(self)

    def log(self) -> Tensor:
        """The natural logarithm."""
        return log(self)

    def sin(self) -> Tensor:
        """The sine."""
        return sin(self)

    def cos(self) -> Tensor:
        """The cosine."""
        return cos(self)

    def sqrt(self) -> Tensor:
        """The square root."""
        return sqrt(self)

    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
        return tanh(self)

    def sigmoid(self) -> Tensor:
        """``1 / (1 + exp(-x))``."""
        return sigmoid(self)

    def relu(self) -> Tensor:
        """The positive part."""
        return relu(self)

    def matmul(self, other: Any) -> Tensor:
        """The product of matrices."""
        return self @ other

    def sum(self, axis: Any = None) -> Tensor:
        """The sum along some axes, or of all elements."""
        return sum(self, axis)

    def mean(self, axis: Any = None) -> Tensor:
        """The mean along some axes, or of all elements."""
        return mean(self, axis)

    def max(self, axis: Any = None) -> Tensor:
        """The largest element along some axes, or of all."""
        return max(self, axis)

    def softmax(self, axis: int = -1) -> Tensor:
        """Exponentials along an axis, divided by their sum."""
        return softmax(self, axis)

    def cross_entropy(self, target: Any) -> Tensor:
        """The mean cross entropy of logits of shape (batch, classes) with numbers of classes."""
        return cross_entropy(self, target)

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements row by row in another shape; one size may be -1."""
        return _made(OpCode.RESHAPE, lambda a: a.reshape(*shape), self)

    view = reshape

    def transpose(self, axis1: int = -1, axis2: int = -2) -> Tensor:
        """Two axes exchanged."""
        return _made(OpCode.TRANSPOSE, lambda a: a.swapaxes(axis1, axis2), self, arg=(axis1, axis2))

    @property
    def T(self) -> Tensor:  # noqa: N802
        """The matrix transposed."""
        return self.transpose()


def _values(x: Any) -> Any:
    return x._values if isinstance(x, Tensor) else x


def _made(code: OpCode, function: Callable[..., Values], *given: Any, arg: Any = None) -> Tensor:
    """The result of an operation, whose gradient is that of its chain rule, if there is one."""
    operands = [asarray(_values(x)) if isinstance(x, (Tensor, Values)) else x for x in given]
    sources = tuple(
        x.op if isinstance(x, Tensor) else Op(OpCode.BUFFER, (), asarray(value)) for x, value in zip(given, operands)
    )
    op = Op(code, sources, None, arg)
    if code is not OpCode.DETACH and chain_rules.find(op) is not None and any(map(_has_gradient, operands)):
        # What the rule is given has another result: if it had this one, neither would ever be freed.
        function = _by_rule(function, Op(code, sources, None, arg), [isinstance(x, Values) for x in operands])
    op.values = function(*operands)
    op.shape = op.values.shape
    return Tensor._of(op.values, op)


def _has_gradient(x: Any) -> bool:
    return isinstance(x, Values) and x.requires_grad


def _by_rule(function: Callable[..., Values], op: Op, are_tensors: list[bool]) -> Callable[..., Values]:
    """A function whose gradient the chain rule of its operation computes."""

    def forward(*operands: Any) -> tuple[Values, Values]:
        out = function(*operands)
        op.values, op.shape = out.detach(), out.shape
        return out, op.values

    def backward(result: Values, gradient: Values) -> tuple[Any, ...]:
        with no_grad():
            out = Tensor._of(gradient.detach(), Op(OpCode.BUFFER, (), gradient.detach()))
            made = chain_rules.rewrite(Tensor._of(result, op), out)
        if made is None:
            raise ValueError(f"the chain rule of {op.code.name} was removed before the gradient was taken")
        parts = zip(made, op.src, are_tensors)
        return tuple(
            None if g is None or not is_tensor else summed_to(_values(g), s.shape) for g, s, is_tensor in parts
        )

    ruled = custom_vjp(function)
    ruled.defvjp(forward, backward)
    return ruled


def summed_to(x: Any, shape: tuple[int, ...]) -> Values:
    """A gradient summed over the axes along which an operand of some shape was broadcast."""
    x = asarray(x)
    if x.ndim > len(shape):
        x = x.sum(tuple(range(x.ndim - len(shape))))
    axes = tuple(k for k, n in enumerate(shape) if n == 1 and x.shape[k] != 1)
    return x.sum(axes, keepdims=True) if axes else x


def _unary(code: OpCode, function: Callable[..., Values]) -> Callable[[Any], Tensor]:
    def called(x: Any) -> Tensor:
        return _made(code, lambda a: function(asarray(a).astype(f32) if isinstance(a, int) else a), x)

    called.__name__, called.__doc__ = code.name.lower(), function.__doc__
    return called


exp = _unary(OpCode.EXP, _elementwise.exp)
exp2 = _unary(OpCode.EXP2, _elementwise.exp2)
log = _unary(OpCode.LOG, _elementwise.log)
log2 = _unary(OpCode.LOG2, _elementwise.log2)
log10 = _unary(OpCode.LOG10, _elementwise.log10)
sin = _unary(OpCode.SIN, _elementwise.sin)
cos = _unary(OpCode.COS, _elementwise.cos)
sqrt = _unary(OpCode.SQRT, _elementwise.sqrt)
tanh = _unary(OpCode.TANH, _elementwise.tanh)
reciprocal = _unary(OpCode.RECIPROCAL, _elementwise.reciprocal)
sigmoid = _unary(OpCode.SIGMOID, functional.sigmoid)
relu = _unary(OpCode.RELU, functional.relu)


def maximum(a: Any, b: Any) -> Tensor:
    """The larger of two numbers."""
    return _made(OpCode.MAXIMUM, _elementwise.maximum, a, b)


def matmul(a: Any, b: Any) -> Tensor:
    """The product of matrices."""
    return _made(OpCode.MATMUL, _products.matmul, a, b)


def sum(x: Any, axis: Any = None) -> Tensor:  # noqa: A001
    """The sum along some axes, or of all elements."""
    return _made(OpCode.SUM, lambda a: _reductions.sum(a, axis), x, arg=axis)


def mean(x: Any, axis: Any = None) -> Tensor:
    """The mean along some axes, or of all elements."""
    return _made(OpCode.MEAN, lambda a: _reductions.mean(a, axis), x, arg=axis)


def max(x: Any, axis: Any = None) -> Tensor:  # noqa: A001
    """The largest element along some axes, or of all."""
    return _made(OpCode.MAX, lambda a: _reductions.max(a, axis), x)


def softmax(x: Any, axis: int = -1) -> Tensor:
    """Exponentials along an axis, divided by their sum."""
    return _made(OpCode.SOFTMAX, lambda a: functional.softmax(a, axis), x)


def cross_entropy(logits: Any, target: Any) -> Tensor:
    """The mean cross entropy of logits of shape (batch, classes) with numbers of classes."""
    return _made(OpCode.CROSS_ENTROPY, functional.cross_entropy, logits, target)


def zeros(*shape: int, requires_grad: bool = False) -> Tensor:
    """Zeros."""
    return Tensor(_creation.zeros(shape, dtype=f32), requires_grad=requires_grad)


def ones(*shape: int, requires_grad: bool = False) -> Tensor:
    """Ones."""
    return Tensor(_creation.ones(shape, dtype=f32), requires_grad=requires_grad)


def randn(*shape: int, requires_grad: bool = False) -> Tensor:
    """Numbers of the normal distribution; ``ti.tensor.random.seed`` makes them the same again."""
    return Tensor(random.default.randn(*shape, dtype=f32), requires_grad=requires_grad)
