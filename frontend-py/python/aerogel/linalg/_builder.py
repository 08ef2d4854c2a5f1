"""What kernels see of a :class:`~aerogel.linalg.SparseMatrixBuilder`: four arrays, and how ``+=`` uses them."""

from __future__ import annotations

from typing import Any

import aerogel as ti


@ti.func
def _put(self: Any, row: Any, col: Any, value: Any) -> None:
    at = ti.atomic_add(self.count[0], 1)
    # What is too much is counted, and told when the matrix is built.
    if at < self.rows.shape[0]:
        self.rows[at] = row
        self.cols[at] = col
        self.values[at] = value


@ti.func
def _add_at(self: Any, row: Any, col: Any, value: Any) -> None:
    _put(self, row, col, ti.cast(value, self.values.dtype))


@ti.func
def _sub_at(self: Any, row: Any, col: Any, value: Any) -> None:
    # In the type of the entries: an unsigned value has no negative.
    _put(self, row, col, -ti.cast(value, self.values.dtype))


class SparseMatrixBuilderType:
    """Annotates a kernel's parameter that takes a :class:`~aerogel.linalg.SparseMatrixBuilder`.

    In the kernel ``A[i, j] += v`` and ``A[i, j] -= v`` add an entry; nothing can be read.
    """

    _aerogel_annotation = "sparse_matrix_builder"

    def __init__(self) -> None:
        array = ti.types.ndarray(ndim=1)
        self.members = {"count": array, "rows": array, "cols": array, "values": array}
        self.methods = {"_aerogel_add_at": _add_at, "_aerogel_sub_at": _sub_at}

    def __repr__(self) -> str:
        return "ti.types.sparse_matrix_builder()"
