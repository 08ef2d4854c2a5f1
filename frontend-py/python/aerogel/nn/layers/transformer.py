"""Transformers."""

from __future__ import annotations

import copy
from typing import Any

from aerogel.nn import functional
from aerogel.nn._containers import ModuleList
from aerogel.nn._module import Module
from aerogel.nn.layers.attention import MultiheadAttention
from aerogel.nn.layers.linear import Dropout, Linear
from aerogel.nn.layers.normalisation import LayerNorm
from aerogel.tensor._tensor import Tensor


class _Layer(Module):
    """What layers of encoders and decoders have."""

    _n_attentions = 1

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        self.norm_first = norm_first
        self.activation = activation
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise ValueError(
                    f"`{type(self).__name__}`: the activation is 'relu', 'gelu' or a function, not {activation!r}"
                )
        elif not callable(activation):
            raise TypeError(
                f"`{type(self).__name__}`: the activation is 'relu', 'gelu' or a function, not {activation!r}"
            )
        own = {"bias": bias, "dtype": dtype}
        shared = {"dropout": dropout, "batch_first": batch_first, **own}
        n = self._n_attentions
        self.self_attn = MultiheadAttention(d_model, nhead, **shared)
        if n == 2:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **shared)
        self.linear1 = Linear(d_model, dim_feedforward, **own)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **own)
        for k in range(1, n + 2):
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps, **own))
        for k in range(1, n + 2):
            setattr(self, f"dropout{k}", Dropout(dropout))

    def _attended(
        self, attention: MultiheadAttention, x: Any, to: Any, mask: Any, padding: Any, causal: bool
    ) -> Tensor:
        return attention(x, to, to, padding, False, mask, is_causal=causal)[0]

    def _inner(self, x: Any) -> Tensor:
        hidden = self.linear1(x)
        if self.activation == "relu":
            hidden = functional.relu(hidden)
        elif self.activation == "gelu":
            hidden = functional.gelu(hidden, approximate=False)
        else:
            hidden = self.activation(hidden)
        return self.linear2(self.dropout(hidden))

    def _with(self, x: Any, parts: Any) -> Any:
        """The input and each part of it in turn, normalised before or after."""
        for k, part in enumerate(parts, 1):
            norm, drop = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
            x = x + drop(part(norm(x))) if self.norm_first else norm(x + drop(part(x)))
        return x


class TransformerEncoderLayer(_Layer):
    """A layer of an encoder: attention to the sequence itself, and two linear maps at each place.

    Args:
        d_model: How many features there are.
        nhead: How many heads the attention has.
        dim_feedforward: How many features are between the two linear maps.
        dropout: The probability of dropout.
        activation: ``"relu"``, ``"gelu"`` or a function.
        layer_norm_eps: A small number that is added to variances.
        batch_first: Whether the first axis is the batch, and the second the sequence.
        norm_first: Whether inputs are normalised, and not sums.
        bias: Whether there are biases.
        dtype: The dtype of the parameters.
    """

    def forward(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False
    ) -> Tensor:
        """The sequence after the layer; masks are those of ``MultiheadAttention``."""

        def attended(x: Any) -> Tensor:
            return self._attended(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal)

        return self._with(src, [attended, self._inner])


class TransformerDecoderLayer(_Layer):
    """A layer of a decoder: attention to the sequence itself, then to that of an encoder, and two linear maps.

    Args:
        d_model: How many features there are.
        nhead: How many heads the attentions have.
        dim_feedforward: How many features are between the two linear maps.
        dropout: The probability of dropout.
        activation: ``"relu"``, ``"gelu"`` or a function.
        layer_norm_eps: A small number that is added to variances.
        batch_first: Whether the first axis is the batch, and the second the sequence.
        norm_first: Whether inputs are normalised, and not sums.
        bias: Whether there are biases.
        dtype: The dtype of the parameters.
    """

    _n_attentions = 2

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The sequence ``tgt`` after the layer; ``memory`` is the result of the encoder."""

        def to_itself(x: Any) -> Tensor:
            return self._attended(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def to_memory(x: Any) -> Tensor:
            padding = memory_key_padding_mask
            return self._attended(self.multihead_attn, x, memory, memory_mask, padding, memory_is_causal)

        return self._with(tgt, [to_itself, to_memory, self._inner])


class _Stack(Module):
    """Layers that are copies of one, with other parameters, one after the other."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _run(self, x: Any, *args: Any) -> Any:
        for layer in self.layers:
            x = layer(x, *args)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Layers of an encoder one after the other, which begin as copies of one.

    Args:
        encoder_layer: The layer.
        num_layers: How many there are.
        norm: A module behind the last, or ``None``.
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Tensor:
        """The sequence after all layers."""
        return self._run(src, mask, src_key_padding_mask, is_causal)


class TransformerDecoder(_Stack):
    """Layers of a decoder one after the other, which begin as copies of one.

    Args:
        decoder_layer: The layer.
        num_layers: How many there are.
        norm: A module behind the last, or ``None``.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The sequence ``tgt`` after all layers."""
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self._run(tgt, memory, *masks, tgt_is_causal, memory_is_causal)
