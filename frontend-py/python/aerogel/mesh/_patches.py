"""The format in which MeshTaichi's patcher describes a mesh: cut into patches, each with numbers of its own.

A patch has elements that it owns and, after them, copies of others that lie at them. Element ``i`` of patch ``p`` is
``l2g_mapping[total_offsets[p] + i]`` of the mesh. Relations name elements by their numbers in the patch.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from aerogel.mesh._topology import LETTERS, Relation


class Patches:
    """What a dictionary in this format says, with the numbers of the whole mesh."""

    def __init__(self, data: dict[str, Any]) -> None:
        try:
            self.n_patches = int(data["num_patches"])
            self.n_elements: dict[int, int] = {}
            self.patch_of: dict[int, Any] = {}
            self._elements: dict[int, dict[str, Any]] = {}
            for element in data["elements"]:
                self._read_elements(element)
            self.positions = np.asarray(data["attrs"]["x"], np.float64).reshape(-1, 3)
            self.relations = {(r["from_order"], r["to_order"]): self._relation(r) for r in data["relations"]}
        except KeyError as e:
            raise ValueError(f"this is not a mesh of MeshTaichi: {e.args[0]!r} is missing") from None
        except TypeError:
            raise ValueError("this is not a mesh of MeshTaichi: its structure differs") from None
        except (IndexError, OverflowError):
            raise ValueError("this is not a mesh of MeshTaichi: an index is out of range") from None

    def _read_elements(self, element: dict[str, Any]) -> None:
        order, n = element["order"], element["num"]
        names = ("owned_offsets", "total_offsets", "l2g_mapping")
        owned, total, to_mesh = (np.asarray(element[name], np.int64) for name in names)
        n_owned = np.diff(owned)
        fits = owned.min(initial=0) >= 0 and owned.max(initial=0) <= len(to_mesh)
        if order not in range(len(LETTERS)) or len(n_owned) != self.n_patches or not fits:
            raise IndexError
        patch = np.repeat(np.arange(self.n_patches), n_owned)
        # The own elements of a patch, by their numbers in it and by their places among all.
        local = np.arange(len(patch)) - owned[patch]
        rows = total[patch] + local
        numbers = to_mesh[rows]
        if len(numbers) != n or not np.array_equal(np.sort(numbers), np.arange(n)):
            raise ValueError(f"each of the {LETTERS[order]} elements of a mesh belongs to one patch")
        self.n_elements[order] = n
        self._elements[order] = {"patch": patch, "rows": rows, "numbers": numbers, "total": total, "to_mesh": to_mesh}
        if self.n_patches > 1:
            patches = self.patch_of[order] = np.empty(n, np.int64)
            patches[numbers] = patch

    def _relation(self, relation: dict[str, Any]) -> Relation:
        of, to = self._elements[relation["from_order"]], self._elements[relation["to_order"]]
        patch, numbers, n = of["patch"], of["numbers"], len(of["numbers"])
        value = np.asarray(relation["value"], np.int64)
        width = comb(relation["from_order"] + 1, relation["to_order"] + 1)
        if relation["from_order"] > relation["to_order"]:
            begins, counts = width * of["rows"], np.full(n, width)
        else:
            # Each patch has an entry more than it owns elements.
            at = np.arange(n) + patch
            offset = np.asarray(relation["offset"], np.int64)
            begins = np.asarray(relation["patch_offset"], np.int64)[patch] + offset[at]
            counts, width = offset[at + 1] - offset[at], 0
        # In the order of the mesh's numbers, which is not that of the patches.
        order = np.argsort(numbers)
        begins, counts, patch = begins[order], counts[order], patch[order]
        ends = np.cumsum(counts)
        if counts.min(initial=0) < 0 or ends.max(initial=0) > len(value):
            raise IndexError
        steps = np.arange(ends[-1] if n else 0) - np.repeat(ends - counts, counts)
        local = value[np.repeat(begins, counts) + steps]
        targets = to["to_mesh"][to["total"][np.repeat(patch, counts)] + local]
        if len(targets) and not 0 <= targets.min() <= targets.max() < len(to["numbers"]):
            raise IndexError
        return Relation(width, None if width else np.concatenate([[0], ends]), targets)


__all__ = ["Patches"]
