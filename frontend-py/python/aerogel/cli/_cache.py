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


# What stands in a file before the name of the device: `compiler/src/cache.rs` describes it.
_MAGIC = b"aerogel kernel 2\n"
_HASHES = 64


def _device(file: str) -> str | None:
    """The GPU that a kernel was compiled for: empty for CPUs, and None if the file does not name it."""
    with contextlib.suppress(OSError), open(file, "rb") as f:
        if f.read(len(_MAGIC)) == _MAGIC:
            f.seek(_HASHES, os.SEEK_CUR)
            return f.readline(200).decode(errors="replace").rstrip("\n")
    return None


def _of_cards(files: list[str]) -> str:
    """How many kernels there are for each GPU, and their size, a line each."""
    cards: dict[str, list[int]] = {}
    for file in files:
        if card := _device(file):
            with contextlib.suppress(FileNotFoundError):
                cards.setdefault(card, []).append(os.path.getsize(file))
    lines = (f"\n  {len(sizes)} for {card}, {sum(sizes) / 1e6:.1f} MB" for card, sizes in sorted(cards.items()))
    return "".join(lines)


def describe() -> str:
    """Where the compiled kernels are, how many, and their size; the same for the kernels of each GPU."""
    folder, files, size = _files()
    return f"{folder}: {len(files)} compiled kernels, {size / 1e6:.1f} MB{_of_cards(files)}"


def clean() -> str:
    """Removes them; says what there was."""
    text, _, cards = describe().partition("\n")
    files = _files()[1]
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            os.remove(file)
    return text + (", removed" if files else "") + (f"\n{cards}" if cards else "")
