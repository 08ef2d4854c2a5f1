"""Textures as operands of tensors: kernels that read them at the rows of a tensor, also in programs."""

import functools
from typing import Any

import aerogel as ti
from aerogel.tensor._unknown import demand, differ


@functools.cache
def _sampler(ndim: int) -> Any:
    place, color = ti.types.vector(ndim, ti.f32), ti.types.vector(4, ti.f32)

    @ti.kernel
    def sample(tex: ti.types.texture(ndim), at: ti.types.ndarray(place, 1), out: ti.types.ndarray(color, 1)):  # type: ignore[valid-type]
        for i in at:
            out[i] = tex.sample_lod(at[i], 0.0)

    return sample


@functools.cache
def _fetcher(ndim: int) -> Any:
    index, color = ti.types.vector(ndim, ti.i32), ti.types.vector(4, ti.f32)

    @ti.kernel
    def fetch(
        tex: ti.types.texture(ndim),  # type: ignore[valid-type]
        at: ti.types.ndarray(index, 1),  # type: ignore[valid-type]
        out: ti.types.ndarray(color, 1),  # type: ignore[valid-type]
        lod: ti.i32,
    ):
        for i in at:
            out[i] = tex.fetch(at[i], lod)

    return fetch


def read(texture: Any, at: Any, what: str, lod: int = 0) -> Any:
    """The colours of a texture at coordinates (``sample_lod``), or at indices (``fetch``), along the last axis."""
    tensor, n, is_sampled = ti.tensor.asarray(at), texture.num_dims, what == "sample_lod"
    if tensor.ndim == 0 or differ(tensor.shape[-1], n):
        raise ValueError(
            f"`{what}`: the last axis has the {n} coordinates of a point in the texture, and the shape is "
            f"{tensor.shape}"
        )
    if not isinstance(tensor.shape[-1], int):
        demand(tensor, tensor.ndim - 1, n)
    if tensor.dtype.is_float != is_sampled:
        raise TypeError(f"`{what}` takes {'floats' if is_sampled else 'integers'}, not {tensor.dtype}")
    if tensor.dtype in (ti.i64, ti.u32, ti.u64):
        # Indices of more bits are outside, too.
        tensor = ti.tensor.clip(tensor, -1 if tensor.dtype.is_signed_int else 0, 2**31 - 1)
    places = tensor.astype(ti.f32 if is_sampled else ti.i32).reshape(-1, n)
    colors = ti.tensor.zeros((places.shape[0], 4), dtype=ti.f32)
    if is_sampled:
        _sampler(n)(texture, places, colors)
    else:
        _fetcher(n)(texture, places, colors, lod)
    return colors.reshape(*tensor.shape[:-1], 4)
