"""``ti.save`` and ``ti.load``: fields, arrays, tensors, modules, and trees of them, in files of the format safetensors.

The tensors of a file have the path of a value as their name, such as ``state.x``. The structure of the
values and a checksum, which safetensors does not have, are texts in its metadata.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from aerogel import _saved_fields
from aerogel._safetensors import parsed, read, write, wrong
from aerogel.data.field import NumericField
from aerogel.data.matrix import Matrix
from aerogel.data.structs import Struct, StructField
from aerogel.nn._parameter import data_of, is_lazy
from aerogel.tensor._complex import is_complex
from aerogel.tensor._tensor import Tensor, asarray, is_number

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Under this name the metadata have what is not a tensor.
_TREE = "aerogel"


def save(path: str | os.PathLike[str], values: Any, *, metadata: Mapping[str, str] | None = None) -> None:
    """Writes fields, arrays and tensors to a file in the format safetensors.

    The file appears when it is complete and on the disk: if writing fails, an existing file stays as it was. Of a
    sparse field the active elements are written. Gradients of fields are not part of them: name ``x.grad``, too. The
    file of a field that ranks share has all of it; all ranks call this and ``load``, where there may be more or fewer
    of them.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x, net = ti.field(ti.f32, 8), ti.nn.Linear(2, 3)
    >>> ti.save("state.safetensors", {"x": x, "net": net, "step": 7})  # doctest: +SKIP
    >>> sorted(ti.load("state.safetensors"))  # doctest: +SKIP
    ['net', 'step', 'x']

    Args:
        path: The file.
        values: Dictionaries, lists, tuples and dataclasses, nested, of fields, ``ti.ndarray``, NumPy arrays, tensors,
            modules and optimizers (whose ``state_dict`` is written), numbers, strings and ``None``; or a module.
        metadata: Texts by name.

    Raises:
        TypeError: If there is something else in ``values``, a complex tensor, or metadata that are not texts.
        ValueError: If a module has a parameter without values, or two tensors, keys or texts would have one name.
        OSError: If the file cannot be written.
    """
    if not (hasattr(type(values), "state_dict") or isinstance(values, dict) or is_dataclass(values)):
        raise TypeError(
            f'`save` takes a dictionary, a dataclass or a module, not {type(values).__name__}: write {{"x": value}}'
        )
    collected = _Collected()
    tree = collected.of(values, "")
    tree |= collected.nodes()
    texts = dict(metadata or {})
    for name, text in texts.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"metadata map names to strings, {name!r}: {text!r} is not: write `json.dumps(value)`")
        if name.split(".")[0] == _TREE:
            raise ValueError(f"`save`: the metadata cannot have the name {name!r}, which Aerogel uses itself")
    if "dict" not in tree or "whole" in tree or not all("tensor" in own for own in tree["dict"].values()):
        texts[_TREE] = json.dumps(tree)
    tensors = {name: data_of(x) for name, x in collected.tensors.items()}
    if collected.are_split:
        from aerogel.mpi import _comm

        _comm.on_the_first(lambda: write(path, tensors, texts), f"ti.save({os.fspath(path)!r})")
    else:
        write(path, tensors, texts)


def is_dataclass(value: Any) -> bool:
    """Whether it is a dataclass' object (and not the class)."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def members(value: Any) -> dict[str, Any]:
    """The members of a dataclass by name."""
    return {own.name: getattr(value, own.name) for own in dataclasses.fields(value)}


class _Collected:
    """What is saved: tensors by their names, and the sparse fields among them."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        #: Whether some are of fields that the ranks of an MPI program share.
        self.are_split = False
        self._sparse: dict[str, Any] = {}

    def of(self, value: Any, name: str) -> dict[str, Any]:
        """The structure of a value; its tensors are added."""
        value = value.state_dict() if hasattr(type(value), "state_dict") else value
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, (str, int)) or isinstance(key, bool):
                    raise TypeError(
                        f"`save`: {name or 'the dictionary'} has the key {key!r}; keys are strings or integers"
                    )
            named = {str(k): v for k, v in value.items()}
            if len(named) < len(value):
                raise ValueError(f"`save`: {name or 'the dictionary'} has two keys of one text, such as 1 and '1'")
            kinds = {"dict": self._named(named, name)}
            whole = [str(k) for k in value if isinstance(k, int)]
            return {**kinds, "whole": whole} if whole else kinds
        if is_dataclass(value):
            return {"dataclass": self._named(members(value), name)}
        if isinstance(value, Matrix):
            return {"matrix": value.to_list()}
        if isinstance(value, Struct):
            return {"struct": self._named(value.entries, name)}
        if isinstance(value, StructField):
            return {"dict": self._named(value.field_dict, name)}
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.of(v, f"{name}.{k}") for k, v in enumerate(value)]}
        if value is None or isinstance(value, str) or is_number(value):
            return {"value": value}
        if isinstance(value, NumericField) and _saved_fields.is_sparse(value):
            if value._is_split:
                raise ValueError(
                    f"`save`: `{name}` is a sparse field on a grid, which is not saved: save its `to_numpy()`"
                )
            self._sparse[name] = value
            indices, values = value.active_cells()
            return {
                "sparse": [self._add(f"{name}.{part}", x) for part, x in (("indices", indices), ("values", values))]
            }
        return {"tensor": self._tensor(name, value)}

    def _named(self, values: dict[str, Any], name: str) -> dict[str, Any]:
        return {own: self.of(value, f"{name}.{own}" if name else own) for own, value in values.items()}

    def _tensor(self, name: str, value: Any) -> str:
        if not hasattr(value, "shape"):
            raise TypeError(
                f"`save`: `{name}` is {type(value).__name__}, not a field, an array, a tensor, a number or a string"
            )
        if is_complex(value):
            raise TypeError(
                f"`save`: `{name}` is complex, which safetensors does not support: save `x.real` and `x.imag`"
            )
        if is_lazy(value):
            raise ValueError(f"`save`: the parameter `{name}` of shape {value.shape} has no values yet")
        return self._add(name, value)

    def _add(self, name: str, value: Any) -> str:
        if name in self.tensors or name == "__metadata__":
            raise ValueError(f"`save`: two tensors have the name `{name}`, or it is that of the metadata")
        if isinstance(value, NumericField) and value._is_split:
            self.are_split = True
            value = value.to_numpy()
        self.tensors[name] = asarray(value)
        return name

    def nodes(self) -> dict[str, Any]:
        """The inner nodes of sparse fields, of which cells may be active that hold no active element."""
        records = []
        # A list `nodes` may have taken some of these names.
        names = (name for k in itertools.count() if (name := f"nodes.{k}") not in self.tensors)
        for record, node in _saved_fields.inner_nodes(self._sparse):
            records.append({**record, "tensor": self._add(next(names), node.active_cells())})
        return {"nodes": records} if records else {}


def load(path: str | os.PathLike[str], into: Any = None, *, metadata: bool = False) -> Any:
    """Reads a file in the format safetensors, written by ``save`` or another program.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> state = {"x": ti.field(ti.f32, 8), "step": 0}
    >>> ti.load("state.safetensors", into=state)  # doctest: +SKIP

    Args:
        path: The file.
        into: A value with the structure of the saved one. Fields and arrays get the file's values in place; tensors,
            numbers and strings are replaced in the dictionary, list or dataclass that has them; modules and
            optimizers take them by ``load_state_dict``. Everything is checked before anything changes.
        metadata: Whether the texts of the file are returned, too.

    Returns:
        ``into``, or if it is not given the tensors by name; dictionaries and lists as they were saved, dataclasses as
        ``types.SimpleNamespace``, fields and arrays as tensors, a sparse field as a dictionary of its ``indices`` and
        ``values``. With ``metadata``, these and the texts by name.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not such a file or is damaged; the error names the mistake and the byte. With ``into``,
            if a name is missing on either side, or a shape differs.
        TypeError: With ``into``, if a dtype differs.
    """
    path, tensors, plan, texts = opened(path)
    from aerogel._restoring import restore

    try:
        out = Rebuilt(path, tensors).of(plan) if into is None else restore(path, plan, tensors, into)
    except RecursionError:
        raise wrong(path, 8, "the structure in the metadata is nested too deeply") from None
    return (out, texts) if metadata else out


def opened(path: str | os.PathLike[str]) -> tuple[str, dict[str, Tensor], Any, dict[str, str]]:
    """The path of a file, its tensors by name, the structure of its values, and the texts of its metadata.

    Raises:
        OSError, ValueError: As ``load``.
    """
    path = os.fspath(path)
    tensors, texts = read(path)
    tree = texts.pop(_TREE, None)
    plan: Any = {"dict": {name: {"tensor": name} for name in tensors}} if tree is None else parsed(path, tree, 8)
    return path, tensors, plan, texts


def kind_of(tree: Any) -> tuple[str, Any]:
    """What a part of the structure is, and what it says of it."""
    return next(iter(tree.items())) if isinstance(tree, dict) and tree else ("", None)


class Rebuilt:
    """What was saved, from its structure."""

    def __init__(self, path: str, tensors: Mapping[str, Tensor]) -> None:
        self._path, self._tensors = path, tensors

    def of(self, tree: Any) -> Any:
        """The value of a part of the structure."""
        kind, part = kind_of(tree)
        if kind == "dict" and isinstance(part, dict):
            whole = tree.get("whole", [])
            if not isinstance(whole, list) or not all(isinstance(k, str) and k.lstrip("-").isdecimal() for k in whole):
                raise wrong(self._path, 8, f"the structure in the metadata has {whole!r} as integers")
            return {int(k) if k in whole else k: self.of(own) for k, own in part.items()}
        if kind in ("dataclass", "struct") and isinstance(part, dict):
            return (SimpleNamespace if kind == "dataclass" else Struct)(**{k: self.of(own) for k, own in part.items()})
        if kind in ("list", "tuple") and isinstance(part, list):
            return (list if kind == "list" else tuple)(map(self.of, part))
        if kind == "matrix" and _are_numbers(part):
            return Matrix(part)
        if kind == "value" and (part is None or isinstance(part, str) or is_number(part)):
            return part
        if kind == "tensor" and isinstance(part, str) and part in self._tensors:
            return self._tensors[part]
        if kind == "sparse" and isinstance(part, list) and len(part) == 2:
            return {name: self.of({"tensor": own}) for name, own in zip(("indices", "values"), part)}
        raise wrong(self._path, 8, f"the structure in the metadata has {tree!r}"[:300])


def _are_numbers(rows: Any) -> bool:
    """Whether these are the elements of a vector or of a matrix."""
    if not isinstance(rows, list) or not rows:
        return False
    if all(isinstance(row, list) and row for row in rows):
        return len({len(row) for row in rows}) == 1 and all(is_number(x) for row in rows for x in row)
    return all(map(is_number, rows))
