"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import Any


def _failure(error: OSError, path: str) -> OSError:
    """The same error, naming the file that was to be written instead of the one written first."""
    if error.errno is None:
        return OSError(f"{path} cannot be written: {error}")
    return OSError(error.errno, error.strerror, path)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Gives the name of a file in the same folder to write, which takes the place of ``path`` at the end.

    The name has the same suffix. If anything fails, what was written is removed, and a file that was there before is as
    it was.

    Raises:
        OSError: Writing failed; it names ``path``.
    """
    name = os.fspath(path)
    target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):
        # A pipe or a device is written as it is; a folder fails by itself.
        yield name
        return
    folder, last = os.path.split(target)
    stem, suffix = os.path.splitext(last)
    temporary = os.path.join(folder, f".{stem}-{secrets.token_hex(4)}{suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        if error.filename in (None, temporary):
            raise _failure(error, name) from error
        raise
    finally:
        with contextlib.suppress(OSError):
            os.remove(temporary)


def write_whole(path: str | os.PathLike[str], *parts: Any, stays: bool = False) -> None:
    """Writes a file.

    Args:
        path: The file.
        parts: Its bytes, one part after the other.
        stays: Whether it must be on the disk at the end, and not only in the system's memory.

    Raises:
        OSError: It cannot be written; it names ``path``, and nothing is left behind.
    """
    with replacing(path) as temporary, open(temporary, "wb") as file:
        for part in parts:
            file.write(part)
        if stays:
            file.flush()
            os.fsync(file.fileno())
    if stays and os.name == "posix":
        # The name of the file is in its folder.
        folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
