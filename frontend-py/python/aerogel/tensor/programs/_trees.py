"""Tuples, lists, dictionaries, dataclasses and modules of tensors, nested: what programs take and return.

A class takes part by the attribute ``_aerogel_tree = True`` and two methods, as ``nn.Module`` does:
``_tree_parts()`` returns what of an object is static (hashable) and its tensors by name, ``_tree_rebuilt(parts)`` a
copy with other tensors in that order. ``_tree_set(name, tensor)`` assigns what a program made of one of them, and
``_tree_returned()`` is called on a copy that a program returns. ``_tree_trained()`` names the tensors by which
gradients are taken.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: The annotation of the tensors of modules: their shapes are known when a program is traced, and part of its key.
FIXED = "a tensor of fixed shape"


def is_node(tree: Any) -> bool:
    """Whether an object says itself what its parts are."""
    return getattr(type(tree), "_aerogel_tree", False)


def flatten(tree: Any, leaf: Callable[[Any, str, Any], Any], name: str, annotation: Any = None) -> Any:
    """The structure of a tree: ``leaf`` is called with each leaf, how errors name it, and its annotation.

    What it gives stands in the structure in place of the leaf, which makes structures comparable and hashable.
    """
    kind = type(tree)
    if isinstance(tree, (tuple, list)):
        parts = tuple(flatten(part, leaf, f"{name}[{k}]") for k, part in enumerate(tree))
        return (kind, parts)
    if isinstance(tree, dict):
        keys = tuple(tree)
        return (kind, keys, tuple(flatten(tree[key], leaf, f"{name}[{key!r}]") for key in keys))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        fields = [field for field in dataclasses.fields(tree) if field.init]
        parts = tuple(flatten(getattr(tree, f.name), leaf, f"{name}.{f.name}", f.type) for f in fields)
        return (kind, tuple(f.name for f in fields), parts)
    if is_node(tree):
        node: Any = tree
        static, own = node._tree_parts()
        parts = tuple(flatten(part, leaf, f"{name}.{called}", FIXED) for called, part in own.items())
        return (kind, static, tuple(own), parts)
    return leaf(tree, name, annotation)


def is_tree(value: Any) -> bool:
    """Whether a value has parts."""
    is_dataclass = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return isinstance(value, (tuple, list, dict)) or is_dataclass or is_node(value)


def mapped(
    tree: Any,
    leaf: Callable[[Any], Any],
    is_known: Callable[[Any, Any], bool] | None = None,
    *,
    is_trained: bool = False,
) -> Any:
    """A tree of the same structure, with other leaves.

    Leaves of dataclasses that ``is_known`` names stay, and with ``is_trained`` the tensors of modules that are no
    parameters.
    """
    if isinstance(tree, (tuple, list)):
        return rebuilt(type(tree), [mapped(part, leaf, is_known, is_trained=is_trained) for part in tree])
    if isinstance(tree, dict):
        made = copy.copy(tree)
        made.update((key, mapped(part, leaf, is_known, is_trained=is_trained)) for key, part in tree.items())
        return made
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        own = {}
        for field in (field for field in dataclasses.fields(tree) if field.init):
            part = getattr(tree, field.name)
            stays = is_known is not None and is_known(part, field.type)
            own[field.name] = part if stays else mapped(part, leaf, is_known, is_trained=is_trained)
        return dataclasses.replace(tree, **own)
    if is_node(tree):
        node: Any = tree
        own = node._tree_parts()[1]
        names = node._tree_trained() if is_trained else own
        return node._tree_rebuilt([mapped(part, leaf) if name in names else part for name, part in own.items()])
    return leaf(tree)


def nodes(tree: Any) -> list[Any]:
    """The objects in a tree that say themselves what their parts are, in order."""
    if isinstance(tree, (tuple, list)):
        return [node for part in tree for node in nodes(part)]
    if isinstance(tree, dict):
        return [node for part in tree.values() for node in nodes(part)]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [node for f in dataclasses.fields(tree) if f.init for node in nodes(getattr(tree, f.name))]
    return [tree] if is_node(tree) else []


def parts_of(node: Any) -> dict[str, Any]:
    """What the tensors of a module are, to tell later which of them were changed."""
    return {name: getattr(part, "_native", part) for name, part in node._tree_parts()[1].items()}


def changed(node: Any, before: dict[str, Any]) -> list[tuple[str, Any]]:
    """The tensors of a module that differ from what ``parts_of`` gave, and those that it did not have, by name."""
    now = node._tree_parts()[1]
    return [(name, part) for name, part in now.items() if before.get(name) is not getattr(part, "_native", part)]


def rebuilt(kind: type, parts: list[Any]) -> Any:
    """A tuple or a list of parts; named tuples take them one by one."""
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, in order."""
    out: list[Any] = []
    mapped_leaf = out.append
    flatten(tree, lambda value, *_: mapped_leaf(value), "")
    return out


def structure(tree: Any) -> Any:
    """What is the same of trees whose leaves alone are others."""
    return flatten(tree, lambda *_: None, "")


def text(tree: Any) -> str:
    """The structure of a tree, for messages."""
    if isinstance(tree, (tuple, list)):
        parts = ", ".join(map(text, tree))
        return f"[{parts}]" if isinstance(tree, list) else f"({parts}{',' * (len(tree) == 1)})"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {text(part)}" for key, part in tree.items()) + "}"
    if is_node(tree):
        return type(tree).__name__
    if is_tree(tree):
        own = ", ".join(f"{f.name}={text(getattr(tree, f.name))}" for f in dataclasses.fields(tree) if f.init)
        return f"{type(tree).__name__}({own})"
    return "*"
