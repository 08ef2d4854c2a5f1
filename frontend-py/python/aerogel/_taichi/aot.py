"""``ti.aot``: in Taichi, kernels compiled ahead of time for programs without Python; here ``Kernel.export_c``."""

from __future__ import annotations

from aerogel._taichi.absent import Absent

# Programs import from modules of Taichi's package of this name.
__path__: list[str] = []

_INSTEAD = "write a kernel as C code by `kernel.export_c(folder, *args)`"

DeviceCapability = Absent("ti.DeviceCapability", _INSTEAD)
Module = Absent("ti.aot.Module", _INSTEAD)
export = Absent("ti.aot.export", _INSTEAD)
export_as = Absent("ti.aot.export_as", _INSTEAD)
