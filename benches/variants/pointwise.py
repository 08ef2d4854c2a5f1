"""Each element by itself: polynomials, complex numbers, marches of rays, colours, and gathers by index."""

import numpy as np

from variants import Skip, computation
from variants.writer import BODY, BOUNDS, CONSTANT, HOME, LAYOUTS, LOOPS, LOOPS1, STORAGE, indent

SPELLED = {"loops": LOOPS1, "storage": STORAGE, "home": HOME, "bounds": BOUNDS, "body": BODY, "dtype": ("f32", "f64")}
COEFFICIENTS = (0.5, -0.25, 0.125, 0.75, -0.5, 0.375, 0.0625, -0.125)


def row(sizes, dtype):
    """Numbers between -1 and 1."""
    return {"a": np.random.default_rng(9).uniform(-1, 1, sizes["n"]).astype(dtype)}


@computation(
    SPELLED
    | {
        "how": ("horner", "powers", "static_powers", "range", "static", "vector", "field", "running"),
        "power": ("int", "float"),
    },
    {"n": 1 << 20}, {"n": 1 << 10}, row,
    lambda sizes, a: np.polyval(COEFFICIENTS[::-1], a.astype(np.float64)),
)  # fmt: skip
def polynomial(w):
    """A polynomial of degree seven."""
    a, b = w.array("a", ("n",), given=True), w.array("b", ("n",))
    c = COEFFICIENTS
    arrays = []
    match w["how"]:
        case "horner":
            text = str(c[-1])
            for value in reversed(c[:-1]):
                text = f"({text}) * x + {value}"
            lines = [f"y = {text}"]
        case "powers":
            dot = "" if w["power"] == "int" else ".0"
            lines = ["y = " + " + ".join(f"{value} * x ** {k}{dot}" for k, value in enumerate(c) if k) + f" + {c[0]}"]
        case "static_powers":
            lines = ["y = 0.0", "for k in ti.static(range(8)):", f"    y += ti.static({c}[k]) * x ** k"]
        case "running":
            lines = [
                "y = 0.0",
                "p = 1.0",
                "for k in ti.static(range(8)):",
                f"    y += ti.static({c}[k]) * p",
                "    p *= x",
            ]
        case "vector":
            lines = [
                f"c = ti.Vector({list(c)})",
                "y = 0.0",
                "for k in ti.static(range(8)):",
                "    y = y * x + c[7 - k]",
            ]
        case "static" | "range" | "field":
            span = "ti.static(range(8))" if w["how"] == "static" else "range(8)"
            if w["body"] == "real_func" and w.in_class:
                raise Skip
            w.declare("c", f"ti.field({w.dtype}, shape=8)")
            fill = f"{w.own('c')}.from_numpy(np.array({c}, {w.np(w.dtype)}))"
            w.declarations.append(fill)
            lines = ["y = 0.0", f"for k in {span}:", f"    y = y * x + {w.own('c')}[7 - k]"]
            if w["how"] == "field":
                lines = ["y = 0.0", "p = 1.0", "for k in range(8):", f"    y += {w.own('c')}[k] * p", "    p *= x"]
    lines = w.function("value", [("x", w.dtype)], lines, "y", arrays=arrays)
    w.kernel(w.loop(["i"], ["n"], [f"x = {a('i')}", *lines, f"{b('i')} = y"], over=a))
    w.result(b.numpy)


def turns(sizes, **inputs):
    """How many turns each point of the plane stays near."""
    n = sizes["n"]
    i, j = np.mgrid[:n, :n]
    x, y = (i * 4 / n - 2), (j * 4 / n - 2)
    count = np.zeros((n, n))
    for _ in range(50):
        near = x * x + y * y < 4
        count += near
        x, y = np.where(near, x * x - y * y - 0.75, x), np.where(near, 2 * x * y + 0.125, y)
    return count


@computation(
    {
        "loops": LOOPS,
        "storage": STORAGE,
        "home": HOME,
        "body": BODY,
        "constant": CONSTANT,
        "how": ("while", "while_vector", "for_break", "while_true", "for_if", "function"),
        "dtype": ("f32", "f64"),
    },
    {"n": 192}, {"n": 24}, lambda sizes, dtype: {}, turns,
    # Counts near the edge of the set differ with the last digit.
    tolerance={"f32": 0.05, "f64": 0.02},
)  # fmt: skip
def julia(w):
    """A Julia set."""
    b = w.array("b", ("n", "n"))
    cx, cy = w.constant("cx", -0.75), "0.125"
    start = ["x = i * 4.0 / n - 2.0", "y = j * 4.0 / n - 2.0"]
    step = ["t = x * x - y * y + cx0", f"y = 2.0 * x * y + {cy}", "x = t"]
    near = "x * x + y * y < 4.0"
    match w["how"]:
        case "while":
            lines = [*start, "k = 0", f"while {near} and k < 50:", *indent([*step, "k += 1"])]
        case "while_vector":
            step = [f"z = ti.Vector([z[0] * z[0] - z[1] * z[1] + cx0, 2.0 * z[0] * z[1] + {cy}])", "k += 1"]
            lines = [*start, "z = ti.Vector([x, y])", "k = 0", "while z.dot(z) < 4.0 and k < 50:", *indent(step)]
        case "for_break":
            lines = [
                *start,
                "k = 0",
                "for turn in range(50):",
                *indent([f"if not ({near}):", "    break", *step, "k += 1"]),
            ]
        case "while_true":
            test = [f"if k >= 50 or not ({near}):", "    break"]
            lines = [*start, "k = 0", "while True:", *indent([*test, *step, "k += 1"])]
        case "for_if":
            lines = [*start, "k = 0", "for turn in range(50):", f"    if {near}:", *indent([*step, "k += 1"], 2)]
        case "function":
            if w["body"] == "inline":
                raise Skip
            lines = [*start, "k = 0", f"while {near}:", *indent([*step, "k += 1", "if k >= 50:", "    break"])]
    lines = w.function("turns", [("i", "ti.i32"), ("j", "ti.i32"), ("cx0", w.dtype)], lines, "k", returns="ti.i32")
    w.kernel(w.loop(["i", "j"], ["n", "n"], [f"cx0 = {cx}", *lines, f"{b('i', 'j')} = k"], over=b))
    w.result(b.numpy)


def pairs(sizes, dtype):
    """Complex numbers, real and imaginary part."""
    draw, n = np.random.default_rng(10), sizes["n"]
    return {"a": draw.random((n, 2)).astype(dtype), "b": draw.random((n, 2)).astype(dtype)}


def product(sizes, a, b):
    """Products of complex numbers."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.stack([a[:, 0] * b[:, 0] - a[:, 1] * b[:, 1], a[:, 0] * b[:, 1] + a[:, 1] * b[:, 0]], 1)


@computation(
    {
        "layout": LAYOUTS,
        "how": ("components", "vector", "cmul", "matrix", "range", "static"),
        "body": BODY,
        "home": HOME,
        "bounds": BOUNDS,
        "loops": ("range", "struct", "chunks", "while"),
        "dtype": ("f32", "f64"),
    },
    {"n": 1 << 18}, {"n": 1 << 9}, pairs, product,
)  # fmt: skip
def complex_products(w):
    """Products of complex numbers."""
    a, b, c = (w.vectors(name, ("n",), 2, given=name != "c") for name in "abc")
    if w["loops"] == "struct" and w["layout"] in ("separate", "last_axis", "first_axis"):
        raise Skip
    read = [f"p = {a('i')}", f"q = {b('i')}"]
    kind = f"ti.types.vector(2, {w.dtype})"
    formula = ("p[0] * q[0] - p[1] * q[1]", "p[0] * q[1] + p[1] * q[0]")
    match w["how"]:
        case "components":
            parts = (a.component(0, "i"), a.component(1, "i"), b.component(0, "i"), b.component(1, "i"))
            lines = [f"x{k} = {part}" for k, part in enumerate(parts)]
            lines += [f"{c.component(0, 'i')} = x0 * x2 - x1 * x3", f"{c.component(1, 'i')} = x0 * x3 + x1 * x2"]
            if w["body"] != "inline":
                raise Skip
            w.kernel(w.loop(["i"], ["n"], lines, over=a))
            return w.result(c.numpy)
        case "vector":
            lines = [f"r = ti.Vector([{', '.join(formula)}])"]
        case "cmul":
            lines = ["r = ti.math.cmul(p, q)"]
        case "matrix":
            lines = ["r = ti.Matrix([[p[0], -p[1]], [p[1], p[0]]]) @ q"]
        case _:
            span = "range(2)" if w["how"] == "range" else "ti.static(range(2))"
            lines = ["r = ti.Vector([0.0, 0.0])", f"for k in {span}:"]
            lines += ["    r[k] = p[0] * q[k] + (2 * k - 1) * p[1] * q[1 - k]"]
    lines = w.function("times", [("p", kind), ("q", kind)], lines, "r", returns=kind)
    w.kernel(w.loop(["i"], ["n"], [*read, *lines, *c.put(["i"], "r")], over=a))
    w.result(c.numpy)


def march_reference(sizes, **inputs):
    """Steps of rays towards a sphere over a plane."""
    n = sizes["n"]
    i, j = np.mgrid[:n, :n]
    d = np.stack([(i + 0.5) / n - 0.5, (j + 0.5) / n - 0.5, np.ones((n, n))], -1)
    d /= np.sqrt((d * d).sum(-1))[..., None]
    t = np.zeros((n, n))
    for _ in range(40):
        p = d * t[..., None] - [0, 0, 3]
        s = np.minimum(np.sqrt((p * p).sum(-1)) - 1, p[..., 1] + 1.2)
        t += np.where((s >= 1e-3) & (t <= 20), s, 0)
    return np.minimum(t, 20)


@computation(
    {
        "loops": LOOPS,
        "storage": STORAGE,
        "home": HOME,
        "body": BODY,
        "constant": CONSTANT,
        "how": ("break", "while", "flag", "while_true", "masked"),
        "vectors": ("vector", "components", "norm"),
        "dtype": ("f32", "f64"),
    },
    {"n": 160}, {"n": 16}, lambda sizes, dtype: {}, march_reference,
    tolerance={"f32": 1e-2, "f64": 1e-8},
)  # fmt: skip
def ray_march(w):
    """Rays that go on by distances."""
    b = w.array("b", ("n", "n"))
    least = w.constant("least", 1e-3)
    match w["vectors"]:
        case "components":
            ray = [
                "dx = (i + 0.5) / n - 0.5",
                "dy = (j + 0.5) / n - 0.5",
                "scale = 1.0 / ti.sqrt(dx * dx + dy * dy + 1.0)",
            ]
            ray += ["dx *= scale", "dy *= scale", "dz = scale"]
            at = ["x = dx * t", "y = dy * t", "z = dz * t - 3.0"]
            distance = w.function("far", [(name, w.dtype) for name in "xyz"],
                                  ["s = ti.min(ti.sqrt(x * x + y * y + z * z) - 1.0, y + 1.2)"], "s")  # fmt: skip
        case _:
            ray = ["d = ti.Vector([(i + 0.5) / n - 0.5, (j + 0.5) / n - 0.5, 1.0]).normalized()"]
            at = ["p = d * t - ti.Vector([0.0, 0.0, 3.0])"]
            length = "p.norm()" if w["vectors"] == "norm" else "ti.sqrt(p.dot(p))"
            kind = f"ti.types.vector(3, {w.dtype})"
            distance = w.function("far", [("p", kind)], [f"s = ti.min({length} - 1.0, p[1] + 1.2)"], "s")
    step = [*at, *distance]
    match w["how"]:
        case "break":
            lines = ["for turn in range(40):", *indent([*step, "if s < least0 or t > 20.0:", "    break", "t += s"])]
        case "while":
            lines = ["s = 1.0", "turn = 0", "while turn < 40 and s >= least0 and t <= 20.0:"]
            lines += indent([*step, "if s >= least0:", "    t += s", "turn += 1"])
        case "flag":
            lines = ["done = 0", "for turn in range(40):", "    if done == 0:"]
            lines += indent([*step, "if s < least0 or t > 20.0:", "    done = 1", "else:", "    t += s"], 2)
        case "while_true":
            lines = [
                "turn = 0",
                "while True:",
                *indent([*step, "if turn >= 40 or s < least0 or t > 20.0:", "    break", "t += s", "turn += 1"]),
            ]
        case "masked":
            lines = ["for turn in range(40):", *indent([*step, "t += ti.select(s < least0 or t > 20.0, 0.0, s)"])]
    body = [f"least0 = {least}", *ray, "t = 0.0", *lines, f"{b('i', 'j')} = ti.min(t, 20.0)"]
    w.kernel(w.loop(["i", "j"], ["n", "n"], body, over=b))
    w.result(b.numpy)


def indexed(sizes, dtype):
    """Numbers, and an index array that permutes them."""
    draw, n = np.random.default_rng(11), sizes["n"]
    return {"a": draw.random(n).astype(dtype), "index": draw.permutation(n).astype(np.int32)}


INDEXED = {key: values for key, values in SPELLED.items() if key != "body"} | {
    "guard": ("none", "if", "continue", "clamped"),
    "adding": ("set", "augmented", "atomic"),
}


def by_index(w, gathering):
    """Reads or writes at places that an array has."""
    a, b = w.array("a", ("n",), given=True), w.array("b", ("n",))
    index = w.array("index", ("n",), dtype="ti.i32", given=True)
    n = w.size("n")
    place = "at" if w["guard"] != "clamped" else f"ti.max(0, ti.min(at, {n} - 1))"
    target, value = (b("i"), a(place)) if gathering else (b(place), a("i"))
    clear = []
    if w["adding"] == "set":
        lines = [f"{target} = {value}"]
    else:
        lines, clear = w.add(target, value, parallel=True), [f"for i in range({n}):", f"    {b('i')} = 0.0"]
    test = f"at >= 0 and at < {n}"
    if w["guard"] == "if":
        lines = [f"if {test}:", *indent(lines)]
    elif w["guard"] == "continue":
        lines = [f"if not ({test}):", "    continue", *lines]
    guard, w.choice = w.choice, w.choice | {"guard": "none"}
    w.kernel([*clear, *w.loop(["i"], ["n"], [f"at = {index('i')}", *lines], over=a)])
    w.choice = guard
    w.result(b.numpy)


@computation(
    INDEXED, {"n": 1 << 19}, {"n": 1 << 10}, indexed, lambda sizes, a, index: a[index], apart=("dtype", "adding")
)
def gather(w):
    """Reads at places that an array has."""
    by_index(w, gathering=True)


def scattered(sizes, a, index):
    """The reference of `scatter`."""
    b = np.zeros_like(a)
    b[index] = a
    return b


@computation(INDEXED, {"n": 1 << 19}, {"n": 1 << 10}, indexed, scattered, apart=("dtype", "adding"))
def scatter(w):
    """Writes at places that an array has."""
    by_index(w, gathering=False)


def image(sizes, dtype):
    """Colours of eight bits in one number."""
    return {"a": np.random.default_rng(12).integers(0, 1 << 24, (sizes["n"], sizes["n"])).astype(np.int32)}


def darker(sizes, a):
    """Half as bright, then at sixteen levels."""
    channels = [((a >> shift) & 255) // 2 // 16 * 16 for shift in (16, 8, 0)]
    return channels[0] << 16 | channels[1] << 8 | channels[2]


@computation(
    {
        "loops": LOOPS,
        "storage": STORAGE,
        "home": HOME,
        "bounds": BOUNDS,
        "body": BODY,
        "bits": ("shift", "division", "mask_first", "float"),
        "channels": ("by_hand", "static", "range", "vector"),
        "dtype": ("i32",),
    },
    {"n": 1024}, {"n": 32}, image, darker,
)  # fmt: skip
def colours(w):
    """Colours of eight bits, packed in one number, halved and quantised."""
    a, b = w.array("a", ("n", "n"), given=True), w.array("b", ("n", "n"))

    def channel(shift):
        match w["bits"]:
            case "shift":
                return f"((x >> {shift}) & 255) >> 1 & 240"
            case "division":
                return f"x // (1 << {shift}) % 256 // 2 // 16 * 16"
            case "mask_first":
                return f"((x & (255 << {shift})) >> {shift}) // 2 & ~15"
        return f"ti.cast(ti.floor(ti.cast((x >> {shift}) & 255, ti.f32) * 0.5 / 16.0), ti.i32) * 16"

    match w["channels"]:
        case "by_hand":
            lines = [f"{name} = {channel(shift)}" for name, shift in (("red", 16), ("green", 8), ("blue", 0))]
            lines.append("y = (red << 16) | (green << 8) | blue")
        case "static" | "range":
            span = "range(3)" if w["channels"] == "range" else "ti.static(range(3))"
            lines = ["y = 0", f"for k in {span}:", f"    y |= ({channel('(8 * k)')}) << (8 * k)"]
        case "vector":
            lines = [f"c = ti.Vector([{', '.join(channel(shift) for shift in (16, 8, 0))}])"]
            lines.append("y = (c[0] << 16) + (c[1] << 8) + c[2]")
    lines = w.function("darker", [("x", "ti.i32")], lines, "y", returns="ti.i32")
    w.kernel(w.loop(["i", "j"], ["n", "n"], [f"x = {a('i', 'j')}", *lines, f"{b('i', 'j')} = y"], over=a))
    w.result(b.numpy)
