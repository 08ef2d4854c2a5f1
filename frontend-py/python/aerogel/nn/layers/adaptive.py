"""A softmax over very many classes."""

from __future__ import annotations

from typing import Any, NamedTuple

from aerogel.nn import _checks
from aerogel.nn._containers import ModuleList, Sequential
from aerogel.nn._module import Module
from aerogel.nn.layers.linear import Linear
from aerogel.tensor._reductions import argmax, log_softmax
from aerogel.tensor._searching import take_along_axis, where
from aerogel.tensor._shapes import concat
from aerogel.tensor._tensor import Tensor


class AdaptiveOutput(NamedTuple):
    """The logarithm of the probability of each target, and the loss: minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveSoftmax(Module):
    """A softmax over many classes, of which frequent ones come first (Grave and others).

    Classes before the first cutoff have rows of a matrix of their own. Others are in clusters, each of which has a row,
    and its classes smaller matrices: the later the cluster, the smaller. PyTorch: ``AdaptiveLogSoftmaxWithLoss``.

    Args:
        in_features: How many inputs there are.
        n_classes: How many classes there are.
        cutoffs: The first class of each cluster, in rising order.
        div_value: The divisor of the width from one cluster to the next.
        head_bias: Whether the first matrix has a bias.
        dtype: The dtype of the parameters.

    Raises:
        ValueError: If cutoffs do not rise from 1 to below ``n_classes``.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Any,
        div_value: float = 4.0,
        head_bias: bool = False,
        *,
        dtype: Any = None,
    ) -> None:
        cutoffs = [int(c) for c in cutoffs]
        if not cutoffs or sorted(set(cutoffs)) != cutoffs or cutoffs[0] < 1 or cutoffs[-1] >= n_classes:
            raise ValueError(f"`AdaptiveSoftmax`: cutoffs must increase from 1 to below {n_classes}, not {cutoffs}")
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.n_clusters = len(cutoffs)
        self.head = Linear(in_features, cutoffs[0] + self.n_clusters, head_bias, dtype=dtype)
        tails = []
        for k in range(self.n_clusters):
            width = max(int(in_features // div_value ** (k + 1)), 1)
            size = self.cutoffs[k + 1] - self.cutoffs[k]
            tails.append(
                Sequential(Linear(in_features, width, False, dtype=dtype), Linear(width, size, False, dtype=dtype))
            )
        self.tail = ModuleList(tails)

    def forward(self, x: Any, target: Any) -> AdaptiveOutput:
        """The logarithm of the probability of each target, and the loss.

        Args:
            x: Shape (batch, in_features), or (in_features,).
            target: Classes of shape (batch,), or one.

        Raises:
            IndexError: If a target is no class; when the values are computed.
        """
        x, target = _checks.floats(x, self._label()), _checks.indices(target, self._label())
        if x.ndim != target.ndim + 1:
            raise ValueError(
                f"{self._label()}: for inputs of shape {x._native.shape_text()} targets have one axis less, not "
                f"{target._native.shape_text()}"
            )
        head = log_softmax(self.head(x), -1)
        first = self.cutoffs[0]
        # A cluster's row where the target is in it; what is no class is outside of the head, which is an error.
        row = target
        for k in range(self.n_clusters):
            row = where((target >= self.cutoffs[k]) & (target < self.cutoffs[k + 1]), first + k, row)
        row = where(target < 0, target - self.n_classes, row)
        out = take_along_axis(head, row.unsqueeze(-1), axis=-1).squeeze(-1)
        for k, tail in enumerate(self.tail):
            low, high = self.cutoffs[k], self.cutoffs[k + 1]
            is_here = (target >= low) & (target < high)
            at = where(is_here, target - low, 0)
            own = take_along_axis(log_softmax(tail(x), -1), at.unsqueeze(-1), axis=-1).squeeze(-1)
            out = out + where(is_here, own, 0.0)
        return AdaptiveOutput(out, -out.mean())

    def log_prob(self, x: Any) -> Tensor:
        """The logarithm of the probability of each class: shape (batch, n_classes)."""
        x = _checks.floats(x, self._label())
        head = log_softmax(self.head(x), -1)
        first = self.cutoffs[0]
        parts = [head[..., :first]]
        parts += [log_softmax(tail(x), -1) + head[..., first + k : first + k + 1] for k, tail in enumerate(self.tail)]
        return concat(parts, axis=-1)

    def predict(self, x: Any) -> Tensor:
        """The most probable class of each input."""
        return argmax(self.log_prob(x), axis=-1)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.in_features}, {self.n_classes}, cutoffs={self.cutoffs[:-1]}"


AdaptiveLogSoftmaxWithLoss = AdaptiveSoftmax
