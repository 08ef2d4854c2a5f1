"""Attention, and positions in sequences."""

from __future__ import annotations

import functools
import math
from itertools import zip_longest
from typing import Any

from aerogel._dtypes import u1
from aerogel.nn import _checks
from aerogel.nn._attention_blocks import Settings, attention
from aerogel.nn._linear import dropout
from aerogel.tensor import _types, _unknown
from aerogel.tensor._creation import arange, iota
from aerogel.tensor._elementwise import cos, exp, sin
from aerogel.tensor._reductions import softmax
from aerogel.tensor._searching import where
from aerogel.tensor._shapes import broadcast_to, concat, stack
from aerogel.tensor._tensor import Tensor, asarray


def causal_mask(n_queries: Any, n_keys: Any = None) -> Tensor:
    """The causal mask: each query attends to keys up to its own position. Booleans of shape (queries, keys)."""
    shape = (n_queries, n_queries if n_keys is None else n_keys)
    return iota(shape, 1) <= iota(shape, 0)


def attention_weights(scores: Tensor, mask: Any) -> Tensor:
    """The softmax of scores along the last axis, where ``mask`` (booleans, or numbers that are added) lets it."""
    if mask is not None:
        mask = asarray(mask)
        scores = where(mask, scores, -math.inf) if mask.dtype is u1 else scores + mask
    return softmax(scores, -1)


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    *,
    block_size: int | None = None,
) -> Tensor:
    """``softmax(query @ key.T * scale) @ value``.

    By blocks of keys it needs memory for ``queries * block_size`` scores, and so does its gradient. Dropout needs all
    weights at once.

    Args:
        query: Shape (..., queries, width).
        key: Shape (..., keys, width).
        value: Shape (..., keys, values).
        attn_mask: Booleans, true where a query sees a key, or floats that are added to the scores; of a shape that is
            broadcast to (..., queries, keys).
        dropout_p: The probability with which weights are replaced by zero.
        is_causal: Whether each query sees only keys up to its own position.
        scale: The factor of products, ``1 / sqrt(width)`` by default.
        block_size: How many keys a block has. If not given, there are blocks of 256 keys where more than 1024 keys are
            known to be; inside of a program their number is known if they do not depend on its arguments.
            If it has all keys, the formula is computed directly.

    Returns:
        Shape (..., queries, values), of the dtype that the operands and a mask of floats are promoted to.

    Raises:
        ValueError: If widths or numbers of keys differ, the mask has other numbers of queries or keys, both a mask and
            ``is_causal`` are given, or ``block_size`` is less than 1 or given together with dropout.
    """
    called = "`scaled_dot_product_attention`"
    query, key, value = (_checks.floats(x, called) for x in (query, key, value))
    if attn_mask is not None and is_causal:
        raise ValueError(f"{called} takes a mask or `is_causal`, not both")
    _checks.size(key, -1, query.shape[-1], called, "query", query._native.shape)
    _checks.size(value, -2, key.shape[-2], called, "key", key._native.shape)
    query, n = query * (_usual_scale(query) if scale is None else scale), key.shape[-2]
    mask = None if attn_mask is None else _mask_of(attn_mask, (query.shape[-2], n), called)
    query, key, value, mask = _of_same_dtype(query, key, value, mask)
    size = _block_size(n, dropout_p, block_size, called)
    if size is not None:
        settings = Settings(is_causal, size, isinstance(n, int) and n % size == 0)
        return attention(*_of_same_batch(query, key, value, mask), settings)
    mask = causal_mask(query.shape[-2], n) if is_causal else mask
    weights = attention_weights(query @ key.mT, mask)
    return dropout(weights, dropout_p) @ value


def _usual_scale(query: Tensor) -> Any:
    width = query.shape[-1]
    # In a program the width may be a tensor of integers, and powers of those are of single precision.
    return 1.0 / math.sqrt(width) if isinstance(width, int) else asarray(width).astype(query.dtype) ** -0.5


def _mask_of(mask: Any, shape: tuple[Any, Any], called: str) -> Tensor:
    """The mask as a tensor, whose last axes are broadcast to (queries, keys)."""
    mask = _checks.tensor(mask, called)
    if any(_unknown.differ(n, m) and n != 1 for n, m in zip(mask.shape[::-1], shape[::-1])):
        raise ValueError(
            f"{called}: there are {shape[0]} queries and {shape[1]} keys, and the shape of the mask is "
            f"{mask._native.shape_text()}: its last two axes are (queries, keys), or 1"
        )
    return mask


def _of_same_dtype(query: Tensor, key: Tensor, value: Tensor, mask: Any) -> tuple[Tensor, Tensor, Tensor, Any]:
    """The operands in the dtype of the result, and a mask of numbers, which takes part in it."""
    added = [] if mask is None or mask.dtype is u1 else [mask]
    dtype = functools.reduce(_types.promote, (x.dtype for x in [query, key, value, *added]))
    query, key, value, *rest = (x.astype(dtype) for x in [query, key, value, *added])
    return query, key, value, rest[0] if added else mask


def _block_size(n_keys: Any, dropout_p: float, block_size: int | None, called: str) -> int | None:
    """How many keys a block has, ``None`` for all of them."""
    if block_size is None:
        return 256 if isinstance(n_keys, int) and n_keys > 1024 and dropout_p == 0.0 else None
    if block_size < 1:
        raise ValueError(f"{called}: a block has at least one key, not {block_size}")
    if dropout_p:
        raise ValueError(f"{called}: dropout needs all weights at once; leave out `block_size`")
    return None if isinstance(n_keys, int) and n_keys <= block_size else block_size


def _of_same_batch(query: Tensor, key: Tensor, value: Tensor, mask: Any) -> tuple[Tensor, Tensor, Tensor, Any]:
    """The operands with the same axes before the last two; a mask with as many axes."""
    operands = [query, key, value] + [mask] * (mask is not None)
    axes = zip_longest(*(x.shape[-3::-1] for x in operands), fillvalue=1)
    # Of sizes that are not known to be one, the first: the products require that the others are equal.
    batch = [next((n for n in sizes if not isinstance(n, int) or n != 1), 1) for sizes in axes][::-1]

    def whole(x: Tensor) -> Tensor:
        own = (1,) * (len(batch) + 2 - x.ndim) + x.shape[:-2]
        is_same = all(n is m or not isinstance(n, int) or n != 1 for n, m in zip(own, batch))
        return x if is_same and x.ndim == len(batch) + 2 else broadcast_to(x, (*batch, *x.shape[-2:]))

    mask = None if mask is None else mask.reshape((1,) * (len(batch) + 2 - mask.ndim) + mask.shape)
    return whole(query), whole(key), whole(value), mask


def sinusoidal_positions(length: Any, width: int, base: float = 10000.0, *, dtype: Any = None) -> Tensor:
    """The positions of "Attention is all you need": sines in even columns, cosines in odd ones.

    Args:
        length: How many positions there are.
        width: How many columns; an even number.
        base: The length of the longest wave by 2π.
        dtype: The dtype.

    Returns:
        Shape (length, width).

    Raises:
        ValueError: If ``width`` is odd.
    """
    if width % 2:
        raise ValueError(f"`sinusoidal_positions`: the width is an even number, not {width}")
    angles = _angles(arange(length), width, base)
    both = stack([sin(angles), cos(angles)], axis=-1)
    return both.reshape(length, width).astype(_types.default_float() if dtype is None else dtype)


def _angles(positions: Tensor, width: int, base: float) -> Tensor:
    """The angle of each pair of columns at each position; in double precision, since positions may be large."""
    rates = exp(arange(width // 2).astype("f64") * (-2.0 * math.log(base) / width))
    return positions.astype("f64").unsqueeze(-1) * rates


def rotary(x: Any, positions: Any = None, base: float = 10000.0, *, is_interleaved: bool = False) -> Tensor:
    """Pairs of columns turned by angles that grow with the position (RoPE).

    Args:
        x: Shape (..., length, width), with an even width.
        positions: The position of each row, 0, 1, 2 ... if not given.
        base: The length of the longest wave by 2π.
        is_interleaved: Whether neighbours are pairs, and not columns that are half the width apart.

    Raises:
        ValueError: If the width is odd.
    """
    x = _checks.floats(x, "`rotary`")
    width = x.shape[-1]
    if not isinstance(width, int) or width % 2:
        raise ValueError(f"`rotary`: the width of the last axis is an even number that is known, not {width}")
    angles = _angles(arange(x.shape[-2]) if positions is None else asarray(positions), width, base)
    c, s = cos(angles).astype(x.dtype), sin(angles).astype(x.dtype)
    if is_interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return stack([a * c - b * s, a * s + b * c], axis=-1).reshape(x.shape)
    a, b = x[..., : width // 2], x[..., width // 2 :]
    return concat([a * c - b * s, a * s + b * c], axis=-1)
