"""Orders: a step of a sorting network, prefix sums, and places found by an atomic counter."""

import numpy as np

from variants import Skip, computation
from variants.writer import BODY, BOUNDS, CONSTANT, HOME, LOOPS1, STORAGE, indent


def numbers(sizes, dtype):
    """One row of numbers."""
    draw, n = np.random.default_rng(8), sizes["n"]
    return {"a": (draw.integers(0, 100, n) if dtype.kind == "i" else draw.random(n)).astype(dtype)}


def pairs_sorted(sizes, a):
    """Each pair of neighbours at a distance of 64 in order, in blocks of 128."""
    rows = a.reshape(-1, 2, 64)
    return np.stack([rows.min(1), rows.max(1)], 1).reshape(-1)


@computation(
    {
        "loops": ("range", "struct", "flat", "ndrange", "nested"),
        "storage": STORAGE,
        "home": HOME,
        "bounds": BOUNDS,
        "constant": CONSTANT,
        "partner": ("xor", "division", "plus"),
        "exchange": ("if", "minmax", "select", "swap", "continue"),
        "body": BODY,
        "dtype": ("f32", "f64", "i32"),
    },
    {"n": 1 << 20}, {"n": 1 << 10}, numbers, pairs_sorted,
)  # fmt: skip
def sorting_step(w):
    """One step of a bitonic sorting network."""
    a, b = w.array("a", ("n",), given=True), w.array("b", ("n",))
    step = w.constant("step", 64, "ti.i32")
    n = w.size("n")
    exchange = {
        "if": ["lo = x", "hi = y", "if x > y:", "    lo = y", "    hi = x"],
        "minmax": ["lo = ti.min(x, y)", "hi = ti.max(x, y)"],
        "select": ["lo = ti.select(x > y, y, x)", "hi = ti.select(x > y, x, y)"],
        "swap": ["lo = x", "hi = y", "if lo > hi:", "    lo, hi = hi, lo"],
        "continue": ["lo = x if x <= y else y", "hi = y if x <= y else x"],
    }[w["exchange"]]
    if w["body"] != "inline":
        if w["exchange"] != "minmax":
            raise Skip
        one = w.function("low_of", [("x", w.dtype), ("y", w.dtype)], ["lo = ti.min(x, y)"], "lo")
        exchange = [*one, "hi = ti.max(x, y)"]
    # Copies first, so that each run sorts the same.
    store = [f"x = {a('i')}", f"y = {a('j')}", *exchange, f"{b('i')} = lo", f"{b('j')} = hi"]
    if w["partner"] == "xor":
        if w["loops"] in ("flat", "ndrange", "nested"):
            raise Skip
        lines = w.loop(["i"], ["n"], [f"j = i ^ {step}", "if j > i:", *indent(store)], over=a)
    elif w["loops"] == "range":
        lines = [f"for t in range({n} // 2):"]
        if w["partner"] == "division":
            lines += [f"    i = t // {step} * 2 * {step} + t % {step}"]
        else:
            lines += [f"    i = 2 * t - t % {step}"]
        lines += indent([f"j = i + {step}", *store])
    elif w["loops"] in ("ndrange", "nested") and w["partner"] == "plus":
        outer, inner = f"{n} // 128", "64"
        head = [f"for u, v in ti.ndrange({outer}, {inner}):"]
        if w["loops"] == "nested":
            head = [f"for u in range({outer}):", f"    for v in range({inner}):"]
        lines = [*head, *indent(["i = u * 128 + v", f"j = i + {step}", *store], len(head))]
    else:
        raise Skip
    w.kernel(lines)
    w.result(b.numpy)


@computation(
    {
        "how": ("serial", "element", "rows", "blocks", "tensor"),
        "loops": ("range", "while", "ndrange"),
        "storage": STORAGE,
        "home": HOME,
        "bounds": BOUNDS,
        "adding": ("augmented", "own", "local"),
        "dtype": ("f32", "f64", "i32"),
    },
    {"n": 1024, "m": 512}, {"n": 16, "m": 64},
    lambda sizes, dtype: {"a": numbers({"n": sizes["n"] * sizes["m"]}, dtype)["a"].reshape(sizes["n"], sizes["m"])},
    lambda sizes, a: a.astype(np.float64).cumsum(1),
)  # fmt: skip
def prefix_sums(w):
    """Prefix sums of rows."""
    zero = "0" if w["dtype"] == "i32" else "0.0"
    if w["how"] == "tensor":
        w.declare("x", "ti.tensor.asarray(inputs['a'])")
        x = w.outside("x")
        w.runs += [f"{x}[0, 0] = {x}[0, 0]", f"answer[0] = ti.tensor.cumulative_sum({x}, axis=1).numpy()"]
        return w.result("answer[0]")
    a, b = w.array("a", ("n", "m"), given=True), w.array("b", ("n", "m"))
    n, m = w.size("n"), w.size("m")

    def row(first, body):
        match w["loops"]:
            case "range":
                return [f"for j in range({first}, {m}):", *indent(body)]
            case "ndrange":
                return [f"for j in ti.ndrange(({first}, {m})):", *indent(body)]
        return [f"j = {first - 1}", f"while j < {m} - 1:", *indent(["j += 1", *body])]

    match w["how"]:
        case "serial":
            if w["adding"] == "own":
                raise Skip
            lines = [f"total = {zero}", *row(0, [f"total += {a('i', 'j')}", f"{b('i', 'j')} = total"])]
        case "element":
            lines = [f"{b('i', '0')} = {a('i', '0')}", *row(1, [f"{b('i', 'j')} = {b('i', 'j - 1')} + {a('i', 'j')}"])]
        case "rows":
            copy = row(0, [f"{b('i', 'j')} = {a('i', 'j')}"])
            if w["adding"] == "local":
                raise Skip
            lines = [*copy, *row(1, w.add(b("i", "j"), b("i", "j - 1")))]
        case "blocks":
            inner = [f"total += {a('i', 'j')}", f"{b('i', 'j')} = total"]
            lines = [f"total = {zero}", f"for block in range({m} // 8):"]
            lines += ["    for u in range(8):", "        j = block * 8 + u", *indent(inner, 2)]
            if w["loops"] != "range" or w["adding"] != "local":
                raise Skip
    w.kernel([f"for i in range({n}):", *indent(lines)])
    w.result(b.numpy)


@computation(
    {
        "loops": LOOPS1,
        "storage": STORAGE,
        "home": HOME,
        "bounds": BOUNDS,
        "constant": CONSTANT,
        "counter": ("field0", "element", "argument"),
        "guard": ("if", "continue"),
        "order": ("place_first", "value_first", "inside_index"),
        "dtype": ("f32", "f64", "i32"),
    },
    {"n": 1 << 19}, {"n": 1 << 10}, numbers,
    lambda sizes, a: np.sort(a[a > (50 if a.dtype.kind == "i" else a.dtype.type(0.5))]),
)  # fmt: skip
def compaction(w):
    """Gathers the elements above a limit at places that an atomic counter gives."""
    a, b = w.array("a", ("n",), given=True), w.array("b", ("n",))
    limit = w.constant("limit", 50 if w["dtype"] == "i32" else 0.5)
    match w["counter"]:
        case "field0":
            w.declare("count", "ti.field(ti.i32, shape=())")
            count, clear, number = (
                f"{w.own('count')}[None]",
                f"{w.outside('count')}[None] = 0",
                f"{w.outside('count')}[None]",
            )
        case "element":
            w.declare("count", "ti.field(ti.i32, shape=8)")
            count, clear, number = f"{w.own('count')}[3]", f"{w.outside('count')}.fill(0)", f"{w.outside('count')}[3]"
        case "argument":
            w.declare("count", "np.zeros(1, np.int32)")
            w.parameters.append(("count", "ti.types.ndarray(dtype=ti.i32, ndim=1)", w.outside("count")))
            count, clear, number = "count[0]", f"{w.outside('count')}[0] = 0", f"{w.outside('count')}[0]"
    taken = f"ti.atomic_add({count}, 1)"
    store = {
        "place_first": [f"place = {taken}", f"{b('place')} = {a('i')}"],
        "value_first": [f"x = {a('i')}", f"place = {taken}", f"{b('place')} = x"],
        "inside_index": [f"{b(taken)} = {a('i')}"],
    }[w["order"]]
    test = f"{a('i')} > {limit}"
    body = [f"if {test}:", *indent(store)] if w["guard"] == "if" else [f"if not ({test}):", "    continue", *store]
    w.runs.append(clear)
    w.kernel(w.loop(["i"], ["n"], body, over=a))
    w.result(f"np.sort({b.numpy}[:{number}])")
