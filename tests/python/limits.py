"""Limits of the system, for a while."""

import contextlib
import resource


@contextlib.contextmanager
def small_files():
    """Files cannot grow beyond 1000 bytes, as on a full disk. That goes for what the tests print, too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
