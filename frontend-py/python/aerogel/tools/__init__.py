"""``ti.tools``: reading and writing images, particles and sparse fields."""

from aerogel.tools.image import imread, imresize, imshow, imwrite
from aerogel.tools.nanovdb import export_nanovdb, import_nanovdb
from aerogel.tools.ply import PLYWriter
from aerogel.tools.sparse import load_sparse, save_sparse

__all__ = [
    "PLYWriter",
    "export_nanovdb",
    "import_nanovdb",
    "imread",
    "imresize",
    "imshow",
    "imwrite",
    "load_sparse",
    "save_sparse",
]
