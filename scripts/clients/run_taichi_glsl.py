"""A picture by the functions of GLSL."""

import taichi_glsl  # noqa: F401, it replaces internals as it is imported
