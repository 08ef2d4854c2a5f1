"""Modules as arguments of programs: what of them is part of the program, and copies with other tensors."""

from __future__ import annotations

from typing import Any

from aerogel.nn._parameter import LazyParameter, Parameter

#: Attributes that store a module's state and do not influence what it computes.
_OWN = frozenset(["_parameters", "_buffers", "_modules", "_persistent", "_parent", "_trained"])


class _Same:
    """A value that equals itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _key(value: Any) -> Any:
    """A plain attribute as part of a key: numbers of different types differ, what cannot be hashed equals itself."""
    if isinstance(value, float):
        return (type(value), value.hex())
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return (type(value), value)
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(map(_key, value)))
    if isinstance(value, dict):
        return (type(value), tuple((_key(k), _key(v)) for k, v in value.items()))
    if hasattr(value, "shape"):
        # NumPy's arrays and those of others may be changed.
        return _Same(value)
    try:
        hash(value)
    except TypeError:
        return _Same(value)
    return value


def static(module: Any, prefix: str, parts: dict[str, Any], at: dict[int, int], seen: dict[int, int]) -> Any:
    """What of a module is part of a program. Its tensors are added to ``parts`` by their names, each once."""
    if id(module) in seen:
        return seen[id(module)]
    seen[id(module)] = len(seen)
    own = module.__dict__
    tensors = []
    for kind in ("_parameters", "_buffers"):
        for name, value in own[kind].items():
            if value is None:
                tensors.append((name, None))
                continue
            if id(value) not in at:
                at[id(value)] = len(at)
                parts[prefix + name] = value
            tensors.append((name, at[id(value)]))
    plain = tuple((name, _key(value)) for name, value in own.items() if name not in _OWN)
    below = tuple((name, static(child, f"{prefix}{name}.", parts, at, seen)) for name, child in own["_modules"].items())
    return (type(module), plain, tuple(tensors), below)


def rebuilt(module: Any, parts: dict[int, Any], made: dict[int, Any]) -> Any:
    """A copy of a module with other tensors, which ``parts`` has by the ids of those that they replace."""
    if id(module) in made:
        return made[id(module)]
    kind: Any = type(module)
    new = made[id(module)] = kind.__new__(kind)
    own, was = new.__dict__, module.__dict__
    own.update({name: value for name, value in was.items() if name not in _OWN})
    own["_persistent"], own["_parent"] = set(was["_persistent"]), None
    own["_trained"] = dict(was.get("_trained", ()))
    for kind in ("_parameters", "_buffers"):
        own[kind].update((name, None if value is None else parts[id(value)]) for name, value in was[kind].items())
    for name, value in was["_parameters"].items():
        if isinstance(value, Parameter) and not isinstance(value, LazyParameter):
            own["_trained"][name] = value.requires_grad
    for name, child in was["_modules"].items():
        setattr(new, name, rebuilt(child, parts, made))
    return new
