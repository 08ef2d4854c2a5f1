"""``python -m aerogel cache``: compiled kernels on disk."""

from __future__ import annotations

import contextlib
import os

from aerogel import _config


def _files() -> tuple[str, list[str], int]:
    """The folder, the files of compiled kernels in it, and how many bytes they have."""
    folder = _config.current_cache_folder()
    names, size = [], 0
    # Another process may remove kernels at the same time, and the folder.
    with contextlib.suppress(FileNotFoundError):
        names = os.listdir(folder)
    files = [os.path.join(folder, name) for name in sorted(names) if name.endswith(".kernel")]
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            size += os.path.getsize(file)
    return folder, files, size


def describe() -> str:
    """Where the compiled kernels are, how many, and their size."""
    folder, files, size = _files()
    return f"{folder}: {len(files)} compiled kernels, {size / 1e6:.1f} MB"


def clean() -> str:
    """Removes them; says what there was."""
    text, files = describe(), _files()[1]
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            os.remove(file)
    return text + (", removed" if files else "")
