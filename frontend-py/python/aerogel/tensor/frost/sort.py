"""Orders of keys, and of values that go with them."""

from __future__ import annotations

from typing import Any

from aerogel.tensor import _searching
from aerogel.tensor._tensor import asarray
from aerogel.tensor.programs._blocks import trace_of


def _sorted(keys: Any, values: Any = None) -> Any:
    keys = asarray(keys)
    if values is None:
        return _searching.sort(keys)
    order = _searching.argsort(keys)
    return tuple(trace_of("sort").gather(x, order) for x in (keys, asarray(values)))


def bitonic(keys: Any, values: Any = None) -> Any:
    """The keys in order, and the values that go with them."""
    return _sorted(keys, values)


def radix(keys: Any, values: Any = None, bits_per_pass: int = 6, max_bits: int = 32) -> Any:
    """The keys in order, and the values that go with them."""
    return _sorted(keys, values)
