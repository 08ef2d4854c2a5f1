"""The source text of a function, as its author wrote it."""

from __future__ import annotations

from typing import Any

from aerogel.errors import AerogelSyntaxError


def source_info(function: Any) -> tuple[str, int, str]:
    """Path, first line and text of a function, decorators and indentation included.

    Works wherever Python itself can find the source: files, notebooks and the interactive prompt of
    Python 3.13 (through ``linecache``).

    Raises:
        OSError: There is no source, for instance because the function was made by ``exec``.
        AerogelSyntaxError: The source is not that of a ``def``.
    """
    import inspect
    import linecache

    code = function.__code__
    path = code.co_filename
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError, IndexError):
        raise OSError(
            f"the source of `{function.__name__}` cannot be found ({path}): kernels are read from their source, "
            "so define them in a file, in a notebook cell, or register the text with linecache"
        ) from None
    linecache.checkcache(path)
    text = "".join(lines)
    if "def " not in text:
        raise AerogelSyntaxError(
            f"the source of `{function.__name__}` is not a function definition; a lambda cannot be a kernel"
        )
    return path, max(first, 1), text
