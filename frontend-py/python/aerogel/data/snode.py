"""Data layouts: ``ti.root``, dense and sparse nodes, ``place``, ``ti.FieldsBuilder``.

A tree is described node by node and laid out once, when one of its fields is first used; fields that
are placed later go into another tree.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from aerogel import _config, _native
from aerogel.data import _unused
from aerogel.data._derivatives import SNodeGradType, derivative_of
from aerogel.data._quant import BitpackedFields
from aerogel.data.axes import Axis, extent, is_grid, offsets
from aerogel.errors import AerogelExtentError, AerogelRuntimeError

if TYPE_CHECKING:
    from aerogel.mpi import Grid

# `aerogel.snode` was a package in older versions of Taichi, with `snode_tree` in it (`_taichi/old_modules.py`).
__path__: list[str] = []


class Stats(list):
    """Statistics of sparse nodes: a dictionary for each. Prints as a table."""

    def __str__(self) -> str:
        from aerogel.data import _sparsity

        return _sparsity.stats_table(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


class SNode:
    """A node of a layout: it divides index axes into cells, each of which holds the node's children."""

    def __init__(
        self,
        tree: FieldsBuilder,
        parent: SNode | None,
        native: Any,
        axes_: list[tuple[int, int]],
        kind: str = "root",
    ) -> None:
        self._tree, self._parent, self._aerogel_snode, self._axes = tree, parent, native, axes_
        self._kind = kind
        # Cells of the first chunk, or bits of the word.
        self._number: int | None = None
        self._children: list[SNode] = []
        self._fields: list[Any] = []
        self._offsets_of: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def dense(self, axes: Axis | Sequence[Axis], dimensions: int | Sequence[int] | Grid) -> SNode:
        """Adds a node that divides ``axes`` into ``dimensions`` cells: numbers, or a grid of ``ti.mpi.grid``."""
        return self._add("dense", axes, dimensions)

    def pointer(self, axes: Axis | Sequence[Axis], dimensions: int | Sequence[int] | Grid) -> SNode:
        """Adds a node whose cells take memory when something in them is written for the first time.

        Cells that were never written read as zero, and loops over the node's fields skip them.
        """
        return self._add("pointer", axes, dimensions)

    def hash(self, axes: Axis | Sequence[Axis], dimensions: int | Sequence[int] | Grid) -> SNode:
        """Adds a node like a pointer node, whose memory depends on its active cells only.

        There may be up to 2^31 cells along an axis and fewer than 2^62 in all.
        """
        return self._add("hash", axes, dimensions)

    def bitmasked(self, axes: Axis | Sequence[Axis], dimensions: int | Sequence[int] | Grid) -> SNode:
        """Adds a node like a dense one, with a bit for each cell that says whether it is active."""
        return self._add("bitmasked", axes, dimensions)

    def dynamic(
        self,
        axis: Axis | Sequence[Axis],
        dimension: int | Sequence[int],
        chunk_size: int | None = None,
    ) -> SNode:
        """Adds a node that is a list along one axis, which grows when cells are appended or written.

        Args:
            axis: The axis.
            dimension: The most cells that a list can have.
            chunk_size: For how many cells a list takes memory at first; later chunks are longer.
                All at once if it is left out.
        """
        dims: list[Any] = [*dimension] if isinstance(dimension, Iterable) else [dimension]
        chunk = extent(dims[0] if chunk_size is None else chunk_size, "a chunk")
        return self._add("dynamic", axis, dims, min(chunk, extent(dims[0])))

    def quant_array(self, axes: Axis | Sequence[Axis], dimensions: int | Sequence[int], max_num_bits: int) -> SNode:
        """Adds a node that divides ``axes`` into ``dimensions`` elements of one field, all in one word of memory.

        Args:
            axes: The axes.
            dimensions: How many elements a word has along each.
            max_num_bits: Bits of the word: 8, 16, 32 or 64.
        """
        return self._add("quant_array", axes, dimensions, max_num_bits)

    if not TYPE_CHECKING:  # Names of older versions of Taichi.

        def bit_struct(self, num_bits: int) -> Any:
            """A word in which fields of quantised types are placed."""
            from aerogel._taichi import older

            older.warn("node.bit_struct(num_bits=...)", "ti.BitpackedFields(max_num_bits=...)")
            return older.Word(self, num_bits)

        def bit_array(self, axes: Any, dimensions: Any, num_bits: int) -> SNode:
            """A word of elements of one field."""
            from aerogel._taichi import older

            older.warn("node.bit_array(num_bits=...)", "node.quant_array(max_num_bits=...)")
            return self.quant_array(axes, dimensions, num_bits)

    def _add(self, kind: str, axes: Any, dimensions: Any, *number: int) -> SNode:
        self._tree._check_open()
        if is_grid(dimensions):
            from aerogel.mpi import _sparse

            return _sparse.outermost(self, kind, axes, dimensions)
        axis_list = [axes] if isinstance(axes, Axis) else list(axes)
        if self._tree._part is not None:
            from aerogel.mpi import _sparse

            _sparse.check_below(self, kind, axis_list)
        dims = [*dimensions] if isinstance(dimensions, Iterable) else [dimensions] * len(axis_list)
        if len(dims) == 1:
            dims *= len(axis_list)
        if len(dims) != len(axis_list):
            raise AerogelExtentError(f"{len(axis_list)} axes need {len(axis_list)} dimensions, got {len(dims)}")
        pairs = [(a.value, extent(d)) for a, d in zip(axis_list, dims)]
        child = SNode(self._tree, self, self._aerogel_snode.node(kind, pairs, *number), pairs, kind)
        child._number = number[0] if number else None
        self._children.append(child)
        return child

    def place(self, *args: Any, offset: int | Sequence[int] | None = None) -> SNode:
        """Places fields in this node's cells, side by side.

        Args:
            args: Fields made without a shape, or lists of them.
            offset: The first index of each axis.
        """
        self._tree._check_open()
        for a in args:
            if isinstance(a, (list, tuple)):
                self.place(*a, offset=offset)
            elif getattr(a, "_component_of", None) is not None:
                self._place_component(a, offset)
            elif isinstance(a, _native.NativeField):
                components = getattr(a, "_components", None) or {}
                if any(component._parent_node is not None for component in components.values()):
                    raise AerogelRuntimeError("a component of the field is placed already: place the others too")
                if components:
                    self._tree._split.append(a)
                if self._tree._part is not None:
                    self._tree._part.adopt(self, a, offset)
                self._aerogel_snode.place(a, offsets(offset))
                a._parent_node = self
                self._offsets_of[a] = offset
                self._fields.append(weakref.ref(a))
            elif isinstance(a, BitpackedFields):
                self._place_word(a, offset)
            elif hasattr(a, "_aerogel_struct_field"):
                self.place(*a._leaves(), offset=offset)
            else:
                raise ValueError(f"{a!r} cannot be placed; only fields can")
        return self

    def _place_component(self, component: Any, offset: Any) -> None:
        """Notes where a component goes; with the last one the whole field is placed."""
        if self._tree._part is not None:
            raise AerogelRuntimeError("the components of a field on a grid are placed together: place the field")
        owner, at = component._component_of
        if owner._parent_node is not None or component._parent_node is not None:
            raise AerogelRuntimeError("the field is placed already")
        component._parent_node = self
        self._offsets_of[component] = offset
        parts = [owner._components.get(k) for k in range(owner.n * owner.m)]
        if any(part is None or part._parent_node is None for part in parts):
            return
        nodes = [part._parent_node for part in parts]
        if any(node._tree is not self._tree for node in nodes):
            raise AerogelRuntimeError("the components of a field are placed in one tree")
        if any(node._offsets_of[part] != offset for node, part in zip(nodes, parts, strict=True)):
            raise AerogelRuntimeError("the components of a field have one offset")
        self._tree._native.place_split(owner, [node._aerogel_snode for node in nodes], offsets(offset))
        owner._parent_node = nodes[0]
        nodes[0]._offsets_of[owner] = offset
        nodes[0]._fields.append(weakref.ref(owner))
        self._tree._split.append(owner)

    def _place_word(self, packed: BitpackedFields, offset: Any) -> None:
        if self._tree._part is not None:
            raise AerogelRuntimeError("fields on a grid have no quantised types")
        native = self._aerogel_snode.bit_struct(packed._bits)
        word = SNode(self._tree, self, native, [], "bit_struct")
        word._number = packed._bits
        self._children.append(word)
        for fields, shared in packed._groups:
            for k, field in enumerate(fields):
                if getattr(field, "_component_of", None) is not None:
                    word._place_component(field, offset)
                    continue
                native.place(field, offsets(offset), shared, shared and k > 0)
                field._parent_node = word
                word._fields.append(weakref.ref(field))

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
        for axis, size in self._axes:
            out[axis] = out.get(axis, 1) * size
        return out

    @property
    def num_cells(self) -> int:
        """How many cells there are in all."""
        n = 1
        for e in self.shape:
            n *= e
        return n

    @property
    def num_dims(self) -> int:
        """How many index axes the cells have."""
        return len(self._extents())

    def deactivate_all(self) -> None:
        """Makes all cells of this node and of those below inactive, if they are sparse."""
        self._aerogel_snode.deactivate_all()
        if self._tree._part is not None:
            self._tree._part.forget()

    def active_cells(self) -> Any:
        """The indices of the active cells, int32 of shape (n, axes), in the order in which loops visit them."""
        from aerogel.data import _cells

        self._expect_whole()
        return _cells.rows(self._aerogel_snode.active_cells(), self.num_dims, 1)

    def activate_cells(self, coordinates: Any) -> None:
        """Activates the cells at some indices, and the cells that contain them.

        Args:
            coordinates: Indices, of shape (n, axes). If one is outside, nothing has changed.
        """
        from aerogel.data import _cells

        self._expect_whole()
        self._aerogel_snode.activate_cells(_cells.indices(coordinates, self.num_dims, "the node"))

    def stats(self) -> Stats:
        """Statistics of this node and those below, a dictionary for each sparse one; prints as a table.

        ``cells`` counts the active cells, ``elements`` the pieces of memory they lie in (cells of a
        pointer or hash node, chunks of a dynamic one), ``used_bytes`` what these take, and ``held_bytes`` what
        the node has from the system for them and for others to come.
        """
        names = ("kind", "shape", "cells", "elements", "used_bytes", "held_bytes")
        rows = self._aerogel_snode.stats()
        return Stats(dict(zip(names, (kind, tuple(shape), *rest))) for kind, shape, *rest in rows)

    def occupancy(self, size: int = 64, axis: int | None = None) -> Any:
        """The fraction of active cells in tiles, as an image.

        Args:
            size: The most pixels along an axis.
            axis: Along which axis three are projected to two; the last if left out.

        Returns:
            A float32 array with numbers from 0 to 1, which ``ti.tools.imwrite`` and ``ti.GUI`` take.
        """
        from aerogel.data import _sparsity

        self._expect_whole()
        return _sparsity.occupancy(self, size, axis)

    def show_sparsity(
        self, size: int = 32, axis: int | None = None, levels: int = 2, filename: str | None = None
    ) -> None:
        """Prints how many cells of the sparse nodes above and below this one are active, and where.

        The first axis points right and the second up.

        Args:
            size: The most places along an axis.
            axis: Along which axis three are projected to two; the last if left out.
            levels: How many sparse levels are shown.
            filename: Writes an image of this node's cells instead.
        """
        from aerogel.data import _sparsity

        self._expect_whole()
        _sparsity.show(self, size, axis, levels, filename)

    def _expect_whole(self) -> None:
        if self._tree._part is not None:
            raise AerogelRuntimeError(
                "the cells of this layout are divided among ranks: use active_cells() of a field, or a kernel"
            )

    @property
    def _num_dynamically_allocated(self) -> int:
        return self.stats()[0]["elements"] if self._kind in ("pointer", "hash", "dynamic") else 0

    @property
    def _cell_size_bytes(self) -> int:
        return self._aerogel_snode.layout()[0]

    @property
    def _offset_bytes_in_parent_cell(self) -> int:
        return self._aerogel_snode.layout()[1]

    def _get_children(self) -> list[SNode]:
        return list(self._children)

    def lazy_grad(self) -> None:
        """Places gradients of all fields of floats below that have none, each beside its field."""
        self._place_gradients("grad")

    def lazy_dual(self) -> None:
        """Places tangents of all fields of floats below that have none, each beside its field."""
        self._place_gradients("dual")

    def _place_gradients(self, kind: str) -> None:
        for child in list(self._children):
            child._place_gradients(kind)
        for field in [reference() for reference in self._fields]:
            gradient = None if field is None else getattr(field, kind)
            if field is not None and gradient is None and field._may_have_gradient(kind):
                gradient = field._add_gradient(kind)
            if gradient is not None and not gradient._is_placed():
                self.place(gradient, offset=self._offsets_of.get(field))

    def _unplaced_gradients(self) -> list[str]:
        """What the fields below are called whose gradients are nowhere."""
        names = [name for child in self._children for name in child._unplaced_gradients()]
        for field in [reference() for reference in self._fields]:
            if field is None:
                continue
            for gradient in field._needed:
                if not gradient._is_placed():
                    names.append(f"`{field._name}`" if field._name else "a field without a name")
        return names

    def __repr__(self) -> str:
        from aerogel.data import _sparsity

        return f"<ti.SNode of type {self._kind}>\n{_sparsity.tree_text(self)}"

    def __str__(self) -> str:
        return "ti.root" if self._parent is None else f"{self._parent} => {self._kind} {list(self.shape)}"

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


class _PlaceNode:
    """The node of one field (its first component), as ``field.snode`` gives it."""

    def __init__(self, field: Any) -> None:
        self._field = weakref.ref(field)
        self._owner = field._parent_node

    @property
    def _aerogel_snode(self) -> Any:
        field = self._field()
        if field is None:
            raise AerogelRuntimeError("the field was destroyed")
        return field._place_node()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return self._owner.shape

    @property
    def dtype(self) -> Any:
        """The type of the field's numbers."""
        field = self._field()
        if field is None:
            raise AerogelRuntimeError("the field was destroyed")
        return field.dtype

    def parent(self, n: int = 1) -> Any:
        """The node ``n`` levels up."""
        return self._owner.parent(n - 1)

    @property
    def ptr(self) -> _PlaceNode:
        """The native side of a node, which Taichi's programs access."""
        return self

    def get_snode_grad_type(self) -> Any:
        """The kind of values in the field: :class:`ti.ad.SNodeGradType`."""
        field = self._field()
        kinds = {"grad": SNodeGradType.ADJOINT, "dual": SNodeGradType.DUAL}
        return kinds.get(field._derivative_kind if field is not None else "", SNodeGradType.PRIMAL)

    def has_dual(self) -> bool:
        """Whether the field has tangents."""
        return derivative_of(self._field(), "dual") is not None

    def deactivate_all(self) -> None:
        """Does nothing: a place has no cells of its own."""

    def __repr__(self) -> str:
        return "<ti.SNode of type place>"

    def __str__(self) -> str:
        return f"{self._owner} => place {list(self.shape)}"


class FieldsBuilder:
    """Makes a layout of its own, which can be destroyed by itself.

    >>> builder = FieldsBuilder()
    """

    def __init__(self) -> None:
        self._native: Any = None
        self._root: SNode | None = None
        self._tree: SNodeTree | None = None
        self._split: list[Any] = []
        # Of a layout on a grid: what processes share of it.
        self._part: Any = None
        self.empty = True
        self.finalized = False

    def _check_open(self) -> None:
        if self._native is None:
            self._native = _native.TreeBuilder()
            self._root = SNode(self, None, self._native.root(), [])
            _pending.append(self)
            _native.set_pending(True)
        if self.finalized:
            raise AerogelRuntimeError(
                "FieldsBuilder finalized: the layout is finished; make another ti.FieldsBuilder() or use ti.root"
            )
        self.empty = False

    @property
    def root(self) -> SNode:
        """The root node."""
        if not self.finalized:
            self._check_open()
        assert self._root is not None
        return self._root

    def dense(self, indices: Any, dimensions: Any) -> SNode:
        """Adds a dense node under the root; see :meth:`SNode.dense`."""
        return self.root.dense(indices, dimensions)

    def place(self, *args: Any, offset: Any = None) -> SNode:
        """Places fields in the root, without axes; see :meth:`SNode.place`."""
        return self.root.place(*args, offset=offset)

    def pointer(self, indices: Any, dimensions: Any) -> SNode:
        """Adds a pointer node under the root; see :meth:`SNode.pointer`."""
        return self.root.pointer(indices, dimensions)

    def hash(self, indices: Any, dimensions: Any) -> SNode:
        """Adds a hash node under the root; see :meth:`SNode.hash`."""
        return self.root.hash(indices, dimensions)

    def bitmasked(self, indices: Any, dimensions: Any) -> SNode:
        """Adds a bitmasked node under the root; see :meth:`SNode.bitmasked`."""
        return self.root.bitmasked(indices, dimensions)

    def dynamic(self, index: Any, dimension: Any, chunk_size: int | None = None) -> SNode:
        """Adds a dynamic node under the root; see :meth:`SNode.dynamic`."""
        return self.root.dynamic(index, dimension, chunk_size)

    def quant_array(self, indices: Any, dimensions: Any, max_num_bits: int) -> SNode:
        """Adds a quant_array node under the root; see :meth:`SNode.quant_array`."""
        return self.root.quant_array(indices, dimensions, max_num_bits)

    def lazy_grad(self) -> None:
        """Places the gradients of all fields that need one; see :meth:`SNode.lazy_grad`."""
        self.root.lazy_grad()

    def lazy_dual(self) -> None:
        """Places the tangents of all fields that need one; see :meth:`SNode.lazy_dual`."""
        self.root.lazy_dual()

    def finalize(self, raise_warning: bool = True) -> SNodeTree:
        """Lays the tree out; nothing can be added afterwards. That happens once, at the first use of a field
        at the latest."""
        if self._tree is not None:
            raise AerogelRuntimeError("FieldsBuilder finalized")
        self._lay_out()
        self._tree = SNodeTree(self)
        return self._tree

    def _lay_out(self) -> None:
        if not self.finalized:
            self._check_open()
            assert self._root is not None
            unplaced = self._root._unplaced_gradients()
            if unplaced:
                raise AerogelRuntimeError(
                    f"the gradient of {', '.join(dict.fromkeys(unplaced))} is not placed: call ti.root.lazy_grad(), "
                    "or place it too, as in ti.root.dense(ti.i, 4).place(x, x.grad)"
                )
            self.finalized = True
            if self in _pending:
                _pending.remove(self)
            self._native.finish()
            if self._part is not None:
                self._part.laid_out(self._native)
            for field in self._split:
                for at, component in field._components.items():
                    field._share_component(at, component)
            self._split.clear()
            _finished[next(_serial)] = self

    def deactivate_all(self) -> None:
        """Makes all cells of the layout's sparse nodes inactive."""
        if not self.empty:
            self.root.deactivate_all()


class SNodeTree:
    """A finished layout."""

    def __init__(self, builder: FieldsBuilder) -> None:
        self._builder = builder
        self._destroyed = False

    def stats(self) -> Stats:
        """Statistics of the sparse nodes; see :meth:`SNode.stats`."""
        return self._builder.root.stats()

    def show_sparsity(self, size: int = 32, axis: int | None = None, levels: int = 2) -> None:
        """Shows which cells are active; see :meth:`SNode.show_sparsity`."""
        self._builder.root.show_sparsity(size, axis, levels)

    def __repr__(self) -> str:
        return f"<ti.SNodeTree>\n{repr(self._builder.root).partition(chr(10))[2]}"

    def destroy(self) -> None:
        """Frees the memory; using a field of the layout raises an error from now on."""
        if self._destroyed:
            raise AerogelRuntimeError("SNode tree has been destroyed")
        self._destroyed = True
        self._builder._native.destroy()
        for number, builder in list(_finished.items()):
            if builder is self._builder:
                del _finished[number]


_pending: list[FieldsBuilder] = []
# The layouts that are in use, in the order in which they were finished.
_finished: weakref.WeakValueDictionary[int, FieldsBuilder] = weakref.WeakValueDictionary()
_serial = itertools.count()


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

    def lazy_grad(self) -> None:
        """Makes gradients for all fields of floats that have none and that no kernel has used yet, in ``ti.root`` or
        with a shape of their own."""
        self._current().lazy_grad()
        _unused.place_gradients("grad")

    def lazy_dual(self) -> None:
        """Makes tangents for all fields of floats that have none; see :meth:`lazy_grad`."""
        self._current().lazy_dual()
        _unused.place_gradients("dual")

    def deactivate_all(self) -> None:
        """Makes all cells of all sparse nodes inactive."""
        deactivate_all_snodes()

    def stats(self) -> Stats:
        """Statistics of the sparse nodes of all layouts; see :meth:`SNode.stats`."""
        _materialize()
        return Stats(row for builder in list(_finished.values()) for row in builder.root.stats())

    def show_sparsity(self, size: int = 32, axis: int | None = None, levels: int = 2) -> None:
        """Shows which cells of all layouts are active; see :meth:`SNode.show_sparsity`."""
        _materialize()
        for builder in list(_finished.values()):
            if builder.root.stats():
                builder.root.show_sparsity(size, axis, levels)

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
        from aerogel.data import _sparsity

        builders = [*_finished.values(), *_pending]
        return "\n".join(["ti.root", *(_sparsity.tree_text(b._root) for b in builders if b._root is not None)])


root: Any = _Root()


def deactivate_all_snodes() -> None:
    """Makes all cells of all sparse nodes of the program inactive."""
    _native.deactivate_all_snodes()
    for builder in list(_finished.values()):
        if builder._part is not None:
            builder._part.forget()


def _materialize() -> None:
    """Lays out all trees that have been described; native code calls this before a field is used."""
    for builder in list(_pending):
        builder._lay_out()
    _unused.forget()
    _native.set_pending(False)


def _forget() -> None:
    """Drops all descriptions, for ``ti.reset()``."""
    _pending.clear()
    _finished.clear()
    _unused.forget()
    _native.set_pending(False)
    root._builder = FieldsBuilder()


_config.at_reset.append(_forget)
_native.set_materialize(_materialize)
