"""Steps of solvers, and the gradient of a small program over time."""

import numpy as np

from variants import Skip, computation
from variants.writer import BOUNDS, CONSTANT, HOME, LOOPS, STORAGE, indent


def field(sizes, dtype):
    """A right-hand side on a square."""
    n = sizes["n"]
    return {"a": np.random.default_rng(13).random((n, n)).astype(dtype)}


def jacobi_reference(sizes, a):
    """Four steps of Jacobi's method, zero at the edges."""
    x = np.zeros(a.shape)
    for _ in range(4):
        y = np.zeros_like(x)
        y[1:-1, 1:-1] = 0.25 * (a[1:-1, 1:-1] + x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
        x = y
    return x


@computation(
    {
        "loops": LOOPS,
        "storage": STORAGE,
        "home": HOME,
        "bounds": BOUNDS,
        "steps": ("calls", "one_kernel", "static", "template_swap"),
        "guard": ("range", "if", "continue"),
        "back": ("copy", "swap"),
        "dtype": ("f32", "f64"),
    },
    {"n": 512}, {"n": 32}, field, jacobi_reference,
)  # fmt: skip
def jacobi(w):
    """Four steps of Jacobi's method."""
    a, x, y = (w.array(name, ("n", "n"), given=name == "a") for name in "axy")

    def step(x, y):
        around = f"{x('i + 1', 'j')} + {x('i - 1', 'j')} + {x('i', 'j + 1')} + {x('i', 'j - 1')}"
        line = f"{y('i', 'j')} = 0.25 * ({a('i', 'j')} + {around})"
        return w.loop(["i", "j"], ["n", "n"], [line], over=y, margin=1)

    def copy():
        guard, w.choice = w.choice, w.choice | {"guard": "none"}
        lines = w.loop(["i", "j"], ["n", "n"], [f"{x('i', 'j')} = {y('i', 'j')}"], over=x)
        w.choice = guard
        return lines

    pair = [*step(x, y), *(step(y, x) if w["back"] == "swap" else copy())]
    n_pairs = 2 if w["back"] == "swap" else 4
    w.runs.append(x.clear)
    match w["steps"]:
        case "one_kernel":
            w.kernel(pair * n_pairs)
        case "calls":
            call = w.kernel(pair, run=False)
            w.runs += [f"for turn in range({n_pairs}):", f"    {call}"]
        case "static":
            w.kernel([f"for turn in ti.static(range({n_pairs})):", *indent(pair)])
        case "template_swap":
            if w["back"] != "swap" or w["storage"] not in ("template", "ndarray", "numpy"):
                raise Skip
            w.kernel(step(x, y))
            call = w.runs.pop()
            names = [w.outside(name) for name in "xy"]
            marked = call.replace(f"{names[0]},", "@,").replace(f"{names[1]}", names[0] + " ")
            other = marked.replace("@", names[1]).replace(names[0] + " ", names[0])
            w.runs += [call, other] * 2
    w.result(x.numpy)


def cg_reference(sizes, a):
    """One step of conjugate gradients from zero, for the five-point operator."""
    wide = np.pad(a.astype(np.float64), 1)
    ap = 5 * a - wide[2:, 1:-1] - wide[:-2, 1:-1] - wide[1:-1, 2:] - wide[1:-1, :-2]
    alpha = (a.astype(np.float64) ** 2).sum() / (a * ap).sum()
    return alpha * a


@computation(
    {
        "loops": LOOPS,
        "storage": STORAGE,
        "home": HOME,
        "bounds": BOUNDS,
        "sums": ("returned", "field0", "one_kernel"),
        "edge": ("if", "ternary", "select", "padded"),
        "fused": ("no", "yes"),
        "dtype": ("f32", "f64"),
    },
    {"n": 512}, {"n": 32}, field, cg_reference,
    tolerance={"f32": 1e-3, "f64": 1e-10},
)  # fmt: skip
def cg_step(w):
    """The first step of conjugate gradients."""
    a, p, x = (w.array(name, ("n", "n"), given=name == "a") for name in ("a", "ap", "x"))
    n = w.size("n")
    tests = (
        ("i > 0", ("i - 1", "j")),
        (f"i < {n} - 1", ("i + 1", "j")),
        ("j > 0", ("i", "j - 1")),
        (f"j < {n} - 1", ("i", "j + 1")),
    )
    lines = [f"s = 5.0 * {a('i', 'j')}"]
    for test, place in tests:
        match w["edge"]:
            case "if":
                lines += [f"if {test}:", f"    s -= {a(*place)}"]
            case "ternary":
                lines += [f"s -= {a(*place)} if {test} else 0.0"]
            case "select":
                held = [
                    f"ti.max({one}, 0)" if "-" in one else f"ti.min({one}, {n} - 1)" if "+" in one else one
                    for one in place
                ]
                lines += [f"s -= ti.select({test}, {a(*held)}, 0.0)"]
            case "padded":
                held = [f"ti.max(0, ti.min({one}, {n} - 1))" if len(one) > 1 else one for one in place]
                lines += [f"s -= {a(*held)} * ti.cast({test}, {w.dtype})"]

    def all_over(body):
        return w.loop(["i", "j"], ["n", "n"], body, over=a)

    own = w.own
    for name in ("rr", "pap"):
        w.declare(name, f"ti.field({w.dtype}, shape=())")
    rr, pap = own("rr") + "[None]", own("pap") + "[None]"
    add_r, add_p = f"{{}} += {a('i', 'j')} * {a('i', 'j')}", f"{{}} += {a('i', 'j')} * {p('i', 'j')}"
    apply = [*lines, f"{p('i', 'j')} = s"]
    fused_p = f"{{}} += {a('i', 'j')} * s"
    update = all_over([f"{x('i', 'j')} = alpha * {a('i', 'j')}"])
    if w["sums"] == "returned":
        if w["fused"] == "yes":
            first = w.kernel(
                ["total = 0.0", *all_over([*apply, fused_p.format("total")]), "return total"], "apply", w.dtype, False
            )
        else:
            w.kernel(all_over(apply), name="apply")
            first = w.kernel(
                ["total = 0.0", *all_over([add_p.format("total")]), "return total"], "dot_ap", w.dtype, False
            )
        second = w.kernel(["total = 0.0", *all_over([add_r.format("total")]), "return total"], "dot_rr", w.dtype, False)
        w.runs += [first.replace("answer[0] =", "over ="), second.replace("answer[0] =", "above =")]
        w.kernel(update, name="update", extra=[("alpha", w.dtype, "above / over")])
    else:
        sums = all_over([add_r.format(rr), *([] if w["fused"] == "yes" else [add_p.format(pap)])])
        first = all_over([*apply, *([fused_p.format(pap)] if w["fused"] == "yes" else [])])
        clear = [f"{rr} = 0.0", f"{pap} = 0.0"]
        scaled = [line.replace("alpha", f"{rr} / {pap}") for line in update]
        if w["sums"] == "one_kernel":
            w.kernel([*clear, *first, *sums, *scaled])
        else:
            w.kernel(clear, name="clear")
            w.kernel(first, name="apply")
            w.kernel(sums, name="sums")
            w.kernel(scaled, name="update")
    w.result(x.numpy)


def pushed(sizes, dtype):
    """Velocities."""
    return {"a": np.random.default_rng(14).random(sizes["n"]).astype(dtype)}


def tape_reference(sizes, a):
    """The gradient of the sum of squares after steps of a damped spring."""
    h = 0.01
    m = np.linalg.matrix_power(np.array([[1, h], [-h, 1 - 0.1 * h]]), sizes["steps"])
    return 2 * m[0, 1] ** 2 * a.astype(np.float64)


@computation(
    {
        "history": ("time_first", "time_last"),
        "loops": ("range", "struct", "ndrange"),
        "home": HOME,
        "constant": CONSTANT,
        "steps": ("calls", "inner", "static"),
        "vectors": ("scalars", "vector"),
        "dtype": ("f32", "f64"),
    },
    {"n": 4096, "steps": 16}, {"n": 256, "steps": 4}, pushed, tape_reference,
    tolerance={"f32": 1e-3, "f64": 1e-9},
)  # fmt: skip
def tape(w):
    """The gradient of a small program over time."""
    first = w["history"] == "time_first"
    shape = "(steps + 1, n)" if first else "(n, steps + 1)"
    h = w.constant("h", 0.01)
    own, outside = w.own, w.outside
    if w["constant"] == "field0":
        # A constant that is a field would be given a derivative, which the reference does not have.
        raise Skip
    w.declare("a", f"ti.field({w.dtype}, shape=n, needs_grad=True)")
    w.declarations.append(f"{own('a')}.from_numpy(inputs['a'])")
    w.declare("loss", f"ti.field({w.dtype}, shape=(), needs_grad=True)")

    def at(name, t):
        index = f"{t}, i" if first else f"i, {t}"
        return f"{own(name)}[{index}]"

    if w["vectors"] == "vector":
        w.declare("s", f"ti.Vector.field(2, {w.dtype}, shape={shape}, needs_grad=True)")
        start = [f"{at('s', 0)} = ti.Vector([0.0, {own('a')}[i]])"]
        step = [f"z = {at('s', 't')}"]
        step += [f"{at('s', 't + 1')} = ti.Vector([z[0] + {h} * z[1], z[1] - {h} * (z[0] + 0.1 * z[1])])"]
        end = at("s", "steps") + "[0]"
    else:
        for name in "xv":
            w.declare(name, f"ti.field({w.dtype}, shape={shape}, needs_grad=True)")
        start = [f"{at('x', 0)} = 0.0", f"{at('v', 0)} = {own('a')}[i]"]
        step = [f"{at('x', 't + 1')} = {at('x', 't')} + {h} * {at('v', 't')}"]
        step += [f"{at('v', 't + 1')} = {at('v', 't')} - {h} * ({at('x', 't')} + 0.1 * {at('v', 't')})"]
        end = at("x", "steps")

    def all_over(body):
        match w["loops"]:
            case "struct":
                return [f"for i in {own('a')}:", *indent(body)]
            case "ndrange":
                return ["for i in ti.ndrange(n):", *indent(body)]
        return ["for i in range(n):", *indent(body)]

    calls = [w.kernel(all_over(start), name="begin", run=False)]
    match w["steps"]:
        case "calls":
            one = w.kernel(all_over(step), name="advance", run=False, extra=[("t", "ti.i32", "t")])
            calls += ["for t in range(steps):", f"    {one}"]
        case "inner":
            calls.append(w.kernel(all_over(["for t in range(steps):", *indent(step)]), name="advance", run=False))
        case "static":
            if w.sizes["steps"] > 16:
                raise Skip
            lines = all_over(["for t in ti.static(range(steps)):", *indent(step)])
            calls.append(w.kernel(lines, name="advance", run=False))
    measure = all_over([f"{own('loss')}[None] += {end} ** 2"])
    calls.append(w.kernel(measure, name="measure", run=False))
    w.runs += [f"with ti.ad.Tape({outside('loss')}):", *indent(calls)]
    w.result(f"{outside('a')}.grad.to_numpy()")
