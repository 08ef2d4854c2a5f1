"""``ti.Texture`` and what belongs to it: in Taichi, images that a GPU filters. Aerogel has none."""

from __future__ import annotations

from aerogel._taichi.absent import Absent

_INSTEAD = "keep pixels in a field, and interpolate between them"

Format = Absent("ti.Format", _INSTEAD)
RWTextureAccessor = Absent("ti.lang._texture.RWTextureAccessor", _INSTEAD)
Texture = Absent("ti.Texture", _INSTEAD)
TextureSampler = Absent("ti.lang._texture.TextureSampler", _INSTEAD)
texture = Absent("ti.types.texture", _INSTEAD)
rw_texture = Absent("ti.types.rw_texture", _INSTEAD)
