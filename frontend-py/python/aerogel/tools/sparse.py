"""Active cells of fields in files.

A file holds the indices and values of the active elements, so it can be loaded into another layout
than it was saved from. It begins with ``MAGIC``, the version of the format, the size of the header and
its checksum; the header is JSON. Blocks follow, compressed with zlib, each with its own checksum. All
numbers are little-endian.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from aerogel import _dtypes
from aerogel.data import _cells
from aerogel.data._sparsity import SPARSE
from aerogel.data.field import NumericField
from aerogel.data.snode import FieldsBuilder, SNode, SNodeTree
from aerogel.tools._files import write_whole

# As PNG's: whoever takes the file for text and changes its line ends is found out at once.
MAGIC = b"\x89AGL\r\n\x1a\n"
VERSION = 1
BLOCK = 1 << 16
"""Cells in a block."""

_PREFIX = struct.Struct("<8sIII")  # magic, version, bytes of the header, checksum of all this and the header
_BLOCK = struct.Struct("<III")  # cells, bytes stored, checksum
_LEVEL = 3


def save_sparse(filename: str | os.PathLike[str], *what: Any) -> None:
    """Saves the active cells of fields to a file.

    The file appears when it is complete: if writing fails, an existing file stays as it was.

    Args:
        filename: The file.
        what: Fields, or nodes and layouts (``ti.FieldsBuilder``), of which all fields are saved.

    >>> save_sparse("state.agl", density, velocity)  # doctest: +SKIP
    """
    fields = _fields(what)
    streams = [(_record(field), *field.active_cells()) for field in fields]
    nodes = [(record, node.active_cells(), None) for record, node in inner_nodes(fields)]
    parts: list[bytes] = []
    with ThreadPoolExecutor() as pool:
        for record, coordinates, values in [*streams, *nodes]:
            record["cells"] = len(coordinates)
            starts = range(0, len(coordinates), BLOCK)
            packed = pool.map(lambda at, c=coordinates, v=values: _pack(c, v, at), starts)
            parts += [_stamped(block, len(parts) + k) for k, block in enumerate(packed)]
    header = {"fields": [record for record, *_ in streams], "nodes": [record for record, *_ in nodes]}
    text = json.dumps(header).encode()
    prefix = _PREFIX.pack(MAGIC, VERSION, len(text), 0)
    prefix = _PREFIX.pack(MAGIC, VERSION, len(text), zlib.crc32(text, zlib.crc32(prefix)))
    write_whole(filename, prefix, text, *parts, stays=True)


def load_sparse(filename: str | os.PathLike[str], *what: Any) -> None:
    """Loads a file of :func:`save_sparse`; other cells of the fields become inactive.

    Layouts may differ, shapes and types may not. If every field has a name and the file has each name
    once, fields are found by name; otherwise they are the file's, in order. A cell that a field shares
    with fields that are not loaded stays active, and becomes zero.

    Everything is checked before a field changes.

    Args:
        filename: The file.
        what: Fields, or nodes and layouts (``ti.FieldsBuilder``), of which all fields are loaded.

    Raises:
        ValueError: The file is damaged, of another kind or newer than this program, or does not fit
            the fields.

    >>> load_sparse("state.agl", density, velocity)  # doctest: +SKIP
    """
    fields = _fields(what)
    saved, nodes = _read(os.fspath(filename))
    chosen = _match(str(filename), fields, saved)
    own = [({**record, "fields": [chosen[k] for k in record["fields"]]}, node) for record, node in inner_nodes(fields)]
    below = list(matching(own, [(record, cells) for record, cells, _ in nodes]))
    write_cells(fields, [saved[k][1:] for k in chosen], below)


def write_cells(
    fields: list[NumericField], values: list[tuple[np.ndarray, np.ndarray]], below: list[tuple[SNode, np.ndarray]]
) -> None:
    """Makes just these elements of fields active, and these cells of nodes above them."""
    for root in dict.fromkeys(_parent(field).path_from_root()[0] for field in fields):
        _clear(root, fields)
    for field, (coordinates, own) in zip(fields, values):
        field._fill([0] * _product(_cells.element_shape(field)))
        field.set_cells(coordinates, own)
    for node, cells in below:
        node.activate_cells(cells)


def _fields(what: tuple[Any, ...]) -> list[NumericField]:
    out: list[NumericField] = []
    for item in what:
        if isinstance(item, NumericField):
            out.append(item)
        elif isinstance(item, FieldsBuilder):
            out += _fields_below(item.root)
        elif isinstance(item, SNodeTree):
            out += _fields_below(item._builder.root)
        elif isinstance(item, SNode):
            out += _fields_below(item)
        else:
            raise TypeError(f"fields, nodes and layouts can be saved and loaded, not {item!r}")
    if not out:
        raise ValueError("there is no field to save or load")
    if len({id(field) for field in out}) != len(out):
        raise ValueError("a field is given twice")
    return out


def _fields_below(node: SNode) -> list[NumericField]:
    own = [field for ref in node._fields if (field := ref()) is not None]
    return own + [field for child in node._children for field in _fields_below(child)]


def _parent(field: NumericField) -> SNode:
    assert field._parent_node is not None
    return field._parent_node


def _record(field: NumericField) -> dict[str, Any]:
    shape = list(field.shape)
    return {
        "name": field.name,
        "dtype": str(field.dtype),
        "element": list(_cells.element_shape(field)),
        "shape": shape,
        "offset": list(field._offset or [0] * len(shape)),
        "layout": _layout(_parent(field)),
    }


def _layout(node: SNode) -> str:
    return node._aerogel_snode.tree_text()


def inner_nodes(fields: list[NumericField]) -> list[tuple[dict[str, Any], SNode]]:
    """The sparse nodes above the fields of which cells may be active with no active element below."""
    out: dict[SNode, list[int]] = {}
    for k, field in enumerate(fields):
        sparse = [n for n in _parent(field).path_from_root() if n._kind in SPARSE]
        for node in sparse[:-1]:
            out.setdefault(node, []).append(k)
    return [
        ({"layout": _layout(node), "path": _steps(node), "shape": list(node.shape), "fields": below}, node)
        for node, below in out.items()
    ]


def _steps(node: SNode) -> list[int]:
    """Which child to follow on each level, from the root."""
    path = node.path_from_root()
    return [above._children.index(below) for above, below in zip(path, path[1:])]


def _pack(coordinates: np.ndarray, values: np.ndarray | None, at: int) -> tuple[int, bytes]:
    rows = coordinates[at : at + BLOCK]
    # Neighbours follow each other, so differences are small.
    raw = np.diff(rows, axis=0, prepend=np.zeros((1, rows.shape[1]), np.int32)).T.astype("<i4").tobytes()
    if values is not None:
        part = values[at : at + BLOCK]
        raw += part.astype(part.dtype.newbyteorder("<"), copy=False).tobytes()
    return len(rows), zlib.compress(raw, _LEVEL)


def _checksum(number: int, n_cells: int, data: bytes | memoryview) -> int:
    return zlib.crc32(data, zlib.crc32(struct.pack("<III", number, n_cells, len(data))))


def _stamped(block: tuple[int, bytes], number: int) -> bytes:
    n_cells, data = block
    return _BLOCK.pack(n_cells, len(data), _checksum(number, n_cells, data)) + data


_Saved = tuple[dict[str, Any], np.ndarray, np.ndarray]
_Cells = TypeVar("_Cells")


def _read(filename: str) -> tuple[list[_Saved], list[_Saved]]:
    """The fields and inner nodes of a file, all of it checked."""
    with open(filename, "rb") as file:
        data = memoryview(file.read())
    if len(data) < len(MAGIC) or data[: len(MAGIC)] != MAGIC:
        raise ValueError(f"{filename} is not a file of sparse fields")
    if len(data) < _PREFIX.size:
        raise ValueError(f"{filename} ends within its header")
    magic, version, size, checksum = _PREFIX.unpack_from(data)
    if version != VERSION:
        known = f"this program reads version {VERSION}"
        raise ValueError(f"{filename} has version {version} of the format, or is damaged; {known}")
    at = _PREFIX.size + size
    if len(data) < at:
        raise ValueError(f"{filename} ends within its header")
    text = data[_PREFIX.size : at]
    if zlib.crc32(text, zlib.crc32(_PREFIX.pack(magic, version, size, 0))) != checksum:
        raise ValueError(f"{filename} is damaged: the header's checksum differs")
    blocks = _Blocks(filename, data, at)
    try:
        header = json.loads(bytes(text))
        fields = [blocks.stream(record, _dtype(record)) for record in header["fields"]]
        nodes = [blocks.stream(record, None) for record in header["nodes"]]
        # What is looked at later is there too.
        _ = [(record["name"], record["layout"]) for record, *_ in fields]
        _ = [(record["layout"], record["path"], set(record["fields"])) for record, *_ in nodes]
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError, json.JSONDecodeError) as e:
        raise ValueError(f"{filename} has an invalid header: {e!r}") from None
    blocks.end()
    return fields, nodes


def _dtype(record: dict[str, Any]) -> np.dtype:
    # A quantised type ends in the one that its values have.
    return np.dtype(_dtypes.numpy_dtype(_dtypes.ALL[record["dtype"].rpartition("/")[2]]))


class _Blocks:
    """Reads block after block."""

    def __init__(self, filename: str, data: memoryview, at: int) -> None:
        self.filename, self.data, self.at, self.number = filename, data, at, 0

    def stream(self, record: dict[str, Any], dtype: np.dtype | None) -> _Saved:
        n_cells, shape = record["cells"], record["shape"]
        element = record["element"] if dtype is not None else []
        if not isinstance(n_cells, int) or not 0 <= n_cells <= _product(shape):
            raise ValueError(f"{self.filename} has {n_cells} cells in the shape {shape}")
        offset = record["offset"] if dtype is not None else [0] * len(shape)
        indices = [np.empty((0, len(shape)), np.int32)]
        values = [np.empty((0, *element), dtype)]
        item = 0 if dtype is None else dtype.itemsize * _product(element)
        for n, raw in self._raw(n_cells, len(shape) * 4 + item):
            steps = np.frombuffer(raw, "<i4", n * len(shape)).reshape(len(shape), n)
            indices.append(np.cumsum(steps, axis=1, dtype=np.int32).T)
            if dtype is not None:
                part = np.frombuffer(raw, dtype.newbyteorder("<"), offset=n * len(shape) * 4)
                if dtype == np.bool_:
                    part = part.view(np.uint8) != 0
                values.append(part.astype(dtype, copy=False).reshape(n, *element))
        coordinates = np.concatenate(indices)
        low = np.asarray(offset, np.int64)
        if ((coordinates < low) | (coordinates >= low + np.asarray(shape, np.int64))).any():
            raise ValueError(f"{self.filename} has indices outside the shape {shape}")
        return record, coordinates, np.concatenate(values)

    def _raw(self, n_cells: int, cell_size: int) -> Iterator[tuple[int, bytes]]:
        while n_cells:
            if len(self.data) < self.at + _BLOCK.size:
                raise ValueError(f"{self.filename} ends before block {self.number}")
            n, stored, checksum = _BLOCK.unpack_from(self.data, self.at)
            begin = self.at + _BLOCK.size
            packed = self.data[begin : begin + stored]
            if len(packed) != stored:
                raise ValueError(f"{self.filename} ends within block {self.number}")
            if _checksum(self.number, n, packed) != checksum:
                raise ValueError(f"{self.filename} is damaged: the checksum of block {self.number} differs")
            if n != min(n_cells, BLOCK):
                raise ValueError(f"{self.filename} has a wrong number of cells in block {self.number}: {n}")
            yield n, self._unpacked(packed, n * cell_size)
            self.at, self.number, n_cells = begin + stored, self.number + 1, n_cells - n

    def _unpacked(self, packed: memoryview, size: int) -> bytes:
        unpacker = zlib.decompressobj()
        try:
            # No more than there should be, whatever the file says.
            raw = unpacker.decompress(packed, size + 1)
        except zlib.error as e:
            raise ValueError(f"{self.filename} is damaged: block {self.number} cannot be unpacked ({e})") from None
        if len(raw) != size or not unpacker.eof:
            raise ValueError(f"{self.filename} is damaged: block {self.number} has another size than its cells")
        return raw

    def end(self) -> None:
        if self.at != len(self.data):
            raise ValueError(f"{self.filename} has {len(self.data) - self.at} more bytes after its end")


def _product(numbers: Iterable[int]) -> int:
    out = 1
    for number in numbers:
        if not isinstance(number, int) or number < 1:
            raise TypeError(f"{number!r} is not a size")
        out *= number
    return out


def _match(filename: str, fields: list[NumericField], saved: list[_Saved]) -> list[int]:
    """The number of the saved field that each field gets, if they fit."""
    names = [record["name"] for record, *_ in saved]
    if all(field.name and names.count(field.name) == 1 for field in fields):
        chosen = [names.index(field.name) for field in fields]
    elif len(fields) == len(saved):
        chosen = list(range(len(saved)))
    else:
        raise ValueError(f"{filename} has {len(saved)} fields ({names}), and {len(fields)} are to be loaded")
    for field, k in zip(fields, chosen):
        here, there = _record(field), saved[k][0]
        for key in ("dtype", "element", "shape", "offset"):
            if here[key] != there[key]:
                name = f"the field `{field.name}`" if field.name else "the field"
                raise ValueError(f"{filename} does not fit {name}: its {key} is {there[key]}, here it is {here[key]}")
    return chosen


def matching(
    nodes: Iterable[tuple[dict[str, Any], SNode]], saved: Iterable[tuple[dict[str, Any], _Cells]]
) -> Iterator[tuple[SNode, _Cells]]:
    """The inner nodes that are what they were when the file was saved, and their cells there.

    Raises:
        KeyError, TypeError: If a record is malformed.
    """
    saved = list(saved)
    for own, node in nodes:
        for record, cells in saved:
            same = all(own[key] == record[key] for key in ("layout", "path", "shape"))
            if same and not set(own["fields"]).isdisjoint(record["fields"]):
                yield node, cells
                break


def _clear(node: SNode, fields: list[NumericField]) -> None:
    """Makes all cells inactive in which only these fields lie."""
    if _holds_only(node, fields):
        node.deactivate_all()
    else:
        for child in node._children:
            _clear(child, fields)


def _holds_only(node: SNode, fields: list[NumericField]) -> bool:
    # A field that Python has forgotten may still live in a kernel.
    own = all(any(field is ref() for field in fields) for ref in node._fields)
    return own and all(_holds_only(child, fields) for child in node._children)
