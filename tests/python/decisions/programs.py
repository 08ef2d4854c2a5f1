"""Kernels made of patterns: their operands' sources, the loops around them, and the comparison with NumPy.

C_d = 0.3                                          # a constant of a closure
@ti.kernel
def k(X: ti.types.ndarray(ti.f32, 1), out: ...):
    for i in range(203):
        x = X[i]
        out[0, i] = int(ti.floor((x - 0.1) / C_d))
        out[1, i] = ti.cast(x % C_d < 0, ti.i32)
"""

import itertools
import linecache
from dataclasses import dataclass, field, replace

import numpy as np

import aerogel as ti
from decisions import inputs, patterns
from decisions.expressions import ConstantFails, Evaluator, Value, operands, render, scalar
from decisions.formats import WORK, convert, from_double, stored

SLOTS = ("x", "y", "d", "w")
# Constants of Python's, values that are the same in a launch, and values that are loaded anew.
CONSTANTS = ("literal", "literal", "global", "self", "closure", "template")
INVARIANT = ("argument", "argument", "field of one", "element", "local", "cast", "vector")
SHAPES = (
    "parallel",
    "parallel",
    "serial",
    "field",
    "inner",
    "inner",
    "while",
    "branch",
    "scalar",
    "returned",
    "carried",
)
NESTED = ("inner", "while", "carried")
COUNT = itertools.count()
UNTOUCHED = -77
# The most iterations of a loop that a decision ends.
LONGEST = 40
EACH = 24


@dataclass
class Failure:
    """A decision that differs."""

    pattern: str
    kind: str
    shape: str
    sources: dict
    inputs: dict
    got: object
    right: object
    program: str = field(repr=False, default="")

    def __str__(self):
        given = ", ".join(f"{slot} = {value!r} ({self.sources[slot]})" for slot, value in self.inputs.items())
        return f"{self.kind}, {self.shape}: {self.pattern}\n    {given}\n    got {self.got}, right {self.right}"


@dataclass
class Program:
    """One kernel: its patterns, the sources of its operands, and their values."""

    kind: str
    literal: str
    shape: str
    sources: dict
    constants: dict
    chosen: list
    n: int
    m: int
    forms: list
    update: str = ""

    def text(self):
        """The source of a function `build`, which returns the kernel."""
        return _Text(self).text

    def params(self):
        """The names of the kernel's parameters."""
        return [name for name, _ in _Text(self).params]

    def rows(self, rng):
        """The operands in all rows: arrays of the kind, but numbers of Python's for constants."""
        n, m = self.n, self.m
        fixed = {s: np.broadcast_to(from_double(self.kind, c), n * m) for s, c in self.constants.items()}
        rows = inputs.operands(self.kind, rng, n * m, fixed)
        for slot, source in self.sources.items():
            if source == "row":
                rows[slot] = np.repeat(rows[slot][::m], m)
        if any(source == "row" for source in self.sources.values()):
            again = {slot: values for slot, values in rows.items() if self.sources[slot] != "load"}
            rows = inputs.operands(self.kind, rng, n * m, again)
        return rows

    def right(self, rows):
        """The decisions of NumPy, or `None` where Python raises an error."""
        env = {}
        for slot, source in self.sources.items():
            if source in CONSTANTS:
                env[slot] = self.constants[slot]
            elif source == "local":
                env[slot] = scalar(self.literal, self.constants[slot])
            elif source == "cast":
                once = from_double(self.literal, self.constants[slot])
                env[slot] = Value(self.kind, convert(self.kind, self.literal, once))
            else:
                env[slot] = Value(self.kind, rows[slot])
        if self.shape == "until":
            return np.stack([self.iterations(text, env, rows["x"]) for text in self.chosen])
        if self.shape != "carried":
            return self.decided(env, self.n * self.m)
        carried, found = rows["x"][:: self.m], []
        for j in range(self.m):
            now = {slot: self.at(v, j) for slot, v in env.items()} | {"x": Value(self.kind, carried)}
            found.append(self.decided(now, self.n))
            value = Evaluator(self.literal).of(self.update, now)
            carried = np.broadcast_to(convert(self.kind, value.kind, value.array), self.n)
        return np.stack(found, 2).reshape(len(self.chosen), -1)

    def iterations(self, text, env, carried):
        """How often a loop runs that goes on while a pattern is true."""
        evaluator, goes_on, count = Evaluator(self.literal), np.ones(self.n, bool), np.zeros(self.n, np.int32)
        for _ in range(LONGEST):
            now = {slot: v for slot, v in env.items() if slot in SLOTS} | {"x": Value(self.kind, carried)}
            goes_on &= evaluator.of(text, now).array
            count += goes_on
            value = evaluator.of(self.update, now)
            carried = convert(self.kind, value.kind, value.array)
        return count

    def at(self, value, j):
        """An operand in iteration `j` of the inner loop."""
        is_row = isinstance(value, Value) and np.ndim(value.array)
        return Value(value.kind, value.array[j :: self.m]) if is_row else value

    def decided(self, env, n):
        """NumPy's decisions on operands of `n` rows."""
        evaluator, found = Evaluator(self.literal), []
        for text in self.chosen:
            value = evaluator.of(text, env)
            found.append(np.broadcast_to(np.asarray(value.array).astype(np.int32), n))
        return np.stack(found)


class _Text:
    """Writes a program."""

    def __init__(self, program):
        p = self.program = program
        self.params, self.head, self.outer, self.inner = [], [], [], []
        self.closure, self.outside, self.members = [], [], []
        self.names = {slot: self.operand(slot, p.sources[slot]) for slot in SLOTS}
        self.text = "\n".join(self.lines()) + "\n"

    def operand(self, slot, source):
        p, dtype = self.program, f"ti.{self.program.kind}"
        number = repr(p.constants.get(slot))
        big = slot.upper()
        if source == "literal":
            return number
        if source == "global":
            self.outside.append(f"G_{slot} = {number}")
            return f"G_{slot}"
        if source == "closure":
            self.closure.append(f"C_{slot} = {number}")
            return f"C_{slot}"
        if source == "self":
            self.members.append(f"self.m_{slot} = {number}")
            return f"self.m_{slot}"
        if source == "template":
            self.params.append((f"t_{slot}", "ti.template()"))
            return f"t_{slot}"
        if source == "argument":
            self.params.append((f"a_{slot}", dtype))
            return f"a_{slot}"
        if source == "field of one":
            # Read where it is used, or once before all loops.
            self.head.append(f"f_{slot} = {big}0[None]")
            return f"f_{slot}"
        if source == "vector":
            self.params.append((f"v_{slot}", f"ti.types.vector(2, {dtype})"))
            return f"v_{slot}[1]"
        if source == "element":
            self.params.append((f"{big}1", f"ti.types.ndarray({dtype}, 1)"))
            return f"{big}1[1]"
        if source == "local":
            self.head.append(f"c_{slot} = {number}")
            return f"c_{slot}"
        if source == "cast":
            self.head.append(f"c_{slot} = ti.cast({number}, {dtype})")
            return f"c_{slot}"
        if p.shape in ("scalar", "returned"):
            self.params.append((f"a_{slot}", dtype))
            return f"a_{slot}"
        nested = p.shape in NESTED
        row = source == "row"
        if p.shape != "field":
            self.params.append((big, f"ti.types.ndarray({dtype}, {2 if nested and not row else 1})"))
        place = f"{big}[i, j]" if nested and not row else f"{big}[i]"
        if row:
            self.outer.append(f"{slot} = {place}")
            return slot
        if slot in "xd" or source == "load twice":
            self.inner.append(f"{slot} = {place}")
            return slot
        return place

    def stores(self, places):
        """The decisions, each stored to its place."""
        p, lines = self.program, []
        for k, text in enumerate(p.chosen):
            source, place = render(text, self.names), places(k)
            if text.startswith("int("):
                lines += [f"{place} = {source}"]
            elif p.forms[k] == "if":
                lines += [f"if {source}:", f"    {place} = 1", "else:", f"    {place} = 0"]
            elif p.forms[k] == "choice":
                lines += [f"{place} = 1 if {source} else 0"]
            else:
                lines += [f"{place} = ti.cast({source}, ti.i32)"]
        return lines

    def body(self):
        p = self.program
        indented = lambda lines: ["    " + line for line in lines]  # noqa: E731
        if p.shape == "returned":
            given = [f"r{k} = 0" for k in range(len(p.chosen))] + self.stores(lambda k: f"r{k}")
            return [*self.head, *given, f"return ti.Vector([{', '.join(f'r{k}' for k in range(len(p.chosen)))}])"]
        if p.shape == "scalar":
            self.params.append(("out", "ti.types.ndarray(ti.i32, 1)"))
            return self.head + self.stores(lambda k: f"out[{k}]")
        if p.shape == "until":
            return self.loops()
        nested = p.shape in NESTED
        self.params.append(("out", f"ti.types.ndarray(ti.i32, {3 if nested else 2})"))
        stores = self.inner + self.stores(lambda k: f"out[{k}, i, j]" if nested else f"out[{k}, i]")
        loop = "for i in X:" if p.shape == "field" else f"for i in range({p.n}):"
        if p.shape == "carried":
            stores.append(f"x = {render(p.update, self.names)}")
        if p.shape in ("inner", "carried"):
            stores = [f"for j in range({p.m}):", *indented(stores)]
        elif p.shape == "while":
            self.params.append(("count", "ti.types.ndarray(ti.i32, 1)"))
            stores = ["j = 0", "while j < count[i]:", *indented(stores), "    j += 1"]
        elif p.shape == "branch":
            self.params.append(("count", "ti.types.ndarray(ti.i32, 1)"))
            stores = ["if count[i] > 0:", *indented(stores)]
        lines = [*self.head, loop, *indented(self.outer + stores)]
        if p.shape == "serial":
            lines.insert(len(self.head), "ti.loop_config(serialize=True)")
        return lines

    def loops(self):
        """For each pattern a loop that goes on while it is true."""
        p, lines = self.program, []
        self.params.append(("out", "ti.types.ndarray(ti.i32, 2)"))
        update = f"x = {render(p.update, self.names)}"
        for k, text in enumerate(p.chosen):
            source = render(text, self.names)
            lines += [*self.inner, "j = 0"]
            if p.forms[k] == "cast":
                lines += [f"while j < {LONGEST} and ({source}):", f"    {update}", "    j += 1"]
            else:
                lines += [
                    f"while j < {LONGEST}:",
                    f"    if not ({source}):",
                    "        break",
                    f"    {update}",
                    "    j += 1",
                ]
            lines += [f"out[{k}, i] = j"]
        return [*self.head, f"for i in range({p.n}):", *("    " + line for line in lines)]

    def lines(self):
        p = self.program
        body = self.body()
        of_class = bool(self.members)
        params = ["self"] * of_class + [f"{name}: {ty}" for name, ty in self.params]
        result = f" -> ti.types.vector({len(p.chosen)}, ti.i32)" if p.shape == "returned" else ""
        kernel = ["@ti.kernel", f"def k({', '.join(params)}){result}:", *("    " + line for line in body)]
        if of_class:
            members = ["def __init__(self):", *("    " + line for line in self.members)]
            kernel = ["@ti.data_oriented", "class Holder:", *("    " + line for line in members + kernel)]
        fields = ["X", "Y", "D", "W"] if p.shape == "field" else []
        fields += [f"{slot.upper()}0" for slot in SLOTS if p.sources[slot] == "field of one"]
        build = self.closure + kernel + (["return Holder().k"] if of_class else ["return k"])
        return [*self.outside, f"def build({', '.join(fields)}):", *("    " + line for line in build)]


def drawn(rng, kind, n, n_patterns, shapes=SHAPES):
    """A program of some patterns with about `n` rows."""
    literal = kind if kind in ("f32", "f64") or rng.random() < 0.6 else "f32"
    shape = shapes[rng.integers(len(shapes))]
    sources = {"x": "row" if shape == "carried" else "load"}
    for slot in SLOTS[1:]:
        pick = rng.random()
        group = CONSTANTS if pick < 0.45 else INVARIANT if pick < 0.75 else ("load", "load", "load twice", "row")
        sources[slot] = group[rng.integers(len(group))]
        if sources[slot] == "row" and shape not in NESTED:
            sources[slot] = "load"
    constants = {}
    for slot in ("d", "y", "w"):
        if sources[slot] in CONSTANTS + INVARIANT:
            constants[slot] = inputs.constant(kind, rng, slot, constants.get("d", 0.1))
            if sources[slot] not in CONSTANTS:
                constants[slot] = float(constants[slot])
    chosen = list(
        dict.fromkeys(patterns.whole(text, decision) for _, text, decision in patterns.drawn(rng, n_patterns))
    )
    chosen = [text for text in chosen if _is_fine(text, constants, sources, literal)]
    if shape == "until":
        chosen = [text for text in chosen if not text.startswith("int(")][:4]
    updates = [text for text in patterns.UPDATES if _is_fine(text, constants, sources, literal)]
    update = str(rng.choice(updates)) if shape in ("carried", "until") else ""
    m = 1
    if shape in NESTED:
        m = int(rng.choice([5, 16, 37]))
    n = max(n // m, 3)
    if shape in ("scalar", "returned"):
        n = EACH
    forms = [str(rng.choice(["cast", "cast", "if", "choice"])) for _ in chosen]
    return Program(kind, literal, shape, sources, constants, chosen, n, m, forms, update)


def _is_fine(text, constants, sources, literal):
    """Whether Python computes the constants of a pattern, and something is left to the kernel."""
    if "x" not in operands(text):
        return False
    env = {s: c if sources[s] in CONSTANTS else scalar(literal, c) for s, c in constants.items()}
    env = {slot: scalar(literal, 1.0) for slot in SLOTS} | env
    try:
        return isinstance(Evaluator(literal).of(text, env), Value)
    except (ConstantFails, OverflowError):
        return False


def built(program, rows):
    """The kernel of a program, and its arguments by name; fields hold the rows."""
    path = f"/generated/decisions{next(COUNT)}.py"
    text = program.text()
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    scope = {"ti": ti}
    exec(compile(text, path, "exec"), scope)  # noqa: S102
    dtype = getattr(ti, program.kind)
    fields = []
    if program.shape == "field":
        for slot in SLOTS:
            fields.append(ti.field(dtype, program.n))
            fields[-1].from_numpy(stored(program.kind, rows[slot]))
    for slot in SLOTS:
        if program.sources[slot] == "field of one":
            fields.append(ti.field(dtype, ()))
            fields[-1][None] = float(rows[slot][0])
    return scope["build"](*fields)


def arguments(program, rows, rng):
    """What a kernel may take, by name, and in which elements of `out` it decides anything."""
    n, m, kind, n_out = program.n, program.m, program.kind, len(program.chosen)
    count = rng.integers(0, m + 1, n).astype(np.int32)
    done = np.arange(m)[None, :] < count[:, None] if program.shape in ("while", "branch") else np.ones((n, m), bool)
    nested = program.shape in NESTED
    shape = (n_out, n, m) if nested else (n_out,) if program.shape == "scalar" else (n_out, n)
    given = {"out": np.full(shape, UNTOUCHED, np.int32), "count": count}
    for slot in SLOTS:
        big, source = slot.upper(), program.sources[slot]
        number = program.constants.get(slot)
        given |= {f"t_{slot}": number, f"a_{slot}": None if number is None else float(number)}
        if number is not None:
            given[f"v_{slot}"] = ti.Vector([7.0, float(number)])
            given[f"{big}1"] = stored(kind, np.array([7.0, rows[slot][0]], WORK[kind]))
        elif nested:
            given[big] = stored(kind, rows[slot].reshape(n, m)[:, 0] if source == "row" else rows[slot].reshape(n, m))
        else:
            given[big] = stored(kind, rows[slot])
    return given, done.reshape(n * m)


def run(program, rows, rng):
    """What a program decides, and where it decides anything."""
    kernel = built(program, rows)
    given, done = arguments(program, rows, rng)
    names = program.params()
    out = given["out"]
    if program.shape not in ("scalar", "returned"):
        kernel(*(given[name] for name in names))
        return out.reshape(len(program.chosen), -1), done
    found = []
    for i in range(program.n):
        for slot in SLOTS:
            if program.sources[slot] in ("load", "load twice"):
                given[f"a_{slot}"] = float(rows[slot][i])
        result = kernel(*(given[name] for name in names))
        found.append(np.array(result if program.shape == "returned" else out).reshape(-1).copy())
    return np.stack(found, 1), done


def check(program, rng):
    """How many decisions a program took, and those that differ."""
    rows = program.rows(rng)
    right = program.right(rows)
    got, done = run(program, rows, rng)
    right = np.where(done, right, UNTOUCHED)
    wrong = np.unique(np.nonzero(got != right)[0])
    return int(done.sum()) * len(program.chosen), [_failure(program, rows, got[k], right[k], k, rng) for k in wrong]


def _failure(program, rows, got, right, k, rng):
    """The first row in which a pattern differs, with the kernel of that pattern alone if it differs there as well."""
    alone = replace(program, chosen=[program.chosen[k]], forms=[program.forms[k]])
    found, done = run(alone, rows, rng)
    text = (alone if (found != alone.right(rows))[:, done].any() else program).text()
    places = np.nonzero(got != right)[0]
    named = operands(program.chosen[k]) | (operands(program.update) if program.update else set())
    values = {s: program.constants.get(s, float(rows[s][places[0]])) for s in SLOTS if s in named}
    carried = f" by x = {program.update}" if program.update else ""
    shape = f"{program.shape}{carried}, default_fp={program.literal}, {len(places)} of {len(got)} rows"
    pattern = render(program.chosen[k], {})
    return Failure(pattern, program.kind, shape, program.sources, values, got[places[0]], right[places[0]], text)
