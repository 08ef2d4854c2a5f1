"""Guards of public functions: they check the kinds that annotations state, and errors name the function.

Without a guard ``tril(x, k="a")`` ends with ``'str' object cannot be interpreted as an integer``. With it::

    TypeError: `tril`: `k` cannot be 'a': 'str' object cannot be interpreted as an integer

Modules guard the functions that they export. The functions call each other without guards, which costs nothing.
"""

from __future__ import annotations

import functools
import inspect
import pathlib
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

_PACKAGE = str(pathlib.Path(__file__).parents[1])

#: Keywords of NumPy and PyTorch, and what they are here.
KEYWORDS = {
    "dim": "axis=", "dims": "axis=", "axes": "axis=", "keepdim": "keepdims=", "ddof": "correction=",
    "unbiased": "correction=1` or `correction=0",
}  # fmt: skip


def _is_bool(value: Any) -> bool:
    # NumPy's is named `bool` or `bool_`, as its version has it.
    return isinstance(value, bool) or type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")


#: How annotations are written, what messages call that, and whether a value is of that kind.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("True or False", _is_bool),
    "int": ("an integer", lambda value: hasattr(value, "__index__")),
    "float": ("a number", lambda value: hasattr(value, "__float__") or hasattr(value, "__index__")),
    "str": ("a string", lambda value: isinstance(value, str)),
    "None": ("None", lambda value: value is None),
}


class _Parameters(NamedTuple):
    """What a guard knows of a function."""

    name: str
    names: tuple[str, ...]
    #: Those of ``names`` that positions have.
    positional: tuple[str, ...]
    #: The kinds of those that are checked.
    kinds: dict[str, tuple[str, ...]]
    #: The first position of a checked one.
    first: int


def _kinds(annotation: Any) -> tuple[str, ...]:
    """The kinds of an annotation, if it has no others."""
    if not isinstance(annotation, str):
        return ()
    parts = tuple(part.strip().removeprefix("builtins.") for part in annotation.split("|"))
    return parts if all(part in _KINDS for part in parts) else ()


def _parameters(function: Any) -> _Parameters | None:
    own = inspect.unwrap(function)
    code = getattr(own, "__code__", None)
    if code is None:
        return None
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    annotations = own.__annotations__
    kinds = {name: found for name in names if (found := _kinds(annotations.get(name)))}
    positional = names[: code.co_argcount]
    # Positions behind the last one are of `*args`, which are not checked.
    first = min((k for k, name in enumerate(positional) if name in kinds), default=sys.maxsize)
    return _Parameters(function.__name__, names, positional, kinds, first)


def _check(of: _Parameters, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for name, value in (*zip(of.positional, args), *kwargs.items()):
        kinds = of.kinds.get(name)
        if kinds is not None and not any(_KINDS[kind][1](value) for kind in kinds):
            wanted = " or ".join(_KINDS[kind][0] for kind in kinds)
            raise TypeError(f"`{of.name}`: `{name}` takes {wanted}, not {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, (str, int, float, complex, type(None))) or isinstance(value, (list, dict)) and not value:
        return repr(value)[:60]
    return f"an object of type `{type(value).__name__}`"


def _is_odd(value: Any) -> bool:
    """Whether a value is of no kind that a function computes with."""
    known = "__array__ __float__ __index__ __complex__ __len__ __iter__ __call__ __dlpack__ _native dtype".split()
    return isinstance(value, (dict, set, str)) or not any(hasattr(value, name) for name in known)


def _odd_argument(of: _Parameters, function: Any, given: dict[str, Any], text: str) -> str | None:
    """The name of the argument that an error is about, if one is of a kind that the function does not take."""
    defaults = {p.name: p.default for p in inspect.signature(function).parameters.values()}

    def is_odd(name: str, value: Any) -> bool:
        if name in of.kinds:
            # One of several strings.
            return isinstance(value, str) and (repr(value) in text or f'"{value}"' in text)
        default = defaults.get(name)
        return value is not default and (value is None or _is_odd(value)) and not type(value) is type(default) is str

    def is_no_integer(name: str, value: Any) -> bool:
        return type(defaults.get(name)) is int and (isinstance(value, list) or type(value) is float)

    return next((n for test in (is_odd, is_no_integer) for n, value in given.items() if test(n, value)), None)


def _is_of_others(error: BaseException) -> bool:
    """Whether a function of the user's, which ours called, raised an error."""
    at = error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if not file.startswith((_PACKAGE, "<frozen")) and "numpy" not in file:
            return True
        at = at.tb_next
    return False


def _explain(error: Exception, of: _Parameters, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Makes an error name the function, and the argument if it is known.

    Raises:
        TypeError: In place of an AttributeError and others that Python raises by itself.
    """
    for name in kwargs:
        if isinstance(error, TypeError) and name not in of.names and name in KEYWORDS and "axis" in of.names:
            raise TypeError(f"`{of.name}` has no keyword `{name}`: write `{KEYWORDS[name]}`") from None
    text = str(error.args[0]) if error.args else ""
    is_named = f"`{of.name}" in text or f"{of.name}(" in text or any(f"`{name}`" in text for name in of.names)
    if is_named or _is_of_others(error):
        return
    given = {**dict(zip(of.positional, args)), **kwargs}
    odd = _odd_argument(of, function, given, text)
    if odd is not None:
        text = f"`{odd}` cannot be {_shown(given[odd])}: {text}"
    elif not isinstance(error, TypeError):
        # It may be of a computation that was recorded elsewhere and is only now evaluated.
        return
    if not isinstance(error, (TypeError, ValueError, IndexError)):
        raise TypeError(f"`{of.name}`: {text}") from error
    error.args = (f"`{of.name}`: {text}", *error.args[1:])


@functools.cache
def guarded(function: Any) -> Any:
    """The function with a guard; one function has one."""
    of = _parameters(function)
    if of is None:
        return function
    first = of.first

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) > first:
            _check(of, args, kwargs)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            _explain(error, of, function, args, kwargs)
            raise

    called._aerogel_guard = True  # type: ignore[attr-defined]
    return called


def _is_public(name: str, function: Any) -> bool:
    is_function = isinstance(function, types.FunctionType) and not hasattr(function, "_aerogel_guard")
    return is_function and not name.startswith("_")


def guard(namespace: dict[str, Any]) -> None:
    """Guards the public functions of a module."""
    names: Iterable[str] = namespace.get("__all__") or list(namespace)
    for name in names:
        if _is_public(name, namespace[name]):
            namespace[name] = guarded(namespace[name])


def guard_methods(cls: type) -> None:
    """Guards the public methods of a class that have an argument."""
    for name, method in list(vars(cls).items()):
        if _is_public(name, method):
            code = inspect.unwrap(method).__code__
            if code.co_argcount + code.co_kwonlyargcount > 1 or code.co_flags & inspect.CO_VARARGS:
                setattr(cls, name, guarded(method))
