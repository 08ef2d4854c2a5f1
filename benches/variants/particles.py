"""Particles: forces between all, neighbours within a radius, and exchange with a grid."""

import numpy as np

from variants import Skip, computation
from variants.writer import BODY, CONSTANT, HOME, LAYOUTS, indent

VECTORS = ("vector", "components", "range", "static")


def bodies(sizes, dtype):
    """Places in the unit cube."""
    return {"p": np.random.default_rng(6).random((sizes["n"], 3)).astype(dtype)}


def gravity(sizes, p):
    """Forces between all."""
    p = p.astype(np.float64)
    d = p[None] - p[:, None]
    r2 = (d * d).sum(-1) + 1e-3
    return (d / (r2 * np.sqrt(r2))[..., None]).sum(1)


@computation(
    {
        "layout": LAYOUTS,
        "vectors": VECTORS,
        "root": ("sqrt", "rsqrt", "power", "norm"),
        "guard": ("none", "if", "continue", "select"),
        "loops": ("nested", "while", "ndrange"),
        "body": BODY,
        "home": HOME,
        "constant": CONSTANT,
        "dtype": ("f32", "f64"),
    },
    {"n": 1024}, {"n": 64}, bodies, gravity,
    tolerance={"f32": 1e-3, "f64": 1e-9},
)  # fmt: skip
def nbody(w):
    """The forces between all bodies."""
    p, f = w.vectors("p", ("n",), 3, given=True), w.vectors("f", ("n",), 3)
    soft = w.constant("soft", 1e-3)
    inverse = {
        "sqrt": "1.0 / (r2 * ti.sqrt(r2))",
        "rsqrt": "ti.rsqrt(r2) / r2",
        "power": "r2 ** -1.5",
        "norm": "1.0 / (r2 * ti.Vector([ti.sqrt(r2), 0.0]).norm())",
    }[w["root"]]
    span = {"range": "range(3)", "static": "ti.static(range(3))"}.get(w["vectors"])
    force = w.function("pull", [("r2", w.dtype)], [f"s = {inverse}"], "s")
    match w["vectors"]:
        case "vector":
            first, start = [f"pi = {p('i')}"], ["total = ti.Vector([0.0, 0.0, 0.0])"]
            d = [f"d = {p('j')} - pi", "r2 = d.dot(d) + soft0", *force]
            add, end = ["total += s * d"], f.put(["i"], "total")
        case "components":
            first = [f"pi{k} = {p.component(k, 'i')}" for k in range(3)]
            start = [f"total{k} = 0.0" for k in range(3)]
            d = [f"d{k} = {p.component(k, 'j')} - pi{k}" for k in range(3)]
            d += ["r2 = d0 * d0 + d1 * d1 + d2 * d2 + soft0", *force]
            add = [f"total{k} += s * d{k}" for k in range(3)]
            end = [f"{f.component(k, 'i')} = total{k}" for k in range(3)]
        case _:
            first, start = [f"pi = {p('i')}"], ["total = ti.Vector([0.0, 0.0, 0.0])"]
            d = [f"pj = {p('j')}", "d = ti.Vector([0.0, 0.0, 0.0])", "r2 = soft0"]
            d += [f"for k in {span}:", "    d[k] = pj[k] - pi[k]", "    r2 += d[k] * d[k]", *force]
            add, end = [f"for k in {span}:", "    total[k] += s * d[k]"], f.put(["i"], "total")
    match w["guard"]:
        case "none":
            inner = [*d, *add]
        case "if":
            inner = ["if i != j:", *indent([*d, *add])]
        case "continue":
            inner = ["if i == j:", "    continue", *d, *add]
        case "select":
            inner = [*d, "s = ti.select(i == j, 0.0, s)", *add]
    head = {
        "nested": ["for j in range(n):"],
        "ndrange": ["for j in ti.ndrange(n):"],
        "while": ["j = -1", "while j < n - 1:"],
    }
    if w["loops"] == "while":
        inner = ["j += 1", *inner]
    body = [f"soft0 = {soft}", *first, *start, *head[w["loops"]], *indent(inner), *end]
    w.kernel(["for i in range(n):", *indent(body)])
    w.result(f.numpy)


def plane(sizes, dtype):
    """Places in a square, in the order of the cells of a grid of `g` cells, and where those of a cell begin."""
    draw, n, g = np.random.default_rng(7), sizes["n"], sizes["g"]
    p = draw.random((n, 2)).astype(dtype)
    cell = (p * g).astype(int).clip(0, g - 1) @ [g, 1]
    order = np.argsort(cell, kind="stable")
    begin = np.searchsorted(cell[order], np.arange(g * g + 1)).astype(np.int32)
    return {"p": np.ascontiguousarray(p[order]), "begin": begin, "mass": draw.random((g, g)).astype(dtype)}


def near(sizes, p, begin, mass):
    """How much is within a cell's width of each."""
    p, r = p.astype(np.float64), 1.0 / sizes["g"]
    result = np.zeros(len(p))
    for i in range(len(p)):
        d2 = ((p - p[i]) ** 2).sum(1)
        result[i] = np.maximum(0, 1 - d2 / r**2).sum()
    return result


@computation(
    {
        "layout": LAYOUTS,
        "vectors": ("vector", "components", "static"),
        "guard": ("if", "continue", "select", "max"),
        "cells": ("range", "static", "ndrange", "static_ndrange"),
        "body": BODY,
        "home": HOME,
        "dtype": ("f32", "f64"),
    },
    {"n": 8192, "g": 32}, {"n": 128, "g": 4}, plane, near,
    tolerance={"f32": 1e-3, "f64": 1e-9},
)  # fmt: skip
def neighbours(w):
    """Sums over neighbours within a radius, found by cells."""
    p = w.vectors("p", ("n",), 2, given=True)
    begin = w.array("begin", ("c",), dtype="ti.i32", given=True, storage="field")
    w.sizes["c"] = w.sizes["g"] ** 2 + 1
    w.declare("density", f"ti.field({w.dtype}, shape=n)")
    weight = w.function("weight", [("d2", w.dtype)], ["s = 1.0 - d2 * float(g * g)"], "s")
    match w["vectors"]:
        case "vector":
            first, d = [f"pi = {p('i')}"], [f"d = {p('j')} - pi", "d2 = d.dot(d)"]
        case "components":
            first = [f"pi{k} = {p.component(k, 'i')}" for k in range(2)]
            d = [f"d{k} = {p.component(k, 'j')} - pi{k}" for k in range(2)] + ["d2 = d0 * d0 + d1 * d1"]
        case _:
            first, d = [f"pi = {p('i')}"], [f"pj = {p('j')}", "d2 = 0.0"]
            d += ["for k in ti.static(range(2)):", "    d2 += (pj[k] - pi[k]) ** 2"]
    match w["guard"]:
        case "if":
            inner = [*d, *weight, "if s > 0.0:", "    total += s"]
        case "continue":
            inner = [*d, *weight, "if s <= 0.0:", "    continue", "total += s"]
        case "select":
            inner = [*d, *weight, "total += ti.select(s > 0.0, s, 0.0)"]
        case "max":
            inner = [*d, *weight, "total += ti.max(s, 0.0)"]
    cells = {
        "range": [
            "for x in range(ti.max(cx - 1, 0), ti.min(cx + 2, g)):",
            "    for y in range(ti.max(cy - 1, 0), ti.min(cy + 2, g)):",
        ],
        "ndrange": [
            "for x, y in ti.ndrange((ti.max(cx - 1, 0), ti.min(cx + 2, g)), (ti.max(cy - 1, 0), ti.min(cy + 2, g))):"
        ],
        "static": ["for u in ti.static(range(-1, 2)):", "    for v in ti.static(range(-1, 2)):"],
        "static_ndrange": ["for u, v in ti.static(ti.ndrange((-1, 2), (-1, 2))):"],
    }[w["cells"]]
    depth = len(cells)
    walk = ["c0 = x * g + y", f"for j in range({begin('c0')}, {begin('c0 + 1')}):", *indent(inner)]
    if "static" in w["cells"]:
        walk = ["x = cx + u", "y = cy + v", "if x >= 0 and x < g and y >= 0 and y < g:", *indent(walk)]
    cell = [f"c{name} = ti.min(ti.cast({p.component(k, 'i')} * g, ti.i32), g - 1)" for k, name in enumerate("xy")]
    body = [*first, *cell, "total = 0.0", *cells, *indent(walk, depth), f"{w.own('density')}[i] = total"]
    w.kernel(["for i in range(n):", *indent(body)])
    w.result(f"{w.outside('density')}.to_numpy()")


def scatter_reference(sizes, p, begin, mass):
    """Weights of four cells about each."""
    g, grid = sizes["g"], np.zeros((sizes["g"] + 1, sizes["g"] + 1))
    x = p.astype(np.float64) * g
    cell = x.astype(int).clip(0, g - 1)
    f = x - cell
    for u in (0, 1):
        for v in (0, 1):
            weight = (f[:, 0] if u else 1 - f[:, 0]) * (f[:, 1] if v else 1 - f[:, 1])
            np.add.at(grid, (cell[:, 0] + u, cell[:, 1] + v), weight)
    return grid


def gather_reference(sizes, p, begin, mass):
    """Values of four cells about each."""
    g = sizes["g"]
    x = p.astype(np.float64) * (g - 1)
    cell = x.astype(int).clip(0, g - 2)
    f = x - cell
    total = 0
    for u in (0, 1):
        for v in (0, 1):
            weight = (f[:, 0] if u else 1 - f[:, 0]) * (f[:, 1] if v else 1 - f[:, 1])
            total = total + weight * mass[cell[:, 0] + u, cell[:, 1] + v]
    return total


EXCHANGE = {
    "layout": LAYOUTS,
    "grid": ("field", "blocks", "template", "ndarray", "numpy"),
    "vectors": ("components", "vector", "static", "range", "grouped"),
    "adding": ("augmented", "atomic"),
    "body": BODY,
    "home": HOME,
    "loops": ("range", "struct"),
    "dtype": ("f32", "f64"),
}
EXCHANGED = {"n": 1 << 17, "g": 64}, {"n": 256, "g": 8}, plane


def exchange(w, gathering):
    """Adds to a grid from particles, or the other way."""
    p = w.vectors("p", ("n",), 2, given=True)
    w.sizes["g1"] = w.sizes["g"] + (0 if gathering else 1)
    storage = w["grid"]
    if storage == "blocks" and w.sizes["g1"] % 8:
        w.sizes["g1"] += 7
    name = "mass" if gathering else "grid"
    grid = w.array(name, ("g1", "g1"), given=gathering, storage=storage)
    last, scale = ("g - 2", "(g - 1)") if gathering else ("g - 1", "g")
    setup = [f"x = {p('i')} * {scale}"] if w["vectors"] != "components" else []
    if w["vectors"] == "components":
        for k, axis in enumerate("xy"):
            setup += [f"{axis} = {p.component(k, 'i')} * {scale}", f"b{axis} = ti.min(ti.cast({axis}, ti.i32), {last})"]
            setup += [f"f{axis} = {axis} - b{axis}"]
        weights = {
            (u, v): f"{'fx' if u else '(1.0 - fx)'} * {'fy' if v else '(1.0 - fy)'}" for u in (0, 1) for v in (0, 1)
        }
        places = {(u, v): (f"bx + {u}", f"by + {v}") for u, v in weights}
        steps = [(places[corner], weights[corner]) for corner in weights]
        wrap = lambda line: [line(place, weight) for place, weight in steps]  # noqa: E731
    else:
        setup += [f"base = ti.min(ti.cast(x, ti.i32), {last})", "f = x - base"]
        if w["vectors"] == "grouped":
            setup += ["ws = [1.0 - f, f]"]
            head = ["for o in ti.static(ti.grouped(ti.ndrange(2, 2))):"]
            place, weight = ("base + o",), "ws[o[0]][0] * ws[o[1]][1]"
        elif w["vectors"] == "vector":
            setup += ["ws = [1.0 - f, f]"]
            head = ["for u, v in ti.static(ti.ndrange(2, 2)):"]
            place, weight = ("base + ti.Vector([u, v])",), "ws[u][0] * ws[v][1]"
        else:
            span = "ti.static(range(2))" if w["vectors"] == "static" else "range(2)"
            head = [f"for u in {span}:", f"    for v in {span}:"]
            place = ("base[0] + u", "base[1] + v")
            weight = "(1.0 - u + (2 * u - 1) * f[0]) * (1.0 - v + (2 * v - 1) * f[1])"
        wrap = lambda line: [*head, *indent([line(place, weight)], len(head))]  # noqa: E731
    if gathering:
        lines = ["total = 0.0", *wrap(lambda place, weight: f"total += {weight} * {grid(*place)}")]
        if w["body"] != "inline" or w["adding"] != "augmented":
            raise Skip
        w.declare("found", f"ti.field({w.dtype}, shape=n)")
        lines.append(f"{w.own('found')}[i] = total")
        w.result(f"{w.outside('found')}.to_numpy()")
    else:
        if w["body"] != "inline":
            raise Skip
        lines = wrap(lambda place, weight: w.add(grid(*place), weight, parallel=True)[0])
        clear = ["for a, b in ti.ndrange(g1, g1):", f"    {grid('a', 'b')} = 0.0"]
        w.kernel(clear, name="clear")
        w.result(f"{grid.numpy}[:g + 1, :g + 1]")
    if w["loops"] == "struct":
        if w["layout"] not in ("aos", "soa", "apart", "struct", "ndarray", "numpy"):
            raise Skip
        w.kernel([f"for i in {p.ref}:", *indent([*setup, *lines])])
    else:
        w.kernel(["for i in range(n):", *indent([*setup, *lines])])


@computation(EXCHANGE, *EXCHANGED, scatter_reference, tolerance={"f32": 1e-3, "f64": 1e-10})
def particle_to_grid(w):
    """Adds to the four cells about each particle."""
    exchange(w, gathering=False)


@computation(EXCHANGE | {"adding": ("augmented",)}, *EXCHANGED, gather_reference)
def grid_to_particle(w):
    """Reads the four cells about each particle."""
    exchange(w, gathering=True)
