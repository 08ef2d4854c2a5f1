"""Which vertices, edges, faces and cells of a mesh lie at which others.

Elements are named by their order: 0 for vertices, 1 for edges, 2 for faces (triangles), 3 for cells (tetrahedra).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

LETTERS = "VEFC"
# The edges of a triangle, and the faces and edges of a tetrahedron, by their corners; seen from outside of a
# tetrahedron of positive volume its faces run counterclockwise.
_EDGES_OF_FACE = [(0, 1), (1, 2), (2, 0)]
_FACES_OF_CELL = [(1, 2, 3), (0, 3, 2), (0, 1, 3), (0, 2, 1)]
_EDGES_OF_CELL = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


class Relation(NamedTuple):
    """The elements at each element, one after another: those of number ``i`` begin at ``offsets[i]``."""

    width: int
    """How many lie at each; 0 if that differs."""
    offsets: Any
    """Where they begin, and the end; ``None`` if ``width`` says it."""
    targets: Any

    def pairs(self) -> tuple[Any, Any]:
        """Both ends of everything that is related."""
        if self.offsets is None:
            return np.repeat(np.arange(len(self.targets) // self.width), self.width), self.targets
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets)), self.targets


def _unique_rows(rows: Any) -> tuple[Any, Any, Any]:
    """The different rows in order, where each first occurs, and for each row its number among them."""
    order = np.lexsort(rows.T[::-1])
    sorted_rows = rows[order]
    starts = np.ones(len(rows), bool)
    starts[1:] = (sorted_rows[1:] != sorted_rows[:-1]).any(axis=1)
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(starts) - 1
    return sorted_rows[starts], order[starts], inverse


def _offsets(n: int, source: Any) -> Any:
    """Where the targets of ``n`` elements begin, whose sources are these in ascending order."""
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=n), out=offsets[1:])
    return offsets


class Topology:
    """A mesh of triangles or tetrahedra, given by the corners of each."""

    def __init__(self, n_verts: int, corners: Any) -> None:
        self.order = corners.shape[1] - 1
        self.n = [n_verts, 0, 0, 0]
        self._down: dict[tuple[int, int], Any] = {(self.order, 0): corners}
        faces = corners
        if self.order == 3:
            all_faces = corners[:, _FACES_OF_CELL].reshape(-1, 3)
            _, first, inverse = _unique_rows(np.sort(all_faces, axis=1))
            faces = self._down[2, 0] = all_faces[first]
            self._down[3, 2] = inverse.reshape(-1, 4)
        edges = [faces[:, _EDGES_OF_FACE].reshape(-1, 2)]
        if self.order == 3:
            edges.append(corners[:, _EDGES_OF_CELL].reshape(-1, 2))
        self._down[1, 0], _, inverse = _unique_rows(np.sort(np.concatenate(edges), axis=1))
        self._down[2, 1] = inverse[: 3 * len(faces)].reshape(-1, 3)
        if self.order == 3:
            self._down[3, 1] = inverse[3 * len(faces) :].reshape(-1, 6)
        for order in range(1, self.order + 1):
            self.n[order] = len(self._down[order, 0])

    def relation(self, source: int, target: int) -> Relation:
        """The elements of one order at those of another.

        Those of the same order are neighbours if they share an element of the next lower order, vertices if an
        edge joins them. Elements of lower order keep the order of the corners, others are in ascending order.
        """
        if source > target:
            rows = self._down[source, target]
            return Relation(rows.shape[1], None, rows.reshape(-1))
        if source < target:
            of, to = self.relation(target, source).pairs()
            return Relation(0, _offsets(self.n[source], to), of[np.argsort(to, kind="stable")])
        between = source - 1 if source > 0 else 1
        of, shared = self.relation(source, between).pairs()
        back = self.relation(between, source)
        begins = back.offsets if back.offsets is not None else back.width * np.arange(self.n[between] + 1)
        counts = np.diff(begins)[shared]
        of = np.repeat(of, counts)
        steps = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
        to = back.targets[np.repeat(begins[shared], counts) + steps]
        n = self.n[source]
        # Sorting them is several times as fast as np.unique.
        keys = np.sort((of * n + to)[of != to])
        differs = np.ones(len(keys), bool)
        differs[1:] = keys[1:] != keys[:-1]
        keys = keys[differs]
        return Relation(0, _offsets(n, keys // n), keys % n)


def order_of(letter: str) -> int:
    """The order of the elements that a letter stands for."""
    return LETTERS.index(letter)


__all__ = ["LETTERS", "Relation", "Topology", "order_of"]
