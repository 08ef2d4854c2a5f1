"""Fields, arrays and lists as the bytes that windows draw."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from aerogel.ui import _kept


def array(x: Any) -> np.ndarray:
    """What something holds: a field, a ``ti.ndarray``, a tensor, a NumPy array or a list."""
    if hasattr(x, "_aerogel_texture"):
        return x._colors()
    if hasattr(x, "to_numpy"):
        values = x.to_numpy()
        if isinstance(values, dict):
            members = ", ".join(values)
            raise TypeError(
                f"a field of structs is drawn by one of its members, as in x.{next(iter(values))}: {members}"
            )
        return values
    if hasattr(x, "detach"):
        x = x.detach().cpu()
    return np.asarray(x)


def rows(x: Any, widths: tuple[int, ...], what: str) -> tuple[bytes, int]:
    """Rows of so many numbers each as the bytes of f32, and how many numbers they have.

    Args:
        x: Vectors along any axes.
        widths: How long the vectors may be. What they have beyond the shortest length is left out by the caller.
        what: What it is, for errors.

    Raises:
        ValueError: It does not consist of such vectors.
        TypeError: It does not consist of numbers.
    """
    return _rows(x, array(x), widths, what)


def _rows(x: Any, values: np.ndarray, widths: tuple[int, ...], what: str) -> tuple[bytes, int]:
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{what} must be numbers, not {values.dtype}")
    if values.shape == (0,):
        # An empty list.
        return b"", widths[0]
    if values.ndim < 1 or values.shape[-1] not in widths:
        wanted = " or ".join(map(str, widths))
        raise ValueError(f"{what} must be vectors of {wanted} numbers; the shape is {values.shape}")
    return _floats(x, values, what), values.shape[-1]


def points(x: Any, width: int, what: str) -> bytes:
    """Positions of ``width`` numbers; of longer vectors the first count, and what lies in a plane has a z of 0."""
    values = array(x)
    if values.ndim >= 1 and width < values.shape[-1] <= 4:
        values = values[..., :width]
    elif values.ndim >= 1 and values.shape[-1] == 2 < width and values.dtype.kind in "fiub":
        values = np.concatenate([values, np.zeros((*values.shape[:-1], 1), values.dtype)], -1)
    return _rows(x, values, (width,), what)[0]


def numbers(x: Any, what: str) -> bytes:
    """Numbers one by one as the bytes of f32."""
    values = array(x)
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{what} must be numbers, not {values.dtype}")
    return _floats(x, values, what)


def _floats(x: Any, values: np.ndarray, what: str) -> bytes:
    # What is too large for f32 is nowhere, as infinity is.
    with np.errstate(over="ignore"):
        return _kept.bytes_of(x, np.ascontiguousarray(values, np.float32), what)


def indices(x: Any) -> bytes:
    """The numbers of vertices as the bytes of u32.

    Raises:
        TypeError: They are no integers.
        IndexError: One is negative, or too large for any vertex.
    """
    values = array(x).reshape(-1)
    if not values.size:
        return b""
    if values.dtype.kind not in "iu":
        raise TypeError(f"indices must be integers, not {values.dtype}")

    def check() -> None:
        if values.min() < 0 or int(values.max()) >= 2**32:
            at = int(((values < 0) | (values >= 2**32)).argmax())
            raise IndexError(f"indices[{at}] is {values[at]}")

    if values.dtype not in (np.int32, np.uint32):
        check()
        return _kept.bytes_of(x, np.ascontiguousarray(values, np.uint32), "indices")
    made = _kept.bytes_of(x, np.ascontiguousarray(values), "indices")
    _kept.known(made, "is checked", (), check)
    return made


def color(c: Any, what: str = "color") -> tuple[float, float, float, float]:
    """A colour of three or four numbers from 0 to 1."""
    values = np.asarray(array(c), np.float64).reshape(-1)
    if values.size not in (3, 4):
        raise ValueError(f"{what} must be three numbers from 0 to 1, not {c!r}")
    r, g, b, *a = values.tolist()
    return r, g, b, a[0] if a else 1.0


def vector(v: Any, what: str) -> tuple[float, float, float]:
    """Three numbers."""
    values = np.asarray(array(v), np.float64).reshape(-1)
    if values.size != 3:
        raise ValueError(f"{what} must be three numbers, not {v!r}")
    x, y, z = values.tolist()
    return x, y, z


def appearance(color_: Any, per_vertex_color: Any, indices_: Any) -> dict[str, Any]:
    """The arguments of ``draw`` that all kinds of things have."""
    out: dict[str, Any] = {"color": color(color_)}
    if per_vertex_color is not None:
        out["colors"], out["n_color"] = rows(per_vertex_color, (3, 4), "per_vertex_color")
    if indices_ is not None:
        out["indices"] = indices(indices_)
    return out


def check_places(what: str, positions: bytes, width: int, how: dict[str, Any]) -> None:
    """Looks whether all positions that are drawn are finite.

    Args:
        what: The name of the argument that they are.
        positions: The bytes of f32.
        width: How many numbers each has.
        how: What is drawn of them: the keywords of :func:`draw`.

    Raises:
        ValueError: One is not.
    """
    values = np.frombuffer(positions, np.float32)
    # One pass: a sum of positions is finite only if all are. If it is not, overflow of the sum is distinguished.
    with np.errstate(all="ignore"):
        if _kept.known(positions, "is finite", (), lambda: np.isfinite(values.sum())):
            return
    places = values.reshape(-1, width)
    is_gone = ~np.isfinite(places).all(1)
    drawn = np.zeros(len(places), bool)
    first, number = how.get("first", 0), how.get("number")
    part_ = slice(first, None if number is None else first + number)
    if how.get("indices") is None:
        drawn[part_] = True
    else:
        named = np.frombuffer(how["indices"], np.uint32)[part_].astype(np.int64) + how.get("base", 0)
        # `draw` says which index names no vertex.
        drawn[named[(named >= 0) & (named < len(places))]] = True
    is_gone &= drawn
    if is_gone.any():
        k = int(is_gone.argmax())
        raise ValueError(f"{what}[{k}] is {tuple(places[k].tolist())}, which is not a finite position")


#: Things whose positions have three numbers.
SPATIAL = ("particles", "space_lines", "mesh")


def radii(x: Any, positions: bytes, width: int) -> bytes:
    """A radius for each of the positions of so many numbers, as the bytes of f32."""
    shape, n = np.shape(array(x)), len(positions) // (4 * width)
    if len(shape) > 1 and int(np.prod(shape)) != n:
        raise ValueError(f"per_vertex_radius must be one number for each of {n} centers; the shape is {shape}")
    return numbers(x, "per_vertex_radius")


def draw(view: Any, kind: str, positions: bytes, **how: Any) -> None:
    """Draws objects of a kind after checking that all vertices they refer to exist: the renderer does not check.

    Raises:
        IndexError: An index names no vertex, or there are fewer vertices, indices or copies than shall be drawn.
        ValueError: Something that each vertex has is missing for some, or the last line or triangle is not whole.
    """
    n = len(positions) // (12 if kind in SPATIAL else 8)
    for name, what, size in (
        ("colors", "colours", 4 * how.get("n_color", 0)),
        ("extra", "normals" if kind == "mesh" else "radii", 12 if kind == "mesh" else 4),
    ):
        if how.get(name) is not None and len(how[name]) < size * n:
            raise ValueError(f"there are fewer {what} than vertices: {len(how[name]) // size} for {n}")
    indices_ = how.get("indices")
    what, there = ("vertices", n) if indices_ is None else ("indices", len(indices_) // 4)
    first, number = part(what, how.get("first", 0), how.get("number"), there)
    check_whole(kind, what, number)
    if indices_ is not None:
        check_indices(indices_, first, number, how.get("base", 0), n)
    if how.get("transforms") is not None:
        part("instances", how.get("first_copy", 0), how.get("n_copies"), len(how["transforms"]) // 64)
    view.draw(kind, positions, **how)


def check_indices(indices_: bytes, first: int, number: int, base: int, n: int) -> None:
    """Looks whether a part of the indices names vertices that there are.

    Raises:
        IndexError: One does not.
    """
    named = np.frombuffer(indices_, np.uint32)[first : first + number]
    if not named.size:
        return
    low, high = _kept.known(indices_, "bounds", (first, number), lambda: (int(named.min()), int(named.max())))
    if low + base >= 0 and high + base < n:
        return
    vertices = named.astype(np.int64) + base
    k = int(((vertices < 0) | (vertices >= n)).argmax())
    raise IndexError(f"indices[{first + k}] names vertex {vertices[k]}, but there are {n}")


#: How many vertices make one of a kind.
_CORNERS = {"lines": 2, "space_lines": 2, "triangles": 3, "mesh": 3}


def check_whole(kind: str, what: str, number: int) -> None:
    """Looks whether vertices or indices make whole lines or triangles.

    Raises:
        ValueError: Some are left over.
    """
    corners = _CORNERS.get(kind, 1)
    if number % corners:
        made = "line" if corners == 2 else "triangle"
        raise ValueError(f"each {corners} {what} make a {made}: {number} are not a multiple of {corners}")


def part(what: str, first: int, number: int | None, n: int) -> tuple[int, int]:
    """A part of so many things: the first, and how many there are; by default all that follow.

    Raises:
        IndexError: It begins before the first, or ends behind the last.
    """
    first = operator.index(first)
    number = max(n - first, 0) if number is None else operator.index(number)
    if not (first >= 0 and 0 <= number <= n - first):
        raise IndexError(f"{number} {what} from index {first} on were requested, but there are {n}")
    return first, number
