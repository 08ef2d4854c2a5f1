"""Reductions: of all elements, and over one axis."""

import numpy as np

from variants import Skip, computation
from variants.writer import BODY, BOUNDS, CONSTANT, HOME, LOOPS1, STORAGE

SPELLED = {
    "loops": LOOPS1,
    "storage": STORAGE,
    "home": HOME,
    "bounds": BOUNDS,
    "dtype": ("f32", "f64", "i32"),
    "into": ("local", "field0", "element", "array_argument", "atomic", "rows"),
}


def numbers(sizes, dtype):
    """One array over all sizes."""
    draw = np.random.default_rng(2)
    shape = tuple(sizes.values())
    values = draw.permutation(int(np.prod(shape))).reshape(shape) % 1999 if dtype.kind == "i" else draw.random(shape)
    return {"a": values.astype(dtype)}


def reduced(w, body, start, combine):
    """A reduction of `a`: `body(value, combined)` gives lines, where `combined` makes one that takes a value in."""
    a = w.array("a", ("n",), given=True)
    start = str(int(float(start))) if w["dtype"] == "i32" else start
    zero = f"ti.cast({start}, {w.dtype})"
    value = a("i")

    def into(target):
        lines = body(value, lambda one: combine(target, one, False))
        return w.loop(["i"], ["n"], lines, over=a)

    match w["into"]:
        case "local":
            w.kernel([f"total = {zero}", *into("total"), "return total"], returns=w.dtype)
            w.result("answer[0]")
        case "atomic":
            lines = w.loop(["i"], ["n"], body(value, lambda one: combine("total", one, True)), over=a)
            w.kernel([f"total = {zero}", *lines, "return total"], returns=w.dtype)
            w.result("answer[0]")
        case "field0":
            w.declare("total", f"ti.field({w.dtype}, shape=())")
            total = w.own("total") + "[None]"
            w.kernel([f"{total} = {start}", *into(total)])
            w.result(f"{w.outside('total')}[None]")
        case "element":
            w.declare("total", f"ti.field({w.dtype}, shape=4)")
            total = w.own("total") + "[2]"
            w.kernel([f"{total} = {start}", *into(total)])
            w.result(f"{w.outside('total')}[2]")
        case "array_argument":
            w.declare("total", f"np.zeros(1, {w.np(w.dtype)})")
            w.parameters.append(("total", f"ti.types.ndarray(dtype={w.dtype}, ndim=1)", w.outside("total")))
            w.runs.append(f"{w.outside('total')}[0] = {start}")
            w.kernel(into("total[0]"))
            w.result(f"{w.outside('total')}[0]")
        case "rows":
            # Partial results of rows by one kernel, and theirs by another.
            if w["loops"] not in ("chunks", "while"):
                raise Skip
            w.declare("partial", f"ti.field({w.dtype}, shape=n // 256)")
            partial = w.own("partial")
            lines = into("own_total")
            w.kernel(
                [lines[0], f"    own_total = {zero}", *lines[1:], f"    {partial}[chunk] = own_total"], name="rows"
            )
            last = [
                f"total = {zero}",
                "for c in range(n // 256):",
                f"    {combine('total', partial + '[c]', False)[0]}",
            ]
            w.kernel([*last, "return total"], name="all_rows", returns=w.dtype)
            w.result("answer[0]")


def summed(target, one, atomic):
    """A line that adds."""
    return [f"ti.atomic_add({target}, {one})" if atomic else f"{target} += {one}"]


FULL, SMALL = {"n": 1 << 21}, {"n": 1 << 12}
SUMS = {"f32": 1e-3, "f64": 1e-10, "i32": 0}


@computation(SPELLED, FULL, SMALL, numbers, lambda sizes, a: a.astype(np.float64).sum(), tolerance=SUMS)
def total(w):
    """The sum of all elements."""
    reduced(w, lambda value, add: add(value), "0.0", summed)


def above(sizes, a):
    """The reference of `conditional_total`."""
    limit = 999 if a.dtype.kind == "i" else a.dtype.type(0.5)
    return a[a > limit].astype(np.float64).sum()


@computation(
    SPELLED | {"guard": ("if", "continue", "select", "ternary", "mask"), "constant": CONSTANT},
    FULL, SMALL, numbers, above, tolerance=SUMS,
)  # fmt: skip
def conditional_total(w):
    """The sum of the elements above a limit."""
    limit = w.constant("limit", 999 if w["dtype"] == "i32" else 0.5)
    zero = "0" if w["dtype"] == "i32" else "0.0"

    def body(value, add):
        test = f"{value} > {limit}"
        match w["guard"]:
            case "if":
                return [f"if {test}:", *("    " + line for line in add(value))]
            case "continue":
                return [f"if not ({test}):", "    continue", *add(value)]
            case "select":
                return add(f"ti.select({test}, {value}, {zero})")
            case "ternary":
                return add(f"({value} if {test} else {zero})")
        return add(f"{value} * ti.cast({test}, {w.dtype})")

    reduced(w, body, "0.0", summed)


@computation(
    SPELLED | {"how": ("builtin", "if", "select", "ternary", "max_call")},
    FULL, SMALL, numbers, lambda sizes, a: a.max(),
)  # fmt: skip
def greatest(w):
    """The greatest element."""

    def combine(target, one, atomic):
        if atomic:
            return [f"ti.atomic_max({target}, {one})"]
        if w["into"] != "rows" and w["how"] != "builtin":
            # Parallel iterations that compare and store race.
            raise Skip
        match w["how"]:
            case "builtin":
                return (
                    [f"ti.atomic_max({target}, {one})"]
                    if w["into"] != "rows"
                    else [f"{target} = ti.max({target}, {one})"]
                )
            case "max_call":
                return [f"{target} = max({target}, {one})"]
            case "select":
                return [f"{target} = ti.select({one} > {target}, {one}, {target})"]
            case "ternary":
                return [f"{target} = {one} if {one} > {target} else {target}"]
        return [f"{target} = ti.max({target}, {one})"]

    reduced(w, lambda value, take: take(value), "-1.0", combine)


@computation(
    {
        "loops": ("range", "while", "ndrange"),
        "storage": STORAGE,
        "home": HOME,
        "bounds": BOUNDS,
        "dtype": ("f32", "f64", "i32"),
        "how": ("if", "select", "ternary", "or_equal", "negated"),
        "body": BODY,
        "held": ("value", "index", "both_arrays"),
    },
    {"n": 512, "m": 2048}, {"n": 16, "m": 64}, numbers,
    lambda sizes, a: a.argmax(1),
)  # fmt: skip
def argmax(w):
    """Where the greatest element of each row is, found by comparing."""
    a = w.array("a", ("n", "m"), given=True)
    index = w.array("index", ("n",), dtype="ti.i32")
    read = a("i", "j")
    if w["held"] == "index":
        lines, greater = ["where = 0"], f"{read} > {a('i', 'where')}"
        if w["how"] not in ("if", "select", "ternary"):
            raise Skip
        step = {
            "if": [f"if {greater}:", "    where = j"],
            "select": [f"where = ti.select({greater}, j, where)"],
            "ternary": [f"where = j if {greater} else where"],
        }[w["how"]]
    else:
        lines, step = ["where = 0", f"best = {a('i', '0')}"], [f"x = {read}"]
        step += {
            "if": ["if x > best:", "    best = x", "    where = j"],
            "select": ["where = ti.select(x > best, j, where)", "best = ti.select(x > best, x, best)"],
            "ternary": ["where = j if x > best else where", "best = x if x > best else best"],
            "or_equal": ["if not (x <= best):", "    where = j", "    best = x"],
            "negated": ["if best < x:", "    where = j", "    best = ti.max(best, x)"],
        }[w["how"]]
    m = w.size("m")
    if w["body"] != "inline" and w["bounds"] != "global":
        raise Skip
    inner = {
        "range": [f"for j in range({m}):"],
        "ndrange": [f"for j in ti.ndrange({m}):"],
        "while": ["j = -1", f"while j < {m} - 1:"],
    }[w["loops"]]
    if w["loops"] == "while":
        step = ["j += 1", *step]
    lines = [*lines, *inner, *("    " + line for line in step)]
    lines = w.function("highest", [("i", "ti.i32")], lines, "where", arrays=[a], returns="ti.i32")
    store = [*lines, f"{index('i')} = where"]
    if w["held"] == "both_arrays":
        best = w.array("best_of", ("n",))
        if w["body"] != "inline":
            raise Skip
        store.append(f"{best('i')} = best")
    w.kernel([f"for i in range({w.size('n')}):", *("    " + line for line in store)])
    w.result(index.numpy)


AXIS = {
    "loops": ("nested", "nested_swapped", "ndrange", "struct", "grouped", "flat", "while", "swapped"),
    "storage": (*STORAGE, "tensor"),
    "home": HOME,
    "bounds": BOUNDS,
    "dtype": ("f32", "f64", "i32"),
    "adding": ("local", "augmented", "own", "atomic"),
    "clear": ("first", "apart", "before"),
}


def along(w, axis):
    """Sums over one axis of an array."""
    sizes = list(w.sizes)
    names = ["i", "j", "k"][: len(sizes)]
    rest = [k for k in range(len(sizes)) if k != axis]
    kept, kept_sizes = [names[k] for k in rest], [sizes[k] for k in rest]
    if w["storage"] == "tensor":
        w.declare("x", "ti.tensor.asarray(inputs['a'])")
        x = w.outside("x")
        # A store makes the tensor another, so that its sum is not the one of before.
        w.runs += [f"{x}[{', '.join('0' for _ in sizes)}] = {x}[{', '.join('0' for _ in sizes)}]"]
        w.runs += [f"answer[0] = {x}.sum({axis}).numpy()"]
        w.result("answer[0]")
        return
    a, b = w.array("a", sizes, given=True), w.array("b", kept_sizes)
    source, target = a(*names), b(*kept)
    size, zero = w.size(sizes[axis]), "0" if w["dtype"] == "i32" else "0.0"
    serial = w["loops"] in ("nested", "while")
    if serial:
        # Each sum is made by a loop of its own.
        if w["clear"] != "first":
            raise Skip
        name = names[axis]
        head, first = ([f"for {name} in range({size}):"], [])
        if w["loops"] == "while":
            head, first = [f"{name} = -1", f"while {name} < {size} - 1:"], [f"    {name} += 1"]

        def around(line):
            return [*head, *first, f"    {line}"]

        lines = w.accumulate(target, around, source, start=zero)
        w.kernel(w.loop(kept, kept_sizes, lines, over=b, kind="ndrange" if len(kept) > 1 else "range"))
    elif w["loops"] == "nested_swapped":
        # The summed axis outside, one row after the other.
        if w["adding"] in ("local", "atomic") or w["clear"] == "before" or len(sizes) != 2:
            raise Skip
        line = w.add(target, source)
        inner = [f"for {kept[0]} in range({w.size(kept_sizes[0])}):"]
        clear = [*inner, f"    {target} = {zero}"]
        outer = [f"for {names[axis]} in range({size}):", *("    " + one for one in [*inner, "    " + line[0]])]
        if w["clear"] == "apart":
            w.kernel(clear, name="clear")
            w.kernel(["for once in range(1):", *("    " + one for one in outer)])
        else:
            w.kernel(["for once in range(1):", *("    " + one for one in [*clear, *outer])])
    else:
        if w["adding"] in ("local", "own"):
            raise Skip
        lines = w.loop(names, sizes, w.add(target, source, parallel=True), over=a)
        clear = w.loop(kept, kept_sizes, [f"{target} = {zero}"], over=b, kind="ndrange" if len(kept) > 1 else "range")
        match w["clear"]:
            case "first":
                w.kernel([*clear, *lines])
            case "apart":
                w.kernel(clear, name="clear")
                w.kernel(lines)
            case "before":
                w.runs.append(b.clear)
                w.kernel(lines)
    w.result(b.numpy)


def over(axis):
    """The reference of sums over an axis."""
    return lambda sizes, a: a.astype(np.float64).sum(axis)


@computation(AXIS, {"n": 1024, "m": 1024}, {"n": 32, "m": 64}, numbers, over(1))
def row_sums(w):
    """The sum of each row."""
    along(w, 1)


@computation(AXIS, {"n": 1024, "m": 1024}, {"n": 32, "m": 64}, numbers, over(0))
def column_sums(w):
    """The sum of each column."""
    along(w, 0)


@computation(AXIS, {"n": 256, "r": 32, "m": 256}, {"n": 8, "r": 24, "m": 64}, numbers, over(1))
def middle_sums(w):
    """Sums over a middle axis."""
    along(w, 1)
