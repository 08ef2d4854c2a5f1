"""``ti.experimental``: names that Taichi keeps here."""

from aerogel.kernel import real_func

__all__ = ["real_func"]
