"""Histograms of few and of many cells."""

import numpy as np

from variants import computation
from variants.writer import BODY, BOUNDS, CONSTANT, HOME, LOOPS1, STORAGE

AXES = {
    "loops": LOOPS1,
    "storage": STORAGE,
    "home": HOME,
    "bounds": BOUNDS,
    "constant": CONSTANT,
    "body": BODY,
    "adding": ("augmented", "atomic"),
    "clear": ("first", "apart", "before"),
    "counts": ("i32", "f32"),
    "key": ("floor", "cast", "clamped", "guarded"),
    "dtype": ("f32", "f64"),
}


def numbers(sizes, dtype):
    """Numbers in [0, 1)."""
    x = np.random.default_rng(3).random(sizes["n"])
    return {"a": np.minimum(x * x, 0.999).astype(dtype)}


def counted(cells):
    """The reference of a histogram."""
    return lambda sizes, a: np.bincount((a * a.dtype.type(cells)).astype(int), minlength=cells)


def histogram(w, cells):
    """Counts of `a * cells`."""
    w.sizes["cells"] = cells
    a = w.array("a", ("n",), given=True)
    storage = w["storage"] if w["storage"] != "blocks" else "field"
    counts = w.array("counts", ("cells",), dtype="ti." + w["counts"], storage=storage)
    scale = w.constant("scale", float(cells))
    key = {
        "floor": "key = ti.floor(x * scale0, ti.i32)",
        "cast": "key = ti.cast(x * scale0, ti.i32)",
        "clamped": f"key = ti.max(0, ti.min(ti.cast(x * scale0, ti.i32), {cells - 1}))",
        "guarded": "key = int(x * scale0)",
    }[w["key"]]
    lines = w.function("cell_of", [("x", w.dtype), ("scale0", w.dtype)], [key], "key", returns="ti.i32")
    one = "1" if w["counts"] == "i32" else "1.0"
    add = w.add(counts("key"), one, parallel=True)
    if w["key"] == "guarded":
        add = [f"if key >= 0 and key < {cells}:", "    " + add[0]]
    body = [f"x = {a('i')}", f"scale0 = {scale}", *lines, *add]
    main = w.loop(["i"], ["n"], body, over=a)
    clear = w.loop(["c"], ["cells"], [f"{counts('c')} = 0"], kind="range")
    match w["clear"]:
        case "first":
            w.kernel([*clear, *main])
        case "apart":
            w.kernel(clear, name="clear")
            w.kernel(main)
        case "before":
            w.runs.append(counts.clear)
            w.kernel(main)
    w.result(counts.numpy)


@computation(AXES, {"n": 1 << 20}, {"n": 1 << 11}, numbers, counted(64))
def histogram64(w):
    """64 cells."""
    histogram(w, 64)


@computation(AXES, {"n": 1 << 20}, {"n": 1 << 11}, numbers, counted(257))
def histogram257(w):
    """257 cells."""
    histogram(w, 257)


@computation(AXES, {"n": 1 << 20}, {"n": 1 << 11}, numbers, counted(4096))
def histogram4096(w):
    """4096 cells."""
    histogram(w, 4096)
