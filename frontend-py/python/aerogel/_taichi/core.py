"""The part of ``taichi._lib.core`` that programs use: which of Taichi's back ends are available."""

from __future__ import annotations

from aerogel._config import is_extension_supported

__all__ = ["is_extension_supported"]

GGUI_AVAILABLE = False


def _absent() -> bool:
    """No: of Taichi's GPU back ends and windows there is none."""
    return False


with_amdgpu = with_cc = with_cuda = with_dx11 = with_dx12 = with_metal = with_opengl = with_vulkan = _absent
