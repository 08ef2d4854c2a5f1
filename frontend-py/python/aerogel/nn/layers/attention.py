"""Attention of several heads, and positions."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import u1
from aerogel.nn import _attention, _checks, init
from aerogel.nn._linear import dropout, linear
from aerogel.nn._module import Module
from aerogel.nn._parameter import Parameter
from aerogel.nn.layers.linear import Linear
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor, asarray


class MultiheadAttention(Module):
    """Attention of several heads: of each query to all keys, by whose weights values are summed.

    Masks are as in PyTorch: booleans are true where a key is *not* seen, floats are added to the scores.

    Args:
        embed_dim: How many features queries have.
        num_heads: How many heads they are divided among.
        dropout: The probability with which weights are dropped in training.
        bias: Whether there are biases.
        kdim: How many features keys have, ``embed_dim`` if not given.
        vdim: How many features values have, ``embed_dim`` if not given.
        batch_first: Whether the first axis is the batch, and the second the sequence.
        dtype: The dtype of the parameters.

    Raises:
        ValueError: If ``embed_dim`` is not divided by ``num_heads``.
    """

    q_proj_weight: Parameter
    k_proj_weight: Parameter
    v_proj_weight: Parameter
    in_proj_bias: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: Any = None,
    ) -> None:
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(f"`MultiheadAttention`: {embed_dim} features are not {num_heads} heads of equal size")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        kdim, vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        draw = init.xavier_uniform
        self.is_one = kdim == vdim == embed_dim
        if self.is_one:
            self.in_proj_weight = Parameter(shape=(3 * embed_dim, embed_dim), init=draw, dtype=dtype)
        else:
            for name, n in (("q", embed_dim), ("k", kdim), ("v", vdim)):
                setattr(self, f"{name}_proj_weight", Parameter(shape=(embed_dim, n), init=draw, dtype=dtype))
        own = Parameter(shape=(3 * embed_dim,), init=init.zeros, dtype=dtype) if bias else None
        self.register_parameter("in_proj_bias", own)
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype)
        if bias:
            init.zeros_(self.out_proj.bias)

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        n = self.embed_dim
        if self.is_one:
            weights = [self.in_proj_weight[k * n : (k + 1) * n] for k in range(3)]
        else:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        biases = [None] * 3 if self.in_proj_bias is None else [self.in_proj_bias[k * n : (k + 1) * n] for k in range(3)]
        for x, weight, name in zip((query, key, value), weights, ("q", "k", "v")):
            _checks.size(x, -1, weight._native.shape[1], self._label(), f"weight of {name}", weight._native.shape)
        if self.is_one and query is key and key is value:
            # One product in place of three.
            both = linear(query, self.in_proj_weight, self.in_proj_bias)
            return [both[..., k * n : (k + 1) * n] for k in range(3)]
        return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]

    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The values summed for each query, and the weights.

        Args:
            query: Shape (queries, batch, features), or (batch, queries, features) with ``batch_first``, or without the
                batch.
            key: Shape (keys, batch, features); the queries if not given.
            value: Shape (keys, batch, features); the keys if not given.
            key_padding_mask: Booleans of shape (batch, keys), true where a key is not seen.
            need_weights: Whether weights are returned.
            attn_mask: Booleans of shape (queries, keys) or (batch · heads, queries, keys), true where a key is not
                seen; or floats that are added to the scores.
            average_attn_weights: Whether the weights are the means over the heads.
            is_causal: Whether queries see keys up to their own place only.

        Returns:
            The sums, of the shape of ``query``, and weights of shape (batch, queries, keys), or ``None``.
        """
        key = query if key is None else key
        value = key if value is None else value
        made = {id(x): _checks.floats(x, self._label()) for x in (query, key, value)}
        query, key, value = (made[id(x)] for x in (query, key, value))
        _checks.axes(query, self._label(), 2, 3, what="queries, batch and features")
        is_one = query.ndim == 2
        swap = {
            id(x): x.unsqueeze(0) if is_one else x if self.batch_first else x.permute(1, 0, 2) for x in made.values()
        }
        query, key, value = (swap[id(x)] for x in (query, key, value))
        q, k, v = (self._heads(x) for x in self._projected(query, key, value))
        scores = (q * (q._native.shape[-1] ** -0.5)) @ k.mT
        scores = self._masked(scores, key_padding_mask, attn_mask, is_causal)
        weights = _attention.attention_weights(scores, None)
        out = dropout(weights, self.dropout, self.training) @ v
        out = out.permute(0, 2, 1, 3)
        out = self.out_proj(out.reshape(*out.shape[:2], self.embed_dim))
        out = out.squeeze(0) if is_one else out if self.batch_first else out.permute(1, 0, 2)
        if not need_weights:
            return out, None
        weights = weights.mean(axis=1) if average_attn_weights else weights
        return out, weights.squeeze(0) if is_one else weights

    def _heads(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self.num_heads, self.embed_dim // self.num_heads).permute(0, 2, 1, 3)

    def _masked(self, scores: Tensor, padding: Any, mask: Any, is_causal: bool) -> Tensor:
        hidden = []
        if mask is not None:
            mask = asarray(mask)
            if mask.ndim == 3:
                mask = mask.reshape(-1, self.num_heads, *mask.shape[1:])
            hidden.append(mask)
        elif is_causal:
            hidden.append(~_attention.causal_mask(scores.shape[-2], scores.shape[-1]))
        if padding is not None:
            padding = asarray(padding)
            hidden.append((padding.unsqueeze(0) if padding.ndim == 1 else padding).unsqueeze(1).unsqueeze(1))
        for own in hidden:
            scores = where(own, float("-inf"), scores) if own.dtype is u1 else scores + own
        return scores

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.embed_dim}, num_heads={self.num_heads}, dropout={self.dropout}, batch_first={self.batch_first}"


class LearnedPositions(Module):
    """A vector for each position, which is trained, added to the input.

    Args:
        length: The largest length of a sequence.
        width: How many features there are.
        std: The standard deviation of the first values.
        dtype: The dtype of the vectors.
    """

    def __init__(self, length: int, width: int, std: float = 0.02, *, dtype: Any = None) -> None:
        self.length, self.width = length, width
        draw = lambda shape, dtype: init.normal(shape, std=std, dtype=dtype)  # noqa: E731
        self.weight = Parameter(shape=(length, width), init=draw, dtype=dtype)

    def forward(self, x: Any) -> Tensor:
        """The input, of shape (..., length, width), and the positions."""
        x = _checks.floats(x, self._label())
        _checks.size(x, -1, self.width, self._label(), "weight", (self.length, self.width))
        n = x.shape[-2]
        if isinstance(n, int) and n > self.length:
            raise ValueError(f"{self._label()}: a sequence has {n} elements, there are {self.length} positions")
        return x + self.weight[:n]

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.length}, {self.width}"


class SinusoidalPositions(Module):
    """Sines and cosines of each position added to the input; see ``functional.sinusoidal_positions``.

    Args:
        width: How many features there are.
        base: The length of the longest wave by 2π.
    """

    def __init__(self, width: int, base: float = 10000.0) -> None:
        self.width, self.base = width, base

    def forward(self, x: Any) -> Tensor:
        """The input, of shape (..., length, width), and the positions."""
        x = _checks.floats(x, self._label())
        _checks.size(x, -1, self.width, self._label(), "width")
        return x + _attention.sinusoidal_positions(x.shape[-2], self.width, self.base, dtype=x.dtype)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.width}, base={self.base}"


class RotaryPositions(Module):
    """Pairs of features turned by angles that grow with the position; see ``functional.rotary``.

    Args:
        base: The length of the longest wave by 2π.
        is_interleaved: Whether neighbours are pairs, and not features that are half the width apart.
    """

    def __init__(self, base: float = 10000.0, *, is_interleaved: bool = False) -> None:
        self.base, self.is_interleaved = base, is_interleaved

    def forward(self, x: Any, positions: Any = None) -> Tensor:
        """The input, of shape (..., length, width), turned."""
        return _attention.rotary(x, positions, self.base, is_interleaved=self.is_interleaved)

    def extra_repr(self) -> str:
        """The base."""
        return f"base={self.base}"
