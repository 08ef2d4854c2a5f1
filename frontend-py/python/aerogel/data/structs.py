"""Structs: ``ti.types.struct``, ``ti.dataclass``, ``ti.Struct``, and fields of them.

A field of structs is a set of fields, one for each member.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from aerogel import _log, _native
from aerogel._dtypes import DataType, dtype_of, uint8
from aerogel._outside import outside_kernels
from aerogel.data._field import Field
from aerogel.data._quant import QuantType
from aerogel.data.axes import Layout
from aerogel.data.matrix import Matrix
from aerogel.errors import AerogelSyntaxError, AerogelTypeError

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform


class StructType:
    """The type of structs with certain members: an annotation, and a maker of values and fields.

    >>> from aerogel import f32
    >>> StructType(mass=f32, n=int)(2, n=3)
    {'mass': 2.0, 'n': 3}
    """

    #: The class under `ti.dataclass`.
    _class: type | None = None

    def __init__(self, **members: Any) -> None:
        self.methods: dict[str, Callable[..., Any]] = members.pop("__struct_methods", {})
        self._name: str = members.pop("__struct_name", "")
        # A value has a place in memory, so one byte stands for a struct that has functions only.
        members = members or {"_": uint8}
        self.members: dict[str, Any] = {name: _member_type(name, ty) for name, ty in members.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Struct:
        """A value: members by position or name; what is not given is zero."""
        made = _native.traced_call(self, args, kwargs)
        if made is not NotImplemented:
            return made
        if len(args) == 1 and not kwargs and isinstance(args[0], (Mapping, Struct)):
            members = dict(_items(args[0]))
            # A struct of other members is the value of the first one.
            if members.keys() <= self.members.keys():
                args, kwargs = (), members
        if len(args) > len(self.members):
            raise AerogelTypeError(f"{self!r} has {len(self.members)} members, but {len(args)} values are given")
        given = dict(zip(self.members, args))
        for name, value in kwargs.items():
            if name not in self.members:
                raise AerogelTypeError(f"{self!r} has no member `{name}`")
            if name in given:
                raise AerogelTypeError(f"the member `{name}` is given twice")
            given[name] = value
        out = Struct.__new__(Struct)
        entries = {name: _coerce(ty, given.get(name, 0)) for name, ty in self.members.items()}
        object.__setattr__(out, "_entries", entries)
        object.__setattr__(out, "_type", self)
        return out

    @outside_kernels
    def field(self, shape: Any = None, **kwargs: Any) -> StructField:
        """A field of such structs; the keywords are those of :meth:`Struct.field`."""
        return _field(self, shape, **kwargs)

    @property
    def _aerogel_struct_type(self) -> tuple[str, list[tuple[str, Any]], list[tuple[str, Any]]]:
        types = [(n, t if hasattr(t, "_aerogel_struct_type") else _resolved(t)) for n, t in self.members.items()]
        return self._name, types, [(n, f) for n, f in self.methods.items() if hasattr(f, "__aerogel_func__")]

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        """What a class inherits from that names this type as its base: members and methods."""
        if self._class is None:
            raise AerogelTypeError(f"{self!r} was not made from a class, so no class can inherit from it")
        return (self._class,)

    def __repr__(self) -> str:
        if self._name:
            return f"<struct {self._name}>"
        return f"ti.types.struct({', '.join(f'{name}={ty}' for name, ty in self.members.items())})"


def _resolved(ty: Any) -> Any:
    """A scalar or matrix type; ``float`` and ``int`` are what ``ti.init`` says."""
    if isinstance(ty, QuantType):
        return ty.compute
    return ty if hasattr(ty, "_aerogel_tensor_type") else dtype_of(ty)


def _member_type(name: str, ty: Any) -> Any:
    if isinstance(ty, Mapping):
        return StructType(**ty)
    if (
        ty in (float, int, bool)
        or isinstance(ty, (DataType, QuantType, StructType))
        or hasattr(ty, "_aerogel_tensor_type")
    ):
        return ty
    raise AerogelTypeError(f"the member `{name}` of a struct cannot be of the type {ty!r}")


def _coerce(ty: Any, value: Any) -> Any:
    """A value as a member of a type."""
    if isinstance(ty, StructType):
        if isinstance(value, (Mapping, Struct)):
            return ty(**dict(_items(value)))
        return ty(value)
    if hasattr(ty, "_aerogel_tensor_type"):
        return ty(value)
    dtype = _resolved(ty)
    return float(value) if dtype.is_float else bool(value) if dtype._aerogel_dtype == "u1" else int(value)


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items) if isinstance(value, Struct) else list(value.items())


class Struct:
    """A struct in Python: members by attribute or by name.

    >>> s = Struct(a=1, b=2.5)
    >>> s.a, s["b"]
    (1, 2.5)
    """

    __aerogel_builtin__ = "Struct"

    _entries: dict[str, Any]
    _type: StructType | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: D102
        made = _native.traced_call(cls, args, kwargs)
        return object.__new__(cls) if made is NotImplemented else made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) > 1 or not all(isinstance(given, (Mapping, Struct)) for given in args):
            raise AerogelSyntaxError("a ti.Struct is made from a dictionary, or from members by name")
        members: dict[str, Any] = {}
        for given in args:
            members.update(_items(given))
        members.update(kwargs)
        members.pop("__struct_methods", None)
        object.__setattr__(self, "_entries", {name: _plain(value) for name, value in members.items()})
        object.__setattr__(self, "_type", None)

    def _get(self, name: str) -> Any:
        return self._entries[name]

    def _set(self, name: str, value: Any) -> None:
        self._entries[name] = _plain(value) if self._type is None else _coerce(self._type.members[name], value)

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._entries)

    @property
    def members(self) -> list[Any]:
        """The values of the members."""
        return [self._get(name) for name in self.keys]

    @property
    def items(self) -> list[tuple[str, Any]]:
        """Names and values of the members."""
        return [(name, self._get(name)) for name in self.keys]

    @property
    def entries(self) -> dict[str, Any]:
        """The members as a dictionary."""
        return dict(self.items)

    @property
    def methods(self) -> dict[str, Callable[..., Any]]:
        """The functions that it has in kernels, by name."""
        return dict(self._type.methods) if self._type else {}

    def to_dict(self) -> dict[str, Any]:
        """The members as a dictionary, matrices as lists."""

        def plain(value: Any) -> Any:
            if isinstance(value, Struct):
                return value.to_dict()
            return value.to_list() if isinstance(value, Matrix) else value

        return {name: plain(value) for name, value in self.items}

    @property
    def _aerogel_struct(self) -> tuple[StructType | None, list[tuple[str, Any]]]:
        return self._type, self.items

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self.keys:
            return self._get(name)
        method = self._type.methods.get(name) if self._type else None
        if method is None:
            raise AttributeError(f"the struct has no member `{name}`; its members are {', '.join(self.keys)}")
        return method.__get__(self)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys:
            raise KeyError(name)
        return self._get(name)

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self.keys:
            raise AttributeError(f"the struct has no member `{name}`; its members are {', '.join(self.keys)}")
        self._set(name, value)

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members)

    def __repr__(self) -> str:
        return str(self.to_dict())

    def __reduce__(self) -> tuple:
        return (Struct, (dict(self.items),))

    @staticmethod
    @outside_kernels
    def field(members: Mapping[str, Any], methods: Any = None, shape: Any = None, **kwargs: Any) -> StructField:
        """Makes a field of structs.

        Args:
            members: The type of each member.
            methods: Functions that elements have in kernels.
            shape: The size of each axis; if left out, the field must be placed in a layout before it is used.
            kwargs: ``order``, ``offset``, ``name``, ``needs_grad``, ``needs_dual`` as in ``ti.field``, and ``layout``:
                ``ti.Layout.SOA`` stores each member contiguously.
        """
        return _field(StructType(**members, __struct_methods=methods or {}), shape, **kwargs)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Struct(value)
    if isinstance(value, (list, tuple)) or type(value).__module__ == "numpy" and getattr(value, "ndim", 0):
        return Matrix(value)
    return value


class _Element(Struct):
    """An element of a field: what is written to it goes to the field."""

    _field: StructField
    _index: Any

    def __init__(self, field: StructField, index: Any) -> None:
        object.__setattr__(self, "_field", field)
        object.__setattr__(self, "_index", index)
        object.__setattr__(self, "_type", field._type)

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return self._field.keys

    def _get(self, name: str) -> Any:
        return self._field._members[name][self._index]

    def _set(self, name: str, value: Any) -> None:
        self._field._members[name][self._index] = value


class StructField(Field):
    """A field of structs: a field for each member, and elements that have them all."""

    if TYPE_CHECKING:
        # The members, and what kernels do with the name of a field.
        def __getattr__(self, name: str) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...

    def __init__(self, ty: StructType, members: dict[str, Any], name: str) -> None:
        self._type, self._members, self._name = ty, members, name
        # A member may be called as a method is.
        self.__dict__.update(members)
        for kind in ("grad", "dual"):
            if kind not in members and all(getattr(m, kind) is not None for m in members.values()):
                gradients = {key: getattr(m, kind) for key, m in members.items()}
                self.__dict__[kind] = StructField(ty, gradients, f"{name}.{kind}" if name else "")

    @property
    def _aerogel_struct_field(self) -> tuple[StructType, list[tuple[str, Any]]]:
        return self._type, list(self._members.items())

    def _leaves(self) -> list[Any]:
        """The fields of numbers and matrices, in order."""
        members = self._members.values()
        return [leaf for m in members for leaf in (m._leaves() if isinstance(m, StructField) else [m])]

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._members)

    @property
    def field_dict(self) -> dict[str, Any]:
        """The fields of the members by name."""
        return dict(self._members)

    @property
    def members(self) -> list[Any]:
        """The fields of the members."""
        return list(self._members.values())

    def get_member_field(self, key: str) -> Any:
        """The field of a member."""
        return self._members[key]

    @property
    def dtype(self) -> StructType:
        """The type of an element."""
        return self._type

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self._leaves()[0].shape

    @property
    def snode(self) -> Any:
        """The node in which the first member is placed."""
        return self._leaves()[0].snode

    def __getitem__(self, index: Any) -> Struct:
        self._leaves()[0]._check_index(index)
        return _Element(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        given = self._given(value)
        for name, member in self._members.items():
            member[index] = given[name]

    def _given(self, value: Any) -> dict[str, Any]:
        """What is given for each member, which must be all of them."""
        if not isinstance(value, (Mapping, Struct)):
            raise TypeError(f"a struct or a dictionary of its members is needed, not {type(value).__name__}")
        given = dict(_items(value))
        for name in [*self._members, *given]:
            if name not in given or name not in self._members:
                raise KeyError(name)
        return given

    def fill(self, val: Any) -> None:
        """Sets every element to a struct, or every member to a number."""
        given = self._given(val) if isinstance(val, (Mapping, Struct)) else dict.fromkeys(self._members, val)
        for name, member in self._members.items():
            member.fill(given[name])

    def to_numpy(self) -> dict[str, Any]:
        """A NumPy array for each member, by name."""
        return {name: member.to_numpy() for name, member in self._members.items()}

    def from_numpy(self, array_dict: Mapping[str, Any]) -> None:
        """Sets all elements from a NumPy array for each member."""
        given = self._given(array_dict)
        for name, member in self._members.items():
            member.from_numpy(given[name])

    def to_torch(self, device: Any = None, copy: bool = True) -> dict[str, Any]:
        """A PyTorch tensor for each member, by name; with ``copy=False`` over the memory of the field."""
        return {name: member.to_torch(device, copy) for name, member in self._members.items()}

    def from_torch(self, array_dict: Mapping[str, Any]) -> None:
        """Sets all elements from a PyTorch tensor for each member."""
        given = self._given(array_dict)
        for name, member in self._members.items():
            member.from_torch(given[name])

    def copy_from(self, other: StructField) -> None:
        """Sets all elements from another field of such structs and the same shape."""
        if not isinstance(other, StructField):
            raise TypeError("copy_from takes a field of structs")
        if other.keys != self.keys:
            raise ValueError(f"the members {self.keys} and {other.keys} differ")
        for name, member in self._members.items():
            member.copy_from(other._members[name])

    def __str__(self) -> str:
        leaves = self._leaves()
        if not all(leaf._is_placed() for leaf in leaves):
            return "<ti.Struct.field: not placed>"
        if not all(leaf._is_alive() for leaf in leaves):
            return "<ti.Struct.field: its layout is gone>"
        return str(self.to_numpy()) if self.shape else str(self[None])

    def __repr__(self) -> str:
        return "<ti.Struct.field>"

    def _repr_html_(self) -> str:
        from aerogel import _notebook

        return _notebook.struct_summary(self)


def _field(
    ty: StructType,
    shape: Any = None,
    order: str | None = None,
    name: str = "",
    offset: Any = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    layout: Any = Layout.AOS,
) -> StructField:
    from aerogel.data.field import _place, field

    _native.check_initialized()
    members = {}
    for key, member in ty.members.items():
        make = member.field if isinstance(member, StructType) else lambda dtype=member, **kwargs: field(dtype, **kwargs)
        called = f"{name}.{key}" if name else ""
        members[key] = make(name=called, needs_grad=needs_grad, needs_dual=needs_dual)
    out = StructField(ty, members, name)
    _place(out._leaves(), shape, order, offset, layout)
    return out


def struct(**kwargs: Any) -> StructType:
    """The type of structs with these members.

    >>> from aerogel import f32
    >>> struct(x=f32, n=int)()
    {'x': 0.0, 'n': 0}
    """
    return StructType(**kwargs)


# mypy takes this name for true, and what stands under it for what is; other checkers take the last definition.
MYPY = False
if MYPY:

    @dataclass_transform()
    def dataclass(cls: Any) -> Any:
        """Makes the type of structs with the annotated members of a class, and its ``@ti.func`` methods."""

else:

    def dataclass(cls: Any) -> Any:
        """Makes the type of structs with the annotated members of a class, and its ``@ti.func`` methods."""
        members: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            members.update(
                base.__dict__.get("__annotations__") or (getattr(cls, "__annotations__", {}) if base is cls else {})
            )
        given = [name for name in members if hasattr(cls, name)]
        if given:
            raise AerogelSyntaxError(
                f"the member `{given[0]}` of `{cls.__name__}` has a default value, which structs do not have: "
                "members that are not given are zero"
            )
        if any(isinstance(ty, str) for ty in members.values()):
            scope = {**getattr(sys.modules.get(cls.__module__), "__dict__", {}), **sys._getframe(1).f_locals}
            for name, ty in members.items():
                if isinstance(ty, str):
                    try:
                        members[name] = eval(ty, scope)  # noqa: S307
                    except Exception as e:
                        message = f"the annotation `{ty}` of `{name}` cannot be evaluated: {e}"
                        raise AerogelSyntaxError(message) from e
        if cls.__init__ is not object.__init__:
            _log.warn(
                f"`{cls.__name__}.__init__` is never called: a ti.dataclass is made from its members; give it a "
                "`@staticmethod` with `@ti.func` that makes one, or make the class `@ti.data_oriented`"
            )
        members_of = {name: getattr(cls, name) for name in dir(cls)}
        # Operators too, where kernels can call them.
        methods = {
            name: value
            for name, value in members_of.items()
            if (callable(value) and not name.startswith("__")) or hasattr(value, "__aerogel_func__")
        }
        out = StructType(**members, __struct_methods=methods, __struct_name=cls.__name__)
        out._class = cls
        return out


__all__ = ["Struct", "StructField", "StructType", "dataclass", "struct"]
