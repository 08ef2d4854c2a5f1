"""Recurrent networks."""

from __future__ import annotations

from typing import Any

from aerogel.nn import _checks, functional
from aerogel.nn._linear import dropout, linear
from aerogel.nn._module import Module
from aerogel.nn._parameter import Parameter
from aerogel.nn.layers.linear import uniform_by
from aerogel.tensor._creation import zeros
from aerogel.tensor._elementwise import tanh
from aerogel.tensor._shapes import concat, flip, stack
from aerogel.tensor._tensor import Tensor, asarray


class _Recurrent(Module):
    """Layers that carry a state along a sequence."""

    #: How many rows of weights there are for each element of the state, and how many tensors are carried.
    _gates, _carried = 1, 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: Any = None,
    ) -> None:
        if not 0.0 <= dropout <= 1.0:
            raise ValueError(f"`{type(self).__name__}`: the probability of dropout is from 0 to 1, not {dropout}")
        if num_layers < 1:
            raise ValueError(f"`{type(self).__name__}`: there must be at least one layer, not {num_layers}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        self.has_bias = bias
        rows, draw = self._gates * hidden_size, uniform_by(hidden_size)
        for layer in range(num_layers):
            for direction in range(1 + bidirectional):
                width = input_size if layer == 0 else hidden_size * (1 + bidirectional)
                shapes = [("weight_ih", (rows, width)), ("weight_hh", (rows, hidden_size))]
                shapes += [("bias_ih", (rows,)), ("bias_hh", (rows,))] if bias else []
                for name, shape in shapes:
                    parameter = Parameter(shape=shape, init=draw, dtype=dtype)
                    setattr(self, self._name(name, layer, direction), parameter)

    def _name(self, name: str, layer: int, direction: int) -> str:
        return f"{name}_l{layer}{'_reverse' if direction else ''}"

    def _step(self, inputs: Tensor, carried: Any, weight: Any, bias: Any) -> Any:
        """What is carried after one element of the sequence, of which ``inputs`` are the products with its weights."""
        raise NotImplementedError

    def forward(self, x: Any, state: Any = None) -> Any:
        """The outputs of the last layer at each element of the sequence, and the last state of each layer.

        Args:
            x: Shape (length, batch, input_size), or (batch, length, input_size) with ``batch_first``, or (length,
                input_size) without a batch.
            state: The first state, zeros if not given: shape (layers · directions, batch, hidden_size); of an ``LSTM``
                a pair of such.

        Returns:
            The outputs, of the shape of ``x`` with ``hidden_size`` times the number of directions, and the last state.

        Raises:
            ValueError: If the sizes of ``x`` or ``state`` do not agree with the module.
        """
        x = _checks.floats(x, self._label())
        _checks.axes(x, self._label(), 2, 3, what="length, batch and features")
        is_one = x.ndim == 2
        x = x.unsqueeze(1) if is_one else x.permute(1, 0, 2) if self.batch_first else x
        names = [self._name("weight_ih", 0, d) for d in range(1 + self.bidirectional)]
        for name in names:
            _checks.infer(self, name, None, x.shape[2])
        if self.input_size == -1:
            self.input_size = x.shape[2]
        _checks.size(x, 2, self.input_size, self._label(), "weight_ih_l0", getattr(self, names[0])._native.shape)
        first = self._first(x, state, is_one)
        last: list[Any] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(1 + self.bidirectional):
                carried = tuple(s[len(last)] for s in first)
                out, carried = self._along(x, carried, layer, direction)
                outputs.append(out)
                last.append(carried)
            x = outputs[0] if len(outputs) == 1 else concat(outputs, axis=-1)
            if self.dropout and layer < self.num_layers - 1:
                x = dropout(x, self.dropout, self.training)
        ends = tuple(stack([carried[k] for carried in last]) for k in range(self._carried))
        if is_one:
            x, ends = x.squeeze(1), tuple(end.squeeze(1) for end in ends)
        elif self.batch_first:
            x = x.permute(1, 0, 2)
        return x, ends if self._carried > 1 else ends[0]

    def _first(self, x: Tensor, state: Any, is_one: bool) -> tuple[Tensor, ...]:
        count = self.num_layers * (1 + self.bidirectional)
        if state is None:
            return (zeros((count, x.shape[1], self.hidden_size), x.dtype),) * self._carried
        given = tuple(state) if self._carried > 1 else (state,)
        if len(given) != self._carried:
            raise ValueError(f"{self._label()}: the state has {self._carried} tensors, {len(given)} are passed")
        out = []
        for s in given:
            s = asarray(s)
            s = s.unsqueeze(1) if is_one and s.ndim == 2 else s
            shape = s._native.shape
            if len(shape) != 3 or shape[0] != count or shape[2] != self.hidden_size:
                raise ValueError(
                    f"{self._label()}: the state has the shape ({count}, batch, {self.hidden_size}), the argument has "
                    f"{s._native.shape_text()}"
                )
            out.append(s)
        return tuple(out)

    def _along(self, x: Tensor, carried: tuple[Tensor, ...], layer: int, direction: int) -> Any:
        """The states of one layer in one direction."""
        from aerogel.tensor.programs import scan

        def own(name: str) -> Any:
            return getattr(self, self._name(name, layer, direction))

        # The products with the inputs do not wait for the states.
        inputs = linear(x, own("weight_ih"), own("bias_ih") if self.has_bias else None)
        inputs = flip(inputs, axis=0) if direction else inputs
        weight, bias = own("weight_hh"), own("bias_hh") if self.has_bias else None

        def body(carried: Any, row: Tensor) -> Any:
            carried = self._step(row, carried, weight, bias)
            return carried, carried[0]

        carried, out = scan(body, carried, inputs)
        return (flip(out, axis=0) if direction else out), carried

    def extra_repr(self) -> str:
        """The sizes."""
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {"num_layers": 1, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        for name, value in usual.items():
            text += f", {name}={getattr(self, name)}" if getattr(self, name) != value else ""
        return text


class RNN(_Recurrent):
    """A recurrent network: ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``.

    Args:
        input_size: How many features an element of the sequence has; -1 to infer that from the first input.
        hidden_size: How many elements the state has.
        num_layers: How many layers there are; each is given the states of the one before.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        bias: Whether there are biases.
        batch_first: Whether the first axis is the batch, and the second the sequence.
        dropout: The probability with which outputs of layers but the last are dropped in training.
        bidirectional: Whether there is a second network from the end of the sequence to its beginning.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"`RNN`: the nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype=dtype)

    def _step(self, inputs: Tensor, carried: Any, weight: Any, bias: Any) -> Any:
        total = inputs + linear(carried[0], weight, bias)
        return ((tanh if self.nonlinearity == "tanh" else functional.relu)(total),)


class LSTM(_Recurrent):
    """A network with long short-term memory; its state is a pair. Gates are in the order i, f, g, o, as in PyTorch.

    Args:
        input_size: How many features an element of the sequence has; -1 to infer that from the first input.
        hidden_size: How many elements the state has.
        num_layers: How many layers there are.
        bias: Whether there are biases.
        batch_first: Whether the first axis is the batch, and the second the sequence.
        dropout: The probability with which outputs of layers but the last are dropped in training.
        bidirectional: Whether there is a second network from the end of the sequence to its beginning.
        dtype: The dtype of the parameters.
    """

    _gates, _carried = 4, 2

    def _step(self, inputs: Tensor, carried: Any, weight: Any, bias: Any) -> Any:
        h, c = carried
        total, n = inputs + linear(h, weight, bias), self.hidden_size
        i, f, o = (functional.sigmoid(total[..., k * n : (k + 1) * n]) for k in (0, 1, 3))
        c = f * c + i * tanh(total[..., 2 * n : 3 * n])
        return o * tanh(c), c


class GRU(_Recurrent):
    """A network with gated recurrent units. Gates are in the order r, z, n, as in PyTorch.

    Args:
        input_size: How many features an element of the sequence has; -1 to infer that from the first input.
        hidden_size: How many elements the state has.
        num_layers: How many layers there are.
        bias: Whether there are biases.
        batch_first: Whether the first axis is the batch, and the second the sequence.
        dropout: The probability with which outputs of layers but the last are dropped in training.
        bidirectional: Whether there is a second network from the end of the sequence to its beginning.
        dtype: The dtype of the parameters.
    """

    _gates = 3

    def _step(self, inputs: Tensor, carried: Any, weight: Any, bias: Any) -> Any:
        (h,) = carried
        own, n = linear(h, weight, bias), self.hidden_size
        r, z = (functional.sigmoid((inputs + own)[..., k * n : (k + 1) * n]) for k in (0, 1))
        new = tanh(inputs[..., 2 * n :] + r * own[..., 2 * n :])
        return (new + z * (h - new),)
