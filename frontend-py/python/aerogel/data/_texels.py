"""What kernels do with textures: functions of the language over the array of texels, with the format known."""

from __future__ import annotations

from typing import Any

import aerogel as ti

# Parameters have no types: the texels are an array, the format is known while compiling, and the frontend has seen
# that there are as many coordinates as the texture has axes.


@ti.func
def _linear(c: Any) -> Any:
    """A number of sRGB as a part of the light."""
    x = (c + ti.f32(0.055)) / ti.f32(1.055)
    return ti.select(c <= ti.f32(0.04045), c / ti.f32(12.92), ti.pow(x, ti.f32(2.4)))


@ti.func
def _decoded(fmt: ti.template(), raw: Any, k: ti.template()) -> Any:
    """Channel ``k`` as a number: what is normalised goes from 0 to 1."""
    c = ti.cast(raw, ti.f32)
    if ti.static(fmt._kind in ("unorm", "srgb")):
        c = c / ti.f32(fmt._largest)
    if ti.static(fmt._kind == "srgb" and k < 3):
        c = _linear(c)
    return c


@ti.func
def _encoded(fmt: ti.template(), value: Any) -> Any:
    """A number as a channel has it; what it cannot hold becomes the nearest that it can."""
    if ti.static(fmt._kind == "unorm"):
        part = ti.min(ti.max(ti.cast(value, ti.f32), ti.f32(0)), ti.f32(1))
        return ti.cast(ti.cast(part * ti.f32(fmt._largest) + ti.f32(0.5), ti.i32), fmt._dtype)
    elif ti.static(fmt._kind == "float"):
        return ti.cast(value, fmt._dtype)
    else:
        # An f32 has not all integers of 32 bits.
        wide = ti.static(ti.f64 if fmt._bits == 32 else ti.f32)
        within = ti.min(ti.max(ti.cast(value, wide), wide(fmt._smallest)), wide(fmt._largest))
        return ti.cast(ti.cast(within, ti.i64), fmt._dtype)


@ti.func
def _read(texels: ti.template(), fmt: ti.template(), at: Any) -> Any:
    """A texel that there is."""
    color = ti.Vector([0, 0, 0, 1], ti.f32)
    texel = texels[at]
    for k in ti.static(range(fmt._channels)):
        color[k] = _decoded(fmt, texel[k], k)
    return color


@ti.func
def _is_inside(texels: ti.template(), at: Any) -> Any:
    inside = ti.cast(1, ti.u1)
    for axis in ti.static(range(len(texels.shape))):
        inside = inside & (at[axis] >= 0) & (at[axis] < texels.shape[axis])
    return inside


@ti.func
def load(texels: ti.template(), fmt: ti.template(), index: Any) -> Any:
    """The texel with an index; zeros where there is none."""
    color = ti.Vector([0, 0, 0, 0 if ti.static(fmt._channels == 4) else 1], ti.f32)
    if _is_inside(texels, index):
        color = _read(texels, fmt, index)
    return color


@ti.func
def fetch(texels: ti.template(), fmt: ti.template(), index: Any, lod: Any) -> Any:
    """The texel with an index, of the only level that there is."""
    color = ti.Vector([0, 0, 0, 0 if ti.static(fmt._channels == 4) else 1], ti.f32)
    if _is_inside(texels, index) & (lod == 0):
        color = _read(texels, fmt, index)
    return color


@ti.func
def store(texels: ti.template(), fmt: ti.template(), index: Any, value: Any) -> None:
    """Sets the texel with an index, if there is one."""
    if _is_inside(texels, index):
        for k in ti.static(range(fmt._channels)):
            texels[index][k] = _encoded(fmt, value[k])


@ti.func
def _wrapped(at: Any, extent: Any) -> Any:
    """An index that is one too low or too high at most, as one that there is."""
    around = ti.select(at < 0, extent - 1, ti.select(at >= extent, 0, at))
    # NaN and infinity become any integer.
    return ti.min(ti.max(around, 0), extent - 1)


@ti.func
def sample_lod(texels: ti.template(), fmt: ti.template(), uv: Any, lod: Any) -> Any:
    """The colour at a place, between texels that are nearest to it; the texture repeats from 1 on, and below 0."""
    n = ti.static(len(texels.shape))
    low, part = ti.Vector.zero(ti.i32, n), ti.Vector.zero(ti.f32, n)
    for axis in ti.static(range(n)):
        extent = texels.shape[axis]
        place = (uv[axis] - ti.floor(uv[axis])) * ti.cast(extent, ti.f32)
        if ti.static(fmt._kind != "int"):
            place -= ti.f32(0.5)
        first = ti.floor(place)
        part[axis] = place - first
        low[axis] = ti.cast(first, ti.i32)
    color = ti.Vector.zero(ti.f32, 4)
    at = ti.Vector.zero(ti.i32, n)
    if ti.static(fmt._kind == "int"):
        for axis in ti.static(range(n)):
            at[axis] = _wrapped(low[axis], texels.shape[axis])
        color = _read(texels, fmt, at)
    else:
        for corner in ti.static(range(2**n)):
            weight = ti.f32(1)
            for axis in ti.static(range(n)):
                step = ti.static(corner >> axis & 1)
                at[axis] = _wrapped(low[axis] + step, texels.shape[axis])
                weight *= part[axis] if ti.static(step == 1) else ti.f32(1) - part[axis]
            color += weight * _read(texels, fmt, at)
    return color


METHODS = {"sample_lod": sample_lod, "fetch": fetch, "load": load, "store": store}
