"""Sparse layouts for the eye: the tree, tables of what it holds, and maps of what is active."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from aerogel.data._cells import element_shape
from aerogel.data.field import NumericField
from aerogel.data.snode import SNode

#: The kinds of nodes whose cells may be inactive.
SPARSE = ("pointer", "hash", "bitmasked", "dynamic")
_SHADES, _PLAIN_SHADES = " ░▒▓█", " .:*#"


def tree_text(node: SNode) -> str:
    """A node and what lies below it, a line for each."""
    return "\n".join([_name(node), *_lines_below(node)])


def _lines_below(node: SNode) -> list[str]:
    entries = [(_name(child), _lines_below(child)) for child in node._children]
    entries += [(f"place {_field_name(field)}", []) for ref in node._fields if (field := ref()) is not None]
    lines = []
    for k, (name, below) in enumerate(entries):
        last = k + 1 == len(entries)
        lines.append(("└─ " if last else "├─ ") + name)
        lines += [("   " if last else "│  ") + line for line in below]
    return lines


def _name(node: SNode) -> str:
    axes = [f"{'ijkl'[a] if a < 4 else f'a{a}'}:{extent}" for a, extent in sorted(node._axes)]
    option = {"dynamic": "chunk_size", "quant_array": "max_num_bits", "bit_struct": "max_num_bits"}.get(node._kind)
    options = [f"{option}={node._number}"] if option else []
    return " ".join([node._kind, *axes, *options])


def _field_name(field: Any) -> str:
    element = element_shape(field)
    shape = f" {'x'.join(map(str, element))}" if element else ""
    return f"{field._name}: {field.dtype}{shape}" if field._name else f"{field.dtype}{shape}"


def stats_table(rows: list[dict[str, Any]]) -> str:
    """What ``SNode.stats`` tells, with a line for each node."""
    lines = [("node", "active", "of", "", "used", "held")]
    for row in rows:
        total = _product(row["shape"])
        extents = "x".join(map(str, row["shape"]))
        share = f"{100 * row['cells'] / total:.3g} %"
        sizes = _bytes(row["used_bytes"]), _bytes(row["held_bytes"])
        lines.append((f"{row['kind']} {extents}", str(row["cells"]), str(total), share, *sizes))
    widths = [max(len(line[k]) for line in lines) for k in range(6)]
    return "\n".join(
        f"{line[0]:<{widths[0]}}  " + "  ".join(f"{text:>{width}}" for text, width in zip(line[1:], widths[1:]))
        for line in lines
    )


def _bytes(n: float) -> str:
    units = iter(("B", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while n >= 1024 and unit != "TiB":
        n, unit = n / 1024, next(units)
    return f"{n:.4g} {unit}"


def _product(shape: Any) -> int:
    out = 1
    for extent in shape:
        out *= int(extent)
    return out


def occupancy(of: NumericField | SNode, size: int, axis: int | None) -> np.ndarray:
    """Which part of a field's elements or a node's cells is active, in tiles."""
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size}")
    cells = of.active_cells()[0] if isinstance(of, NumericField) else of.active_cells()
    return _occupancy(cells, of, size, axis)


def _occupancy(cells: np.ndarray, of: NumericField | SNode, size: int, axis: int | None) -> np.ndarray:
    shape = of.shape
    if axis is not None and not -len(shape) <= axis < len(shape):
        raise ValueError(f"there is no axis {axis} of {len(shape)}")
    kept = list(range(len(shape)))
    if len(shape) > 2:
        kept.remove(len(shape) - 1 if axis is None else axis % len(shape))
    kept = kept[:2]
    tile = np.zeros(len(cells), np.int64)
    per_tile = np.ones(1)
    extents = []
    for a in kept:
        n = min(size, shape[a])
        first = 0 if isinstance(of, SNode) else _first_index(of, a)
        tile = tile * n + (cells[:, a].astype(np.int64) - first) * n // shape[a]
        # Tile t has the indices from ceil(t * size / n) on.
        starts = -(-np.arange(n + 1, dtype=np.int64) * shape[a] // n)
        per_tile = np.outer(per_tile, np.diff(starts)).ravel()
        extents.append(n)
    per_tile *= _product(shape) / _product(shape[a] for a in kept)
    counts = np.bincount(tile, minlength=len(per_tile))
    return (counts / per_tile).astype(np.float32).reshape(*extents, *[1] * (2 - len(extents)))


def _first_index(field: NumericField, axis: int) -> int:
    return field._offset[axis] if field._offset else 0


def show(of: NumericField | SNode, size: int, axis: int | None, levels: int, filename: str | None) -> None:
    """Prints how much of each sparse node is active and where, or writes an image."""
    if filename is not None:
        from aerogel.tools._pixels import imwrite

        imwrite(image(occupancy(of, size, axis)), filename)
        return
    sys.stdout.write(text(of, size, axis, levels, _shades()) + "\n")


def image(part: np.ndarray) -> np.ndarray:
    """Brightness of which even the rarest active cell has some."""
    return np.where(part > 0, 0.25 + 0.75 * part, 0).astype(np.float32)


def _shades() -> str:
    try:
        _SHADES.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return _PLAIN_SHADES
    return _SHADES


def text(of: NumericField | SNode, size: int, axis: int | None, levels: int, shades: str = _SHADES) -> str:
    """A map of each of the first sparse nodes from the root to a field or node and, for a node, below it."""
    node = of._parent_node if isinstance(of, NumericField) else of
    assert node is not None
    nodes = [n for n in node.path_from_root() if _is_sparse(n)]
    if isinstance(of, SNode):
        nodes += [n for n in _below(of) if _is_sparse(n)]
    if not nodes:
        return f"{node._kind} {list(of.shape)}: all {_product(of.shape)} cells active"
    out = []
    for n in nodes[:levels]:
        cells, total = n.active_cells(), _product(n.shape)
        out.append(
            f"{n._kind} {list(n.shape)}: {len(cells)} of {total} cells active ({100 * len(cells) / total:.3g} %)"
        )
        if len(n.shape) > 2:
            out[-1] += f", seen along axis {(len(n.shape) - 1 if axis is None else axis % len(n.shape))}"
        part = _occupancy(cells, n, size, axis)
        # Columns of a volume are hardly ever full, so the fullest is the measure.
        out += _grid(part / (part.max() or 1) if len(n.shape) > 2 else part, shades)
    return "\n".join(out)


def _grid(part: np.ndarray, shades: str) -> list[str]:
    level = np.ceil(part.clip(0, 1) * (len(shades) - 1)).astype(int)
    rows = ["".join(shades[v] * 2 for v in row) for row in level.T[::-1]]
    edge = "-" * (2 * len(part)) if shades == _PLAIN_SHADES else "─" * (2 * len(part))
    corners = "++++||" if shades == _PLAIN_SHADES else "┌┐└┘││"
    return [
        corners[0] + edge + corners[1],
        *(corners[4] + row + corners[5] for row in rows),
        corners[2] + edge + corners[3],
    ]


def _is_sparse(node: SNode) -> bool:
    return node._kind in SPARSE


def _below(node: SNode) -> list[SNode]:
    return [n for child in node._children for n in (child, *_below(child))]
