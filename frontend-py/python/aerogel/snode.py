"""Data layouts: ``ti.root``, ``dense`` nodes, ``place``, ``ti.FieldsBuilder``.

A tree is described node by node and laid out once, when one of its fields is first used; fields that
are placed later go into another tree.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from aerogel import _native
from aerogel.errors import AerogelNotSupportedError, AerogelRuntimeError


class Axis:
    """An index axis: ``ti.i`` is the first."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Axis({self.value})"


_AXES = [Axis(k) for k in range(12)]


def axes(*x: int) -> list[Axis]:
    """The index axes with these numbers."""
    return [_AXES[k] for k in x]


i, j, k, l = ([_AXES[n]] for n in range(4))
ij, ik, il, jk, jl, kl = axes(0, 1), axes(0, 2), axes(0, 3), axes(1, 2), axes(1, 3), axes(2, 3)
ijk, ijl, ikl, jkl = axes(0, 1, 2), axes(0, 1, 3), axes(0, 2, 3), axes(1, 2, 3)
ijkl = axes(0, 1, 2, 3)


class Layout:
    """How the components of a matrix field lie in memory."""

    class _Kind:
        def __init__(self, name: str, value: int) -> None:
            self.name, self.value = name, value

        def __repr__(self) -> str:
            return f"Layout.{self.name}"

    AOS = _Kind("AOS", 0)  #: The components of an element side by side.
    SOA = _Kind("SOA", 1)  #: All first components, then all second ones.
    NULL = _Kind("NULL", 2)


class SNode:
    """A node of a layout: it divides index axes into cells, each of which holds the node's children."""

    def __init__(self, tree: FieldsBuilder, parent: SNode | None, native: Any, axes_: list[tuple[int, int]]) -> None:
        self._tree, self._parent, self._aerogel_snode, self._axes = tree, parent, native, axes_
        self._children: list[SNode] = []
        self._fields: list[Any] = []

    def dense(self, axes: Axis | Sequence[Axis], dimensions: int | Sequence[int]) -> SNode:
        """Adds a node that divides ``axes`` into ``dimensions`` cells."""
        self._tree._check_open()
        axis_list = [axes] if isinstance(axes, Axis) else list(axes)
        dims = [dimensions] * len(axis_list) if _is_int(dimensions) else list(dimensions)  # type: ignore[arg-type]
        if len(dims) != len(axis_list):
            raise ValueError(f"{len(axis_list)} axes need {len(axis_list)} dimensions, got {len(dims)}")
        pairs = [(a.value, _extent(d)) for a, d in zip(axis_list, dims)]
        child = SNode(self._tree, self, self._aerogel_snode.dense(pairs), pairs)
        self._children.append(child)
        return child

    def place(self, *args: Any, offset: int | Sequence[int] | None = None) -> SNode:
        """Places fields in this node's cells, side by side.

        Args:
            args: Fields made without a shape, or lists of them.
            offset: What the first index of each axis is.
        """
        self._tree._check_open()
        for a in args:
            if isinstance(a, (list, tuple)):
                self.place(*a, offset=offset)
            elif isinstance(a, _native.NativeField):
                offsets = None if offset is None else ([offset] if _is_int(offset) else [int(o) for o in offset])  # type: ignore[union-attr]
                self._aerogel_snode.place(a, offsets)
                a._parent_node = self
                self._fields.append(weakref.ref(a))
            elif hasattr(a, "_aerogel_struct_field"):
                self.place(*a._leaves(), offset=offset)
            else:
                raise ValueError(f"{a!r} cannot be placed; only fields can")
        return self

    def parent(self, n: int = 1) -> SNode | None:
        """The node ``n`` levels up."""
        node: SNode | None = self
        for _ in range(n):
            if node is None:
                return None
            node = node._parent
        return node

    def path_from_root(self) -> list[SNode]:
        """The nodes from the root down to this one."""
        return [*(self._parent.path_from_root() if self._parent else []), self]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis, over all levels."""
        return tuple(e for _, e in sorted(self._extents().items()))

    def _extents(self) -> dict[int, int]:
        out = dict(self._parent._extents()) if self._parent else {}
        for axis, extent in self._axes:
            out[axis] = out.get(axis, 1) * extent
        return out

    @property
    def num_cells(self) -> int:
        """How many cells there are in all."""
        n = 1
        for e in self.shape:
            n *= e
        return n

    def deactivate_all(self) -> None:
        """Does nothing for a dense node."""

    def lazy_grad(self) -> None:
        """Gradients are not supported yet."""
        raise AerogelNotSupportedError("gradients are not supported yet")

    lazy_dual = lazy_grad

    def __repr__(self) -> str:
        if self._parent is None:
            return "ti.root"
        return f"{self._parent!r} => dense {[e for _, e in self._axes]}"

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


def _unsupported(kind: str) -> Any:
    def method(self: SNode, *args: Any, **kwargs: Any) -> Any:
        raise AerogelNotSupportedError(f"{kind} nodes are not supported yet")

    method.__name__ = kind
    method.__doc__ = f"``{kind}`` nodes are not supported yet."
    return method


for _kind in ("pointer", "bitmasked", "dynamic", "hash", "quant_array", "bit_struct"):
    setattr(SNode, _kind, _unsupported(_kind))


class _PlaceNode:
    """The node of one field (its first component), as ``field.snode`` gives it."""

    def __init__(self, field: Any) -> None:
        self._field = weakref.ref(field)
        self._owner = field._parent_node

    @property
    def _aerogel_snode(self) -> Any:
        field = self._field()
        if field is None:
            raise AerogelRuntimeError("the field is gone")
        return field._place_node()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return self._owner.shape

    def parent(self, n: int = 1) -> Any:
        """The node ``n`` levels up."""
        return self._owner.parent(n - 1)

    def __repr__(self) -> str:
        return f"{self._owner!r} => place {list(self.shape)}"


class FieldsBuilder:
    """Makes a layout of its own, which can be destroyed by itself.

    >>> builder = FieldsBuilder()
    """

    def __init__(self) -> None:
        self._native: Any = None
        self._root: SNode | None = None
        self.empty = True
        self.finalized = False

    def _check_open(self) -> None:
        if self._native is None:
            self._native = _native.TreeBuilder()
            self._root = SNode(self, None, self._native.root(), [])
            _pending.append(self)
            _native.set_pending(True)
        if self.finalized:
            raise AerogelRuntimeError("the layout is finished; make another ti.FieldsBuilder() or use ti.root")
        self.empty = False

    @property
    def root(self) -> SNode:
        """The root node."""
        self._check_open()
        assert self._root is not None
        return self._root

    def dense(self, indices: Any, dimensions: Any) -> SNode:
        """Adds a dense node under the root; see :meth:`SNode.dense`."""
        return self.root.dense(indices, dimensions)

    def place(self, *args: Any, offset: Any = None) -> SNode:
        """Places fields in the root, without axes; see :meth:`SNode.place`."""
        return self.root.place(*args, offset=offset)

    def pointer(self, *args: Any) -> Any:
        """``pointer`` nodes are not supported yet."""
        return self.root.pointer(*args)  # type: ignore[attr-defined]

    def bitmasked(self, *args: Any) -> Any:
        """``bitmasked`` nodes are not supported yet."""
        return self.root.bitmasked(*args)  # type: ignore[attr-defined]

    def dynamic(self, *args: Any, **kwargs: Any) -> Any:
        """``dynamic`` nodes are not supported yet."""
        return self.root.dynamic(*args)  # type: ignore[attr-defined]

    def quant_array(self, *args: Any, **kwargs: Any) -> Any:
        """``quant_array`` nodes are not supported yet."""
        return self.root.quant_array(*args)  # type: ignore[attr-defined]

    def finalize(self, raise_warning: bool = True) -> SNodeTree:
        """Lays the tree out; nothing can be added afterwards."""
        if not self.finalized:
            self._check_open()
            self.finalized = True
            if self in _pending:
                _pending.remove(self)
            self._native.finish()
        return SNodeTree(self._native)

    def deactivate_all(self) -> None:
        """Does nothing for dense layouts."""


class SNodeTree:
    """A finished layout."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def destroy(self) -> None:
        """Frees the memory; using a field of the layout raises an error from now on."""
        self._native.destroy()


_pending: list[FieldsBuilder] = []


class _Root:
    """``ti.root``: the builder of the layout that is being described now."""

    def __init__(self) -> None:
        self._builder = FieldsBuilder()

    def _current(self) -> FieldsBuilder:
        if self._builder.finalized:
            self._builder = FieldsBuilder()
        return self._builder

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._current().root, name)

    def deactivate_all(self) -> None:
        """Does nothing for dense layouts."""

    @property
    def empty(self) -> bool:
        """Whether nothing has been described since the last layout was finished."""
        return self._builder.finalized or self._builder.empty

    @property
    def finalized(self) -> bool:
        """Whether there is no layout under description."""
        return self._builder.finalized

    @property
    def shape(self) -> tuple[int, ...]:
        """The root has no axes."""
        return ()

    def __repr__(self) -> str:
        return "ti.root"


root: Any = _Root()


def deactivate_all_snodes() -> None:
    """Does nothing for dense layouts."""


def _materialize() -> None:
    """Lays out all trees that have been described; native code calls this before a field is used."""
    for builder in list(_pending):
        builder.finalize()
    _native.set_pending(False)


def _forget() -> None:
    """Drops all descriptions, for ``ti.reset()``."""
    _pending.clear()
    _native.set_pending(False)
    root._builder = FieldsBuilder()


def _is_int(x: Any) -> bool:
    import operator

    try:
        operator.index(x)
    except TypeError:
        return False
    return True


def _extent(d: Any) -> int:
    import operator

    try:
        n = operator.index(d)
    except TypeError:
        raise TypeError(f"an extent must be an integer, not {d!r}") from None
    if n <= 0:
        raise ValueError(f"an extent must be at least 1, not {n}")
    return n


_native.set_materialize(_materialize)
