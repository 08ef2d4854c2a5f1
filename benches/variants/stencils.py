"""Stencils: sums of neighbours, with edges left out, clamped or periodic."""

import numpy as np

from variants import Skip, computation
from variants.writer import BODY, BOUNDS, CONSTANT, GUARD, HOME, LOOPS, STORAGE

SPELLED = {
    "loops": LOOPS,
    "storage": STORAGE,
    "home": HOME,
    "bounds": BOUNDS,
    "constant": CONSTANT,
    "body": BODY,
    "dtype": ("f32", "f64"),
}
NAMES = ("i", "j", "k")


def numbers(sizes, dtype):
    """One array over all sizes."""
    shape = tuple(sizes.values())
    return {"a": np.random.default_rng(1).random(shape).astype(dtype)}


def moved(names, axis, by):
    """Indices of a neighbour."""
    return [f"{name} {'+' if by > 0 else '-'} 1" if k == axis else name for k, name in enumerate(names)]


def neighbours(dims):
    """Axis and direction of each neighbour."""
    return [(axis, by) for axis in range(dims) for by in (-1, 1)]


def interior(w, dims):
    """A stencil of the inside: `r = centre + h * (sum of neighbours - count * centre)`."""
    names, sizes = NAMES[:dims], list(w.sizes)
    a, b = w.array("a", sizes, given=True), w.array("b", sizes)
    h = w.constant("h", 0.1)
    beyond = w["guard"] in ("select", "mask")
    inside = " and ".join(f"{name} >= 1 and {name} < {w.size(size)} - 1" for name, size in zip(names, sizes))
    last = {name: f"{w.size(size)} - 1" for name, size in zip(names, sizes)}

    def read(axis, by):
        index = moved(names, axis, by)
        if beyond:
            name = names[axis]
            index[axis] = f"ti.max({index[axis]}, 0)" if by < 0 else f"ti.min({index[axis]}, {last[name]})"
        return a(*index)

    centre = a(*names)
    match w["neighbours"]:
        case "direct":
            around = " + ".join(read(axis, by) for axis, by in neighbours(dims))
            lines = [f"r = {centre} + h0 * ({around} - {2 * dims} * {centre})"]
        case "local":
            lines = ["around = 0.0", *(f"around += {read(axis, by)}" for axis, by in neighbours(dims))]
            lines.append(f"r = {centre} + h0 * (around - {2 * dims} * {centre})")
        case "static" | "vector" | "range":
            if beyond:
                raise Skip
            index = ", ".join(f"{name} + d[{k}]" for k, name in enumerate(names))
            offsets = [tuple(by if k == axis else 0 for k in range(dims)) for axis, by in neighbours(dims)]
            lines = ["around = 0.0"]
            if w["neighbours"] == "static":
                lines += [f"for d in ti.static({tuple(offsets)}):", f"    around += {a(index)}"]
            elif w["neighbours"] == "vector":
                lines.append(f"cell_at = ti.Vector([{', '.join(names)}])")
                lines += [f"around += {a(f'cell_at + ti.Vector({list(offset)})')}" for offset in offsets]
            else:
                for axis in range(dims):
                    index = [f"{name} + 2 * side - 1" if k == axis else name for k, name in enumerate(names)]
                    lines += ["for side in range(2):", f"    around += {a(*index)}"]
            lines.append(f"r = {centre} + h0 * (around - {2 * dims} * {centre})")
    if beyond and w.get("body", "inline") != "inline" and w["bounds"] != "global":
        raise Skip
    parameters = [(name, "ti.i32") for name in names]
    lines = w.function("relaxed", [*parameters, ("h0", w.dtype)], lines, "r", arrays=[a])
    target = b(*names)
    store = {
        "select": [f"inside = {inside}", f"{target} = ti.select(inside, r, 0.0)"],
        "mask": [f"inside = {inside}", f"{target} = r * ti.cast(inside, {w.dtype})"],
    }.get(w["guard"], [f"{target} = r"])
    body = [f"h0 = {h}", *lines, *store]
    w.kernel(w.loop(names, sizes, body, over=b, margin=0 if beyond else 1))
    w.result(b.numpy)


def relaxed(sizes, a):
    """The reference of `interior`."""
    a = a.astype(np.float64)
    b, inner = np.zeros_like(a), (slice(1, -1),) * a.ndim
    around = sum(np.roll(a, by, axis) for axis, by in neighbours(a.ndim))
    b[inner] = (a + 0.1 * (around - 2 * a.ndim * a))[inner]
    return b


INTERIOR = SPELLED | {"guard": GUARD, "neighbours": ("direct", "local", "static", "vector", "range")}


@computation(INTERIOR, {"n": 1024, "m": 1024}, {"n": 32, "m": 48}, numbers, relaxed)
def stencil5(w):
    """Five points in two dimensions."""
    interior(w, 2)


@computation(INTERIOR, {"n": 96, "m": 96, "l": 96}, {"n": 16, "m": 16, "l": 24}, numbers, relaxed)
def stencil7(w):
    """Seven points in three dimensions."""
    interior(w, 3)


def edges(w, spell):
    """A stencil whose neighbours beyond the edges are others, as `spell` says."""
    names, sizes = NAMES[:2], list(w.sizes)
    a, b = w.array("a", sizes, given=True), w.array("b", sizes)
    h = w.constant("h", 0.1)
    if w["body"] != "inline" and w["bounds"] != "global":
        raise Skip
    lines, reads = [], []
    for number, (axis, by) in enumerate(neighbours(2)):
        index = list(names)
        index[axis] = f"at{number}"
        lines += spell(f"at{number}", names[axis], by, w.size(sizes[axis]))
        reads.append(a(*index))
    lines.append(f"r = {a(*names)} + h0 * ({' + '.join(reads)} - 4 * {a(*names)})")
    lines = w.function("relaxed", [("i", "ti.i32"), ("j", "ti.i32"), ("h0", w.dtype)], lines, "r", arrays=[a])
    w.kernel(w.loop(names, sizes, [f"h0 = {h}", *lines, f"{b(*names)} = r"], over=b))
    w.result(b.numpy)


def clamped_reference(sizes, a):
    """Neighbours beyond an edge are the edge."""
    a = a.astype(np.float64)
    wide = np.pad(a, 1, mode="edge")
    around = wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2]
    return a + 0.1 * (around - 4 * a)


def periodic_reference(sizes, a):
    """Neighbours beyond an edge are on the other side."""
    a = a.astype(np.float64)
    return a + 0.1 * (sum(np.roll(a, by, axis) for axis, by in neighbours(2)) - 4 * a)


CLAMPED = SPELLED | {"edge": ("minmax", "clamp", "select", "if", "ternary", "bool")}
PERIODIC = SPELLED | {"edge": ("mod", "mod_n", "select", "if", "ternary", "and", "while")}


@computation(CLAMPED, {"n": 768, "m": 768}, {"n": 32, "m": 48}, numbers, clamped_reference)
def clamped(w):
    """Five points; neighbours beyond an edge are the edge."""

    def spell(at, name, by, size):
        far = f"{name} + 1" if by > 0 else f"{name} - 1"
        beyond = f"{name} + 1 > {size} - 1" if by > 0 else f"{name} - 1 < 0"
        edge = f"{size} - 1" if by > 0 else "0"
        match w["edge"]:
            case "minmax":
                return [f"{at} = ti.min({far}, {size} - 1)" if by > 0 else f"{at} = ti.max({far}, 0)"]
            case "clamp":
                return [f"{at} = ti.math.clamp({far}, 0, {size} - 1)"]
            case "select":
                return [f"{at} = ti.select({beyond}, {edge}, {far})"]
            case "if":
                return [f"{at} = {far}", f"if {beyond}:", f"    {at} = {edge}"]
            case "ternary":
                return [f"{at} = {edge} if {beyond} else {far}"]
        sign = "+" if by > 0 else "-"
        inner = f"{name} < {size} - 1" if by > 0 else f"{name} > 0"
        return [f"{at} = {name} {sign} ti.cast({inner}, ti.i32)"]

    edges(w, spell)


@computation(PERIODIC, {"n": 512, "m": 512}, {"n": 32, "m": 64}, numbers, periodic_reference)
def periodic(w):
    """Five points; neighbours beyond an edge are on the other side."""

    def spell(at, name, by, size):
        far = f"{name} + 1" if by > 0 else f"{name} - 1"
        beyond = f"{name} + 1 >= {size}" if by > 0 else f"{name} - 1 < 0"
        edge = "0" if by > 0 else f"{size} - 1"
        match w["edge"]:
            case "mod":
                return [f"{at} = ({far}) % {size}"]
            case "mod_n":
                return [f"{at} = ({name} + {size} {'+' if by > 0 else '-'} 1) % {size}"]
            case "select":
                return [f"{at} = ti.select({beyond}, {edge}, {far})"]
            case "if":
                return [f"{at} = {far}", f"if {beyond}:", f"    {at} = {edge}"]
            case "ternary":
                return [f"{at} = {edge} if {beyond} else {far}"]
            case "and":
                return [f"{at} = ({far}) & ({size} - 1)"]
        step = "-=" if by > 0 else "+="
        return [
            f"{at} = {far}",
            f"while {beyond.replace(f'{name} + 1', at).replace(f'{name} - 1', at)}:",
            f"    {at} {step} {size}",
        ]

    edges(w, spell)
