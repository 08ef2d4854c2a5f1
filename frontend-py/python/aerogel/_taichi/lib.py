"""What programs ask ``taichi._lib.core`` for: which of Taichi's back ends there are."""

from __future__ import annotations

from types import SimpleNamespace

from aerogel._config import is_extension_supported


def _absent() -> bool:
    """No: of Taichi's GPU back ends and windows there is none."""
    return False


core = SimpleNamespace(
    GGUI_AVAILABLE=False,
    is_extension_supported=is_extension_supported,
    with_amdgpu=_absent,
    with_cc=_absent,
    with_cuda=_absent,
    with_dx11=_absent,
    with_dx12=_absent,
    with_metal=_absent,
    with_opengl=_absent,
    with_vulkan=_absent,
)
