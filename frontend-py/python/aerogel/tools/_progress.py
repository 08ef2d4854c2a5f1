"""How far long work has come."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from aerogel import _log

T = TypeVar("T")


def is_shown() -> bool:
    """Whether progress is shown.

    It is on a terminal, if tqdm is installed, unless messages of the level INFO are not shown
    (``ti.set_logging_level(ti.WARN)``) or the environment has ``AEROGEL_PROGRESS=0``.
    """
    if os.environ.get("AEROGEL_PROGRESS") == "0" or not _log.is_logging_effective(_log.INFO):
        return False
    return os.environ.get("AEROGEL_PROGRESS") == "1" or sys.stderr.isatty()


def bar(total: int | None, description: str) -> Any:
    """An object with ``update(n)`` and ``close()``, which draws a bar or nothing."""
    if is_shown():
        try:
            from tqdm.auto import tqdm

            return tqdm(total=total, desc=description)
        except ImportError:
            pass
    return _Silence()


class _Silence:
    def update(self, n: int = 1) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def progress(items: Iterable[T], description: str = "", total: int | None = None) -> Iterator[T]:
    """The items one after the other, while a bar says how many there have been.

    The bar is tqdm's, if it is installed; it is drawn on terminals only, and not while messages of the level INFO are
    not shown or the environment has ``AEROGEL_PROGRESS=0``.

    Args:
        items: The iterable.
        description: The text before the bar.
        total: How many there are, if the items have no length.
    """
    length = getattr(items, "__len__", None)
    shown = bar(length() if total is None and length else total, description)
    try:
        for item in items:
            yield item
            shown.update(1)
    finally:
        shown.close()
