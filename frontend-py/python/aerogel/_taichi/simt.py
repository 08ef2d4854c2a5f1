"""``ti.simt``: in Taichi, operations of a GPU's groups of threads. Aerogel has none of them."""

from __future__ import annotations

from aerogel._taichi.absent import Absent

_INSTEAD = "kernels run on the CPU, whose iterations share nothing but memory; atomic functions work on that"

block = Absent("ti.simt.block", _INSTEAD)
grid = Absent("ti.simt.grid", _INSTEAD)
subgroup = Absent("ti.simt.subgroup", _INSTEAD)
warp = Absent("ti.simt.warp", _INSTEAD)
