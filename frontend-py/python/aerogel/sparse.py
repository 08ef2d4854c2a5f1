"""Sparse grids of structs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aerogel.data import axes, snode
from aerogel.data.structs import Struct, StructField

# Programs import from modules of Taichi's package of this name.
__path__: list[str] = []

__all__ = ["grid", "usage"]


def grid(field_dict: Mapping[str, Any], shape: Sequence[int]) -> StructField:
    """A grid of structs in two or three dimensions, whose cells come to life when they are written.

    Args:
        field_dict: The type of each member by its name, as ``ti.Struct.field`` takes them.
        shape: The size of each axis.

    Raises:
        ValueError: If ``shape`` does not have two or three axes.
    """
    if len(shape) not in (2, 3):
        raise ValueError(f"a sparse grid has 2 or 3 axes, not {len(shape)}")
    made: StructField = Struct.field(dict(field_dict))
    over = axes.ij if len(shape) == 2 else axes.ijk
    snode.root.bitmasked(over, tuple(shape)).place(made)
    return made


def usage(x: Any) -> float:
    """The fraction of a sparse grid's cells that is active, from 0 to 1.

    Args:
        x: A grid made by :func:`grid`, or any field under a bitmasked, pointer or hash node.
    """
    return x.parent().stats()[0]["cells"] / math.prod(x.shape)
