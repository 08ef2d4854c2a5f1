"""Linear maps, tables of vectors, dropout, and changes of shape."""

from __future__ import annotations

import math
from typing import Any

from aerogel.nn import _checks, _linear, init
from aerogel.nn._module import Module
from aerogel.nn._parameter import Parameter, draw_by
from aerogel.tensor._tensor import Tensor


def uniform_by(fan: int) -> Any:
    """A function for ``Parameter(init=...)``: uniform numbers up to 1 by the root of a number of inputs."""
    bound = 1.0 / math.sqrt(fan) if fan > 0 else 0.0
    return lambda shape, dtype: init.uniform(shape, -bound, bound, dtype=dtype)


def begin_bias(module: Module, fan: int) -> None:
    """Lets the bias of a module be drawn for a number of inputs that is known now."""
    draw_by(module._parameters["bias"], uniform_by(fan))


def by_inputs(shape: Any, *, dtype: Any = None) -> Tensor:
    """Uniform numbers up to 1 by the root of the number of inputs, which follows from the shape."""
    return init.kaiming_uniform(shape, a=math.sqrt(5.0), dtype=dtype)


class Identity(Module):
    """Returns its input; arguments are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        """The input."""
        return x


class Linear(Module):
    """``x @ weight.T + bias``: from shape (..., in_features) to (..., out_features).

    Args:
        in_features: How many inputs there are; -1 to infer that from the first input.
        out_features: How many outputs there are.
        bias: Whether there is a bias.
        dtype: The dtype of the parameters.

    Raises:
        ValueError: When called with an input whose last axis has another size.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = None) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(shape=(out_features, in_features), init=by_inputs, dtype=dtype)
        if not bias:
            self.register_parameter("bias", None)
        else:
            # Of an open number of inputs, the bias is drawn when that is known.
            n = -1 if in_features == -1 else out_features
            self.bias = Parameter(shape=(n,), init=uniform_by(in_features), dtype=dtype)

    def forward(self, x: Any) -> Tensor:
        """The outputs."""
        x = _checks.floats(x, self._label())
        if x.ndim == 0:
            raise ValueError(f"{self._label()} takes at least one axis, the input is a scalar")
        weight = _checks.infer(self, "weight", self.out_features, x.shape[-1])
        if self.in_features == -1:
            self.in_features = weight.shape[1]
            begin_bias(self, self.in_features)
        bias = self.bias if self.bias is None else _checks.infer(self, "bias", self.out_features)
        _checks.size(x, -1, self.in_features, self._label(), "weight", (self.out_features, self.in_features))
        return _linear.linear(x, weight, bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """``x1 @ weight[o] @ x2 + bias[o]`` for each output ``o``.

    Args:
        in1_features: The size of the last axis of the first input.
        in2_features: That of the second.
        out_features: How many outputs there are.
        bias: Whether there is a bias.
        dtype: The dtype of the parameters.
    """

    bias: Parameter | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, *, dtype: Any = None
    ) -> None:
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        draw = uniform_by(in1_features)
        self.weight = Parameter(shape=(out_features, in1_features, in2_features), init=draw, dtype=dtype)
        self.register_parameter("bias", Parameter(shape=(out_features,), init=draw, dtype=dtype) if bias else None)

    def forward(self, x1: Any, x2: Any) -> Tensor:
        """The outputs."""
        shape = (self.out_features, self.in1_features, self.in2_features)
        for x, n in ((x1, self.in1_features), (x2, self.in2_features)):
            _checks.size(_checks.floats(x, self._label()), -1, n, self._label(), "weight", shape)
        return _linear.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.in1_features}, {self.in2_features}, {self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """A table of vectors, of which it returns those with given indices: from shape (...) to (..., embedding_dim).

    Args:
        num_embeddings: How many vectors there are.
        embedding_dim: How long they are.
        padding_idx: The index of a vector that is zero at first and gets no gradient.
        dtype: The dtype of the vectors.

    Raises:
        TypeError: When called with other numbers than integers.
        IndexError: If an index is not of the table; when the values are computed.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *, dtype: Any = None
    ) -> None:
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"`Embedding`: `padding_idx` is {padding_idx}, there are {num_embeddings} vectors")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings

        def draw(shape: Any, dtype: Any) -> Tensor:
            from aerogel.tensor._creation import iota
            from aerogel.tensor._searching import where

            drawn = init.normal(shape, dtype=dtype)
            return drawn if self.padding_idx is None else where(iota(shape, 0) == self.padding_idx, 0.0, drawn)

        self.weight = Parameter(shape=(num_embeddings, embedding_dim), init=draw, dtype=dtype)

    def forward(self, x: Any) -> Tensor:
        """The vectors."""
        return _linear.embedding(_checks.indices(x, self._label()), self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """The sizes."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Dropout(Module):
    """In training: elements replaced by zero with probability ``p``, others divided by ``1 - p``.

    The random numbers are those of ``ti.tensor.random``; a program draws others at each of its calls.

    Args:
        p: The probability.

    Raises:
        ValueError: If ``p`` is not from 0 to 1.
    """

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"`{type(self).__name__}`: the probability is from 0 to 1, not {p}")
        self.p = float(p)

    def forward(self, x: Any) -> Tensor:
        """The input with elements dropped; in evaluation the input."""
        return _linear.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class DropoutChannels(Dropout):
    """In training: whole channels replaced by zero with probability ``p``, as ``Dropout2d`` of PyTorch.

    Args:
        p: The probability.
    """

    def forward(self, x: Any) -> Tensor:
        """The input, of shape (batch, channels, ...), with channels dropped."""
        return _linear.dropout_channels(x, self.p, self.training)


Dropout1d = Dropout2d = DropoutChannels


class Flatten(Module):
    """Several axes as one.

    Args:
        start_axis: The first of them.
        end_axis: The last of them.
    """

    def __init__(self, start_axis: int = 1, end_axis: int = -1) -> None:
        self.start_axis, self.end_axis = start_axis, end_axis

    def forward(self, x: Any) -> Tensor:
        """The input in its new shape."""
        x = _checks.tensor(x, self._label())
        first, last = (a + x.ndim if a < 0 else a for a in (self.start_axis, self.end_axis))
        if not 0 <= first <= last < x.ndim:
            raise ValueError(
                f"{self._label()}: there are no axes {self.start_axis} to {self.end_axis} in the shape "
                f"{x._native.shape_text()}"
            )
        size = 1
        for n in x.shape[first : last + 1]:
            size *= n
        return x.reshape(*x.shape[:first], size, *x.shape[last + 1 :])

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"


class Unflatten(Module):
    """One axis as several.

    Args:
        axis: The axis.
        sizes: The sizes of those that it becomes; one may be -1.
    """

    def __init__(self, axis: int, sizes: Any) -> None:
        self.axis, self.sizes = axis, tuple(sizes)

    def forward(self, x: Any) -> Tensor:
        """The input in its new shape."""
        x = _checks.tensor(x, self._label())
        at = self.axis % x.ndim
        return x.reshape(*x.shape[:at], *self.sizes, *x.shape[at + 1 :])

    def extra_repr(self) -> str:
        """The axis and the sizes."""
        return f"axis={self.axis}, sizes={self.sizes}"
