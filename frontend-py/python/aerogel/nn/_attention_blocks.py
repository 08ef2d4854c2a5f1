"""Attention by blocks of keys, which never has all scores in memory.

The softmax of a row is computed with a running maximum: when a block has a larger score, what is summed so far is
multiplied by the exponential of the difference (Milakov and Gimelshein, Online normalizer calculation for softmax,
2018). The gradient computes the scores of each block again, from the logarithm of each row's sum (Dao and others,
FlashAttention, 2022).
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

from aerogel._dtypes import bf16, f16, f32, u1
from aerogel.tensor._backward import no_grad
from aerogel.tensor._creation import arange, full, zeros
from aerogel.tensor._elementwise import exp, log, maximum, minimum
from aerogel.tensor._gradients import vjp
from aerogel.tensor._rules import custom_vjp
from aerogel.tensor._searching import take, where
from aerogel.tensor._shapes import moveaxis
from aerogel.tensor._tensor import Tensor
from aerogel.tensor.programs import program, scan


class Settings(NamedTuple):
    """What is known when attention is traced."""

    #: Whether each query sees only keys up to its own position.
    is_causal: bool
    #: The number of keys of a block.
    size: int
    #: Whether the last block is known to have that many, too.
    is_even: bool


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Any, settings: Settings) -> Tensor:
    """``softmax(query @ key.T) @ value`` by blocks of keys.

    The operands have the same axes before the last two.

    Args:
        query: Shape (..., queries, width).
        key: Shape (..., keys, width).
        value: Shape (..., keys, values).
        mask: ``None``, or booleans or floats with as many axes, which are broadcast to (..., queries, keys).
        settings: The others.

    Returns:
        Shape (..., queries, values).
    """
    dtype = query.dtype
    if dtype in (f16, bf16):
        # Sums over all keys need more digits.
        query, key, value = (x.astype(f32) for x in (query, key, value))
    return _attention(query, key, value, mask, settings).astype(dtype)


@program(static=["settings"])
def _forward(query: Any, key: Any, value: Any, mask: Any, settings: Any) -> Any:
    """The result, and the logarithm of the sum of each row's exponentials."""
    rows = query.shape[:-1]
    summed = zeros((*rows, value.shape[-1]), query.dtype)
    begin = (full(rows, -math.inf, dtype=query.dtype), zeros(rows, query.dtype), summed)

    def body(carried: Any, block: Any) -> Any:
        highest, total, summed = carried
        at, inside = _key_indices(key, block, settings)
        scores, _ = _scores(query, key, mask, at, inside, settings)
        higher = maximum(highest, scores.max(-1))
        # The sum of a row without a visible key so far stays zero.
        shift = where(higher == -math.inf, 0.0, higher)
        weights, kept = exp(scores - shift.unsqueeze(-1)), exp(highest - shift)
        summed = summed * kept.unsqueeze(-1) + weights @ take(value, at, axis=-2)
        return (higher, total * kept + weights.sum(-1), summed), None

    (highest, total, summed), _ = scan(body, begin, arange(_count(key, settings.size)))
    return summed / total.unsqueeze(-1), highest + log(total)


@program(static=["settings"])
def _backward(kept: Any, gradient: Any, settings: Any) -> Any:
    """The gradients by the query, the keys, the values and a mask of floats."""
    query, key, value, mask, out, logsum = kept
    # The mask, if it has a gradient, and whether that has a part for each block.
    smooth = None if mask is None or mask.dtype is u1 else mask
    is_along = smooth is not None and not _is_one(smooth.shape[-1])
    begin = [zeros(x.shape, query.dtype) for x in ([query] if smooth is None or is_along else [query, smooth])]
    share = (gradient * out).sum(-1).unsqueeze(-1)

    def body(carried: Any, block: Any) -> Any:
        at, inside = _key_indices(key, block, settings)
        keys, values = take(key, at, axis=-2), take(value, at, axis=-2)
        scores, seen = _scores(query, key, mask, at, inside, settings)
        weights = exp(scores - logsum.unsqueeze(-1))
        slope = weights * (gradient @ values.mT - share)
        if seen is not None:
            # The weights of a query that sees no key are NaN, which must not reach the gradient of hidden keys.
            slope = where(seen, slope, 0.0)
        new, parts = [carried[0] + slope @ keys], [slope.mT @ query, weights.mT @ gradient]
        if smooth is not None and is_along:
            parts.append(_summed(slope, smooth.shape[:-1]).mT)
        elif smooth is not None:
            new.append(carried[1] + _summed(slope, smooth.shape))
        return new, parts

    carried, parts = scan(body, begin, arange(_count(key, settings.size)))
    joined = [_joined(part, key.shape[-2], settings.size) for part in parts]
    slopes = [joined[2].mT] if is_along else carried[1:]
    return carried[0], *joined[:2], *slopes


@functools.partial(custom_vjp, nondiff_argnums=(4,))
def _attention(query: Any, key: Any, value: Any, mask: Any, settings: Settings) -> Tensor:
    return _forward(query, key, value, mask, settings)[0]


def _attention_forward(query: Any, key: Any, value: Any, mask: Any, settings: Settings) -> Any:
    with no_grad():
        out, logsum = _forward(query, key, value, mask, settings)
    return out, (query, key, value, mask, out, logsum)


def _attention_backward(settings: Settings, kept: Any, gradient: Any) -> Any:
    slopes = _slopes(*kept, gradient, settings)
    return slopes if len(slopes) == 4 else (*slopes, None)


_attention.defvjp(_attention_forward, _attention_backward)


@functools.partial(custom_vjp, nondiff_argnums=(7,))
def _slopes(
    query: Any, key: Any, value: Any, mask: Any, out: Any, logsum: Any, gradient: Any, settings: Settings
) -> tuple[Tensor, ...]:
    return tuple(_backward((query, key, value, mask, out, logsum), gradient, settings))


def _slopes_forward(*args: Any) -> Any:
    *kept, gradient, settings = args
    with no_grad():
        slopes = tuple(_backward(tuple(kept), gradient, settings))
    return slopes, (*kept[:4], gradient)


def _slopes_backward(settings: Settings, kept: Any, gradients: Any) -> Any:
    """Second derivatives: the result and the sums of rows are computed again, since they depend on the operands."""
    *operands, mask, gradient = kept
    is_smooth = len(gradients) == 4

    def again(*varying: Any) -> Any:
        query, key, value, gradient, *rest = varying
        operands = (query, key, value, *(rest or [mask]))
        return tuple(_backward((*operands, *_forward(*operands, settings)), gradient, settings))

    _, pullback = vjp(again, *operands, gradient, *([mask] if is_smooth else []))
    *slopes, by_gradient, by_mask = (*pullback(tuple(gradients)), None)[:5]
    return *slopes, by_mask, None, None, by_gradient


_slopes.defvjp(_slopes_forward, _slopes_backward)


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _count(key: Tensor, size: int) -> Any:
    """How many blocks there are."""
    return (key.shape[-2] + size - 1) // size


def _key_indices(key: Tensor, block: Tensor, settings: Settings) -> tuple[Tensor, Any]:
    """The numbers of the keys of a block, and which there are, ``None`` for all; beyond the end is the last key."""
    at, n = block * settings.size + arange(settings.size), key.shape[-2]
    return (at, None) if settings.is_even else (minimum(at, n - 1), at < n)


def _scores(query: Tensor, key: Tensor, mask: Any, at: Tensor, inside: Any, settings: Settings) -> tuple[Tensor, Any]:
    """The scores of a block's keys, minus infinity where a query sees no key, and where it does; ``None``: all."""
    scores = query @ take(key, at, axis=-2).mT
    seen = [] if inside is None else [inside]
    if settings.is_causal:
        seen.append(at <= arange(query.shape[-2]).unsqueeze(-1))
    if mask is not None:
        part = mask if _is_one(mask.shape[-1]) else take(mask, at, axis=-1)
        if mask.dtype is u1:
            seen.append(part)
        else:
            scores = scores + part
    if not seen:
        return scores, None
    visible = functools.reduce(operator.and_, seen)
    return where(visible, scores, -math.inf), visible


def _summed(x: Tensor, shape: Any) -> Tensor:
    """The sum along the axes that have one element in ``shape``, which remain."""
    axes = tuple(k for k, size in enumerate(shape) if _is_one(size))
    return x.sum(axes, keepdims=True) if axes else x


def _joined(blocks: Tensor, n: Any, size: int) -> Tensor:
    """Blocks of shape (blocks, ..., size, width) in a row, of shape (..., n, width)."""
    blocks = moveaxis(blocks, 0, -3)
    *batch, count, _, width = blocks.shape
    return blocks.reshape(*batch, count * size, width)[..., :n, :]
