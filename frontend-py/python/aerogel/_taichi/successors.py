"""Names that Quadrants and Taichi Forge, which began as copies of Taichi, have and Taichi 1.7 has not."""

from __future__ import annotations

import aerogel as ti


@ti.pyfunc
def atan(x):  # noqa: ANN001, ANN201
    """The arc tangent, in radians."""
    return ti.atan2(x, 1.0)


@ti.pyfunc
def outer(a, b):  # noqa: ANN001, ANN201
    """The matrix of all products of an element of ``a`` and one of ``b``: ``a.outer_product(b)``."""
    return a.outer_product(b)


__all__ = ["atan", "outer"]
