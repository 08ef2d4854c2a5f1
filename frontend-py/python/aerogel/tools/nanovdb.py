"""Sparse volumes as NanoVDB files, by way of NVIDIA Warp (``pip install warp-lang``)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from aerogel.data.field import NumericField


def export_nanovdb(x: NumericField, filename: str | os.PathLike[str], voxel_size: float = 1.0) -> None:
    """Writes the active elements of a field as the voxels of a NanoVDB file with a grid of floats.

    NanoVDB keeps voxels in blocks of 8 x 8 x 8; those of a block that are not active here are in the
    file with the value 0.

    Args:
        x: A field of ``ti.f32`` with three axes. Its indices become those of voxels.
        filename: The file, which other programs expect to end in ``.nvdb``.
        voxel_size: The edge of a voxel.
    """
    _check(x)
    wp, store, _ = _warp()
    coordinates, values = x.active_cells()
    if not len(coordinates):
        raise ValueError("a NanoVDB file without active voxels cannot be written")
    # One voxel of each block names it.
    blocks = np.unique(coordinates >> 3, axis=0) << 3
    volume = wp.Volume.allocate_by_tiles(
        wp.array(blocks, dtype=wp.int32, device="cpu"),
        voxel_size=voxel_size,
        bg_value=0.0,
        translation=(0.0, 0.0, 0.0),
        device="cpu",
    )
    points = wp.array(coordinates, dtype=wp.vec3i, device="cpu")
    inputs = [volume.id, points, wp.array(values, dtype=wp.float32, device="cpu")]
    wp.launch(store, dim=len(values), inputs=inputs, device="cpu")
    volume.save_to_nvdb(os.fspath(filename), codec="zip")


def import_nanovdb(filename: str | os.PathLike[str], x: NumericField) -> None:
    """Makes the elements of a field active that are voxels of a NanoVDB file other than 0, and sets them.

    Args:
        filename: The file, of one grid of floats.
        x: A field of ``ti.f32`` with three axes; a voxel outside it raises IndexError. Elements that
            are active already stay so.
    """
    _check(x)
    wp, _, load = _warp()
    with open(filename, "rb") as file:
        try:
            volume = wp.Volume.load_from_nvdb(file, device="cpu")
        except Exception as e:
            raise ValueError(f"{os.fspath(filename)} cannot be read as NanoVDB: {e}") from None
    if volume.dtype is not wp.float32:
        raise ValueError(f"{os.fspath(filename)} has no grid of floats but of {volume.dtype}")
    points = wp.array(volume.get_voxels().numpy(), dtype=wp.vec3i, device="cpu")
    values = wp.empty(len(points), dtype=wp.float32, device="cpu")
    wp.launch(load, dim=len(points), inputs=[volume.id, points, values], device="cpu")
    found = values.numpy()
    x.set_cells(points.numpy()[found != 0], found[found != 0])


def _check(x: Any) -> None:
    if not isinstance(x, NumericField) or str(x.dtype) != "f32" or x._array_shape() != x.shape or len(x.shape) != 3:
        raise TypeError("NanoVDB files are made from and loaded into fields of ti.f32 with three axes")


_kernels: list[Any] = []


def _warp() -> tuple[Any, Any, Any]:
    """Warp, and its kernels that write and read voxels."""
    if not _kernels:
        try:
            import warp as wp
        except ImportError:
            raise ImportError("NanoVDB files need NVIDIA Warp: pip install warp-lang") from None
        wp.init()

        def store(volume: wp.uint64, points: wp.array(dtype=wp.vec3i), values: wp.array(dtype=wp.float32)):
            n = wp.tid()
            at = points[n]
            wp.volume_store_f(volume, at[0], at[1], at[2], values[n])

        def load(volume: wp.uint64, points: wp.array(dtype=wp.vec3i), values: wp.array(dtype=wp.float32)):
            n = wp.tid()
            at = points[n]
            values[n] = wp.volume_lookup_f(volume, at[0], at[1], at[2])

        # Warp looks at the types themselves, not at their text.
        for function in (store, load):
            vectors, numbers = wp.array(dtype=wp.vec3i), wp.array(dtype=wp.float32)
            function.__annotations__ = {"volume": wp.uint64, "points": vectors, "values": numbers}
        _kernels[:] = [wp, wp.kernel(store), wp.kernel(load)]
    return _kernels[0], _kernels[1], _kernels[2]
