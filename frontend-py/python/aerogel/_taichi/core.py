"""What programs ask ``taichi._lib.core`` for: which of Taichi's back ends there are."""

from __future__ import annotations

from aerogel._config import is_extension_supported

__all__ = ["is_extension_supported"]

GGUI_AVAILABLE = False


def _absent() -> bool:
    """No: of Taichi's GPU back ends and windows there is none."""
    return False


with_amdgpu = with_cc = with_cuda = with_dx11 = with_dx12 = with_metal = with_opengl = with_vulkan = _absent
