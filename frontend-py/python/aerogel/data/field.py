"""Fields: scalars, vectors and matrices on a grid, in a layout of the user's choice."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from aerogel import _native
from aerogel._dtypes import DataType, bf16, dtype_of, numpy_dtype
from aerogel._limits import of_floats
from aerogel._outside import outside_kernels
from aerogel.data import _shared, _torch, _unused, snode
from aerogel.data._field import Field, without_operators
from aerogel.data._quant import QuantType
from aerogel.data.axes import Layout, axes, is_grid, is_int
from aerogel.data.matrix import Matrix
from aerogel.data.snode import SNode, _PlaceNode
from aerogel.errors import AerogelExtentError, AerogelRuntimeError, AerogelShapeError, AerogelSyntaxError

if TYPE_CHECKING:
    from aerogel.data.matrix_type import MatrixType

#: Elements of a field that is printed element by element, as an array: a sparse field may have far more than memory.
_LARGEST_SHOWN = 1 << 28


class _Gradient:
    """``x.grad`` and ``x.dual``: what was made for a field, or may be placed beside it.

    A field of floats whose layout is not finished yet has both, so that a layout can place them; a gradient that was
    not requested and is never placed is no error. Gradients have tangents, ``x.grad.dual``, for second derivatives.
    """

    def __init__(self, keyword: str) -> None:
        self._keyword = keyword

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, field: Any, owner: Any = None) -> Any:
        if field is None:
            return None
        stored = field.__dict__.get(self._name)
        if stored is None and field._is_open() and field._may_have_gradient(self._name):
            stored = field._add_gradient(self._name)
            stored._set_remedy(f"make the field with {self._keyword}=True, or place its .{self._name} too")
        return stored

    def __set__(self, field: Any, value: Any) -> None:
        field.__dict__[self._name] = value
        value._derivative_kind = self._name
        field._needed.append(value)


@without_operators
class NumericField(Field, _native.NativeField):
    """A field of numbers, vectors or matrices. Element access is native code."""

    if TYPE_CHECKING:
        # What kernels do with the name of a field.
        def __iter__(self) -> Iterator[Any]: ...

    _parent_node: SNode | None = None
    #: Whether the ranks of an MPI program share it.
    _is_split = False
    #: What the field holds of another one: nothing, ``"grad"`` or ``"dual"``.
    _derivative_kind = ""
    dtype: DataType | QuantType
    grad = _Gradient("needs_grad")
    dual = _Gradient("needs_dual")

    @functools.cached_property
    def _needed(self) -> list[Any]:
        """The gradients that were requested."""
        return []

    def _may_have_gradient(self, kind: str) -> bool:
        is_float = not isinstance(self.dtype, QuantType) and self.dtype.is_float
        return is_float and (not self._derivative_kind or (self._derivative_kind, kind) == ("grad", "dual"))

    def _is_open(self) -> bool:
        """Whether something can still be placed beside the field."""
        return not self._is_placed() or (self._parent_node is not None and not self._parent_node._tree.finalized)

    def _add_gradient(self, kind: str) -> Any:
        """Makes the field of its ``grad`` or ``dual``, which is placed nowhere yet."""
        out = self._make_alike(f"{self._name}.{kind}" if self._name else "")
        self.__dict__[kind] = out
        out._derivative_kind = kind
        return out

    def _make_alike(self, name: str) -> Any:
        """A field of the same type, which is not placed."""
        raise NotImplementedError

    @property
    def _aerogel_field(self) -> NumericField:
        return self

    @property
    def snode(self) -> Any:
        """The node in which the field is placed."""
        return _PlaceNode(self)

    def _array_shape(self) -> tuple[int, ...]:
        return self.shape

    def _shown_shape(self) -> tuple[int, ...]:
        """The shape of what ``to_numpy`` and ``to_torch`` return."""
        return self._array_shape()

    def _repr_png_(self) -> bytes | None:
        from aerogel import _notebook

        return _notebook.png(self)

    def _repr_html_(self) -> str | None:
        from aerogel import _notebook

        return _notebook.summary(self)

    def to_numpy(self, dtype: Any = None) -> Any:
        """The elements as a new NumPy array, in the order of their indices whatever the layout.

        Those that are not active are zero.
        """
        import numpy as np

        out = np.empty(self._array_shape(), numpy_dtype(self.dtype))
        self._copy_to(out)
        return out if dtype is None else out.astype(_numpy_type(dtype))

    def from_numpy(self, arr: Any) -> None:
        """Sets all active elements from a NumPy array of the field's shape, whose last axes are those of an element.

        All elements of a dense field are active. Under sparse nodes the others stay as they are. Axes of one may
        be more or fewer.
        """
        if _native.is_torch_tensor(arr) and arr.requires_grad:
            return self.from_torch(arr)
        if getattr(arr, "_aerogel_tensor", False) and arr.requires_grad and hasattr(_native.recorder(), "read"):
            with copying(arr):
                return self.from_numpy(arr.detach())
        arr = numbers(arr, self.dtype)
        shape = self._array_shape()
        if not alike(arr.shape, shape):
            raise ValueError(f"ti.field shape {shape} does not match the numpy array shape {tuple(arr.shape)}")
        self._copy_from(converted(arr, self.dtype).reshape(shape))

    def active_cells(self) -> tuple[Any, Any]:
        """The active elements as NumPy arrays, in the order in which loops visit them.

        Returns:
            Their indices, int32 of shape (n, axes), and their values, of shape (n,) or, for vectors and
            matrices, (n, rows[, columns]).
        """
        from aerogel.data import _cells

        return _cells.active(self)

    def set_cells(self, coordinates: Any, values: Any) -> None:
        """Makes elements active and writes to them, in parallel.

        Everything is checked first: if an index is outside, or a shape or type does not fit, nothing
        has changed. If an index comes twice, its last value counts.

        Args:
            coordinates: Indices, of shape (n, axes); along one axis (n,) will do.
            values: The values to write, of shape (n,) or, for vectors and matrices, (n, rows[, columns]); a
                single element is written to all.
        """
        from aerogel.data import _cells

        _cells.write(self, coordinates, values)

    def occupancy(self, size: int = 64, axis: int | None = None) -> Any:
        """The fraction of active elements; see :meth:`SNode.occupancy`."""
        from aerogel.data import _sparsity

        return _sparsity.occupancy(self, size, axis)

    def show_sparsity(
        self, size: int = 32, axis: int | None = None, levels: int = 2, filename: str | None = None
    ) -> None:
        """Shows which elements are active; see :meth:`SNode.show_sparsity`."""
        from aerogel.data import _sparsity

        _sparsity.show(self, size, axis, levels, filename)

    def to_torch(self, device: Any = None, copy: bool = True) -> Any:
        """The elements as a new PyTorch tensor, or with ``copy=False`` as one over the memory of the field.

        Raises:
            ValueError: ``copy=False``, and the memory of the field is no strided array.
        """
        if not copy:
            import torch  # type: ignore[import-not-found]

            if torch.device(device or "cpu").type != "cpu":
                raise ValueError(f"the memory of the field is not on {device}: leave out copy=False to get a copy")
            shared = torch.from_numpy(_shared.view(self))
            shared = shared.view(torch.bfloat16) if self.dtype is bf16 else shared
            return shared.view(self._shown_shape())
        out = _torch.empty(self._array_shape(), self.dtype)
        self._copy_to(out)
        return out.reshape(self._shown_shape()).to(device or "cpu")

    def from_torch(self, arr: Any) -> None:
        """Sets all elements from a PyTorch tensor; under a tape that gets their gradient, if it requires one."""
        with copying(arr):
            arr, is_alike = _torch.converted(arr, self.dtype)
            if is_alike and alike(arr.shape, self._array_shape()):
                self._copy_from(arr)
            else:
                self.from_numpy(arr.detach())

    def to_paddle(self, place: Any = None) -> Any:
        """The elements as a new Paddle tensor, where Paddle is installed."""
        import paddle  # type: ignore[import-not-found]

        return paddle.to_tensor(self.to_numpy(), place=place)

    def from_paddle(self, arr: Any) -> None:
        """Sets all elements from a Paddle tensor."""
        if not hasattr(arr, "numpy"):
            raise TypeError(f"from_paddle takes a Paddle tensor, not {type(arr).__name__}")
        self.from_numpy(arr.numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A copy of the elements for ``numpy.asarray``; with ``copy=False`` an array over the memory of the field."""
        if copy is False:
            array = _shared.view(self)
            array = array.view(numpy_dtype(bf16)) if self.dtype is bf16 else array
            if dtype is not None and array.dtype != dtype:
                raise ValueError(f"elements of {self.dtype} are copied to become {dtype}: leave out copy=False")
            return array
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, *, copy: bool | None = None, **kwargs: Any) -> Any:
        """The memory for other packages: ``torch.from_dlpack(x)``, ``numpy.from_dlpack(x)``.

        Where the layout is no strided array, or with ``copy=True``, it is a copy of the elements.

        Raises:
            BufferError: ``copy=False``, and the memory of the field is no strided array.
        """
        if copy:
            return self.to_numpy().__dlpack__(**kwargs)
        try:
            array = _shared.view(self)
        except ValueError as e:
            if copy is False:
                raise BufferError(str(e)) from None
            array = self.to_numpy()
        return array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Where the memory is: on the CPU."""
        return (1, 0)

    def copy_from(self, other: NumericField) -> None:
        """Sets all elements from another field of the same shape, which makes all of them active."""
        if not isinstance(other, NumericField):
            raise TypeError("Cannot copy from a non-field object: `from_numpy` takes arrays and tensors")
        if other.shape != self.shape:
            raise ValueError(f"ti.field shape {self.shape} does not match the source field shape {other.shape}")
        import numpy as np

        array = other.to_numpy().astype(numpy_dtype(self.dtype), copy=False)
        array = np.ascontiguousarray(array).reshape(self._array_shape())
        with copying(other):
            self._assign(array)

    def __str__(self) -> str:
        if not self._is_placed():
            return "<ti.field: not placed>"
        if not self._is_alive():
            return "<ti.field: its layout is gone>"
        if math.prod(self.shape) > _LARGEST_SHOWN:
            return f"<ti.field of shape {self.shape}: too large to be shown whole>"
        return str(self.to_numpy()) if self.shape else str(self[None])

    def __repr__(self) -> str:
        return "<ti.field>"

    __hash__ = object.__hash__


class ScalarField(NumericField):
    """A field of numbers."""

    # The field whose component it is, and its number, if it was made before that had a place.
    _component_of: tuple[MatrixField, int] | None = None

    def _make_alike(self, name: str) -> ScalarField:
        return _make_scalar(self.dtype, name)

    def fill(self, val: Any) -> None:
        """Sets every active element to a number."""
        self._fill([val])


class MatrixField(NumericField):
    """A field of vectors or matrices."""

    n: int
    m: int
    ndim: int
    # One for each component, where they differ.
    _types: list[QuantType] | None = None
    # Gradients that were requested, by number, before the field was placed.
    _components: dict[int, ScalarField] | None = None

    def _make_alike(self, name: str) -> MatrixField:
        return _make_matrix(self._types or [self.dtype], self.n, self.m, self.ndim, name)

    def _array_shape(self) -> tuple[int, ...]:
        return (*self.shape, self.n) if self.ndim == 1 else (*self.shape, self.n, self.m)

    def _shown_shape(self) -> tuple[int, ...]:
        return (*self.shape, self.n) if self.m == 1 else self._array_shape()

    def fill(self, val: Any) -> None:
        """Sets every active element to a matrix, or every component to a number."""
        self._fill(_native.components_to_fill(val, self.n, self.m, self.ndim))

    def get_scalar_field(self, *indices: int) -> ScalarField:
        """The field of one component, sharing its memory.

        Before the field is placed, its components can be placed one by one instead.
        """
        at = indices[0] if len(indices) == 1 else indices[0] * self.m + indices[1]
        unplaced = self._parent_node is None
        if unplaced and not 0 <= at < self.n * self.m:
            raise ValueError("there is no such component")
        if self._components is not None and at in self._components:
            return self._components[at]
        dtype = self._types[at] if self._types else self.dtype
        out = _make_scalar(dtype, f"{self._name}_{at}")
        if unplaced:
            out._component_of = (self, at)
            self._components = self._components or {}
            self._components[at] = out
            return out
        self._share_component(at, out)
        out._parent_node = self._parent_node
        for kind in ("grad", "dual"):
            gradient = getattr(self, kind)
            if gradient is not None and gradient._is_placed():
                out.__dict__[kind] = gradient.get_scalar_field(at)
        return out

    def to_numpy(self, keep_dims: bool = False, dtype: Any = None) -> Any:
        """The elements as a new NumPy array whose last axes are those of an element.

        Matrices of one column are as vectors, and vectors have one axis, unless ``keep_dims`` is set.
        """
        out = super().to_numpy(dtype)
        if self.m != 1:
            return out
        return out.reshape(*self.shape, self.n, 1) if keep_dims else out.reshape(*self.shape, self.n)


def alike(given: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether shapes are the same but for axes of one: then it is clear which element goes where."""
    return [n for n in given if n != 1] == [n for n in wanted if n != 1]


def copying(source: Any) -> Any:
    """What is written inside of ``with copying(source):`` is a copy of that, as the recorder is told."""
    told = getattr(_native.recorder(), "copying", None)
    return contextlib.nullcontext() if told is None else told(source)


def numbers(array: Any, dtype: Any) -> Any:
    """A NumPy array of real numbers that fit elements of a type, or an exception. Floats are cut off towards zero."""
    import numpy as np

    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("elements have no mask: take `array.filled(value)`, or `array.data`")
    array = _torch.to_numpy(array) if _native.is_torch_tensor(array) else np.asarray(array)
    if array.dtype.name == "bfloat16":
        if dtype_of(dtype) is bf16:
            return array
        array = array.astype(np.float32)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"an array of real numbers is needed, not one of {array.dtype}")
    wanted = numpy_dtype(dtype)
    if wanted.kind in "iu" and array.size and not np.can_cast(array.dtype, wanted):
        limits = np.iinfo(wanted)
        # A comparison with NaN is false.
        for value in (array.min(), array.max()):
            if not limits.min - 1 < (int(value) if array.dtype.kind in "iu" else float(value)) < limits.max + 1:
                from aerogel.errors import AerogelRuntimeTypeError

                raise AerogelRuntimeTypeError(
                    f"{value} does not fit an element of type {dtype}: its values are {limits.min} to {limits.max}"
                )
    return array


def converted(array: Any, dtype: Any) -> Any:
    """An array's numbers as elements of a type, without gaps; one that would become infinite is refused."""
    import numpy as np

    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(array, dtype=numpy_dtype(dtype))
    except FloatingPointError:
        from aerogel.errors import AerogelRuntimeTypeError

        limit = of_floats(dtype_of(dtype)).max
        finite = np.abs(array[np.isfinite(array)]).max()
        raise AerogelRuntimeTypeError(
            f"{finite} does not fit an element of type {dtype}: its values are {-limit} to {limit}"
        ) from None


def _numpy_type(dtype: Any) -> Any:
    return numpy_dtype(dtype) if isinstance(dtype, DataType) else dtype


def _shape(shape: Any) -> tuple[int, ...]:
    if is_int(shape):
        shape = (shape,)
    try:
        out = tuple(operator.index(s) for s in shape)
    except (TypeError, NotImplementedError):
        raise TypeError(f"a shape is an integer or a tuple of integers, not {shape!r}") from None
    if any(s <= 0 for s in out):
        raise AerogelExtentError(f"the sizes of a field must be at least 1, got {out}")
    if len(out) > 12:
        raise AerogelExtentError(f"a field has at most 12 axes, got {len(out)}")
    return out


def _element_type(dtype: Any) -> Any:
    """The type of a field's numbers: a scalar type, or a quantised one."""
    return dtype if isinstance(dtype, QuantType) else dtype_of(dtype)


def _quant_texts(types: list[Any]) -> list[str]:
    return [dtype._aerogel_quant for dtype in types if isinstance(dtype, QuantType)]


def _place(
    fields: list[Any],
    shape: Any,
    order: str | None,
    offset: int | Sequence[int] | None,
    layout: Any,
) -> None:
    if is_grid(shape):
        from aerogel.mpi import _fields

        if offset is not None:
            raise AerogelSyntaxError("a field with a grid as its shape has no offset: its indices begin at 0")
        return _fields.place(fields, shape, lambda dims, first: _lay_out(fields, dims, order, first, layout))
    _lay_out(fields, shape, order, offset, layout)
    for out in fields:
        if shape is not None:
            _unused.remember(out, lambda gradient: _lay_out([gradient], shape, order, offset, layout))


def _lay_out(
    fields: list[Any],
    shape: Any,
    order: str | None,
    offset: int | Sequence[int] | None,
    layout: Any,
) -> Any:
    """Places fields in a layout of their own, if there is a shape; returns the native layout."""
    if shape is None:
        if offset is not None:
            raise AerogelSyntaxError("shape cannot be None when offset is set")
        if order is not None:
            raise AerogelSyntaxError("shape cannot be None when order is set")
        return None
    dims = _shape(shape)
    if offset is not None:
        offset = [int(offset)] if is_int(offset) else [int(o) for o in offset]  # type: ignore[union-attr,arg-type]
        if len(offset) != len(dims):
            raise AerogelSyntaxError(
                f"The dimensionality of shape and offset must be the same ({len(dims)} != {len(offset)})"
            )
    sequence = list(range(len(dims)))
    if order is not None:
        if len(order) != len(dims):
            raise AerogelSyntaxError(
                f"The dimensionality of shape and order must be the same ({len(dims)} != {len(order)})"
            )
        sequence = ["ijklmnopqrst".find(c) for c in order]
        for axis, c in zip(sequence, order):
            if not 0 <= axis < len(dims):
                raise AerogelSyntaxError(f"Invalid axis {c}")
        if len(set(sequence)) != len(sequence):
            raise AerogelSyntaxError("The axes in order must be different")
    builder = snode.FieldsBuilder()
    builder._check_open()
    root = builder.root

    def levels() -> SNode:
        if order is None:
            return root.dense(axes(*sequence), dims) if dims else root
        node = root
        for axis in sequence:
            node = node.dense(axes(axis), dims[axis])
        return node

    def lay_out(fields: list[Any]) -> None:
        if not fields:
            return
        if layout is not Layout.SOA:
            levels().place(*fields, offset=offset)
        elif len(fields) == 1 and isinstance(fields[0], MatrixField):
            out = fields[0]
            nodes = [levels() for _ in range(out.n * out.m)]
            builder._native.place_split(out, [n._aerogel_snode for n in nodes], offset)
            out._parent_node = nodes[0]
            nodes[0]._fields.append(weakref.ref(out))
        else:
            for out in fields:
                levels().place(out, offset=offset)

    lay_out(fields)
    for kind in ("grad", "dual"):
        own = [out.__dict__[kind] for out in fields if kind in out.__dict__]
        lay_out(own)
        lay_out([out.__dict__["dual"] for out in own if "dual" in out.__dict__])
    builder._lay_out()
    return builder._native


if TYPE_CHECKING:

    @overload
    def field(
        dtype: MatrixType,
        shape: Any = None,
        order: str | None = None,
        name: str = "",
        offset: Any = None,
        needs_grad: bool = False,
        needs_dual: bool = False,
    ) -> MatrixField: ...
    @overload
    def field(
        dtype: type[Matrix],
        shape: Any = None,
        order: str | None = None,
        name: str = "",
        offset: Any = None,
        needs_grad: bool = False,
        needs_dual: bool = False,
    ) -> MatrixField: ...
    @overload
    def field(
        dtype: Any,
        shape: Any = None,
        order: str | None = None,
        name: str = "",
        offset: Any = None,
        needs_grad: bool = False,
        needs_dual: bool = False,
    ) -> ScalarField: ...


@outside_kernels
def field(
    dtype: Any,
    shape: Any = None,
    order: str | None = None,
    name: str = "",
    offset: Any = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
) -> Any:
    """Makes a field of numbers.

    Args:
        dtype: The type of an element: a scalar type, ``float``, ``int``, or a vector or matrix type.
        shape: The size of each axis; if left out, the field must be placed in a layout before it is used.
        order: The axes from the one that varies slowest to the one that varies fastest, such as ``"ji"``.
        name: A name for messages.
        offset: The first index of each axis.
        needs_grad: Whether there is a field of the same type for the gradient, ``x.grad``.
        needs_dual: Whether there is one for the tangent of forward mode, ``x.dual``; with ``needs_grad`` also one for
            the tangent of the gradient, ``x.grad.dual``, which second derivatives need.

    >>> x = field(float, shape=(4, 8))  # doctest: +SKIP
    """
    from aerogel.data.matrix_type import MatrixType

    if isinstance(dtype, MatrixType):
        return matrix_field(
            dtype.n,
            dtype.m,
            dtype.ndim,
            dtype.dtype,
            shape,
            order=order,
            name=name,
            offset=offset,
            needs_grad=needs_grad,
            needs_dual=needs_dual,
        )
    scalar = _element_type(dtype)
    _check(scalar, needs_grad or needs_dual, "field")
    out = _with_gradients(_make_scalar(scalar, name), needs_grad, needs_dual)
    _place([out], shape, order, offset, Layout.AOS)
    return out


@outside_kernels
def matrix_field(
    n: int,
    m: int,
    ndim: int,
    dtype: Any,
    shape: Any = None,
    order: str | None = None,
    name: str = "",
    offset: Any = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    layout: Any = Layout.AOS,
    **kwargs: Any,
) -> MatrixField:
    """Makes a field of vectors (``ndim`` 1) or matrices; ``ti.Vector.field`` and ``ti.Matrix.field`` call this."""
    if kwargs.pop("ndim", None) not in (None, 1, 2) or kwargs:
        raise TypeError(f"unknown keywords {sorted(kwargs)}")
    types = _component_types(dtype, n, m, ndim)
    _check(types[0], needs_grad or needs_dual, "field")
    n, m = operator.index(n), operator.index(m)
    if n < 1 or m < 1:
        raise AerogelExtentError(f"a vector or matrix has at least one component, not {n} by {m}")
    out = _with_gradients(_make_matrix(types, n, m, ndim, name), needs_grad, needs_dual)
    _place([out], shape, order, offset, layout)
    return out


def _component_types(dtype: Any, n: int, m: int, ndim: int) -> list[Any]:
    """The type of each component, or one for all; they are computed with in one type."""
    if not isinstance(dtype, (list, tuple)):
        return [_element_type(dtype)]
    flat = [_element_type(t) for t in (itertools.chain(*dtype) if ndim == 2 else dtype)]
    if len(flat) != n * m:
        raise AerogelShapeError(f"{n * m} components need as many types, got {len(flat)}")
    if all(t == flat[0] for t in flat):
        return flat[:1]
    if not all(isinstance(t, QuantType) and t.compute == flat[0].compute for t in flat):
        raise AerogelRuntimeError(
            f"the components of a vector or matrix need one dtype for computations, which {dtype} do not have: "
            "only quantised types may differ"
        )
    return flat


def _check(dtype: Any, needs_gradient: bool, what: str) -> None:
    _native.check_initialized()
    if needs_gradient and (isinstance(dtype, QuantType) or not dtype.is_float):
        raise AerogelRuntimeError(f"{dtype} is not supported for {what} with `needs_grad=True` or `needs_dual=True`.")


def _make_scalar(dtype: Any, name: str) -> ScalarField:
    out = ScalarField(dtype._aerogel_dtype, 1, 1, 0, name, _quant_texts([dtype]))
    out.dtype = dtype
    return out


def _make_matrix(types: list[Any], n: int, m: int, ndim: int, name: str) -> MatrixField:
    out = MatrixField(types[0]._aerogel_dtype, n, m, ndim, name, _quant_texts(types))
    out.dtype, out.n, out.m, out.ndim = types[0], n, m, ndim
    out._types = types if len(types) > 1 else None
    return out


def _with_gradients(out: Any, needs_grad: bool, needs_dual: bool) -> Any:
    """The field with the requested gradients, of the same dtype."""
    for kind, needed in (("grad", needs_grad), ("dual", needs_dual)):
        if needed:
            setattr(out, kind, out._make_alike(f"{out._name}.{kind}" if out._name else ""))
    if needs_grad and needs_dual:
        _with_gradients(out.grad, False, True)
    return out


__all__ = ["MatrixField", "NumericField", "ScalarField", "field"]
