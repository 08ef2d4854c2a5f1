"""``ti.tools``: images, videos, meshes and grids as files, sparse fields, and progress bars."""

from aerogel.tools._progress import progress
from aerogel.tools.image import imread, imresize, imshow, imwrite
from aerogel.tools.nanovdb import export_nanovdb, import_nanovdb
from aerogel.tools.ply import PLYWriter
from aerogel.tools.sparse import load_sparse, save_sparse
from aerogel.tools.video import VideoManager
from aerogel.tools.vtk import write_vtk

__all__ = [
    "PLYWriter",
    "VideoManager",
    "export_nanovdb",
    "import_nanovdb",
    "imread",
    "imresize",
    "imshow",
    "imwrite",
    "load_sparse",
    "progress",
    "save_sparse",
    "write_vtk",
]
