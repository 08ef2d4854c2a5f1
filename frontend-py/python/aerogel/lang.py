"""Where Taichi's programs look for ``ti.lang.impl`` and the like: the same objects under their older names."""

import sys

import aerogel

impl = sys.modules["aerogel.field"]
kernel_impl = sys.modules["aerogel.kernel"]
matrix, ops, snode = (sys.modules[f"aerogel.{name}"] for name in ("matrix", "ops", "snode"))

__all__ = ["aerogel", "impl", "kernel_impl", "matrix", "ops", "snode"]
