"""The lines of source files as they were imported: a file that is edited afterwards changes nothing.

A decorator reads the file while it is imported. Of other functions the file is read when they are needed, and what
Python has compiled says whether it is still the same.
"""

from __future__ import annotations

import linecache
import os
import types
from typing import Any

from aerogel.errors import AerogelCompilationError

_LIBRARY = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: The attribute of a decorated function: its origin, and the lines of its file as they were read then. A pickle of the
#: function by value has it.
_LINES = "_aerogel_lines"
#: The last lines of each file, and its size and time then.
_of_files: dict[str, tuple[Any, list[str]]] = {}
#: The functions of a text, by where it is from.
_compiled: dict[tuple[str, int], tuple[list[str], list[types.CodeType] | None]] = {}


def note(function: Any) -> None:
    """Reads the file of a function that is being defined, if it has not been read."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    # Methods of an object have no attributes of their own.
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None or code.co_filename.startswith(_LIBRARY) or _noted(function) is not None:
        return
    path = code.co_filename
    try:
        stat = os.stat(path)
    except OSError:
        # Cells of notebooks and texts that `linecache` is given have no file.
        if lines := linecache.getlines(path, function.__globals__):
            setattr(function, _LINES, (_origin(code), lines))
        return
    state = (stat.st_mtime_ns, stat.st_size)
    known = _of_files.get(path)
    if known is None or known[0] != state:
        linecache.checkcache(path)
        known = _of_files[path] = (state, linecache.getlines(path, function.__globals__))
    setattr(function, _LINES, (_origin(code), known[1]))


def _origin(code: types.CodeType) -> tuple[str, int, bytes]:
    # Not the file: what packages pickle by value has another one where it is unpickled.
    return code.co_name, code.co_firstlineno, code.co_code


def _noted(function: Any) -> list[str] | None:
    """The lines that ``note`` has read for a function. `functools.wraps` copies attributes of other functions to it."""
    function = getattr(function, "__func__", function)
    origin, lines = getattr(function, _LINES, (None, None))
    return lines if origin == _origin(function.__code__) else None


def lines_of(function: Any) -> list[str]:
    """The lines of the file that a function is from, as Python compiled it.

    Raises:
        OSError: There are none.
        AerogelCompilationError: The file is another one now.
    """
    noted = _noted(function)
    return noted if noted is not None else lines_of_code(function.__code__, function.__globals__)


def lines_of_code(code: types.CodeType, scope: dict[str, Any]) -> list[str]:
    """As ``lines_of``, of a function's code and its global names."""
    path = code.co_filename
    known = _of_files.get(path)
    linecache.checkcache(path)
    lines = linecache.getlines(path, scope)
    if not lines and known is None:
        raise OSError("no source")
    if path.startswith(_LIBRARY):
        return lines
    for text in ([known[1]] if known is not None else []) + [lines]:
        if text and _is_of(text, code, scope):
            return text
    raise AerogelCompilationError(
        f"`{code.co_name}` ({path}:{code.co_firstlineno}) was edited after it was imported: reload the module or "
        "restart Python"
    )


def _is_of(lines: list[str], code: types.CodeType, scope: dict[str, Any]) -> bool:
    """Whether Python may have made a function of these lines."""
    key = (code.co_filename, id(lines))
    if key not in _compiled or _compiled[key][0] is not lines:
        _compiled[key] = (lines, _functions("".join(lines), code.co_filename))
    functions = _compiled[key][1]
    if functions is None:
        return False
    found = [c for c in functions if (c.co_name, c.co_firstlineno) == (code.co_name, code.co_firstlineno)]
    if any(_is_same(c, code) for c in found):
        return True
    # What changes programs while they are imported, as pytest does with `assert`, adds to them.
    return not _is_plain(scope) and any(_is_within(c, code) for c in found)


def _functions(text: str, path: str) -> list[types.CodeType] | None:
    """All functions of a text; none if it is no program."""
    try:
        todo = [compile(text, path, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return None
    out = []
    while todo:
        code = todo.pop()
        out.append(code)
        todo += _inner(code)
    return out


def _inner(code: types.CodeType) -> list[types.CodeType]:
    return [c for c in code.co_consts if isinstance(c, types.CodeType)]


def _constants(code: types.CodeType) -> list[Any]:
    return [c for c in code.co_consts if not isinstance(c, types.CodeType)]


def _is_same(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether two functions do the same; lines are those of their texts."""
    return (
        a.co_code == b.co_code
        and a.co_names == b.co_names
        and a.co_varnames == b.co_varnames
        and repr(_constants(a)) == repr(_constants(b))
        and len(_inner(a)) == len(_inner(b))
        and all(map(_is_same, _inner(a), _inner(b)))
    )


def _is_within(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether a function has the parameters, the names and the constants of another."""
    constants = set(map(repr, _constants(b)))
    return (
        a.co_varnames[: a.co_argcount] == b.co_varnames[: b.co_argcount]
        and set(a.co_names + a.co_varnames) <= set(b.co_names + b.co_varnames + b.co_cellvars)
        and set(map(repr, _constants(a))) <= constants
    )


def _is_plain(scope: dict[str, Any]) -> bool:
    """Whether a module has been loaded by Python's own means, which compile its text as it is."""
    from importlib.machinery import SourceFileLoader

    spec = scope.get("__spec__")
    loader = scope.get("__loader__") if spec is None else spec.loader
    return type(loader) is SourceFileLoader
