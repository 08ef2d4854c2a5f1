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
    def fetch(tex: ti.types.texture(ndim), at: ti.types.ndarray(index, 1), out: ti.types.ndarray(color, 1)):  # type: ignore[valid-type]
        for i in at:
            out[i] = tex.fetch(at[i], 0)

    return fetch


def read(texture: Any, at: Any, what: str) -> Any:
    """The colours of a texture at coordinates (``sample_lod``), or at indices (``fetch``), along the last axis."""
    tensor, n, is_sampled = ti.tensor.asarray(at), texture.num_dims, what == "sample_lod"
    if tensor.ndim == 0 or differ(tensor.shape[-1], n):
        raise ValueError(
            f"`{what}`: the last axis has the {n} coordinates of a place in the texture, and the shape is "
            f"{tensor.shape}"
        )
    if not isinstance(tensor.shape[-1], int):
        demand(tensor, tensor.ndim - 1, n)
    if tensor.dtype.is_float != is_sampled:
        raise TypeError(f"`{what}` takes {'floats' if is_sampled else 'integers'}, not {tensor.dtype}")
    places = tensor.astype(ti.f32 if is_sampled else ti.i32).reshape(-1, n)
    colors = ti.tensor.zeros((places.shape[0], 4), dtype=ti.f32)
    (_sampler if is_sampled else _fetcher)(n)(texture, places, colors)
    return colors.reshape(*tensor.shape[:-1], 4)
