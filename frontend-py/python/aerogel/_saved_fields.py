"""Sparse fields in files of ``ti.save``: the indices and values of active elements, and the active cells above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel.data._sparsity import SPARSE
from aerogel.tools import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np

    from aerogel.data.snode import SNode


def is_sparse(field: Any) -> bool:
    """Whether elements of a field may be inactive."""
    node = field._parent_node
    return node is not None and any(above._kind in SPARSE for above in node.path_from_root())


def inner_nodes(fields: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], SNode]]:
    """The sparse nodes above sparse fields, but for the last ones: what they are, and the node."""
    names = list(fields)
    for record, node in sparse.inner_nodes(list(fields.values())):
        yield {**record, "fields": [names[k] for k in record["fields"]]}, node


def matching(records: list[dict[str, Any]], fields: Mapping[str, Any]) -> Iterator[tuple[SNode, str]]:
    """The inner nodes that are what they were when the file was saved, and the names of their cells' tensors.

    Raises:
        KeyError, TypeError: If a record is malformed.
    """
    return sparse.matching(inner_nodes(fields), ((record, record["tensor"]) for record in records))


def expect_inside(field: Any, indices: np.ndarray, values: np.ndarray, name: str) -> None:
    """Raises a ValueError if these are not indices and values of elements of a field."""
    import numpy as np

    from aerogel.data._cells import element_shape

    shape, low = field.shape, np.asarray(field._offset or [0] * len(field.shape), np.int64)
    if indices.ndim != 2 or indices.shape[1] != len(shape) or indices.dtype.kind not in "iu":
        raise ValueError(f"`{name}` has {len(shape)} axes, the file's indices are {indices.dtype}{list(indices.shape)}")
    wanted = (len(indices), *element_shape(field))
    if values.shape != wanted:
        raise ValueError(f"`{name}` takes values of shape {wanted}, the file has {values.shape}")
    outside = ((indices < low) | (indices >= low + np.asarray(shape, np.int64))).any(axis=1)
    if outside.any():
        raise ValueError(f"`{name}` has the shape {shape}, the file has the index {indices[outside.argmax()].tolist()}")
