"""Pooling."""

from __future__ import annotations

from typing import Any

from aerogel.nn import _pooling
from aerogel.nn._module import Module
from aerogel.tensor._tensor import Tensor


class _Pool(Module):
    """A function of ``_pooling`` with settings, which are attributes."""

    _function: Any = None

    def _settings(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_") and name != "training"}

    def forward(self, x: Any) -> Tensor:
        """The pooled input."""
        return type(self)._function(x, **self._settings())

    def extra_repr(self) -> str:
        """The settings."""
        return ", ".join(f"{name}={value}" for name, value in self._settings().items())


class MaxPool2d(_Pool):
    """The largest element of each window along the last two axes; arguments as for ``functional.max_pool2d``."""

    _function = staticmethod(_pooling.max_pool2d)

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, *, ceil_mode: bool = False
    ) -> None:
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.ceil_mode = padding, dilation, ceil_mode


class MaxPool1d(MaxPool2d):
    """The largest element of each window along the last axis; arguments as for ``functional.max_pool2d``."""

    _function = staticmethod(_pooling.max_pool1d)


class AvgPool2d(_Pool):
    """The mean of each window along the last two axes; arguments as for ``functional.avg_pool2d``."""

    _function = staticmethod(_pooling.avg_pool2d)

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override


class AvgPool1d(AvgPool2d):
    """The mean of each window along the last axis; arguments as for ``functional.avg_pool2d``."""

    _function = staticmethod(_pooling.avg_pool1d)


class AdaptiveAvgPool2d(_Pool):
    """The means of windows, for a result of a given size; see ``functional.adaptive_avg_pool2d``."""

    _function = staticmethod(_pooling.adaptive_avg_pool2d)

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size


class AdaptiveAvgPool1d(AdaptiveAvgPool2d):
    """The means of ``output_size`` parts of the last axis."""

    _function = staticmethod(_pooling.adaptive_avg_pool1d)


class AdaptiveMaxPool2d(AdaptiveAvgPool2d):
    """The largest elements of windows, for a result of a given size."""

    _function = staticmethod(_pooling.adaptive_max_pool2d)


class AdaptiveMaxPool1d(AdaptiveAvgPool2d):
    """The largest elements of ``output_size`` parts of the last axis."""

    _function = staticmethod(_pooling.adaptive_max_pool1d)


class GlobalAvgPool2d(Module):
    """The mean of each channel: from shape (batch, channels, height, width) to (batch, channels)."""

    def forward(self, x: Any) -> Tensor:
        """The means."""
        return _pooling.adaptive_avg_pool2d(x, 1).squeeze((-2, -1))


class GlobalMaxPool2d(Module):
    """The largest element of each channel: from shape (batch, channels, height, width) to (batch, channels)."""

    def forward(self, x: Any) -> Tensor:
        """The largest elements."""
        return _pooling.adaptive_max_pool2d(x, 1).squeeze((-2, -1))
