"""Activations, layers without parameters and losses, under the names of ``jax.nn`` and ``torch.nn.functional``.

>>> import aerogel as ti
>>> from aerogel.nn import functional as F
>>> ti.init(arch=ti.cpu, log_level="error")
>>> F.relu6([-1.0, 3.0, 9.0])
tensor([0., 3., 6.], dtype=f32)

Activation functions take real tensors of any shape, and convert integers to the default float, except that ``relu``,
``relu6`` and ``hard_tanh`` keep integers. None has NaN as its derivative at a finite argument.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import dtype_of
from aerogel.nn._attention import causal_mask, rotary, scaled_dot_product_attention, sinusoidal_positions
from aerogel.nn._convolutions import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d
from aerogel.nn._linear import bilinear, dropout, dropout_channels, embedding, linear
from aerogel.nn._losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_similarity,
    cross_entropy,
    hinge_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from aerogel.nn._norms import batch_norm, batch_statistics, group_norm, instance_norm, layer_norm, rms_norm
from aerogel.nn._pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    max_pool1d,
    max_pool2d,
)
from aerogel.tensor import _arguments, _types
from aerogel.tensor._elementwise import abs, exp, expm1, log, log1p, relu, sqrt, tanh
from aerogel.tensor._logsumexp import log_softmax, logmeanexp, logsumexp, softmax
from aerogel.tensor._searching import clip, where
from aerogel.tensor._special import _computed, expit, log_expit, ndtr, softplus
from aerogel.tensor._tensor import Tensor, asarray

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d", "avg_pool1d",
    "avg_pool2d", "batch_norm", "batch_statistics", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "causal_mask", "celu", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "cosine_similarity", "cross_entropy", "dropout", "dropout_channels", "elu", "embedding", "gelu",
    "glu", "group_norm", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "hinge_loss", "huber_loss", "identity",
    "instance_norm", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log1mexp", "log_sigmoid",
    "log_softmax", "logmeanexp", "logsumexp", "max_pool1d", "max_pool2d", "mish", "mse_loss", "nll_loss", "one_hot",
    "relu", "relu6", "rms_norm", "rotary", "scaled_dot_product_attention", "selu", "sigmoid", "silu",
    "sinusoidal_positions", "smooth_l1_loss", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid",
    "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip

sigmoid = expit
log_sigmoid = log_expit

#: The constants of G. Klambauer and others, "Self-Normalizing Neural Networks" (2017).
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def relu6(x: Any, /) -> Tensor:
    """``min(max(x, 0), 6)``."""
    return clip(x, 0, 6)


def gelu(x: Any, /, approximate: bool | str = True) -> Tensor:
    """``x`` times the probability that a standard normal variable is below ``x``.

    Args:
        x: The tensor.
        approximate: Whether to use the formula with ``tanh``, which differs by up to 5e-4. PyTorch's words ``"tanh"``
            and ``"none"`` are understood as well.

    Raises:
        ValueError: For another word.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> from aerogel.nn import functional as F
    >>> F.gelu([0.0, 30.0, -30.0], approximate=False)
    tensor([ 0., 30., -0.], dtype=f32)
    """
    if isinstance(approximate, str):
        if approximate not in ("none", "tanh"):
            raise ValueError(f"`gelu`: `approximate` is a bool, 'none' or 'tanh', not {approximate!r}")
        approximate = approximate == "tanh"
    (x,), dtype = _computed("gelu", x)
    if not approximate:
        return (x * ndtr(x)).astype(dtype)
    # `0.5 * (1 + tanh(u))`, without cancellation where it is small.
    return (x * expit(2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x)))).astype(dtype)


def silu(x: Any, /) -> Tensor:
    """``x * sigmoid(x)``."""
    (x,), dtype = _computed("silu", x)
    return (x * expit(x)).astype(dtype)


swish = silu


def elu(x: Any, /, alpha: Any = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""
    (x,), dtype = _computed("elu", x)
    return where(x > 0, x, alpha * expm1(where(x > 0, 0.0, x))).astype(dtype)


def celu(x: Any, /, alpha: Any = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``."""
    (x,), dtype = _computed("celu", x)
    return where(x > 0, x, alpha * expm1(where(x > 0, 0.0, x) / alpha)).astype(dtype)


def selu(x: Any, /) -> Tensor:
    """``elu`` with the two constants that keep the mean and the variance of activations."""
    (x,), dtype = _computed("selu", x)
    return (_SELU_SCALE * elu(x, _SELU_ALPHA)).astype(dtype)


def leaky_relu(x: Any, /, negative_slope: Any = 0.01) -> Tensor:
    """``x`` where it is not negative, else ``negative_slope * x``."""
    (x,), dtype = _computed("leaky_relu", x)
    return where(x >= 0, x, negative_slope * x).astype(dtype)


def mish(x: Any, /) -> Tensor:
    """``x * tanh(softplus(x))``."""
    (x,), dtype = _computed("mish", x)
    return (x * tanh(softplus(x))).astype(dtype)


def glu(x: Any, /, axis: int = -1) -> Tensor:
    """The first half along an axis times the sigmoid of the second.

    Raises:
        ValueError: If the axis has an odd size.
    """
    from aerogel.tensor._shapes import split

    (x,), dtype = _computed("glu", x)
    axis = _types.axis(axis, x.ndim, "glu")
    n = x.shape[axis]
    if isinstance(n, int) and n % 2:
        raise ValueError(f"`glu` halves axis {axis}, which has {n} elements: an even number is needed")
    first, second = split(x, 2, axis=axis)
    return (first * expit(second)).astype(dtype)


def hard_tanh(x: Any, /) -> Tensor:
    """``x``, but none below -1 or above 1."""
    return clip(x, -1, 1)


def hard_sigmoid(x: Any, /) -> Tensor:
    """``relu6(x + 3) / 6``."""
    (x,), dtype = _computed("hard_sigmoid", x)
    return (relu6(x + 3.0) / 6.0).astype(dtype)


def hard_silu(x: Any, /) -> Tensor:
    """``x * hard_sigmoid(x)``."""
    (x,), dtype = _computed("hard_silu", x)
    return (x * hard_sigmoid(x)).astype(dtype)


hard_swish = hard_silu


def soft_sign(x: Any, /) -> Tensor:
    """``x / (1 + abs(x))``."""
    (x,), dtype = _computed("soft_sign", x)
    return (x / (1.0 + abs(x))).astype(dtype)


def squareplus(x: Any, /, b: Any = 4.0) -> Tensor:
    """``(x + sqrt(x * x + b)) / 2``, a smooth ``relu`` without exponentials."""
    (x,), dtype = _computed("squareplus", x)
    return (0.5 * (x + sqrt(x * x + b))).astype(dtype)


def sparse_plus(x: Any, /) -> Tensor:
    """0 below -1, ``x`` above 1, and ``(x + 1)^2 / 4`` between."""
    (x,), dtype = _computed("sparse_plus", x)
    middle = clip(x, -1, 1) + 1.0
    return where(x >= 1, x, middle * middle * 0.25).astype(dtype)


def sparse_sigmoid(x: Any, /) -> Tensor:
    """0 below -1, 1 above 1, and ``(x + 1) / 2`` between: the derivative of ``sparse_plus``."""
    (x,), dtype = _computed("sparse_sigmoid", x)
    return ((clip(x, -1, 1) + 1.0) * 0.5).astype(dtype)


def log1mexp(x: Any, /) -> Tensor:
    """``log(1 - exp(-x))`` for positive ``x``, with all digits (M. Maechler, 2012)."""
    (x,), dtype = _computed("log1mexp", x)
    small = x < math.log(2.0)
    near, far = where(small, x, 0.5), where(small, 1.0, x)
    return where(small, log(-expm1(-near)), log1p(-exp(-far))).astype(dtype)


def identity(x: Any, /) -> Tensor:
    """The tensor."""
    return asarray(x)


def standardize(x: Any, /, axis: Any = -1, *, epsilon: float = 1e-5) -> Tensor:
    """``x`` less its mean, divided by its standard deviation, along some axes."""
    from aerogel.tensor._reductions import mean

    (x,), dtype = _computed("standardize", x)
    off = x - mean(x, axis, keepdims=True)
    return (off / sqrt(mean(off * off, axis, keepdims=True) + epsilon)).astype(dtype)


def one_hot(x: Any, num_classes: Any, /, *, dtype: Any = None, axis: int = -1) -> Tensor:
    """Zeros along a new axis, with a one at each index; nothing but zeros for an index outside.

    Args:
        x: Indices, a tensor of integers.
        num_classes: The size of the new axis.
        dtype: The dtype of the result; the default float without it.
        axis: Where the new axis is in the result.

    Raises:
        TypeError: For indices that are no integers.
        ValueError: For a negative ``num_classes``.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> from aerogel.nn import functional as F
    >>> F.one_hot([0, 2, 5], 3, dtype=ti.i32).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    """
    from aerogel.tensor._creation import arange

    x = asarray(x)
    if _types.kind(x.dtype) not in "iu":
        raise TypeError(f"`one_hot` takes indices, which are integers, not `{x.dtype}`")
    if not isinstance(num_classes, Tensor):
        num_classes = operator.index(num_classes)
        _types.counts(num_classes, "one_hot", "num_classes")
    axis = _types.axis(axis, x.ndim + 1, "one_hot")
    classes = arange(num_classes, dtype=x.dtype) if not _narrow(x, num_classes) else arange(num_classes)
    classes = classes.reshape((-1, *([1] * (x.ndim - axis)))) if axis < x.ndim else classes
    return (x.unsqueeze(axis) == classes).astype(dtype_of(dtype) if dtype is not None else _types.default_float())


def _narrow(x: Tensor, n: Any) -> bool:
    """Whether the dtype of indices may not hold all of ``n`` classes."""
    return not isinstance(n, int) or n > _types._limits(x.dtype._aerogel_dtype)[1]


if not TYPE_CHECKING:  # For a type checker every name would be one.

    def __getattr__(name: str) -> Any:
        from aerogel.tensor import _elsewhere

        hint = "" if name.startswith("_") else _elsewhere.of_package(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


_arguments.guard(globals())
