"""Finding a BLAS by name: OpenBLAS as packages of Python have it, or one of the system."""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import importlib
import importlib.util
import os
from typing import TYPE_CHECKING

from aerogel.errors import AerogelRuntimeError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Prefix and suffix of the names of functions, and whether integers have 64 bits.
_NAMES = [("scipy_cblas_", "64_", True), ("cblas_", "64_", True), ("scipy_cblas_", "", False), ("cblas_", "", False)]

#: What is loaded stays loaded, since compiled plans call it.
_loaded: list[ctypes.CDLL] = []


def _candidates() -> Iterator[str]:
    """The paths and names of libraries that may have the functions."""
    named = os.environ.get("AEROGEL_BLAS")
    if named:
        yield named
        return
    for package in ("scipy_openblas64", "scipy_openblas32", "numpy", "scipy"):
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.origin:
            continue
        folder = os.path.dirname(spec.origin)
        for place in (os.path.join(folder, "lib"), folder + ".libs", os.path.join(folder, ".dylibs")):
            yield from sorted(glob.glob(os.path.join(place, "*openblas*")))
    for name in ("openblas", "mkl_rt", "blis", "cblas", "Accelerate"):
        found = ctypes.util.find_library(name)
        if found:
            yield found


def functions() -> tuple[int, int, bool]:
    """The addresses of ``cblas_sgemm`` and ``cblas_dgemm``, and whether their integers have 64 bits.

    Raises:
        AerogelRuntimeError: No library has them; the message says which were tried.
    """
    tried = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as e:
            tried.append(f"{path} ({e})")
            continue
        for prefix, suffix, is_long in _NAMES:
            both = [getattr(library, f"{prefix}{kind}gemm{suffix}", None) for kind in "sd"]
            if all(both):
                _loaded.append(library)
                single, double = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in both if f is not None)
                return single, double, is_long
        tried.append(f"{path} (no cblas_sgemm)")
    looked = f"; tried {', '.join(tried)}" if tried else ""
    raise AerogelRuntimeError(
        "the back end `blas` needs a library with `cblas_sgemm` and `cblas_dgemm`, and found none: install the package "
        f"`scipy-openblas64`, or set AEROGEL_BLAS to the path of a library{looked}"
    )
