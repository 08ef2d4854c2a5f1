"""``ti.load(path, into=values)``: first everything is compared, then everything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aerogel import _saved_fields
from aerogel._saving import Rebuilt, is_dataclass, kind_of, members
from aerogel.data.field import NumericField
from aerogel.data.matrix import Matrix
from aerogel.data.ndarray import Ndarray
from aerogel.data.structs import Struct, StructField
from aerogel.tensor._tensor import Tensor, is_number
from aerogel.tools.sparse import write_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def restore(path: str, tree: Any, tensors: Mapping[str, Tensor], into: Any) -> Any:
    """Writes what a file holds into a value of the same structure: the arguments of ``load``, and its errors."""
    # Raises an error if the structure is malformed.
    Rebuilt(path, tensors).of(tree)
    found = _Restored(path, tensors)
    found.compare(into, tree, "", None)
    nodes = found.inner_nodes(tree)
    found.load_states()
    for change in found.changes:
        change()
    if found.sparse:
        own = [(field, indices, values) for field, indices, values in found.sparse.values()]
        write_cells([field for field, *_ in own], [(i, v) for _, i, v in own], nodes)
    return into


class _Restored:
    """What is to be written, collected while the value and the file are compared."""

    def __init__(self, path: str, tensors: Mapping[str, Tensor]) -> None:
        self._path, self._tensors = path, tensors
        self._rebuilt = Rebuilt(path, tensors)
        self._states: list[tuple[Any, Any]] = []
        self.changes: list[Callable[[], None]] = []
        self.sparse: dict[str, tuple[Any, Any, Any]] = {}

    def compare(self, own: Any, tree: Any, name: str, put: Callable[[Any], None] | None) -> None:
        """Compares a value with a part of the file; ``put`` replaces it where it lies, if that is possible."""
        kind, part = kind_of(tree)
        if hasattr(type(own), "load_state_dict"):
            state = self._rebuilt.of(tree)
            self._expect(isinstance(state, dict), name, f"the state of {type(own).__name__}", kind)
            self._states.append((own, state))
        elif isinstance(own, (dict, StructField)) or is_dataclass(own):
            self._compare_named(own, kind, part, name)
        elif isinstance(own, (list, tuple)):
            self._expect(kind in ("list", "tuple"), name, f"a {type(own).__name__}", kind)
            if len(own) != len(part):
                raise self._wrong(name, f"has {len(own)} values, the file has {len(part)}")
            for k, (value, below) in enumerate(zip(own, part)):
                self.compare(value, below, f"{name}.{k}", _setter(own, k))
        elif isinstance(own, NumericField) and _saved_fields.is_sparse(own):
            self._compare_sparse(own, kind, part, name)
        elif isinstance(own, (NumericField, Ndarray, np.ndarray)):
            self._compare_array(own, self._tensor(kind, part, name), name)
        else:
            self._replace(own, kind, tree, name, put)

    def _compare_named(self, own: Any, kind: str, part: Any, name: str) -> None:
        """A dictionary, a dataclass or a field of structs: both have the same names."""
        what = type(own).__name__
        self._expect(kind in ("dict", "dataclass"), name, what, kind)
        if isinstance(own, StructField):
            values = own.field_dict
        else:
            values = {str(k): (k, v) for k, v in own.items()} if isinstance(own, dict) else members(own)
        missing, more = [k for k in values if k not in part], [k for k in part if k not in values]
        if missing or more:
            said = [f"has {', '.join(f'`{k}`' for k in missing)}, which the file lacks"] if missing else []
            said += [f"lacks {', '.join(f'`{k}`' for k in more)}, which the file has"] if more else []
            raise self._wrong(name, "; ".join(said))
        for key, value in values.items():
            at, value = value if isinstance(own, dict) else (key, value)
            put = None if isinstance(own, StructField) else _setter(own, at)
            self.compare(value, part[key], f"{name}.{key}" if name else key, put)

    def _compare_array(self, own: Any, tensor: Tensor, name: str) -> None:
        """A dense field or an array, which is written in place."""
        if isinstance(own, np.ndarray):
            self._expect_alike(_name(own.dtype), own.shape, tensor, name)
            if not own.flags.writeable:
                raise self._wrong(name, "is an array that cannot be written")
            self.changes.append(lambda: own.__setitem__(..., tensor.numpy()))
            return
        shape = own._array_shape() if isinstance(own, NumericField) else own._numpy_shape()
        # A quantised number is read and written in the type after the last stroke.
        self._expect_alike(str(own.dtype).rpartition("/")[2], shape, tensor, name)
        self.changes.append(lambda: own.from_numpy(tensor.detach()))

    def _compare_sparse(self, own: Any, kind: str, part: Any, name: str) -> None:
        self._expect(kind == "sparse" and isinstance(part, list) and len(part) == 2, name, "a sparse field", kind)
        indices, values = (self._tensor("tensor", own, name) for own in part)
        dtype = str(own.dtype).rpartition("/")[2]
        if str(values.dtype) != dtype:
            raise TypeError(f"{self._path} does not fit: `{name}` holds {dtype}, the file has {values.dtype}")
        found = indices.numpy(), values.numpy()
        try:
            _saved_fields.expect_inside(own, *found, name)
        except ValueError as e:
            raise ValueError(f"{self._path} does not fit: {e}") from None
        self.sparse[name] = (own, *found)

    def _replace(self, own: Any, kind: str, tree: Any, name: str, put: Callable[[Any], None] | None) -> None:
        """A tensor, a number, a string or a vector, which is replaced where it lies."""
        value = self._rebuilt.of(tree)
        if isinstance(own, Tensor):
            self._expect(isinstance(value, Tensor), name, "a tensor", kind)
            self._expect_alike(str(own.dtype), own.shape, value, name)
        elif isinstance(own, np.generic):
            self._expect(isinstance(value, Tensor), name, "a number of NumPy", kind)
            self._expect_alike(_name(own.dtype), (), value, name)
            value = value.numpy()[()]
        elif not (own is None or value is None):
            self._expect(_are_alike(own, value), name, _described(own), _described(value) if kind == "value" else kind)
        if put is not None:
            self.changes.append(lambda: put(value))
        elif isinstance(own, (Tensor, Matrix, Struct)) or own != value:
            raise self._wrong(
                name, "is in a tuple or a frozen dataclass and cannot be replaced: use a list, or `replace`"
            )

    def load_states(self) -> None:
        """Lets modules and optimizers take their states. If one finds something wrong, all keep the states they had."""
        before: list[tuple[Any, Any]] = []
        try:
            for own, state in self._states:
                before.append((own, own.state_dict()))
                own.load_state_dict(state)
        except BaseException:
            for own, kept in before:
                own.load_state_dict(kept)
            raise

    def inner_nodes(self, tree: Any) -> list[tuple[Any, Any]]:
        """The cells of inner nodes that become active, too."""
        try:
            found = _saved_fields.matching(tree.get("nodes", []), {name: own[0] for name, own in self.sparse.items()})
            nodes = [(node, self._tensors[cells].numpy()) for node, cells in found]
        except (KeyError, TypeError, AttributeError):
            raise ValueError(f"{self._path} is damaged: its list of inner nodes is malformed") from None
        for node, cells in nodes:
            fits = cells.ndim == 2 and cells.shape[1] == len(node.shape) and cells.dtype.kind in "iu"
            if not fits or ((cells < 0) | (cells >= np.asarray(node.shape, np.int64))).any():
                raise ValueError(f"{self._path} is damaged: the cells of an inner node have invalid indices")
        return nodes

    # What does not fit.

    def _tensor(self, kind: str, part: Any, name: str) -> Tensor:
        self._expect(kind == "tensor" and part in self._tensors, name, "an array", kind)
        return self._tensors[part]

    def _expect_alike(self, dtype: str, shape: tuple[int, ...], tensor: Tensor, name: str) -> None:
        if tuple(tensor.shape) != tuple(shape):
            raise self._wrong(name, f"has the shape {tuple(shape)}, the file has {tuple(tensor.shape)}")
        if str(tensor.dtype) != dtype:
            raise TypeError(f"{self._path} does not fit: `{name}` holds {dtype}, the file has {tensor.dtype}")

    def _expect(self, fits: bool, name: str, what: str, kind: str) -> None:
        if not fits:
            raise self._wrong(name, f"is {what}, the file has a value of the kind {kind or 'none'!r}")

    def _wrong(self, name: str, what: str) -> ValueError:
        return ValueError(f"{self._path} does not fit: {f'`{name}`' if name else 'the value'} {what}")


def _are_alike(own: Any, value: Any) -> bool:
    """Whether a number, a string, a vector or a structure may be replaced by another one."""
    if is_number(own) and is_number(value):
        # A float may be replaced by an integer.
        kinds = [bool if isinstance(x, bool) else type(x) for x in (own, value)]
        return kinds[0] is kinds[1] or kinds == [float, int]
    if isinstance(own, Matrix) and isinstance(value, Matrix):
        return (own.n, own.m) == (value.n, value.m)
    if isinstance(own, Struct) and isinstance(value, Struct):
        return own.entries.keys() == value.entries.keys() and all(
            _are_alike(own.entries[key], value.entries[key]) for key in own.entries
        )
    return isinstance(own, str) and isinstance(value, str)


def _described(value: Any) -> str:
    """What a value is, for messages."""
    if isinstance(value, Matrix):
        return f"Matrix of {value.n} x {value.m} numbers"
    if isinstance(value, Struct):
        return f"Struct of {', '.join(f'`{key}`' for key in value.entries)}"
    return type(value).__name__


def _name(dtype: Any) -> str:
    """The name that a NumPy dtype has as one of Aerogel's."""
    from aerogel._dtypes import dtype_of

    return str(dtype_of(dtype))


def _setter(holder: Any, key: Any) -> Callable[[Any], None] | None:
    """What replaces a value of a dictionary, a list or a dataclass."""
    if isinstance(holder, (dict, list)):
        return lambda value: holder.__setitem__(key, value)
    is_frozen = isinstance(holder, tuple) or type(holder).__dataclass_params__.frozen
    return None if is_frozen else lambda value: setattr(holder, key, value)
