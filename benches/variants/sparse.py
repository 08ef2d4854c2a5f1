"""Sparse blocks: sums over active cells, and stencils of them."""

import numpy as np

from variants import Skip, computation
from variants.writer import BODY, HOME, indent

AXES = {
    "tree": ("pointer", "bitmasked", "pointer_bitmasked", "pointer_pointer", "dense"),
    "block": ("8", "4", "16"),
    "loops": ("struct", "grouped", "ndrange", "blocks"),
    "guard": ("if", "continue", "select", "none"),
    "into": ("local", "field0", "function"),
    "home": HOME,
    "body": BODY,
    "dtype": ("f32", "f64", "i32"),
}


def spots(sizes, dtype):
    """A disc of numbers about the middle; zero elsewhere."""
    n = sizes["n"]
    x = np.arange(n) - n / 2
    inside = x[:, None] ** 2 + x[None] ** 2 < (n / 3) ** 2
    return {"a": np.where(inside, 1 + np.arange(n * n).reshape(n, n) % 7, 0).astype(dtype)}


def tree(w, *names):
    """Declares fields in one tree, filled with the input."""
    n, block = w.sizes["n"], int(w["block"])
    for name in names:
        w.declare(name, f"ti.field({w.dtype})")
    outer = f"ti.ij, n // {block}"
    place = {
        "pointer": f"ti.root.pointer({outer}).dense(ti.ij, {block})",
        "bitmasked": f"ti.root.dense({outer}).bitmasked(ti.ij, {block})",
        "pointer_bitmasked": f"ti.root.pointer({outer}).bitmasked(ti.ij, {block})",
        "pointer_pointer": f"ti.root.pointer(ti.ij, n // {2 * block}).pointer(ti.ij, 2).dense(ti.ij, {block})",
        "dense": f"ti.root.dense({outer}).dense(ti.ij, {block})",
    }[w["tree"]]
    if n % (2 * block):
        raise Skip
    w.declare("place", place)
    fields = ", ".join(w.own(name) for name in names)
    w.declarations.append(f"{w.own('place')}.place({fields})")
    lines = ["for i, j in given:", "    if given[i, j] != 0:", f"        {w.own(names[0])}[i, j] = given[i, j]"]
    call = w.kernel(
        lines, name="fill", run=False, extra=[("given", f"ti.types.ndarray(dtype={w.dtype}, ndim=2)", "inputs['a']")]
    )
    return call


@computation(
    AXES, {"n": 512}, {"n": 64}, spots,
    lambda sizes, a: np.where(a > 2, a, 0).astype(np.float64).sum(),
    tolerance={"f32": 1e-4, "f64": 1e-10, "i32": 0}, apart=("dtype", "block"),
)  # fmt: skip
def sparse_total(w):
    """The sum of the active cells above a limit."""
    fill = tree(w, "a")
    a, zero = w.own("a"), f"ti.cast(0, {w.dtype})"
    w.declare("total", f"ti.field({w.dtype}, shape=())")
    target = "total" if w["into"] == "local" else f"{w.own('total')}[None]"
    value = w.function("taken", [("x", w.dtype)], ["y = x"], "y")
    match w["guard"]:
        case "if":
            lines = ["if y > 2:", f"    {target} += y"]
        case "continue":
            lines = ["if y <= 2:", "    continue", f"{target} += y"]
        case "select":
            lines = [f"{target} += ti.select(y > 2, y, {zero})"]
        case "none":
            lines = [f"{target} += y * ti.cast(y > 2, {w.dtype})"]
    lines = [f"x = {a}[i, j]", *value, *lines]
    match w["loops"]:
        case "struct":
            lines = [f"for i, j in {a}:", *indent(lines)]
        case "grouped":
            lines = [f"for I in ti.grouped({a}):", "    i = I[0]", "    j = I[1]", *indent(lines)]
        case "ndrange":
            lines = ["for i, j in ti.ndrange(n, n):", *indent(lines)]
        case "blocks":
            block = w["block"]
            inner = [
                f"for u, v in ti.ndrange({block}, {block}):",
                f"    i = p * {block} + u",
                f"    j = q * {block} + v",
            ]
            lines = [f"for p, q in ti.ndrange(n // {block}, n // {block}):", *indent([*inner, *indent(lines)])]
    if w["into"] == "local":
        w.kernel([f"total = {zero}", *lines, "return total"], returns=w.dtype)
        w.result("answer[0]")
    else:
        w.kernel([f"{target} = 0", *lines])
        w.result(f"{w.outside('total')}[None]")
    run = w.runs
    w.declarations.append("filled = [False]")
    if w.in_class:
        w.declarations[-1] = "self.filled = [False]"
    w.runs = [f"if not {w.outside('filled')}[0]:", f"    {w.outside('filled')}[0] = True", f"    {fill}", *run]


@computation(
    {key: values for key, values in AXES.items() if key not in ("into", "guard")}
    | {"neighbours": ("direct", "static", "vector")},
    {"n": 512}, {"n": 64}, spots,
    lambda sizes, a: np.where(a != 0, sum(np.roll(a, by, axis) for axis in (0, 1) for by in (-1, 1)), 0),
    apart=("dtype", "block"),
)  # fmt: skip
def sparse_stencil(w):
    """Sums of four neighbours of active cells."""
    if w["body"] != "inline":
        raise Skip
    fill = tree(w, "a", "b")
    a, b = w.own("a"), w.own("b")
    offsets = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    match w["neighbours"]:
        case "direct":
            lines = [f"s = {a}[i - 1, j] + {a}[i + 1, j] + {a}[i, j - 1] + {a}[i, j + 1]"]
        case "static":
            lines = [
                f"s = ti.cast(0, {w.dtype})",
                f"for d in ti.static({tuple(offsets)}):",
                f"    s += {a}[i + d[0], j + d[1]]",
            ]
        case "vector":
            lines = ["at = ti.Vector([i, j])"]
            lines += ["s = " + " + ".join(f"{a}[at + ti.Vector({list(d)})]" for d in offsets)]
    lines.append(f"{b}[i, j] = s")
    inside = "i > 0 and i < n - 1 and j > 0 and j < n - 1"
    active = [f"if {a}[i, j] != 0:", *indent(lines)]
    match w["loops"]:
        case "struct":
            lines = [f"for i, j in {a}:", *indent(active)]
        case "grouped":
            lines = [f"for I in ti.grouped({a}):", "    i = I[0]", "    j = I[1]", *indent(active)]
        case "ndrange":
            lines = ["for i, j in ti.ndrange(n, n):", f"    if {inside}:", *indent(active, 2)]
        case "blocks":
            raise Skip
    w.kernel(lines)
    run = w.runs
    w.declare("filled", "[False]")
    w.runs = [f"if not {w.outside('filled')}[0]:", f"    {w.outside('filled')}[0] = True", f"    {fill}", *run]
    w.result(f"{w.outside('b')}.to_numpy()")
