"""``ti.tools``: reading and writing images and particles."""

from aerogel.tools.image import imread, imresize, imshow, imwrite
from aerogel.tools.ply import PLYWriter

__all__ = ["PLYWriter", "imread", "imresize", "imshow", "imwrite"]
