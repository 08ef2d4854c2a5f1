"""Where Taichi's programs look for ``ti.lang.impl`` and the like: the same objects under their older names."""

from aerogel import kernel as kernel_impl
from aerogel import matrix, ops, snode
from aerogel import field as impl

__all__ = ["impl", "kernel_impl", "matrix", "ops", "snode"]
