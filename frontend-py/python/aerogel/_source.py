"""The source text of a function, as its author wrote it."""

from __future__ import annotations

import functools
import os
from typing import Any

from aerogel._notebook import cell_name
from aerogel._source_lines import lines_of
from aerogel.errors import AerogelSyntaxError, AerogelTypeError


def source_info(function: Any) -> tuple[str, int, str]:
    """Path, first line and text of a function, decorators and indentation included; in a notebook the name of the cell.

    Works wherever Python itself can find the source: files, notebooks and the interactive prompt of
    Python 3.13 (through ``linecache``).

    Raises:
        OSError: There is no source, for instance because the function was made by ``exec``.
        AerogelSyntaxError: The source is not that of a ``def``.
        AerogelCompilationError: The file has been edited since it was imported.
    """
    import inspect

    written = inspect.unwrap(function)
    path, first = written.__code__.co_filename, written.__code__.co_firstlineno
    try:
        lines = lines_of(written)
        block = inspect.getblock(lines[first - 1 :])
        if not block:
            raise OSError
    except OSError:
        raise OSError(
            f"the source of `{function.__name__}` cannot be found ({path}): kernels are read from their source, "
            "so define them in a file, in a notebook cell, or register the text with linecache"
        ) from None
    if function.__name__ == "<lambda>":
        return cell_name(path), *_definition(function, "".join(lines))
    text = "".join(block)
    if "def " not in text:
        raise AerogelSyntaxError(f"the source of `{function.__name__}` is not a function definition")
    return cell_name(path), max(first, 1), text


def _definition(function: Any, file: str) -> tuple[int, str]:
    """A lambda as a ``def``: its first line and its text, in which the expression stands where the file has it."""
    import ast

    code = function.__code__
    names = code.co_varnames
    found = [
        node
        for node in ast.walk(ast.parse(file))
        if isinstance(node, ast.Lambda)
        and node.lineno == code.co_firstlineno
        and tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args)) == names[: code.co_argcount]
    ]
    if len(found) > 1 and hasattr(code, "co_positions"):
        # Several in one line that take the same parameters: Python 3.11 says where the code is from.
        spans = [((p[0], p[2]), (p[1], p[3])) for p in code.co_positions() if None not in p and p[2] != p[3]]
        first, last = min(lo for lo, _ in spans), max(hi for _, hi in spans)
        found = [node for node in found if _begin(node.body) <= first and last <= _end(node.body)][-1:]
    if len(found) != 1:
        raise AerogelSyntaxError(
            f"the source of the lambda in line {code.co_firstlineno} of {code.co_filename} cannot be distinguished "
            "from others: define it with `def`"
        )
    (node,) = found
    indent = " " * max(node.body.col_offset - len("return ("), 1)
    body = ast.get_source_segment(file, node.body)
    text = f"def _lambda({ast.unparse(node.args)}):\n{indent}return ({body}\n{indent})\n"
    return max(node.body.lineno - 1, 1), text


def _begin(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def is_users(function: Any) -> bool:
    """Whether this is a function that the user wrote, rather than one of Python's or of this package."""
    import sysconfig
    import types
    from pathlib import Path

    if not isinstance(function, types.FunctionType):
        return False
    path = Path(function.__code__.co_filename)
    is_installed = "site-packages" in path.parts
    of_python = not is_installed and path.is_relative_to(sysconfig.get_path("stdlib"))
    return not of_python and not path.is_relative_to(Path(__file__).parent)


def unsteady(function: Any) -> str | None:
    """The name of a function that may give something else each time, as those of ``random`` and ``time``, or be the
    user's and do anything; none for what gives the same for the same arguments."""
    if isinstance(function, type):
        return None
    inner = getattr(function, "__func__", function)
    name = getattr(function, "__qualname__", None) or type(function).__name__
    if is_users(inner):
        return name
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or type(owner).__module__
    clocks = ("random", "_random", "time", "secrets", "numpy.random")
    # Data that the kernel sees as they were.
    reads = name.rpartition(".")[2] in _READS and str(type(owner).__module__).startswith("aerogel.data")
    is_clock = any(module == clock or module.startswith(f"{clock}.") for clock in clocks)
    # Files, and what changes a list of Python's that the kernel sees as it was.
    is_open = function is open or function is input
    changes = isinstance(owner, (list, dict, set)) and name.rpartition(".")[2] in _CHANGES
    return name if is_clock or is_open or changes or reads else None


_READS = frozenset("to_numpy to_torch to_paddle active_cells occupancy".split())
_CHANGES = frozenset("append extend insert pop remove clear sort reverse add discard update setdefault popitem".split())


def called_by(object_: Any) -> tuple[Any, list[Any], dict[str, Any]] | None:
    """What a ``functools.partial`` or an object of a class with ``__call__`` calls, with the arguments it has."""
    import functools

    if isinstance(object_, functools.partial):
        return object_.func, list(object_.args), object_.keywords
    method = type(object_).__call__ if callable(object_) else None
    if is_users(getattr(method, "__aerogel_func__", method)):
        return object_.__call__, [], {}
    return None


Named = list[tuple[str, Any]]


def class_parts(cls: type) -> tuple[str, Named, Named, Any, list[tuple[str, bool, Any]]] | None:
    """What a kernel needs to make objects of a user's class: name, methods, properties, ``__init__``, and instead of
    that, for a dataclass of Python's, the fields with their default values. None for a class that is not the user's."""
    import dataclasses
    import inspect

    methods, properties = [], []
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        if isinstance(found, (property, functools.cached_property)):
            getter = found.fget if isinstance(found, property) else found.func
            if getter is not None:
                properties.append((name, getattr(getter, "__aerogel_func__", getter)))
            continue
        function: Any = getattr(found, "__aerogel_func__", found)
        # What `dataclasses` writes is in no file.
        if is_users(function) and (not name.startswith("__") or function.__code__.co_filename != "<string>"):
            methods.append((name, function))
    if dataclasses.is_dataclass(cls) and not is_users_init(cls):
        _expect_none_of(cls, ("__post_init__", "__new__", "__setattr__"))
        fields = []
        # In the order of the parameters.
        for field in sorted(dataclasses.fields(cls), key=lambda field: getattr(field, "kw_only", False)):
            if not field.init:
                raise AerogelTypeError(
                    f"a kernel cannot create a `{cls.__name__}`, whose `{field.name}` is no parameter: create it before"
                )
            if field.default_factory is not dataclasses.MISSING:
                fields.append((field.name, True, field.default_factory()))
            else:
                has_default = field.default is not dataclasses.MISSING
                fields.append((field.name, has_default, field.default if has_default else None))
        return cls.__name__, methods, properties, None, fields
    init = getattr(cls.__init__, "__aerogel_func__", cls.__init__)
    if not is_users(init):
        return None
    _expect_none_of(cls, ("__new__", "__setattr__"))
    return cls.__name__, methods, properties, init, []


def _expect_none_of(cls: type, names: tuple[str, ...]) -> None:
    """That a class does nothing more than ``__init__`` does when an object is made."""
    for name in names:
        function = getattr(cls, name, None)
        if function is not None and is_users(function) and function.__code__.co_filename != "<string>":
            raise AerogelTypeError(
                f"a kernel cannot create a `{cls.__name__}`, which has `{name}`: move its code into `__init__`"
            )


def is_users_init(cls: type) -> bool:
    """Whether a dataclass has an ``__init__`` that somebody wrote."""
    return getattr(cls.__init__, "__code__", None) is None or cls.__init__.__code__.co_filename != "<string>"


@functools.lru_cache
def _is_file(path: str) -> bool:
    return os.path.exists(path)


def is_in_file(function: Any) -> bool:
    """Whether a function is defined in a file; those in notebooks and at the prompt can be redefined."""
    code = getattr(getattr(function, "__aerogel_func__", function), "__code__", None)
    return code is not None and _is_file(code.co_filename)
