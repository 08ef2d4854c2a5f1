"""``ti.types.argpack``: arguments of kernels that travel together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aerogel._dtypes import DataType
from aerogel.data.structs import StructType, _coerce
from aerogel.errors import AerogelTypeError


class ArgPackType:
    """The type of packs with certain members: an annotation of a kernel's parameter, and a maker of packs.

    >>> from aerogel import f32
    >>> ArgPackType(gravity=f32, n=int)(gravity=9.8, n=3)
    {'gravity': 9.8, 'n': 3}
    """

    def __init__(self, **members: Any) -> None:
        if not members:
            raise AerogelTypeError("a pack needs at least one member")
        for name, ty in members.items():
            if not (ty in (float, int, bool) or _is_packed_type(ty)):
                raise AerogelTypeError(f"the member `{name}` of a pack cannot be of the type {ty!r}")
        self.members = dict(members)
        # Functions of the language that take a pack as `self`.
        self.methods: dict[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> ArgPack:
        """A pack: members by position or name; numbers that are not given are zero."""
        if len(args) == 1 and not kwargs and isinstance(args[0], (Mapping, ArgPack)):
            args, kwargs = (), dict(args[0].items if isinstance(args[0], ArgPack) else args[0])
        if len(args) > len(self.members):
            raise AerogelTypeError(f"{self!r} has {len(self.members)} members, but {len(args)} values are given")
        given = dict(zip(self.members, args))
        for name, value in kwargs.items():
            if name not in self.members:
                raise AerogelTypeError(f"{self!r} has no member `{name}`")
            if name in given:
                raise AerogelTypeError(f"the member `{name}` is given twice")
            given[name] = value
        return ArgPack(self, given)

    def __repr__(self) -> str:
        return f"ti.types.argpack({', '.join(f'{name}={ty}' for name, ty in self.members.items())})"


def _is_packed_type(ty: Any) -> bool:
    kind = getattr(ty, "_aerogel_annotation", None)
    return (
        isinstance(ty, (DataType, StructType, ArgPackType)) or hasattr(ty, "_aerogel_tensor_type") or kind == "ndarray"
    )


class ArgPack:
    """Arguments that travel together: members by attribute or by name."""

    _type: ArgPackType
    _entries: dict[str, Any]

    def __init__(self, ty: ArgPackType, given: dict[str, Any]) -> None:
        object.__setattr__(self, "_type", ty)
        object.__setattr__(self, "_entries", {})
        for name, member in ty.members.items():
            if name not in given and getattr(member, "_aerogel_annotation", None) == "ndarray":
                raise AerogelTypeError(f"the member `{name}` of the pack is an array and must be given")
            self[name] = given.get(name, {} if isinstance(member, ArgPackType) else 0)

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._entries)

    @property
    def items(self) -> list[tuple[str, Any]]:
        """Names and values of the members."""
        return list(self._entries.items())

    def to_dict(self) -> dict[str, Any]:
        """The members as a dictionary."""
        return dict(self._entries)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._entries:
            raise AttributeError(f"the pack has no member `{name}`; its members are {', '.join(self._type.members)}")
        return self._entries[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._type.members:
            raise AttributeError(f"the pack has no member `{name}`; its members are {', '.join(self._type.members)}")
        ty = self._type.members[name]
        if isinstance(ty, ArgPackType):
            value = ty(value)
        elif getattr(ty, "_aerogel_annotation", None) != "ndarray":
            value = _coerce(ty, value)
        self._entries[name] = value

    def __repr__(self) -> str:
        return str(self._entries)


def argpack(**members: Any) -> ArgPackType:
    """The type of packs with these members: scalars, vectors, matrices, structs, arrays, packs.

    >>> from aerogel import f32
    >>> argpack(x=f32)(x=2)
    {'x': 2.0}
    """
    return ArgPackType(**members)


__all__ = ["ArgPack", "ArgPackType", "argpack"]
