"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

from aerogel.nn import _checks, _convolutions
from aerogel.nn._module import Module
from aerogel.nn._parameter import Parameter
from aerogel.nn.layers.linear import begin_bias, by_inputs, uniform_by
from aerogel.tensor._tensor import Tensor


class _Convolution(Module):
    """What all convolutions have: sizes, and a weight and a bias of one shape."""

    _n = 2
    _is_transposed = False
    stride: Any
    padding: Any
    output_padding: Any
    dilation: Any
    groups: int
    weight: Parameter
    bias: Parameter | None

    def _make(self, channels: tuple[int, int], kernel: Any, settings: dict[str, Any], bias: bool, dtype: Any) -> None:
        called = f"`{type(self).__name__}`"
        self.in_channels, self.out_channels = channels
        self.kernel_size = _convolutions.sizes(kernel, self._n, called, "kernel_size", 1)
        for name, value in settings.items():
            least = 0 if "padding" in name else 1
            known = isinstance(value, str) or name == "groups"
            setattr(self, name, value if known else _convolutions.sizes(value, self._n, called, name, least))
        groups = self.groups
        for name, n in (("in_channels", self.in_channels), ("out_channels", self.out_channels)):
            if n != -1 and n % groups:
                raise ValueError(f"{called}: {n} `{name}` are not {groups} groups of equal size")
        first, second = (self.in_channels, self.out_channels) if self._is_transposed else (
            self.out_channels, self.in_channels)  # fmt: skip
        if self.in_channels == -1 and groups != 1:
            raise ValueError(f"{called}: with {groups} groups `in_channels` is required")
        second = second // groups if second != -1 else -1
        self.weight = Parameter(shape=(first, second, *self.kernel_size), init=by_inputs, dtype=dtype)
        if not bias:
            self.register_parameter("bias", None)
        else:
            n = -1 if self.in_channels == -1 else self.out_channels
            self.bias = Parameter(shape=(n,), init=uniform_by(self._fan()), dtype=dtype)

    def _fan(self) -> int:
        """How many inputs an output depends on."""
        return self.weight.shape[1] * math.prod(self.kernel_size)

    def _parameters_for(self, x: Any) -> tuple[Tensor, Tensor, Any]:
        """The input and both parameters, whose open sizes follow from it."""
        x = _checks.floats(x, self._label())
        _checks.axes(x, self._label(), self._n + 1, self._n + 2, what="batch, channels and space")
        channels = x.shape[-self._n - 1]
        if self.in_channels == -1:
            own = (channels, self.out_channels) if self._is_transposed else (self.out_channels, channels)
            _checks.infer(self, "weight", *own, *self.kernel_size)
            self.in_channels = channels
            begin_bias(self, self._fan())
        bias = None if self.bias is None else _checks.infer(self, "bias", self.out_channels)
        _checks.size(x, -self._n - 1, self.in_channels, self._label(), "weight", self.weight._native.shape)
        return x, self.weight, bias

    def extra_repr(self) -> str:
        """The sizes."""
        usual = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1}
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        for name, value in usual.items():
            own = getattr(self, name, None)
            if own is not None and own != (value,) * self._n:
                text += f", {name}={own!r}"
        text += f", groups={self.groups}" if self.groups != 1 else ""
        return text + ("" if self.bias is not None else ", bias=False")


class Conv2d(_Convolution):
    """A convolution along two axes: from shape (batch, in_channels, height, width) to (batch, out_channels, ...).

    Args:
        in_channels: How many channels the input has; -1 to infer that from the first input.
        out_channels: How many channels the output has.
        kernel_size: The size of the kernel; one number or one for each axis.
        stride: How far apart windows begin.
        padding: How many zeros are on both sides of each axis; or ``"same"``, ``"valid"``.
        dilation: How far apart the elements of a window are.
        groups: How many groups of channels are convolved by themselves.
        bias: Whether there is a bias.
        dtype: The dtype of the parameters.

    Raises:
        ValueError: If channels are not groups of equal size; when called with an input of other channels.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        self._make((in_channels, out_channels), kernel_size, settings, bias, dtype)

    def forward(self, x: Any) -> Tensor:
        """The output."""
        x, weight, bias = self._parameters_for(x)
        own = (self.stride, self.padding, self.dilation, self.groups)
        return _convolutions.convolve(x, weight, bias, self._n, *own, self._label())


class Conv1d(Conv2d):
    """A convolution along one axis: from shape (batch, in_channels, length); arguments as for ``Conv2d``."""

    _n = 1


class Conv3d(Conv2d):
    """A convolution along three axes; arguments as for ``Conv2d``."""

    _n = 3


class ConvTranspose2d(_Convolution):
    """A transposed convolution along two axes, which makes images larger; see ``functional.conv_transpose2d``.

    Args:
        in_channels: How many channels the input has; -1 to infer that from the first input.
        out_channels: How many channels the output has.
        kernel_size: The size of the kernel; one number or one for each axis.
        stride: The stride of the convolution whose derivative this is.
        padding: Its padding, by which the result is smaller on both sides.
        output_padding: By how much the result is larger behind each axis.
        groups: How many groups of channels there are.
        bias: Whether there is a bias.
        dilation: The dilation of the convolution.
        dtype: The dtype of the parameters.

    Raises:
        ValueError: If channels are not groups of equal size; when called with an input of other channels.
    """

    _is_transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        *,
        dtype: Any = None,
    ) -> None:
        settings = {"stride": stride, "padding": padding, "output_padding": output_padding}
        settings |= {"dilation": dilation, "groups": groups}
        self._make((in_channels, out_channels), kernel_size, settings, bias, dtype)

    def forward(self, x: Any) -> Tensor:
        """The output."""
        x, weight, bias = self._parameters_for(x)
        own = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return _convolutions.transposed(x, weight, bias, self._n, *own, self._label())


class ConvTranspose1d(ConvTranspose2d):
    """A transposed convolution along one axis; arguments as for ``ConvTranspose2d``."""

    _n = 1
