"""Normalisation of batches, layers, groups and weights."""

from __future__ import annotations

from typing import Any

from aerogel.nn import _checks, _norms, init
from aerogel.nn._module import Module
from aerogel.nn._parameter import Parameter, data_of
from aerogel.tensor._backward import no_grad
from aerogel.tensor._creation import ones, zeros
from aerogel.tensor._elementwise import sqrt
from aerogel.tensor._tensor import Tensor, asarray


class BatchNorm(Module):
    """Each channel normalised over the batch: shape (batch, channels, ...).

    In training, mean and variance are those of the batch, and running ones follow them; in evaluation the running ones
    are used. In a program they are followed, too, if the module is an argument.

    Args:
        num_features: How many channels there are; -1 to infer that from the first input.
        eps: A small number that is added to the variance.
        momentum: Which part of the running statistics a batch replaces; ``None`` for the mean over all batches.
        affine: Whether there are a weight and a bias.
        track_running_stats: Whether there are running statistics; without them, those of the batch are always used.
        dtype: The dtype of the parameters.

    Raises:
        ValueError: When called with other channels, or in training with one element for each channel.
    """

    #: How many axes the input may have.
    _ranks: tuple[int, ...] = ()
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, first in (("weight", init.ones), ("bias", init.zeros)):
            value = Parameter(shape=(num_features,), init=first, dtype=dtype) if affine else None
            self.register_parameter(name, value)
        self._dtype = dtype
        known = track_running_stats and num_features != -1
        self.register_buffer("running_mean", zeros((num_features,), dtype) if known else None)
        self.register_buffer("running_var", ones((num_features,), dtype) if known else None)
        self.register_buffer("num_batches_tracked", asarray(0, "i64") if track_running_stats else None)

    def forward(self, x: Any) -> Tensor:
        """The normalised input."""
        x = _checks.floats(x, self._label())
        if self._ranks:
            _checks.axes(x, self._label(), *self._ranks, what="batch, channels, ...")
        elif x.ndim < 2:
            raise ValueError(f"{self._label()} takes at least two axes, the shape is {x._native.shape_text()}")
        if self.num_features == -1:
            self._begin(x)
        _checks.size(x, 1, self.num_features, self._label(), "num_features")
        if self.training or not self.track_running_stats:
            centre, spread = _norms.batch_statistics(x, self._label())
            if self.training and self.track_running_stats:
                self._follow(x, centre, spread)
        else:
            centre, spread = self.running_mean, self.running_var
        return _norms.by_statistics(x, centre, spread, self.weight, self.bias, self.eps)

    def _begin(self, x: Tensor) -> None:
        n = x.shape[1]
        for name in ("weight", "bias") if self.affine else ():
            _checks.infer(self, name, n)
        self.num_features = n
        if self.track_running_stats:
            self.register_buffer("running_mean", zeros((n,), self._dtype))
            self.register_buffer("running_var", ones((n,), self._dtype))

    def _follow(self, x: Tensor, centre: Tensor, spread: Tensor) -> None:
        """Moves the running statistics to those of a batch."""
        with no_grad():
            tracked = self.num_batches_tracked + 1
            kind = self.running_mean.dtype
            part = 1.0 / tracked.astype(kind) if self.momentum is None else self.momentum
            running = (self.running_mean, self.running_var)
            self.running_mean, self.running_var = _norms.followed(x, running, (data_of(centre), data_of(spread)), part)
            self.num_batches_tracked = tracked

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm):
    """``BatchNorm`` of shape (batch, channels) or (batch, channels, length)."""

    _ranks = (2, 3)


class BatchNorm2d(BatchNorm):
    """``BatchNorm`` of shape (batch, channels, height, width)."""

    _ranks = (4,)


class LayerNorm(Module):
    """The last axes normalised: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Args:
        normalized_shape: The sizes of these axes; one number for one axis, of which -1 is inferred.
        eps: A small number that is added to the variance.
        elementwise_affine: Whether there are a weight and a bias.
        bias: Whether there is a bias.
        dtype: The dtype of the parameters.

    Raises:
        ValueError: When called with other sizes.
    """

    weight: Parameter | None
    bias: Parameter | None
    eps: Any

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        is_one = hasattr(normalized_shape, "__index__")
        self.normalized_shape = (normalized_shape,) if is_one else tuple(normalized_shape)
        self.eps = eps
        for name, first, there in (("weight", init.ones, True), ("bias", init.zeros, bias)):
            there = there and elementwise_affine
            value = Parameter(shape=self.normalized_shape, init=first, dtype=dtype) if there else None
            self.register_parameter(name, value)

    def _open(self, x: Any) -> Tensor:
        """The input, from which open sizes follow."""
        x = _checks.floats(x, self._label())
        n = len(self.normalized_shape)
        if -1 in self.normalized_shape and x.ndim >= n:
            for name, parameter in list(self._parameters.items()):
                if parameter is not None:
                    _checks.infer(self, name, *x.shape[x.ndim - n :])
            self.normalized_shape = x.shape[x.ndim - n :]
        for k, size in enumerate(reversed(self.normalized_shape), 1):
            if x.ndim >= k:
                _checks.size(x, -k, size, self._label(), "normalized_shape", self.normalized_shape)
        return x

    def forward(self, x: Any) -> Tensor:
        """The normalised input."""
        return _norms.layer_norm(self._open(x), self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(LayerNorm):
    """The last axes divided by the root of their mean square, and multiplied by a weight.

    Args:
        normalized_shape: The sizes of these axes; one number for one axis, of which -1 is inferred.
        eps: A small number that is added to the mean square; that of the dtype if not given.
        elementwise_affine: Whether there is a weight.
        dtype: The dtype of the weight.
    """

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, *, dtype: Any = None
    ) -> None:
        super().__init__(normalized_shape, 0.0, elementwise_affine, False, dtype=dtype)
        self.eps = eps

    def forward(self, x: Any) -> Tensor:
        """The normalised input."""
        return _norms.rms_norm(self._open(x), self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Each group of channels normalised by itself: shape (batch, channels, ...).

    Args:
        num_groups: How many groups there are.
        num_channels: How many channels there are.
        eps: A small number that is added to the variance.
        affine: Whether there are a weight and a bias for each channel.
        dtype: The dtype of the parameters.

    Raises:
        ValueError: If channels are not groups of equal size.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *, dtype: Any = None
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"`GroupNorm`: {num_channels} channels are not {num_groups} groups of equal size")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        for name, first in (("weight", init.ones), ("bias", init.zeros)):
            value = Parameter(shape=(num_channels,), init=first, dtype=dtype) if affine else None
            self.register_parameter(name, value)

    def forward(self, x: Any) -> Tensor:
        """The normalised input."""
        x = _checks.floats(x, self._label())
        if x.ndim > 1:
            _checks.size(x, 1, self.num_channels, self._label(), "weight", (self.num_channels,))
        return _norms.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class InstanceNorm(GroupNorm):
    """Each channel of each element of the batch normalised by itself: shape (batch, channels, ...).

    Args:
        num_features: How many channels there are.
        eps: A small number that is added to the variance.
        affine: Whether there are a weight and a bias.
        dtype: The dtype of the parameters.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, *, affine: bool = False, dtype: Any = None) -> None:
        super().__init__(num_features, num_features, eps, affine, dtype=dtype)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.num_channels}, eps={self.eps}"


InstanceNorm1d = InstanceNorm2d = InstanceNorm


class WeightNorm(Module):
    """A module whose weight is a direction times a length: ``g v / |v|`` (Salimans and Kingma).

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> layer = ti.nn.WeightNorm(ti.nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['weight_g', 'weight_v', 'module.bias']

    Args:
        module: The module.
        name: The name of its parameter.
        axis: The axis that has a length for each of its elements; ``None`` for one length.

    Raises:
        AttributeError: If the module has no such parameter.
    """

    def __init__(self, module: Module, name: str = "weight", axis: int | None = 0) -> None:
        parameter = module._parameters.get(name)
        if parameter is None:
            raise AttributeError(f"`WeightNorm`: {module._label()} has no parameter `{name}`")
        self.name, self.axis = name, axis
        values = data_of(parameter)
        self.register_parameter(f"{name}_g", Parameter(self._length(values)))
        self.register_parameter(f"{name}_v", Parameter(values))
        delattr(module, name)
        self.module = module

    def _length(self, v: Tensor) -> Tensor:
        axes = None if self.axis is None else tuple(a for a in range(v.ndim) if a != self.axis % v.ndim)
        return sqrt((v * v).sum(axis=axes, keepdims=self.axis is not None))

    def weight(self) -> Tensor:
        """The weight of the module."""
        g, v = getattr(self, f"{self.name}_g"), getattr(self, f"{self.name}_v")
        return v * (g / self._length(v))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the module with the normalised weight."""
        # Under its name for the time of the call only, as a plain attribute: it is computed, not trained.
        self.module.__dict__[self.name] = self.weight()
        try:
            return self.module(*args, **kwargs)
        finally:
            del self.module.__dict__[self.name]

    def extra_repr(self) -> str:
        """The name of the parameter."""
        return f"name={self.name!r}, axis={self.axis}"
