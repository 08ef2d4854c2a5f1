"""Matrices: products, transposed copies, and many small ones."""

import numpy as np

from variants import Skip, computation
from variants.writer import BODY, BOUNDS, HOME, LOOPS, STORAGE, indent

SPELLED = {"storage": (*STORAGE, "tensor"), "home": HOME, "bounds": BOUNDS, "dtype": ("f32", "f64")}


def two_matrices(sizes, dtype):
    """Two square matrices."""
    draw, n = np.random.default_rng(4), sizes["n"]
    return {"a": draw.random((n, n)).astype(dtype), "b": draw.random((n, n)).astype(dtype)}


def by_tensors(w, names, expression):
    """The computation by the tensor layer. Stores make tensors others, so that nothing is known from before."""
    for name in names:
        w.declare(name, f"ti.tensor.asarray(inputs['{name}'])")
    first = w.outside(names[0])
    w.runs += [f"{first}[0, 0] = {first}[0, 0]", f"answer[0] = ({expression}).numpy()"]
    w.result("answer[0]")


@computation(
    {
        "order": ("ijk", "ikj", "jik", "kij", "flat", "parallel_k", "row_by_row"),
        "adding": ("augmented", "own", "local", "atomic"),
        "clear": ("first", "apart", "before"),
        **SPELLED,
    },
    {"n": 256}, {"n": 24}, two_matrices,
    lambda sizes, a, b: a.astype(np.float64) @ b,
)  # fmt: skip
def matmul(w):
    """A product of two matrices."""
    if w["storage"] == "tensor":
        return by_tensors(w, ["a", "b"], f"{w.outside('a')} @ {w.outside('b')}")
    a, b, c = w.array("a", ("n", "n"), given=True), w.array("b", ("n", "n"), given=True), w.array("c", ("n", "n"))
    n, order = w.size("n"), w["order"]
    value, target = f"{a('i', 'k')} * {b('k', 'j')}", c("i", "j")
    clear = [f"for i, j in ti.ndrange({n}, {n}):", f"    {target} = 0.0"]
    if order in ("ijk", "jik", "flat"):
        if w["clear"] != "first":
            raise Skip
        lines = w.accumulate(target, lambda line: [f"for k in range({n}):", f"    {line}"], value)
        head = {
            "ijk": [f"for i, j in ti.ndrange({n}, {n}):"],
            "jik": [f"for j, i in ti.ndrange({n}, {n}):"],
            "flat": [f"for t in range({n} * {n}):", f"    i = t // {n}", f"    j = t % {n}"],
        }[order]
        w.kernel([*head, *indent(lines)])
        return w.result(c.numpy)
    if w["adding"] == "local":
        raise Skip
    if order == "parallel_k":
        lines = [f"for i, j, k in ti.ndrange({n}, {n}, {n}):", *indent(w.add(target, value, parallel=True))]
    elif order == "kij":
        line = w.add(target, value)
        lines = ["for once in range(1):", f"    for k in range({n}):", f"        for i in range({n}):"]
        lines += [f"            for j in range({n}):", *indent(line, 4)]
    elif order == "ikj":
        lines = [f"for i in range({n}):", f"    for k in range({n}):", f"        for j in range({n}):"]
        lines += indent(w.add(target, value), 3)
    else:
        lines = [f"for i in range({n}):", f"    for k in range({n}):", f"        factor = {a('i', 'k')}"]
        lines += [f"        for j in range({n}):", *indent(w.add(target, f"factor * {b('k', 'j')}"), 3)]
    match w["clear"]:
        case "first" if order in ("ikj", "row_by_row"):
            w.kernel([lines[0], f"    for j in range({n}):", f"        {target} = 0.0", *lines[1:]])
        case "first":
            w.kernel([*clear, *lines])
        case "apart":
            w.kernel(clear, name="clear")
            w.kernel(lines)
        case "before":
            w.runs.append(c.clear)
            w.kernel(lines)
    w.result(c.numpy)


@computation(
    {
        "loops": ("nested", "while", "ndrange", "swapped", "columns", "flat"),
        "adding": ("local", "augmented", "own", "atomic"),
        "transposed": ("no", "yes"),
        **SPELLED,
    },
    {"n": 1024}, {"n": 48},
    lambda sizes, dtype: {"a": two_matrices(sizes, dtype)["a"], "x": two_matrices(sizes, dtype)["b"][0].copy()},
    lambda sizes, a, x: np.concatenate([a.astype(np.float64) @ x, a.T.astype(np.float64) @ x]),
    apart=("dtype", "transposed"),
)  # fmt: skip
def matvec(w):
    """A matrix, or its transpose, by a vector."""
    # The other product stands beside in the reference: it is computed by NumPy once.
    transposed = w["transposed"] == "yes"
    names = ("a", "x")
    other = "inputs['a'].astype(np.float64) @ inputs['x']"
    if not transposed:
        other = "inputs['a'].astype(np.float64).T @ inputs['x']"
    w.declare("other", other)

    def both(expression):
        pair = [w.outside("other"), expression] if transposed else [expression, w.outside("other")]
        w.result(f"np.concatenate([{', '.join(pair)}])")

    if w["storage"] == "tensor":
        a, x = (w.outside(name) for name in names)
        by_tensors(w, names, f"{a}.T @ {x}" if transposed else f"{a} @ {x}")
        return both("answer[0]")
    a, x, y = w.array("a", ("n", "n"), given=True), w.array("x", ("n",), given=True), w.array("y", ("n",))
    n = w.size("n")
    value = f"{a('j', 'i') if transposed else a('i', 'j')} * {x('j')}"
    if w["loops"] in ("nested", "while"):
        head, first = [f"for j in range({n}):"], []
        if w["loops"] == "while":
            head, first = ["j = 0", f"while j < {n}:"], ["    j += 1"]
            value = value.replace("j", "(j - 1)")
        lines = w.accumulate(y("i"), lambda line: [*head, *first, f"    {line}"], value)
        w.kernel([f"for i in range({n}):", *indent(lines)])
    else:
        clear = [f"for i in range({n}):", f"    {y('i')} = 0.0"]
        if w["adding"] == "local":
            raise Skip
        if w["loops"] == "columns":
            line = w.add(y("i"), value)
            lines = [
                "for once in range(1):",
                f"    for j in range({n}):",
                f"        for i in range({n}):",
                *indent(line, 3),
            ]
        else:
            line = w.add(y("i"), value, parallel=True)
            head = {
                "ndrange": [f"for i, j in ti.ndrange({n}, {n}):"],
                "swapped": [f"for j, i in ti.ndrange({n}, {n}):"],
                "flat": [f"for t in range({n} * {n}):", f"    i = t // {n}", f"    j = t % {n}"],
            }[w["loops"]]
            lines = [*head, *indent(line)]
        w.kernel([*clear, *lines])
    both(y.numpy)


@computation(
    {"loops": LOOPS, "side": ("read", "written"), "over": ("read", "written"), "blocked": ("no", "tiles"), **SPELLED},
    {"n": 1024}, {"n": 32},
    lambda sizes, dtype: {"a": two_matrices(sizes, dtype)["a"]},
    lambda sizes, a: a.T,
)  # fmt: skip
def transpose(w):
    """A transposed copy."""
    if w["storage"] == "tensor":
        return by_tensors(w, ["a"], f"{w.outside('a')}.T")
    a, b = w.array("a", ("n", "n"), given=True), w.array("b", ("n", "n"))
    copy = f"{b('i', 'j')} = {a('j', 'i')}" if w["side"] == "read" else f"{b('j', 'i')} = {a('i', 'j')}"
    if w["blocked"] == "tiles":
        n = w.size("n")
        lines = [f"for I, J in ti.ndrange({n} // 8, {n} // 8):", "    for p, q in ti.ndrange(8, 8):"]
        lines += ["        i = I * 8 + p", "        j = J * 8 + q", "        " + copy]
        if w["loops"] != LOOPS[0]:
            raise Skip
        w.kernel(lines)
    else:
        w.kernel(w.loop(["i", "j"], ["n", "n"], [copy], over=b if w["over"] == "written" else a))
    w.result(b.numpy)


SMALL_AXES = {
    "kept": ("aos", "soa", "apart", "struct", "ndarray", "numpy", "last_axes", "first_axes"),
    "spelled": ("matrix", "components", "range", "static", "columns"),
    "body": BODY,
    "home": HOME,
    "loops": ("struct", "range"),
    "dtype": ("f32", "f64"),
}


def many_matrices(sizes, dtype):
    """Pairs of matrices of three rows."""
    draw, n = np.random.default_rng(5), sizes["n"]
    return {"a": draw.random((n, 3, 3)).astype(dtype), "b": draw.random((n, 3, 3)).astype(dtype)}


class Matrices:
    """Matrices of three rows, stored as the choice says."""

    def __init__(self, w, name, given=False):
        self.w, self.name, self.kept = w, name, w["kept"]
        data, own, dtype = f"inputs['{name}']", w.own(name), w.dtype
        kind = f"ti.types.matrix(3, 3, {dtype})"
        fill = f"{own}.from_numpy({data})"
        match self.kept:
            case "aos" | "soa":
                w.declare(name, f"ti.Matrix.field(3, 3, {dtype}, shape=n, layout=ti.Layout.{self.kept.upper()})")
            case "apart":
                w.declare(name, f"ti.Matrix.field(3, 3, {dtype})")
                w.declarations += ["for k in range(9):"]
                w.declarations += [f"    ti.root.dense(ti.i, n).place({own}.get_scalar_field(k // 3, k % 3))"]
            case "struct":
                w.declare(name, f"ti.Struct.field({{'m': {kind}, 'rest': {dtype}}}, shape=n)")
                fill = f"{own}.m.from_numpy({data})"
            case "ndarray":
                w.declare(name, f"ti.Matrix.ndarray(3, 3, {dtype}, shape=n)")
            case "numpy":
                w.declare(name, f"{data}.copy()" if given else f"np.zeros((n, 3, 3), {w.np(dtype)})")
                fill = None
            case "last_axes":
                w.declare(name, f"ti.field({dtype}, shape=(n, 3, 3))")
            case "first_axes":
                w.declare(name, f"ti.field({dtype}, shape=(3, 3, n))")
                fill = f"{own}.from_numpy(np.ascontiguousarray({data}.transpose(1, 2, 0)))"
        if given and fill:
            w.declarations.append(fill)
        if self.kept in ("ndarray", "numpy"):
            w.parameters.append((name, f"ti.types.ndarray(dtype={kind}, ndim=1)", w.outside(name)))

    @property
    def ref(self):
        """How a kernel names them."""
        return self.name if self.kept in ("ndarray", "numpy") else self.w.own(self.name)

    def at(self, r, c):
        """A component of the one at `i`."""
        match self.kept:
            case "last_axes":
                return f"{self.ref}[i, {r}, {c}]"
            case "first_axes":
                return f"{self.ref}[{r}, {c}, i]"
            case "struct":
                return f"{self.ref}[i].m[{r}, {c}]"
        return f"{self.ref}[i][{r}, {c}]"

    @property
    def whole(self):
        """The one at `i`."""
        if self.kept in ("last_axes", "first_axes"):
            rows = (f"[{', '.join(self.at(r, c) for c in range(3))}]" for r in range(3))
            return f"ti.Matrix([{', '.join(rows)}])"
        return f"{self.ref}[i].m" if self.kept == "struct" else f"{self.ref}[i]"

    def put(self, value):
        """Lines that store the matrix named `value`."""
        if self.kept in ("last_axes", "first_axes"):
            return [f"{self.at(r, c)} = {value}[{r}, {c}]" for r in range(3) for c in range(3)]
        return [f"{self.whole} = {value}"]

    @property
    def numpy(self):
        """The elements, outside of kernels."""
        name = self.w.outside(self.name)
        if self.kept == "numpy":
            return name
        return {
            "struct": f"{name}.m.to_numpy()",
            "first_axes": f"{name}.to_numpy().transpose(2, 0, 1)",
        }.get(self.kept, f"{name}.to_numpy()")


def over_all(w, first, body):
    """A loop over all matrices."""
    if w["loops"] == "range":
        return ["for i in range(n):", *indent(body)]
    if w["kept"] in ("last_axes", "first_axes"):
        raise Skip
    return [f"for i in {first.ref}:", *indent(body)]


@computation(SMALL_AXES, {"n": 1 << 16}, {"n": 1 << 7}, many_matrices, lambda sizes, a, b: a.astype(np.float64) @ b)
def small_products(w):
    """Products of matrices of three rows."""
    a, b, c = Matrices(w, "a", given=True), Matrices(w, "b", given=True), Matrices(w, "c")
    body = [f"p = {a.whole}", f"q = {b.whole}"]
    zero = "r = ti.Matrix([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])"
    step = "r[row, col] += p[row, k] * q[k, col]"
    match w["spelled"]:
        case "matrix":
            lines = ["r = p @ q"]
        case "components":
            terms = [[" + ".join(f"p[{i}, {k}] * q[{k}, {j}]" for k in range(3)) for j in range(3)] for i in range(3)]
            lines = [f"r = ti.Matrix([{', '.join('[' + ', '.join(row) + ']' for row in terms)}])"]
        case "range":
            lines = [
                zero,
                "for row in range(3):",
                "    for col in range(3):",
                "        for k in range(3):",
                "            " + step,
            ]
        case "static":
            lines = [zero, "for row, col, k in ti.static(ti.ndrange(3, 3, 3)):", "    " + step]
        case "columns":
            columns = ", ".join(f"p @ ti.Vector([q[0, {j}], q[1, {j}], q[2, {j}]])" for j in range(3))
            lines = [f"r = ti.Matrix.cols([{columns}])"]
    kind = f"ti.types.matrix(3, 3, {w.dtype})"
    lines = w.function("product", [("p", kind), ("q", kind)], lines, "r", returns=kind)
    w.kernel(over_all(w, a, [*body, *lines, *c.put("r")]))
    w.result(c.numpy)


@computation(
    SMALL_AXES, {"n": 1 << 17}, {"n": 1 << 7}, many_matrices,
    lambda sizes, a, b: np.linalg.det(a.astype(np.float64)),
)  # fmt: skip
def determinants(w):
    """Determinants of matrices of three rows."""
    a = Matrices(w, "a", given=True)
    w.declare("d", f"ti.field({w.dtype}, shape=n)")

    def minor(r, s, c, d):
        return f"(p[{r}, {c}] * p[{s}, {d}] - p[{r}, {d}] * p[{s}, {c}])"

    match w["spelled"]:
        case "matrix":
            lines = ["r = p.determinant()"]
        case "components":
            lines = [
                f"r = p[0, 0] * {minor(1, 2, 1, 2)} - p[0, 1] * {minor(1, 2, 0, 2)} + p[0, 2] * {minor(1, 2, 0, 1)}"
            ]
        case "columns":
            rows = [f"ti.Vector([p[{r}, 0], p[{r}, 1], p[{r}, 2]])" for r in range(3)]
            lines = [f"r = {rows[0]}.dot({rows[1]}.cross({rows[2]}))"]
        case "range" | "static":
            span = "range(3)" if w["spelled"] == "range" else "ti.static(range(3))"
            lines = ["r = 0.0", f"for k in {span}:"]
            lines += [
                "    r += p[0, k] * (p[1, (k + 1) % 3] * p[2, (k + 2) % 3] - p[1, (k + 2) % 3] * p[2, (k + 1) % 3])"
            ]
    lines = w.function("volume", [("p", f"ti.types.matrix(3, 3, {w.dtype})")], lines, "r")
    w.kernel(over_all(w, a, [f"p = {a.whole}", *lines, f"{w.own('d')}[i] = r"]))
    w.result(f"{w.outside('d')}.to_numpy()")
