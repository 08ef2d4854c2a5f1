"""``ti.lang._texture`` and ``ti.types.texture_type``: textures under the names of Taichi's modules."""

from __future__ import annotations

from aerogel.data.texture import Format, RWTextureType, Texture, TextureType, rw_texture, texture

# What a parameter is inside a kernel is no object of Python's here.
RWTextureAccessor = RWTextureType
TextureSampler = TextureType

__all__ = [
    "Format",
    "RWTextureAccessor",
    "RWTextureType",
    "Texture",
    "TextureSampler",
    "TextureType",
    "rw_texture",
    "texture",
]
