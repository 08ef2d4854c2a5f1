"""``ti.experimental``: names that Taichi keeps here."""

import warnings

from aerogel.kernel import F
from aerogel.kernel import real_func as _real_func


def real_func(fn: F) -> F:
    """``ti.real_func`` under its old name."""
    warnings.warn(
        "ti.experimental.real_func is deprecated because it is no longer experimental. Use ti.real_func instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return _real_func(fn)


__all__ = ["real_func"]
