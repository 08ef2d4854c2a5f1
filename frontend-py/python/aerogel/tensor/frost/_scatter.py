"""Stores of `aerogel.tensor.frost` that combine values with what memory holds."""

# ruff: noqa: N802
from __future__ import annotations

from typing import Any

from aerogel.tensor._tensor import Tensor
from aerogel.tensor.programs._blocks import trace_of


def _scattered(place: Any, key_and_value: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Memory, the indices in it, and what is put there."""
    *key, value = key_and_value
    if key:
        return place, key[0], value
    if not isinstance(place, Tensor) or not isinstance(place._made, tuple):
        raise TypeError("the target is memory at indices, as in `scatterAdd(memory[i, j], value)`")
    return (*place._made, value)


def _scatter(how: str, place: Any, key_and_value: tuple[Any, ...]) -> None:
    trace_of("scatterAdd").store(*_scattered(place, key_and_value), how)


def scatterAdd(place: Any, *key_and_value: Any) -> None:
    """Adds values to memory at computed indices: ``scatterAdd(memory[i, j], value)``."""
    _scatter("add", place, key_and_value)


def scatterMin(place: Any, *key_and_value: Any) -> None:
    """Keeps the smaller of memory and values at computed indices."""
    _scatter("min", place, key_and_value)


def scatterMax(place: Any, *key_and_value: Any) -> None:
    """Keeps the larger of memory and values at computed indices."""
    _scatter("max", place, key_and_value)


def scatterOr(place: Any, *key_and_value: Any) -> None:
    """Sets the bits of values in memory at computed indices."""
    _scatter("or", place, key_and_value)


def scatterAnd(place: Any, *key_and_value: Any) -> None:
    """Keeps the bits of values in memory at computed indices."""
    _scatter("and", place, key_and_value)


def scatterXor(place: Any, *key_and_value: Any) -> None:
    """Turns the bits of values in memory at computed indices."""
    _scatter("xor", place, key_and_value)


def scatterAddPrev(place: Any, *key_and_value: Any) -> Tensor:
    """Adds values to memory at computed indices, one point after the other: what was there before each."""
    return trace_of("scatterAddPrev").store_with_previous(*_scattered(place, key_and_value), "add")


__all__ = ["scatterAdd", "scatterAddPrev", "scatterAnd", "scatterMax", "scatterMin", "scatterOr", "scatterXor"]
