"""A scene of a cube."""

import taichi_three  # noqa: F401, it imports `taichi_glsl`
