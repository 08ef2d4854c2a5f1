"""``ti.tools``: images, videos, meshes and grids as files, the state of programs, and progress bars."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from aerogel.tools._checkpoint import checkpoint, resume
from aerogel.tools._progress import progress
from aerogel.tools.gif import write_gif
from aerogel.tools.image import imread, imresize, imshow, imwrite
from aerogel.tools.nanovdb import export_nanovdb, import_nanovdb
from aerogel.tools.ply import PLYWriter
from aerogel.tools.sparse import load_sparse, save_sparse
from aerogel.tools.video import VideoManager
from aerogel.tools.vtk import VTKSeries, write_vtk, write_vtk_mesh

if TYPE_CHECKING:
    from aerogel._saving import load, save
else:

    def __getattr__(name: str) -> Any:
        """``save`` and ``load`` are imported at their first use, since they import tensors."""
        if name in ("load", "save"):
            return getattr(importlib.import_module("aerogel._saving"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "PLYWriter",
    "VTKSeries",
    "VideoManager",
    "checkpoint",
    "export_nanovdb",
    "import_nanovdb",
    "imread",
    "imresize",
    "imshow",
    "imwrite",
    "load",
    "load_sparse",
    "progress",
    "resume",
    "save",
    "save_sparse",
    "write_gif",
    "write_vtk",
    "write_vtk_mesh",
]
