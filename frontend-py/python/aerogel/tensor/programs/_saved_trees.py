"""Signatures of programs as JSON: which trees of tensors and numbers a program takes and returns.

    {"list": [{"tensor": [1, "f32", [null, 3]]}, {"number": "float"}, {"static": 2}]}

A node has one key, which says what it is. A file may contain anything, so ``expected`` reads nodes by an explicit list
of keys and builds nothing but tuples, lists, dictionaries, numbers and strings.
"""

from __future__ import annotations

import dataclasses
import types
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import ALL
from aerogel.tensor.programs import _trees
from aerogel.tensor.programs._kinds import Leaf, NumberKind, SharedKind, StaticKind

if TYPE_CHECKING:
    from collections.abc import Callable

#: How deep trees may be nested.
_MOST_NESTED = 100


def of_argument(kind: Any, name: str) -> Any:
    """The node of an argument, from the kind by which its program is found.

    Raises:
        TypeError: If it is a module, or a static value that is no number, string or dtype.
    """
    if isinstance(kind, NumberKind):
        return {"number": kind.python.__name__}
    if isinstance(kind, StaticKind):
        return {"static": of_value(kind.value, f"the argument `{name}`")}
    if not isinstance(kind, SharedKind) and isinstance(kind[0], int):
        n_planes, dtype, shape, _ = kind
        return {"tensor": [n_planes, dtype, list(shape)]}
    if isinstance(kind, SharedKind) or len(kind) == 4:
        raise TypeError(
            f"the argument `{name}` is a module or belongs to one, and its class is not part of a file: let the "
            "function use the module from outside, whose parameters are then saved as constants"
        )
    first, *_, parts = kind
    if len(kind) == 2:
        nodes = [of_argument(part, f"{name}[{k}]") for k, part in enumerate(parts)]
        return {"list" if issubclass(first, list) else "tuple": nodes}
    keys = kind[1]
    if issubclass(first, dict):
        keys = [of_value(key, f"a key of `{name}`") for key in keys]
        return {"dict": [keys, [of_argument(part, f"{name}[{key!r}]") for key, part in zip(keys, parts)]]}
    return {"object": [list(keys), [of_argument(part, f"{name}.{key}") for key, part in zip(keys, parts)]]}


def of_result(tree: Any) -> Any:
    """The node of a result.

    Raises:
        TypeError: If it is a module, or something else than tensors and numbers.
    """
    if isinstance(tree, Leaf):
        return {"planes": 2 if tree.is_complex else 1}
    if isinstance(tree, (list, tuple)):
        return {"list" if isinstance(tree, list) else "tuple": [of_result(part) for part in tree]}
    if isinstance(tree, dict):
        keys = [of_value(key, "a key of the result") for key in tree]
        return {"dict": [keys, [of_result(part) for part in tree.values()]]}
    if _trees.is_node(tree):
        raise TypeError(
            f"the program returns a module, `{type(tree).__name__}`, whose class is not part of a file: return tensors"
        )
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = [field.name for field in dataclasses.fields(tree) if field.init]
        return {"object": [names, [of_result(getattr(tree, name)) for name in names]]}
    return {"static": of_value(tree, "a result")}


def of_value(value: Any, what: str) -> Any:
    """A number, a string, a dtype or ``None`` as JSON.

    Raises:
        TypeError: If it is something else.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    name = getattr(value, "_aerogel_dtype", "")
    if ALL.get(name) is value:
        return {"dtype": name}
    raise TypeError(f"{what} is {type(value).__name__}, which cannot be saved: only numbers, strings and dtypes can be")


def value_of(node: Any) -> Any:
    """The value that ``of_value`` wrote.

    Raises:
        ValueError: If it is none.
    """
    if node is None or type(node) in (bool, int, float, str):
        return node
    if isinstance(node, dict) and len(node) == 1 and isinstance(name := node.get("dtype"), str) and name in ALL:
        return ALL[name]
    raise ValueError(f"{node!r} is no value")


def expected(node: Any, is_result: bool, depth: int = 0) -> Any:
    """A node that was read, after all in it has been looked at.

    Returns:
        The key, and what belongs to it: of a static value the value, of others the node with such pairs inside.

    Raises:
        ValueError: If it is no node.
    """
    if not isinstance(node, dict) or len(node) != 1 or depth > _MOST_NESTED:
        raise ValueError(f"{_short(node)} is not a node of a tree")
    ((key, own),) = node.items()
    inside: Callable[[Any], Any] = lambda part: expected(part, is_result, depth + 1)  # noqa: E731
    if key in ("list", "tuple") and isinstance(own, list):
        return key, [inside(part) for part in own]
    if key in ("dict", "object") and isinstance(own, list) and len(own) == 2:
        names, parts = own
        if isinstance(names, list) and isinstance(parts, list) and len(names) == len(parts):
            keys = [value_of(name) for name in names]
            if len(set(keys)) == len(keys) and (key == "dict" or all(map(_is_field, keys))):
                return key, (keys, [inside(part) for part in parts])
    if key == "static":
        return key, value_of(own)
    if key == "planes" and is_result and own in (1, 2) and type(own) is int:
        return key, own
    if key == "number" and not is_result and own in ("bool", "int", "float"):
        return key, {"bool": bool, "int": int, "float": float}[own]
    if key == "tensor" and not is_result and isinstance(own, list) and len(own) == 3:
        n, dtype, shape = own
        sizes = isinstance(shape, list) and all(s is None or type(s) is int and 0 <= s < 1 << 31 for s in shape)
        if type(n) is int and n in (1, 2) and isinstance(dtype, str) and dtype in ALL and sizes:
            return key, (n, dtype, tuple(shape))
    raise ValueError(f"{_short(node)} is not a node of a tree")


def _is_field(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier() and not name.startswith("__")


def _short(node: Any) -> str:
    return (text := repr(node))[:60] + "..." * (len(text) > 60)


def leaves(node: Any) -> list[Any]:
    """The leaves of a node of ``expected``, in order."""
    key, own = node
    if key in ("list", "tuple"):
        return [leaf for part in own for leaf in leaves(part)]
    if key in ("dict", "object"):
        return [leaf for part in own[1] for leaf in leaves(part)]
    return [node]


def built(node: Any, leaf: Callable[[Any], Any]) -> Any:
    """The tree of a node of ``expected``: objects are ``types.SimpleNamespace``."""
    key, own = node
    if key in ("list", "tuple"):
        parts = [built(part, leaf) for part in own]
        return parts if key == "list" else tuple(parts)
    if key in ("dict", "object"):
        made = {name: built(part, leaf) for name, part in zip(own[0], own[1])}
        return made if key == "dict" else types.SimpleNamespace(**made)
    return own if key == "static" else leaf(own)


def matched(node: Any, value: Any, name: str, leaf: Callable[[Any, Any, str], None]) -> None:
    """Calls ``leaf`` with each leaf of a node of ``expected``, the value in its place, and how errors name that.

    Raises:
        TypeError: If the value is another tree.
    """
    key, own = node
    if key in ("list", "tuple"):
        if not isinstance(value, list if key == "list" else tuple) or len(value) != len(own):
            raise TypeError(f"argument `{name}` is a {key} of {len(own)}, not {_said(value)}")
        for k, part in enumerate(own):
            matched(part, value[k], f"{name}[{k}]", leaf)
    elif key == "dict":
        if not isinstance(value, dict) or set(value) != set(own[0]):
            raise TypeError(f"argument `{name}` is a dictionary with the keys {own[0]}, not {_said(value)}")
        for at, part in zip(*own):
            matched(part, value[at], f"{name}[{at!r}]", leaf)
    elif key == "object":
        for at, part in zip(*own):
            if not hasattr(value, at):
                raise TypeError(f"argument `{name}` has the attributes {', '.join(own[0])}, {_said(value)} has not")
            matched(part, getattr(value, at), f"{name}.{at}", leaf)
    else:
        leaf(node, value, name)


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return f"one with {list(value)}"
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, (list, tuple)) else type(value).__name__
