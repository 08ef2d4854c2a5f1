"""``ti.aot``: in Taichi, kernels compiled ahead of time for programs without Python. Aerogel has none of it."""

from __future__ import annotations

from aerogel._taichi.absent import Absent

# Programs import from modules of Taichi's package of this name.
__path__: list[str] = []

_INSTEAD = "kernels are compiled when they are called, and cached on disk for the next process (offline_cache)"

DeviceCapability = Absent("ti.DeviceCapability", _INSTEAD)
Module = Absent("ti.aot.Module", _INSTEAD)
export = Absent("ti.aot.export", _INSTEAD)
export_as = Absent("ti.aot.export_as", _INSTEAD)
