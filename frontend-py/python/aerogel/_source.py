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


def is_users(function: Any) -> bool:
    """Whether this is a function that the user wrote with ``def``, rather than one of Python's or of this package."""
    import sysconfig
    import types
    from pathlib import Path

    if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>":
        return False
    path = Path(function.__code__.co_filename)
    is_installed = "site-packages" in path.parts
    of_python = not is_installed and path.is_relative_to(sysconfig.get_path("stdlib"))
    return not of_python and not path.is_relative_to(Path(__file__).parent)
